"""`attnviz why`: why a head attends where it does, and what it does with what it finds."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, TypeAlias

from attnviz.commands.why.rows import CONTRAST, WRITTEN
from attnviz.commands.why.run import WhyQuestion, ask_why, what_it_writes
from attnviz.errors import UsageError, option
from attnviz.kit import options as g
from attnviz.kit.deliver import destination_of
from attnviz.kit.lines import run_texts
from attnviz.kit.option import Call, Cli, command_of, feature, panel_option
from attnviz.kit.result import Result
from attnviz.kit.session import Session
from attnviz.kit.values import AnyModel, head_names, loaded, model_of, one_name
from attnviz.records.parts import Group, Why, Write

question_option = partial(panel_option, "What is asked")
OF_WHY = "key", "versus", "group", "depth", "check", "top"
"""Options that mean nothing to what a head writes."""
Key: TypeAlias = Annotated[
    g.OneToken | None,
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
        "layer, or by that token alone (source).",
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
TopTerms: TypeAlias = Annotated[
    int, g.look_option("--top", metavar="K", min=1, max=1000, help="Number of parts.")
]
InsteadWrites: TypeAlias = Annotated[
    bool,
    question_option(
        "--writes",
        help="Show instead what the head writes: from which token, what it does to the "
        "prediction, and which later heads read it.",
    ),
]


@feature()
def why(
    text: str,
    model: AnyModel = "builtin",
    *,
    head: g.OneHead = None,
    query: g.OneQuery = None,
    key: Key = None,
    versus: OtherKey = None,
    group: GroupBy = WhyQuestion.group,
    top: TopTerms = WhyQuestion.top,
    depth: Depth = None,
    check: CheckStrongest = False,
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
) -> Result[Why]:
    """Say why a head's query attends to a key: its score as a sum over the parts of the model.

    >>> found = attnviz.why("a fluffy blue creature", head="L3H2", query="creature", key="blue")
    >>> found
    <Result of why: builtin, L3H2, creature → blue, +0.073>
    >>> bool(abs(found.record.query_shares.values.sum() - found.record.contrast) < 1e-4)
    True

    Args:
        text: the text.
        model: a name as for `load_model`, or a loaded model.
    """
    model = loaded(model)
    named = one_name(query), one_name(key), one_name(versus)
    question = WhyQuestion(head_names(head), *named, group, top, depth, check)
    contrast = ask_why(model._loaded, text, question, model._text_options(bos, special, truncate))
    return Result(CONTRAST, contrast, (contrast.capture,), _top=top)


@feature()
def writes(
    text: str,
    model: AnyModel = "builtin",
    *,
    head: g.OneHead = None,
    query: g.OneQuery = None,
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
) -> Result[Write]:
    """Say what a head writes at a query, what it does to the logits, and which heads read it.

    >>> attnviz.writes("a fluffy blue creature", head="L3H2", query="creature")
    <Result of why: builtin, L3H2 at creature>

    Args:
        text: the text.
        model: a name as for `load_model`, or a loaded model.
    """
    model = loaded(model)
    question = WhyQuestion(head_names(head), one_name(query))
    options = model._text_options(bos, special, truncate)
    written = what_it_writes(model._loaded, text, question, options)
    return Result(WRITTEN, written, (written.capture,))


EXAMPLES = """
attnviz why "a fluffy blue creature roamed" --head L3H2 --query creature --key blue
attnviz why "a fluffy blue creature roamed" --head L3H2 --query creature --key blue --versus a
attnviz why "a fluffy blue creature roamed . the creature was" --depth 3 -o circuit.png
attnviz why "a fluffy blue creature roamed . the creature was" --head L4H0 --writes
"""
SHORT_HELP = "file model head query key versus top check format output quiet"


@command_of(
    why,
    "text truncate bos special model run kind head query key versus group depth check writes top",
)
def command_line(
    session: Session,
    call: Call[Result[Any]],
    *,
    text: g.TextIn,
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
    run_texts(
        session,
        call,
        to,
        text,
        partial(model_of, session, model, run, kind),
    )


def _writing(options: Mapping[str, Any]) -> Call[Result[Any]]:
    return Call(writes, {name: options[name] for name in options if name not in OF_WHY})
