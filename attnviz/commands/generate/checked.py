"""A check as people see it: tables of deletions, statements and curves, and what they come to."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.text import Text

from attnviz.commands.generate.occluded import shown_regions
from attnviz.console import Display
from attnviz.draw.labels import fenced
from attnviz.draw.picture.canvas import Drawn, place
from attnviz.draw.picture.frame import sheet, write_heading
from attnviz.draw.picture.paint import PictureOptions
from attnviz.draw.terminal.cells import GAP, Column, cut, folded, listing, table, words
from attnviz.draw.titles import amount, beginning
from attnviz.errors import readable, series
from attnviz.records.grounding import DRAWS, VERDICTS, Check, Curve, Deletion, Statement
from attnviz.records.reasoning import MATTERS, Chain
from attnviz.records.tokens import TEMPLATE

NAMED = 6
"""The number of members of a set to name, or one less and the number of the others."""
MOST_STATEMENTS, FEW = 64, 12
"""The number of statements up to which all are listed, and the number listed of more."""
LONGEST = 28
"""Cells of a statement in its table."""
BARE = "—"


def checked(check: Check, display: Display, hops: int = 0) -> Iterator[Text]:
    """The findings of the method, the groundedness of each statement, and a sentence on both."""
    dash = BARE if display.unicode else "-"
    if check.method == "curve":
        names, points = table_of_curves(check.curves, "…" if display.unicode else "to")
        heads = [Column(each, right=True) for each in names]
        yield from listing(heads, points, display.width)
    else:
        number = "weight" if check.method == "subsets" else "change (nats)"
        deleted = "deleted, or made grey" if check.occlusions else "deleted"
        columns = [Column(check.kind if check.method == "subsets" else deleted)]
        columns += [Column(each, right=True) for each in (check.measure, number)]
        columns += [Column("")] * (check.noise is not None)
        uses = check.uses
        rows = [
            [fenced(readable(n)), f"{share:.2f}", f"{x:+z.2f}", uses.get(n, "")][: len(columns)]
            for n, share, x in _numbers(check)
        ]
        yield from listing(columns, rows, display.width)
    yield from shown_regions(check.occlusions, display)
    yield from [Text()] if check.occlusions and not check.statements else []
    if check.statements:
        yield Text()
        yield from _statements(check.statements, display, dash)
        yield Text()
    yield from folded(Text(about_check(check)), display.width)
    if check.chain is not None:
        yield Text()
        yield from _chained(check.chain, check.measure, display, dash)
    elif hops and not check.effects:
        said = f"{check.method} does not follow the hops; delete and chain do"
        yield from folded(Text(said), display.width)


def _numbers(check: Check) -> Iterator[tuple[str, float, float]]:
    """The name, the share, and the change or the weight of each segment, and of all documents."""
    if check.subsets is not None:
        shares = dict(zip(check.documents, check.shares, strict=True))
        yield from ((each, shares[each], weight) for each, weight in check.subsets.weights)
        return
    yield from ((each.segment, each.share, each.change) for each in check.effects)
    if check.grounds is not None and len(check.documents) > 1:
        yield all_of(check), sum(check.shares), check.grounds.change


def all_of(check: Check) -> str:
    number = len(check.documents)
    return f"both {check.kind}s" if number == 2 else f"all {number} {check.kind}s"


def _statements(statements: Sequence[Statement], display: Display, dash: str) -> Iterator[Text]:
    few, most = _few(statements), max(12, min(LONGEST, display.width // 3))

    def share(value: float | None) -> str:
        return dash if value is None else f"{value:.2f}"

    columns = [
        words("statement", lambda s: fenced(cut(readable(s.text), most, unicode=display.unicode))),
        words("groundedness", lambda s: share(s.groundedness.share), right=True),
        words("unrelated text", lambda s: share(s.groundedness.unrelated), right=True),
        words("verdict", lambda s: s.verdict),
    ]
    yield from table(few, columns, display.width)
    for found in filter(None, (each.contradiction for each in few)):
        told = f"contradicted: {found.said}"
        yield from folded(Text(fenced(readable(told))), display.width)
    if len(few) < len(statements):
        said = f"{len(few)} of {len(statements)} statements, the least grounded"
        numbers = Counter(each.verdict for each in statements)
        counts = (f"{numbers[each]} {each}" for each in VERDICTS if numbers[each])
        yield from folded(Text(f"{said}: {', '.join(counts)}"), display.width)


def _few(statements: Sequence[Statement]) -> list[Statement]:
    """The contradicted and the least grounded statements of many, in their order."""
    if len(statements) <= MOST_STATEMENTS:
        return [*statements]

    def rank(n: int) -> tuple[int, float]:
        share = statements[n].groundedness.share
        return VERDICTS.index(statements[n].verdict), 1.0 if share is None else share

    return [statements[n] for n in sorted(sorted(range(len(statements)), key=rank)[:FEW])]


def table_of_curves(curves: Sequence[Curve], to: str = "…") -> tuple[list[str], list[list[str]]]:
    """The answer's log-probability at each step: most attention first, and in random orders.

    The names of columns, and their rows; `to`: stands in a range.
    """
    names, rows = ["tokens"], [[str(tokens)] for tokens in curves[0].tokens]
    for curve in curves:
        names += ["deleted" if curve.kind == "deletion" else "inserted", "random orders"]
        points = zip(curve.values, curve.low, curve.high, strict=True)
        for row, (value, low, high) in zip(rows, points, strict=True):
            row += [f"{value:.2f}", f"{low:.2f} {to} {high:.2f}"]
    return names, rows


WIDTH, HEIGHT, APART = 3.4, 2.6, 0.25
"""Inches of a pane with a curve, and between two."""


def draw_curves(check: Check, about: str, options: PictureOptions) -> Drawn:
    """Draw a pane for each curve, before the range of its random orders."""
    title = options.title
    if title is None:
        title = f"how probable the answer is with a part of the {check.kind}s"
    bounds = [x for curve in check.curves for x in (*curve.values, *curve.low, *curve.high)]
    beyond = 0.05 * (max(bounds) - min(bounds)) or 0.05
    with sheet([title, about], dpi=options.dpi, cmap=options.cmap) as (figure, fonts):
        from matplotlib import colormaps

        color = colormaps[options.cmap](0.75)
        for n, curve in enumerate(check.curves):
            axes = place(figure, n * (WIDTH + APART), 0, WIDTH, HEIGHT)
            verb = "deleted" if curve.kind == "deletion" else "inserted, beginning with none"
            axes.fill_between(
                curve.tokens, curve.low, curve.high, color="0.88", label=f"{DRAWS} random orders"
            )
            label = f"most {check.measure} first"
            axes.plot(curve.tokens, curve.values, ".-", color=color, label=label)
            axes.set_xlim(0, curve.tokens[-1])
            axes.set_ylim(min(bounds) - beyond, max(bounds) + beyond)
            axes.tick_params(labelsize=8, labelleft=not n)
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_xlabel(f"{check.kind} tokens {verb}", fontsize=8)
            if not n:
                axes.set_ylabel("log-probability of the answer (nats)", fontsize=8)
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
        write_heading(figure, HEIGHT + 0.15, 2 * WIDTH, title, about, fonts)
    return Drawn(figure)


def _chained(chain: Chain, measure: str, display: Display, dash: str) -> Iterator[Text]:
    """Each link with its cut beside the costliest other one, and whether the chain holds."""
    room = max(12, (display.width - 4 * GAP - len("share cut (nats) another")) // 2)

    def name(text: str) -> str:
        return fenced(cut(readable(text), room, unicode=display.unicode))

    def nats(change: float | None) -> str:
        return dash if change is None else f"{change:+z.2f}"

    most = "attends most to" if measure == "attention" else "takes most from"
    columns = [
        words("part", lambda link: name(link.part)),
        words(most, lambda link: name(link.source)),
        words("share", lambda link: f"{link.share:.2f}", right=True),
        words("cut (nats)", lambda link: nats(link.change), right=True),
        words("another", lambda link: nats(link.other), right=True),
    ]
    yield from table(chain.links, columns, display.width)
    yield from folded(Text(fenced(_about_chain(chain))), display.width)


def _about_chain(chain: Chain) -> str:
    """Whether the chain holds, which other sources are in its way, and what deletions say."""
    holds = "holds" if chain.holds else "does not hold"
    said = [f"the chain {holds}: each link is to cost more than any other when it is cut"]
    for link in chain.links:
        if link.other is not None and link.other_source and link.other <= link.change:
            part, other = beginning(link.part), beginning(link.other_source)
            said.append(f"“{part}” loses more when “{other}” is cut ({link.other:+.2f})")
    if chain.deleted is not None:
        own = f"without {readable(chain.links[-1].source)}"
        said.append(f"{own} its last part changes by {chain.deleted:+z.2f} nats")
        if chain.other_source is not None:
            said[-1] += f", without {readable(chain.other_source)}, the worst other segment, by "
            said[-1] += f"{chain.other:+z.2f}"
    return "; ".join(said)


def about_check(check: Check) -> str:
    """Whether the segments with the most attention are those that matter, and what is missing."""
    facts = [f"log-probability of the answer: {check.log_probability:.2f} nats"]
    if check.kept is not None:
        name, share = check.kept
        why = "the answer follows it" if name == TEMPLATE else "it asks for the answer"
        said = f"was not deleted, as {why}"
        if check.asked is not None:
            said = _on_question(check.asked, check.least)
        facts.append(f"{readable(name)} ({share:.2f}) {said}")
    if check.sink is not None:
        facts.append(
            f"with {readable(check.sink)} the first token was deleted, the sink, as there is no BOS"
        )
    facts += [*_on_deletions(check), *_on_documents(check), *_on_methods(check)]
    return "; ".join(facts)


def _on_question(asked: Deletion, least: float) -> str:
    """`asks for the answer: without it -17.16 nats`; whether the answer needs its question."""
    change = f"{asked.change:+z.2f} nats"
    if abs(asked.change) <= least:
        return f"asks for the answer: without it {change}, no more than unrelated text changes"
    likelier = ", which makes the answer likelier" if asked.change > 0 else ""
    return f"asks for the answer: without it {change}{likelier}"


def _on_deletions(check: Check) -> Iterator[str]:
    """Single deletions: whether attention and effect agree."""
    most = max(check.effects, key=lambda each: each.share, default=None)
    kept = check.kept
    if most and most.change > -MATTERS and (kept is None or kept[1] < most.share):
        how = "more" if most.change > MATTERS else "as"
        name = readable(most.segment)
        yield f"{name} has the most {check.measure}, but the answer is {how} probable without it"
    if check.correlation is not None:
        rho = f"{check.correlation:.2f}"
        yield f"rank correlation of {check.measure} and effect (Spearman's ρ): {rho}"
    if check.group is not None:
        n, top, random = check.group.size, check.group.top, check.group.random
        yield (
            f"without the {amount(n, 'segment')} with the most {check.measure} {top:+.2f} nats, "
            f"without {amount(n, 'random one')} {random:+.2f}"
        )


def _on_documents(check: Check) -> Iterator[str]:
    """The effect of all documents together, the few that matter, and what verdicts mean."""
    if check.grounds is None:
        return
    if check.noise is not None:
        yield (
            "used: its loss, or that of a set that needs it, costs the answer more than that of "
            f"unrelated text in its place ({check.least:.2f} nats at most)"
        )
    change, several = check.grounds.change, len(check.documents) > 1
    if several and check.effects == ():
        yield f"without {all_of(check)} {change:+.2f} nats"
    if check.smallest is not None and several:
        own = check.smallest.change
        more = own < change - MATTERS  # some of the others speak against the answer
        of = f", and without {all_of(check)} {change:+.2f}" if more else f" of {change:+.2f}"
        yield (
            f"most of what the {check.kind}s give is lost {_listed(check)} ({own:+.2f}{of} nats)"
        )
    said = [each.verdict for each in check.statements]
    if "not supported" in said:
        yield (
            f"not supported: the {check.kind}s give no more of it than unrelated text, or less "
            "than half of its words"
        )
    if "supported" in said:
        yield (
            f"supported: likelier with the {check.kind}s than with unrelated text in their place, "
            "and nothing in it contradicted, which does not make it true"
        )


def _listed(check: Check) -> str:
    """Without which documents: the members of the smallest set, or the first ones of many."""
    names = [readable(each) for each in check.smallest.segments] if check.smallest else []
    if len(names) == len(check.documents) > 2:
        return f"only without {all_of(check)}"
    if len(names) > NAMED:
        names = [*names[: NAMED - 1], f"{len(names) - NAMED + 1} others"]
    return f"without {series(names)}"


def _on_methods(check: Check) -> Iterator[str]:
    if check.subsets is not None:
        fit = check.subsets
        yield (
            f"a weight is what a {check.kind} adds to the logit of the answer's probability, in a "
            f"sparse linear fit to {amount(fit.fitted, 'random subset')}"
        )
        if fit.r2 is None:
            yield "there are too few subsets to hold some out"
        else:
            yield f"R² on {amount(fit.held_out, 'held-out subset')}: {fit.r2:.2f}"
    for curve in check.curves:
        yield (
            f"mean of the {curve.kind} curve {curve.area:.2f} nats, in random orders "
            f"{curve.random:.2f}"
        )
