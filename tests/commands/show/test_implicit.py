"""Implicit attention of Mamba-2 layers on show: what it is called, and what it is not taken for."""

import json
from pathlib import Path

import numpy as np
import pytest
import transformers

import attnviz
from attnviz.draw.picture.heatmap import draw
from attnviz.draw.terminal.heatmap import render
from attnviz.errors import ExitStatus, UsageError
from attnviz.records.heads import Head
from attnviz.records.transforms import Implicit
from tests.architectures import save_over_bytes
from tests.conftest import Run
from tests.factories import make_capture, make_exhibit, view_lines
from tests.models.huggingface.test_implicit import built, implicit
from tests.reading import on_one_line, rows_in

TEXT = "a fluffy cat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_over_bytes(tmp_path_factory.mktemp("mamba2"), built("Mamba2")))


def test_a_map_says_that_it_is_implicit_attention_with_a_sign(run: Run, folder: str) -> None:
    arguments = ("show", TEXT, "-m", folder, "--kind", "implicit", "--head", "L2H0")
    ended = run(*arguments, "--width", "80")
    assert ended.status is ExitStatus.OK
    first = on_one_line(ended.out)
    assert first.startswith("L2H0 · ")
    assert "implicit attention of recurrent layers, signed: M of y = M·x + D·x" in first
    assert "sums to 1" not in first
    rows = rows_in(run(*arguments, "-f", "jsonl").out)
    assert min(row["implicit_weight"] for row in rows) < 0
    assert "weight" not in rows[0]
    told = json.loads(run(*arguments, "-f", "json").out)
    assert told["transforms"] == [{"kind": "implicit"}]


def test_a_head_that_nobody_named_is_picked_by_shares_of_magnitudes(run: Run, folder: str) -> None:
    ended = run("show", TEXT, "-m", folder, "--kind", "implicit", "-f", "json")
    picked = json.loads(ended.out)["about"].split()[0].rstrip(":")
    captured = attnviz.capture(TEXT, attnviz.load_model(folder, kind="implicit"))
    best = {}
    for head in captured.heads:
        sizes = abs(captured.pattern(head.layer, head.head))
        shares = sizes / sizes.sum(axis=1, keepdims=True)
        n = len(shares)
        later = [shares[k + 1 :, k].mean() if k + 1 < n else 0 for k in range(n)]
        alike = [k + 3 < n and (sizes[k + 1 :, k] > 0.3).mean() > 0.5 for k in range(n)]
        far = ((q, k) for q in range(n) for k in range(1, q - 2) if not alike[k])
        best[str(head)] = max((shares[q, k] - later[k] for q, k in far), default=-1)
    assert picked == max(best, key=lambda head: best[head])


def test_a_saved_capture_is_shown_as_it_was(run: Run, folder: str, tmp_path: Path) -> None:
    saved = str(tmp_path / "saved.npz")
    asked = ("-m", folder, "--kind", "implicit")
    assert run("show", TEXT, *asked, "--head", "L0H3", "-o", saved).status is ExitStatus.OK
    shown = run("show", TEXT, *asked, "--head", "L0H3")
    assert run("show", saved).out == shown.out
    for refused in (["--rollout"], ["--view", "table"], ["-o", "page.html"]):
        ended = run("show", saved, *refused)
        assert (ended.status, ended.out) == (ExitStatus.USAGE, ""), refused


def test_small_numbers_are_written_in_powers_of_ten() -> None:
    weights = np.array([[0.0021, 0, 0], [-0.0004, 0.0031, 0], [0.0008, -0.0012, 0.0]], np.float32)
    maps = {Head(0, 0): weights}
    for factor, said in ((1, "in units of 0.001"), (100, ""), (1e-6, "in units of 1e-09")):
        patterns = {head: each * np.float32(factor) for head, each in maps.items()}
        captured = make_capture(
            "one two three", heads_per_layer=(1,), patterns=patterns, transforms=(Implicit(),)
        )
        for width, color in ((40, False), (100, True)):
            shown = "\n".join(view_lines(render, make_exhibit(captured), width, color=color))
            numbers = ["3.1", "-1.2"] if said else ["0.31", "-0.12"]
            assert all(number in shown for number in numbers), shown
            assert said in on_one_line(shown)
            assert ("in units of" in shown) == bool(said)
    figure = draw(make_exhibit(captured)).figure
    assert "0.0" not in [text.get_text() for text in figure.axes[0].texts]


def test_a_note_says_which_layers_have_no_implicit_attention(run: Run, tmp_path: Path) -> None:
    hybrid = str(save_over_bytes(tmp_path, built("Bamba")))
    saved, note = str(tmp_path / "s.npz"), f"layer 1 of {hybrid} has no implicit attention"
    asked = ("show", TEXT, "-m", hybrid, "--kind", "implicit")
    assert note in run(*asked, "-o", saved).err
    assert note in run("show", saved, "--head", "L0H0").err
    assert "no attention of the kind that attnviz shows" in run(*asked, "--head", "L1H0").err


def test_a_picture_names_its_colours(folder: str) -> None:
    figure = attnviz.show(TEXT, attnviz.load_model(folder, kind="implicit"), heads="L0H0").figure()
    assert "implicit weight" in [axes.get_ylabel() for axes in figure.axes]


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--scores"], ["--contribution"], ["--weighted"], ["--rollout"], ["--drop-sink"]),
        *(["--words"], ["--min", "0.1"], ["--reduce", "mean"], ["--drop-key", "a"], ["--verify"]),
        *(["--view", "table"], ["--view", "text"], ["-o", "page.html"]),
    ],
    ids=" ".join,
)
def test_what_takes_weights_is_refused_before_a_model_is_looked_for(
    run: Run, arguments: list[str]
) -> None:
    ended = run("show", TEXT, "-m", "./nowhere", "--kind", "implicit", *arguments)
    assert (ended.status, ended.out) == (ExitStatus.USAGE, "")
    assert ended.err.count("\n") == 1
    assert arguments[0].removeprefix("-o") in ended.err


def test_python_refuses_the_same(folder: str) -> None:
    model = attnviz.load_model(folder, kind="implicit")
    for options in ({"rollout": True}, {"view": "table"}, {"least": 0.1}, {"scores": True}):
        with pytest.raises(UsageError):
            attnviz.show(TEXT, model, **options)  # type: ignore[arg-type]
    for options in ({"scores": True}, {"contribution": True}, {"weighted": True}):
        with pytest.raises(UsageError):
            attnviz.capture(TEXT, model, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["heads", "explain", "why", "predict", "ablate", "generate", "verify", "writes"]
)
def test_other_functions_take_no_implicit_attention(name: str) -> None:
    model = implicit(built("Bamba"))
    with pytest.raises(UsageError, match="implicit attention is only shown and captured"):
        getattr(attnviz, name)(TEXT, model=model)


def test_a_folder_of_mamba_2_says_how_it_is_shown_and_one_of_mamba_does_not(
    run: Run, folder: str, tmp_path: Path
) -> None:
    assert "show it with --kind implicit" in run("show", TEXT, "-m", folder).err
    mamba = transformers.MambaConfig(vocab_size=257, hidden_size=16, num_hidden_layers=1)
    plain = str(save_over_bytes(tmp_path, transformers.MambaForCausalLM(mamba).eval()))
    for more in ((), ("--kind", "implicit")):
        ended = run("show", TEXT, "-m", plain, *more)
        assert ended.status is (ExitStatus.USAGE if more else ExitStatus.MODEL)
        assert "show it with" not in ended.err
