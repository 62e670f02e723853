"""The parts of every page: its sources, its policy and its data."""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.draw.matrix import block_maximum
from attnviz.errors import LAYOUT, harmless
from attnviz.records.capture import FloatArray, IntArray
from attnviz.records.exhibit import Exhibit, HeadMap

COMMON = "draw/page/common"
HEAD = "draw/page/head.html"
"""The beginning of every page, with `policies`, `title` and `style`."""
HALF = "draw/page/half.js"
"""A script that reads numbers of 16 bits."""
LINES = "draw/page/lines.js"
"""A script of a page with `MAP`: two columns of tokens, and their links."""
MAP = tuple(f"draw/page/{name}.js" for name in ("picture", "heatmap", "map_input", "frame"))
"""Scripts of a page: a heatmap that its views share, and the height that a framed page reports."""


def source(*names: str) -> str:
    """The text of these files of the package, such as `draw/page/common.js`, one after another."""
    return "".join(files("attnviz").joinpath(name).read_text("utf-8") for name in names)


def filled(template: str, values: Mapping[str, str]) -> str:
    """Replace each `{{name}}` of a template in one pass, so that names within values stay.

    Control characters of values are removed.
    """

    def value(place: re.Match[str]) -> str:
        return harmless(values[place[1]].replace("\r\n", "\n"), f"{LAYOUT}\t")

    return re.sub(r"{{(\w+)}}", value, template)


def policies(*each: str) -> str:
    """The elements by which all of these policies apply to a page."""
    element = '<meta http-equiv="Content-Security-Policy" content="{}">'
    return "\n".join(element.format(escape(content, quote=False)) for content in each)


def policy(
    style: str, script: str, *, loads: bool = False, works: bool = False, connects: bool = False
) -> str:
    """A Content-Security-Policy that allows only this style and this script, and no connection.

    `loads`: whether the script may load others, from the places of `beside`. `works`: whether it
    may start a worker from the page's own blob. `connects`: whether it may ask the server that it
    comes from, and show another page of it in a frame.
    """
    asks = "'self'; frame-src 'self'; frame-ancestors 'self'" if connects else "'none'"
    trusted = f"{_hashed(script)} 'strict-dynamic'" if loads else _hashed(script)
    workers = "worker-src blob:; " if works else ""
    return (
        f"default-src 'none'; script-src {trusted}; {workers}"
        f"style-src {_hashed(style)}; img-src data: blob:; connect-src {asks}; "
        "base-uri 'none'; form-action 'none'"
    )


def beside(script: str) -> str:
    """A second policy in addition to the first: scripts come from the page's own folder.

    The first needs 'strict-dynamic', as a page that was opened from disk has no origin that 'self'
    means in every browser, and this word makes a browser ignore places.
    """
    return f"script-src {_hashed(script)} 'self' file:"


def _hashed(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def safe_json(value: object) -> str:
    """JSON that is safe in a script element: nothing in it ends the element or a line."""
    written = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return written


FRAME = """\
<script>
addEventListener("message", ({ data, source }) => {
  const height = Number(data && data.attnvizHeight);
  for (const frame of document.querySelectorAll("iframe[data-attnviz]"))
    if (frame.contentWindow === source && height > 0)
      frame.style.height = `${Math.min(height, 4000)}px`;
});
</script>
"""
"""A script that sets a frame's height as its page reports. The page can do nothing else: it has no
origin, and only a number is read from it. Without scripts, a reader can pull the frame taller and
scroll its page."""


def in_frame(page: str) -> str:
    """A page as an element of another page, with a script that fits its height."""
    return (
        f"{FRAME}<iframe data-attnviz "
        f'sandbox="allow-scripts allow-downloads" srcdoc="{escape(page)}" '
        'style="width: 100%; height: 48rem; border: 0; resize: vertical"></iframe>'
    )


# The weights of a page: one or two bytes each on a square-root scale, deflated head by head.
# All high bytes come before all low ones, as they then deflate better.

Levels: TypeAlias = NDArray[np.uint8] | NDArray[np.uint16]

THUMBNAIL = 32
"""Cells along a side of a head's thumbnail, at most."""
LEVELS = 255  # of a thumbnail
FINE = 1_000_000
"""The most weights of a page with two bytes for each; a larger page has one byte."""


def bytes_of(exhibit: Exhibit, maps: Sequence[HeadMap]) -> int:
    """The number of bytes of each weight of a page."""
    return 2 if sum(_allowed(exhibit, head_map).size for head_map in maps) <= FINE else 1


def most_levels(size: int) -> int:
    """The highest level of a weight of this size in bytes."""
    return int(256**size - 1)


def _allowed(exhibit: Exhibit, head_map: HeadMap) -> NDArray[np.float32]:
    """The weights of links that the mask allows, row by row, as the page holds them."""
    weights = head_map.weights
    if not exhibit.capture.causal:
        return weights.ravel()
    return weights[exhibit.capture.allowed()]


def levels(exhibit: Exhibit, head_map: HeadMap, top: float, size: int) -> Levels:
    """Quantise each weight to the nearest of 256 levels, or of 65,536, on a square-root scale."""
    shares = np.sqrt(np.maximum(_allowed(exhibit, head_map), 0, dtype=np.float64) / top)
    levels: Levels = np.rint(shares * most_levels(size)).astype(f"u{size}")
    return levels


def error(exhibit: Exhibit, head_map: HeadMap, top: float, size: int) -> float:
    """The largest difference between a weight of a head and its value on the page."""
    shown = (levels(exhibit, head_map, top, size) / most_levels(size)) ** 2 * top
    return float(np.abs(_allowed(exhibit, head_map) - shown).max(initial=0))


def thumbnails(maps: Sequence[HeadMap], top: float) -> NDArray[np.uint8]:
    """Thumbnails (heads, cells, cells): the strongest weight of each block, on the same scale."""
    blocks = [block_maximum(head_map.weights, THUMBNAIL, THUMBNAIL) for head_map in maps]
    shares: NDArray[np.float32] = np.sqrt(np.maximum(blocks, 0) / top)
    return np.rint(shares * LEVELS).astype(np.uint8)


def packed(levels: Levels) -> str:
    """Deflate levels to base64; real patterns repeat themselves, noisy ones have rare levels."""
    halves = [levels >> 8, levels & 255] if levels.dtype == np.uint16 else [levels]
    content = b"".join(half.astype(np.uint8).tobytes() for half in halves)
    ways = [_deflated(content, way) for way in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY)]
    return base64.b64encode(min(ways, key=len)).decode("ascii")


def packed_numbers(numbers: IntArray) -> str:
    """Pack whole numbers from 0 to 2³² − 1 (n) in base64: all highest bytes, then all next ones."""
    planes = numbers.astype(">u4").view(np.uint8).reshape(-1, 4).T  # (4, n)
    return base64.b64encode(_deflated(planes.tobytes(), zlib.Z_DEFAULT_STRATEGY)).decode("ascii")


def packed_arrays(
    facts: Mapping[str, object], arrays: Mapping[str, FloatArray], *, half: bool = False
) -> str:
    """Pack facts and float32 numbers for a page's worker as base64; with `half`, as float16.

    The format is gzip, whose length and checksum let a browser detect any change. It contains the
    length of the facts (4 bytes), the facts as JSON, with the name and size of each array, and the
    numbers: all their first bytes, then all second ones, and so on, as they then deflate better.
    """
    size = 2 if half else 4
    sizes = [[name, array.size] for name, array in arrays.items()]
    written = safe_json({**facts, "arrays": sizes, "bytes": size}).encode()
    numbers = np.concatenate([array.ravel() for array in arrays.values()]).astype(f"<f{size}")
    planes = numbers.view(np.uint8).reshape(-1, size).T.tobytes()
    packing = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS, 9, zlib.Z_HUFFMAN_ONLY)
    parts = (len(written).to_bytes(4, "big"), written, planes)
    packed = b"".join([*map(packing.compress, parts), packing.flush()])
    return base64.b64encode(packed).decode("ascii")


def _deflated(content: bytes, strategy: int) -> bytes:
    packing = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS, 9, strategy)
    return packing.compress(content) + packing.flush()


def thumbnail_shape(maps: Sequence[HeadMap]) -> tuple[int, ...]:
    rows, columns = maps[0].weights.shape if maps else (1, 1)
    return tuple(-(-n // -(-n // THUMBNAIL)) for n in (rows, columns))
