"""Small vocabularies of the four kinds that models have, with their special tokens where they say.

A vocabulary spells any text, with some words in one token, as a large one does.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers import processors as post
from tokenizers.models import BPE, Unigram, WordPiece

Special = Mapping[str, int]
"""The special tokens, and their ids."""
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!?'\"-:;()[]{}<>|/_\né"
WORDS = "the cat sat on mat and it was to of in user hello weather you are assistant".split()
GPT_4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _numbered(words: Iterable[str], special: Special) -> dict[str, int]:
    """Each word with the next id that no special token has."""
    taken = set(special.values())
    free = (id_ for id_ in count() if id_ not in taken)
    return {**dict(zip(dict.fromkeys(words), free, strict=False)), **special}


def _merged(mark: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The words of a byte pair encoding that its merges make, letter by letter, and the merges."""
    made, merges = list[str](), dict[tuple[str, str], None]()
    for word in WORDS:
        begun = mark
        for letter in word:
            merges[begun, letter] = None
            begun += letter
            made.append(begun)
    return made, list(merges)


def byte_level(special: Special, *, gpt_4: bool = False, prefix: bool = False) -> Tokenizer:
    """Byte-level BPE: GPT-2, or with the newer expression that Llama 3 and Qwen cut words by."""
    made, merges = _merged("Ġ")
    vocab = _numbered([*sorted(pre_tokenizers.ByteLevel.alphabet()), *made], special)
    tokenizer = Tokenizer(BPE(vocab=vocab, merges=merges))
    cut = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=not gpt_4)
    if gpt_4:
        split = pre_tokenizers.Split(Regex(GPT_4), behavior="isolated", invert=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, cut])
    else:
        tokenizer.pre_tokenizer = cut
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def llama_3(special: Special) -> Tokenizer:
    return byte_level(special, gpt_4=True)


def pieces(special: Special, *, prefix: bool = True) -> Tokenizer:
    """SentencePiece's BPE, with bytes for letters that it does not know: Llama 2, Mistral."""
    made, merges = _merged("▁")
    known = [f"<0x{byte:02X}>" for byte in range(256)]
    vocab = _numbered([*known, "▁", *LETTERS, *made], special)
    tokenizer = Tokenizer(
        BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    spaces = normalizers.Replace(" ", "▁")
    ends = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if prefix:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), spaces])
        tokenizer.decoder = decoders.Sequence([*ends, decoders.Strip(" ", 1, 0)])
    else:
        tokenizer.normalizer = spaces
        tokenizer.decoder = decoders.Sequence(ends)
    return tokenizer


def gemma(special: Special) -> Tokenizer:
    return pieces(special, prefix=False)


def unigram(special: Special) -> Tokenizer:
    """SentencePiece's unigrams: T5, XLM-RoBERTa, NLLB."""
    vocab = _numbered(["▁", *LETTERS, *(f"▁{word}" for word in WORDS)], special)
    spelled = {id_: word for word, id_ in vocab.items()}
    scored = [
        (spelled.get(id_, f"▁unused{id_}"), -float(2 + id_ % 7)) for id_ in range(max(spelled) + 1)
    ]
    tokenizer = Tokenizer(Unigram(scored, unk_id=special["<unk>"], byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always"),
        ]
    )
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    return tokenizer


def word_piece(special: Special, *, lower: bool = True) -> Tokenizer:
    """BERT's, uncased or cased."""
    vocab = _numbered([*LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS], special)
    tokenizer = Tokenizer(WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def cased(special: Special) -> Tokenizer:
    return word_piece(special, lower=False)


def prefixed(special: Special) -> Tokenizer:
    return byte_level(special, prefix=True)


KINDS: Mapping[str, Callable[[Special], Tokenizer]] = {
    "bytes": byte_level,
    "prefixed bytes": prefixed,
    "gpt-4 bytes": llama_3,
    "pieces": pieces,
    "gemma": gemma,
    "unigram": unigram,
    "words": word_piece,
    "cased words": cased,
}


def tokenizer_of(kind: str, special: Special, around: str) -> Tokenizer:
    """A tokenizer of a kind.

    Args:
        kind: one of `KINDS`.
        special: its special tokens.
        around: what it puts around a text, such as `"[CLS] $A [SEP]"`; empty: nothing.
    """
    tokenizer = KINDS[kind](special)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in special])
    if around:
        named = [token for token in around.split() if token in special]
        tokenizer.post_processor = post.TemplateProcessing(
            single=around,
            special_tokens=[(token, special[token]) for token in dict.fromkeys(named)],
        )
    return tokenizer


def write_texts(tokenizer: Tokenizer, folder: Path) -> None:
    """Write the vocabulary as older folders have it: `vocab.txt`, or a `vocab.json` and merges."""
    made = json.loads(tokenizer.to_str())["model"]
    if made["type"] == "WordPiece":
        ordered = sorted(made["vocab"], key=lambda word: made["vocab"][word])
        (folder / "vocab.txt").write_text("".join(f"{w}\n" for w in ordered if w != "\n"))
    else:
        (folder / "vocab.json").write_text(json.dumps(made["vocab"]))
        merges = (pair if isinstance(pair, str) else " ".join(pair) for pair in made["merges"])
        (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]))
