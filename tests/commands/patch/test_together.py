"""`attnviz patch --together`: heads and MLPs taken from the source at once."""

import json
from pathlib import Path

import numpy as np
import pytest

import attnviz
from tests.conftest import Run, some
from tests.interventions import (
    ARCHITECTURES,
    OTHER_WORDS,
    WORDS,
    Replaced,
    ids_of,
    last_logits,
    logits_of,
    with_words,
)
from tests.reading import rows_in

BLUE, RED = (f"a {color} bird slept . the bird was" for color in ("blue", "red"))
ASKED = {"answer": "red", "versus": "blue"}
SET: Replaced = {("head", 0): {1, 2}, ("head", 1): {0, 3}, ("mlp", 1): {0}}


@pytest.mark.parametrize("name", some([*ARCHITECTURES]))
def test_a_set_of_heads_and_mlps_is_that_of_plain_hooks(name: str) -> None:
    architecture = ARCHITECTURES[name]
    model = architecture.model()
    found = attnviz.patch(
        *(WORDS, OTHER_WORDS, with_words(model)),
        heads="L0H1,L0H2,L1H0,L1H3",
        mlps=1,
        answer="w3",
        versus="w4",
        together=True,
    )
    plain = [logits_of(model, ids_of(text))[-1] for text in (WORDS, OTHER_WORDS)]
    changed = last_logits(architecture, model, SET, OTHER_WORDS)
    before, ends, after = (float(logits[3] - logits[4]) for logits in (*plain, changed))
    row = found.rows[-1]
    assert np.allclose(
        [row["before"], row["source"], row["after"]], [before, ends, after], atol=1e-5
    )
    assert np.isclose(row["share"], (after - before) / (ends - before), atol=1e-4)
    best = found.record.after.candidates[0]
    assert best.id == int(changed.argmax())
    assert np.isclose(best.probability, float(changed.softmax(-1).max()), atol=1e-5)


def test_every_head_and_mlp_together_bring_the_whole_answer_of_the_source() -> None:
    found = attnviz.patch(BLUE, RED, heads="all", mlps="all", together=True, **ASKED)
    assert np.isclose(found.record.report.effects[0].share.mean, 1, atol=1e-5)
    source = attnviz.predict(RED, top=10).record.last.candidates
    after = found.record.after.candidates
    assert [each.label for each in after] == [each.label for each in source]
    assert "with every head, every MLP of the source" in str(found)


def test_one_head_together_has_the_effect_that_it_has_alone() -> None:
    how = {"heads": "L3H1", "query": ["bird"], **ASKED}
    alone = attnviz.patch(BLUE, RED, **how).rows[0]
    together = attnviz.patch(BLUE, RED, **how, together=True).rows[0]
    for name in "before", "source", "after", "change", "share", "answer_logit_change":
        assert alone[name] == together[name]
    assert together["parts"] == [{"kind": "head", "layer": 3, "head": 1}]


def test_python_gives_the_rows_of_the_command_and_pairs_a_mean(run: Run, tmp_path: Path) -> None:
    pairs = [(BLUE, RED), (BLUE.replace("bird", "fox"), RED.replace("bird", "fox"))]
    file = tmp_path / "pairs.jsonl"
    file.write_text("\n".join(json.dumps({"text": a, "source": b, **ASKED}) for a, b in pairs))
    texts, sources = zip(*pairs, strict=True)
    found = attnviz.patch(
        texts, sources, heads=["L4H0"], mlps=[2, 4], together=True, top=2, **ASKED
    )
    flags = "--head", "L4H0", "--mlp", "2,4", "--together", "--top", "2"
    out = run("patch", "--pairs", str(file), *flags, "-f", "jsonl").out
    assert found.rows == rows_in(out)
    both = ["before"] * 2 + ["after"] * 2
    assert [row["when"] for row in found.rows] == [*both, *both, None]
    each, gaps = (
        [row[name] - row["before"] for row in found.rows[:8:4]] for name in ("after", "source")
    )
    assert np.isclose(found.rows[-1]["share"], sum(each) / sum(gaps))
    shown = run("patch", "--pairs", str(file), *flags).out
    assert "next token" not in shown
    assert " ± " in shown
