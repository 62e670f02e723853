"""The first line: what is so on the text, then what a head is known for, then why it is shown."""

from dataclasses import replace

import pytest

from attnviz.draw.headlines import about, map_title
from attnviz.errors import as_argument
from attnviz.records.exhibit import Choice
from attnviz.records.heads import Finding, FoundLink, Habit, Head, NamedHead, Tendency
from tests.factories import make_capture, make_exhibit

HEAD = Head(0, 1)
NAMED = NamedHead("adjectives", HEAD, "nouns attend to their adjectives")
ALSO = NamedHead("previous token", HEAD, "each token attends to the one before it")
PAIR = Finding((FoundLink(4, 3, 0.69), FoundLink(4, 2, 0.3)), "adjectives")
CAPTURE = make_capture(named_heads=(NAMED, ALSO), bos=True)
EXHIBIT = replace(make_exhibit(CAPTURE, heads=[HEAD]), caption="")


def test_a_named_head_that_acts_is_told_by_its_links_and_by_no_other_behaviour() -> None:
    shown = replace(EXHIBIT, choice=Choice((HEAD,), "acts", NAMED), finding=PAIR)
    title = "L0H1: creature → blue .69, fluffy .30 · known for: nouns attend to their adjectives"
    # the adjective before the noun is found by position: BOS, a, fluffy, blue, creature
    assert map_title(shown, shown.maps[0]) == title
    assert about(shown) == f"{title} (chosen automatically)"
    how = "(chosen automatically; heads='all' shows every head)"
    assert about(shown, as_argument) == f"{title} {how}"


def test_a_head_that_the_user_named_has_no_claim() -> None:
    shown = replace(EXHIBIT, choice=Choice((HEAD,)))
    assert about(shown).startswith("L0H1 · known for: nouns attend")
    assert map_title(shown, shown.maps[0]) == about(shown)


def test_what_a_head_that_the_user_named_does_not_do_here_is_said() -> None:
    idle = replace(EXHIBIT, choice=Choice((HEAD,), idle=(NAMED,)))
    assert map_title(idle, idle.maps[0]) == f"L0H1 · known for: {ALSO.title}"
    idle = replace(EXHIBIT, choice=Choice((HEAD,), idle=(NAMED, ALSO)))
    said = f"L0H1 · known for: {NAMED.title}; {ALSO.title} (not on this text)"
    assert map_title(idle, idle.maps[0]) == said


def test_several_rows_are_apart() -> None:
    links = (*PAIR.links, FoundLink(8, 7, 1.0))
    shown = replace(
        EXHIBIT, choice=Choice((HEAD,), "acts", NAMED), finding=Finding(links, "adjectives")
    )
    assert "creature → blue .69, fluffy .30; forest → verdant 1.00 · " in about(shown)


@pytest.mark.parametrize(
    ("tendency", "said"),
    [
        (("previous", 9, 12, None), "9 of 12 tokens attend most to the one before"),
        (("self", 12, 12, None), "all 12 tokens attend most to themselves"),
        (("followers", 7, 12, None), "attend most to what followed their earlier occurrence"),
        (("one key", 7, 12, 0), "7 of 12 tokens attend most to BOS"),
        (("one key", 5, 7, 4), "5 of 7 tokens from “creature” on attend most to it"),
    ],
)
def test_a_head_that_moves_most_is_told_by_what_its_rows_have_in_common(
    tendency: tuple[Habit, int, int, int | None], said: str
) -> None:
    choice = Choice((HEAD,), "moves")
    shown = replace(EXHIBIT, choice=choice, finding=Finding(tendency=Tendency(*tendency)))
    assert said in about(shown)
    assert "known for" not in about(shown)  # it may not be so here
    assert about(shown).endswith("(chosen as it moves most to one token)")


def test_a_head_kept_from_an_earlier_line_says_so() -> None:
    shown = replace(EXHIBIT, choice=Choice((HEAD,), "acts", NAMED, line=3), finding=PAIR)
    assert about(shown).endswith("(chosen on line 3)")


def test_long_labels_are_cut() -> None:
    capture = make_capture(["x" * 60, " b"])
    finding = Finding((FoundLink(1, 0, 0.9),))
    shown = replace(make_exhibit(capture), caption="", choice=Choice((Head(0, 0),), "moves"))
    assert f"b → {'x' * 23}… .90" in about(replace(shown, finding=finding))


def test_a_link_to_itself_and_a_piece_of_a_word_are_said_to_be_so() -> None:
    capture = make_capture(["Co", "al", " dust"])
    finding = Finding((FoundLink(2, 0, 0.6), FoundLink(2, 2, 0.3)))
    shown = replace(make_exhibit(capture), caption="", choice=Choice((Head(0, 0),), "moves"))
    assert "dust → “Co” of “Coal” .60, itself .30" in about(replace(shown, finding=finding))


def test_a_piece_of_a_word_that_has_a_namesake_is_said_as_the_rows_below_say_it() -> None:
    capture = make_capture(["4", "4", " ", "4", " dust"])
    finding = Finding((FoundLink(4, 0, 0.6), FoundLink(4, 1, 0.2), FoundLink(4, 3, 0.1)))
    shown = replace(make_exhibit(capture), caption="", choice=Choice((Head(0, 0),), "moves"))
    assert 'dust → "4#1" .60, "4#2" .20, "4#3" .10' in about(replace(shown, finding=finding))


def test_a_picked_head_whose_rows_do_not_show_its_behaviour_is_not_said_to_be_known_for_it() -> (
    None
):
    choice = Choice((HEAD,), "acts", NAMED, line=1)
    for finding in (None, Finding((FoundLink(4, 1, 0.9),))):
        assert "known for" not in about(replace(EXHIBIT, choice=choice, finding=finding))
    assert "known for" in about(replace(EXHIBIT, choice=choice, finding=PAIR))
