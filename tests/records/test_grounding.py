"""What deletions say of an answer, on answers whose dependence on documents is made up."""

import itertools
import statistics
from collections.abc import Callable, Collection, Sequence

import numpy as np
import pytest

from attnviz.records.grounding import (
    Check,
    Deletion,
    Doubles,
    Groundedness,
    Grounds,
    SmallestSet,
    Without,
    against_random,
    correlation_of_ranks,
    curves,
    groundedness,
    lasso,
    logit,
    single_deletions,
    smallest_set,
    steps_of,
    subset_fit,
)


def falling(loss: Callable[[frozenset[int]], float]) -> Without:
    """An answer of two tokens; the first one loses this much without some documents."""
    return lambda sets: np.array([[-1.0 - loss(frozenset(some)), 0.0] for some in sets])


def test_a_correlation_of_ranks_is_spearmans() -> None:
    def ranks(values: list[float]) -> list[float]:
        """Their places in order; equal ones share the mean of theirs."""
        order = sorted(values)
        return [order.index(v) + (order.count(v) - 1) / 2 for v in values]

    draw = np.random.default_rng(0)
    for _ in range(20):
        a, b = draw.integers(0, 5, 9).astype(float), draw.normal(size=9)
        expected = statistics.correlation(ranks(a.tolist()), ranks(b.tolist()))
        assert correlation_of_ranks(a, b) == pytest.approx(expected)
    assert correlation_of_ranks(np.zeros(5), np.arange(5.0)) is None


def test_effects_that_differ_by_rounding_alone_have_no_correlation() -> None:
    rounding = np.array([0.0, 1e-7, -1e-7, 2e-7, 0.0])
    assert correlation_of_ranks(np.arange(5.0), rounding) is None


def test_single_deletions_tell_what_matters() -> None:
    worth, attention = [0.0, 3.0, 0.5, 0.0, 0.0], [0.1, 0.6, 0.2, 0.05, 0.05]
    without = falling(lambda gone: sum(worth[i] for i in gone))
    effects = single_deletions(list("abcde"), attention, without)
    assert [effect.change for effect in effects] == [0.0, -3.0, -0.5, 0.0, 0.0]
    assert effects[1].changes == (-3.0, 0.0)
    group = against_random(attention, without)
    assert group is not None
    assert (group.size, group.top) == (1, -3.0)
    assert group.random > -3.0


def test_few_segments_have_no_correlation_and_no_group() -> None:
    few = np.arange(4.0)
    assert correlation_of_ranks(few, few) is None
    assert against_random(few.tolist(), falling(lambda gone: 0.0)) is None


def told_by_any(*sources: int) -> Callable[[frozenset[int]], float]:
    """An answer that each of these documents tells: it is lost without all of them."""
    return lambda gone: 9.0 * gone.issuperset(sources)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (told_by_any(1, 4), (1, 4)),  # told twice
        (told_by_any(0, 2, 5), (0, 2, 5)),  # told three times
        (told_by_any(3), (3,)),
        (lambda gone: 5.0 * len(gone & {0, 3}), (0, 3)),  # one half each
        (lambda gone: 9.0 * (2 in gone) + 0.2 * len(gone), (2,)),  # more than four fifths
        (lambda gone: 0.0, ()),  # nothing to explain
        (lambda gone: -3.0 * len(gone), ()),  # documents that mislead
    ],
)
def test_the_smallest_set_is_what_every_telling_of_a_fact_stands_in(
    loss: Callable[[frozenset[int]], float], expected: tuple[int, ...]
) -> None:
    for attention in ([0.3, 0.1, 0.1, 0.1, 0.2, 0.2], [0.0, 0.1, 0.5, 0.1, 0.1, 0.2]):
        assert smallest_set(attention, falling(loss)) == expected


def test_no_member_of_a_smallest_set_can_be_spared_and_greed_costs_little() -> None:
    draw = np.random.default_rng(0)
    for _ in range(30):
        told = [tuple(draw.choice(6, draw.integers(1, 3), replace=False)) for _ in range(3)]
        worth = draw.uniform(1, 5, 3)

        def loss(gone: frozenset[int], told: object = told, worth: Doubles = worth) -> float:
            assert isinstance(told, list)
            return float(sum(w for one, w in zip(told, worth, strict=True) if gone.issuperset(one)))

        found, target = smallest_set([1 / 6] * 6, falling(loss)), 0.8 * loss(frozenset(range(6)))
        assert loss(frozenset(found)) >= target
        assert all(loss(frozenset(found) - {i}) < target for i in found)
        sizes = (
            len(some)
            for n in range(7)
            for some in itertools.combinations(range(6), n)
            if loss(frozenset(some)) >= target
        )
        assert len(found) <= next(sizes) + 1


def test_the_number_of_sets_that_are_tried_is_bounded() -> None:
    asked = set[frozenset[int]]()

    def loss(gone: frozenset[int]) -> float:
        asked.add(gone)
        return 9.0 * gone.issuperset({150, 199})

    assert smallest_set([1 / 200] * 200, falling(loss)) == (150, 199)
    assert len(asked) < 2 * 200 + 100 + 5


def test_groundedness_is_the_gain_as_a_share_of_what_there_was_to_gain() -> None:
    # p from e^-8 to e^-2: six of eight nats
    assert groundedness(-2.0, -8.0, 2) == pytest.approx(0.75)
    assert groundedness(-9.0, -8.0, 2) == 0.0
    assert groundedness(0.0, -8.0, 2) == 1.0
    assert groundedness(-0.01, -0.29, 3) is None  # under 0.1 nats a token
    assert groundedness(-0.01, -0.31, 3) is not None


def test_a_statement_is_supported_where_documents_give_more_than_unrelated_text() -> None:
    whole, without = np.array([-1.0, -6.0, 0.0]), np.array([-4.0, -6.0, -0.1])
    # 19 texts: the greatest is the 95th percentile
    unrelated = np.array([[-4.0 + 0.1 * n, -7.0, -0.1] for n in range(19)])
    grounds = Grounds(whole, without, unrelated)
    first, second, third = (grounds.of("a", i, i + 1) for i in range(3))
    assert first.share == pytest.approx(3 / 4)
    assert first.unrelated == pytest.approx(1.8 / 4)
    assert first.supported is True
    assert (second.share, second.unrelated, second.supported) == (0.0, 0.0, False)
    assert third.share == pytest.approx(1)
    assert grounds.of("a", 0, 2).share == pytest.approx(3 / 10)
    assert Groundedness(0.004, 0.0).supported is False  # shown as 0.00
    sure = Grounds(np.zeros(1), np.zeros(1), np.zeros((19, 1))).of("a", 0, 1)
    assert (sure.share, sure.supported) == (None, None)
    assert Grounds(whole, without, np.zeros((0, 3))).of("a", 0, 1).supported is None


def test_a_lasso_on_orthogonal_columns_is_the_shrunk_least_squares() -> None:
    # on columns of mean 0 and deviation 1 that are orthogonal, each weight is shrunk by itself
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))
    values = signs @ np.array([2.0, -0.5, 0.05, 0.0]) + 3
    weights, bias = lasso(signs, values, 0.1)
    assert weights == pytest.approx([1.9, -0.4, 0.0, 0.0])
    assert bias == pytest.approx(3)
    # a mask is such a column, moved and halved: the penalty is on the scaled weight
    weights, bias = lasso((signs + 1) / 2, values, 0.1)
    assert weights == pytest.approx([3.8, -0.8, 0.0, 0.0])
    assert bias == pytest.approx(3 - 1.9 + 0.4)


def test_a_lasso_fulfils_the_conditions_of_its_minimum() -> None:
    draw = np.random.default_rng(1)
    design = (draw.random((40, 8)) < 0.5).astype(float)
    values = design @ np.array([3.0, 0, 0, -2, 0, 0, 0.5, 0]) + draw.normal(size=40)
    weights, bias = lasso(design, values, 0.2)
    slope = design.T @ (values - bias - design @ weights) / 40 / design.std(axis=0)
    np.testing.assert_allclose(slope[weights != 0], 0.2 * np.sign(weights[weights != 0]), atol=1e-8)
    assert (np.abs(slope[weights == 0]) <= 0.2).all()
    assert 0 < np.count_nonzero(weights) < 8
    assert lasso(np.ones((5, 2)), np.arange(5.0), 0.1)[0] == pytest.approx([0, 0])


def test_the_logit_of_a_probability_stays_finite() -> None:
    for p in (0.2, 0.5, 0.999):
        assert logit(np.log(p)) == pytest.approx(np.log(p / (1 - p)))
    assert np.isfinite(logit(0.0))
    assert logit(-800.0) == pytest.approx(-800)


def test_a_fit_finds_the_document_that_tells_and_says_how_good_it_is() -> None:
    told = subset_fit(list("abcdefgh"), falling(lambda gone: 6.0 * (2 in gone) + (5 in gone)))
    weights = dict(told.weights)
    assert sorted(weights, key=lambda name: -weights[name])[:2] == ["c", "f"]
    assert told.r2 is not None
    assert told.r2 > 0.9
    assert (told.fitted, told.held_out) == (64, 32)
    # a fact that is told twice is no sum over documents
    twice = subset_fit(list("abcdefgh"), falling(told_by_any(2, 5)))
    assert twice.r2 is not None
    assert twice.r2 < 0.8
    few = subset_fit(["a", "b"], falling(lambda gone: 6.0 * (0 in gone)))
    assert (few.r2, few.fitted, few.held_out) == (None, 4, 0)
    assert few.weights[0][1] > 1 > abs(few.weights[1][1])
    assert subset_fit([str(i) for i in range(40)], falling(lambda gone: 0.0)).r2 is None


def contextcites(masks: Doubles, log_p: Doubles, tokens: int) -> tuple[Doubles, Doubles]:
    """ContextCite's weights, and its fit on the masks: every pattern of signs is tried.

    The minimum of ‖y − b − Xw‖² / 2n + .01 ‖w‖₁ has one, where X are the scaled masks and
    y = ln(p / (1 − p)) / tokens; the weights are scaled back by σ and by the tokens.
    """
    scale, values = masks.std(axis=0), (log_p - np.log(-np.expm1(log_p))) / tokens
    columns = (masks - masks.mean(axis=0)) / scale
    gram, moments = columns.T @ columns / len(masks), columns.T @ (values - values.mean())
    for signs in itertools.product([-1.0, 0.0, 1.0], repeat=masks.shape[1]):
        on, found = np.flatnonzero(signs), np.zeros(masks.shape[1])
        wanted = moments[on] / len(masks) - 0.01 * np.array(signs)[on]
        found[on] = np.linalg.solve(gram[np.ix_(on, on)], wanted)
        slope = moments / len(masks) - gram @ found
        if (np.sign(found) == signs).all() and (np.abs(slope) < 0.01 + 1e-12).all():
            return found * tokens / scale, values.mean() + columns @ found
    raise AssertionError("a minimum has a pattern of signs")


def test_weights_of_documents_are_contextcites() -> None:
    worth, runs = (2.0, 0.7, 0.01, 0.3, 0.004), list[tuple[frozenset[int], float]]()

    def without(some: Collection[int]) -> Doubles:
        gone = frozenset(some)
        lost = sum(worth[i] for i in gone) - (0.2 if {0, 3} <= gone else 0)
        runs.append((gone, -0.6 - lost))
        return np.array([-0.1, -0.2, -0.3 - lost])

    found = subset_fit(list("abcde"), lambda sets: np.stack([*map(without, sets)]))
    masks = np.array([[i not in gone for i in range(5)] for gone, _ in runs], float)
    log_p = np.array([log_probability for _, log_probability in runs])
    part = slice(found.fitted)
    weights, fit = contextcites(masks[part], log_p[part], 3)
    assert [weight for _, weight in found.weights] == pytest.approx(weights.tolist(), abs=1e-7)
    assert 0 < np.count_nonzero(weights) < 5
    assert len({gone for gone, _ in runs}) == found.fitted + found.held_out == 32
    # what the fit says of subsets that it was not made of
    own = weights / 3
    bias = float((fit - masks[part] @ own).mean())
    held = (log_p - np.log(-np.expm1(log_p)))[found.fitted :] / 3
    left = held - bias - masks[found.fitted :] @ own
    assert found.r2 == pytest.approx(1 - left @ left / ((held - held.mean()) ** 2).sum())


def test_curves_delete_and_insert_the_same_tokens_by_hand() -> None:
    ranked = [(4, 5, 6), (0, 1), (9,)]
    worth = {4: 3.0, 5: 1.0, 0: 0.5}

    def without(sets: Sequence[Collection[int]]) -> Doubles:
        return np.array([[-1.0 - sum(worth.get(t, 0.0) for t in tokens)] for tokens in sets])

    deletion, insertion = curves(ranked, without)
    assert deletion.tokens == insertion.tokens == (0, 1, 2, 3, 4, 5, 6)
    assert deletion.values == (-1.0, -4.0, -5.0, -5.0, -5.5, -5.5, -5.5)
    assert insertion.values == (-5.5, -2.5, -1.5, -1.5, -1.0, -1.0, -1.0)
    assert deletion.area == pytest.approx(np.trapezoid(deletion.values) / 6)
    for curve in (deletion, insertion):
        assert curve.low[0] == curve.high[0] == curve.values[0]
        assert curve.low[-1] == curve.high[-1] == pytest.approx(curve.values[-1])
    assert deletion.area < deletion.random
    assert insertion.area > insertion.random
    assert (np.array(deletion.low) <= np.array(deletion.high)).all()


@pytest.mark.parametrize("tokens", [1, 2, 9, 10, 35, 36, 1001])
def test_steps_are_the_same_from_either_end(tokens: int) -> None:
    steps = steps_of(tokens)
    assert (steps[0], steps[-1]) == (0, tokens)
    assert [tokens - k for k in steps[::-1]] == list(steps)
    assert len(steps) <= 11


@pytest.mark.parametrize(
    ("change", "smallest", "use"),
    [
        (-3.0, None, "used"),
        (-1.0, None, "not used"),
        (3.0, None, "against"),
        (-1.0, SmallestSet(("a",), -1.0, (-1.0,)), "not used"),  # needed, but within the noise
        (0.0, SmallestSet(("a", "b"), -9.0, (-8.0, -8.0)), "used"),  # told twice
    ],
)
def test_a_document_is_used_beyond_the_noise(
    change: float, smallest: SmallestSet | None, use: str
) -> None:
    check = Check("delete", -1.0, documents=("a", "b"), noise=2.0, smallest=smallest)
    assert check.use_of(Deletion("a", 0.5, (change,))) == use
    assert check.use_of(Deletion("question", 0.5, (change,))) is None
