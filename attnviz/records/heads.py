"""The names of heads, and the ways to choose heads by name."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from attnviz.errors import UsageError, option
from attnviz.records.places import Media

K = TypeVar("K")
V = TypeVar("V")


class Head(NamedTuple):
    """A head of a model; layer and head are both counted from 0."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"L{self.layer}H{self.head}"


ALIGNMENT = "alignment"
"""The behaviour of heads that a model's settings name for the alignment of words and time."""
Reads: TypeAlias = Literal["text", Media]
"""What a model reads: a text, perhaps with something beside it; or one medium alone."""
Pairing: TypeAlias = Literal["same", "best"]
"""A head is compared with the head of the same name, or with the most similar one."""


def every_head(heads_per_layer: Sequence[int]) -> tuple[Head, ...]:
    """All heads of a model, from the number of heads in each layer (0: no attention there)."""
    return tuple(Head(layer, head) for layer, n in enumerate(heads_per_layer) for head in range(n))


def head_named(name: str) -> Head | None:
    """The head with a full name such as `L1H2` or `1.2`; None if it is not a full name."""
    match = re.fullmatch(r"(?:[lL](\d{1,9})[hH](\d{1,9})|(\d{1,9})\.(\d{1,9}))", name.strip())
    return Head(*(int(group) for group in match.groups() if group is not None)) if match else None


def choose_heads(
    heads_per_layer: Sequence[int], layers: str | None, heads: str | None
) -> tuple[Head, ...]:
    """The heads that a user's `layers` and `heads` name, in order, each once.

    `layers`: a list such as `1`, `-1`, `0-3`, `0,2` or `all`. `heads`: the same, or full names such
    as `L1H2` and `1.2`, separated by commas, or None for all of the chosen layers.

    Raises:
        UsageError: a name cannot be read, or is out of range.
    """
    chosen_layers = _numbers("all" if layers is None else layers, len(heads_per_layer), "layer")
    if layers is not None and not any(heads_per_layer[layer] for layer in chosen_layers):
        raise _no_attention(chosen_layers[0], heads_per_layer)
    chosen: list[Head] = []
    for item in ("all" if heads is None else heads).split(","):
        named = head_named(item)
        if named is not None:
            _check_full_name(named, heads_per_layer, chosen_layers, layers)
            chosen.append(named)
        else:
            most = max((heads_per_layer[layer] for layer in chosen_layers), default=0)
            for n in chosen_layers:
                numbers = _numbers(item, most, "head", own=heads_per_layer[n])
                chosen += [Head(n, i) for i in numbers if 0 <= i < heads_per_layer[n]]
    return tuple(sorted(set(chosen)))


def choose_layers(n_layers: int, layers: str, parameter: str) -> tuple[int, ...]:
    """The layers that a list such as `1`, `-1`, `0-3` or `all` names, in order, each once."""
    return tuple(_numbers(layers, n_layers, "layer", parameter))


def by_layer(heads: Iterable[Head]) -> dict[int, tuple[int, ...]]:
    """The numbers of some heads, by layer, in order."""
    return {layer: tuple(numbers) for layer, numbers in grouped(sorted(heads)).items()}


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The second values by the first ones, each in the order in which they come."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def _check_full_name(
    head: Head, heads_per_layer: Sequence[int], chosen: Iterable[int], layers: str | None
) -> None:
    if head.layer >= len(heads_per_layer):
        raise UsageError(
            f"there is no layer {head.layer} (in {option('heads', head)})",
            f"this model's layers are 0 to {len(heads_per_layer) - 1}",
        )
    if not heads_per_layer[head.layer]:
        raise _no_attention(head.layer, heads_per_layer)
    if head.head >= heads_per_layer[head.layer]:
        raise UsageError(
            f"there is no head {head}",
            f"layer {head.layer} of this model has heads 0 to {heads_per_layer[head.layer] - 1}",
        )
    if head.layer not in chosen:
        raise UsageError(
            f"{option('heads', head)} is not in {option('layers', layers)}",
            f"leave {option('layers')} out, or choose {option('layers', head.layer)}",
        )


def _no_attention(layer: int, heads_per_layer: Sequence[int]) -> UsageError:
    attending = [str(n) for n, heads in enumerate(heads_per_layer) if heads]
    others = f"layer{'s' * (len(attending) > 1)} {', '.join(attending)}"
    wrong = f"layer {layer} of this model has no attention of the kind that attnviz shows"
    return UsageError(wrong, f"choose among {others}")


def _numbers(
    spec: str, count: int, what: Literal["layer", "head"], parameter: str = "", own: int = 0
) -> list[int]:
    """The numbers below `count` that a list names; negative ones count back from `own`."""
    numbers: list[int] = []
    for item in spec.split(","):
        limits = re.fullmatch(r"(-?\d{1,9})(?:-(-?\d{1,9}))?", item.strip())
        if item.strip().lower() == "all":
            numbers += range(count)
        elif ":" in item:
            raise UsageError(
                f"{option('heads', repr(item))} is a set, and a capture has no probe to measure it",
                "name heads, as in L1H2",
            )
        elif limits is None:
            full_names = ", a name (L1H2 or 1.2)" if what == "head" else ""
            raise UsageError(
                f"{option(parameter or f'{what}s', repr(spec))} cannot be read",
                f"give a number, a range (0-3), a list (0,2){full_names} or all",
            )
        else:
            ends = [int(limits[1]), int(limits[2] or limits[1])]
            if min(ends) < -count or max(ends) >= count:
                raise UsageError(
                    f"there is no {what} {max(ends, key=abs)}",
                    f"this model's {what}s are 0 to {count - 1}; -1 is the last",
                )
            first, last = sorted(end + (own or count) * (end < 0) for end in ends)
            numbers += range(first, last + 1)
    return sorted(set(numbers))


def listed(heads: Iterable[object], noun: str = "head") -> str:
    """Heads, or other parts, as `L0H1, L2H3`, or `L0H0 to L3H3 (16 heads)` if there are many."""
    names = [str(head) for head in heads]
    many = len(names) > 8
    return f"{names[0]} to {names[-1]} ({len(names)} {noun}s)" if many else ", ".join(names)


# A model's card: its named heads, and the figures measured on held-out texts.

LONGEST_NAME = 1 << 12
"""The most characters of a name, a label or a title."""


@dataclass(frozen=True)
class NamedHead:
    """A head known for a behaviour ("adjectives"); `title`: "nouns attend to their adjectives"."""

    behaviour: str
    head: Head
    title: str


@dataclass(frozen=True)
class Figure:
    """One figure: its `value` on `n` held-out cases, and the `bar` that it had to reach.

    `texts`: the source of the cases, empty for texts like those of the training.
    """

    behaviour: str
    measure: str
    value: float
    bar: float | None
    n: int
    texts: str = ""


NONE = "none"
"""The class of words that the text does not describe."""
NEAR_CHANCE = 0.05
"""A read-out reads nothing if its accuracy exceeds chance by no more than this."""


@dataclass(frozen=True)
class ReadHead:
    """The accuracy of a read-out around one head, 0 to 1: trained on the stream `before` it,
    on the head's addition (`added`), and on the stream `after`."""

    head: Head
    before: float
    added: float
    after: float


@dataclass(frozen=True)
class ReadOut:
    """A read-out, such as "colour": its classes, and its accuracy on `n` held-out words.

    It is linear, and trained on the model's own vectors at one place (Alain and Bengio 2016,
    "Understanding intermediate layers using linear classifier probes").
    `behaviour`: the words that it was trained on are the queries of this behaviour. `chance`: the
    accuracy of a word's commonest class; `token`: of a read-out from only the token, before any
    attention. `heads`: those whose addition carries it.
    """

    name: str
    behaviour: str
    classes: tuple[str, ...]
    n: int
    chance: float
    token: float
    heads: tuple[ReadHead, ...]

    def nothing(self, accuracy: float) -> bool:
        """Whether a read-out of this accuracy reads nothing."""
        return accuracy <= self.chance + NEAR_CHANCE

    def around(self, head: Head) -> ReadHead | None:
        """The accuracies around this head, or None if the head does not carry the read-out."""
        return next((each for each in self.heads if each.head == head), None)


@dataclass(frozen=True)
class ModelCard:
    """The contents of a model folder's card.

    `loss_limit`: the loss, in nats per character, above which a text is unlike those of the
    model's training; None if the card has none. `retrieval`: the heads that attend to the token
    that is copied. `stop`: texts that end an answer by default. `chance_cosine`: the cosine that
    the nearest of all tokens reaches for a random direction. `readouts`: linear maps from the
    model's vectors to classes.
    """

    name: str
    description: str
    bos: bool
    heads: tuple[NamedHead, ...] = ()
    figures: tuple[Figure, ...] = ()
    loss_limit: float | None = None
    retrieval: tuple[Head, ...] = ()
    stop: tuple[str, ...] = ()
    chance_cosine: float | None = None
    readouts: tuple[ReadOut, ...] = ()


@dataclass(frozen=True)
class ModelFacts:
    """A model's sizes; `where` names its source in words.

    `context`: the most tokens that it takes; None if it reads no text, or they are not known.
    """

    name: str
    layers: int
    heads_per_layer: int
    parameters: int
    context: int | None
    where: str
    reads: Reads = "text"


# A head's behaviour on one text: where it may show, and the claims of a title.

Behaviour: TypeAlias = Literal["adjectives", "pronouns", "mystery", "senses", "induction"]


@dataclass(frozen=True)
class Occasion:
    """A query word and the words that may be its keys, by the positions of their tokens.

    `meant`: the number that is meant: one (as for "he"), all (as for adjectives), or some.
    """

    word: tuple[int, ...]
    keys: tuple[tuple[int, ...], ...]
    meant: Literal["one", "some", "all"] = "some"

    @property
    def query(self) -> int:
        """The position of the row: the word's last token, which attends to all of the word."""
        return self.word[-1]

    @property
    def positions(self) -> tuple[int, ...]:
        return tuple(sorted({position for key in self.keys for position in key}))


Evidence: TypeAlias = Mapping[Behaviour, tuple[Occasion, ...]]
"""The occasions of each behaviour; none if it cannot occur in the text."""


Habit: TypeAlias = Literal["previous", "followers", "self", "one key"]
"""The target of a query's strongest link: the token before, the token that followed an earlier
occurrence of the query, the query itself, or one key that many queries share."""


class FoundLink(NamedTuple):
    """A link by its positions, with its weight."""

    query: int
    key: int
    weight: float


@dataclass(frozen=True)
class Bringing:
    """The links of a text's last position that bring a next token, to one key and strongest first.

    `likeliest`: the two likeliest next tokens as spelled, each with its probability; `token`: the
    one that is brought, one of several that are nearly as likely. `start`: the key's place in the
    text. `effects`: the heads, each with what its link to the key adds to the token's logit, less
    the mean over the vocabulary. `times`: the root of the sum of their squares, as a multiple of
    the 95th percentile over 100 random tokens: below 1 no link stands out.
    """

    likeliest: tuple[tuple[str, float], ...]
    token: str
    start: int
    effects: tuple[tuple[Head, float], ...]
    times: float

    @property
    def head(self) -> Head:
        """The head whose link brings most."""
        return self.effects[0][0]


@dataclass(frozen=True)
class Tendency:
    """The habit that the strongest links of `rows` of `of` queries share.

    `key`: the position of the key that they share, if any; then `of` queries may attend to it.
    """

    habit: Habit
    rows: int
    of: int
    key: int | None = None


@dataclass(frozen=True)
class Finding:
    """The behaviour of a head on a text.

    `links`: the strongest ones of a few rows, strongest first. With a `behaviour` they all show it,
    and are links to words: `key` is the strongest token of one, `weight` the sum over its tokens.
    Else `tendency` is what most rows have in common, if anything.
    """

    links: tuple[FoundLink, ...] = ()
    behaviour: Behaviour | None = None
    tendency: Tendency | None = None
