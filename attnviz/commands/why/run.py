"""Why a head attends where it does, and what it writes.

text ─► tokens ─► one run, held fixed ─► contrast ─► sums over the parts of the model ─► record
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnviz.errors import InputError, ModelError, UsageError, option
from attnviz.kit.choose import one_row
from attnviz.kit.prepare import TextOptions, frozen, prepare
from attnviz.records.parts import Group, Part, ScoreRow, Shares, Side, Why, Write
from attnviz.records.positions import one_position
from attnviz.records.tokens import Token

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

MOVED = 5
"""How many tokens to list that a head raises, and how many that it lowers."""
WRONG = 1e-3
"""The error of a sum, as a share of its terms, that rounding does not explain."""
BRANCHES = 3
"""How many of its strongest parts a part of the tree is made of."""
SIDES: tuple[Side, ...] = ("query", "key")


@dataclass(frozen=True)
class WhyQuestion:
    """The question: a head, its query, its key and another key; each as on the command line.

    Without `head`, the one that `show` would pick; without `query`, the first one in that head's
    headline, or the last word; without `key`, the strongest one; without `versus`, the mean of the
    row's scores by its own weights. `group`: how parts are summed up. `top`: how many parts to
    list. `depth`: how many heads a tree follows back, one behind the other; None: no tree. `check`:
    also take the strongest part of each side away, and compute anew.
    """

    head: str | None = None
    query: str | None = None
    key: str | None = None
    versus: str | None = None
    group: Group = "head"
    top: int = 8
    depth: int | None = None
    check: bool = False


def ask_why(model: "LoadedModel", text: str, question: WhyQuestion, options: TextOptions) -> Why:
    """Run a text, and take one contrast of one head's scores apart."""
    prepared = prepare(model, text, options)
    choice, query, _ = one_row(prepared, question.head, question.query)
    (head,) = choice.heads
    sums = frozen(prepared)
    row, tokens = sums.row(head, query), prepared.empty.key_tokens
    key = int(row.weights.argmax())
    if question.key is not None:
        key = one_position(tokens, question.key, "key")
    versus = None if question.versus is None else one_position(tokens, question.versus, "versus")
    _check_keys(tokens, row, query, key, versus)
    from attnviz.models.frozen.contrast import Contrast

    contrast = Contrast(sums, head, query, key, versus)
    shares = {"query": contrast.query_walk.shares, "key": contrast.key_walk.shares}
    if (error := max(side.error for side in shares.values())) > WRONG:
        raise ModelError(
            f"the parts of {model.identity.architecture} do not add up to its scores",
            "its patterns can be shown; for this use one such as GPT-2 or Llama",
        )
    query_parts, key_parts, table = contrast.table(question.group, question.top)
    return Why(
        capture=prepared.empty,
        head=head,
        query=query,
        key=key,
        versus=versus,
        group=question.group,
        row=contrast.row,
        contrast=contrast.total,
        added=contrast.added,
        query_shares=shares["query"].by(question.group),
        key_shares=shares["key"].by(question.group),
        query_parts=query_parts,
        key_parts=key_parts,
        table=table,
        error=error,
        trees=[(s, contrast.tree(s, question.depth, BRANCHES)) for s in SIDES if question.depth],
        removals=[contrast.without(s, _strongest(shares[s])) for s in SIDES if question.check],
    )


def _strongest(shares: Shares) -> Part:
    """The strongest part but the biases."""
    by_head = shares.by("head")
    parts = [by_head.parts[i] for i in by_head.strongest(2)]
    return parts[parts[0].kind == "biases"]


def what_it_writes(
    model: "LoadedModel", text: str, question: WhyQuestion, options: TextOptions
) -> Write:
    """Run a text, and record what one head writes at one query."""
    from attnviz.models.frozen.contrast import HeadOutput

    prepared = prepare(model, text, options)
    choice, query, _ = one_row(prepared, question.head, question.query)
    (head,) = choice.heads
    sums = frozen(prepared)
    writes = HeadOutput(sums, head, query)
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


def _check_keys(
    tokens: Sequence[Token], row: ScoreRow, query: int, key: int, versus: int | None
) -> None:
    """Check that both keys have weight, of which the logarithm is taken."""
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
    for position in (key, versus):
        if position is not None and not row.weights[position] > 0:
            weight = "a weight too small for float32" if row.seen[position] else "no weight"
            key_name = f"“{tokens[position].label}” (token {position})"
            raise InputError(
                f"“{tokens[query].label}” gives {key_name} {weight}",
                "ask about a key that it attends to",
            )
