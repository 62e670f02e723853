"""`attnviz.why` and `attnviz.writes`: why a head attends, and what it does with it."""

from attnviz.commands.why.rows import of_why, of_write
from attnviz.commands.why.run import WhyQuestion, ask_why, what_it_writes
from attnviz.kit.model import AnyModel, loaded, text_options
from attnviz.kit.prepare import Truncation
from attnviz.kit.result import Result
from attnviz.kit.values import HeadName, check_one_of, check_text, head_names, one_name, recorded
from attnviz.records.parts import Group, Why, Write


@recorded
def why(
    text: str,
    model: AnyModel = "builtin",
    *,
    head: HeadName | None = None,
    query: str | int | None = None,
    key: str | int | None = None,
    versus: str | int | None = None,
    group: Group = WhyQuestion.group,
    top: int = WhyQuestion.top,
    depth: int | None = None,
    check: bool = False,
    bos: bool | None = None,
    special: bool = False,
    truncate: Truncation | None = None,
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
        head, query, key: what is asked about; each has a default.
        versus: another key to contrast it with; None is the mean of the row.
        group: sum parts up by "head", "part" (heads apart by the token that they took from),
            "layer" or "source".
        top: how many parts are told apart.
        depth: through how many heads the strongest parts are followed back.
        check: take the strongest part of each side away, and compute anew.
        bos, special, truncate: as for `attnviz.capture`.

    Raises:
        AttnvizError: the text, the model or an option cannot be used; the message says
            what to do instead.
    """
    check_text(text)
    check_one_of("group", group, Group)
    model = loaded(model)
    named = one_name(query), one_name(key), one_name(versus)
    asked = WhyQuestion(head_names(head), *named, group, top, depth, check)
    found = ask_why(model._loaded, text, asked, text_options(model, bos, special, truncate))
    return of_why(found, top)


@recorded
def writes(
    text: str,
    model: AnyModel = "builtin",
    *,
    head: HeadName | None = None,
    query: str | int | None = None,
    bos: bool | None = None,
    special: bool = False,
    truncate: Truncation | None = None,
) -> Result[Write]:
    """Say what a head writes at a query, what it does to the logits, and which heads read it.

    >>> attnviz.writes("a fluffy blue creature", head="L3H2", query="creature")
    <Result of why: builtin, L3H2 at creature>

    Args:
        text: the text.
        model: a name as for `load_model`, or a loaded model.
        head, query: what is asked about; each has a default.
        bos, special, truncate: as for `attnviz.capture`.

    Raises:
        AttnvizError: as `why`.
    """
    check_text(text)
    model = loaded(model)
    options = text_options(model, bos, special, truncate)
    return of_write(
        what_it_writes(model._loaded, text, WhyQuestion(head_names(head), one_name(query)), options)
    )
