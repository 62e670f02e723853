"""`attnviz why`: why a head attends where it does, and what it does with what it finds."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnviz.commands import groups as g
from attnviz.commands.deliver import Destination, deliver, deliver_report, destination_of
from attnviz.commands.grouping import command, option_field
from attnviz.commands.session import Session
from attnviz.commands.texts import note_texts, text_alone
from attnviz.data.serial import to_json
from attnviz.data.why import Group, Part, Why, Write
from attnviz.data.why_serial import why_to_dict, write_to_dict
from attnviz.errors import UsageError, option
from attnviz.renderers.labels import distinct_labels
from attnviz.renderers.parts import part_name
from attnviz.renderers.terminal import why as table
from attnviz.runs.prepare import load_model
from attnviz.runs.why import Question, ask_why, what_it_writes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPILOG = """
[bold]Examples[/]

attnviz why "a fluffy blue creature roamed" --head L3H2 --query creature --key blue

attnviz why "a fluffy blue creature roamed" --head L3H2 --query creature --key blue --versus a

attnviz why "a fluffy blue creature roamed . the creature was" --depth 3 -o circuit.png

attnviz why "a fluffy blue creature roamed . the creature was" --head L4H0 --writes
"""
COMMON = "file model head query key versus top check format output quiet".split()
"""The options that the short help lists."""
ASKED = "What is asked"


@dataclass(frozen=True)
class Keys:
    """Which keys are contrasted, and how the contrast is taken apart."""

    key: str | None = option_field(
        g.TOKENS, None, "--key", metavar="TOKEN", help="The key. Default: the strongest one."
    )
    versus: str | None = option_field(
        g.TOKENS,
        None,
        "--versus",
        metavar="TOKEN",
        help="The key to contrast it with. Default: the mean of the row's scores by its weights.",
    )
    group: Group = option_field(
        ASKED,
        Question.group,
        "--group",
        help="Sum up the parts by head and MLP, also by the token that they are from (part), by "
        "layer, or by that token alone (source).",
    )
    depth: int | None = option_field(
        ASKED,
        None,
        "--depth",
        metavar="N",
        min=1,
        max=64,
        help="Also tell what the strongest parts are made of, through so many heads.",
    )
    check: bool = option_field(
        ASKED,
        False,
        "--check",
        help="Also take the strongest part of each side away, and compute the score anew.",
    )


@dataclass(frozen=True)
class Written:
    """What is asked instead."""

    writes: bool = option_field(
        ASKED,
        False,
        "--writes",
        help="Show instead what the head writes: from which token, what it does to the "
        "prediction, and which later heads read it.",
    )


@dataclass(frozen=True)
class HowMany:
    """How many parts are told apart."""

    top: int = option_field(
        g.LOOK, Question.top, "--top", metavar="K", min=1, max=1000, help="Number of parts."
    )


@command
def why(
    session: Session,
    *,
    text: g.TextIn,
    tokens: g.Tokens,
    model: g.WhichModel,
    run: g.ModelRun,
    kind: g.Kind,
    asked: g.OneRow,
    keys: Keys,
    instead: Written,
    many: HowMany,
    canvas: g.Canvas,
    screen: g.Screen,
    output: g.ReportOutput,
    noise: g.Noise,
) -> None:
    """Take a head's score apart: what made this query attend to this key.

    With norms and attention held fixed, the score is a sum of products of a part at the query and
    a part at the key: embeddings, earlier heads, MLPs.
    """
    to = destination_of(session, output)
    _check(session, to, instead)
    given = text_alone(session, text, "a saved capture cannot be run again")
    loaded = load_model(g.source_of(session, model, run, kind))
    question = Question(
        asked.head,
        asked.query,
        keys.key,
        keys.versus,
        keys.group,
        many.top,
        keys.depth,
        keys.check,
    )
    options = tokens.options(run)
    if instead.writes:
        write = what_it_writes(loaded, given, question, options)
        note_texts(session, [write.capture])
        _deliver_write(session, to, write)
        return
    found = ask_why(loaded, given, question, options)
    note_texts(session, [found.capture])
    _deliver(session, to, found, many.top, canvas)


def _check(session: Session, to: Destination, instead: Written) -> None:
    if instead.writes:
        session.refuse(Keys, HowMany, wrong=f"does nothing with {option('writes')}")
        if to.format.picture:
            raise UsageError(
                f"{option('writes')} is a table, not a picture", "leave one of them out"
            )
    if to.format.name not in ("txt", "json") and not to.format.picture:
        hint = f"leave it out, or take {option('format', 'json')}"
        session.refuse("depth", "check", wrong="is not in the rows", hint=hint)


def _deliver(session: Session, to: Destination, why: Why, top: int, canvas: g.Canvas) -> None:
    def draw() -> "Figure":
        from attnviz.renderers.picture import why as picture

        return picture.draw(why, **canvas.given)

    if to.format.name == "json":
        deliver(session, to, [(None, [to_json(why_to_dict(why)) + "\n"])])
        return
    display = to.display(session)
    deliver_report(
        session, to, lambda: list(_pairs(why)), lambda: table.render(why, top, display), draw
    )


def _deliver_write(session: Session, to: Destination, write: Write) -> None:
    if to.format.name == "json":
        deliver(session, to, [(None, [to_json(write_to_dict(write)) + "\n"])])
        return
    display = to.display(session)
    deliver_report(
        session, to, lambda: list(_read(write)), lambda: table.render_write(write, display)
    )


def _pairs(why: Why) -> Iterator[dict[str, object]]:
    """A row for each term of the table."""
    labels = distinct_labels(why.tokens)
    for pair in why.pairs:
        yield {
            "model": why.model.name,
            "head": str(why.head),
            "query": why.query,
            "query_token": labels[why.query],
            "key": why.key,
            "key_token": labels[why.key],
            "versus": why.versus,
            **_part("query", pair.query, labels),
            **_part("key", pair.key, labels),
            "value": pair.value,
        }


def _part(side: str, part: Part | None, labels: Iterable[str]) -> dict[str, object]:
    names = tuple(labels)
    return {
        f"{side}_part": part_name(part, names),
        f"{side}_kind": part.kind if part else None,
        f"{side}_layer": part.layer if part else None,
        f"{side}_head": part.head if part else None,
        f"{side}_source": part.source if part else None,
    }


def _read(write: Write) -> Iterator[dict[str, object]]:
    """A row for each way in which a later head reads what was written."""
    labels = distinct_labels(write.tokens)
    for reader in write.readers:
        yield {
            "model": write.model.name,
            "head": str(write.head),
            "position": write.query,
            "position_token": labels[write.query],
            "reader": str(reader.head),
            "through": reader.through,
            "query": reader.query,
            "query_token": labels[reader.query],
            "key": reader.key,
            "key_token": labels[reader.key],
            "value": reader.value,
            "total": reader.total,
        }
