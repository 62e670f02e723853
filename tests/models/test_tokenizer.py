"""Tokens that a model wrote, put back into the text that they spell."""

import pytest

from attnviz.models.catalog import Source, load, tokenizer_of
from attnviz.models.tokenizer import TextTokenizer


@pytest.fixture(scope="module")
def tokenizer() -> TextTokenizer:
    return load(Source("builtin")).tokenizer


def spelled(tokenizer: TextTokenizer, *pieces: str) -> list[int]:
    """Ids of a text, each piece by itself where the tokenizer would join them."""
    return [id_ for piece in pieces for id_ in tokenizer.backend.encode(piece).ids]


def test_what_was_written_as_the_tokenizer_cuts_it_has_its_offsets(
    tokenizer: TextTokenizer,
) -> None:
    ids = spelled(tokenizer, "a blue dog")
    text, tokens = tokenizer.written(ids)
    assert [token.id for token in tokens] == ids
    assert [text[token.start : token.end].strip() for token in tokens] == ["a", "blue", "dog"]


def test_what_was_cut_in_another_way_keeps_its_ids_and_its_parts(tokenizer: TextTokenizer) -> None:
    vocabulary = tokenizer.backend.get_vocab()
    letters = [vocabulary["d"], vocabulary["o"], vocabulary["g"]]
    ids = spelled(tokenizer, "blue", "楚") + letters
    text, tokens = tokenizer.written(ids)
    assert [token.id for token in tokens] == ids
    assert text.strip() == "blue 楚dog"
    assert [token.text.strip() for token in tokens[-3:]] == ["d", "o", "g"]
    character = [token for token in tokens if token.part is not None]
    assert {token.text.strip() for token in character} == {"楚"}
    assert [token.part for token in character] == [
        (i, len(character)) for i in range(1, len(character) + 1)
    ]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("the xy", [("the", 0, 3), ("␣", 3, 4), ("x", 4, 5), ("y", 5, 6)]),
        ("xy", [("␣", 0, 0), ("x", 0, 1), ("y", 1, 2)]),
        ("楚", [("␣", 0, 0), *((f"楚 {i}/3", 0, 1) for i in (1, 2, 3))]),
    ],
)
def test_the_mark_that_a_word_begins_is_no_part_of_its_first_letter(
    text: str, cut: list[tuple[str, int, int]]
) -> None:
    tokens = tokenizer_of(Source("translator")).encode(text, bos=False, special=False)
    assert [(token.label, token.start, token.end) for token in tokens] == cut


def test_a_mark_stands_for_no_letter_of_the_built_in_model_either(tokenizer: TextTokenizer) -> None:
    tokens = tokenizer.encode("a 楚留", bos=False, special=False)
    parts = [f"{letter} {i}/3" for letter in "楚留" for i in (1, 2, 3)]
    assert [token.label for token in tokens] == ["a", "␣", *parts]
    assert [token.start for token in tokens][:3] == [0, 1, 2]


def test_a_token_keeps_the_space_that_belongs_to_it(tokenizer: TextTokenizer) -> None:
    tokens = tokenizer.encode("a fluffy creature.", bos=True, special=False)
    assert [token.exact for token in tokens] == ["", " a", " fluffy", " creature", " ."]
    assert [token.text for token in tokens] == ["", "a", "fluffy", "creature", "."]
    vocabulary = [tokenizer.exact(token.id) for token in tokens]
    assert vocabulary[1:] == [token.exact for token in tokens][1:]


def test_a_part_of_a_letter_has_no_text_of_its_own(tokenizer: TextTokenizer) -> None:
    tokens = tokenizer.encode("楚", bos=False, special=False)
    parts = [token.id for token in tokens if token.part]
    assert len(parts) > 1
    assert {tokenizer.exact(id_) for id_ in parts} == {""}
