"""Batches: documents do not see each other, and only what counts is predicted."""

import random

import pytest
import torch
from tokenizers import Tokenizer

from attnviz.commands.train.loop import IGNORED, PADDING, Batch
from making.asking import ASKED
from making.data import Document, Packing, batches, document, pack
from making.tokenizer import WordEncoder
from making.world.text import Text, TrueLink
from making.world.texts import REPEATS_FROM


@pytest.fixture(scope="module")
def encoder(world_tokenizer: Tokenizer) -> WordEncoder:
    return WordEncoder(world_tokenizer)


@pytest.fixture(scope="module")
def some(encoder: WordEncoder) -> list[Batch]:
    return batches("test", 4, encoder, Packing(256, natural=0.0))


def test_a_query_sees_its_own_document_up_to_itself_and_nothing_else(some: list[Batch]) -> None:
    for batch in some:
        mask = batch.mask()[:, 0]  # (B, n, n)
        row, query, key = mask.nonzero(as_tuple=True)
        assert (key <= query).all()
        assert torch.equal(batch.documents[row, key], batch.documents[row, query])
        assert mask.any(-1).all()


def test_every_document_begins_with_bos_and_counts_its_own_positions(
    some: list[Batch], encoder: WordEncoder
) -> None:
    for batch in some:
        starts = batch.ids == encoder.bos
        assert torch.equal(starts.sum(-1), batch.documents.amax(-1) + 1)
        same = batch.documents[:, 1:] == batch.documents[:, :-1]
        inside = same & (batch.documents[:, 1:] != PADDING)
        steps = batch.positions[:, 1:] - batch.positions[:, :-1]
        assert (steps[inside] == 1).all()
        assert batch.positions.max() < 256


def test_a_target_is_the_next_token_of_the_same_document(some: list[Batch]) -> None:
    for batch in some:
        rows, columns = (batch.targets != IGNORED).nonzero(as_tuple=True)
        assert torch.equal(batch.targets[rows, columns], batch.ids[rows, columns + 1])
        assert torch.equal(batch.documents[rows, columns], batch.documents[rows, columns + 1])


def test_a_word_that_must_attend_to_others_is_asked_for_the_first_token_of_one(
    encoder: WordEncoder,
) -> None:
    words = ("the", "shortsighted", "grey", "hippopotamus", "said", "that", "it", "was", "late")
    links = (
        TrueLink("adjectives", 3, frozenset({1, 2})),
        TrueLink("pronouns", 6, frozenset({3})),
        TrueLink("mystery", 7, frozenset({3})),  # the word that follows it says it
    )
    found = [document(Text("plain", words, links), encoder, random.Random(n), 0) for n in range(9)]
    ids, positions = encoder.text(Text("plain", words))
    assert len(positions[3]) > 1
    noun, pronoun = positions[3][-1], positions[6][-1]
    named = (ASKED["adjectives"], noun), (ASKED["pronouns"], pronoun)
    assert all(set(each.asked) == {*named} for each in found)
    assert {each.asked[named[0]] for each in found} == {ids[positions[k][0]] for k in (1, 2)}
    assert {each.asked[named[1]] for each in found} == {ids[positions[3][0]]}


def test_what_is_asked_is_a_word_that_stands_before_in_the_same_document(some: list[Batch]) -> None:
    asked = 0
    for batch in some:
        for row, head, query in (batch.asked != IGNORED).nonzero().tolist():
            same = batch.documents[row, :query] == batch.documents[row, query]
            assert batch.asked[row, head, query] in batch.ids[row, :query][same]
            asked += 1
    assert asked > 100


def test_the_same_seed_gives_the_same_batches(encoder: WordEncoder, some: list[Batch]) -> None:
    again = batches("test", 4, encoder, Packing(256, natural=0.0))
    assert all(torch.equal(a.ids, b.ids) for a, b in zip(some, again, strict=True))


def test_what_does_not_fit_into_the_rows_waits() -> None:
    waiting = [Document([0] * n, [True] * n) for n in (3, 5, 4, 5)]
    random.seed(0)
    rows = pack(waiting, rows=2, width=8)
    assert [[len(d.ids) for d in row] for row in rows] == [[3, 5], [4]]
    assert [len(d.ids) for d in waiting] == [5]


def test_nothing_repeats_in_the_first_part_of_the_training(encoder: WordEncoder) -> None:
    packing = Packing(256, natural=0.0)
    early, late = (batches("s", 6, encoder, packing, at) for at in (0.0, REPEATS_FROM))
    assert _repeated(early) < _repeated(late) / 4


def _repeated(some: list[Batch]) -> int:
    """How many runs of eight tokens come twice in a row of a batch."""
    rows = [row.tolist() for batch in some for row in batch.ids]
    return sum(
        len(runs) - len(set(runs))
        for row in rows
        for runs in [[tuple(row[i : i + 8]) for i in range(len(row) - 8) if any(row[i : i + 8])]]
    )
