"""A model with a user's hooks says so in every result."""

import functools
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor
from transformers import PreTrainedTokenizerFast

import attnviz
from attnviz.models.weights import own_hooks
from tests.interventions import ARCHITECTURES, IDS

TEXT = "w5 w6 w7 w8 w5"
PLAIN, ONE, TWO = "tiny", "tiny with 1 hook of your own", "tiny with 2 hooks of your own"


def tokenizer() -> PreTrainedTokenizerFast:
    made = Tokenizer(models.WordLevel({f"w{i}": i for i in range(61)}, unk_token="w0"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=made)


def steer(_module: Any, _args: Any, output: Tensor) -> Tensor:
    return output + 1.0


def test_results_say_how_many_hooks_of_the_users_the_model_had(tmp_path: Path) -> None:
    model = ARCHITECTURES["gpt2"].model()
    loaded = attnviz.load_model(model, tokenizer(), name="tiny")
    before = loaded.ablate(TEXT, heads="L0H1")
    first = model.transformer.h[0].mlp.register_forward_hook(steer)
    found = loaded.ablate(TEXT, heads="L0H1")
    assert found.rows[0]["change"] != before.rows[0]["change"]  # it is at work
    second = model.transformer.h[1].register_forward_pre_hook(
        functools.partial(lambda bias, _module, args: (args[0] + bias, *args[1:]), 0.1)
    )
    for made, name in (
        (before, PLAIN),
        (found, ONE),
        (loaded.ablate(TEXT, heads="L0H1"), TWO),
        (loaded.patch(TEXT, "w5 w9 w7 w8 w5", answer="w3", versus="w4"), TWO),
        (loaded.predict(TEXT), TWO),
        (loaded.heads(TEXT), TWO),
    ):
        assert str(made).startswith(f"{name}, 5 tokens without BOS")
        assert made.made["models"][0]["name"] == name
        assert made.rows[0].get("model", name) == name
    captured = loaded.capture(TEXT)
    assert captured.record.model.name == TWO
    captured.save(tmp_path / "hooked.npz")
    assert attnviz.load(tmp_path / "hooked.npz").record.model.name == TWO
    first.remove()
    assert loaded.predict(TEXT).about.startswith(f"{ONE}, ")
    second.remove()
    assert loaded.predict(TEXT).about.startswith(f"{PLAIN}, 5")
    assert loaded.name == PLAIN


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_hooks_of_libraries_are_none_of_the_users(name: str) -> None:
    model = ARCHITECTURES[name].model()
    with torch.inference_mode():
        model(torch.tensor([IDS]), output_hidden_states=True)
    assert not list(own_hooks(model))
    assert attnviz.load_model(model, tokenizer(), name="tiny").predict(TEXT).about[:5] == "tiny,"
    model.get_output_embeddings().register_forward_hook(steer)
    assert list(own_hooks(model)) == [steer]
