"""The windows of a corpus with a head's strongest links, shaded as their query attends."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from rich.text import Text

from attnviz.console import Display
from attnviz.data.atlas import Example, HeadAtlas
from attnviz.draw.labels import ascii_only, fenced, name_of, told_apart
from attnviz.draw.terminal.colors import cut, folded, ramp
from attnviz.draw.terminal.text import LEAST, TextPiece, piece_of, shaded
from attnviz.errors import readable
from attnviz.records.tokens import SPECIAL_LABEL

AROUND = 8  # tokens before and behind those that are told of
STRONGEST = 3
INDENT = 2
LONGEST = 24  # cells of a token


@dataclass(frozen=True, eq=False)
class Row:
    """The query of a window's largest weight, and its links: `keys`, `weights`, strongest first."""

    query: int
    keys: tuple[int, ...]
    weights: tuple[float, ...]

    @property
    def largest(self) -> float:
        """The largest weight, without the first token's."""
        return next(w for key, w in zip(self.keys, self.weights, strict=True) if key > 0)

    @property
    def told(self) -> tuple[int, ...]:
        """The strongest keys, without the first token, whose weight is no sign of the text."""
        return tuple(key for key in self.keys if key > 0)[:STRONGEST]


def strongest_row(example: Example) -> Row | None:
    """The row of the largest weight, first row and column left out; None where there is no link."""
    if example.strongest is None:
        return None
    query, _ = example.strongest
    mine = np.flatnonzero(example.queries == query)
    mine = mine[np.argsort(-example.weights[mine], kind="stable")]
    return Row(query, tuple(example.keys[mine].tolist()), tuple(example.weights[mine].tolist()))


def examples(head: HeadAtlas, most: int, display: Display) -> Iterator[Text]:
    """The windows with the largest weights, at most so many, and what their shades are."""
    top = [each for each in head.examples if each.kind == "top"]
    texts: dict[tuple[str, ...], list[Example]] = {}
    for each in top:
        texts.setdefault(each.tokens, []).append(each)
    found = [(alike, row) for alike in texts.values() if (row := strongest_row(alike[0]))][:most]
    if not found:
        return
    yield Text()
    said = (
        "windows with the strongest links between two tokens, each as the query of its link attends"
    )
    yield from folded(Text(said, "bold"), display.width)
    strongest = max(row.largest for _, row in found)
    for n, (alike, row) in enumerate(found, start=1):
        yield from _example(n, alike, row, strongest, display)
    yield Text()
    yield from _legend(strongest, display)


def _example(
    n: int, alike: Sequence[Example], row: Row, strongest: float, display: Display
) -> Iterator[Text]:
    example = alike[0]
    arrow = "→" if display.unicode else "->"
    named = _names(example.tokens, display)
    weights = dict(zip(row.keys, row.weights, strict=True))
    links = [f"{named[key]} {weights[key]:.2f}" for key in row.told if weights[key] >= LEAST]
    line = Text().append(f"{n} ", "dim")
    line.append(f"{named[row.query]} {arrow} {', '.join(links)}")
    line.append(_place(example, len(alike), display), "dim")
    yield from folded(line, display.width)
    narrow = replace(display, width=display.width - INDENT)
    for each in shaded(_pieces(example, row), narrow, strongest):
        yield Text(" " * INDENT, no_wrap=True, overflow="crop").append_text(each)


def _names(tokens: Sequence[str], display: Display) -> list[str]:
    """What each token is called; one that occurs more than once has a number."""
    told = told_apart([readable(token) or SPECIAL_LABEL for token in tokens])
    plain = [name_of(name) for name in told]
    unicode = display.unicode
    written = plain if unicode else list(map(ascii_only, plain))
    return [fenced(cut(name, LONGEST, unicode=unicode)) for name in written]


def _place(example: Example, alike: int, display: Display) -> str:
    """Where the window is: its file, the byte at which its document begins, and its number."""
    path = readable(example.path)
    said = f"  {path}, byte {example.start:,}"
    said += f", window {example.window:,}" if example.window else ""
    said += f"; {alike - 1:,} more of the same tokens" if alike > 1 else ""
    return fenced(said) if display.unicode else ascii_only(said)


def _pieces(example: Example, row: Row) -> Iterator[TextPiece]:
    """The tokens near the query and its strongest keys; `…` stands for the others."""
    weights = dict(zip(row.keys, row.weights, strict=True))
    ahead = bool((example.keys > example.queries).any())  # the model is not causal
    told = np.array([row.query, *row.told])
    positions = np.arange(len(example.tokens))
    near = (np.abs(positions[:, None] - told) <= AROUND).any(axis=1)
    words = not any(" " in token for token in example.tokens)
    gap = False
    for at, token in enumerate(example.tokens):
        if not near[at]:
            gap = True
            continue
        if gap:
            yield TextPiece("…", unseen=True, spaces=1)
        unknown = 0.0 if at <= row.query or ahead else None
        piece = _piece(token, weights.get(at, unknown), at == row.query)
        apart = words or gap or (at == 1 and not example.tokens[0])
        yield replace(piece, spaces=max(1, piece.spaces)) if apart else piece
        gap = False
    if gap:
        yield TextPiece("…", unseen=True, spaces=1)


def _piece(token: str, weight: float | None, query: bool) -> TextPiece:
    """A token as part of one line: a line end is a space, and is written where it has weight."""
    piece = piece_of(token or SPECIAL_LABEL)
    if piece.lines:
        told = query or (weight or 0.0) >= LEAST
        ends = "\\n" * piece.lines if told and not piece.written else ""
        piece = replace(piece, written=ends or piece.written, lines=0, spaces=1)
    return replace(piece, weight=weight, query=query)


def _legend(strongest: float, display: Display) -> Iterator[Text]:
    """What shades or numbers are."""
    if display.color:
        text = ramp(display, strongest)
        start = text.plain.index(f" {strongest:.2f}")
        text.append(": the weight of the underlined query; the first token may have more")
        text.stylize("dim", start)
    else:
        text = Text("below each word: the weight of the query (^) on it", "dim")
    yield from folded(text, display.width)
