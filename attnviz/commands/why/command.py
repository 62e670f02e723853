"""`attnviz why`: why a head attends where it does, and what it does with what it finds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from attnviz.commands.why.rows import CONTRAST, WRITTEN
from attnviz.errors import IdleOption, InputError, ModelError, UsageError, option
from attnviz.kit import options as g
from attnviz.kit.bringing import one_row
from attnviz.kit.deliver import destination_of
from attnviz.kit.lines import Lines, Pairs, run_texts
from attnviz.kit.option import Arguments, Call, Cli, command_of, feature, only, panel_option
from attnviz.kit.prepare import TextOptions, frozen, frozen_with, prepare
from attnviz.kit.result import Result, of_texts
from attnviz.kit.roles import ONE_OF_ROLES, Alike, Roles, roles_of
from attnviz.kit.session import Session
from attnviz.kit.values import (
    AnyModel,
    head_names,
    loaded,
    model_of,
    one_name,
    paired,
    path_of,
    texts_of,
    token_of_each,
    words,
)
from attnviz.records.parts import Group, Part, Shares
from attnviz.records.positions import one_key
from attnviz.records.tokens import Token
from attnviz.records.why import Lead, ScoreRow, Side, Why, WhyMean, Write

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

question_option = partial(panel_option, "What is asked")
OF_WHY = "key versus group depth check top features roles segments lines pairs".split()
"""Options that mean nothing to what a head writes."""
EachToken: TypeAlias = g.OneToken | Sequence[g.OneToken] | None
"""A token of a text; of several texts one for all, or one for each."""
EachQuery: TypeAlias = Annotated[EachToken, Cli(str | None), g.QUERY]
EachKey: TypeAlias = Annotated[
    EachToken,
    Cli(str | None),
    g.tokens_option("--key", metavar="TOKEN", help="The key. Default: the strongest one."),
]
OtherKey: TypeAlias = Annotated[
    g.OneToken | None,
    Cli(str | None),
    g.tokens_option(
        "--versus",
        metavar="TOKEN",
        help="The key to contrast it with. Default: the mean of the row's scores by its weights.",
    ),
]
GroupBy: TypeAlias = Annotated[
    Group,
    question_option(
        "--group",
        help="Sum up the parts by head and MLP, also by the token that they are from (part), by "
        "layer, or only by that token (source).",
    ),
]
Depth: TypeAlias = Annotated[
    int | None,
    question_option(
        "--depth",
        metavar="N",
        min=1,
        max=64,
        help="Also show what the strongest parts are made of, through up to N heads.",
    ),
]
CheckStrongest: TypeAlias = Annotated[
    bool,
    question_option(
        "--check", help="Also remove the strongest part of each side, and recompute the score."
    ),
]
TopTerms: TypeAlias = Annotated[int, g.top_option("Number of parts.", max=1000)]
InsteadWrites: TypeAlias = Annotated[
    bool,
    question_option(
        "--writes",
        help="Show instead what the head writes: from which token, what it does to the "
        "prediction, and which later heads read it.",
    ),
]


# text ─► tokens ─► one run, held fixed ─► contrast ─► sums over the parts of the model ─► record

MOVED = 5
"""The number of tokens to list that a head raises, and of those that it lowers."""
WRONG = 1e-3
"""The error of a sum, as a share of its terms, that rounding does not explain."""
BRANCHES = 3
"""The number of the strongest parts that a part of the tree is made of."""
SIDES: tuple[Side, ...] = ("query", "key")


@dataclass(frozen=True)
class WhyQuestion:
    """The question: a head, its query, its key and another key; each as on the command line.

    Without `head`, the one that `show` would pick; without `query`, the first one in that head's
    headline, or the last word; without `key`, the strongest one; without `versus`, the mean of the
    row's scores by its own weights. `group`: how parts are summed up. `top`: the number of
    parts to list. `depth`: the number of heads in a row that a tree follows back. `check`:
    also take the strongest part of each side away, and compute anew. `roles`, `segments`: what
    tokens are among those of other texts. `features`: the folder of a dictionary, whose features
    take the place of what wrote its stream.
    """

    head: str | None = None
    query: str | None = None
    key: str | None = None
    versus: str | None = None
    group: Group = "head"
    top: int = 8
    depth: int | None = None
    check: bool = False
    roles: Alike | None = None
    segments: tuple[str, ...] = ()
    features: str | None = None


def ask_why(model: "LoadedModel", text: str, question: WhyQuestion, options: TextOptions) -> Why:
    """Run a text, and take one contrast of one head's scores apart."""
    prepared = prepare(model, text, options)
    choice, query, _ = one_row(prepared, question.head, question.query)
    (head,) = choice.heads
    sums, explained = frozen_with(prepared, question.features, head)
    row, tokens = sums.row(head, query), prepared.empty.key_tokens
    key, versus = _keys(tokens, row, query, question)
    from attnviz.models.frozen.contrast import Contrast

    contrast = Contrast(sums, head, query, key, versus)
    shares = {"query": contrast.query_walk.shares, "key": contrast.key_walk.shares}
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
        query_lead=Lead.of(shares["query"]),
        key_lead=Lead.of(shares["key"]),
        query_parts=query_parts,
        key_parts=key_parts,
        table=table,
        error=_error_of(model, shares.values()),
        trees=[(s, contrast.tree(s, question.depth, BRANCHES)) for s in SIDES if question.depth],
        removals=[contrast.without(s, _strongest(shares[s])) for s in SIDES if question.check],
        roles=roles_of(prepared.empty, question.roles, question.segments),
        by_position=question.roles == "position",
        query_name=question.query,
        key_name=question.key,
        explained=explained,
    )


def _error_of(model: "LoadedModel", sides: Iterable[Shares]) -> float:
    """The distance of the parts' sum from the scores; refused where that is too far."""
    if (error := max(side.error for side in sides)) > WRONG:
        raise ModelError(
            f"the parts of {model.identity.architecture} do not add up to its scores",
            "its patterns can be shown; for this use one such as GPT-2 or Llama",
        )
    return error


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


def _keys(
    tokens: Sequence[Token], row: ScoreRow, query: int, question: WhyQuestion
) -> tuple[int, int | None]:
    """The key and the other one, which must have weight, as its logarithm is taken."""
    named, other = question.key, question.versus
    key = int(row.weights.argmax()) if named is None else one_key(tokens, named, "key", row.weights)
    versus = None if other is None else one_key(tokens, other, "versus", row.weights)
    if int(row.seen.sum()) == 1 and row.sink is None:
        raise InputError(
            f"“{tokens[query].label}” (token {query}) attends to only one key: there is nothing to "
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
    return key, versus


# In Python, and on the command line.


def _roles_apart(call: Arguments) -> None:
    """Check that roles are distinguished only where tokens are."""
    if call.any_of("roles segments") and call["group"] == "layer":
        raise IdleOption(
            f"{option('group', 'layer')} has no tokens to distinguish",
            f"leave {option('roles')} and {option('segments')} out",
        )


@feature(
    _roles_apart,
    ONE_OF_ROLES,
    only(
        "features",
        lambda call: call["group"] != "layer",
        f"does nothing for {option('group', 'layer')}",
        "group by head",
    ),
)
def why(
    text: str | Sequence[str],
    model: AnyModel = "builtin",
    *,
    head: g.OneHead = None,
    query: EachQuery = None,
    key: EachKey = None,
    versus: OtherKey = None,
    group: GroupBy = WhyQuestion.group,
    top: TopTerms = WhyQuestion.top,
    depth: Depth = None,
    check: CheckStrongest = False,
    roles: Roles = None,
    segments: g.NamedParts = (),
    features: g.FeaturesIn = None,
    image: g.Images = (),
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
    text_pair: g.TextPairs = None,
) -> Result[Why] | Result[WhyMean]:
    """Say why a head's query attends to a key: its score as a sum over the parts of the model.

    >>> found = attnviz.why("a fluffy blue creature", head="L3H2", query="creature", key="blue")
    >>> found
    <Result of why: builtin, L3H2, creature → blue, -0.010>
    >>> bool(abs(found.record.query_shares.values.sum() - found.record.contrast) < 1e-4)
    True

    For several texts, the query and the key are one for all of them, or one for each.

    Args:
        text: a text; or several, each of which is asked about, and then their mean.
        model: a name as for `load_model`, or a loaded model.

    Returns:
        a result whose record is a `Why`; of several texts a `WhyMean`.
    """
    model, parts = loaded(model), words("segments", segments)
    question = WhyQuestion(
        head_names(head),
        versus=one_name(versus),
        group="part" if group == "head" and (roles or parts) else group,
        top=top,
        depth=depth,
        check=check,
        roles=roles,
        segments=parts,
        features=None if features is None else path_of("features", features),
    )
    options = model._text_options(bos, special, truncate, image=image)
    texts = texts_of(text)
    queries = token_of_each("query", query, len(texts))
    keys = token_of_each("key", key, len(texts))
    asked = [replace(question, query=own, key=to) for own, to in zip(queries, keys, strict=True)]
    found = map(ask_why, repeat(model._loaded), texts, asked, paired(options, text_pair, texts))
    return of_texts(text, (Result(CONTRAST, one, (one.capture,), _top=top) for one in found))


@feature()
def writes(
    text: str,
    model: AnyModel = "builtin",
    *,
    head: g.OneHead = None,
    query: g.OneQuery = None,
    image: g.Images = (),
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
    text_pair: g.TextPair = None,
) -> Result[Write]:
    """Say what a head writes at a query, what it does to the logits, and which heads read it.

    >>> attnviz.writes("a fluffy blue creature", head="L3H2", query="creature")
    <Result of why: builtin, L3H2 at creature>

    Args:
        text: the text.
        model: a name as for `load_model`, or a loaded model.
    """
    model, question = loaded(model), WhyQuestion(head_names(head), one_name(query))
    options = model._text_options(bos, special, truncate, image=image, text_pair=text_pair)
    found = what_it_writes(model._loaded, text, question, options)
    return Result(WRITTEN, found, (found.capture,))


EXAMPLES = """
attnviz why "a fluffy blue creature roamed" --head L3H2 --query creature --key blue
attnviz why "a fluffy blue creature roamed" --head L3H2 --query creature --key blue --versus a
attnviz why "a fluffy blue creature roamed . the creature was" --depth 3 -o circuit.png
attnviz why "a fluffy blue creature roamed . the creature was" --head L4H0 --writes
"""
SHORT_HELP = "file model head query key versus top check format output quiet"


@command_of(
    why,
    "text text_pair lines pairs image truncate bos special model run kind head query key versus "
    "group features roles segments depth check writes top",
)
def command_line(
    session: Session,
    call: Call[Result[Any]],
    *,
    text: g.TextIn,
    lines: Lines = False,
    pairs: Pairs = None,
    model: g.WhichModel,
    run: g.ModelRun,
    kind: g.WhichKind = None,
    writes: InsteadWrites = False,
    output: g.ReportOutput,
) -> None:
    """Take a head's score apart: what made this query attend to this key.

    With norms and attention held fixed, the score is a sum of products of a part at the query and
    a part at the key: embeddings, earlier heads, MLPs.
    """
    to = destination_of(session, output)
    if writes:
        session.refuse(*OF_WHY, wrong=f"does nothing with {option('writes')}")
        if to.format.picture:
            raise UsageError(
                f"{option('writes')} is a table, not a picture", "leave one of them out"
            )
        call = _writing(call.options)
    if to.format.name not in ("txt", "json") and not to.format.picture:
        hint = f"leave it out, or take {option('format', 'json')}"
        session.refuse("depth", "check", wrong="is not in the rows", hint=hint)
    load = partial(model_of, session, model, run, kind)
    fields = "text", "text_pair", "query", "key"
    run_texts(session, call, to, text, load, lines=lines, pairs=pairs, fields=fields)


def _writing(options: Mapping[str, Any]) -> Call[Result[Any]]:
    return Call(writes, {name: options[name] for name in options if name not in OF_WHY})
