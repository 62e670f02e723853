"""Tables of a scan: every head, two scores, several checkpoints, and one head in full."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from rich.text import Text

from attnviz.commands.atlas.views import (
    Change,
    Development,
    Scatter,
    atlas_title,
    development_title,
    head_title,
    outliers_said,
    scatter_title,
)
from attnviz.console import Display
from attnviz.corpus.record import SCORES
from attnviz.corpus.result import partial_notes
from attnviz.corpus.tables import (
    Atlas,
    Bin,
    HeadAtlas,
    HeadExample,
    Histogram,
    TokenMass,
    TokenSide,
    partial_of,
)
from attnviz.draw.labels import ascii_only, fenced, name_of, names_of_texts, told_apart
from attnviz.draw.terminal.around import ramp
from attnviz.draw.terminal.cells import (
    Column,
    bar_style,
    cut,
    folded,
    listing,
    pad,
    side_by_side,
    widest,
)
from attnviz.draw.terminal.text import LEAST, TextPiece, piece_of, shaded
from attnviz.draw.titles import amount, bar_of
from attnviz.errors import readable
from attnviz.records.heads import grouped
from attnviz.records.metrics import METRICS
from attnviz.records.rows import measured
from attnviz.records.tokens import SPECIAL_LABEL


def letters(text: str, display: Display) -> str:
    """The text in letters that the display has."""
    return fenced(text) if display.unicode else ascii_only(text.translate(IN_ASCII))


IN_ASCII = str.maketrans({"–": "-", "±": "+/-", "→": "->", "×": "x", "…": "...", "−": "-"})


def _said(text: str, display: Display, style: str = "dim") -> list[Text]:
    return folded(Text(letters(text, display), style), display.width)


def _cut(name: str, cells: int, display: Display) -> str:
    """Cut the name of a token or a folder in letters that the display has."""
    written = name if display.unicode else ascii_only(name)
    return fenced(cut(written, cells, unicode=display.unicode))


def score_number(score: str, value: float | None, display: Display, *, signed: bool = False) -> str:
    """A score, or a difference of it, with the decimals that it deserves; `–` where it is none."""
    if value is None:
        return letters("–", display)
    return f"{value:{'+' if signed else ''},.{2 if SCORES[score].of_distances else 3}f}"


def render_atlas(atlas: Atlas, display: Display, top: int) -> Iterator[Text]:
    """Render the table, and the largest standard error."""
    yield from folded(Text(atlas_title(atlas), "dim"), display.width)
    yield Text()
    columns = [Column("head"), *(Column(each.short, right=True) for each in METRICS.values())]
    rows = [
        [str(head), *(metric.cell(row[name]) for name, metric in METRICS.items())]
        for head, row in zip(atlas.heads[:top], atlas.rows[:top], strict=True)
    ]
    yield from listing(columns, rows, display.width)
    errors = [
        row[f"{name}_error"]
        for row in atlas.rows[:top]
        for name, metric in METRICS.items()
        if not metric.of_distances and row[f"{name}_error"] is not None
    ]
    if errors:
        yield Text()
        every = display.speller("format", "json")
        note = f"standard errors over documents: at most {max(errors):.3f}, except for distances"
        yield from folded(Text(f"{note} ({every} has all)", "dim"), display.width)
    shortened = (f"{m.short}: {name}" for name, m in METRICS.items() if m.short != name)
    yield from folded(Text(", ".join(shortened), "dim"), display.width)


def render_scatter(scatter: Scatter, display: Display, top: int) -> Iterator[Text]:
    """Render the heads farthest from the median, and the rule; `top`: the number of heads."""
    x, y, shown = scatter.x, scatter.y, scatter.outliers[:top]
    yield from _said(scatter_title(scatter), display)
    yield Text()
    if shown:
        error = letters("± error", display)
        values = [
            *((SCORES[x].label, x, "x"), (error, x, "x_error")),
            *((SCORES[y].label, y, "y"), (error, y, "y_error")),
        ]
        if scatter.mean_over != "documents":
            values = values[::2]  # without errors
        rows = [
            [
                str(point.head),
                *(score_number(score, getattr(point, axis), display) for _, score, axis in values),
                f"{point.distance_from_median:.1f}",
            ]
            for point in shown
        ]
        titles = (*(title for title, *_ in values), "from median")
        columns = [Column("head"), *(Column(title, right=True) for title in titles)]
        yield from listing(columns, rows, display.width)
        yield Text()
    yield from _said(outliers_said(scatter, len(shown)), display)
    yield from _said(f"{display.speller('output', 'FILE.png')} draws all heads", display)


# The heads whose scores change most between the first and the last checkpoint.


NAME = 12  # cells of a checkpoint's name
GAP = 2
ROOMY = 80  # cells; a narrower table has short names


def render_development(development: Development, display: Display, top: int) -> Iterator[Text]:
    """For each score the `top` heads that change most, with their means at the checkpoints."""
    yield from _said(development_title(development), display)
    yield Text()
    known = (score for score in SCORES if score in development.means)
    shown = [change for score in known for change in development.changes(score)[:top]]
    if not shown:
        yield Text("no score was measured at the first and the last checkpoint", "dim")
        return
    left_out = yield from _table_of_changes(development, shown, display)
    yield Text()
    note = "change: the last mean minus the first"
    if development.mean_over == "documents":
        note += "; ±: its standard error, with the two scans taken as independent"
    if left_out:
        every = display.speller("format", "csv")
        note += f"; {amount(left_out, 'checkpoint')} left out for want of room ({every} has all)"
    yield from _said(note, display)


def _table_of_changes(
    development: Development, shown: Sequence[Change], display: Display
) -> Generator[Text, None, int]:
    """A line for each change, with as many of its means as fit; returns how many do not."""
    roomy, steps = display.width >= ROOMY, development.steps
    header = "score" if steps is None else "score, at step" if roomy else "at step"
    scores = [SCORES[each.score] for each in shown]
    left = [
        ["head", *(str(each.head) for each in shown)],
        [header, *(score.label if roomy else score.short for score in scores)],
    ]
    if steps is None:
        names = [_cut(readable(name), NAME, display) for name in development.names]
    else:
        names = [f"{step:,}" for step in steps]
    means = [
        [name, *(score_number(each.score, measured(each.means[i]), display) for each in shown)]
        for i, name in enumerate(names)
    ]
    changes = (score_number(each.score, each.change, display, signed=True) for each in shown)
    errors = (f"±{score_number(each.score, each.error, display)}" for each in shown)
    right = [["change", *changes]]
    if development.mean_over == "documents":
        right.append(["", *(letters(error, display) for error in errors)])
    arrow = letters(" → ", display)
    least = _cells(left, "") + _cells([means[0], means[-1]], arrow) - len(arrow)
    while right and least + _cells(right, "") > display.width:
        right.pop()
    room = display.width - _cells(left, "") - _cells(right, "")
    fitting = _fitting(means, arrow, room)
    for n in range(len(shown) + 1):
        line = Text(no_wrap=True, overflow="crop", style="bold" if n == 0 else "")
        line.append("".join(pad(column[n], widest(column) + GAP) for column in left))
        between = arrow if n else " " * len(arrow)
        line.append(between.join(_right(column, n) for column in fitting))
        line.append("".join(" " * GAP + _right(column, n) for column in right))
        line.rstrip()
        yield line
    return len(means) - len(fitting)


def _right(column: Sequence[str], n: int) -> str:
    return pad(column[n], widest(column), right=True)


def _cells(columns: Sequence[Sequence[str]], arrow: str) -> int:
    """The width of the columns, each with the gap after it."""
    return sum(widest(column) + (len(arrow) or GAP) for column in columns)


def _fitting(means: Sequence[list[str]], arrow: str, room: int) -> list[list[str]]:
    """The checkpoints that fit, at even distances, the first and the last always."""
    last = len(means) - 1
    for n in range(len(means), 1, -1):
        columns = [means[i] for i in sorted({round(i * last / (n - 1)) for i in range(n)})]
        if _cells(columns, arrow) - len(arrow) <= room:
            return columns
    return [means[0], means[last]]


# All that a scan found of one head: scores, histograms, tokens and its strongest windows.


TOKENS, EXAMPLES = 10, 3
BAR, SHORT_BAR = 12, 8
TOKEN = 20  # cells
HISTOGRAMS: Mapping[Histogram, str] = {
    "distance": "weight by distance",
    "position": "weight by key position",
    "largest": "windows by largest weight",
}
SIDES: Mapping[TokenSide, str] = {"query": "query tokens", "key": "key tokens", "pair": "pairs"}


def render_head(head: HeadAtlas, display: Display, top: int) -> Iterator[Text]:
    """Render the head's scores, histograms, tokens and windows, and what their numbers are.

    `top`: the number of tokens of each side and of windows; 0 for 10 and 3.
    """
    yield from _said(head_title(head), display)
    yield Text()
    histograms = [
        _histogram(name, head.histograms[name], display)
        for name in HISTOGRAMS
        if name in head.histograms
    ]
    yield from side_by_side([_scores(head, display), *histograms], display.width)
    sides = [
        _tokens(side, head.tokens[side][: top or TOKENS], display)
        for side in SIDES
        if side in head.tokens
    ]
    if sides:
        yield Text()
        yield from side_by_side(sides, display.width)
    for note in partial_notes(partial_of(head.row)):
        yield Text()
        yield from _said(note, display)
    shown = list(examples(head, top or EXAMPLES, display))
    yield from shown or [Text()]
    if head.histograms:
        yield from _said(ABOUT_WEIGHTS, display)
    if head.tokens:
        sampled = amount(head.sampled, "window")
        yield from _said(ABOUT_TOKENS.format(sampled=sampled), display)


ABOUT_WEIGHTS = (
    "weight by distance, by key position: the mean weight of a query on keys so far away, at this "
    "position, over its document, then over documents; windows: by their largest weight, without "
    "the first token"
)
ABOUT_TOKENS = (
    "tokens: the sum of their weights over {sampled}, without the first token of each and what a "
    "token attends to itself (8 strongest keys of a query)"
)


def _scores(head: HeadAtlas, display: Display) -> list[Text]:
    row = head.row
    part = any(row[f"{name}_documents"] != row["documents"] for name in SCORES)
    errors = ["error"] if row["mean_over"] == "documents" else []
    columns = [Column("score"), Column("mean", right=True)]
    columns += [Column(letters("± error", display), right=True) for _ in errors]
    columns += [Column("documents", right=True)] if part else []
    rows = [
        [
            score.label,
            score_number(name, row[name], display),
            *(score_number(name, row[f"{name}_{error}"], display) for error in errors),
            *([f"{row[f'{name}_documents']:,}"] if part else []),
        ]
        for name, score in SCORES.items()
    ]
    return list(listing(columns, rows, display.width))


def _histogram(name: Histogram, bins: Sequence[Bin], display: Display) -> list[Text]:
    """A line for each bin up to the last that is not empty; those of the largest weight by five."""
    if name == "largest":
        fives = [bins[i : i + 5] for i in range(0, len(bins), 5)]
        bins = [Bin(some[0].start, some[-1].end, sum(b.value for b in some)) for some in fives]
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


def _tokens(side: TokenSide, masses: Sequence[TokenMass], display: Display) -> list[Text]:
    """A line for each of the tokens with the most weight."""
    room = TOKEN if side != "pair" else min(TOKEN, (display.width - 24) // 2)

    def cells(end: str) -> list[str]:
        texts = [getattr(each, end) or "" for each in masses]
        return [_cut(name, room, display) for name in names_of_texts(texts)]

    labels = cells("query" if side == "pair" else side)
    if side == "pair":
        arrow, wide = letters(" → ", display), widest(labels)
        pairs = zip(labels, cells("key"), strict=True)
        labels = [f"{pad(query, wide)}{arrow}{key}" for query, key in pairs]
    amounts = [each.mass for each in masses]
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


# The windows of a corpus with a head's strongest links, shaded as their query attends.


AROUND = 8  # tokens before and after those that are listed
STRONGEST = 3
INDENT = 2
LONGEST = 24  # cells of a token


@dataclass(frozen=True, eq=False)
class WindowRow:
    """The query of a window's largest weight, and its links: `weights` by key, strongest first."""

    query: int
    weights: Mapping[int, float]

    @property
    def told(self) -> list[int]:
        """The strongest keys, without the first token, whose weight is not a sign of the text."""
        return [key for key in self.weights if key > 0][:STRONGEST]

    @property
    def largest(self) -> float:
        """The largest weight, without the first token's."""
        return self.weights[self.told[0]]


def strongest_row(example: HeadExample) -> WindowRow | None:
    """The row of the largest weight, first row and column left out; None where there is no link."""
    if example.strongest is None:
        return None
    query, _ = example.strongest
    mine = np.flatnonzero(example.queries == query)
    mine = mine[np.argsort(-example.weights[mine], kind="stable")]
    keys, weights = example.keys[mine].tolist(), example.weights[mine].tolist()
    return WindowRow(query, dict(zip(keys, weights, strict=True)))


def examples(head: HeadAtlas, most: int, display: Display) -> Iterator[Text]:
    """The windows with the largest weights, at most `most`, and the meaning of their shades."""
    texts = grouped((each.tokens, each) for each in head.examples if each.kind == "top")
    windows = [(alike, row) for alike in texts.values() if (row := strongest_row(alike[0]))][:most]
    if not windows:
        return
    yield Text()
    heading = (
        "windows with the strongest links between two tokens, each as the query of its link attends"
    )
    yield from _said(heading, display, "bold")
    strongest = max(row.largest for _, row in windows)
    for n, (alike, row) in enumerate(windows, start=1):
        yield from _example(n, alike, row, strongest, display)
    yield Text()
    yield from _legend(strongest, display)


def _example(
    n: int, alike: Sequence[HeadExample], row: WindowRow, strongest: float, display: Display
) -> Iterator[Text]:
    example = alike[0]
    labels = told_apart([readable(token) or SPECIAL_LABEL for token in example.tokens])
    named = [_cut(name_of(name), LONGEST, display) for name in labels]
    weights = ((named[key], row.weights[key]) for key in row.told)
    links = ", ".join(f"{name} {weight:.2f}" for name, weight in weights if weight >= LEAST)
    line = Text().append(f"{n} ", "dim")
    line.append(f"{named[row.query]}{letters(' → ', display)}{links}")
    line.append(_place(example, len(alike), display), "dim")
    yield from folded(line, display.width)
    narrow = replace(display, width=display.width - INDENT)
    for each in shaded(_pieces(example, row), narrow, strongest):
        yield Text(" " * INDENT, no_wrap=True, overflow="crop").append_text(each)


def _place(example: HeadExample, alike: int, display: Display) -> str:
    """The place of the window: its file, the byte at which its document begins, and its number."""
    path = readable(example.path)
    place = f"  {path}, byte {example.start:,}"
    place += f", window {example.window:,}" if example.window else ""
    place += f"; {alike - 1:,} more of the same tokens" if alike > 1 else ""
    return fenced(place) if display.unicode else ascii_only(place)


def _pieces(example: HeadExample, row: WindowRow) -> Iterator[TextPiece]:
    """The tokens near the query and its strongest keys; `…` stands for the others."""
    ahead = bool((example.keys > example.queries).any())  # the model is not causal
    marked = np.array([row.query, *row.told])
    positions = np.arange(len(example.tokens))
    near = (np.abs(positions[:, None] - marked) <= AROUND).any(axis=1)
    words = not any(" " in token for token in example.tokens)
    gap = False
    for at, token in enumerate(example.tokens):
        if not near[at]:
            gap = True
            continue
        if gap:
            yield TextPiece("…", unseen=True, spaces=1)
        unknown = 0.0 if at <= row.query or ahead else None
        piece = _piece(token, row.weights.get(at, unknown), at == row.query)
        apart = words or gap or (at == 1 and not example.tokens[0])
        yield replace(piece, spaces=max(1, piece.spaces)) if apart else piece
        gap = False
    if gap:
        yield TextPiece("…", unseen=True, spaces=1)


def _piece(token: str, weight: float | None, query: bool) -> TextPiece:
    """A token as part of one line: a line end is a space, and is written where it has weight."""
    piece = piece_of(token or SPECIAL_LABEL)
    if piece.lines:
        shown = query or (weight or 0.0) >= LEAST
        ends = "\\n" * piece.lines if shown and not piece.written else ""
        piece = replace(piece, written=ends or piece.written, lines=0, spaces=1)
    return replace(piece, weight=weight, query=query)


def _legend(strongest: float, display: Display) -> Iterator[Text]:
    if display.color:
        text = ramp(display, strongest)
        start = text.plain.index(f" {strongest:.2f}")
        text.append(": the weight of the underlined query; the first token may have more")
        text.stylize("dim", start)
    else:
        text = Text("below each word: the weight of the query (^) on it", "dim")
    yield from folded(text, display.width)
