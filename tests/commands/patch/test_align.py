"""Which position of one text takes its vectors from which of another."""

import pytest

import attnviz
from attnviz.errors import AttnvizError
from attnviz.kit.intervene import aligned


def places(text: str, source: str, *words: str) -> tuple[int | None, ...]:
    ours, theirs = (attnviz.capture(each, heads="L0H0").record for each in (text, source))
    return aligned(ours, theirs, words)


def test_texts_of_one_length_are_aligned_position_by_position() -> None:
    assert places("a blue bird", "a red bird") == (0, 1, 2, 3)


def test_both_ends_and_the_named_words_are_aligned_and_nothing_else() -> None:
    assert places("a blue bird slept .", "a red big bird slept .", "blue=red") == (
        *(0, 1),  # BOS, a
        2,
        *(4, 5, 6),
    )
    longer = places("a blue old bird slept .", "a red bird slept .", "blue=red")
    assert longer == (0, 1, 2, None, 3, 4, 5)


def test_no_position_of_the_source_is_taken_twice() -> None:
    found = places("a bird slept slept slept .", "a bird slept .", ".=.")
    taken = [place for place in found if place is not None]
    assert len(set(taken)) == len(taken) == 5


@pytest.mark.parametrize("word", ["text", "99", "/text/", "text#2"])
def test_a_word_that_the_source_lacks_is_missed_in_the_source(word: str) -> None:
    with pytest.raises(AttnvizError, match=r"in (the|this) source;"):
        places("a text slept", "a bird slept", f"a={word}")
    with pytest.raises(AttnvizError, match=r"in (the|this) text;"):
        places("a bird slept", "a text slept", f"{word}=a")


def test_words_are_aligned_occurrence_by_occurrence() -> None:
    text, source = "a blue bird and a blue fox ran .", "a red bird and the red fox ran off ."
    assert places(text, source, "blue=red")[2] == 2
    assert places(text, source, "blue=red")[6] == 6
    with pytest.raises(AttnvizError, match="occurs 2 times in the text, and 'red#1' 1 time"):
        places(text, source, "blue=red#1")
