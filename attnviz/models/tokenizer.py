"""A text to tokens, with exact character offsets; the same for every engine."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise, product, repeat
from pathlib import Path
from typing import Any

from tokenizers import Encoding, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from attnviz.errors import ModelError, UsageError, option, readable
from attnviz.models.folder.config import (
    NO_LIMIT,
    SEQ2SEQ,
    ModelSizes,
    folder_sizes,
    is_sighted,
    read_card,
)
from attnviz.models.folder.files import MERGES, TOKENIZER, cut, foreign, read_bytes
from attnviz.models.folder.llama import OWN as LLAMAS
from attnviz.models.folder.steps import with_its_steps
from attnviz.models.folder.tokenizer import (
    LARGEST_TOKENIZER,
    MOST_AROUND,
    backend_of,
    check_tokenizer,
    no_tokenizer,
)
from attnviz.records.capture import Kind, ShownKind
from attnviz.records.heads import ModelCard
from attnviz.records.tokens import (
    MASKS,
    SEGMENTS,
    SPECIAL_LABEL,
    Ids,
    TextOfIds,
    Token,
    numbered,
    numbered_parts,
    with_parts,
)

END = "<|endoftext|>"
MOST_PER_BYTE = 4
"""The most tokens that a byte of the text may become."""
WINDOW = 8
"""The most tokens before a new one that decide how it is spelled."""
ALIGNED = "its tokenizer gives no places of tokens; they are found by their spelling"
UNKNOWN = "transformers adds tokens that the model does not know"
AS_SAVED = "the tokenizer is read from tokenizer.json as it is, as {}"
WORD_MARKS = ("Ġ", "▁")  # a bare space, as byte-level and SentencePiece vocabularies spell it


@dataclass(frozen=True)
class TextTokenizer:
    """A tokenizer, and the input that its model takes.

    Attributes:
        bos_id: the beginning token that may come before a text.
        vocab_size: the number of tokens that the model knows.
        context: the largest number of tokens that it takes, BOS included.
        bos: whether the model was trained with a BOS in front.
        adds_special: whether it puts special tokens around a text by itself ([CLS] … [SEP]).
        folder: the folder that it is from.
        differs: the reason why a text may have other tokens in transformers.
        types: whether it gives the model the number of each token's text in a pair, as the
            tokenizer of transformers does.
    """

    backend: Tokenizer
    bos_id: int | None
    vocab_size: int
    context: int
    bos: bool
    adds_special: bool = False
    folder: Path | None = None
    differs: str = ""
    types: bool = False

    def encode(
        self, text: str, pair: str | None = None, *, bos: bool, special: bool
    ) -> tuple[Token, ...]:
        """The tokens of a text without lone surrogates; with a `pair`, of both, line by line.

        `bos`: put a beginning token in front, or the tokenizer's special tokens around. `special`:
        read `<|endoftext|>` in the text as the special token; otherwise it is text like any other.
        """
        encoding = self._encoded(text, pair, around=bos and self.adds_special, special=special)
        if pair is not None:
            self._check_apart(text, pair)
        whole, segments = (text, (None,)) if pair is None else (f"{text}\n{pair}", SEGMENTS)
        types = encoding.type_ids if self.types and pair is not None else repeat(0)
        tokens, places = (
            list[Token](),
            encoding.offsets,
        )  # each of these is made anew when it is read
        marks, sequences = encoding.special_tokens_mask, encoding.sequence_ids
        for n, (id_, kind) in enumerate(zip(encoding.ids, types, strict=False)):
            if marks[n]:
                tokens.append(Token(0, id_, "", 0, 0, True, name=self._name(id_), type=kind))
                continue
            of = sequences[n] or 0
            start, end = (place + of * (len(text) + 1) for place in places[n])
            own = Token(0, id_, whole[start:end], start, end, segment=segments[of], type=kind)
            tokens.append(own)
        self._check_known(encoding.ids)
        tokens = with_parts(_marks_apart(tokens, encoding.tokens, whole), whole)
        if bos and self.bos_id is not None and not self.adds_special:
            tokens.insert(0, Token(0, self.bos_id, "", 0, 0, special=True))
        return numbered(tokens)

    def ids(self, text: str) -> list[int]:
        """The ids of a text's tokens, none of them special; raises as `encode`, and is faster."""
        ids: list[int] = self._encoded(text, around=False, special=False).ids
        self._check_known(ids)
        return ids

    def _check_known(self, ids: Ids) -> None:
        if not self.vocab_size:
            raise ModelError("this model reads no text", "use a model of text")
        unknown = max(ids, default=0)
        if unknown >= self.vocab_size:
            raise ModelError(
                f"the tokenizer makes the token {unknown}, but the model knows 0 to "
                f"{self.vocab_size - 1}",
                "use the tokenizer that belongs to the model",
            )

    def _check_apart(self, text: str, pair: str) -> None:
        """See that a mark parts two texts: more than nothing (GPT-2), or another BOS (Llama)."""
        around = self._encoded(text, pair, around=self.adds_special, special=False)
        of = around.sequence_ids
        if {0, 1} <= {*of}:  # else one of them has no token, which is an error of its own
            between = around.ids[len(of) - of[::-1].index(0) : of.index(1)]
            if not {*between} - {around.ids[0]}:
                wrong = "this model takes no pairs: its tokenizer sets no mark between two texts"
                raise UsageError(wrong, f"use one such as BERT, or leave {option('text_pair')} out")

    def _encoded(
        self, text: str, pair: str | None = None, *, around: bool, special: bool
    ) -> Encoding:
        """The library's own result."""
        self.backend.encode_special_tokens = not special
        with foreign(None):
            encoding = self.backend.encode(text, pair, add_special_tokens=around)
        if len(encoding.ids) > MOST_PER_BYTE * len((text + (pair or "")).encode()) + MOST_AROUND:
            raise ModelError(
                f"the tokenizer makes {len(encoding.ids):,} tokens of {len(text):,} characters",
                "use the tokenizer that belongs to the model",
            )
        return encoding

    def decoded(self, ids: Ids, *, special: bool = False) -> str:
        """The text that these ids spell, with or without that of special tokens."""
        with foreign(None):
            text: str = self.backend.decode(list(ids), skip_special_tokens=not special)
        return text

    def ends(self, bos: bool) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """The special tokens before and after every text."""
        around = self.encode("a", bos=bos, special=False)
        inner = next((i for i, token in enumerate(around) if not token.special), len(around))
        return around[:inner], tuple(t for t in around[inner:] if t.special)

    @property
    def fills(self) -> Token | None:
        """The mask of an encoder's tokenizer, which sets a mark behind a text; else None."""
        return self.mask if self.ends(self.adds_special)[1] else None

    def spelled(self, text: str) -> list[str]:
        """The special tokens that a text spells."""
        added = self.backend.get_added_tokens_decoder().values()
        return [each.content for each in added if each.special and each.content in text]

    @property
    def mask(self) -> Token | None:
        """The token in place of one to be filled in, or None without one."""
        masks = ((name, self.backend.token_to_id(name)) for name in MASKS)
        return next((Token(0, i, "", 0, 0, True, name=n) for n, i in masks if i is not None), None)

    @property
    def longest(self) -> int:
        """The number of characters of the longest token; takes a moment."""
        return max(map(len, self.backend.get_vocab()), default=1)

    def ordinary_ids(self) -> list[int]:
        """The ids that the model knows, without those of special tokens."""
        special = self.backend.get_added_tokens_decoder()
        size = min(self.vocab_size, self.backend.get_vocab_size())
        return [id_ for id_ in range(size) if id_ not in special]

    def written(self, ids: Ids) -> tuple[str, tuple[Token, ...]]:
        """The text that these ids spell, and its tokens, which have these ids.

        Special tokens (end, padding) are left out. Where the tokenizer would cut the text in
        another way, each token's slice is the text that it adds.
        """
        special = self.special_ids
        ids = [id_ for id_ in ids if id_ not in special]
        text = self.decoded(ids)
        tokens = self.encode(text, bos=False, special=False)
        if [token.id for token in tokens] == list(ids):
            return text, tokens
        return text, self._by_addition(ids, text)

    def _by_addition(self, ids: Ids, text: str) -> tuple[Token, ...]:
        """Each token with the slice that it adds; tokens that add a letter together share it."""
        begun = [*(self.decoded(ids[:n]) for n in range(len(ids))), text]
        whole = [n for n, part in enumerate(begun[:-1]) if text.startswith(part)]
        tokens: list[Token] = []
        for first, after in pairwise([*whole, len(ids)]):
            start, end = len(begun[first]), len(begun[after])
            group = range(first, after)
            tokens += numbered_parts([Token(i, ids[i], text[start:end], start, end) for i in group])
        return tuple(tokens)

    def continued(self, before: Sequence[int], ids: Ids) -> tuple[str, tuple[Token, ...]]:
        """The text that new ids add behind others, and its tokens, which have these ids.

        Special tokens have no slice of it. Tokens that make a letter together share it.
        """
        special = self.special_ids
        window = [id_ for id_ in before if id_ not in special][-WINDOW:]
        text, tokens, group = "", list[Token](), list[int]()
        for n, id_ in enumerate(ids, start=1):
            if id_ in special:
                name = self._name(id_)
                tokens.append(Token(0, id_, "", len(text), len(text), special=True, name=name))
                continue
            group.append(id_)
            so_far = self.decoded(window + group)
            if so_far.endswith("\ufffd") and n < len(ids):  # a part of a letter
                continue
            known, start = self.decoded(window), len(text)
            # decoders of SentencePiece drop the space before what comes first
            text += so_far.removeprefix(known) if known else so_far
            slice_ = text[start:]
            tokens += numbered_parts([Token(0, i, slice_, start, len(text)) for i in group])
            window, group = (window + group)[-WINDOW:], []
        return text, numbered(tokens)

    def text_of_ids(self, ids: Ids) -> TextOfIds:
        """The text of these ids, whose tokens are these and no others; ids are checked."""
        self._check_known(())
        if wrong := [id_ for id_ in ids if not 0 <= id_ < self.vocab_size]:
            most = self.vocab_size - 1
            raise UsageError(f"the model has no token {wrong[0]}", f"give ids from 0 to {most:,}")
        text, tokens = self.continued((), ids)
        for plain, bos in product((text, text.lstrip(" ")), (True, False)):
            own = self.encode(plain, bos=bos, special=False)
            if [token.id for token in own] == [*ids]:  # as its own text has them
                text, tokens = plain, own
        spelled = TextOfIds(text)
        spelled.tokens, spelled.tokenizer = tokens, self
        return spelled

    @property
    def special_ids(self) -> set[int]:
        """The ids of special tokens."""
        added = self.backend.get_added_tokens_decoder()
        return {id_ for id_, token in added.items() if token.special}

    def _name(self, id_: int) -> str:
        """The name of a special token: BOS, or as the tokenizer writes it."""
        if id_ == self.bos_id:
            return SPECIAL_LABEL
        return readable(self.backend.id_to_token(id_) or "") or f"#{id_}"

    def label(self, id_: int) -> str:
        """A token of the vocabulary as a person reads it; `#228` where it is a part of a letter."""
        text = self.decoded([id_], special=True)
        return f"#{id_}" if not text or "\ufffd" in text else readable(text)

    def exact(self, id_: int) -> str:
        """The text of a token with its leading space; empty if special, or a part of a letter."""
        text = self.decoded([id_])
        if "\ufffd" in text:
            return ""
        # SentencePiece decoders drop the space before the first word
        marked = (self.backend.id_to_token(id_) or "").startswith(WORD_MARKS[1])
        return f" {text}" if marked and text and text[0] != " " else text


def read_folder(
    folder: Path, name: str, kind: Kind | ShownKind | None = None, *, as_saved: bool = False
) -> tuple[ModelSizes, ModelCard, TextTokenizer]:
    """Read a model's folder without its weights; `as_saved`: as in `load_tokenizer`."""
    sizes = folder_sizes(folder, kind)
    if sizes.reads != "text" and not sizes.vocab_size:
        return sizes, read_card(folder, name, sizes.heads_per_layer), without_tokens(folder)
    other = kind not in (None, "self") and is_sighted(sizes.architecture)  # of its other side
    card = read_card(folder, name, None if other else sizes.heads_per_layer)
    return sizes, card, load_tokenizer(folder, sizes, card.bos, as_saved=as_saved)


def without_tokens(folder: Path) -> TextTokenizer:
    """In the place of a tokenizer, of a model that reads no text."""
    return TextTokenizer(Tokenizer(BPE()), None, 0, NO_LIMIT, bos=False, folder=folder)


def load_tokenizer(
    folder: Path, sizes: ModelSizes, bos: bool, *, as_saved: bool = False
) -> TextTokenizer:
    """Load the tokenizer of a model folder; `bos`: whether the model was trained with one.

    `as_saved`: take tokenizer.json as it is, where transformers may put it together anew.
    """
    as_saved = as_saved and (folder / TOKENIZER).is_file()  # else it is Python's
    if as_saved or sizes.architecture in ("gpt2", SEQ2SEQ):
        backend, differs, types = _backend(folder), "", False
    elif sizes.architecture in LLAMAS and (own := _own(folder)):
        backend, differs, types = own, "", False
    else:
        backend, differs, types = _of_transformers(folder, sizes.vocab_size)
    # Saved with many fine-tuned models; a text must be neither cut nor padded in silence.
    backend.no_truncation()
    backend.no_padding()
    adds_special = sizes.architecture != "gpt2" and backend.num_special_tokens_to_add(False) > 0
    return TextTokenizer(
        backend=backend,
        bos_id=sizes.bos_id,
        vocab_size=sizes.vocab_size,
        context=sizes.context,
        bos=bos or adds_special,
        adds_special=adds_special,
        folder=folder,
        differs=differs,
        types=types,
    )


def _own(folder: Path) -> Tokenizer | None:
    """The tokenizer of tokenizer.json with the steps of transformers' class, if they are known."""
    if not (folder / TOKENIZER).is_file():
        return None
    with _readable(folder):
        raw = json.loads(read_bytes(folder / TOKENIZER, LARGEST_TOKENIZER))
        check_tokenizer(raw)
        whole = with_its_steps(folder, raw)
        if whole is None:
            return None
        with foreign(folder):
            return Tokenizer.from_str(json.dumps(whole, ensure_ascii=False))


def _of_transformers(folder: Path, vocab_size: int) -> tuple[Any, str, bool]:
    """The tokenizer that transformers makes; the saved one where it makes none of that, and why;
    and whether it gives the model `token_type_ids`.

    Its class for the model adds special tokens of its own, which a model may not know.
    """
    saved = _backend(folder) if (folder / TOKENIZER).is_file() else None
    try:
        with foreign(folder), _readable(folder):
            theirs, types = backend_of(folder)
    except ModelError as error:
        if saved is not None:
            return saved, AS_SAVED.format("transformers makes none of this folder"), False
        raise no_tokenizer(folder, error) from None
    if not isinstance(theirs, Tokenizer) and saved is None:
        return theirs, ALIGNED, False
    if saved is not None and saved.get_vocab_size() <= vocab_size < theirs.get_vocab_size():
        return saved, AS_SAVED.format(UNKNOWN), types
    return theirs, "", types


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """Turn what is wrong with the files of a tokenizer into one error."""
    try:
        yield
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"the tokenizer in {str(folder)!r} cannot be read ({cut(error)})", "save it again"
        ) from None


def _backend(folder: Path) -> Tokenizer:
    """The tokenizer in tokenizer.json, or in GPT-2's first form: vocab.json and merges.txt."""
    vocabulary, merges = (folder / name for name in MERGES)
    with _readable(folder):
        if (folder / TOKENIZER).is_file():
            content = read_bytes(folder / TOKENIZER, LARGEST_TOKENIZER)
            check_tokenizer(json.loads(content))
            with foreign(folder):
                return Tokenizer.from_buffer(content)
        if vocabulary.is_file() and merges.is_file():
            return _first_form(folder, vocabulary, merges)
    raise ModelError(
        f"the folder {str(folder)!r} has no {TOKENIZER}",
        "save the tokenizer beside the model (tokenizer.save_pretrained)",
    )


def _first_form(folder: Path, vocabulary: Path, merges: Path) -> Tokenizer:
    """GPT-2's tokenizer from vocab.json and merges.txt, whose first line may be a remark."""
    words = json.loads(read_bytes(vocabulary, LARGEST_TOKENIZER))
    lines = read_bytes(merges, LARGEST_TOKENIZER).decode("utf-8").split("\n")
    merged = [line for line in lines if line and not line.startswith("#version")]
    check_tokenizer({"model": {"vocab": words, "merges": merged}})
    pairs = [(left, right) for left, right in (line.split(" ") for line in merged)]
    with foreign(folder):
        backend = Tokenizer(BPE(words, pairs))
        backend.pre_tokenizer = ByteLevel(add_prefix_space=False)
        backend.decoder = ByteLevelDecoder()
        backend.add_special_tokens([END])
    return backend


def _marks_apart(tokens: Sequence[Token], spelled: Sequence[str], text: str) -> list[Token]:
    """Give marks of the beginning of a word their own slice: the space before it, or nothing.

    Tokenizers give them the first letter of the word, which they do not spell.
    """
    apart: list[Token] = []
    end = 0
    for token, spelling in zip(tokens, spelled, strict=True):
        if spelling in WORD_MARKS and not token.special and token.text.strip(" "):
            start = token.start
            before = start - (start > end and text[start - 1] == " ")
            token = replace(token, text=text[before:start], start=before, end=start)
        # a word may begin with a space that its slice leaves out
        begins = spelling.startswith(WORD_MARKS) and not token.text.startswith((" ", *WORD_MARKS))
        apart.append(replace(token, spaced=True) if begins and not token.special else token)
        end = max(end, token.end)
    return apart
