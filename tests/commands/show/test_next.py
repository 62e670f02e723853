"""The first screen of a causal model: what comes next, and which link brings it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import attnviz
from attnviz.draw.headlines import next_said
from attnviz.inputs.restore import CAPTURE, capture_from, facts_from
from attnviz.kit import prepare
from attnviz.kit.choose import bringing_choice
from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.native import save_checkpoint
from attnviz.records.capture import RESTS, VALUE_NORMS
from attnviz.records.exhibit import Choice
from attnviz.records.heads import Head
from attnviz.records.rests import find_rests, rests_in
from tests.commands.heads.test_retrieval import WORDS, planted, saved
from tests.conftest import Run, bytes_tokenizer

COPIED = "Qx#Zk9 w&Qx#Zk"  # "k" is followed by "9", which the last position looks up


def copying() -> GPT:
    """The planted model, whose second head writes what it attends to into the output."""
    model = planted()
    second: Any = model.h[1].attn
    token = slice(0, WORDS)
    with torch.no_grad():
        second.w_v.weight[token, token] = torch.eye(WORDS)
        second.w_o.weight[token, token] = 3 * torch.eye(WORDS)
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return saved(tmp_path_factory.mktemp("copying"), copying())


def test_the_head_that_brings_what_comes_next_is_shown_and_its_link_told(
    run: Run, folder: str
) -> None:
    out = " ".join(run("show", COPIED, "-m", folder).out.split())
    assert out.startswith('next: "9" ')
    assert "strongest link: k#2 → 9 +" in out
    assert "by L1H0" in out
    assert "L1H0: “k” of “Zk” → “9” of “Zk9” 1.00" in out
    assert "(chosen for its effect on the next token; --head all shows every head)" in out


def test_the_same_head_is_chosen_where_patterns_are_too_large_to_keep(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = attnviz.show(COPIED, folder).record
    monkeypatch.setattr(prepare, "SMALL", 0)
    model: Any = attnviz.load_model(folder)
    kind, runs = type(model._loaded), list[Any]()
    read = kind.last
    monkeypatch.setattr(kind, "last", lambda *given: runs.append(1) or read(*given))
    long = attnviz.show(COPIED, folder).record
    assert len(runs) == 1
    assert long.choice == whole.choice
    assert long.capture.brings == whole.capture.brings
    np.testing.assert_array_equal(long.capture.extras[RESTS], whole.capture.extras[RESTS])


def test_neither_the_word_itself_nor_the_first_token_brings_anything(tmp_path: Path) -> None:
    """Whose head attends to all tokens alike."""
    model = copying()
    second: Any = model.h[1].attn
    second.w_q.weight.data.zero_()  # its rows are even
    save_checkpoint(tmp_path / "even", model, bytes_tokenizer())
    brings = attnviz.show("aab aab", str(tmp_path / "even")).record.capture.brings
    assert brings is not None
    assert brings.start in (1, 2, 3)


def test_where_no_link_stands_out_that_is_said(gpt2_folder: Path) -> None:
    record = attnviz.show("a b c d e f", str(gpt2_folder)).record
    brings = record.capture.brings
    assert brings is not None
    low = replace(record.capture, brings=replace(brings, times=0.5))
    exhibit = replace(record, capture=low, choice=Choice(record.capture.heads, "moves"))
    assert next_said(exhibit).endswith("no link stands out from chance")
    assert bringing_choice(low, low.heads) is None


def test_a_named_head_has_no_line_on_what_comes_next(run: Run, folder: str) -> None:
    out = run("show", COPIED, "-m", folder, "--head", "L1H0").out
    assert "next:" not in out


def test_rests_are_left_out_of_the_told_links_and_named(tmp_path: Path) -> None:
    """Every query of a head attends to one key, whose column is alike whoever asks."""
    weights = np.zeros((2, 9, 9), np.float32)
    weights[:, :, 0] = 1
    weights[1, 3:, 0], weights[1, 3:, 2] = 0.5, 0.5
    weights[1, 8] = np.eye(9, dtype=np.float32)[5]
    tokens = [f"Ġ{word}" for word in "one two three four five six seven eight nine".split()]
    shown = attnviz.from_attention(weights, tokens).show()
    assert shown.record.choice.heads == ((0, 1),)
    assert np.flatnonzero(
        rests_in(shown.record.capture, shown.record.choice.heads[0])
    ).tolist() == [0, 2]
    said = " ".join(str(shown).split())
    assert "L0H1: nine → six 1.00" in said
    assert "rests by their columns: one, three" in said


def test_a_saved_capture_chooses_as_the_model_did(folder: str, tmp_path: Path) -> None:
    file = tmp_path / "saved.npz"
    attnviz.capture(COPIED, folder).save(file)
    loaded = attnviz.load(file)
    assert loaded.record.brings == attnviz.capture(COPIED, folder).record.brings
    assert str(loaded.show()) == str(attnviz.show(COPIED, folder))


@pytest.mark.parametrize("option", ["--scores", "--contribution"])
def test_scores_of_the_chosen_head_keep_its_rests_and_what_comes_next(
    run: Run, folder: str, option: str
) -> None:
    rests = rests_in(attnviz.show(COPIED, folder).record.capture, Head(1, 0))
    out = " ".join(run("show", COPIED, "-m", folder, option).out.split())
    assert out.startswith('next: "9" ')
    assert ("rests: " in out) == rests.any()


@pytest.mark.parametrize(
    "change",
    [
        {"start": 999},
        {"start": -1},
        {"likeliest": [["9", -7e20]]},
        {"likeliest": [["9", "1"]]},
        {"likeliest": []},
        {"likeliest": [["9" * 100_000, 0.5]]},
        {"effects": [[9, 0, 1.0]]},
        {"effects": [[0, 0, float("inf")]]},
        {"effects": [["a", 0, 1.0]]},
        {"times": 1e300},
    ],
)
def test_what_comes_next_in_a_file_is_checked(folder: str, change: dict[str, Any]) -> None:
    record = attnviz.capture(COPIED, folder).record
    facts: Any = json.loads(json.dumps(CAPTURE.row(record)))
    assert capture_from(facts_from(facts, "it")).brings == record.brings
    facts["brings"] = {**facts["brings"], **change}
    with pytest.raises(ValueError, match=r"cannot be right|is no"):
        capture_from(facts_from(facts, "it"))


def test_a_row_is_not_told_first_for_where_that_of_another_line_stood(
    run: Run, folder: str
) -> None:
    """The last byte of the first line stands where the fifth repeated one of the second does."""
    asked = ("show", "--lines", "-m", folder, "-f", "json")
    out = run(*asked, stdin=f"{COPIED}\n{COPIED}Qx\n".encode()).out
    first = json.JSONDecoder().raw_decode(out)
    second = json.loads(out[first[1] :])
    assert first[0]["finding"]["links"][0]["query"] == 13
    assert second["finding"]["links"][0]["query"] != 13


def test_each_line_says_what_comes_next_though_its_head_is_that_of_the_first(
    run: Run, folder: str
) -> None:
    first, second = run(
        "show", "--lines", "-m", folder, stdin=f"{COPIED}\nZk7 abZk\n".encode()
    ).out.split("line 2")
    assert 'next: "9" ' in first
    assert 'next: "7" ' in second
    assert "k#2 → 7 +" in second
    assert "chosen on line 1" in second


def test_lengths_of_values_are_measured_once(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    weighted = attnviz.capture(COPIED, folder, weighted=True)
    model: Any = attnviz.load_model(folder)
    expected = model._loaded.value_norms([token.id for token in weighted.tokens])
    np.testing.assert_allclose(weighted.record.extras[VALUE_NORMS], expected, rtol=1e-4, atol=1e-5)
    monkeypatch.setattr(
        type(model._loaded), "value_norms", lambda *_: pytest.fail("measured twice")
    )
    model.capture(COPIED, weighted=True)


def test_a_key_from_which_a_named_head_takes_what_it_is_known_for_is_no_rest(run: Run) -> None:
    text = "a fluffy blue creature roamed the verdant forest"
    out = " ".join(run("show", text, "--drop-sink").out.split())
    assert "of the weight was on BOS, which is left out" in out
    assert "creature → fluffy .52, blue .46" in out
    named = attnviz.capture(text).record
    found = (find_rests(each).of(Head(3, 2)) for each in (named, replace(named, named_heads=())))
    assert [np.flatnonzero(each).tolist() for each in found] == [[], [2, 3]]
