"""The input of a run: tokens, the segments of a prompt, the settings of answers, and options."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, TypeAlias, TypeVar

from attnviz.errors import IdleOption, InputError, UsageError, in_quotes, option, readable
from attnviz.records.places import PADDING, Patch, RawImage, Span

SPECIAL_LABEL = "BOS"
MASKS = ("[MASK]", "<mask>")
"""The names of masks; a text may have either, whichever is the model's own."""


SEGMENTS = "A", "B"
"""The texts of a pair; `@A` names all tokens of the first."""


@dataclass(frozen=True)
class Token:
    """One token of a text.

    Tokens that share one character (a letter cut into bytes) all carry that character's slice. A
    token that only marks the beginning of a word has the space before the word, or an empty slice
    if there is none. A special token (BOS, [SEP]) has an empty slice.

    Attributes:
        text: the exact slice of the source, at the characters `start` to `end`.
        part: (1, 3) for the first of three tokens that share a character.
        name: the label of a special token.
        spaced: the token begins with a space that its slice leaves out, as in some tokenizers.
        image: the number of the image that it is a part of, from 0.
        patch: the cell of that image; None for marks of rows and ends.
        time: the seconds of a sound that it stands for.
        segment: the text of a pair whose slice it is.
        type: the number by which a model separates both texts, special tokens included.
    """

    index: int
    id: int
    text: str
    start: int
    end: int
    special: bool = False
    part: tuple[int, int] | None = None
    name: str = SPECIAL_LABEL
    spaced: bool = False
    image: int | None = None
    patch: Patch | None = None
    time: Span | None = None
    segment: str | None = None
    type: int = field(default=0, compare=False)

    @property
    def inset(self) -> bool:
        """Whether it is a part of what is set into a text: one of the tokens of an image."""
        return self.image is not None

    @property
    def silent(self) -> bool:
        """Whether it is a frame after the end of a sound."""
        return self.time is not None and self.name == PADDING

    @property
    def exact(self) -> str:
        """The text of the token itself, with its leading space."""
        return f" {self.text}" if self.spaced else self.text

    @property
    def label(self) -> str:
        """The token as a person reads it: without space mark, escape codes or invisible marks."""
        if self.special:
            return self.name
        label = readable(self.text) or "␣"
        return f"{label} {self.part[0]}/{self.part[1]}" if self.part else label

    @property
    def quoted(self) -> str:
        """The exact text in quotes, with its leading space; the label of a special token."""
        if self.special:
            return self.name
        text = in_quotes(self.exact)
        return f"{text} {self.part[0]}/{self.part[1]}" if self.part else text


class TextOfIds(str):
    """A text spelled by ids, read as its `tokens`; the `tokenizer` reads texts added to it."""

    tokens: tuple[Token, ...]
    tokenizer: Any

    def __add__(self, text: str) -> Any:
        own = [token.id for token in self.tokens]
        return self.tokenizer.text_of_ids([*own, *self.tokenizer.ids(text)])


def numbered(tokens: Iterable[Token], first: int = 0) -> tuple[Token, ...]:
    """The same tokens, numbered from `first` on."""
    return tuple(replace(token, index=i) for i, token in enumerate(tokens, start=first))


def with_parts(tokens: Sequence[Token], text: str) -> list[Token]:
    """Number the tokens that share a character, such as byte-level pieces of one letter."""
    marked: list[Token] = []
    group: list[Token] = []
    for token in tokens:
        start = token.start
        while start < token.end and text[start] == " ":  # it belongs only to the first one
            start += 1
        if group and not start < min(group[-1].end, token.end):
            marked += numbered_parts(group)
            group = []
        group.append(token)
    return marked + numbered_parts(group)


def numbered_parts(group: list[Token]) -> list[Token]:
    """The tokens of one character, each with its number."""
    if len(group) < 2:
        return group
    return [replace(token, part=(i, len(group))) for i, token in enumerate(group, start=1)]


# Segments: named parts of a prompt, of which every token belongs to exactly one.


Ids: TypeAlias = Sequence[int]
"""The ids of tokens in the vocabulary, in the order of a text."""
Slice: TypeAlias = tuple[int, int]
"""A slice of the prompt: its first character, and the one after its last."""
OTHER, TEMPLATE = "other", "template"
"""The segment of text that is in no other segment: of a prompt, and of a chat."""
RESTS = (OTHER, TEMPLATE)
TAKEN = frozenset((*RESTS, "sink", "special", "answer"))
"""Names of columns that are not segments of a user's."""


@dataclass(frozen=True)
class Segment:
    """A named part of a prompt: one slice of it or several."""

    name: str
    slices: tuple[Slice, ...]


def partition(
    text: str, segments: Iterable[Segment], rest: str = OTHER, *, blanks: bool = False
) -> tuple[Segment, ...]:
    """Put segments in the order of the prompt, with one (`rest`) for the remaining text.

    The rest is last if it is only blanks. `blanks`: blanks between two segments are in the rest,
    too; else they belong to the segment before.

    Raises:
        InputError: two of them overlap.
    """
    parts = tuple(segments)
    taken = sorted((slice_, s.name) for s in parts for slice_ in s.slices)
    gaps, end, before = list[Slice](), 0, ""
    for (start, after), name in taken:
        if start < end:
            raise InputError(
                f"the segments {before!r} and {name!r} overlap",
                f"make each {option('segments')} end before the next begins",
            )
        gaps.append((end, start))
        end, before = after, name
    gaps.append((end, len(text)))
    gaps = [(a, b) for a, b in gaps if text[a:b].strip() or (blanks and a < b)]
    left = [Segment(rest, tuple(gaps))] if gaps else []
    blank = not any(text[a:b].strip() for a, b in gaps)  # it comes last
    ordered = sorted([*parts, *([] if blank else left)], key=lambda segment: segment.slices[0])
    return (*ordered, *(left if blank else []))


def segment_of(tokens: Sequence[Token], segments: Sequence[Segment], text: str) -> list[int | None]:
    """The index of the segment of each token's first visible letter; None for special tokens.

    Tokens of an inset are in the segment that begins where it stands.
    """
    starts = sorted((start, i) for i, s in enumerate(segments) for start, _ in s.slices)

    def of(token: Token) -> int | None:
        if token.special and not token.inset:
            return None
        slice_ = text[token.start : token.end]
        blanks = len(slice_) - len(slice_.lstrip()) if slice_.strip() else 0
        before = bisect_right(starts, (token.start + blanks, len(segments)))
        return starts[max(before, 1) - 1][1]

    return [of(token) for token in tokens]


# A chat, and its parts that are to be found in the prompt.


@dataclass(frozen=True)
class ChatPart:
    """A part of a chat: its name, and the keys that lead to each of its texts.

    `within`: for each of the texts the slice that is meant, or None for all of it. `around`: the
    part is the object that contains these texts (a tool, a call).
    """

    name: str
    paths: tuple[tuple[str | int, ...], ...]
    within: tuple[Slice | None, ...] = ()
    around: bool = False


@dataclass(frozen=True)
class Chat:
    """The input of a template: `messages`, and perhaps `documents` and `tools`; and its parts.

    `template`: the name of the template, of several; None leaves the choice to transformers.
    `variables`: other input of the template (`enable_thinking`). `id`: the user's name of the
    chat. `target`: an answer that is given. `unread`: other keys of its object. `images`: those in
    its messages, in order, each None if its place is marked and it is given separately. `as_given`:
    the chat whose calls of tools have arguments as JSON, not as objects (OpenAI).
    """

    content: Mapping[str, Any]
    parts: tuple[ChatPart, ...]
    template: str | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    id: str | int | None = None
    target: str | None = None
    unread: tuple[str, ...] = ()
    images: tuple[RawImage | None, ...] = ()
    as_given: "Chat | None" = None


# How a model writes an answer.


@dataclass(frozen=True)
class Sampling:
    """The choice of each new token, and the most tokens of an answer.

    `temperature` divides the logits; 0 takes the likeliest token. `top_p`: the likeliest tokens
    whose probabilities reach this sum together are drawn from. `seed`: of the random numbers.

    Raises:
        UsageError: a number out of range, or one that changes nothing.
    """

    most: int = 64
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is taken: by request, or because no other is ever drawn.

        Logits divided by less than 1e-30 could exceed float32; the draw is certain long before.
        """
        return self.temperature < 1e-30

    def __post_init__(self) -> None:
        if not 0 < self.top_p <= 1:
            raise UsageError(
                f"{option('top_p', self.top_p)} is not a probability",
                "give more than 0, and at most 1",
            )
        idle = "top_p" if self.top_p < 1 else "seed" if self.seed else ""
        if idle and not self.temperature:
            raise IdleOption(
                f"{option(idle)} does nothing without {option('temperature')}",
                f"add {option('temperature', 1)}, or leave it out",
            )


GoOn: TypeAlias = Callable[[int], bool]
"""A function of each new token, called after its rows; whether to write another one."""


# The call that led to a run: the options that were given, and the seed.

ELSEWHERE = frozenset(
    "given text texts prompt model other tokenizer folders"
    " output format quiet debug color no_color width".split()
)
"""Parameters that a result itself shows, or that do not change its numbers."""
OTHERS = {"mean_from", "resample_from"}
"""Parameters that take many texts, of which the number is recorded."""


@dataclass(frozen=True)
class CallOptions:
    """The options that a user gave, by name and as given, and the seed that was used."""

    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None


V = TypeVar("V")
_NOW: ContextVar[CallOptions | None] = ContextVar("asked", default=None)


def current_call() -> CallOptions:
    """The options and the seed of the command or function under way."""
    return _NOW.get() or CallOptions()


@contextmanager
def set_within(variable: ContextVar[V], value: V) -> Iterator[None]:
    """Give a variable of this context another value within a `with` block."""
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


def recording_call(given: Mapping[str, Any], seed: object = None) -> AbstractContextManager[None]:
    """Let `current_call` return this within a `with` block."""
    return set_within(_NOW, _call_options(given, seed))


def begin(given: Mapping[str, Any], seed: object = None) -> None:
    """Let `current_call` return this until the program ends."""
    _NOW.set(_call_options(given, seed))


def add_to_call(name: str, found: Mapping[str, object]) -> None:
    """Add to the options of the call under way what it found for them."""
    if now := _NOW.get():
        found = {**now.options.get(name, {}), **found}
        _NOW.set(replace(now, options={**now.options, name: found}))


def _call_options(given: Mapping[str, Any], seed: object) -> CallOptions:
    options = {name: _plain(value) for name, value in given.items() if name not in ELSEWHERE}
    for name in OTHERS & given.keys():  # whole texts, which would be repeated for each result
        if isinstance(given[name], list | tuple):
            options[name] = len(given[name])
    if isinstance(given.get("docs"), Mapping):  # whole documents, which a prompt holds already
        options["docs"] = {str(name): len(str(text)) for name, text in given["docs"].items()}
    return CallOptions(options, seed if isinstance(seed, int) else None)


def _plain(value: Any) -> Any:
    """A value as JSON; an object that JSON lacks, by the name of its class."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, PathLike):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return type(value).__name__
