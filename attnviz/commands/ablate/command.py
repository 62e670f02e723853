"""`attnviz ablate`: does a part matter? The model's predictions without it."""

from dataclasses import dataclass, replace

from attnviz.commands.ablate.record import Found, LinkNames, link_named
from attnviz.commands.ablate.rows import of_found, of_mean
from attnviz.commands.ablate.run import Ablating, Targets, ablate_each, ablate_together
from attnviz.errors import IdleOption, option
from attnviz.inputs.prompts import PromptLine
from attnviz.kit import options as g
from attnviz.kit.deliver import Destination, deliver_result, destination_of
from attnviz.kit.lines import (
    OF_A_TEXT,
    Answered,
    Lines,
    Pairs,
    captured,
    check_one_file,
    check_pairs,
    deliver_lines,
    each_line,
    each_pair,
    note_texts,
    text_alone,
)
from attnviz.kit.option import command, option_field
from attnviz.kit.session import Session, progress
from attnviz.records.interventions import Measure, Replacement

EPILOG = r"""
Examples

attnviz ablate "a fluffy blue creature roamed the verdant forest"

attnviz ablate "a fluffy blue creature roamed . the creature was" --answer blue --versus red

attnviz ablate "Bark is very cute and he is a" --head L3H2,L4H0 --together

attnviz ablate "a blue creature slept . the creature was" --cut creature#2:blue --answer blue

attnviz ablate "Bark is very cute and he is a dog" --mlp all --head all -o ablation.png

attnviz ablate --pairs sample_texts/colors.jsonl --layer 2 -f jsonl | jq 'select(.line == null)'
"""
COMMON = ("file pairs answer versus model heads mlps cut together top format output quiet").split()
"""The options that the short help lists."""


@dataclass(frozen=True)
class OtherParts:
    """Parts other than heads."""

    mlps: str | None = option_field(
        g.HEADS,
        None,
        "--mlp",
        metavar="LAYERS",
        help="Ablate the MLPs of these layers: 1, 0-3, 0,2 or all. Heads only if they are named, "
        "too.",
    )
    whole_layers: str | None = option_field(
        g.HEADS,
        None,
        "--whole-layer",
        metavar="LAYERS",
        help="Ablate these layers, attention and MLP together. Given as for --mlp.",
    )


@dataclass(frozen=True)
class HowAblated(g.Measured):
    """What is done to the parts."""

    replacement: Replacement = option_field(
        g.HEADS,
        "zero",
        "--with",
        help="What replaces an output: zero, or its mean over the text's positions.",
    )
    cut: str | None = option_field(
        g.HEADS,
        None,
        "--cut",
        metavar="QUERY:KEY",
        help="Remove the heads' links between these tokens, in place of their outputs. Tokens are "
        "given as for show --query.",
    )
    renormalise: bool = option_field(
        g.HEADS,
        False,
        "--renormalise",
        help="With --cut, rescale the other weights of the row to sum to 1.",
    )
    together: bool = option_field(
        g.HEADS,
        False,
        "--together",
        help="Ablate the chosen parts at once, and show the next tokens before and after.",
    )
    top: int = option_field(
        g.LOOK,
        10,
        "--top",
        metavar="K",
        min=1,
        help="Show the K parts that matter most; with --together, K candidates.",
    )

    @property
    def record(self) -> Ablating:
        """The record that runs take.

        Raises:
            UsageError: the link cannot be read.
        """
        return Ablating(self.replacement, self.answer, self.versus, self._link)

    @property
    def _link(self) -> LinkNames | None:
        return None if self.cut is None else link_named(self.cut, renormalise=self.renormalise)


@command
def ablate(
    session: Session,
    *,
    text: g.TextIn,
    lines: Lines = False,
    pairs: Pairs = None,
    tokens: g.Tokens,
    model: g.WhichModel,
    run: g.ModelRun,
    heads: g.WhichHeads,
    others: OtherParts,
    how: HowAblated,
    canvas: g.Canvas,
    screen: g.Screen,
    output: g.ReportOutput,
    noise: g.Noise,
) -> None:
    """Ablate heads, MLPs or layers and measure the effect on predictions.

    The effect is the change in log-probability, in nats, of the tokens that followed or of an
    --answer; with --versus, the change of the difference of both logits. A negative change means
    that the part helps.
    """
    to = destination_of(session, output)
    targets = Targets(heads.options, others.mlps, others.whole_layers)
    _check(session, targets, how, to)
    top = how.top if session.chosen("top") else None
    if pairs is not None:
        check_pairs(session, to, lines=lines)
    else:
        check_one_file(to, lines=lines)
    alone = pairs is None and not lines
    given = text_alone(session, text, "a saved capture cannot be run again") if alone else ""
    loaded = session.load(g.source_of(session, model, run))
    options, every = tokens.options(run), list[Found]()

    def found(text: str, own: Ablating, number: int) -> Answered:
        asked = loaded, text, options, targets, own
        one = ablate_together(*asked, how.top) if how.together else ablate_each(*asked)
        every.append(one)
        return number, of_found(one, top, number)

    if alone:
        with progress(session, "ablating"):
            _, result = found(given, how.record, 1)
        note_texts(session, result.captures)
        deliver_result(session, to, result, canvas)
        return

    def of_pair(pair: PromptLine, number: int) -> Answered:
        own = replace(how.record, answer=pair.answer, versus=pair.versus)
        return found(pair.text, own, number)

    def measure_of(answer: str | None, versus: str | None) -> Measure:
        return Ablating(answer=answer, versus=versus).measure

    answers = (
        each_line(session, text, lambda line, n: found(line, how.record, n), captured, OF_A_TEXT)
        if pairs is None
        else each_pair(session, pairs, how.answer, how.versus, measure_of, of_pair)
    )
    mean_alone = pairs is not None
    deliver_lines(session, to, answers, lambda: of_mean(every, top), canvas, mean_alone=mean_alone)


def _check(session: Session, targets: Targets, how: HowAblated, to: Destination) -> None:
    """Only options that mean something together."""
    together = option("together")
    if to.format.picture:
        session.refuse("top", wrong="does nothing for a picture, which shows every part")
        if how.together:
            raise IdleOption(f"{together} gives one number, not a picture", "leave one of them out")
    if how.together and not (targets.named or how.cut):
        hint = f"name them, as in {option('heads', 'L1H2,L3H0')} or {option('mlps', 'all')}"
        raise IdleOption(f"{together} needs heads or other parts", hint)
    if how.cut is None and how.renormalise:
        cut = option("cut", "QUERY:KEY")
        raise IdleOption(f"{option('renormalise')} is for {option('cut')}", f"add {cut}")
    if how.cut is not None:
        session.refuse("replacement", wrong="does nothing for a link, which is removed")
