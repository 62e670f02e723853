"""The default view: for each query token the tokens it attends to, strongest first; and a list of
the strongest links of all heads.

    creature → fluffy 0.48 ▇▇▇▇▇  blue 0.47 ▇▇▇▇▇  a 0.03 ▏  +0.02 on 4 more

If two keys do not fit side by side, they are below each other. A query all of whose links the
filters left out has no row; a last line counts these.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.labels import distinct_labels, fenced, names_of
from attnviz.draw.terminal.around import closing, heading, map_heading
from attnviz.draw.terminal.cells import bar_style, cut, fitting, footnotes, pad, widest
from attnviz.draw.titles import bar_of
from attnviz.errors import Speller
from attnviz.records.capture import Capture, IntArray
from attnviz.records.exhibit import LITTLE_LEFT, Exhibit, Links, Map, links_of, row_totals
from attnviz.records.heads import Head
from attnviz.records.rests import rests_in
from attnviz.records.transforms import UNBOUNDED

# The layout of the table's keys side by side: the width of each column, and the length of bars.

LONGEST_BAR, SHORTEST_BAR = 10, 4
NUMBER = len(" 0.48 ")
GAP = 2


@dataclass(frozen=True)
class Rank:
    """The widest label and the largest weight among the k-th strongest keys of all rows."""

    label: int
    strongest: float


@dataclass(frozen=True)
class Columns:
    """The layout: per column the cells of (key label, bar).

    A bar of a weight of `full` is `bar` cells long; columns of weaker ranks are narrower,
    as the second strongest of a row that sums to 1 cannot be more than a half.
    """

    cells: tuple[tuple[int, int], ...]
    bar: int
    full: float


def arrange(
    ranks: Sequence[Rank], n: int, room: int, *, shortest: int = SHORTEST_BAR
) -> Columns | None:
    """`n` columns at most, with the longest bars that fit; rank k goes to column k modulo n."""
    n = max(1, min(n, len(ranks)))
    full = max([1.0, *(rank.strongest for rank in ranks)])
    for bar in range(LONGEST_BAR, shortest - 1, -1):
        cells = []
        for column in range(n):
            mine = ranks[column::n]
            label = max((rank.label for rank in mine), default=0)
            most = max((rank.strongest for rank in mine), default=0.0)
            cells.append((label, max(1, round(bar * most / full))))
        if sum(label + NUMBER + drawn for label, drawn in cells) + GAP * (n - 1) <= room:
            return Columns(tuple(cells), bar, full)
    return None


# The default numbers of keys side by side, and below each other, and the least weight of a key
# except the first; others go into the rest.
SIDE_BY_SIDE, FAINT = (5, 4, 3, 2), 0.01
MOST_SHOWN = max(SIDE_BY_SIDE)
STACKED, FAINT_STACKED = 3, 0.05
MOST_COLUMNS = 12
LABEL_OF_TWO = 12  # cells: of two keys side by side, longer labels are cut
PIECE = 256  # lines that are printed at once
LONG_REST, SHORT_REST = len("+0.02 on 12 more"), len("+0.02")
RESTS, LEAST_RESTING = len("rests 0.90 "), 0.005


@dataclass(frozen=True)
class QueryRow:
    """One query: its shown keys with their weights, strongest first, and the rest.

    `resting`: the weight on keys on which the head rests, shown separately. `left`: the share of
    the row that dropped keys left, if it is too little to rescale the row.
    """

    query: int
    keys: tuple[tuple[int, float], ...]
    rest: float
    others: int
    resting: float = 0.0
    left: float | None = None

    def strongest(self, limit: int, faint: float) -> "QueryRow":
        """Keep at most `limit` keys, and below `faint` only the first; the others join the rest."""
        n = sum(1 for rank, (_, weight) in enumerate(self.keys) if rank == 0 or weight >= faint)
        kept, dropped = self.keys[: min(n, limit)], self.keys[min(n, limit) :]
        rest = self.rest + sum(weight for _, weight in dropped)
        return replace(self, keys=kept, rest=rest, others=self.others + len(dropped))


@dataclass(frozen=True)
class _Sheet:
    """The layout that all lines of a block share; `counted`: the rest gives its number of keys."""

    queries: tuple[str, ...]
    keys: tuple[str, ...]
    query_cells: int
    columns: Columns
    display: Display
    counted: bool


def render(exhibit: Exhibit, display: Display | None = None) -> Iterator[RenderableType]:
    """Draw the exhibit as a table, one block per head, in pieces: there may be a million rows."""
    display = display or Display()
    yield from heading(exhibit, display)
    shown = missing = 0
    without: list[str] = []  # heads without any row
    for head_map in exhibit.maps:
        rows = rows_of(exhibit, head_map)
        kept = [row for row in rows if row.keys or row.resting]
        shown, missing = shown + len(kept), missing + len(rows) - len(kept)
        if not kept:
            without.append(head_map.label)
            continue
        yield Text()
        if len(exhibit.maps) > 1:
            yield map_heading(exhibit, head_map, display)
        lines = _block(exhibit, kept, display)
        while piece := list(islice(lines, PIECE)):
            yield Group(*piece)
    yield from closing(exhibit, shown, missing, without, display)


def rows_of(exhibit: Exhibit, head_map: Map) -> list[QueryRow]:
    """The queries asked for, each with the links that the filters leave."""
    apart = set[int]()
    if not exhibit.weakest_left_out:
        apart = _apart(exhibit, head_map)
        # no more is shown, so no more is sorted into rows
        exhibit = replace(exhibit, top=MOST_SHOWN + len(apart))
    links, allowed = links_of(exhibit, head_map), exhibit.capture.allowed_count()
    per_query = np.bincount(links.query, minlength=len(allowed))
    totals = row_totals(exhibit, head_map)
    left = head_map.left
    rows, start = [], 0
    for query, total in zip(exhibit.queries, totals, strict=True):
        end = start + int(per_query[query])
        some = slice(start, end)
        keys = tuple(zip(links.key[some].tolist(), links.weight[some].tolist(), strict=True))
        start = end
        rest = total - sum(weight for _, weight in keys)
        seen = int(allowed[query]) - sum(key < allowed[query] for key in head_map.dropped)
        off = tuple(each for each in keys if each[0] not in apart)
        resting = sum(weight for key, weight in keys if key in apart)
        little = None if left is None or left[query] >= LITTLE_LEFT else float(left[query])
        rows.append(QueryRow(query, off, rest, seen - len(keys), resting, little))
    return rows


def _apart(exhibit: Exhibit, head_map: Map) -> set[int]:
    """The keys that are shown separately: the rests of a head that was picked by its other weights,
    and of every head of a model whose heads have no names."""
    choice, captured = exhibit.choice, exhibit.capture
    if captured.named_heads and not (choice and choice.off_rests):
        return set()
    no_shares = captured.signed or captured.transformed_by(UNBOUNDED)
    if no_shares or head_map.dropped or head_map.layer is None or head_map.head is None:
        return set()
    rests = rests_in(captured, Head(head_map.layer, head_map.head))
    return set(np.flatnonzero(rests).tolist())


def _block(exhibit: Exhibit, rows: list[QueryRow], display: Display) -> Iterator[Text]:
    queries = distinct_labels(exhibit.capture.query_tokens, unicode=display.unicode)
    keys = names_of(exhibit.capture.key_tokens, unicode=display.unicode)
    query_cells = widest([queries[row.query] for row in rows])
    query_cells = min(query_cells, max(8, display.width // 5))
    room = display.width - query_cells - len(" → ")
    rows, columns = _fit(exhibit, rows, keys, room, display)
    counted = all(_room_for_count(row, columns, room) for row in rows)
    sheet = _Sheet(queries, keys, query_cells, columns, display, counted)
    for row in rows:
        yield from _lines(row, sheet)


def _fit(
    exhibit: Exhibit, rows: list[QueryRow], keys: tuple[str, ...], room: int, display: Display
) -> tuple[list[QueryRow], Columns]:
    numbers: Sequence[int] = SIDE_BY_SIDE
    if not exhibit.weakest_left_out:
        stacked = [row.strongest(STACKED, FAINT_STACKED) for row in rows]
    else:
        most = max((len(row.keys) for row in rows), default=0)
        numbers, stacked = range(min(most, MOST_COLUMNS), 1, -1), rows
    wide, narrow = max(8, display.width // 6), max(8, display.width // 8)
    # From the most comfortable: cells of a label, of the rest, of the shortest bar.
    ways = ((wide, LONG_REST, 8), (wide, SHORT_REST, 6), (narrow, SHORT_REST, SHORTEST_BAR))
    two = (LABEL_OF_TWO, SHORT_REST, SHORTEST_BAR)
    times = zip(exhibit.capture.key_tokens, keys, strict=True)
    whole = widest([key for token, key in times if token.time])  # a cut time is useless
    resting = RESTS * any(row.resting >= LEAST_RESTING for row in rows)
    for n in numbers:
        few = [row.strongest(n, FAINT) for row in rows] if not exhibit.weakest_left_out else rows
        # Bars that can be compared matter more than a fourth key.
        for longest, rest, shortest in ways[:2] if n > 3 else ways if n > 2 else (*ways, two):
            ranks = _ranks(few, keys, max(longest, whole))
            columns = arrange(ranks, n, room - rest - resting - GAP, shortest=shortest)
            if columns:
                return few, columns
    one = arrange(_ranks(stacked, keys, display.width), 1, room)
    return stacked, one or Columns(((room - NUMBER, 0),), 0, 1.0)


def _ranks(rows: list[QueryRow], keys: tuple[str, ...], longest: int) -> list[Rank]:
    """The ranks of some rows, with labels of at most `longest` cells."""
    ranks = []
    for k in range(max((len(row.keys) for row in rows), default=0)):
        strongest = [row.keys[k] for row in rows if len(row.keys) > k]
        label = min(longest, widest([keys[key] for key, _ in strongest]))
        ranks.append(Rank(label, max(weight for _, weight in strongest)))
    return ranks


def _room_for_count(row: QueryRow, columns: Columns, room: int) -> bool:
    """Whether the rest of a row fits in its longer form, after the keys or on its own line."""
    across = len(columns.cells)
    if across == 1 and len(row.keys) > 1:
        return True
    behind = columns.cells[: (len(row.keys) - 1) % across + 1] if row.keys else ()
    used = sum(label + NUMBER + bar + GAP for label, bar in behind)
    short, long = (len(_rest(row, counted=counted)) for counted in (False, True))
    return used + long <= room or used + short > room


def _lines(row: QueryRow, sheet: _Sheet) -> Iterator[Text]:
    """The lines of one query, as many as its keys need, with the rest at the end of the last."""
    cells, unicode = sheet.columns.cells, sheet.display.unicode
    line = Text(no_wrap=True, overflow="crop")
    query = fenced(cut(sheet.queries[row.query], sheet.query_cells, unicode=unicode))
    line.append(pad(query, sheet.query_cells, right=True), "bold")
    line.append(" → " if unicode else " > ", "dim")
    for rank, (key, weight) in enumerate(row.keys):
        if rank and rank % len(cells) == 0:
            yield _stripped(line)
            line = _indented(sheet)
        label, bar = cells[rank % len(cells)]
        line.append("  " if rank % len(cells) else "")
        line.append(pad(fenced(cut(sheet.keys[key], label, unicode=unicode)), label))
        share = weight / sheet.columns.full
        line.append(f" {weight:4.2f} ")
        drawn = bar_of(share, sheet.columns.bar, unicode)
        line.append(pad(drawn, bar), bar_style(share, sheet.display))
    if rest := _rest(row, counted=sheet.counted):
        stacked = len(cells) == 1 and len(row.keys) > 1
        if stacked or line.cell_len + GAP + len(rest) > sheet.display.width:
            yield _stripped(line)
            line = _indented(sheet)
        line.append(" " * GAP if line.plain.strip() else "")
        line.append(rest, "dim")
    if row.left is not None:  # the row holds little weight
        line.stylize("dim")
    yield _stripped(line)


def _stripped(line: Text) -> Text:
    line.rstrip()
    return line


def _indented(sheet: _Sheet) -> Text:
    return Text(" " * (sheet.query_cells + len(" → ")), no_wrap=True, overflow="crop")


def _rest(row: QueryRow, *, counted: bool) -> str:
    """The rest as `+0.02 on 4 more`, or without the number of keys unless counted; "" for 0.00.

    Before it is `rests 0.90`, if the head rests; a row that kept little has only `0.02 left`.
    """
    if row.left is not None:
        return f"{row.left:.2f} left"
    rests = f"rests {row.resting:.2f}" if row.resting >= LEAST_RESTING else ""
    if not row.others or f"{row.rest:.2f}" in ("0.00", "-0.00"):
        return rests
    more = f"+{row.rest:.2f} on {row.others:,} more" if counted else f"+{row.rest:.2f}"
    return f"{rests} {more}".lstrip()


# The strongest links of all heads: a line for each query of a head that attends to several keys.
#
#     L1H2  creature → fluffy 0.48, blue 0.47
#
# Most strong links of a model are the same on every text: to BOS, of a token to itself and to the
# one before. Unless the user filters links, these are counted and left out.

MOST_LINES, MOST_KEYS, FAINT_IN_LIST = 20, 5, 0.05
COUNTED, MOST_COUNTED = 0.1, 10
"""The least weight of a link that is counted, and the most such links of a row."""
LONGEST_LABEL = 24  # cells
TO_SPECIAL, TO_ITSELF, TO_PREVIOUS, TO_REST = USUAL = 1, 2, 3, 4


@dataclass(frozen=True)
class LinkLine:
    """One query of one head, and its strongest keys with their weights.

    `before`: the weight of the first, before the row was rescaled without dropped keys.
    """

    head: str
    query: int
    keys: tuple[tuple[int, float], ...]
    before: float


def render_list(exhibit: Exhibit, display: Display | None = None) -> list[RenderableType]:
    """Draw the lines; without a least weight only the first of them, and the number of others."""
    display = display or Display()
    left_out = np.zeros(1 + len(USUAL), int)
    lines = sorted(_link_lines(exhibit, left_out), key=lambda line: -line.before)
    shown = lines if exhibit.least > 0 else lines[:MOST_LINES]
    others = len(lines) - len(shown)
    notes = [f"{others:,} more line{'' if others == 1 else 's'}"] if others else []
    notes += [] if lines else ["no link to show"]
    if left_out[1:].any():
        notes.append(_left_out(left_out.tolist(), exhibit, display))
    elif others:
        notes.append(_to_see_others(exhibit, display.speller))
    note = ["; ".join(notes)] if notes else []
    written = _written(exhibit, shown, display)
    return [*heading(exhibit, display), Text(), *written, *footnotes(note, display.width)]


def _link_lines(exhibit: Exhibit, left_out: IntArray) -> Iterator[LinkLine]:
    """The lines; `left_out` (1 + kinds) counts the omitted strong links of each usual kind."""
    seen = exhibit.capture.allowed_count()
    most = exhibit.top or MOST_KEYS
    for head_map in exhibit.maps:
        links = links_of(exhibit, head_map)
        before, dropped = head_map.before(links), np.array(head_map.dropped, int)
        usual = _usual(exhibit, head_map, links)
        left_out += np.bincount(usual[links.weight >= COUNTED], minlength=len(left_out))
        starts = np.flatnonzero(np.diff(links.query, prepend=-1)).tolist()
        for start, end in pairwise([*starts, len(links)]):
            query = int(links.query[start])
            strongest = [
                i
                for i in range(start, end)
                if exhibit.weakest_left_out or before[i] >= FAINT_IN_LIST
                if not usual[i]
            ]
            if strongest and seen[query] - np.count_nonzero(dropped < seen[query]) > 1:
                shown = ((int(links.key[i]), float(links.weight[i])) for i in strongest[:most])
                first = float(before[strongest[0]])
                yield LinkLine(head_map.label, query, tuple(shown), first)


def _usual(exhibit: Exhibit, head_map: Map, links: Links) -> IntArray:
    """The kind of each link that says nothing of the text; 0 for others, and if links are
    filtered, or queries and keys named."""
    captured = exhibit.capture
    usual = np.zeros(len(links), int)
    named = len(exhibit.queries) < len(captured.query_tokens)
    named |= len(exhibit.keys) < len(captured.key_tokens) - len(exhibit.dropped)
    if exhibit.filtered or exhibit.dropped or named:
        return usual
    if captured.one_sequence:
        distance = links.query - links.key
        usual[distance == 1] = TO_PREVIOUS
        usual[distance == 0] = TO_ITSELF
    usual[np.isin(links.key, [*_apart(exhibit, head_map)])] = TO_REST
    usual[np.isin(links.key, _sinks(captured))] = TO_SPECIAL
    return usual


def _sinks(captured: Capture) -> list[int]:
    """The special tokens among the keys; without one, the first token of a single text."""
    keys = captured.key_tokens
    special = [token.index for token in keys if token.special and not token.inset]
    return special or ([0] if captured.one_sequence else [])


def _written(exhibit: Exhibit, lines: list[LinkLine], display: Display) -> Iterator[Text]:
    unicode = display.unicode
    queries = distinct_labels(exhibit.capture.query_tokens, unicode=unicode)
    keys = names_of(exhibit.capture.key_tokens, unicode=unicode)
    longest = max(8, min(LONGEST_LABEL, display.width // 4))
    heads = widest([line.head for line in lines])
    names = min(longest, widest([queries[line.query] for line in lines]))
    for line in lines:
        written = Text(pad(line.head, heads) + "  ")
        query = fenced(cut(queries[line.query], names, unicode=unicode))
        written.append(pad(query, names, right=True), "bold")
        written.append(" → " if unicode else " > ", "dim")
        items = ((keys[key], f"{weight:.2f}") for key, weight in line.keys)
        yield fitting(written, items, longest, display)


def _to_see_others(exhibit: Exhibit, speller: Speller) -> str:
    """A note on the options that show other links than the strongest."""
    note = f"{speller('least', '0.5')} shows all links of 0.5 or more"
    if not (exhibit.skip or exhibit.dropped) and exhibit.capture.one_sequence:
        near, sink = speller("skip", "self,previous"), speller("drop_sink", None)
        note += f"; {near} and {sink} hide the usual ones"
    return note


def _left_out(counts: Sequence[int], exhibit: Exhibit, display: Display) -> str:
    """A note on the number of links that every text has, and the option that shows them."""
    names = names_of(exhibit.capture.key_tokens, unicode=display.unicode)
    sinks = dict.fromkeys(fenced(names[key]) for key in _sinks(exhibit.capture))
    kinds = {
        TO_SPECIAL: f"to {', '.join(sinks)}",
        TO_ITSELF: "of a token to itself",
        TO_PREVIOUS: "to the token before",
        TO_REST: "to other keys on which a head rests",
    }
    told = ", ".join(f"{counts[kind]:,} {what}" for kind, what in kinds.items() if counts[kind])
    least = display.speller("least", f"{COUNTED:g}")
    return f"left out, of links of {COUNTED:g} or more: {told}; {least} shows all"
