"""GPT-2 through transformers, and the same folder on the from-scratch model."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2LMHeadModel

from attnviz.data.capture import PatternBlock
from attnviz.errors import ModelError
from attnviz.models.catalog import load
from attnviz.models.folder import builtin_folder
from attnviz.models.huggingface import load_huggingface
from attnviz.models.loaded import LoadedModel, Wanted
from attnviz.models.native import load_native

IDS = list(range(40, 57))


def _blocks(model: LoadedModel, ids: list[int], wanted: Wanted) -> list[PatternBlock]:
    blocks: list[PatternBlock] = []
    model.run(ids, wanted, blocks.append)
    return blocks


def _everything(model: LoadedModel) -> dict[int, tuple[int, ...]]:
    return {n: tuple(range(heads)) for n, heads in enumerate(model.identity.heads_per_layer)}


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_what_is_captured_is_the_models_own_attention(
    gpt2_folder: Path, implementation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the folder's configuration asks for an implementation that returns none."""
    config = json.loads((gpt2_folder / "config.json").read_text())
    folder = gpt2_folder.with_name(implementation)
    shutil.copytree(gpt2_folder, folder, dirs_exist_ok=True)
    (folder / "config.json").write_text(
        json.dumps({**config, "_attn_implementation": implementation})
    )
    ours = load_huggingface(folder, "tiny", None)
    theirs = GPT2LMHeadModel.from_pretrained(gpt2_folder, attn_implementation="eager").eval()
    with torch.no_grad():
        attentions = theirs(torch.tensor([IDS]), output_attentions=True).attentions
    for block in _blocks(ours, IDS, _everything(ours)):
        np.testing.assert_allclose(block.weights, attentions[block.layer][0], atol=1e-6)


def test_only_the_wanted_heads_are_handed_over(gpt2_folder: Path) -> None:
    model = load_huggingface(gpt2_folder, "tiny", None)
    everything = _blocks(model, IDS, _everything(model))
    (block,) = _blocks(model, IDS, {1: (0, 2)})
    assert (block.layer, block.heads) == (1, (0, 2))
    np.testing.assert_array_equal(block.weights, everything[1].weights[[0, 2]])


def test_layers_after_the_last_wanted_one_are_not_run(gpt2_folder: Path) -> None:
    model = load_huggingface(gpt2_folder, "tiny", None)
    model.model.transformer.h[1].register_forward_pre_hook(lambda *_: pytest.fail("layer 1 ran"))
    assert len(_blocks(model, IDS, {0: (1,)})) == 1


def test_no_hook_stays_behind(gpt2_folder: Path) -> None:
    model = load_huggingface(gpt2_folder, "tiny", None)
    _blocks(model, IDS, {0: (1,)})
    assert not any(module._forward_hooks for module in model.model.modules())


@pytest.mark.parametrize("which", ["tiny", "builtin"])
def test_a_folder_gives_the_same_patterns_on_both_engines(gpt2_folder: Path, which: str) -> None:
    folder = gpt2_folder if which == "tiny" else builtin_folder()
    native, hugging = load_native(folder, which), load_huggingface(folder, which, None)
    text = "A fluffy, blue creature?\n楚 roamed"
    tokens = native.tokenizer.encode(text, bos=True, special=False)
    assert tokens == hugging.tokenizer.encode(text, bos=True, special=False)
    ids = [token.id for token in tokens]
    for ours, theirs in zip(
        _blocks(native, ids, _everything(native)),
        _blocks(hugging, ids, _everything(hugging)),
        strict=True,
    ):
        np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-5)


def test_weights_under_the_hubs_own_names_are_read(gpt2_folder: Path, tmp_path: Path) -> None:
    """The hub's GPT-2 has no `transformer.` prefix, and mask buffers among its weights."""
    folder = tmp_path / "hub"
    shutil.copytree(gpt2_folder, folder)
    state = load_file(folder / "model.safetensors")
    bare = {name.removeprefix("transformer."): tensor for name, tensor in state.items()}
    bare["h.0.attn.bias"] = torch.ones(1, 1, 61, 61).tril()
    save_file(bare, folder / "model.safetensors", metadata={"format": "pt"})
    for ours, theirs in zip(
        _blocks(load_huggingface(folder, "hub", None), IDS, {1: (0, 1, 2)}),
        _blocks(load_huggingface(gpt2_folder, "tiny", None), IDS, {1: (0, 1, 2)}),
        strict=True,
    ):
        np.testing.assert_array_equal(ours.weights, theirs.weights)


def _edit_config(**changes: Any) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return edit


def _truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:5000])


def _pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")


def _nan(folder: Path) -> None:
    state = load_file(folder / "model.safetensors")
    state["transformer.h.1.mlp.c_fc.bias"][5] = float("nan")
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})


BROKEN: list[tuple[str, Callable[[Path], None], str]] = [
    ("no configuration", lambda f: (f / "config.json").unlink(), "has no config.json"),
    ("half a configuration", lambda f: (f / "config.json").write_text("{"), "cannot be read"),
    ("no weights", lambda f: (f / "model.safetensors").unlink(), "has no model.safetensors"),
    ("pickled weights", _pickle, "pickled weights such as pytorch_model.bin are not loaded"),
    ("half the weights", _truncate, "damaged or incomplete"),
    (
        "other shapes",
        _edit_config(n_positions=60),
        r"\(61, 21\), but config.json asks for \(60, 21",
    ),
    ("a layer too many", _edit_config(n_layer=3), r"lack .*h\.2\."),
    ("NaN weights", _nan, "h.1.mlp.c_fc.bias .* NaN"),
    ("no tokenizer", lambda f: (f / "tokenizer.json").unlink(), "has no tokenizer.json"),
    ("a broken tokenizer", lambda f: (f / "tokenizer.json").write_text("{}"), "cannot be read"),
]


@pytest.mark.parametrize("engine", [load_huggingface, load_native])
@pytest.mark.parametrize(("name", "breaks", "says"), BROKEN, ids=[case[0] for case in BROKEN])
def test_a_broken_folder_is_refused_with_what_is_wrong(
    gpt2_folder: Path,
    tmp_path: Path,
    engine: Callable[..., LoadedModel],
    name: str,
    breaks: Callable[[Path], None],
    says: str,
) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(gpt2_folder, folder)
    breaks(folder)
    arguments = (folder, "broken", None) if engine is load_huggingface else (folder, "broken")
    with pytest.raises(ModelError, match=says):
        engine(*arguments)


def test_another_architecture_is_refused_by_name(gpt2_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "llama"
    shutil.copytree(gpt2_folder, folder)
    _edit_config(model_type="llama")(folder)
    with pytest.raises(ModelError, match="'llama', which attnviz cannot capture yet"):
        load_huggingface(folder, "llama", None)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("builtn", "did you mean builtin"),
        ("gpt22", r"did you mean gpt2\?"),
        ("./nowhere", "no model folder 'nowhere'"),
        ("not a name!", "neither a folder nor a model's name"),
    ],
)
def test_an_unknown_model_is_refused_with_the_nearest_known(name: str, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        load(name, offline=True)


def test_a_hub_model_that_is_not_in_the_cache_says_how_to_fetch_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match="hf download someone/some-model"):
        load("someone/some-model", offline=True)


@pytest.mark.parametrize("name", ["builtin", "folder"])
def test_a_revision_is_refused_where_there_are_none(gpt2_folder: Path, name: str) -> None:
    with pytest.raises(ModelError, match="revision"):
        load(name if name == "builtin" else str(gpt2_folder), "main")
