"""Letters in pictures: fonts that are installed later, what to install, and letters that join."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import matplotlib as mpl
import pytest
from matplotlib import font_manager
from matplotlib.font_manager import FontEntry, FontProperties

from attnviz.draw.labels import MARK
from attnviz.draw.picture import canvas
from attnviz.draw.picture.canvas import Lettering, drawing, lettering, new_figure, renderer_of

ARROW = "\u2900"  # in STIX, which comes with matplotlib, and not in DejaVu Sans
STIX = Path(mpl.get_data_path()) / "fonts" / "ttf" / "STIXGeneral.ttf"


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The folder of the system's fonts, empty; matplotlib's list has DejaVu Sans alone."""
    known = font_manager.fontManager
    dejavu = [entry for entry in known.ttflist if entry.name == canvas.FIRST]
    monkeypatch.setattr(known, "ttflist", dejavu)
    monkeypatch.setattr(
        font_manager, "findSystemFonts", lambda: [str(path) for path in tmp_path.iterdir()]
    )
    canvas._lettering.cache_clear()
    yield tmp_path
    canvas._lettering.cache_clear()


def test_a_font_that_is_installed_later_is_found(system: Path) -> None:
    assert lettering([ARROW]).missing == {ARROW}
    shutil.copy(STIX, system / "new.ttf")
    found = lettering([ARROW])
    assert found.missing == frozenset()
    assert found.families == (canvas.FIRST, "STIXGeneral")


def test_a_file_that_is_no_font_is_passed_over(system: Path) -> None:
    (system / "a.ttf").write_bytes(b"no font at all")
    shutil.copy(STIX, system / "b.ttf")
    assert lettering([ARROW]).missing == frozenset()


@pytest.mark.parametrize(
    ("letters", "packages"),
    [
        ("楚", ["fonts-noto-cjk"]),
        ("の한", ["fonts-noto-cjk"]),
        ("ก", ["fonts-noto-core"]),
        ("ก楚", ["fonts-noto-cjk", "fonts-noto-core"]),
    ],
)
def test_the_note_names_what_to_install(letters: str, packages: list[str]) -> None:
    (note,) = Lettering(missing=frozenset(letters)).notes
    assert f"U+{ord(min(letters)):04X}" in note
    named = [name for name in ("fonts-noto-cjk", "fonts-noto-core") if name in note]
    assert named == packages


@pytest.mark.parametrize(
    ("text", "family"), [("楚", "Han SC"), ("楚の", "Han JP"), ("楚한", "Han KR")]
)
def test_chinese_characters_have_the_forms_of_the_text_s_language(
    monkeypatch: pytest.MonkeyPatch, text: str, family: str
) -> None:
    names = ["Han HK", "Han JP", "Han KR", "Han SC"]
    listed = [FontEntry(fname=name, name=name, style="normal", weight=400) for name in names]
    monkeypatch.setattr(font_manager, "fontManager", SimpleNamespace(ttflist=listed))
    assert canvas._other_fonts(canvas._region(text))[0] == (family, family)


def width(text: str) -> float:
    """How wide a text is drawn, in pixels."""
    with drawing():
        renderer = renderer_of(new_figure(100))
        return renderer.get_text_width_height_descent(text, FontProperties(size=40), False)[0]


def test_letters_that_join_are_drawn_joined() -> None:
    alone = width("\u0628")  # Arabic ba; a non-joiner (U+200C) keeps its neighbours apart
    assert width("\u0628\u0628\u0628") < 0.8 * 3 * alone
    assert width("\u0628\u200c\u0628\u200c\u0628") == pytest.approx(3 * alone, rel=0.05)


def test_a_mark_of_direction_takes_no_room() -> None:
    assert width(f"a{MARK}b") == pytest.approx(width("ab"), abs=1)
