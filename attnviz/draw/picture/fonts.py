"""Letters in pictures: which installed fonts have them, and what is written where none has.

DejaVu Sans comes with matplotlib and has Latin, Greek, Cyrillic, Arabic and many signs.
For other letters (楚) the installed fonts are searched, also those that were installed since
matplotlib made its list of them; a letter that none of them has is written as its code point,
U+695A, instead of as an empty box. Matplotlib itself joins, orders and stacks what stands together
(Arabic, Hebrew, Devanagari, Thai).
"""

import contextlib
import unicodedata
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
    def notes(self) -> tuple[str, ...]:
        """One sentence on what could not be drawn; none where everything could."""
        if not self.missing:
            return ()
        some = sorted(self.missing)
        codes = ", ".join(f"U+{ord(letter):04X}" for letter in some[:3])
        more = f" and {len(some) - 3:,} more" if len(some) > 3 else ""
        said = f"no installed font has {codes}{more}, so the picture shows code points"
        east = {unicodedata.name(letter, "").startswith(_EAST_ASIAN) for letter in some}
        packages = [_NOTO["CJK" if which else ""] for which in sorted(east, reverse=True)]
        return (f"{said}; install one that has them: {' and '.join(packages)}",)


_NOTO = {"CJK": "Noto Sans CJK (Debian, Ubuntu: fonts-noto-cjk)", "": "Noto (fonts-noto-core)"}
_EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC")


def lettering(texts: Iterable[str]) -> Lettering:
    wanted = frozenset(letter for text in texts for letter in text if letter.isprintable())
    found = _lettering(wanted)
    if found.missing:
        _lettering.cache_clear()  # a font that has them may be installed meanwhile
        found = _lettering(wanted) if _add_new_fonts() else found
    return found


@lru_cache(maxsize=8)
def _lettering(wanted: frozenset[str]) -> Lettering:
    from matplotlib.font_manager import findfont

    missing = wanted - _letters_of(findfont(FIRST), wanted)
    families = [FIRST]
    for name, path in _other_fonts(_region(missing)) if missing else ():
        found = _letters_of(path, missing)
        if found and findfont(name) != path:  # the family's regular face, which will be used
            found = _letters_of(findfont(name), missing)
        if found:
            families.append(name)
            missing -= found
        if not missing:
            break
    return Lettering(tuple(families), frozenset(missing))


def _region(letters: Iterable[str]) -> str:
    """Whose forms of Chinese characters are wanted, as fonts are named: JP, KR or SC."""
    names = [unicodedata.name(letter, "") for letter in letters]
    if any(name.startswith(("HIRAGANA", "KATAKANA")) for name in names):
        return "JP"
    return "KR" if any(name.startswith("HANGUL") for name in names) else "SC"


def _add_new_fonts() -> int:
    """Make the fonts known that are not in the list which matplotlib keeps; how many there are."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    known, before = {entry.fname for entry in fontManager.ttflist}, len(fontManager.ttflist)
    for path in sorted({*findSystemFonts()} - known):
        with contextlib.suppress(OSError, RuntimeError, ValueError):  # one that cannot be read
            fontManager.addfont(path)
    return len(fontManager.ttflist) - before


def _other_fonts(region: str) -> list[tuple[str, str]]:
    """Family and file of every installed upright font.

    Sans-serif first, then regular, then those of the region, then alphabetical.
    """
    from matplotlib.font_manager import fontManager

    entries = [
        entry
        for entry in fontManager.ttflist
        if entry.style == "normal" and not any(word in entry.name.lower() for word in _UNSUITABLE)
    ]

    def rank(entry: object) -> tuple[bool, bool, bool, str, str]:
        name, weight = str(getattr(entry, "name", "")), getattr(entry, "weight", 400)
        plain = weight in (400, "normal", "regular", "book")
        where = region not in name.split()
        return "sans" not in name.lower(), not plain, where, name, str(getattr(entry, "fname", ""))

    return [(entry.name, entry.fname) for entry in sorted(entries, key=rank)]


def _letters_of(path: str, wanted: frozenset[str]) -> frozenset[str]:
    from matplotlib.font_manager import get_font

    try:
        font = get_font(path)
        if not font.scalable:
            return frozenset()
        return frozenset(letter for letter in wanted if font.get_char_index(ord(letter)))
    except (OSError, RuntimeError):  # a font file that is gone, or that cannot be read
        return frozenset()
