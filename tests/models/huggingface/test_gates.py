"""Gates behind the softmax (Qwen3-Next, Qwen 3.5): against a hook on the projection they are of."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import attnviz
from attnviz.errors import ExitStatus
from tests.architectures import SIZES, save_over_bytes
from tests.conftest import Run, bytes_tokenizer
from tests.models.test_contributing import IDS, by_hand, measured
from tests.reading import on_one_line, rows_in

LINEAR = {"linear_num_value_heads": 2, "linear_num_key_heads": 2}
WIDTHS = {"linear_key_head_dim": 6, "linear_value_head_dim": 6, "head_dim": 6}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8}
FULL = {"layer_types": ["linear_attention", "full_attention"], "attention_bias": True}
GATED = {
    "qwen3_next": ("Qwen3Next", "Qwen3NextForCausalLM", EXPERTS),
    "qwen3_5": ("Qwen3_5Text", "Qwen3_5ForCausalLM", {}),
}
HEADS, WIDTH = 4, 6
TOKENIZER = transformers.PreTrainedTokenizerFast(tokenizer_object=bytes_tokenizer())


def gated(name: str) -> Any:
    """A seeded model over bytes, whose second layer has attention with a gate."""
    config, model, more = GATED[name]
    sizes = {**SIZES, "vocab_size": 257, "num_key_value_heads": 2, **LINEAR, **WIDTHS, **FULL}
    if name == "qwen3_next":
        more = {**more, "shared_expert_intermediate_size": 8}
    torch.manual_seed(0)
    built = getattr(transformers, model)(getattr(transformers, f"{config}Config")(**sizes, **more))
    for parameter in built.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.3)
    return built.eval()


def engine(model: Any) -> Any:
    return attnviz.load_model(model, TOKENIZER)._loaded


def seen(model: Any) -> dict[str, torch.Tensor]:
    """The gate (n, h, d_v), values (n, kv_heads, d_v), pattern (h, n, n) and W_O."""
    model.set_attn_implementation("eager")
    kept = dict[str, torch.Tensor]()
    attention = model.model.layers[1].self_attn

    def query(_m: Any, _a: Any, output: torch.Tensor) -> None:
        kept["gate"] = output[0].view(len(IDS), HEADS, 2, WIDTH)[:, :, 1].sigmoid()

    def value(_m: Any, _a: Any, output: torch.Tensor) -> None:
        kept["v"] = output[0].view(len(IDS), 2, WIDTH)

    hooks = [attention.q_proj.register_forward_hook(query)]
    hooks.append(attention.v_proj.register_forward_hook(value))
    with torch.no_grad():
        run = model(torch.tensor([IDS]), output_attentions=True, use_cache=False)
    for hook in hooks:
        hook.remove()
    (pattern,) = (each for each in run.attentions if each is not None)
    every = {**kept, "pattern": pattern[0], "w_o": attention.o_proj.weight.detach()}
    return {name: tensor.double() for name, tensor in every.items()}


@pytest.mark.parametrize("name", GATED)
def test_a_gate_is_the_mean_sigmoid_and_the_share_of_the_length_that_passes(name: str) -> None:
    model = gated(name)
    found = engine(model).gates(IDS)
    assert found is not None
    assert np.isnan(found[:, 0]).all()  # a layer without attention
    oracle = seen(model)
    for head in range(HEADS):
        own = slice(WIDTH * head, WIDTH * (head + 1))
        z = oracle["pattern"][head] @ oracle["v"][:, head // 2]
        gate, w_o = oracle["gate"][:, head], oracle["w_o"][:, own].t()
        np.testing.assert_allclose(found[0, 1, head], gate.mean(dim=1), atol=1e-5)
        passed = (gate * z @ w_o).norm(dim=1) / (z @ w_o).norm(dim=1)
        np.testing.assert_allclose(found[1, 1, head], passed, atol=1e-4)


@pytest.mark.parametrize("name", GATED)
def test_contributions_are_those_behind_the_gate(name: str) -> None:
    model = gated(name)
    found = measured(engine(model), IDS, {1: HEADS})
    oracle = seen(model)
    for head in range(HEADS):
        w_o = oracle["w_o"][:, WIDTH * head : WIDTH * (head + 1)].t()
        pattern, values = oracle["pattern"][head], oracle["v"][:, head // 2]
        for query, gate in enumerate(oracle["gate"][:, head]):
            row = by_hand(pattern, values, gate[:, None] * w_o)[query]
            np.testing.assert_allclose(found[1, head, query], row, atol=1e-4)


@pytest.mark.parametrize("name", GATED)
def test_scores_of_heads_are_those_of_transformers_weights(name: str) -> None:
    model = gated(name)
    rows = attnviz.heads("abcdab", attnviz.load_model(model, TOKENIZER)).rows
    ids = TOKENIZER("abcdab").input_ids
    model.set_attn_implementation("eager")
    with torch.no_grad():
        attentions = model(torch.tensor([ids]), output_attentions=True).attentions
    (pattern,) = (each[0] for each in attentions if each is not None)
    for row in rows:
        itself = pattern[row["head"]].diagonal().mean()
        assert row["self"] == pytest.approx(float(itself), abs=1e-4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    model = gated("qwen3_next")
    bias = model.model.layers[1].self_attn.q_proj.bias
    with torch.no_grad():
        bias.view(HEADS, 2, WIDTH)[2, 1] = -20  # the gate of one head is shut
    return str(save_over_bytes(tmp_path_factory.mktemp("gated"), model))


def test_show_says_what_passes_and_which_weights_are_gated_to_nothing(
    run: Run, folder: str, tmp_path: Path
) -> None:
    ask = ("show", "abcdab", "-m", folder, "--head", "L1H2")
    said = on_one_line(run(*ask, "--query", "d").out)
    assert "a gate multiplies the head's weighted values by 0.00 on average" in said
    assert "gated to nothing (under 0.05), so that its weights add nothing: d" in said
    opened = on_one_line(run(*ask[:-1], "L1H1").out)
    assert "a gate multiplies" in opened
    assert "gated to nothing" not in opened
    both = on_one_line(run(*ask[:-1], "L1H1,L1H2").out)
    assert "these heads' weighted values" in both
    assert "L1H2 at a#1" in both
    assert "and 2 more" in both
    saved = str(tmp_path / "c.npz")
    run(*ask, "-o", saved)
    assert "gated to nothing" in run("show", saved, "--head", "L1H2").out


def test_rows_and_json_hold_what_passes_beside_the_weight(run: Run, folder: str) -> None:
    ask = ("show", "abcdab", "-m", folder, "--head", "L1H1,L1H2")
    rows = rows_in(run(*ask, "--query", "-1", "--query", "c", "-f", "jsonl").out)
    model = attnviz.load_model(folder)
    gates = model._loaded.gates(TOKENIZER("abcdab").input_ids)
    for row in rows:
        held = gates[:, row["layer"], row["head"], row["query"]]
        assert [row["gate"], row["passed"]] == pytest.approx(held.tolist(), abs=1e-6)
    names = run(*ask, "-f", "csv").out.splitlines()[0].split(",")
    assert names[7:10] == ["weight", "gate", "passed"]
    told = json.loads(run(*ask, "--query", "c", "-f", "json").out)
    assert np.array(told["gates"]).shape == (2, 2, 1)
    columns = attnviz.show("abcdab", model, heads="L1H1,L1H2").to_columns()
    at = [row["query"] for row in rows].index(2)
    same = (columns["head"] == rows[at]["head"]) & (columns["query"] == 2)
    assert columns["gate"][same][0] == pytest.approx(rows[at]["gate"])
    merged = rows_in(run(*ask, "--words", "-f", "jsonl").out)
    whole = gates[:, 1, 1].mean(axis=1)
    assert [merged[0]["gate"], merged[0]["passed"]] == pytest.approx(whole.tolist(), abs=1e-6)
    assert "gate" not in run(*ask, "--reduce", "mean", "-f", "csv").out.splitlines()[0]


def test_an_answer_has_what_passes_joined_over_its_heads_as_their_rows_are(
    run: Run, folder: str, tmp_path: Path
) -> None:
    ask = ("generate", "ab. cd", "-m", folder, "--target", "e. fa", "--head", "L1H1,L1H2")
    model = attnviz.load_model(folder)
    gates = model._loaded.gates(TOKENIZER("ab. cde. f").input_ids)[:, 1]  # (2, heads, n)
    first = len("ab. cd") - 1  # predicts the answer's first token
    parts = {1: slice(first, first + 2), 2: slice(first + 2, first + 5)}
    for how, join in (("mean", np.mean), ("max", np.max)):
        rows = rows_in(run(*ask, "--reduce", how, "-f", "jsonl").out)
        assert {row["row"] for row in rows} == {1, 2}
        for row in rows:
            held = join(gates[:, 1:3, parts[row["row"]]], axis=1).mean(axis=-1)
            assert [row["gate"], row["passed"]] == pytest.approx(held.tolist(), abs=1e-6)
    for row in rows_in(run(*ask, "--rows", "head", "-f", "jsonl").out):
        held = gates[:, row["head"], first : first + 5].mean(axis=-1)
        assert [row["gate"], row["passed"]] == pytest.approx(held.tolist(), abs=1e-6)
    answer = attnviz.generate("ab. cd", model, target="e. fa", heads="L1H2")
    assert all(row["passed"] < 0.05 for row in answer.shares())
    saved = str(tmp_path / "a.npz")
    answer.save(saved)
    assert "gated to nothing" in on_one_line(run("show", saved, "--head", "L1H2").out)
    plain = attnviz.generate("a fluffy blue creature", target="ran").shares()
    assert "gate" not in plain[0]


def test_an_answer_says_which_of_its_parts_are_gated_to_nothing(run: Run, folder: str) -> None:
    ask = ("generate", "ab. cd", "-m", folder, "--target", "e. fa", "--head")
    for view in ("table", "links", "text", "heatmap"):
        said = on_one_line(run(*ask, "L1H2", "--view", view, "--rows", "sentence").out)
        nothing = "gated to nothing (under 0.05), so that its weights add nothing: “e.” “fa”"
        assert nothing in said.replace(", “fa”", " “fa”"), view
    both = on_one_line(run(*ask, "L1H1,L1H2").out)
    assert "these heads' weighted values" in both
    assert "gated to nothing" not in both
    page = attnviz.generate("ab. cd", folder, target="e. fa", heads="L1H2").page()
    assert "add nothing: statement 1, statement 2." in page
    assert "L1H2" in on_one_line(run(*ask, "all", "--rows", "head").out).partition("add nothing")[2]


def test_what_does_not_follow_the_gate_is_refused_in_one_sentence(run: Run, folder: str) -> None:
    for command in ("explain", "show --weighted"):
        words = command.split()
        ended = run(words[0], "abcdab", "-m", folder, "--head", "L1H1", *words[1:])
        assert ended.status is not ExitStatus.OK
        assert "puts a gate on its heads' outputs, which is not followed here" in ended.err
