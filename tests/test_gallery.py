"""The pages of the gallery and their index open from a disk without an error."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.browsing import Open

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))

import make_gallery
import make_pictures

CHEAP = [each for each in make_gallery.ENTRIES if each.file in ("words.html", "patch.html")]


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The gallery of the entries that take no second, with pictures that commands draw."""
    folder = tmp_path_factory.mktemp("gallery")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(make_gallery, "CHROMIUM", folder / "no chromium")
        patched.setenv("ATTNVIZ_MODEL", "no model")
        make_gallery.make(folder, CHEAP)
    return folder


@pytest.mark.parametrize("name", ["index.html", *(each.file for each in CHEAP)])
def test_a_page_of_the_gallery_opens_without_an_error(
    gallery: Path, opened: Open, name: str
) -> None:
    page = opened(gallery / name, ready=make_gallery.READY)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    links = page.locator(".gallery a, .gallery img")
    for link in links.all():
        target = link.get_attribute("href") or link.get_attribute("src")
        assert (gallery / str(target)).exists()
    assert links.count() == (2 * len(CHEAP) if name == "index.html" else 0)


@pytest.mark.parametrize("earlier", ["", "<title>attnviz: gallery</title>"])
def test_an_entry_that_fails_is_told_and_leaves_the_folder_as_it_was(
    tmp_path: Path, earlier: str
) -> None:
    if earlier:
        (tmp_path / "index.html").write_text(earlier)
    entry = make_gallery.Entry("", "", "attnviz show a --head L9H9 -o page.html")
    with pytest.raises(RuntimeError, match=r"L9H9 -o page\.html\nattnviz: .*9"):
        make_gallery.make(tmp_path, [CHEAP[0], entry])
    assert [each.read_text() for each in tmp_path.iterdir()] == [earlier] * bool(earlier)


def test_a_command_that_ends_with_another_code_than_its_entry_says_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = make_gallery.Entry("", "", "attnviz params -o page.json", code=3)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match="attnviz params"):
        make_gallery.carry_out(entry)


def test_what_an_earlier_gallery_had_gives_way_and_other_files_are_refused(tmp_path: Path) -> None:
    with make_gallery.replaced(tmp_path) as made:
        (made / "index.html").write_text(make_gallery.TITLE)
    with make_gallery.replaced(tmp_path) as made:
        (made / "other.html").touch()
    assert [each.name for each in tmp_path.iterdir()] == ["other.html"]
    with pytest.raises(SystemExit, match="name another folder"), make_gallery.replaced(tmp_path):
        raise AssertionError
    assert [each.name for each in tmp_path.iterdir()] == ["other.html"]


def test_the_contact_sheet_shows_each_kind_of_picture_as_its_command_draws_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = make_pictures.DOCS / "pictures.md"
    assert sheet.read_text(encoding="utf-8") == make_pictures.page()
    kinds = {kind.name: kind for kinds in make_pictures.KINDS.values() for kind in kinds}
    drawn = make_pictures.DOCS / "pictures"
    assert {file.stem for file in drawn.iterdir()} == kinds.keys()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(make_pictures, "FOLDER", tmp_path)
    for name in ("links", "meaning"):
        make_pictures.draw(kinds[name])
        with Image.open(tmp_path / f"{name}.png") as now, Image.open(drawn / f"{name}.png") as then:
            assert now.size == then.size
            rows = (np.asarray(each.convert("L"), float) for each in (now, then))
            assert np.abs(np.subtract(*rows)).mean() < 3
