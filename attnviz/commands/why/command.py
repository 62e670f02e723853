"""`attnviz why`: why a head attends where it does, and what it does with what it finds."""

from dataclasses import dataclass

from attnviz.commands.why.rows import of_why, of_write
from attnviz.commands.why.run import Question, ask_why, what_it_writes
from attnviz.errors import UsageError, option
from attnviz.kit import options as g
from attnviz.kit.deliver import Destination, deliver_result, destination_of
from attnviz.kit.lines import note_texts, text_alone
from attnviz.kit.option import command, option_field
from attnviz.kit.session import Session
from attnviz.records.parts import Group

EPILOG = """
Examples

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
        help="Also show what the strongest parts are made of, through up to N heads.",
    )
    check: bool = option_field(
        ASKED,
        False,
        "--check",
        help="Also remove the strongest part of each side, and recompute the score.",
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
    loaded = session.load(g.source_of(session, model, run, kind))
    question = Question(
        asked.head, asked.query, keys.key, keys.versus, keys.group, many.top, keys.depth, keys.check
    )
    options = tokens.options(run)
    if instead.writes:
        write = what_it_writes(loaded, given, question, options)
        note_texts(session, [write.capture])
        deliver_result(session, to, of_write(write))
        return
    found = ask_why(loaded, given, question, options)
    note_texts(session, [found.capture])
    deliver_result(session, to, of_why(found, many.top), canvas)


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
