"""A folder is written completely, or is as it was before."""

from pathlib import Path

import pytest

from attnviz.commands.atlas.headvis import new_folder
from attnviz.errors import OutputError

OWN = r".*\.js"


def files(folder: Path) -> dict[str, str]:
    return {str(f.relative_to(folder)): f.read_text() for f in folder.rglob("*") if f.is_file()}


def test_a_new_folder_takes_the_place_of_the_old_one_at_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    for content in ("one", "two"):
        with new_folder(folder, OWN) as fresh:
            (fresh / f"{content}.js").write_text(content)
            assert not (folder / f"{content}.js").exists()
        assert files(tmp_path) == {f"made/{content}.js": content}


def test_an_error_leaves_the_old_folder_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    with new_folder(folder, OWN) as fresh:
        (fresh / "a.js").write_text("old")

    def interrupted() -> None:
        with new_folder(folder, OWN) as fresh:
            (fresh / "a.js").write_text("new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert files(tmp_path) == {"made/a.js": "old"}


@pytest.mark.parametrize("what", ["file of a user", "link", "no folder"])
def test_nothing_of_a_user_is_replaced(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "made"
    if what == "no folder":
        folder.write_text("mine")
    elif what == "link":
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir()
        (folder / "mine.txt").write_text("mine")
    before = files(tmp_path)
    with pytest.raises(OutputError), new_folder(folder, OWN):
        raise AssertionError("nothing may be written")
    assert files(tmp_path) == before
    assert folder.is_symlink() == (what == "link")
