"""Image files, ordinary and hostile: what comes out is eight bits of red, green and blue."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from attnviz.errors import InputError, UsageError
from attnviz.inputs.images import MOST_PIXELS, picture_of, read_picture
from attnviz.records.places import RawImage

RED = (200, 10, 20)


def saved(path: Path, mode: str = "RGB", size: tuple[int, int] = (6, 4), **how: object) -> Path:
    """An image file of one colour."""
    color = {"RGBA": (*RED, 0), "L": 90, "I;16": 30_000, "CMYK": (0, 255, 255, 0), "1": 1}
    Image.new(mode, size, color.get(mode, RED)).save(path, **how)
    return path


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "gif", "bmp", "tiff"])
def test_each_format_gives_its_pixels(tmp_path: Path, suffix: str) -> None:
    raw = read_picture(saved(tmp_path / f"a.{suffix}"))
    assert raw.size == (6, 4)
    assert np.abs(raw.pixels.reshape(-1, 3).astype(int) - RED).max() <= 6
    assert raw.changes == ()


def test_a_file_is_read_by_what_it_is_and_not_by_its_suffix(tmp_path: Path) -> None:
    saved(tmp_path / "a.jpg").rename(tmp_path / "a.png")
    assert read_picture(tmp_path / "a.png").size == (6, 4)


def test_a_photo_is_turned_as_the_camera_was_held(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    raw = read_picture(saved(tmp_path / "a.jpg", exif=exif))
    assert raw.size == (4, 6)
    assert raw.changes == ("turned as its EXIF data say",)


def test_what_is_clear_becomes_white(tmp_path: Path) -> None:
    raw = read_picture(saved(tmp_path / "a.png", "RGBA"))
    assert (raw.pixels == 255).all()
    assert raw.changes == ("its clear parts made white",)


def test_sixteen_bits_become_eight(tmp_path: Path) -> None:
    raw = read_picture(saved(tmp_path / "a.png", "I;16"))
    assert (raw.pixels == round(30_000 / 257)).all()
    assert raw.changes == ("16 bits made 8",)


@pytest.mark.parametrize("mode", ["L", "CMYK", "1", "P"])
def test_other_modes_become_colours(tmp_path: Path, mode: str) -> None:
    path = tmp_path / ("a.jpg" if mode == "CMYK" else "a.png")
    if mode == "P":
        Image.new("RGB", (6, 4), RED).quantize(4).save(path)
    else:
        saved(path, mode)
    assert read_picture(path).pixels.shape == (4, 6, 3)


def test_of_several_frames_the_first_is_read(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (6, 4), (n, 0, 0)) for n in (250, 100, 0)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    raw = read_picture(tmp_path / "a.gif")
    assert raw.pixels[0, 0, 0] == 250
    assert raw.changes == ("the first of 3 frames",)


@pytest.mark.parametrize("size", [(1, 1), (30_000, 1), (1, 30_000)])
def test_extreme_shapes_are_read(tmp_path: Path, size: tuple[int, int]) -> None:
    assert read_picture(saved(tmp_path / "a.png", size=size)).size == size


def bomb(path: Path, width: int, height: int) -> Path:
    """A PNG of a few bytes that says that it is so large."""

    def chunk(name: bytes, data: bytes) -> bytes:
        whole = name + data
        return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + parts)
    return path


@pytest.mark.parametrize("side", [8_193, 60_000, 2_000_000])  # pillow refuses the larger two
def test_a_bomb_is_refused_before_it_takes_memory(tmp_path: Path, side: int) -> None:
    with pytest.raises(InputError, match=f"has more than {MOST_PIXELS:,} pixels"):
        read_picture(bomb(tmp_path / "a.png", side, side))
    assert MOST_PIXELS < 8_193 * 8_193


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.png", size=(200, 200))
    path.write_bytes(path.read_bytes()[:120])
    with pytest.raises(InputError, match="cannot be read"):
        read_picture(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'/>", "SVG drawing"),
        (b"a fluffy blue creature", "not an image that attnviz reads"),
        (b"", "not an image that attnviz reads"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image that attnviz reads"),
    ],
)
def test_what_is_no_image_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_picture(path)


def test_a_folder_or_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        read_picture(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        read_picture(tmp_path / "none.png")


def test_python_gives_arrays_and_images_of_pillow() -> None:
    pixels = np.full((4, 6, 3), RED, np.uint8)
    for given in (pixels, Image.fromarray(pixels)):
        raw = picture_of(given)
        assert isinstance(raw, RawImage)
        assert (raw.pixels == pixels).all()
    for wrong in (pixels[..., 0], pixels.astype(float), 3):
        with pytest.raises(UsageError, match="is not an image"):
            picture_of(wrong)


def test_an_orientation_that_turns_nothing_is_not_told(tmp_path: Path) -> None:
    for orientation in (0, 1, 99):
        exif = Image.Exif()
        exif[0x0112] = orientation
        assert read_picture(saved(tmp_path / f"{orientation}.jpg", exif=exif)).changes == ()


@pytest.mark.parametrize(("kind", "value"), [(np.float32, 0.5), (np.int32, 70_000)])
def test_numbers_that_are_no_colours_are_refused(tmp_path: Path, kind: type, value: float) -> None:
    Image.fromarray(np.full((4, 6), value, kind)).save(tmp_path / "a.tif")
    with pytest.raises(InputError, match="not colours of 8 or 16 bits"):
        read_picture(tmp_path / "a.tif")
