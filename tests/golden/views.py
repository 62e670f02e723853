"""The terminal outputs that must not change unseen; `python -m tests.golden.views` writes them."""

import io
from pathlib import Path

import numpy as np

from attnviz.cli import main
from attnviz.console import Environment
from attnviz.inputs.captures import npz_chunks
from attnviz.inputs.text import Stdin
from attnviz.kit.session import Session
from attnviz.kit.write import write_bytes
from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head, NamedHead
from tests.factories import make_capture

EXPECTED = Path(__file__).with_name("expected")
TEXT = "a fluffy blue creature roamed the verdant forest , 楚留香 saw the [red] 🙂"
WIDTHS = (40, 80, 200)

VIEWS: dict[str, list[str]] = {
    "table": ["-H", "L0H1"],
    "heads": ["-H", "L0H1,L1H0", "--query", "creature", "--query", "forest"],
    "filtered": ["-H", "L0H1", "--top", "2", "--min", "0.1"],
    "left-out": ["-H", "L0H0,L0H1,L1H0", "--key", "fluffy", "--min", "0.4"],
    "heatmap": ["-H", "L0H1", "--view", "heatmap"],
    "key-rows": ["-H", "L0H1", "--view", "heatmap", "--orient", "key-rows"],
    "grid": ["--view", "grid"],
    "text": ["-H", "L0H1", "--view", "text", "--query", "creature"],
}
COLORS: dict[str, dict[str, str]] = {
    "plain": {},
    "truecolor": {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLORTERM": "truecolor"},
    "16": {"FORCE_COLOR": "1", "TERM": "xterm"},
}


def _adjectives(size: int) -> FloatArray:
    """A head that looks from nouns to their adjectives, and else rests on BOS."""
    pattern = np.zeros((size, size), np.float32)
    pattern[:, 0] = 1.0
    pattern[4, [0, 2, 3, 4]] = 0.04, 0.48, 0.46, 0.02
    pattern[8, [0, 7, 8]] = 0.05, 0.92, 0.03
    return pattern


def save_capture(path: Path) -> None:
    """The capture that all views show: two layers of two heads, one of them made by hand."""
    size = len(TEXT.split()) + 1
    capture = make_capture(
        TEXT,
        bos=True,
        patterns={Head(0, 1): _adjectives(size)},
        named_heads=(NamedHead("adjectives", Head(0, 1), "nouns attend to their adjectives"),),
    )
    write_bytes(path, npz_chunks(capture))


def shown(capture: Path, view: str, width: int, color: str) -> str:
    """What a terminal of this width and these colours shows."""
    out, err = io.BytesIO(), io.StringIO()
    stream = io.TextIOWrapper(out, "utf-8", write_through=True)
    session = Session(Environment(stream, err, COLORS[color]), Stdin(None, False))
    status = main(["show", str(capture), *VIEWS[view], "--width", str(width)], session)
    assert status == 0, err.getvalue()
    return out.getvalue().decode()


def cases() -> list[tuple[str, int, str]]:
    """Every view in every width without colour and in true colour; 16 colours once."""
    both = [(v, w, c) for v in VIEWS for w in WIDTHS for c in ("plain", "truecolor")]
    return [*both, *((v, 80, "16") for v in ("table", "heatmap", "grid", "text"))]


def write_all(folder: Path) -> None:
    capture = folder / "capture.npz"
    save_capture(capture)
    for view, width, color in cases():
        (EXPECTED / f"{view}-{width}-{color}.txt").write_text(shown(capture, view, width, color))


if __name__ == "__main__":
    import tempfile

    EXPECTED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        write_all(Path(temporary))
