"""The text view: the whole text, shaded by one query."""

import numpy as np
import pytest

from attnviz.console import Display
from attnviz.data.exhibit import Exhibit
from attnviz.data.heads import Head
from attnviz.data.tokens import Token
from attnviz.errors import UsageError
from attnviz.renderers.text import pieces_of, render
from tests.factories import make_capture, make_exhibit, printed


def seen_by(query: int, words: str | list[str], weights: list[float], bos: bool = False) -> Exhibit:
    n = len(weights)
    pattern = np.eye(n, dtype=np.float32)
    pattern[query] = weights
    capture = make_capture(words, patterns={Head(0, 0): pattern}, bos=bos)
    return make_exhibit(capture, queries=[query])


def lines(exhibit: Exhibit, width: int = 80, **display: bool) -> list[str]:
    shown = Display(width, **display)
    return printed(render(exhibit, shown), shown)


def test_weights_stand_below_their_words_without_colour() -> None:
    text = lines(seen_by(3, "a fluffy blue creature ran", [0, 0.5, 0.4, 0.1, 0]))
    words = text.index("a fluffy blue creature ran")
    below = text[words + 1]
    assert below.index(".50") == 2
    assert below.index(".40") == 9
    assert below.index("^.10") == 14


def test_the_query_is_underlined_in_colour_and_the_strongest_word_brightest() -> None:
    text = "".join(lines(seen_by(2, "a blue cat ran", [0.1, 0.8, 0.1, 0]), color=True))
    assert "48;2;253;231;37mblue" in text
    underlined = text[: text.index("mcat")].rpartition("\x1b[")[2]
    assert underlined.split(";")[:2] == ["1", "4"]


def test_the_strongest_keys_are_said_in_words() -> None:
    text = lines(seen_by(3, "a fluffy blue creature", [0, 0.5, 0.4, 0.1]))
    assert text[-1] == "creature (^) looks at fluffy 0.50, blue 0.40, creature 0.10"


def test_the_text_keeps_its_lines_and_indents() -> None:
    words = ["def", " f", ":", "\n    return", " 1", "\n\nend"]
    text = lines(seen_by(5, words, [0, 0, 0, 0, 0, 1]))
    start = text.index("def f:")
    assert text[start : start + 4] == ["def f:", "    return 1", "", "end"]


def test_pieces_of_a_word_stay_together() -> None:
    text = lines(seen_by(3, ["un", "believ", "able", " story"], [0.5, 0.5, 0, 0]))
    assert "un··believable story" in text  # filled, so that it isn't read as two words


@pytest.mark.parametrize("width", [40, 80])
def test_long_texts_wrap_between_words(width: int) -> None:
    words = " ".join(f"word{n}" for n in range(60))
    text = lines(seen_by(59, words, [0.0] * 59 + [1.0]), width)
    assert " ".join(" ".join(line for line in text if "word" in line).split()[:60]) == words


def test_text_between_tokens_is_kept() -> None:
    capture = make_capture(["a", " b", " c"])
    tokens = capture.query_tokens[:1] + capture.query_tokens[2:]
    lacking = tuple(Token(n, t.id, t.text, t.start, t.end) for n, t in enumerate(tokens))
    from dataclasses import replace

    from attnviz.data.capture import LayerPattern

    eye = np.eye(2, dtype=np.float32)[None]
    cut = replace(
        capture,
        query_tokens=lacking,
        key_tokens=lacking,
        layers=(LayerPattern(0, (0,), eye),),
    )
    assert "a b c" in lines(make_exhibit(cut, queries=[1]))


def test_a_letter_cut_into_bytes_is_one_piece_with_the_sum_of_its_weights() -> None:
    capture = make_capture(["a", " 楚"])
    parts = [Token(n, n, "楚", 2, 3, part=(n, 3)) for n in (1, 2, 3)]
    from dataclasses import replace

    from attnviz.data.capture import LayerPattern

    tokens = (capture.query_tokens[0], *parts)
    weights = np.full((1, 4, 4), 0.25, np.float32)
    whole = replace(
        capture,
        query_tokens=tokens,
        key_tokens=tokens,
        layers=(LayerPattern(0, (0,), weights),),
    )
    exhibit = make_exhibit(whole, queries=[3])
    pieces = pieces_of(exhibit, exhibit.maps[0])
    assert [p.written for p in pieces if p.written] == ["a", "楚"]
    assert pieces[-1].weight == pytest.approx(0.75)
    assert pieces[-1].query


def test_a_token_of_white_space_is_written_out_where_it_is_looked_at() -> None:
    assert any("\\n" in line for line in lines(seen_by(2, ["a", "\n", "b"], [0, 0.9, 0.1])))
    assert not any("\\n" in line for line in lines(seen_by(2, ["a", "\n", "b"], [0.9, 0, 0.1])))


def test_bos_is_set_apart_from_the_text() -> None:
    assert any(line.startswith("BOS ") for line in lines(seen_by(1, "a", [0.5, 0.5], bos=True)))


@pytest.mark.parametrize("queries", [[], [0, 1]])
def test_more_or_fewer_queries_than_one_are_refused(queries: list[int]) -> None:
    with pytest.raises(UsageError, match=r"one query at a time.*--query"):
        render(make_exhibit(queries=queries))
