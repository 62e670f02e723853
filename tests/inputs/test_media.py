"""An image or a recording in the place of a text."""

import io
from pathlib import Path

import pytest
from PIL import Image

import attnviz
from attnviz.errors import InputError, UsageError
from attnviz.inputs.given import medium_of
from attnviz.inputs.text import Stdin, TextInput, read_text


@pytest.fixture
def picture(tmp_path: Path) -> str:
    path = tmp_path / "a.PNG"
    Image.new("RGB", (8, 8)).save(path)
    return str(path)


def test_a_file_is_told_by_its_suffix_and_has_to_be_there(picture: str, tmp_path: Path) -> None:
    (tmp_path / "a.wav").touch()
    (tmp_path / "a.txt").touch()
    (tmp_path / "folder.png").mkdir()
    assert medium_of(picture) == "image"
    assert medium_of(str(tmp_path / "a.wav")) == "speech"
    for name in ("a.txt", "folder.png", "b.png"):
        assert medium_of(str(tmp_path / name)) is None
    for text in ("", "png", ".png", "a\0.png", "\ud800.png", "a" * 10_000 + ".png"):
        assert medium_of(text) is None


@pytest.mark.parametrize(
    ("model", "reads"), [("builtin", "text"), ("shapes", "images only with a text")]
)
def test_a_text_that_names_an_image_is_refused(picture: str, model: str, reads: str) -> None:
    with pytest.raises(UsageError, match=f"is an image, and the model reads {reads};"):
        attnviz.show(picture, model)


def test_an_image_alone_is_no_text_for_a_model_that_reads_both(picture: str) -> None:
    with pytest.raises(InputError, match="the text is empty"):
        attnviz.show(image=picture, model="shapes")


def test_an_image_alone_is_none_for_a_model_of_text(picture: str) -> None:
    with pytest.raises(UsageError, match="builtin reads no images; leave image"):
        attnviz.show(image=picture)


def test_with_an_image_there_may_be_no_text() -> None:
    for stdin in (Stdin(None, False), Stdin(io.BytesIO(b"a"), True), Stdin(io.BytesIO(), False)):
        assert read_text(None, None, stdin, medium=True) == TextInput("")
    piped = Stdin(io.BytesIO(b"a\n"), False)
    assert read_text(None, None, piped, medium=True) == TextInput("a")
