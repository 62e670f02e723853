"""Tokens that a model wrote, put back into the text that they spell."""

import pytest

from attnviz.models.catalog import Source, load
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


def test_what_was_cut_in_another_way_keeps_its_ids_and_its_parts(
    tokenizer: TextTokenizer,
) -> None:
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
