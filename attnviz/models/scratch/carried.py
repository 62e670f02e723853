"""A model from scratch as a page carries it: tables of its tokenizer, and its weights.

The page runs it itself (`commands/explain/page/`). Its tokenizer's regular expression is written
anew for a browser, whose classes of letters are those of another edition of Unicode.
"""

import copy
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Any
from unicodedata import category

from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, Split

from attnviz.models.engine import numbers
from attnviz.models.loaded import LoadedModel
from attnviz.models.scratch.native import NativeModel
from attnviz.models.scratch.translator import NativeTranslator
from attnviz.models.tokenizer import TextTokenizer
from attnviz.records.capture import FloatArray


@dataclass(frozen=True, eq=False)
class Carried:
    """What a page needs of a model: `facts` as JSON has them, and every weight by its name.

    `arrays`: as `gpt.GPT` or `seq2seq.Seq2Seq` names and shapes them.
    """

    facts: Mapping[str, object]
    arrays: Mapping[str, FloatArray]

    @property
    def bytes(self) -> int:
        """The size of the weights in float32."""
        return sum(array.nbytes for array in self.arrays.values())


def carried(model: LoadedModel, *, bos: bool | None = None) -> Carried | None:
    """A model as a page carries it; None where only Python can run it.

    `bos`: whether a beginning token stands in front; None: as the model was trained.
    """
    if not isinstance(model, NativeModel | NativeTranslator):
        return None
    tables = _tables(model.tokenizer, model.tokenizer.bos if bos is None else bos)
    if tables is None:
        return None
    facts: dict[str, object] = {"sizes": asdict(model.model.config), "tokenizer": tables}
    if isinstance(model, NativeModel):
        facts["made"] = "gpt"
    else:
        facts |= {"made": "pair", "kind": model.kind, "end": model.end}
        facts["words"] = sorted(model.words)
    state = model.model.state_dict()
    return Carried(facts, {name: numbers(tensor) for name, tensor in state.items()})


def in_half(model: LoadedModel) -> LoadedModel:
    """A copy of a model that `carried` takes, with its weights rounded to float16."""
    assert isinstance(model, NativeModel | NativeTranslator)
    rounded = copy.deepcopy(model.model).half().float()
    return replace(model, model=rounded)  # type: ignore[arg-type]


OF_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""The pieces of a text in GPT-2, which a byte-level step cuts where no other cuts before it."""
UNDERSTOOD = re.compile(r"(?:\\p\{[LMN]\}|\\[nrtbsS]|\(\?(?:[:!=]|<[!=])|[^\\()]|\((?!\?)|\))*")
"""Regular expressions that mean the same in a browser, but for the classes that are written out."""


def _tables(tokenizer: TextTokenizer, bos: bool) -> Mapping[str, object] | None:
    """What spells a text in a page; None for another tokenizer than a byte-level BPE."""
    saved = json.loads(tokenizer.backend.to_str())
    bpe, added = saved["model"], saved["added_tokens"]
    steps, replaced = _steps(saved["pre_tokenizer"] or {}), _replaced(saved["normalizer"])
    after = saved["post_processor"] or {"type": "ByteLevel", "trim_offsets": False}
    plain = (
        bpe["type"] == "BPE"
        and not any(bpe[name] for name in OTHER_BPE)
        and replaced is not None
        and (after["type"], after.get("trim_offsets")) == ("ByteLevel", False)
        and (saved["decoder"] or {}).get("type") == "ByteLevel"
        and all(token["special"] for token in added)
        and bpe["vocab"].keys() >= set(ByteLevel.alphabet())
    )
    if not plain or steps is None:
        return None
    by_id = {id_: token for token, id_ in bpe["vocab"].items()}
    by_id |= {token["id"]: token["content"] for token in added}
    return {
        **steps,
        "replaced": replaced,
        "unseen": _unseen(),
        "whole": bool(bpe.get("ignore_merges")),
        "vocabulary": [by_id.get(id_) for id_ in range(max(by_id) + 1)],
        "merges": [pair if isinstance(pair, str) else " ".join(pair) for pair in bpe["merges"]],
        "special": [token["id"] for token in added],
        "begin": tokenizer.bos_id if bos else None,
        "context": tokenizer.context,
    }


OTHER_BPE = (
    "dropout",
    "unk_token",
    "continuing_subword_prefix",
    "end_of_word_suffix",
    "byte_fallback",
)


def _replaced(saved: Mapping[str, Any] | None) -> Mapping[str, str] | None:
    """The characters that are read as others, one for one; None if a normalizer does more."""
    found = {}
    for each in (saved or {}).get("normalizers", [saved] if saved else []):
        match each:
            case {"type": "Replace", "pattern": {"String": str(before)}, "content": str(after)} if (
                len(before) == len(after) == 1 and max(before, after) < "\U00010000"
            ):
                found[before] = after
            case _:
                return None
    return found


def _steps(saved: Mapping[str, Any]) -> Mapping[str, object] | None:
    """The regular expression of the pieces, and whether each gets a space in front."""
    match saved:
        case {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}:
            return {"pieces": _of_browser(OF_GPT2), "prefix": False}
        case {
            "type": "Sequence",
            "pretokenizers": [
                {
                    "type": "Split",
                    "pattern": {"Regex": pieces},
                    "behavior": "Removed",
                    "invert": True,
                },
                {"type": "ByteLevel", "add_prefix_space": prefix, "use_regex": False},
            ],
        } if UNDERSTOOD.fullmatch(pieces):
            return {"pieces": _of_browser(pieces), "prefix": prefix}
    return None


def _of_browser(pieces: str) -> str:
    """The expression with every class written out, as a browser takes it (flag u)."""
    word = f"[{_members('w')}]"
    bounded = f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"
    written, inside = "", False
    for part in re.findall(r"\\p\{[LMN]\}|\\.|.", pieces, re.DOTALL):
        inside = (inside or part == "[") and part != "]"
        if part == r"\b":
            part = bounded
        elif part == r"\S":
            part = f"[^{_members('s')}]"
        elif part[1:] == "s" or part[1:2] == "p":
            members = _members(part[1:])
            part = members if inside else f"[{members}]"
        written += part
    return written


ASSIGNED = (range(0xD800), range(0xE000, 0x40000), range(0xE0000, 0xE1000))
"""Where Unicode has letters, marks, numbers and spaces; all other planes are empty or private."""


@lru_cache
def _members(name: str) -> str:
    r"""The characters of a class of the library's, such as `s` or `p{L}`, as ranges."""
    every = "".join(map(chr, chain(*ASSIGNED)))
    runs = Split(Regex(rf"\{name}+"), "removed", invert=True).pre_tokenize_str(every)
    return "".join(_range(ord(run[0]), ord(run[-1])) for run, _ in runs)


@lru_cache
def _unseen() -> str:
    """The characters that `errors.readable` escapes, as ranges."""
    kinds = "".join(category(chr(code))[0] for code in range(sys.maxunicode + 1))
    found = (each.span() for each in re.finditer("C+", kinds))
    return "\u2028\u2029" + "".join(_range(start, end - 1) for start, end in found)


def _range(first: int, last: int) -> str:
    return f"\\u{{{first:x}}}-\\u{{{last:x}}}"
