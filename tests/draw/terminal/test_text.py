"""The text view: the whole text, shaded by one query."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.draw.terminal.text import pieces_of, render
from attnviz.errors import UsageError
from attnviz.records.capture import LayerPattern
from attnviz.records.exhibit import Exhibit
from attnviz.records.heads import Head
from attnviz.records.tokens import Token
from tests.factories import make_capture, make_exhibit, view_lines


def seen_by(query: int, words: str | list[str], weights: list[float], bos: bool = False) -> Exhibit:
    n = len(weights)
    pattern = np.eye(n, dtype=np.float32)
    pattern[query] = weights
    capture = make_capture(words, patterns={Head(0, 0): pattern}, bos=bos)
    return make_exhibit(capture, queries=[query])


def lines(exhibit: Exhibit, width: int = 80, **display: bool) -> list[str]:
    return view_lines(render, exhibit, width, **display)


def test_the_summary_ranks_what_is_shaded() -> None:
    """Parts of a letter are one piece: their sum is shaded, and their sum is ranked."""
    parts = [Token(n, n, "楚", 2, 3, part=(n, 3)) for n in (1, 2, 3)]
    exhibit = of_tokens("a 楚 b", [Token(0, 0, "a", 0, 1), *parts, Token(4, 4, " b", 3, 5)])
    for color in (False, True):
        mark = "underlined" if color else "^"
        said = re.sub("\x1b\\[[0-9;]*m", "", "\n".join(lines(exhibit, color=color)))
        assert f"b ({mark}) attends to 楚 0.60, a 0.20, b 0.20" in said


def test_in_colour_a_line_says_the_scale_and_faint_words_have_no_background() -> None:
    words = "a blue cat ran off"
    text = lines(seen_by(4, words, [0.02, 0.6, 0.04, 0.029, 0.3]), color=True)
    assert re.search(r"^\x1b\[[0-9;]*m0 |^0 ", text[-1])
    plain = re.sub("\x1b\\[[0-9;]*m", "", text[-1])
    assert re.fullmatch(r"0 {18}0\.60, no colour: under 0\.03, dim: masked", plain)
    shown = next(line for line in text if "blue" in line)
    assert [bool(re.search(f"48;2;[0-9;]*m{word}", shown)) for word in words.split()] == [
        *(False, True, True, False, True)
    ]


def test_a_weight_above_1_keeps_all_its_digits() -> None:
    assert any(re.search(r"(^| )10\.50", line) for line in lines(seen_by(1, "a b", [10.5, 0.5])))


def test_the_text_keeps_its_lines_and_indents() -> None:
    words = ["def", " f", ":", "\n    return", " 1", "\n\nend"]
    text = lines(seen_by(5, words, [0, 0, 0, 0, 0, 1]))
    start = text.index("def f:")
    assert text[start : start + 4] == ["def f:", "    return 1", "", "end"]


def test_pieces_of_a_word_stay_together() -> None:
    text = lines(seen_by(3, ["un", "believ", "able", " story"], [0.5, 0.2, 0.1, 0.2]))
    start = text.index("unbelievable story")
    assert text[start + 1] == ".80          ^.20"
    assert text[start + 3] == "story (^) attends to unbelievable 0.80, story 0.20"
    assert "short pieces of a word are summed" in " ".join(text)


def test_pieces_that_have_room_for_their_numbers_keep_them() -> None:
    text = lines(seen_by(3, ["fluff", "iest", ".", " story"], [0.5, 0.2, 0.1, 0.2]))
    assert text[text.index("fluffiest.   story") + 1] == ".50  .20 .10 ^.20"


def test_a_query_that_is_a_part_of_a_marked_word_is_said_to_be() -> None:
    text = lines(seen_by(2, ["a", " cre", "atures", " ran"], [0.6, 0.25, 0.15, 0]))
    assert text[text.index("a   creatures ran") + 1] == ".60 ^.40"
    assert "atures in creatures (^) attends to a 0.60, creatures 0.40" in text


def test_letters_without_spaces_are_summed_no_further_than_they_have_to_be() -> None:
    text = lines(seen_by(29, ["a"] * 30, [1 / 30] * 30))
    start = text.index("a" * 30)
    assert text[start + 1].split()[:2] == [".13", ".13"]


def test_wide_letters_stand_apart_and_each_has_its_own_number() -> None:
    text = lines(seen_by(29, ["楚"] * 30, [1 / 30] * 30))
    shown = " ".join(line for line in text if set(line) <= set("楚 .03^")).split()
    assert shown.count("楚") == 30
    assert shown.count(".03") + shown.count("^.03") == 30


@pytest.mark.parametrize("width", [40, 80])
def test_long_texts_wrap_between_words(width: int) -> None:
    words = " ".join(f"word{n}" for n in range(60))
    text = lines(seen_by(59, words, [0.0] * 59 + [1.0]), width)
    assert " ".join(" ".join(line for line in text if "word" in line).split()[:60]) == words


def of_tokens(text: str, tokens: list[Token], query: int = -1, bos: bool = False) -> Exhibit:
    """A head whose queries look everywhere alike, over tokens that are given."""
    if bos:
        tokens = [Token(0, 0, "", 0, 0, special=True), *tokens]
    tokens = [replace(token, index=index) for index, token in enumerate(tokens)]
    n = len(tokens)
    capture = replace(
        make_capture(["x"] * n, bos=False),
        text=text,
        query_tokens=tuple(tokens),
        key_tokens=tuple(tokens),
        layers=(LayerPattern(0, (0,), np.full((1, n, n), 1 / n, np.float32)),),
        bos=bos,
    )
    return make_exhibit(capture, queries=[query % n])


def slices(text: str, *places: tuple[int, int]) -> list[Token]:
    """Tokens at these places; those that overlap the one before are numbered as its parts."""
    tokens = []
    for n, (start, end) in enumerate(places):
        part = (2, 2) if n and start < places[n - 1][1] else None
        tokens.append(Token(n, n, text[start:end], start, end, part=part))
    return tokens


def read(exhibit: Exhibit, **display: bool) -> list[str]:
    """The lines in colour, where nothing stands between words but what the text has."""
    return [re.sub("\x1b\\[[0-9;]*m", "", line) for line in lines(exhibit, color=True, **display)]


def source_of(exhibit: Exhibit) -> str:
    """The source, as far as the pieces tell; spaces at the end of a line lay nothing out."""
    pieces = pieces_of(exhibit, exhibit.maps[0])
    text = "".join("\n" * p.lines + " " * p.spaces + p.written for p in pieces)
    return bare(text.replace("\\n", "\n"))


def bare(text: str) -> str:
    return re.sub(" *\n *", "\n", text)


def test_text_between_tokens_is_kept() -> None:
    assert "a b c" in read(of_tokens("a b c", slices("a b c", (0, 1), (3, 5))))


def test_a_token_with_the_end_of_one_letter_and_another_letter_loses_neither() -> None:
    text = "a 楚留香"
    tokens = slices(text, (0, 1), (1, 3), (2, 3), (2, 4), (4, 5))  # the fourth: 楚's end and 留
    exhibit = of_tokens(text, tokens)
    pieces = [p for p in pieces_of(exhibit, exhibit.maps[0]) if p.written]
    assert [p.written for p in pieces] == ["a", "楚留", "香"]
    assert [p.weight for p in pieces] == pytest.approx([0.2, 0.6, 0.2])
    assert "a 楚留香" in read(exhibit)


@given(
    text=st.text(alphabet="ab楚é🙂ש \n", min_size=1, max_size=14),
    steps=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=14),
    bos=st.booleans(),
)
def test_pieces_are_the_whole_source_however_tokens_overlap(
    text: str, steps: list[tuple[int, int]], bos: bool
) -> None:
    """Each token begins up to two letters before the end of the one before, and goes on."""
    places, end = [], 0
    for back, more in steps:
        start, end = max(0, end - back), min(len(text), end + more)
        places.append((start, end))
    places.append((end, len(text)))  # whatever is left
    exhibit = of_tokens(text, slices(text, *places), bos=bos)
    said = source_of(exhibit)
    if bos:
        assert said.startswith("BOS") or said.startswith(" BOS")
        said = said.partition("BOS")[2]
    assert said.lstrip(" ") == bare(text).lstrip(" ")
    weights = [p.weight or 0.0 for p in pieces_of(exhibit, exhibit.maps[0])]
    assert sum(weights) <= 1.0001


CUT = "one two three four five"


@pytest.mark.parametrize(
    ("places", "bos", "shown"),
    [
        ([(7, 13), (13, 18)], False, "… three four …"),
        ([(8, 13), (13, 18)], False, "… three four …"),  # as tokenizers that leave spaces out
        ([(0, 3), (3, 7)], False, "one two …"),
        ([(0, 3), (3, 6)], False, "one tw…"),
        ([(13, 18), (18, 23)], False, "… four five"),
        ([(18, 23)], True, "BOS … five"),
        ([(0, 3), (3, 7), (7, 13), (13, 18), (18, 23)], False, CUT),
    ],
)
def test_what_was_cut_off_is_three_dots(
    places: list[tuple[int, int]], bos: bool, shown: str
) -> None:
    exhibit = of_tokens(CUT, slices(CUT, *places), bos=bos)
    assert shown in read(exhibit)
    assert shown.replace("…", "...") in read(exhibit, unicode=False)


def test_a_letter_whose_first_part_was_cut_off_is_no_part_of_bos() -> None:
    tokens = [Token(0, 0, "楚", 1, 2, part=(2, 2)), Token(1, 1, " b", 2, 4)]
    exhibit = of_tokens("a楚 b", tokens, bos=True)
    written = [p.written for p in pieces_of(exhibit, exhibit.maps[0])]
    assert written == ["BOS", "…", "楚", "b"]


def test_blanks_that_no_token_covers_are_not_called_cut_off() -> None:
    assert "a b" in read(of_tokens(" a b \n", slices(" a b \n", (1, 2), (3, 4))))


def test_a_letter_cut_into_bytes_is_one_piece_with_the_sum_of_its_weights() -> None:
    parts = [Token(n, n, "楚", 2, 3, part=(n, 3)) for n in (1, 2, 3)]
    exhibit = of_tokens("a 楚", [Token(0, 0, "a", 0, 1), *parts], query=3)
    pieces = pieces_of(exhibit, exhibit.maps[0])
    assert [p.written for p in pieces if p.written] == ["a", "楚"]
    assert pieces[-1].weight == pytest.approx(0.75)
    assert pieces[-1].query


def test_a_token_of_white_space_is_written_out_where_it_is_looked_at() -> None:
    assert any("\\n" in line for line in lines(seen_by(2, ["a", "\n", "b"], [0, 0.9, 0.1])))
    assert not any("\\n" in line for line in lines(seen_by(2, ["a", "\n", "b"], [0.9, 0, 0.1])))


@pytest.mark.parametrize("queries", [[], [0, 1]])
def test_more_or_fewer_queries_than_one_are_refused(queries: list[int]) -> None:
    with pytest.raises(UsageError, match=r"one query at a time.*query"):
        render(make_exhibit(queries=queries))


def test_in_the_decoder_the_text_is_what_was_written_and_no_key_is_the_query() -> None:
    written = "un chat bleu"
    tokens = (Token(0, 1, "un", 0, 2), Token(1, 2, " chat", 2, 7), Token(2, 3, " bleu", 7, 12))
    begin = Token(0, -1, "", 0, 0, special=True)
    keys = (begin, replace(tokens[0], index=1), replace(tokens[1], index=2))
    exhibit = seen_by(2, ["x"] * 3, [0.25, 0.25, 0.5])
    capture = replace(
        exhibit.capture,
        text="a blue cat",
        target=written,
        kind="decoder",
        query_tokens=tokens,
        key_tokens=keys,
    )
    pieces = pieces_of(replace(exhibit, capture=capture), exhibit.maps[0])
    assert [piece.written for piece in pieces] == ["BOS", "un", "chat", "…"]  # the last: not read
    assert not any(piece.query for piece in pieces)


def test_a_special_token_is_written_as_its_label() -> None:
    tokens = (
        Token(0, 1, "", 0, 0, special=True, name="[CLS]"),
        Token(1, 2, "cat", 0, 3),
        Token(2, 3, "", 3, 3, special=True, name="[SEP]"),
    )
    exhibit = seen_by(1, ["x"] * 3, [0.25, 0.25, 0.5])
    capture = replace(exhibit.capture, text="cat", query_tokens=tokens, key_tokens=tokens)
    pieces = pieces_of(replace(exhibit, capture=capture), exhibit.maps[0])
    assert [piece.written for piece in pieces] == ["[CLS]", "cat", "[SEP]"]
