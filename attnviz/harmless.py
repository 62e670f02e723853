"""Text from elsewhere, made harmless: what a terminal or a picture would obey is written out.

Tokens, names, titles and paths can hold escape codes, which move a terminal's cursor and repaint
what stands there, and direction marks, which reorder what stands beside them.
"""

import re
import unicodedata

LAYOUT = "\n\u200e"
_LONG = re.compile(r"(?<=')[^'\n]{81,}(?=')|(?<!\S)/\S{300,}|(?<!\S)[^/\s]\S{80,}")
COMMAND = " with: pip install "
"""What begins a command to type, which a message ends with and which is shown as a whole."""
NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def readable(text: str) -> str:
    """A text without its outer spaces, and with every control character escaped.

    A text of spaces alone becomes `␣`, so that no label is empty. Format characters (category
    Cf: direction marks, joiners) are escaped too, as they would reorder or hide the characters
    beside them.
    """
    bare = text.strip(" ") or "␣" * len(text)
    return "".join(_escaped(character) for character in bare)


def in_quotes(text: str) -> str:
    """The text in quotes, spaces and all, with every control character escaped."""
    inner = "".join(_escaped(character) for character in text)
    return '"' + inner.replace('"', '\\"') + '"'


def harmless(text: str) -> str:
    """A laid-out text with every character escaped that is no part of a layout.

    Line breaks stay, and left-to-right marks, which renderers put around words that are written
    from right to left. This is the last gate before a terminal or a picture; what comes from
    outside is made `readable` before it is laid out.
    """
    if text.isprintable():
        return text
    return "".join(c if c in LAYOUT else _escaped(c) for c in text)


def shortened(message: str) -> str:
    """A message in which no quotation, and no single word, has more than 80 characters.

    Of a longer one the beginning and the end stay, as the end of a path is its name. A full path
    that is not quoted is part of a command to type, and may have 300; what `COMMAND` begins stays.
    """
    said, *command = message.partition(COMMAND)
    return _LONG.sub(lambda found: f"{found[0][:40]}…{found[0][-39:]}", said) + "".join(command)


def _escaped(character: str) -> str:
    if character in NAMED:
        return NAMED[character]
    if unicodedata.category(character)[0] != "C" and character not in "\u2028\u2029":
        return character
    code = ord(character)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )
