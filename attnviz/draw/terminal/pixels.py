"""Escape sequences that show pixels in a terminal: kitty's graphics, or sixel.

Kitty: https://sw.kovidgoyal.net/kitty/graphics-protocol/. Sixel: DEC's VT330/VT340 Programmer
Reference Manual, volume 2, chapter 14.
"""

import io
import re
from base64 import b64encode
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import ControlType, Segment

CHUNK = 4096
"""The most letters of a piece in kitty's protocol."""
PALETTE = 64
"""The colours of a sixel picture; every terminal has that many."""


@dataclass(frozen=True)
class PixelSequence:
    """A picture as one escape sequence, and the end of its last line.

    To Rich it is a control code, so that it is neither measured, cropped nor escaped.
    """

    sequence: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment(self.sequence, None, [(ControlType.CURSOR_FORWARD, 0)])
        yield Segment.line()


def kitty(pixels: NDArray[np.uint8], size: str) -> PixelSequence:
    """Write pixels (height, width, 3) as a PNG. `size`: its columns, `c=`, or its lines, `r=`."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    data = b64encode(file.getvalue()).decode()
    chunks = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
    keys = [f"a=T,f=100,{size},q=2,", *[""] * (len(chunks) - 1)]  # q=2: no reply
    more = [*[1] * (len(chunks) - 1), 0]
    pieces = zip(keys, more, chunks, strict=True)
    return PixelSequence("".join(f"\x1b_G{key}m={m};{chunk}\x1b\\" for key, m, chunk in pieces))


def sixel(pixels: NDArray[np.uint8]) -> PixelSequence:
    """Write pixels (height, width, 3) in bands of six lines, in each colour by colour."""
    from PIL import Image

    few = Image.fromarray(pixels).quantize(PALETTE)
    palette, numbers = np.array(few.getpalette()).reshape(-1, 3), np.asarray(few)
    height, width = numbers.shape
    shares = (palette * 100 / 255).round().astype(int).tolist()
    colors = "".join(f"#{n};2;{r};{g};{b}" for n, (r, g, b) in enumerate(shares))
    bands = "-".join(_band(numbers[top : top + 6]) for top in range(0, height, 6))
    return PixelSequence(f'\x1bP0;1q"1;1;{width};{height}{colors}{bands}\x1b\\')


def _band(numbers: NDArray[np.uint8]) -> str:
    """Write a band of colour numbers (up to 6, width): a letter per column, repeats counted."""
    bits = 1 << np.arange(len(numbers))
    letters = {
        color: (bits @ (numbers == color) + 63).astype(np.uint8).tobytes().decode().rstrip("?")
        for color in np.unique(numbers).tolist()
    }
    return "$".join(
        f"#{color}" + re.sub(r"(.)\1{3,}", lambda run: f"!{len(run[0])}{run[1]}", row)
        for color, row in letters.items()
    )
