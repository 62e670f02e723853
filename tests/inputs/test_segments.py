"""A prompt is cut into segments, of which every token belongs to one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.errors import InputError, UsageError
from attnviz.inputs.prompts import Document, cut, cut_prompt, named, with_documents
from attnviz.records.tokens import OTHER, Segment, partition, segment_of
from tests.factories import make_tokens


def parts(text: str, by: str = "sentence") -> list[str]:
    return [text[start:end] for start, end in cut(text, by)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ('"Why?" he asked. It was 3.5 degrees.', ['"Why?"', "he asked.", "It was 3.5 degrees."]),
        ("Dr. Smith met J. Doe. He left.", ["Dr. Smith met J. Doe.", "He left."]),
        ("the forest . the creature was", ["the forest .", "the creature was"]),
        ("我来了。你呢？好", ["我来了。", "你呢？", "好"]),
        ("a line\nanother", ["a line", "another"]),
        ("  blank  ", ["blank"]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, sentences: list[str]) -> None:
    assert parts(text) == sentences


def test_lines_and_paragraphs_are_cut_without_their_blanks() -> None:
    text = "a\nb\n\n c\n \nd"
    assert parts(text, "line") == ["a", "b", "c", "d"]
    assert parts(text, "paragraph") == ["a\nb", "c", "d"]


@given(st.text(max_size=60))
def test_every_letter_is_in_one_part(text: str) -> None:
    joined = "".join(parts(text))
    assert "".join(joined.split()) == "".join(text.split())


def test_documents_stand_before_the_question_and_are_numbered_where_names_repeat() -> None:
    prompt = with_documents("Who?", [Document("a", "x y"), Document("a", "z"), Document("b", "w")])
    assert prompt.text == "x y\n\nz\n\nw\n\nWho?"
    found = {s.name: prompt.text[slice(*s.slices[0])] for s in prompt.segments}
    other = {OTHER: "\n\n"}  # what attnviz puts between them is no part of a document
    assert found == {"a 1": "x y", "a 2": "z", "b": "w", "question": "Who?", **other}


def test_blank_lines_between_documents_count_for_none() -> None:
    prompt = with_documents("Who?", [Document("a", "x"), Document("b", "y")])
    text, tokens = make_tokens(["x", "\n\n", "y", "\n", "\nWho", "?"])
    assert text == prompt.text
    of = segment_of(tokens, prompt.segments, prompt.text)
    names = [prompt.segments[i].name for i in of if i is not None]
    assert names == ["a", OTHER, "b", OTHER, "question", "question"]


@pytest.mark.parametrize("text", ["." * 200_000, ". " * 100_000, '."' * 100_000, "Dr.\n" * 50_000])
def test_a_text_of_nothing_but_ends_is_cut_at_once(text: str) -> None:
    assert "".join(parts(text)).replace(" ", "") == text.replace(" ", "").rstrip("\n")


@pytest.mark.parametrize(
    "expression",
    ["(?R)", "(a|(?1))", "(?s)(?:.|(?R))", "(?<x>a)(?&x)", "(?P<x>a(?P>x))", r"\\(?0)"],
)
def test_an_expression_that_calls_itself_is_refused(expression: str) -> None:
    with pytest.raises(UsageError, match="needs unlimited memory"):
        named("some text", [f"a=/{expression}/"])


@pytest.mark.parametrize(
    "expression", ["[(?R)]", r"(?:e)(?i:x)(?=t)", r"[]\](?1]", "(?<x>e)(?P=x)?"]
)
def test_other_groups_are_searched_for(expression: str) -> None:
    assert named("some (text?)", [f"a=/{expression}/"])[0].slices


def test_what_no_segment_holds_is_one_more() -> None:
    prompt = cut_prompt("red blue green", None, ["middle=4:8", "first=/^red/"])
    assert [s.name for s in prompt.segments] == ["first", "middle", OTHER]
    assert prompt.segments[2] == Segment(OTHER, ((8, 14),))


def test_a_token_belongs_to_the_segment_of_its_first_letter() -> None:
    text, tokens = make_tokens(["red", " blue", "green", "  "], bos=True)
    segments = partition(text, [Segment("a", ((0, 4),)), Segment("b", ((4, len(text)),))])
    assert segment_of(tokens, segments, text) == [None, 0, 1, 1, 1]


@pytest.mark.parametrize(
    "wanted", ["a", "a=", "=1:2", "a=3", "a=/(/", "a=/x{9999}y{9999}/", "answer=0:3"]
)
def test_a_segment_that_says_nothing_is_told(wanted: str) -> None:
    with pytest.raises(UsageError):
        named("a text", [wanted])


@pytest.mark.parametrize("wanted", ["a=/nosuch/", "a=9:9", "a=99:100"])
def test_a_segment_that_this_text_does_not_have_is_told(wanted: str) -> None:
    with pytest.raises(InputError, match="matches nothing in the prompt"):
        named("a text", [wanted])


def test_segments_that_overlap_or_share_a_name_are_told() -> None:
    with pytest.raises(InputError, match="overlap"):
        cut_prompt("red blue", None, ["a=0:5", "b=4:8"])
    with pytest.raises(UsageError, match="two segments are named"):
        cut_prompt("red blue", None, ["a=0:3", "a=4:8"])
    with pytest.raises(UsageError, match="named segments"):
        cut_prompt("red blue", "line", ["a=0:3"])
