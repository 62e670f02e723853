"""Why a head attends where it does, and what it does with what it finds.

text ─► tokens ─► one run, held fixed ─► contrast ─► sums over the parts of the model ─► record
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnviz.errors import InputError, ModelError, UsageError, option
from attnviz.kit.choose import one_row
from attnviz.kit.prepare import Prepared, TextOptions, frozen, prepare
from attnviz.records.heads import Head
from attnviz.records.parts import Group, ScoreRow, Side, Why, Write
from attnviz.records.positions import one_position

if TYPE_CHECKING:
    from attnviz.models.frozen.contrast import Contrast
    from attnviz.models.loaded import LoadedModel

MOST = 1_000
"""The most parts, or heads one behind the other, that are told."""
SIDES: tuple[Side, ...] = ("query", "key")


@dataclass(frozen=True)
class Question:
    """What is asked: a head, its query, its key and another key; each as on the command line.

    Without `head`, it is the one that `show` would pick; without `query`, the first one that is
    told of it, or the last word; without `key`, the strongest one; without `versus`, the mean of
    the row's scores by its own weights. `group`: how parts are summed up. `top`: how many of them
    are told apart. `depth`: how many heads a tree follows back, one behind the other; None: no
    tree. `check`: also take the strongest part of each side away, and compute anew.

    Raises:
        UsageError: a number that is none, or too large.
    """

    head: str | None = None
    query: str | None = None
    key: str | None = None
    versus: str | None = None
    group: Group = "head"
    top: int = 8
    depth: int | None = None
    check: bool = False

    def __post_init__(self) -> None:
        for name, number in (("top", self.top), ("depth", self.depth)):
            whole = number is None or (type(number) is int and 1 <= number <= MOST)
            if not whole:
                raise UsageError(f"{option(name, number)} is out of range", f"give 1 to {MOST:,}")


def ask_why(model: "LoadedModel", text: str, asked: Question, options: TextOptions) -> Why:
    """Run a text, and take one contrast of one head's scores apart."""
    prepared = prepare(model, text, options)
    choice, query, _ = one_row(prepared, asked.head, asked.query)
    (head,) = choice.heads
    sums = frozen(prepared)
    row, tokens = sums.row(head, query), prepared.empty.key_tokens
    key = int(row.weights.argmax()) if asked.key is None else one_position(tokens, asked.key, "key")
    versus = None if asked.versus is None else one_position(tokens, asked.versus, "versus")
    _check_keys(prepared, row, query, key, versus)
    from attnviz.models.frozen.contrast import Contrast

    contrast = Contrast(sums, head, query, key, versus)
    return _answer(prepared, contrast, asked, (head, query, key, versus))


def what_it_writes(model: "LoadedModel", text: str, asked: Question, options: TextOptions) -> Write:
    """Run a text, and tell what one head writes at one query; raises what `ask_why` raises."""
    from attnviz.models.frozen.contrast import Writes

    prepared = prepare(model, text, options)
    choice, query, _ = one_row(prepared, asked.head, asked.query)
    (head,) = choice.heads
    sums = frozen(prepared)
    writes = Writes(sums, head, query)
    label = model.tokenizer.label
    return Write(
        capture=prepared.empty,
        head=head,
        query=query,
        weights=sums.row(head, query).weights,
        lengths=writes.lengths,
        moved=tuple((label(moved.id), moved) for moved in writes.moved(MOVED)),
        readers=tuple(writes.readers()),
    )


MOVED = 5
"""So many tokens that a head raises, and that it lowers, are told."""


def _answer(
    prepared: Prepared, contrast: "Contrast", asked: Question, at: tuple[Head, int, int, int | None]
) -> Why:
    head, query, key, versus = at
    walks = {"query": contrast.query_walk, "key": contrast.key_walk}
    error = max(walk.shares.error for walk in walks.values())
    if error > WRONG:
        raise ModelError(
            f"the parts of {prepared.model.identity.architecture} do not add up to its scores",
            "its patterns can be shown; for this use one such as GPT-2 or Llama",
        )
    query_parts, key_parts, table = contrast.table(asked.group, asked.top)
    trees, removals = [], []
    for side in SIDES:
        shares = walks[side].shares
        if asked.depth is not None:
            trees.append((side, contrast.tree(side, asked.depth, BRANCHES)))
        if asked.check:
            by_head = shares.by("head")
            parts = [by_head.parts[i] for i in by_head.strongest(2)]
            removals.append(contrast.without(side, parts[parts[0].kind == "biases"]))
    return Why(
        capture=prepared.empty,
        head=head,
        query=query,
        key=key,
        versus=versus,
        group=asked.group,
        row=contrast.row,
        contrast=contrast.total,
        added=contrast.added,
        query_shares=contrast.query_walk.shares.by(asked.group),
        key_shares=contrast.key_walk.shares.by(asked.group),
        query_parts=query_parts,
        key_parts=key_parts,
        table=table,
        error=error,
        trees=tuple(trees),
        removals=tuple(removals),
    )


WRONG = 1e-3
"""The error of a sum, as a share of its terms, that rounding does not explain."""
BRANCHES = 3
"""Of each part of the tree so many that it is made of, the strongest, are told."""


def _check_keys(
    prepared: Prepared, row: ScoreRow, query: int, key: int, versus: int | None
) -> None:
    """See that both keys have weight, of which the logarithm is taken."""
    tokens = prepared.empty.key_tokens
    if int(row.seen.sum()) == 1 and row.sink is None:
        raise InputError(
            f"“{tokens[query].label}” (token {query}) sees one key alone, so there is nothing to "
            "contrast",
            "ask about a later query, or give a longer text",
        )
    if key == versus:
        raise UsageError(
            f"{option('key')} and {option('versus')} are the same token", "name two of them"
        )
    for position in (key, *(() if versus is None else (versus,))):
        if not row.weights[position] > 0:
            weight = "a weight too small for float32" if row.seen[position] else "no weight"
            key_name = f"“{tokens[position].label}” (token {position})"
            raise InputError(
                f"“{tokens[query].label}” gives {key_name} {weight}",
                "ask about a key that it attends to",
            )
