"""Letters in pictures: which installed fonts have them, and what is written where none has.

DejaVu Sans comes with matplotlib and has Latin, Greek, Cyrillic, Arabic and many signs.
For other letters (楚) the installed fonts are searched; a letter that none of them has is
written as its code point, U+695A, instead of as an empty box.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

FIRST = "DejaVu Sans"
# They have a stand-in for every letter, or bitmaps that cannot be scaled.
_UNSUITABLE = ("last resort", "lastresort", "color emoji", "colour emoji")


@dataclass(frozen=True)
class Lettering:
    """The font families to draw with, in order, and the letters that none of them has."""

    families: tuple[str, ...] = (FIRST,)
    missing: frozenset[str] = frozenset()

    def spell(self, text: str) -> str:
        """The text with each missing letter as its code point."""
        if not self.missing.intersection(text):
            return text
        parts = [f" U+{ord(c):04X} " if c in self.missing else c for c in text]
        return " ".join("".join(parts).split())

    @property
    def note(self) -> str | None:
        """One sentence on what could not be drawn; None where everything could."""
        if not self.missing:
            return None
        some = sorted(self.missing)
        codes = ", ".join(f"U+{ord(letter):04X}" for letter in some[:3])
        more = f" and {len(some) - 3:,} more" if len(some) > 3 else ""
        return (
            f"no installed font has {codes}{more}, so the picture shows code points; "
            "install a font that has them, such as one of the Noto fonts"
        )


def lettering(texts: Iterable[str]) -> Lettering:
    """The fonts that these texts need."""
    wanted = {letter for text in texts for letter in text if letter.isprintable()}
    return _lettering(frozenset(wanted))


@lru_cache(maxsize=8)
def _lettering(wanted: frozenset[str]) -> Lettering:
    from matplotlib.font_manager import findfont

    missing = wanted - _letters_of(findfont(FIRST), wanted)
    families = [FIRST]
    for name, path in _other_fonts() if missing else ():
        found = _letters_of(path, missing)
        if found and findfont(name) != path:  # the family's regular face, which will be used
            found = _letters_of(findfont(name), missing)
        if found:
            families.append(name)
            missing -= found
        if not missing:
            break
    return Lettering(tuple(families), frozenset(missing))


def _other_fonts() -> list[tuple[str, str]]:
    """Family and file of every installed upright font: sans-serif, regular, alphabetical first."""
    from matplotlib.font_manager import fontManager

    entries = [
        entry
        for entry in fontManager.ttflist
        if entry.style == "normal" and not any(word in entry.name.lower() for word in _UNSUITABLE)
    ]

    def rank(entry: object) -> tuple[bool, bool, str, str]:
        name, weight = str(getattr(entry, "name", "")), getattr(entry, "weight", 400)
        plain = weight in (400, "normal", "regular", "book")
        return "sans" not in name.lower(), not plain, name, str(getattr(entry, "fname", ""))

    return [(entry.name, entry.fname) for entry in sorted(entries, key=rank)]


def _letters_of(path: str, wanted: frozenset[str]) -> frozenset[str]:
    """The wanted letters for which the font file has a shape."""
    from matplotlib.font_manager import get_font

    try:
        font = get_font(path)
        if not font.scalable:
            return frozenset()
        return frozenset(letter for letter in wanted if font.get_char_index(ord(letter)))
    except (OSError, RuntimeError):  # a font file that is gone, or that cannot be read
        return frozenset()
