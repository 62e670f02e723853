"""A vector of the stream: made by compare, added by generate, projected out by ablate."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import attnviz
from attnviz.errors import ExitStatus, InputError, UsageError
from tests.builtin import LAYERS
from tests.conftest import Run
from tests.hooked import Hooked
from tests.reading import on_one_line, rows_in

COLORS = ["a blue bird slept", "a blue cat sat near the blue door", "the blue boat was slow"]
SIZES = ["a tall bird slept", "a big cat sat near the small door", "the long boat was slow ."]
PROMPT = "a fluffy blue creature roamed . the creature was"
V = 3 * np.random.default_rng(4).standard_normal(128).astype(np.float32)
UNIT = torch.from_numpy(V / np.linalg.norm(V))


def project(x: Tensor) -> Tensor:
    return x - (x @ UNIT)[..., None] * UNIT


@contextmanager
def changing(
    hooked: Hooked, layers: list[int], change: Callable[[Tensor], Tensor]
) -> Iterator[None]:
    """Change the stream at the inputs of layers of the checkpoint in transformers."""
    with ExitStack() as stack:
        for layer in layers:
            handle = hooked.model.transformer.h[layer].register_forward_pre_hook(
                lambda _, args: (change(args[0]), *args[1:])
            )
            stack.callback(handle.remove)
        yield


def files(folder: Path) -> tuple[str, str]:
    for name, texts in {"colors": COLORS, "sizes": SIZES}.items():
        (folder / f"{name}.txt").write_text("\n".join(texts) + "\n")
    return str(folder / "colors.txt"), str(folder / "sizes.txt")


# compare: the difference


def hidden_of(hooked: Hooked, text: str) -> np.ndarray:
    """(layers, d): the stream at the input of each layer, at the last token."""
    with torch.inference_mode():
        states = hooked.model(torch.tensor([hooked.ids(text)]), output_hidden_states=True)
    return np.stack([each[0, -1].numpy() for each in states.hidden_states[:LAYERS]])


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_the_vector_is_the_difference_of_the_hidden_states_of_transformers(
    engine: Any, run: Run, tmp_path: Path
) -> None:
    hooked, (a, b) = Hooked(), files(tmp_path)
    ours, theirs = (np.mean([hidden_of(hooked, t) for t in s], axis=0) for s in (COLORS, SIZES))
    for layer in range(LAYERS):
        out = tmp_path / "v.npy"
        asked = [*"compare --difference --engine".split(), engine, "--layer", str(layer)]
        assert run(*asked, "--file", a, "--file", b, "-o", str(out)).status is ExitStatus.OK
        read = np.load(out)
        assert read.shape == (128,)
        assert read.dtype == np.float32
        np.testing.assert_allclose(read, ours[layer] - theirs[layer], atol=1e-5)
    rows = attnviz.compare(files=[COLORS, SIZES], difference=True).rows
    lengths = np.linalg.norm(ours - theirs, axis=1)
    np.testing.assert_allclose([row["length"] for row in rows], lengths, rtol=1e-4)
    assert [row["layer"] for row in rows] == list(range(LAYERS))
    assert {(row["texts"], row["against_texts"]) for row in rows} == {(3, 3)}


def test_a_difference_goes_from_compare_to_the_others(run: Run, tmp_path: Path) -> None:
    a, b = files(tmp_path)
    v = str(tmp_path / "v.npy")
    run("compare", "--file", a, "--file", b, "--difference", "--layer", "2", "-o", v)
    same = attnviz.compare(files=(a, b), difference=True, layers=2)
    same.save(tmp_path / "w.npy")
    assert (tmp_path / "w.npy").read_bytes() == Path(v).read_bytes()
    assert (
        "v.npy × 2 added at layer 2"
        in run("generate", PROMPT, "--add", f"2:{v}", "--strength", "2").out
    )
    assert "v.npy projected out" in run("ablate", PROMPT, "--direction", v).out
    own = run("compare", "--file", a, "--file", b, "--difference", "--layer", "2", "-f", "npy")
    assert own.raw == Path(v).read_bytes()


def test_what_is_no_difference_of_two_sets_is_refused(run: Run, tmp_path: Path) -> None:
    a, b = files(tmp_path)
    both = ["compare", "--file", a, "--file", b, "--difference"]
    refused = {
        "a vector is of one layer": [*both, "-o", str(tmp_path / "v.npy")],
        "that of two sets of texts": ["compare", "--file", a, "--difference"],
        "and no other text": [*both, "a blue bird"],
        "is for --difference": ["compare", "--file", a, "--file", b],
        "is for patterns": [*both, "--query", "blue"],
        "draws no picture": [*both, "-o", str(tmp_path / "v.png")],
        "writes no vector": ["compare", "a cat", "a dog", "-o", str(tmp_path / "v.npy")],
        "there is no layer 7": [*both, "--layer", "7"],
        "does not write npy": ["show", "a cat", "-o", str(tmp_path / "v.npy")],
        "does not predict": [*both, "--model", "translator"],
        "would overwrite": [
            *both[:3],
            "--file",
            str(tmp_path / "v.npy"),
            "--difference",
            "-o",
            str(tmp_path / "v.npy"),
        ],
    }
    (tmp_path / "v.npy").write_text("a text\n")
    for said, asked in refused.items():
        ended = run(*asked)
        assert said in on_one_line(ended.err), asked
        assert ended.status in (ExitStatus.USAGE, ExitStatus.INPUT)
    assert (tmp_path / "v.npy").read_text() == "a text\n"


# ablate: a direction is projected out


def test_each_layer_without_the_direction_is_as_a_hook_on_it_makes_it() -> None:
    hooked = Hooked()
    found = attnviz.ablate(PROMPT, direction=V, rows="token")
    for layer in range(LAYERS):
        own = [row for row in found.rows if row["layer"] == layer]
        with changing(hooked, [layer], project):
            after = hooked.followed(PROMPT).numpy()
        np.testing.assert_allclose([row["after"] for row in own], after, atol=1e-4)
        assert {(row["kind"], row["direction"], row["replacement"]) for row in own} == {
            ("residual", "a vector", None)
        }
    with changing(hooked, [0, 2, 3], project):
        after = hooked.followed(PROMPT).numpy()
    some = attnviz.ablate(PROMPT, direction=V, layers="0,2-3", together=True, rows="token")
    np.testing.assert_allclose([row["after"] for row in some.rows], after, atol=1e-4)


@pytest.mark.parametrize("exponent", [-40, -30, -13, 20, 37])
def test_the_length_of_a_direction_does_not_count(exponent: int) -> None:
    unit = V / np.abs(V).max()
    plain, scaled = (
        attnviz.ablate(PROMPT, direction=each, layers="2").rows[0]["change"]
        for each in (unit, (unit * 10.0**exponent).astype(np.float32))
    )
    assert abs(plain) > 0.01
    assert scaled == pytest.approx(plain, abs=1e-4)


def test_all_writes_to_the_stream_without_it_are_weights_that_do_not_have_it() -> None:
    """Arditi et al. 2024, section 4.1: ablation is the same as orthogonal weights."""
    hooked = Hooked()
    inner = hooked.model.transformer
    for embedding in (inner.wte, inner.wpe):  # the sum of both arrives at layer 0
        embedding.weight = torch.nn.Parameter(project(embedding.weight.detach()))
    hooked.model.lm_head.weight = torch.nn.Parameter(Hooked().model.lm_head.weight.detach())
    for block in inner.h:
        for written in (block.attn.c_proj, block.mlp.c_proj):  # (d_in, d)
            written.weight = torch.nn.Parameter(project(written.weight.detach()))
            written.bias = torch.nn.Parameter(project(written.bias.detach()))
    every = {"layers": 0, "whole_layers": "all", "together": True, "rows": "token"}
    found = attnviz.ablate(PROMPT, direction=V, **every)  # type: ignore[arg-type]
    after = [row["after"] for row in found.rows]
    np.testing.assert_allclose(after, hooked.followed(PROMPT).numpy(), atol=1e-4)
    assert np.abs(np.array(after) - [row["before"] for row in found.rows]).max() > 0.1


def test_a_direction_is_shown_by_every_format(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", V)
    asked = ["ablate", PROMPT, "--direction", str(tmp_path / "v.npy")]
    out = on_one_line(run(*asked).out)
    assert "v.npy projected out of the stream at a layer's input" in out
    assert "negative = the direction helps" in out
    assert "L2 stream" in out
    mlps = on_one_line(run(*asked, "--mlp", "all").out)
    assert "v.npy projected out of an MLP's output" in mlps
    together = on_one_line(run(*asked, "--together").out)
    assert "without the direction in the stream of every layer: " in together
    assert {row["direction"] for row in rows_in(run(*asked, "-f", "jsonl").out)} == {"v.npy"}
    for name in ("a.svg", "a.html", "a.csv"):
        more = ["--rows", "token"] if name.endswith("html") else []
        run(*asked, *more, "-o", str(tmp_path / name))
        assert "v.npy" in (tmp_path / name).read_text()
    lines = [*asked[:1], "--lines", "--file", files(tmp_path)[0], *asked[2:], "-f", "csv"]
    assert "v.npy" in run(*lines).out


@pytest.mark.parametrize("option", ["--head L1H2", "--cut blue:a", "--with mean", "--draws 3"])
def test_what_a_direction_makes_idle_is_refused(option: str, run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", V)
    ended = run("ablate", PROMPT, "--direction", str(tmp_path / "v.npy"), *option.split())
    assert ended.status is ExitStatus.USAGE
    assert f"{option.split()[0]} does nothing for a direction of the stream" in ended.err


# generate: a vector is added


def by_hand(hooked: Hooked, layer: int, strength: float, most: int) -> tuple[list[int], Tensor]:
    """The likeliest tokens with a hook, and the log-probability of each."""
    ids, logs = hooked.ids(PROMPT), list[Tensor]()
    n = len(ids)
    with changing(hooked, [layer], lambda x: x + strength * torch.from_numpy(V)):
        for _ in range(most):
            with torch.inference_mode():
                last = hooked.model(torch.tensor([ids])).logits[0, -1].log_softmax(dim=-1)
            ids.append(int(last.argmax()))
            logs.append(last.max())
    return ids[n:], torch.stack(logs)


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_the_answer_is_that_of_a_loop_with_a_hook_and_so_are_its_rows(engine: Any) -> None:
    hooked, model = Hooked(), attnviz.load_model(engine=engine)
    found = attnviz.generate(
        PROMPT, model, add={1: V}, strength=-0.5, max_new_tokens=4, heads="L1H0,L3H2"
    )
    ids, _ = by_hand(hooked, 1, -0.5, 4)
    assert [token.id for token in found.tokens] == ids
    hooked.model.set_attn_implementation("eager")
    read = [*hooked.ids(PROMPT), *ids[:-1]]
    for strength, same in ((-0.5, True), (0.0, False)):
        add = torch.from_numpy(strength * V)
        with changing(hooked, [1], lambda x, add=add: x + add), torch.inference_mode():
            out = hooked.model(torch.tensor([read]), output_attentions=True)
        for layer, head in ((1, 0), (3, 2)):
            own = found.capture.pattern(layer, head)
            rows = out.attentions[layer][0, head, -4:].numpy()
            assert bool(np.abs(own - rows).max() < 1e-4) is same


def test_a_check_runs_the_steered_model_too(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", V)
    hooked, found = Hooked(), list[float]()
    whole, gone = hooked.ids(PROMPT), len(hooked.ids("a fluffy blue creature roamed ."))
    texts = whole, [whole[0], *whole[gone:]]  # and without the first sentence
    blue = hooked.ids("blue")[-1]
    for strength in (1, 0):
        add = torch.from_numpy(strength * V)
        with changing(hooked, [3], lambda x, add=add: x + add), torch.inference_mode():
            every = [hooked.model(torch.tensor([ids])).logits[0, -1] for ids in texts]
        before, after = (float(each.log_softmax(dim=-1)[blue]) for each in every)
        asked = ["--add", f"3:{tmp_path}/v.npy", "--strength", str(strength)]
        out = run("generate", PROMPT, "--target", "blue", *asked, "--check", "-f", "jsonl").out
        (row,) = [row for row in rows_in(out) if row["segment"] == "1"]
        assert row["change"] == pytest.approx(after - before, abs=1e-3)
        found.append(row["change"])
    assert abs(found[0] - found[1]) > 0.1


def test_every_format_says_that_the_model_was_steered(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", V)
    asked = [
        "generate",
        PROMPT,
        "--add",
        f"2:{tmp_path}/v.npy",
        "--strength",
        "3",
        "--max-new-tokens",
        "14",
    ]
    said = "v.npy × 3 added at layer 2"
    for more in (
        "",
        "--view links",
        "--view heatmap",
        "--check",
        "--hops 1",
        "--rows head",
    ):
        assert f"builtin with {said}" in on_one_line(run(*asked, *more.split()).out), more
    for more in (
        "-f csv",
        "-f tsv",
        "-f json",
        "-f jsonl",
        "-f jsonl --rows token",
        "-f csv --check",
    ):
        assert said in run(*asked, *more.split()).out, more
    docs = [part for name in files(tmp_path) for part in ("--doc", name)]
    docs += ["--target", "the bird was blue . it slept ."]
    asked_given = [*asked[:-2], *docs, "-f", "csv"]
    for more in (
        "--check-method curve",
        "--check-method chain --hops 1",
        "--square",
        "--square --check",
    ):
        assert said in run(*asked_given, *more.split()).out, more
    for name in ("a.svg", "a.html", "a.npz"):
        assert run(*asked, "-o", str(tmp_path / name)).status is ExitStatus.OK
    assert said in on_one_line((tmp_path / "a.svg").read_text())
    assert said in (tmp_path / "a.html").read_text()
    assert said in on_one_line(run("show", str(tmp_path / "a.npz")).out)
    assert "added" not in run("generate", PROMPT, "-f", "jsonl", "--max-new-tokens", "2").out
    # sampled, by lines, into a file of results
    out = tmp_path / "r.jsonl"
    lines = ["generate", "--lines", "--file", files(tmp_path)[0], *asked[2:], "--temperature", "1"]
    assert run(*lines, "-o", str(out), "--resume").status is ExitStatus.OK
    assert all(row["added"] == said for row in rows_in(out.read_text()))
    np.save(tmp_path / "v.npy", 2 * V)  # another vector by the same name is another run
    assert "is not the one" in run(*lines, "-o", str(out), "--resume").err


def test_several_vectors_and_what_cannot_be_steered(run: Run, tmp_path: Path) -> None:
    v = f"{tmp_path}/v.npy"
    np.save(v, V)
    both = attnviz.generate(PROMPT, add={0: V, 4: -V}, max_new_tokens=2)
    assert (
        "a vector added at layer 0 and a vector added at layer 4"
        in both.capture.made["models"][0]["name"]
    )
    last = attnviz.generate(PROMPT, add=f"-1:{v}", max_new_tokens=2)
    assert "v.npy added at layer 4" in last.capture.made["models"][0]["name"]
    assert "there is no layer 5" in run("generate", PROMPT, "--add", f"5:{v}").err
    assert "--strength is for --add" in run("generate", PROMPT, "--strength", "2").err
    translated = run("generate", "the cat", "--model", "translator", "--add", f"0:{v}")
    assert "not within a single residual stream" in on_one_line(translated.err)
    with pytest.raises(UsageError):
        attnviz.generate(PROMPT, add={0: V}, strength=float("nan"))


def test_what_is_no_vector_of_a_layer_leaves_the_model_as_it_is() -> None:
    model, ones = attnviz.load_model(), np.ones(128)
    for wrong in ({2: None}, 2, [(2, ones)], Path("2"), {2: 1j * ones}):
        with pytest.raises(UsageError):
            attnviz.generate("the bird was", model, add=wrong, max_new_tokens=1)
    with pytest.raises(InputError, match="is too large"):
        attnviz.generate("the bird was", model, add={2: np.full(128, 3e38)}, strength=9.0)
    plain = attnviz.generate("the bird was", model, max_new_tokens=2).text
    assert attnviz.generate("the bird was", max_new_tokens=2).text == plain


def test_a_direction_has_a_row_for_each_layer_and_one_name_together(
    run: Run, tmp_path: Path
) -> None:
    np.save(tmp_path / "v.npy", np.random.default_rng(0).standard_normal(128))
    given = "ablate", "a blue bird slept", "--direction", str(tmp_path / "v.npy"), "--layer", "1-2"
    each = run(*given, "--rows", "token").out
    assert "L1 stream" in each
    assert "L2 stream" in each
    assert "\nthe direction  " in run(*given, "--together", "--rows", "token").out
    curve = run(*given[:-1], "2", "--together", "--curve").out
    assert "without: the loss without the direction\n" in curve
