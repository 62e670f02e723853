"""What heads do, as numbers: against plain loops in float64, and against TransformerLens."""

from collections.abc import Sequence
from math import isnan, log
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode

from attnviz.models.loaded import HeadRows
from attnviz.models.reducing import FAST_SUMS, WindowStatistics
from attnviz.records.capture import FloatArray, PatternBlock
from attnviz.records.heads import Head
from attnviz.records.metrics import (
    METRICS,
    ROLES,
    SUMS,
    Estimate,
    Marks,
    MeasureHeads,
    estimates,
    marks_of_diagonals,
    marks_of_tokens,
    marks_of_two_texts,
    role_of,
    untold_roles,
)
from attnviz.records.rests import FindRests
from tests.factories import random_patterns

REPEATED = [0, *range(5, 15), *range(5, 15)]


def measured(
    patterns: FloatArray, marks: Marks, *, causal: bool = True, rows: int = 4
) -> list[dict[str, float]]:
    """The metrics of some heads (h, n_q, n_k), which come some rows at a time."""
    measure = MeasureHeads(marks, causal)
    for first in range(0, patterns.shape[1], rows):
        queries = np.arange(first, min(first + rows, patterns.shape[1]))
        last = queries[-1] + 1 if causal else patterns.shape[2]
        block = patterns[:, queries, :last]
        measure(PatternBlock(0, tuple(range(len(patterns))), queries, block))
    found = measure.metrics()
    return [found[Head(0, head)] for head in range(len(patterns))]


def by_hand(pattern: FloatArray, ids: list[int], *, causal: bool) -> dict[str, float]:
    """The definitions of docs/metrics.md, in loops."""
    a, n = pattern.astype(np.float64), len(ids)
    entropies = [-sum(w * log(w) for w in row if w > 0) for row in a]
    seen = [i + 1 if causal else n for i in range(n)]
    shares = [h / log(s) for h, s in zip(entropies, seen, strict=True) if s > 1]
    copies = {i: [j for j in range(i) if ids[j] == ids[i]] for i in range(n)}
    behind = {i: [j + 1 for j in copies[i] if j + 1 < i] for i in range(n)}

    def share(keys: dict[int, list[int]]) -> float:
        rows = [sum(a[i, j] for j in found) for i, found in keys.items() if found]
        return float(np.mean(rows)) if rows else float("nan")

    far = sum(a[i, j] * abs(i - j) for i in range(n) for j in range(n))
    return {
        "entropy": float(np.mean(entropies)),
        "normalised": float(np.mean(shares)) if shares else float("nan"),
        "distance": far / a.sum(),
        "previous": share({i: [i - 1] for i in range(1, n)}),
        "first": float(a[:, 0].mean()),
        "self": float(np.mean(np.diag(a))),
        "duplicate": share(copies),
        "induction": share(behind),
    }


@given(
    ids=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    seed=st.integers(0, 100),
    rows=st.integers(1, 12),
    causal=st.booleans(),
)
def test_metrics_are_what_the_definitions_say(
    ids: list[int], seed: int, rows: int, causal: bool
) -> None:
    patterns = random_patterns(2, len(ids), seed=seed, causal=causal)
    found = measured(patterns, marks_of_tokens(ids), causal=causal, rows=rows)
    for pattern, metrics in zip(patterns, found, strict=True):
        expected = by_hand(pattern, ids, causal=causal)
        assert set(metrics) == set(expected) == set(METRICS)
        for name, value in expected.items():
            assert metrics[name] == pytest.approx(value, abs=1e-5, nan_ok=True), name


@given(n=st.integers(2, 12), seed=st.integers(0, 100))
def test_what_must_hold_of_every_pattern(n: int, seed: int) -> None:
    for metrics in measured(random_patterns(2, n, seed=seed), marks_of_tokens([3] * n)):
        assert 0 <= metrics["entropy"] <= log(n) + 1e-6
        assert 0 <= metrics["normalised"] <= 1 + 1e-6
        assert 0 <= metrics["distance"] <= n - 1
        shares = ("previous", "first", "self", "duplicate")
        assert all(0 <= metrics[name] <= 1 + 1e-6 for name in shares)


def test_the_even_pattern_has_all_the_entropy_and_the_sharp_one_none() -> None:
    even = np.tril(np.ones((1, 6, 6), np.float32))
    even /= even.sum(axis=2, keepdims=True)
    sharp = np.eye(6, dtype=np.float32)[None]
    (spread,), (held,) = (measured(p, marks_of_tokens(range(6))) for p in (even, sharp))
    assert spread["normalised"] == pytest.approx(1)
    assert held["entropy"] == held["distance"] == 0
    assert held["self"] == 1
    assert isnan(held["duplicate"])
    assert isnan(held["induction"])


def test_whole_diagonals_are_the_stripes_of_transformer_lens() -> None:
    """`pattern.diagonal(dim1=-2, dim2=-1, offset=...).mean(-1)` of its main demo, in torch.

    Offsets are -1, -T and 1 - T, for the seeded patterns below; recorded once.
    """
    recorded = {
        "previous": [0.1228335, 0.164974, 0.1198377],
        "duplicate": [0.0823637, 0.076145, 0.0114825],
        "induction": [0.057802, 0.1056873, 0.0520823],
    }
    found = measured(random_patterns(3, 21, seed=7), marks_of_diagonals(10))
    for name, expected in recorded.items():
        assert [metrics[name] for metrics in found] == pytest.approx(expected, abs=1e-6)


def test_metrics_by_tokens_are_those_of_transformer_lens_head_detector() -> None:
    """`head_detector` of TransformerLens 4.3.0, error_measure="mul", recorded once.

    Its `compute_head_attention_similarity_score` was given its three detection patterns of
    these tokens. It divides by the weight of all rows, here by those that have such a key.
    """
    recorded = {
        "previous": ([0.1169843, 0.1571181, 0.1141311], 20),
        "duplicate": ([0.0407287, 0.03978, 0.0060137], 10),
        "induction": ([0.0018027, 0.0597762, 0.0297476], 10),
    }
    found = measured(random_patterns(3, 21, seed=7), marks_of_tokens(REPEATED))
    for name, (theirs, rows) in recorded.items():
        expected = [value * 21 / rows for value in theirs]
        assert [metrics[name] for metrics in found] == pytest.approx(expected, abs=1e-5)


def test_the_probe_counts_only_the_second_copy() -> None:
    """The previous token of BOS and of the first copy is as predictable as any; it is left out."""
    patterns = random_patterns(1, 21, seed=3)
    (found,) = measured(patterns, marks_of_tokens(REPEATED, since=11))
    rows = np.arange(11, 21)
    assert found["previous"] == pytest.approx(patterns[0, rows, rows - 1].mean())
    assert found["duplicate"] == pytest.approx(patterns[0, rows, rows - 10].mean())
    assert found["induction"] == pytest.approx(patterns[0, rows, rows - 9].mean())
    assert found["first"] == pytest.approx(patterns[0, :, 0].mean())


def test_between_two_texts_there_is_no_distance() -> None:
    cross = random_patterns(1, 5, causal=False)[:, :3]
    (found,) = measured(cross, marks_of_two_texts(), causal=False)
    defined = {name for name, value in found.items() if not isnan(value)}
    assert defined == {"entropy", "normalised", "first"}
    assert found["normalised"] == pytest.approx(found["entropy"] / log(5))


def estimated(**metrics: float) -> dict[str, Estimate]:
    return {name: Estimate(metrics.get(name, float("nan"))) for name in METRICS}


def test_the_first_role_whose_threshold_is_reached() -> None:
    enough = dict.fromkeys(METRICS, 26)
    for role in ROLES:
        found = role_of(estimated(**{role.metric: role.least}), enough)
        assert found == role
        assert role_of(estimated(**{role.metric: role.least - 0.01}), enough) is None
    both = role_of(estimated(first=0.9, induction=0.5), enough)
    assert both is not None
    assert both.name == "induction"


def test_a_role_that_too_few_rows_could_show_is_none() -> None:
    for role in ROLES:
        surely = estimated(**{role.metric: 1.0})
        few = dict.fromkeys(METRICS, 26) | {role.metric: role.rows - 1}
        assert role_of(surely, few) is None
        assert untold_roles(few) == ((role, role.rows - 1),)
        assert role_of(surely, few | {role.metric: role.rows}) == role
    # what cannot be measured at all is said elsewhere
    assert untold_roles(dict.fromkeys(METRICS, 0)) == ()


@pytest.mark.parametrize("name", ["previous token", "self", "sink"])
def test_a_head_without_preference_is_far_from_a_role_as_soon_as_one_is_told(name: str) -> None:
    role = next(each for each in ROLES if each.name == name)

    def reached(rows: int) -> float:
        tokens = rows + (role.metric == "previous")
        alike = np.tril(np.ones((tokens, tokens), np.float32)) / np.arange(1, tokens + 1)[:, None]
        (found,) = measured(alike[None], marks_of_tokens(range(tokens)))
        return found[role.metric]

    assert reached(role.rows) <= role.least / 2 < reached(role.rows - 1)


def test_rows_are_those_that_could_show_a_metric() -> None:
    ids = [0, 5, 6, 7, 5, 6, 8]
    measure = MeasureHeads(marks_of_tokens(ids), causal=True)
    measure(PatternBlock(0, (0, 1), np.arange(7), random_patterns(2, 7)))
    wanted = {"previous": 6, "first": 7, "self": 7, "duplicate": 2, "induction": 2}
    assert measure.rows() == wanted | {"normalised": 6}


def test_samples_have_a_mean_and_a_standard_error() -> None:
    samples = [dict.fromkeys(METRICS, value) for value in (0.1, 0.2, 0.6)]
    found = estimates(samples)["entropy"]
    assert found.mean == pytest.approx(0.3)
    assert found.error == pytest.approx(np.std([0.1, 0.2, 0.6], ddof=1) / np.sqrt(3))
    assert estimates(samples[:1])["entropy"].error is None


@given(
    ids=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    seed=st.integers(0, 100),
    rows=st.integers(1, 12),
    causal=st.booleans(),
)
def test_the_fast_sums_of_a_scan_are_those_of_the_table(
    ids: list[int], seed: int, rows: int, causal: bool
) -> None:
    patterns = random_patterns(2, len(ids), seed=seed, causal=causal)
    measure = MeasureHeads(marks_of_tokens(ids), causal)
    fast = WindowStatistics(torch.tensor([ids]), causal)
    for first in range(0, len(ids), rows):
        queries = np.arange(first, min(first + rows, len(ids)))
        block = patterns[:, queries, : queries[-1] + 1 if causal else None]
        measure(PatternBlock(0, (0, 1), queries, block))
        fast.take(HeadRows(0, slice(0, 1), first, torch.tensor(block[None])))
    before = np.array([i - ids.index(token) for i, token in enumerate(ids)])
    sums, found = fast.sums().sums[0], measure.metrics()
    for i, name in enumerate(METRICS):
        for head in (0, 1):
            over = FAST_SUMS[name].rows(before, causal)
            mean = float(sums[head, i]) / over if over else float("nan")
            expected = found[Head(0, head)][name]
            assert mean == pytest.approx(expected, abs=1e-5, nan_ok=True), name


@given(
    ids=st.lists(st.lists(st.integers(0, 2), min_size=7, max_size=7), min_size=1, max_size=3),
    seed=st.integers(0, 100),
    rows=st.integers(1, 7),
    causal=st.booleans(),
)
def test_the_induction_of_headvis_counts_strong_weights_alone_also_on_the_query(
    ids: list[list[int]], seed: int, rows: int, causal: bool
) -> None:
    patterns = np.stack(
        [random_patterns(2, 7, seed=seed + i, causal=causal) ** 4 for i in range(3)]
    )
    fast = WindowStatistics(torch.tensor(ids), causal)
    for first in range(0, 7, rows):
        last = min(first + rows, 7)
        block = patterns[: len(ids), :, first:last, : last if causal else 7]
        fast.take(HeadRows(0, slice(0, len(ids)), first, torch.tensor(block)))
    found = fast.sums().sums[..., SUMS.index("strong_induction")]
    for window, tokens in enumerate(ids):
        pairs = [(q, p + 1) for q in range(7) for p in range(q) if tokens[p] == tokens[q]]
        for head in (0, 1):
            weights = [float(patterns[window, head, q, k]) for q, k in pairs]
            assert found[window, head] == pytest.approx(sum(w for w in weights if w >= 0.01))
        before = np.array([i - tokens.index(token) for i, token in enumerate(tokens)])
        over = FAST_SUMS["strong_induction"].rows(before, causal)
        assert over == len({q for q, _ in pairs})


class NothingWaits(TorchFunctionMode):
    """Refuses whatever needs the numbers of a tensor, for which a graphics processor is awaited."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        waits = ("item", "tolist", "numpy", "cpu", "nonzero", "__bool__", "__float__", "__int__")
        assert getattr(func, "__name__", "") not in waits
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_statistics_of_a_layer_wait_for_no_number(dtype: torch.dtype) -> None:
    ids = torch.tensor([[1, 2, 1, 2, 3], [4, 4, 5, 1, 6]])
    weights = torch.tensor(np.stack([random_patterns(3, 5, seed=i) for i in range(2)])).to(dtype)
    statistics = WindowStatistics(ids, causal=True)
    statistics.take(HeadRows(0, slice(0, 2), 0, weights))  # what is known of the rows is looked up
    with NothingWaits():
        statistics.take(HeadRows(1, slice(0, 2), 0, weights))
    sums = statistics.sums().sums
    np.testing.assert_array_equal(sums[:, :3], sums[:, 3:])


def test_telling_metrics_are_shares_of_what_does_not_rest() -> None:
    """Weight by weight, over the rows that could show each metric."""
    n = 12
    ids = [3, 4, 5, 6, 7, 8] * 2
    weights = random_patterns(1, n, seed=2)[0] * 0.4
    weights[2:, 2] += 0.6  # the head rests on its third key
    weights /= weights.sum(axis=1, keepdims=True)
    measure = MeasureHeads(
        marks_of_tokens(ids), True, rests=FindRests((n, n), None, causal=True, itself=True)
    )
    for first in (0, 5):
        queries = np.arange(first, 5 if first == 0 else n)
        measure(PatternBlock(0, (0,), queries, weights[None, queries, : queries[-1] + 1]))
    (found,) = measure.resting().values()
    others = [i for i in range(n) if i != 2]
    assert found["rests"] == pytest.approx((weights[:, 2].sum() - weights[2, 2]) / n)
    previous = [(i, i - 1) for i in range(1, n)]
    induction = [(i, i - 5) for i in range(6, n)]
    for name, pairs in {"previous": previous, "induction": induction}.items():
        kept = sum(weights[i, j] for i, j in pairs if j != 2)
        left = sum(weights[i, others].sum() for i, _ in pairs)
        assert found[name] == pytest.approx(kept / left, abs=1e-5)


def test_of_a_head_that_keeps_little_nothing_else_is_told() -> None:
    weights = np.zeros((30, 30), np.float32)
    weights[:, 0], weights[np.arange(1, 30), np.arange(29)] = 0.9, 0.1
    weights[0, 0], weights[1, 0] = 1, 1
    rests = FindRests((30, 30), None, causal=True, itself=True)
    measure = MeasureHeads(marks_of_tokens(range(30)), True, rests=rests)
    measure(PatternBlock(0, (0,), np.arange(30), weights[None]))
    (found,) = measure.resting().values()
    assert found.keys() == {"rests"}


def test_a_role_is_judged_on_what_does_not_rest() -> None:
    enough, weak = dict.fromkeys(METRICS, 26), estimated(induction=0.3, first=0.1)
    assert role_of(weak, enough) is None
    resting = {"rests": Estimate(0.5), "induction": Estimate(0.6)}
    role = role_of(weak, enough, resting)
    assert role is not None
    assert role.name == "induction"
    sink = role_of(weak, enough, {"rests": Estimate(0.5)})
    assert sink is not None
    assert sink.name == "sink"
    assert role_of(weak, enough, {"rests": Estimate(0.29)}) is None


@pytest.mark.parametrize("queries", [range(12), (0, 3, 4, 7, 9, 11)])
def test_rests_are_those_of_the_queries_that_came(queries: Sequence[int]) -> None:
    """The definition of docs/metrics.md in loops, over every query or over some."""
    n, ids = 12, np.array(queries)
    weights = random_patterns(1, n, seed=5)[0]
    weights[2:, 2] += 1.0
    weights[6:, 6] += 0.4
    weights /= weights.sum(axis=1, keepdims=True)
    lengths = np.linspace(0.1, 2, n, dtype=np.float32)
    find = FindRests((n, n), lengths[None, None], causal=True, itself=True)
    for own in (ids[: len(ids) // 2], ids[len(ids) // 2 :]):
        find(PatternBlock(0, (0,), own, weights[None, own, : own[-1] + 1]))
    expected = []
    for key in range(n):
        rows = [i for i in queries if i > key]
        mean = sum(weights[i, key] for i in rows) / max(len(rows), 1)
        shares = [weights[i, key] * lengths[key] / (weights[i] @ lengths) for i in rows]
        little = mean >= 0.1 and sum(shares) / max(len(rows), 1) < mean / 2
        alike = len(rows) >= 5 and sum(weights[i, key] > 0.3 for i in rows) > len(rows) / 2
        expected.append(bool(little or alike))
    assert find.of(Head(0, 0)).tolist() == expected
    assert sum(expected) in range(1, n - 1)
