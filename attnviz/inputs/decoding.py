"""Bytes to text: strict UTF-8, and an error for bytes that are not."""

import codecs
import os
import shlex

from attnviz.errors import InputError

BYTE_ORDER_MARK = "\ufeff"
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
ZIP_MARK = b"PK\x03\x04"
LOOKED_AT = 4096
"""Bytes in which a file that is no text has a zero byte."""


def decode(data: bytes, origin: str, path: str | None = None) -> str:
    """UTF-8 bytes as a text, exactly.

    Args:
        data: all the bytes, or those of one line.
        origin: their name at the beginning of a sentence: `'notes.txt'`, `line 3`.
        path: the file they come from, for the command that converts it.

    Raises:
        InputError: they are not UTF-8; the message says where.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start
        before = data[:at].count(b"\n")
        line = f", line {before + 1}" if b"\n" in data[:-1] else ""
        where = f"byte {data[at]:#04x} at offset {at}{line}"
        raise InputError(f"{origin} is not UTF-8 ({where})", _remedy(data, path)) from error


def argument_text(argument: str) -> str:
    """An argument of the command line as a text.

    Python passes bytes that it cannot decode as lone surrogates; they are decoded here.

    Raises:
        InputError: the bytes were not UTF-8, or there is a lone surrogate from elsewhere.
    """
    try:
        argument.encode("utf-8")
        return argument
    except UnicodeEncodeError as error:
        try:
            data = os.fsencode(argument)
        except UnicodeEncodeError:
            raise _half_a_character(argument, error.start) from error
    return decode(data, "the text")


def check_encodable(text: str) -> None:
    """Check that the text can be written as UTF-8.

    Raises:
        InputError: the text has a lone surrogate.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _half_a_character(text, error.start) from None


def _half_a_character(text: str, at: int) -> InputError:
    code = f"U+{ord(text[at]):04X}"
    return InputError(f"the text holds half a character ({code} at character {at})", "leave it out")


def check_not_blank(text: str, origin: str) -> None:
    """Check that there is something to show.

    Raises:
        InputError: the text is empty, or consists of spaces.
    """
    if not text.strip():
        raise InputError(f"{origin} is {'blank' if text else 'empty'}", "give at least one word")


def _remedy(data: bytes, path: str | None) -> str:
    if data.startswith(ZIP_MARK) and (path is None or path.lower().endswith(".npz")):
        return "if it is a saved capture, give it as the argument itself: attnviz show FILE.npz"
    if b"\0" in data[:LOOKED_AT] and not data.startswith(UTF16_MARKS):
        return "it is not text, but perhaps an archive, a picture or a model; give a text file"
    code = "utf-16" if data.startswith(UTF16_MARKS) else "latin1"
    name = "" if path is None else f" {shlex.quote(path)}"
    return f"convert it first, for instance with: iconv -f {code} -t utf-8{name}"
