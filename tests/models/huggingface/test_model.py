"""GPT-2 through transformers, and the same folder on the from-scratch model."""

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from attnviz.errors import ModelError
from attnviz.models.catalog import Source, describe, load, tokenizer_of
from attnviz.models.huggingface.load import load_huggingface
from attnviz.models.loaded import LoadedModel
from attnviz.models.scratch.native import load_native
from attnviz.records.capture import PatternBlock, Wanted
from tests.architectures import edit_config
from tests.conftest import bytes_tokenizer

IDS = list(range(40, 57))


def _blocks(model: LoadedModel, ids: list[int], wanted: Wanted) -> list[PatternBlock]:
    blocks: list[PatternBlock] = []

    def keep(block: PatternBlock) -> None:  # its array may be used only during the call
        blocks.append(replace(block, weights=block.weights.copy()))

    model.run(ids, wanted, keep)
    return blocks


def _everything(model: LoadedModel) -> Wanted:
    heads = enumerate(model.identity.heads_per_layer)
    return Wanted({layer: tuple(range(n)) for layer, n in heads})


def test_only_the_wanted_heads_are_handed_over(gpt2_folder: Path) -> None:
    model = load_huggingface(gpt2_folder, "tiny", None)
    everything = _blocks(model, IDS, _everything(model))
    (block,) = _blocks(model, IDS, Wanted({1: (0, 2)}))
    assert (block.layer, block.heads) == (1, (0, 2))
    np.testing.assert_array_equal(block.weights, everything[1].weights[[0, 2]])


def test_layers_after_the_last_wanted_one_are_not_run(gpt2_folder: Path) -> None:
    model = load_huggingface(gpt2_folder, "tiny", None)
    model.model.transformer.h[1].register_forward_pre_hook(lambda *_: pytest.fail("layer 1 ran"))
    assert len(_blocks(model, IDS, Wanted({0: (1,)}))) == 1


def _edited(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: edit_config(folder, **changes)


def _truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:5000])


def _pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"run": subprocess.run}, folder / "pytorch_model.bin")


def _nan(folder: Path) -> None:
    state = load_file(folder / "model.safetensors")
    state["transformer.h.1.mlp.c_fc.bias"][5] = float("nan")
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})


def _card(head: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        named = {"behaviour": "any", "head": head, "title": "any"}
        card = {"schema": 1, "name": "x", "description": "", "bos": False, "heads": [named]}
        (folder / "card.json").write_text(json.dumps({**card, "figures": []}))

    return write


BROKEN: list[tuple[str, Callable[[Path], None], str]] = [
    ("no configuration", lambda f: (f / "config.json").unlink(), "has no config.json"),
    ("half a configuration", lambda f: (f / "config.json").write_text("{"), "cannot be read"),
    ("no weights", lambda f: (f / "model.safetensors").unlink(), "has no model.safetensors"),
    ("pickled weights", _pickle, "hold more than tensors"),
    ("half the weights", _truncate, "damaged or incomplete"),
    ("other shapes", _edited(n_positions=60), r"\(61, 21\), but config.json asks for \(60, 21"),
    ("a layer too many", _edited(n_layer=3), r"lack .*h\.2\."),
    ("NaN weights", _nan, "h.1.mlp.c_fc.bias .* NaN"),
    ("no tokenizer", lambda f: (f / "tokenizer.json").unlink(), "has no tokenizer.json"),
    ("a broken tokenizer", lambda f: (f / "tokenizer.json").write_text("{}"), "cannot be read"),
    ("no heads", _edited(n_head=0), "n_head is 0, but must be a whole number from 1"),
    ("no layers", _edited(n_layer=-1), "n_layer is -1"),
    ("a width that heads cannot share", _edited(n_head=2), "a divisor of n_embd 21"),
    ("a word for a size", _edited(n_positions="abc"), "n_positions is 'abc'"),
    ("a word for a number", _edited(layer_norm_epsilon="x"), "layer_norm_epsilon is 'x'"),
    ("an unknown activation", _edited(activation_function="zzz"), "zzz"),
    ("nested without end", lambda f: (f / "config.json").write_text("[" * 100_000), "cannot be"),
    ("a card of other heads", _card("L9H9"), "names the head L9H9, which the model lacks"),
    ("a card of nonsense", _card("fluffy"), "cannot be read"),
]


@pytest.mark.parametrize("engine", [load_huggingface, load_native])
@pytest.mark.parametrize(("name", "breaks", "says"), BROKEN, ids=[case[0] for case in BROKEN])
def test_a_broken_folder_is_refused_with_what_is_wrong(
    gpt2_copy: Path,
    engine: Callable[..., LoadedModel],
    name: str,
    breaks: Callable[[Path], None],
    says: str,
) -> None:
    breaks(gpt2_copy)
    arguments = (gpt2_copy, "broken", None) if engine is load_huggingface else (gpt2_copy, "broken")
    with pytest.raises(ModelError, match=says):
        engine(*arguments)


def test_the_from_scratch_model_refuses_what_it_does_not_compute(
    gpt2_folder: Path, tmp_path: Path
) -> None:
    for name, value in (
        ("activation_function", "relu"),
        ("scale_attn_weights", False),
        ("scale_attn_by_inverse_layer_idx", True),
        ("tie_word_embeddings", False),
    ):
        folder = tmp_path / name
        shutil.copytree(gpt2_folder, folder)
        edit_config(folder, **{name: value})
        with pytest.raises(ModelError, match=f"{name} is {value!r}"):
            load_native(folder, "other")


def test_a_tokenizer_saved_with_cutting_and_padding_does_neither(gpt2_copy: Path) -> None:
    backend = bytes_tokenizer()
    backend.enable_truncation(4)
    backend.enable_padding(length=12)
    backend.save(str(gpt2_copy / "tokenizer.json"))
    tokens = tokenizer_of(Source(str(gpt2_copy))).encode("abcdefgh", bos=False, special=False)
    assert [token.text for token in tokens] == list("abcdefgh")


def test_a_token_that_the_model_does_not_know_is_refused(gpt2_copy: Path) -> None:
    backend = bytes_tokenizer()
    backend.add_tokens(["fluffy"])
    backend.save(str(gpt2_copy / "tokenizer.json"))
    tokenizer = tokenizer_of(Source(str(gpt2_copy)))
    assert len(tokenizer.encode("blue", bos=False, special=False)) == 4
    with pytest.raises(ModelError, match="makes the token 257, but the model knows 0 to 256"):
        tokenizer.encode("fluffy", bos=False, special=False)


def test_another_programs_card_is_no_card(gpt2_copy: Path) -> None:
    (gpt2_copy / "card.json").write_text('{"hello": 1}')
    assert load_huggingface(gpt2_copy, "other", None).card.heads == ()


def _shard(folder: Path) -> None:
    """The same weights in two files and an index, as large models come."""
    state = load_file(folder / "model.safetensors")
    names = sorted(state)
    parts = {
        "model-00001-of-00002.safetensors": names[::2],
        "model-00002-of-00002.safetensors": names[1::2],
    }
    for file, some in parts.items():
        save_file({name: state[name] for name in some}, folder / file, metadata={"format": "pt"})
    weight_map = {name: file for file, some in parts.items() for name in some}
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": weight_map})
    )
    (folder / "model.safetensors").unlink()


def test_weights_in_several_files_are_read_and_counted(gpt2_folder: Path, gpt2_copy: Path) -> None:
    _shard(gpt2_copy)
    whole = load_native(gpt2_folder, "tiny")
    for model in (load_native(gpt2_copy, "shards"), load_huggingface(gpt2_copy, "shards", None)):
        for ours, theirs in zip(
            _blocks(model, IDS, Wanted({1: (0, 2)})),
            _blocks(whole, IDS, Wanted({1: (0, 2)})),
            strict=True,
        ):
            np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-6)
    assert describe(str(gpt2_copy))[0].parameters == whole.identity.parameters
    (gpt2_copy / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(ModelError, match=r"model-00002-of-00002\.safetensors is missing"):
        load_native(gpt2_copy, "shards")


@pytest.mark.parametrize("bytes_", [b"\xff" * 100, b"\xff" * 7 + b"\x00" + b"{}", b""])
def test_garbage_in_place_of_weights_is_told_by_models_too(gpt2_copy: Path, bytes_: bytes) -> None:
    (gpt2_copy / "model.safetensors").write_bytes(bytes_)
    with pytest.raises(ModelError, match="damaged or incomplete"):
        describe(str(gpt2_copy))


def test_another_architectures_name_over_these_weights_is_refused(gpt2_copy: Path) -> None:
    sizes = {"hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 2}
    edit_config(gpt2_copy, model_type="llama", num_hidden_layers=1, **sizes)
    with pytest.raises(ModelError, match="lack"):
        load_huggingface(gpt2_copy, "llama", None)


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
        load(Source(name, offline=True))


@pytest.mark.parametrize("name", ["builtin", "folder"])
def test_a_revision_is_refused_where_there_are_none(gpt2_folder: Path, name: str) -> None:
    with pytest.raises(ModelError, match="revision"):
        load(Source(name if name == "builtin" else str(gpt2_folder), "main"))
