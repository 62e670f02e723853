"""All that a scan found of one head: scores, histograms, tokens and its strongest windows."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from rich.text import Text

from attnviz.console import Display
from attnviz.data.atlas import SCORES, Atlas, Bin, HeadAtlas, Histogram, Side, TokenMass
from attnviz.draw.labels import ascii_only, fenced, names_of_texts
from attnviz.draw.terminal.colors import bar_style, cut, folded, pad, widest
from attnviz.draw.terminal.listing import Column, listing, side_by_side
from attnviz.draw.titles import amount, bar_of
from attnviz.renderers.atlas_titles import atlas_head_title
from attnviz.renderers.terminal.atlas_examples import examples

TOKENS, EXAMPLES = 10, 3
BAR, SHORT_BAR = 12, 8
TOKEN = 20  # cells
HISTOGRAMS: Mapping[Histogram, str] = MappingProxyType(
    {
        "distance": "weight by distance",
        "position": "weight by key position",
        "largest": "windows by largest weight",
    }
)
SIDES: Mapping[Side, str] = MappingProxyType(
    {"query": "query tokens", "key": "key tokens", "pair": "pairs"}
)


def render_head(atlas: Atlas, head: HeadAtlas, top: int | None, display: Display) -> Iterator[Text]:
    """The head's scores, histograms, tokens and windows, and what their numbers are.

    Args:
        atlas: the scan.
        head: one of its heads.
        top: how many tokens of each side and how many windows; None for 10 and 3.
        display: where it is shown.
    """
    width = display.width
    yield from folded(Text(letters(atlas_head_title(atlas, head), display), "dim"), width)
    yield Text()
    histograms = [
        _histogram(name, bins, display)
        for name in HISTOGRAMS
        if (bins := head.histograms.get(name))
    ]
    yield from side_by_side([_scores(head, display), *histograms], width)
    sides = [
        _tokens(side, found[: top or TOKENS], display)
        for side in SIDES
        if (found := head.tokens.get(side))
    ]
    if sides:
        yield Text()
        yield from side_by_side(sides, width)
    shown = list(examples(head, top or EXAMPLES, display))
    yield from shown or [Text()]
    for line in _remarks(head):
        yield from folded(Text(letters(line, display), "dim"), width)


def letters(text: str, display: Display) -> str:
    """The text in letters that the display has."""
    return fenced(text) if display.unicode else ascii_only(text.translate(IN_ASCII))


IN_ASCII = str.maketrans({"–": "-", "±": "+/-", "→": "->", "×": "x", "…": "...", "−": "-"})


def score_number(score: str, value: float | None, *, signed: bool = False) -> str:
    """A score, or a difference of it, with the decimals that it deserves; `–` where it is none."""
    if value is None:
        return "–"
    return f"{value:{'+' if signed else ''},.{2 if score.startswith('distance') else 3}f}"


def _scores(head: HeadAtlas, display: Display) -> list[Text]:
    """The scores, and their documents where they are not all of the scan."""
    row = head.row
    part = any(row[f"{name}_documents"] != row["documents"] for name in SCORES)
    columns = [Column("score"), Column("mean", right=True)]
    columns.append(Column(letters("± error", display), right=True))
    columns += [Column("documents", right=True)] if part else []
    rows = [
        [
            name.replace("_", " "),
            letters(score_number(name, row[name]), display),
            letters(score_number(name, row[f"{name}_error"]), display),
            *([f"{row[f'{name}_documents']:,}"] if part else []),
        ]
        for name in SCORES
    ]
    return list(listing(columns, rows, display.width))


def _histogram(name: Histogram, bins: Sequence[Bin], display: Display) -> list[Text]:
    """A line for each bin up to the last that is not empty."""
    filled = [i for i, each in enumerate(bins) if each.value > 0] or [0]
    shown = bins[filled[0] if name == "largest" else 0 : filled[-1] + 1]
    if name == "largest":
        labels = [f"{each.start:.2f}–{each.end or 1:.2f}" for each in shown]
        values = [f"{each.value:,.0f}" for each in shown]
    else:
        labels = list(map(_tokens_apart, shown))
        values = [f"{each.value:.3f}" for each in shown]
    labels = [letters(label, display) for label in labels]
    amounts = [each.value for each in shown]
    return [Text(HISTOGRAMS[name], "bold"), *_bars(labels, values, amounts, BAR, display)]


def _tokens_apart(each: Bin) -> str:
    """`0`, `2–3`, `16,384 and more`."""
    if each.end is None:
        return f"{each.start:,.0f} and more"
    last = each.end - 1
    return f"{last:,.0f}" if last <= each.start else f"{each.start:,.0f}–{last:,.0f}"


def _tokens(side: Side, found: Sequence[TokenMass], display: Display) -> list[Text]:
    """A line for each of the tokens with the most weight."""
    unicode = display.unicode
    texts = {
        end: names_of_texts([getattr(each, end) or "" for each in found], unicode=unicode)
        for end in ("query", "key")
    }
    room = TOKEN if side != "pair" else min(TOKEN, (display.width - 24) // 2)
    cells = {
        end: [fenced(cut(name, room, unicode=unicode)) for name in names]
        for end, names in texts.items()
    }
    if side == "pair":
        arrow = letters(" → ", display)
        wide = widest(cells["query"])
        pairs = zip(cells["query"], cells["key"], strict=True)
        labels = [f"{pad(query, wide)}{arrow}{key}" for query, key in pairs]
    else:
        labels = cells[side]
    amounts = [each.mass for each in found]
    values = [f"{mass:,.1f}" for mass in amounts]
    return [Text(SIDES[side], "bold"), *_bars(labels, values, amounts, SHORT_BAR, display)]


def _bars(
    labels: Sequence[str],
    values: Sequence[str],
    amounts: Sequence[float],
    longest: int,
    display: Display,
) -> Iterator[Text]:
    """A line for each label, with its value and a bar; the largest bar is the longest."""
    name, number, most = widest(labels), widest(values), max(amounts) or 1.0
    for label, value, amount_ in zip(labels, values, amounts, strict=True):
        line = Text(f"{pad(label, name)} {pad(value, number, right=True)} ", no_wrap=True)
        share = amount_ / most
        line.append(bar_of(share, longest, display.unicode), bar_style(share, display))
        line.rstrip()
        yield line


def _remarks(head: HeadAtlas) -> Iterator[str]:
    """What the numbers are."""
    if head.histograms:
        yield (
            "weight by distance, by key position: the mean weight of a query on keys so far away, "
            "at this position; windows: by their largest weight, without the first token"
        )
    if head.tokens:
        yield (
            f"tokens: the sum of their weights over {amount(head.sampled, 'window')}, without the "
            "first token of each and what a token attends to itself (8 strongest keys of a query)"
        )
