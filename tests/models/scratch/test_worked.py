"""Worked examples: the numbers of the lessons, and the textbook formula in float64."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.commands.explain.examples import CHARACTERS, HEADS, WIDTH, three_inputs
from attnviz.models.scratch.lessons import _rounded, random_matrices, work_out
from attnviz.records.trace import Initialisation, Matrices, Similarity, Way


def test_three_inputs_has_the_numbers_of_the_lesson() -> None:
    worked = work_out(three_inputs(), Way())
    np.testing.assert_array_equal(worked.keys[0], [[0, 1, 1], [4, 4, 0], [2, 3, 1]])
    np.testing.assert_array_equal(worked.queries[0], [[1, 0, 2], [2, 2, 2], [2, 1, 3]])
    np.testing.assert_array_equal(worked.values[0], [[1, 2, 3], [2, 8, 0], [2, 6, 3]])
    np.testing.assert_array_equal(worked.scores[0], [[2, 4, 4], [4, 16, 12], [4, 12, 10]])
    softmax = [[0.0634, 0.4683, 0.4683], [0, 0.9820, 0.0180], [0.0003, 0.8805, 0.1192]]
    np.testing.assert_allclose(worked.pattern[0], softmax, atol=5e-5)
    outputs = [[1.9366, 6.6831, 1.5951], [2.0, 7.9640, 0.0540], [1.9997, 7.7599, 0.3584]]
    np.testing.assert_allclose(worked.output, outputs, atol=5e-5)
    np.testing.assert_allclose(worked.weighted[0].sum(axis=1), worked.output, atol=1e-12)


def test_rounded_on_paper_the_outputs_are_those_of_the_lesson() -> None:
    worked = work_out(three_inputs(), Way(rounded=True))
    np.testing.assert_allclose(worked.pattern[0], [[0, 0.5, 0.5], [0, 1, 0], [0, 0.9, 0.1]])
    outputs = [[2.0, 7.0, 1.5], [2.0, 8.0, 0.0], [2.0, 7.8, 0.3]]
    np.testing.assert_allclose(worked.output, outputs, atol=1e-12)


@settings(deadline=None)
@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=8))
def test_a_rounded_row_is_near_and_still_sums_to_one(row: list[float]) -> None:
    weights = torch.tensor(row, dtype=torch.float64) / sum(row)
    rounded = _rounded(weights)
    assert rounded.sum().item() == pytest.approx(1)
    assert (rounded - weights).abs().max().item() < 0.1
    torch.testing.assert_close(rounded * 10, (rounded * 10).round())


def plain(worked_from: Matrices, way: Way) -> np.ndarray:
    """Attention of one head by loops, in float64."""
    x = worked_from.x
    q, k, v = (x @ w for w in (worked_from.w_query, worked_from.w_key, worked_from.w_value))
    out = np.zeros((len(x), v.shape[1]))
    for i in range(len(x)):
        keys = range(i + 1 if way.causal else len(x))
        scores = []
        for j in keys:
            if way.similarity == "rbf":
                scores.append(-((q[i] - k[j]) ** 2).sum() / (2 * np.sqrt(q.shape[1])))
            elif way.similarity == "general":
                form = worked_from.w_query @ worked_from.w_key.T
                scores.append(x[i] @ form @ x[j])
            else:
                root = np.sqrt(q.shape[1]) if way.similarity == "scaled-dot" else 1
                scores.append(q[i] @ k[j] / root)
        weights = np.exp(np.array(scores) - max(scores))
        out[i] = (weights / weights.sum()) @ v[list(keys)]
    return out


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("similarity", ["dot", "scaled-dot", "general", "rbf"])
def test_each_similarity_is_its_formula(similarity: Similarity, causal: bool) -> None:
    draw = np.random.default_rng(3)
    matrices = Matrices(
        draw.normal(size=(5, 4)),
        draw.normal(size=(4, 3)),
        draw.normal(size=(4, 3)),
        draw.normal(size=(4, 7)),
        labels=tuple("abcde"),
    )
    way = Way(similarity, causal)
    np.testing.assert_allclose(work_out(matrices, way).output, plain(matrices, way), atol=1e-10)


@pytest.mark.parametrize("init", ["normal", "xavier", "kaiming"])
def test_several_heads_are_each_its_own_slice_and_then_w_o(init: Initialisation) -> None:
    given_matrices = random_matrices(CHARACTERS, WIDTH, HEADS, init, seed=1)
    worked = work_out(given_matrices, Way("scaled-dot"))
    g, width = given_matrices, WIDTH // HEADS
    for head in range(HEADS):
        mine = slice(head * width, (head + 1) * width)
        one = Matrices(g.x, g.w_query[:, mine], g.w_key[:, mine], g.w_value[:, mine])
        np.testing.assert_allclose(worked.z[head], plain(one, Way("scaled-dot")), atol=1e-10)
    np.testing.assert_allclose(worked.all_queries, g.x @ g.w_query, atol=1e-12)
    np.testing.assert_array_equal(worked.all_keys, np.concatenate(list(worked.keys), axis=1))
    assert g.w_output is not None
    np.testing.assert_allclose(worked.output, worked.merged @ g.w_output, atol=1e-12)


def test_the_same_seed_draws_the_same_and_another_seed_does_not() -> None:
    first, again, other = (random_matrices(CHARACTERS, 6, 3, "normal", s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.w_value, again.w_value)
    assert not np.array_equal(first.w_value, other.w_value)


def test_the_ways_to_draw_have_their_own_spread() -> None:
    spread = {
        init: random_matrices(CHARACTERS, 300, 3, init, 0).w_query.std()
        for init in ("normal", "xavier", "kaiming")
    }
    assert spread["normal"] == pytest.approx(1, rel=0.02)
    assert spread["xavier"] == pytest.approx(np.sqrt(2 / 600), rel=0.02)
    assert spread["kaiming"] == pytest.approx(np.sqrt(2 / 300), rel=0.02)
