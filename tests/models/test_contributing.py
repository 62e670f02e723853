"""Contribution weights, against the formula on transformers' own numbers in float64."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from attnviz.errors import ModelError
from attnviz.kit.prepare import TextOptions, prepare
from attnviz.models.catalog import Source, load
from attnviz.records.capture import PatternBlock, Wanted
from attnviz.records.tokens import Sampling
from tests.architectures import engine_of, named

TEXT = "abc abd"
IDS = [5, 6, 7, 8, 6]


def by_hand(pattern: Any, values: Any, w_o: Any) -> NDArray[np.float64]:
    """One head: pattern (n, n), values (n, d_v), w_o (d_v, d), link by link."""
    n = len(pattern)
    shares = np.zeros((n, n))
    for i in range(n):
        added = [float(pattern[i, j]) * (values[j] @ w_o).numpy() for j in range(n)]
        written = sum(added)
        for j in range(n):
            shares[i, j] = added[j] @ written / (written @ written)
    return shares


def measured(model: Any, ids: list[int], heads: dict[int, int]) -> NDArray[np.float32]:
    """(layers, heads, n, n), of so many heads of each of these layers."""
    sizes = max(heads) + 1, max(heads.values()), len(ids), len(ids)
    found = np.zeros(sizes, np.float32)

    def consume(block: PatternBlock) -> None:
        n = block.weights.shape[2]
        found[block.layer][:, block.queries, :n] = block.weights

    every = {layer: tuple(range(number)) for layer, number in heads.items()}
    model.run(ids, Wanted(every, contributions=True), consume)
    return found


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_a_contribution_is_the_share_of_what_the_head_writes_in_its_direction(
    gpt2_folder: Path, engine: Any
) -> None:
    model = load(Source(str(gpt2_folder), engine=engine))
    ids = [token.id for token in prepare(model, TEXT, TextOptions()).source]
    found = measured(model, ids, {0: 3, 1: 3})
    theirs = GPT2LMHeadModel.from_pretrained(gpt2_folder, attn_implementation="eager").double()
    with torch.no_grad():
        run = theirs.eval()(torch.tensor([ids]), output_hidden_states=True, output_attentions=True)
        for layer, block in enumerate(theirs.transformer.h):
            joined = block.attn.c_attn(block.ln_1(run.hidden_states[layer]))[0]  # (n, 3·d)
            values = joined[:, 42:].reshape(len(ids), 3, 7)
            for head in range(3):
                w_o = block.attn.c_proj.weight[7 * head : 7 * head + 7]
                pattern = run.attentions[layer][0, head]
                expected = by_hand(pattern, values[:, head], w_o)
                np.testing.assert_allclose(found[layer, head], expected, atol=2e-5)
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-5)


def llama() -> Any:
    torch.manual_seed(0)
    sizes = {"vocab_size": 61, "hidden_size": 24, "intermediate_size": 40}
    config = LlamaConfig(**sizes, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
    model = LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def test_values_that_heads_share_go_through_each_heads_own_projection() -> None:
    model = llama()
    found = measured(engine_of(model), IDS, {0: 4, 1: 4})
    assert found.min() < -0.1
    model.set_attn_implementation("eager")
    model = model.double()
    with torch.no_grad():
        run = model(torch.tensor([IDS]), output_hidden_states=True, output_attentions=True)
        for n, layer in enumerate(model.model.layers):
            x = layer.input_layernorm(run.hidden_states[n])[0]
            values, w_o = layer.self_attn.v_proj(x).view(5, 2, 6), layer.self_attn.o_proj.weight
            for head in range(4):
                own = w_o[:, 6 * head : 6 * head + 6].t()
                expected = by_hand(run.attentions[n][0, head], values[:, head // 2], own)
                np.testing.assert_allclose(found[n, head], expected, atol=5e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_sum_to_1_in_half_precision_too(dtype: Any) -> None:
    found = measured(engine_of(llama().to(dtype)), IDS, {0: 4, 1: 4})
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-4)


def test_a_head_that_writes_nothing_has_no_contributions() -> None:
    model = llama()
    with torch.no_grad():
        model.model.layers[1].self_attn.o_proj.weight[:, 6:12] = 0
    found = measured(engine_of(model), IDS, {0: 4, 1: 4})
    assert (found[1, 1] == 0).all()
    np.testing.assert_allclose(found[1, [0, 2, 3]].sum(axis=-1), 1, atol=1e-5)


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_rows_of_tokens_that_are_written_are_those_of_the_text_read_at_once(
    gpt2_folder: Path, engine: Any
) -> None:
    model, rows = load(Source(str(gpt2_folder), engine=engine)), list[NDArray[np.float32]]()
    written = list[int]()

    def go_on(id_: int) -> bool:
        written.append(id_)
        return True

    wanted = Wanted({0: (0, 2), 1: (1,)}, contributions=True)
    model.generate(
        IDS, Sampling(most=3), wanted, lambda block: rows.append(block.weights[:, 0]), go_on
    )
    whole = measured(model, [*IDS, *written[:-1]], {0: 3, 1: 3})
    for step in range(len(written)):
        first, second = rows[2 * step : 2 * step + 2]
        query = len(IDS) - 1 + step
        np.testing.assert_allclose(first, whole[0, [0, 2], query, : query + 1], atol=1e-5)
        np.testing.assert_allclose(second, whole[1, [1], query, : query + 1], atol=1e-5)


def test_a_model_that_keeps_its_values_to_itself_says_so() -> None:
    model = named("bloom").model()
    with pytest.raises(ModelError, match="keeps its queries"):
        engine_of(model).check_contributions()
