"""Tiny vocabularies of tokenizers that transformers has in Python alone, as they are saved."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import transformers

Files = Callable[[Path], Mapping[str, Any]]
"""Writes vocabularies into a folder, and returns the arguments of the tokenizer."""
SUBWORDS = "the c@@ a@@ t@@ t s@@ at o@@ n m@@ y@@ b d@@ d . !".split()
MERGES = "t h\nth e</w>\na t</w>\n"
WORDS = """[PAD] [UNK] [CLS] [SEP] [MASK] [EMPTY] the cat sat ##s ##at on mat c m s . cafe ? a
    blue creature""".split()
PROTEINS = "<cls> <pad> <eos> <unk> L A G V S E R T I D P K Q N F Y M H W C X B U Z O . - <mask>"
JAPANESE = "<|endoftext|> <|startoftext|> <SP> <BR> <KIGOU> <U2000U2BFF> 猫 が い る 猫が a b c e"


def written(folder: Path, **files: str) -> dict[str, str]:
    """Files of a tokenizer, by the names of its arguments."""
    paths = {name: folder / f"own-{name}" for name in files}
    for name, path in paths.items():
        path.write_text(files[name], encoding="utf-8")
    return {name: str(path) for name, path in paths.items()}


def numbers(words: list[str]) -> str:
    return json.dumps({word: number for number, word in enumerate(words)})


def json_and_merges(*special: str) -> Files:
    def write(folder: Path) -> Mapping[str, Any]:
        merges = f"#version: 0.2\n{MERGES}\n"
        return written(folder, vocab_file=numbers([*special, *SUBWORDS]), merges_file=merges)

    return write


def codes(folder: Path) -> Mapping[str, Any]:
    counted = "".join(f"{word} 1\n" for word in SUBWORDS)
    merges = "".join(f"{line} 1\n" for line in MERGES.splitlines())
    return written(folder, vocab_file=counted, merges_file=merges)


def words(folder: Path) -> Mapping[str, Any]:
    return written(folder, vocab_file="\n".join(WORDS))


def shapes(folder: Path) -> Mapping[str, Any]:
    ids = numbers(WORDS)
    files = {"word_shape_file": ids, "word_pronunciation_file": ids}
    return {**words(folder), **written(folder, **files)}


@dataclass(frozen=True)
class PythonOnly:
    """One of them: its class, its files, and texts with the slice of each token.

    The slices are written by hand, joined by `|`; special tokens are left out.
    """

    kind: str
    files: Files
    texts: Mapping[str, str]

    def make(self, folder: Path) -> Any:
        """The tokenizer."""
        given = self.files(folder)
        more = {"word_tokenizer_type": "basic"} if self.kind == "BertJapaneseTokenizer" else {}
        return getattr(transformers, self.kind)(**given, **more)

    def save(self, folder: Path) -> Any:
        """The same, saved as a model's folder has it."""
        beside = folder / "own"
        beside.mkdir(parents=True)
        made = self.make(beside)
        made.save_pretrained(folder)
        for path in beside.iterdir():
            path.unlink()
        beside.rmdir()
        return made


SPLIT = {"the cat sat on the mat": "the|c|at|s|at|o|n|the|m|at", "the  qqq cat": "the|q|q|q|c|at"}
LOWERED = {
    "The cats sat on the Mat.": "The|cat|s|sat|on|the|Mat|.",
    "Café cat?": "Café|cat|?",
    "the banana s banana cat": "the|banana|s|banana|cat",
    "banana a ana cat a": "banana|a|ana|cat|a",
    "banana. 楚 a": "banana|.|楚|a",
}
BYTES = {"a 楚  e\u0301\n👍": "a| |楚|楚|楚| | |e|\u0301|\u0301|\n|👍|👍|👍|👍", " é ": " |é|é| "}
PYTHON_ONLY: Mapping[str, PythonOnly] = {
    "esm": PythonOnly(
        "EsmTokenizer",
        lambda folder: written(folder, vocab_file="\n".join(PROTEINS.split())),
        {"MKTAY": "M|K|T|A|Y", "MK T": "M|K|T", "MJK": "M|J|K"},
    ),
    "phobert": PythonOnly("PhobertTokenizer", codes, SPLIT),
    "bertweet": PythonOnly("BertweetTokenizer", codes, SPLIT),
    "ctrl": PythonOnly("CTRLTokenizer", json_and_merges("<unk>"), SPLIT),
    "blenderbot-small": PythonOnly(
        "BlenderbotSmallTokenizer",
        json_and_merges("__null__", "__start__", "__end__", "__unk__"),
        {"The cat!": "The|c|at|!", **SPLIT},
    ),
    "byt5": PythonOnly("ByT5Tokenizer", lambda _: {}, BYTES),
    "perceiver": PythonOnly("PerceiverTokenizer", lambda _: {}, BYTES),
    "canine": PythonOnly("CanineTokenizer", lambda _: {}, {"a 楚\n👍": "a| |楚|\n|👍"}),
    "tapas": PythonOnly("TapasTokenizer", words, LOWERED),
    "prophetnet": PythonOnly("ProphetNetTokenizer", words, LOWERED),
    "bert-japanese": PythonOnly("BertJapaneseTokenizer", words, {"the cat sat": "the|cat|sat"}),
    "roc_bert": PythonOnly("RoCBertTokenizer", shapes, LOWERED),
    "gpt_neox_japanese": PythonOnly(
        "GPTNeoXJapaneseTokenizer",
        lambda folder: written(
            folder,
            vocab_file="\n".join(JAPANESE.split()),
            emoji_file=json.dumps({"emoji": {}, "emoji_inv": {}}),
        ),
        {"猫がいる": "猫|が|い|る"},
    ),
}
"""By the name that transformers' own map has them under."""
