"""Circuits from the weights: copying and composition, against the whole matrices."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from attnviz.commands.heads.qk_ov import circuits_of
from attnviz.models.catalog import Source, load
from attnviz.models.folder.config import GPTConfig
from attnviz.models.frozen.qk_ov import compositions, copying, weights_of
from attnviz.models.huggingface.frozen import freeze_transformers
from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.runs import freeze_decoder
from attnviz.records.heads import Head
from attnviz.records.parts import Through
from tests.architectures import named
from tests.commands.heads.test_retrieval import WORDS, planted, saved
from tests.conftest import Run
from tests.frozen import heads_of, model_of
from tests.models.test_frozen import small_gpt

ONE = torch.tensor([[3]])


def test_copying_is_that_of_the_whole_circuit_over_the_vocabulary() -> None:
    """W_E·W_V·W_O·W_U with both norms' weights, and without what is the same for all tokens."""
    model = small_gpt()
    run = freeze_decoder(model, ONE)
    found = {each.head: each for each in copying(run, weights_of(run))}
    wte = model.wte.weight.detach()
    centred = torch.eye(12).double() - 1 / 12
    for layer, block in enumerate(model.h):
        for head in range(2):
            own = slice(6 * head, 6 * head + 6)
            values = wte @ centred @ (block.ln_1.weight[:, None] * block.attn.w_v.weight[:, own])
            out = block.attn.w_o.weight[own] @ centred @ (model.ln_f.weight[:, None] * wte.T)
            whole = (values @ (out - out.mean(dim=1, keepdim=True))).detach()
            eigenvalues = np.linalg.eigvals(whole.numpy())
            share = eigenvalues.real.sum() / np.abs(eigenvalues).sum()
            each = found[Head(layer, head)]
            assert each.eigenvalues == pytest.approx(share, abs=1e-6)
            top = (whole.argmax(dim=1) == torch.arange(31)).double().mean()
            assert each.top == pytest.approx(float(top))
            assert each.tokens == 31


@pytest.mark.parametrize("through", ["query", "key", "value"])
def test_composition_is_the_norm_of_the_product(through: Through) -> None:
    model = small_gpt()
    heads = weights_of(freeze_decoder(model, ONE))
    scores, expected = compositions(heads, through)
    names = list(heads)
    for i, writer in enumerate(names):
        for j, reader in enumerate(names):
            if writer.layer >= reader.layer:
                assert np.isnan(scores[i, j])
                continue
            w, r = heads[writer], heads[reader]
            ov = w.w_v @ w.w_o
            wanted = {"query": r.w_q @ r.w_k.T, "key": r.w_k @ r.w_q.T, "value": r.w_v @ r.w_o}[
                through
            ]
            norm = torch.linalg.matrix_norm
            score = float(norm(ov @ wanted) / (norm(ov) * norm(wanted)))
            assert scores[i, j] == pytest.approx(score, abs=1e-5)
    assert expected == pytest.approx(12**-0.5)


def test_what_random_matrices_have_is_expected() -> None:
    torch.manual_seed(0)
    shapes = [(torch.randn(64, 8), torch.randn(8, 64)) for _ in range(40)]
    norm = torch.linalg.matrix_norm
    scores = [
        float(norm(a @ b @ c @ d) / (norm(a @ b) * norm(c @ d)))
        for (a, b), (c, d) in zip(shapes[::2], shapes[1::2], strict=True)
    ]
    assert np.mean(scores) == pytest.approx(64**-0.5, rel=0.1)


def test_a_planted_circuit_composes_through_its_keys(tmp_path: Path) -> None:
    circuits = circuits_of(load(Source(saved(tmp_path, planted()))))
    first = circuits.compositions[0]
    assert (first.writer, first.reader, first.through) == (Head(0, 0), Head(1, 0), "key")
    scores = {pair.through: pair.score for pair in circuits.compositions}
    assert scores["key"] > 5 * scores["query"]


def test_where_positions_turn_queries_and_keys_only_values_are_compared() -> None:
    model = model_of(named("llama"))
    run = freeze_transformers(model, ONE, heads_of(model))
    assert run.rotary
    scores, _ = compositions(weights_of(run), "value")
    assert np.isfinite(scores[:4, 4:]).all()
    assert not freeze_decoder(small_gpt(), ONE).rotary


def test_a_norm_behind_the_output_projection_is_part_of_a_circuit() -> None:
    """With its weight negated, OLMo 2 lowers what it raised."""
    found = []
    for sign in (1, -1):
        model = causal("Olmo2")
        for layer in model.model.layers:
            layer.post_attention_layernorm.weight.data *= sign
        run = freeze_transformers(model, ONE, [4, 4])
        found.append([each.eigenvalues for each in copying(run, weights_of(run))])
    assert found[0] == pytest.approx([-share for share in found[1]], abs=1e-4)
    assert max(map(abs, found[0])) > 0.01


def writing_what_a_norm_cancels(attention: Any) -> None:
    attention.w_o.weight[:6] = torch.randn(6, 1).expand(6, 12)


def reading_what_a_norm_cancels(attention: Any) -> None:
    attention.w_v.weight[:, :6] = torch.randn(1, 6)


def writing_nothing(attention: Any) -> None:
    attention.w_o.weight[:6] = 0


def reading_nothing(attention: Any) -> None:
    attention.w_v.weight[:, :6] = 0


def writing_nothing_of_what_is_read(attention: Any) -> None:
    read = torch.linalg.qr(torch.randn(6, 6).double()).Q.to(attention.w_v.weight.dtype)
    attention.w_v.weight[:, :6] = torch.randn(12, 3).to(read) @ read[:3]
    attention.w_o.weight[:6] = read[3:].T @ torch.randn(3, 12).to(read)


NOTHING = (
    writing_what_a_norm_cancels,
    reading_what_a_norm_cancels,
    writing_nothing,
    reading_nothing,
    writing_nothing_of_what_is_read,
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("nothing", NOTHING)
def test_a_circuit_that_is_0_but_for_rounding_has_no_score(
    nothing: Callable[[Any], None], dtype: torch.dtype
) -> None:
    model = small_gpt().to(dtype)
    with torch.no_grad():
        model.h[0].ln_1.weight.fill_(1)
        nothing(model.h[0].attn)
    run = freeze_decoder(model, ONE)
    heads = weights_of(run)
    zero, *others = copying(run, heads)
    assert np.isnan([zero.eigenvalues, zero.top]).all()
    assert np.isfinite([[each.eigenvalues, each.top] for each in others]).all()
    scores, _ = compositions(heads, "value")
    # what a norm of the reader cancels is read by nobody: that is a score of 0
    read = scores[0, 2:]
    assert np.isnan(read).all() or read == pytest.approx(np.zeros(4), abs=1e-5)
    assert np.isfinite(scores[1, 2:]).all()


def test_what_has_no_score_comes_last_and_is_left_empty(run: Run, tmp_path: Path) -> None:
    model = load(Source(saved(tmp_path, without_a_head())))
    found = circuits_of(model)
    assert np.isnan(found.copying[-1].eigenvalues)
    assert np.isnan(found.compositions[-1].score)
    rows = run("heads", "--circuits", "--model", str(tmp_path), "-f", "jsonl").out.splitlines()
    of_head = [row for row in map(json.loads, rows) if (row["layer"], row["head"]) == (0, 0)]
    assert {row["score"] for row in of_head} == {None}
    drawn = tmp_path / "a.png"
    assert run("heads", "--circuits", "--model", str(tmp_path), "-o", str(drawn)).status == 0


def without_a_head() -> GPT:
    """A model whose first head writes nothing."""
    torch.manual_seed(0)
    model = GPT(GPTConfig(WORDS, 64, 24, n_layer=2, n_head=2))
    model.h[0].attn.w_o.weight.data[:12] = 0
    return model


def causal(name: str) -> Any:
    """A tiny random model with an output layer."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "vocab_size": 61}
    config = getattr(transformers, f"{name}Config")(num_attention_heads=4, **sizes)
    return getattr(transformers, f"{name}ForCausalLM")(config).eval()
