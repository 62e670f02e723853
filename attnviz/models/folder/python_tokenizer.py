"""A tokenizer that transformers has only in Python, with the places of its tokens.

It tells none. What a token spells is looked for in the text, in order, without case, accents and
spaces; letters in several tokens of bytes are spelled together, and tokens of unknown words fill
what is left between others.
"""

import re
from collections.abc import Sequence
from itertools import takewhile
from types import SimpleNamespace
from typing import Any
from unicodedata import category, normalize

from tokenizers import AddedToken

from attnviz.errors import UsageError, option

MARKS = re.compile(r"(?<=.)(?:@@|</w>)$|^##(?=.)", re.DOTALL)  # of parts of words
ALIKE = str.maketrans("‘’‚“”„–—", "'''\"\"\"--")
AHEAD, MOST_OF_A_LETTER = 3, 4
"""The number of tokens that show where unknown ones end, and the most that spell one letter."""


class PythonTokenizer:
    """A tokenizer of transformers in Python, with the interface of the compiled library."""

    encode_special_tokens = True

    def __init__(self, own: Any) -> None:
        words = own.get_vocab()
        self.own, self.decode, self.get_vocab = own, own.decode, own.get_vocab
        self.token_to_id, self.id_to_token = words.get, own.convert_ids_to_tokens
        self.no_truncation = self.no_padding = lambda: None
        self.get_vocab_size, self.to_str = own.__len__, lambda: repr(sorted(words.items()))
        named = zip(own.all_special_ids, own.all_special_tokens, strict=True)
        self.special = {id_: AddedToken(name, special=True) for id_, name in named}
        self.get_added_tokens_decoder = self.special.copy
        table: list[Any] = [[]] if "Tapas" in type(own).__name__ else []  # an empty one
        around = own.build_inputs_with_special_tokens([-1], *table)
        self.before, self.after = around[: around.index(-1)], around[around.index(-1) + 1 :]
        self.num_special_tokens_to_add = lambda _pair: len(around) - 1

    def encode(self, text: str, pair: str | None, add_special_tokens: bool) -> SimpleNamespace:
        """The tokens with their places; one that has none is as a special one."""
        if pair is not None:
            wrong = "its tokenizer is only in Python, which reads no pairs"
            raise UsageError(wrong, f"leave {option('text_pair')} out")
        # some cut at every token of theirs as at a special one (ESM)
        spelled = any(token.content in text for token in self.special.values())
        plain = self.encode_special_tokens and spelled
        tokens, unknown = self.own.tokenize(text, split_special_tokens=plain), self.own.unk_token
        if add_special_tokens:
            before, after = map(self.own.convert_ids_to_tokens, (self.before, self.after))
            tokens = [*before, *tokens, *after]
        ids = self.own.convert_tokens_to_ids(tokens)
        special = [id_ in self.special and id_ != self.own.unk_token_id for id_ in ids]
        groups, group = list[tuple[str | None, int]](), list[str]()
        for token, apart in zip(tokens, special, strict=True):
            group.append(token)
            letters: str | None = MARKS.sub("", self.own.convert_tokens_to_string(group))
            if apart or token == unknown:
                letters = "" if apart else None
            elif not letters or "\ufffd" in letters:  # a part of one, in bytes
                letters = None
                if len(group) < MOST_OF_A_LETTER:
                    continue
            groups.append((letters, len(group)))
            group = []
        found = zip(_aligned(text, [letters for letters, _ in groups]), groups, strict=True)
        places = [place for place, (_, count) in found for _ in range(count)] + [None] * len(group)
        offsets = [place or (0, 0) for place in places]
        mask = [apart or not place for apart, place in zip(special, places, strict=True)]
        none = [None] * len(ids)
        return SimpleNamespace(
            ids=ids, tokens=tokens, offsets=offsets, special_tokens_mask=mask, sequence_ids=none
        )


def _letters(text: str) -> list[tuple[str, int]]:
    """The letters of a text without case, accents and spaces, each with its place."""
    return [
        (letter, at)
        for at, character in enumerate(text)
        for letter in normalize("NFKD", character.translate(ALIKE).casefold())
        if category(letter) != "Mn" and not letter.isspace()
    ]


def _plain(text: str) -> str:
    return "".join(letter for letter, _ in _letters(text))


def _aligned(text: str, spelled: Sequence[str | None]) -> list[tuple[int, int] | None]:
    """The place in a text of each of these, in order; unknown pieces (None) fill the gaps."""
    letters, places = _letters(text), list[tuple[int, int] | None]([None] * len(spelled))
    plain, owners = _plain(text), [at for _, at in letters]
    waiting, at, n = list[int](), 0, 0  # n: the letter from which on text is left

    def settle(end: int) -> None:
        words = [word.span() for word in re.compile(r"\S+").finditer(text, at, end)]
        if words and len(words) != len(waiting):
            words = [(words[0][0], words[-1][1])] * len(waiting)
        for number, place in zip(waiting, words, strict=False):
            places[number] = place
        waiting.clear()

    for number, each in enumerate(spelled):
        if not each:
            waiting += [number] * (each is None)
            continue
        wanted, begin, first = _plain(each), at, n
        if waiting:  # as many letters as show where it begins
            ahead = spelled[number : number + AHEAD]
            behind = re.escape("".join(_plain(each or "") for each in takewhile(bool, ahead)))
            found = re.compile(f"(?={behind})").finditer(plain, n) if wanted else ()
            starts = [each.start() for each in found if each.start() < len(plain)]
            to_the_end = number + AHEAD >= len(spelled) and None not in ahead
            words = [n for n in starts if not text[max(0, owners[n] - 1) :][:2].isalnum()]
            first = next(iter(starts[-1:] if to_the_end else words or starts), -1)
            begin = owners[first] if first >= 0 else len(text)
        exact = each.rstrip() or each
        if text.startswith(exact, begin):
            place = begin, begin + len(exact)
        elif wanted and first >= 0 and plain.startswith(wanted, first):
            place = owners[first], owners[first + len(wanted) - 1] + 1
        else:
            waiting.append(number)
            continue
        settle(place[0])
        places[number], at = place, place[1]
        n = first + len(wanted)
    settle(len(text))
    return places
