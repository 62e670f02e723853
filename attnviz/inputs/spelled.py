"""Tokens from how a tokenizer spells them: `Ġcat`, `▁cat`, `##s`, `[CLS]`."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from attnviz.errors import readable
from attnviz.records.tokens import Token, numbered

SPECIAL = re.compile(r"<\|[^<>]{1,100}\|>|</?s>|<(?:pad|bos|eos)>|\[(?:CLS|SEP|PAD)\]")
"""The special tokens of GPT-2, Llama, T5, BERT and their like that stand for no text."""
BYTE = re.compile(r"<0x([0-9A-F]{2})>")
WORDPIECE, SENTENCEPIECE, SPACE = "##", "▁", "Ġ"


def tokens_of(spelled: Sequence[str]) -> tuple[str, tuple[Token, ...]]:
    """The text that tokens spell, and the tokens as its slices; equal spellings have equal ids.

    Args:
        spelled: as `convert_ids_to_tokens` gives them; or texts, which are words where none of
            them holds a space.
    """
    spelled = [name.encode(errors="replace").decode() for name in spelled]  # no lone surrogates
    special = [bool(SPECIAL.fullmatch(name)) for name in spelled]
    pieces = _pieces(["" if gone else name for name, gone in zip(spelled, special, strict=True)])
    text, character_of = _decoded(b"".join(pieces))
    ids = {name: id_ for id_, name in enumerate(dict.fromkeys(spelled))}
    tokens, begin = list[Token](), 0
    for name, gone, piece in zip(spelled, special, pieces, strict=True):
        last = max(begin, begin + len(piece) - 1)
        start, end = character_of[begin], character_of[last] + bool(piece)
        named = readable(name) if gone else Token.name
        tokens.append(Token(0, ids[name], text[start:end], start, end, special=gone, name=named))
        begin += len(piece)
    return text, numbered(_in_parts(tokens))


def _pieces(spelled: Sequence[str]) -> list[bytes]:
    """The bytes that each token adds to the text."""
    if any(SPACE in name for name in spelled):
        byte_of = _bytes_of_letters()
        if all(letter in byte_of for name in spelled for letter in name):
            return [bytes(byte_of[letter] for letter in name) for name in spelled]
    if any(name.startswith(SENTENCEPIECE) or BYTE.fullmatch(name) for name in spelled):
        bytes_of = [(BYTE.fullmatch(name), name.replace(SENTENCEPIECE, " ")) for name in spelled]
        return [bytes([int(byte[1], 16)]) if byte else name.encode() for byte, name in bytes_of]
    if any(" " in name for name in spelled):
        return [name.encode() for name in spelled]
    pieces, begun = list[bytes](), False
    for name in spelled:
        inner = name.startswith(WORDPIECE) and name != WORDPIECE
        bare = name.removeprefix(WORDPIECE) if inner else name
        pieces.append((" " if begun and bare and not inner else "").encode() + bare.encode())
        begun = begun or bool(name)
    return pieces


def _bytes_of_letters() -> dict[str, int]:
    """The byte that each letter of a byte-level vocabulary stands for (GPT-2, Radford 2019).

    Bytes that can be printed stand for themselves, the others for letters from 256 on.
    """
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printed]
    known = {chr(byte): byte for byte in printed}
    return known | {chr(256 + number): byte for number, byte in enumerate(others)}


def _decoded(data: bytes) -> tuple[str, list[int]]:
    """The text of some bytes, and the character of each byte (n_bytes + 1); � where it is none."""
    characters = data.decode("utf-8", "surrogateescape")
    character_of = [
        number
        for number, character in enumerate(characters)
        for _ in character.encode("utf-8", "surrogateescape")
    ]
    text = re.sub("[\udc80-\udcff]", "\ufffd", characters)
    return text, [*character_of, len(text)]


def _in_parts(tokens: Sequence[Token]) -> list[Token]:
    """The tokens; those that share one character are numbered."""
    shared = Counter(t.start for t in tokens if t.end - t.start == 1)
    seen, marked = Counter[int](), list[Token]()
    for token in tokens:
        if token.end - token.start == 1 and shared[token.start] > 1:
            seen[token.start] += 1
            token = replace(token, part=(seen[token.start], shared[token.start]))
        marked.append(token)
    return marked
