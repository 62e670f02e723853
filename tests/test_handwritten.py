"""Models written by hand, of which every answer is known: what the commands say is what it is."""

from math import exp, sqrt
from statistics import fmean

import numpy as np
import pytest

import attnviz
from benchmarks.handwritten import GAMMA, KAPPA, LETTERS, MODES, P, addition_model, induction_model

N = len(LETTERS)
TWICE = " ".join(LETTERS * 2)
ASKED = " ".join(LETTERS + LETTERS[:3])
"""Ends with `c`, behind which the model continues with `d`."""
HALF = 3 * N + 2 * N
"""Half the width of the stream: each number stands there twice."""


@pytest.fixture(scope="module")
def induction() -> attnviz.Model:
    return attnviz.load_model(*induction_model())


@pytest.fixture(scope="module")
def addition() -> attnviz.Model:
    return attnviz.load_model(*addition_model())


def weight_on_target(query: int) -> float:
    """The softmax of one score γ among those of all keys, of which the others are 0.

    The first token has no token before it, so that it is taken for one that follows itself.
    """
    alike = 2 if query == N else 1
    return exp(GAMMA) / (alike * exp(GAMMA) + query + 1 - alike)


def logits(masses: np.ndarray, *, before: float = 1.0) -> np.ndarray:
    """Of what the induction head takes of each token; `before`: whether L0H0 writes its token."""
    return KAPPA * masses * sqrt(HALF / (2 + before + (masses**2).sum()))


def taken(query: int) -> np.ndarray:
    """What the induction head takes of each letter at a query in the second half."""
    key, on = query - N + 1, weight_on_target(query)
    weights = np.full(query + 1, (1 - on) / query)
    weights[key] = on
    return np.bincount(np.arange(query + 1) % N, weights, N)


def test_the_induction_score_is_its_formula(induction: attnviz.Model) -> None:
    rows = {row["head"] + 2 * row["layer"]: row for row in induction.heads(TWICE).rows}
    formula = fmean(weight_on_target(query) for query in range(N, 2 * N))
    assert rows[2]["induction"] == pytest.approx(formula, abs=1e-6)
    assert rows[0]["previous"] == pytest.approx(1, abs=1e-6)
    assert (rows[0]["role"], rows[2]["role"]) == ("previous token", "induction")
    for idle in (1, 3):
        assert rows[idle]["normalised"] == pytest.approx(1, abs=1e-6)


def test_why_finds_the_token_that_the_head_before_it_wrote(induction: attnviz.Model) -> None:
    asked = {"head": "L1H0", "query": -1, "group": "part", "top": 3}
    record = induction.why(ASKED, **asked).record
    assert (record.query, record.key) == (N + 2, 3)
    contrast = GAMMA * (1 - weight_on_target(N + 2))  # less the mean of the row by its weights
    assert record.contrast == pytest.approx(contrast, abs=1e-5)
    shares = dict(zip(record.key_shares.parts, record.key_shares.values[0], strict=True))
    for part, value in shares.items():  # what L0H0 took from `c`, and nothing else
        only = (part.kind, part.layer, part.head, part.source) == ("head", 0, 0, 2)
        assert value == pytest.approx(contrast if only else 0, abs=1e-5)
    by_query = dict(zip(record.query_shares.parts, record.query_shares.values[0], strict=True))
    embedding = next(part for part in by_query if part[0::3] == ("embedding", N + 2))
    assert by_query[embedding] == pytest.approx(contrast, abs=1e-5)


def test_ablation_changes_what_the_formula_says(induction: attnviz.Model) -> None:
    found = induction.ablate(ASKED, answer="d", versus="e").rows
    changes = {(row["layer"], row["head"]): row["change"] for row in found}
    d, e = LETTERS.index("d"), LETTERS.index("e")
    with_all = logits(taken(N + 2))
    evenly = np.bincount(np.arange(N + 3) % N, minlength=N) / (N + 3)
    without_first = logits(evenly, before=0.0)
    assert changes[0, 0] == pytest.approx(
        (without_first[d] - without_first[e]) - (with_all[d] - with_all[e]), abs=1e-5
    )
    assert changes[1, 0] == pytest.approx(-(with_all[d] - with_all[e]), abs=1e-5)
    assert (changes[0, 1], changes[1, 1]) == (0, 0)


def test_patching_finds_each_head_where_the_texts_differ_for_it(induction: attnviz.Model) -> None:
    """In one source `c` is followed by another token, in the other something else is before `d`."""
    other_token = ASKED.replace("d", "h", 1)
    other_before = ASKED.replace("c", "h", 1)
    shares = {}
    for name, source, answer in (("token", other_token, "h"), ("before", other_before, "d")):
        asked = {"answer": answer, "versus": "e"}
        for row in induction.patch(ASKED, source, **asked).rows:
            shares[name, row["layer"], row["head"]] = row["share"]
    assert shares["token", 0, 0] == pytest.approx(0, abs=1e-5)
    assert shares["token", 1, 0] == pytest.approx(1, abs=1e-5)
    assert shares["before", 0, 0] == pytest.approx(1, abs=1e-5)
    assert shares["before", 1, 0] == pytest.approx(1, abs=1e-5)
    assert {shares[name, layer, 1] for name in ("token", "before") for layer in (0, 1)} == {0.0}


def spectrum(addition: attnviz.Model, text: str, without: str | None = None) -> np.ndarray:
    """The size of each Fourier mode (1 to 6) of the logits of all answers."""
    values = []
    for c in range(P):
        asked = {"answer": str(c), "versus": "="}
        if without is None:
            values.append(addition.predict(text, **asked).rows[0]["measured"])
        else:
            (row,) = addition.ablate(text, heads=without, **asked).rows
            values.append(row["after"])
    return np.abs(np.fft.fft(values))[1 : P // 2 + 1]


def test_the_model_adds(addition: attnviz.Model) -> None:
    for a, b in ((3, 11), (12, 12), (0, 7)):
        assert addition.predict(f"{a} {b} =", top=1).rows[0]["token"] == str((a + b) % P)


def test_without_a_head_its_own_fourier_mode_is_gone_from_the_answers(
    addition: attnviz.Model,
) -> None:
    whole = spectrum(addition, "3 11 =")
    here = {mode + 1 for mode, size in enumerate(whole) if size > 1e-3}
    assert here == set(MODES)
    for head, mode in enumerate(MODES):
        left = spectrum(addition, "3 11 =", without=f"L0H{head}")
        assert {m + 1 for m, size in enumerate(left) if size > 1e-3} == here - {mode}
