"""`attnviz predict`: what comes next, and what the last position attends to."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import attnviz
from attnviz.commands.predict.terminal import MOST_LAYERS, render
from attnviz.console import Display
from attnviz.errors import ExitStatus
from attnviz.models.scratch.native import NativeModel
from attnviz.records.heads import Head
from attnviz.records.predict import LastLink
from tests.conftest import Run
from tests.factories import printed
from tests.reading import rows_in

TEXT = "a fluffy blue creature roamed the verdant forest . the creature was"


def test_an_adjective_of_the_creature_comes_next(run: Run) -> None:
    found = rows_in(run("predict", TEXT, "--top", "5", "-f", "jsonl").out)
    assert found[0]["token"] == "fluffy"
    assert found[0]["probability"] > 0.3
    assert {row["layer"] for row in found} == {None}


def test_each_position_says_what_followed_and_at_which_rank(run: Run) -> None:
    found = rows_in(run("predict", TEXT, "--each", "--top", "1", "-f", "jsonl").out)
    assert [row["position"] for row in found] == list(range(13))
    assert [row["followed"] for row in found[:-1]] == TEXT.split()
    assert found[-1]["followed"] is None
    for row in found[:-1]:
        best = row["rank"], row["followed_rank"]
        assert (best == (1, 1)) == (row["token"] == row["followed"])
    shown = run("predict", TEXT, "--each", "--width", "80").out
    assert "the token that followed, its probability and rank" in shown


def test_the_evidence_is_the_strongest_links_of_the_last_position(run: Run) -> None:
    shown = run("predict", TEXT, "--width", "120").out.splitlines()
    lines = [line for line in shown if line.startswith("L3  ")]
    named = ("show", TEXT, "--layer", "3", "--query", "was", "-f", "jsonl")
    off_rests = {(row["head"], row["key"]) for row in rows_in(run(*named, "--drop-sink").out)}
    raw = rows_in(run(*named).out)
    told = [row for row in raw if (row["head"], row["key"]) in off_rests and row["key"] < 12]
    best = max(told, key=lambda row: row["weight"])
    assert f"{best['weight']:.2f} (H{best['head']})" in lines[0]
    assert str(best["key_token"]) in lines[0]
    assert all(0 < link.key < 12 for link in attnviz.predict(TEXT).record.evidence)


def test_a_gpt2_folder_predicts_the_same_with_either_engine(run: Run, gpt2_folder: Path) -> None:
    arguments = (
        "predict",
        "abc def",
        "-m",
        str(gpt2_folder),
        "--lens",
        "--top",
        "3",
        "-f",
        "jsonl",
    )
    ours, theirs = (rows_in(run(*arguments, "--engine", e).out) for e in ("native", "transformers"))
    assert [row["id"] for row in ours] == [row["id"] for row in theirs]
    for a, b in zip(ours, theirs, strict=True):
        assert a["probability"] == pytest.approx(b["probability"], abs=1e-5)


def test_a_single_token_has_candidates_and_no_evidence(run: Run) -> None:
    ended = run("predict", "the", "--no-bos", "--each")
    assert ended.status is ExitStatus.OK
    assert "attends to" not in ended.out


def test_of_many_layers_those_with_the_strongest_links_are_listed_in_order() -> None:
    prediction = attnviz.predict(TEXT).record
    assert prediction.last.position == 12
    weights = {layer: (0.5 + layer / 100 if layer % 2 else 0.2) for layer in range(20)}
    links = [LastLink(Head(layer, 0), 1, weight) for layer, weight in weights.items()]
    many = replace(prediction, evidence=links)
    shown = [line for part in render(many, Display(80), 3) for line in printed(part, Display(80))]
    *_, last = shown
    listed = [int(line.split()[0][1:]) for line in shown[-1 - MOST_LAYERS : -1]]
    assert listed == [5, 7, 9, 11, 13, 15, 17, 19]
    assert last == "12 more layers with weaker links; attnviz show --head all --query 12 has all"
    few = [
        line for part in render(prediction, Display(80), 3) for line in printed(part, Display(80))
    ]
    assert "more layer" not in "\n".join(few)


def test_the_parts_of_a_logit_add_up_to_it(run: Run) -> None:
    text = "a fluffy blue creature roamed . the creature was"
    model = attnviz.load_model()._loaded
    assert isinstance(model, NativeModel)
    ids = [token.id for token in model.tokenizer.encode(text, bos=True, special=False)]
    with torch.no_grad():
        logits = model.model(torch.tensor([ids]))[0, -1]
    found = [
        json.loads(row)
        for row in run("predict", text, "--attribute", "-f", "jsonl").out.splitlines()
    ]
    total = sum(row["value"] for row in found)
    assert total == pytest.approx(float(logits.max()), abs=1e-4)
    assert found[0]["logit"] == pytest.approx(float(logits.max()), abs=1e-4)
    sizes = [abs(row["value"]) for row in found]
    assert sizes == sorted(sizes, reverse=True)
    out = run("predict", text, "--attribute", "--versus", "red", "--top", "3").out
    assert 'logit of " fluffy" - that of " red" = ' in out
    assert "all others" in out
