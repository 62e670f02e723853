"""Encoder-decoders through transformers: their three attentions, against their own outputs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
import transformers

from attnviz.errors import InputError, UsageError
from attnviz.kit.prepare import HeadOptions, TextOptions, prepare
from attnviz.models.catalog import Source, load
from attnviz.models.huggingface.load import load_huggingface
from attnviz.models.huggingface.model import EncoderDecoder
from attnviz.records.capture import Kind, Wanted
from attnviz.records.heads import Head
from tests.architectures import BART_OVER_BYTES, OVER_BYTES, T5_SIZES, Tiny, folders_of
from tests.factories import recorded_heads

TEXT, TARGET = "a blue cat", "un chat"
KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")
BART = {**BART_OVER_BYTES, "decoder_layers": 3}
T5 = {**T5_SIZES, **OVER_BYTES}
BERT = {
    "model_type": "bert", "vocab_size": 257, "hidden_size": 16, "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 24, "max_position_embeddings": 64,
}  # fmt: skip
WRITES = {"is_decoder": True, "add_cross_attention": True, "num_hidden_layers": 3}
STARTS = {"decoder_start_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
TWO_IN_ONE = {"encoder": BERT, "decoder": {**BERT, **WRITES}, **STARTS}
MODELS: dict[str, Tiny] = {
    "bert2bert": ("EncoderDecoderConfig", "EncoderDecoderModel", TWO_IN_ONE),
    "t5": ("T5Config", "T5ForConditionalGeneration", T5),
    "bart": ("BartConfig", "BartForConditionalGeneration", BART),
    "marian": ("MarianConfig", "MarianMTModel", BART),
}


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    return folders_of(MODELS, tmp_path_factory.mktemp("models"))


def own_attentions(folder: Path, name: str, source: list[int], target: list[int]) -> Any:
    """What transformers itself gives out, in eager mode."""
    model = getattr(transformers, MODELS[name][1]).from_pretrained(
        folder, attn_implementation="eager"
    )
    read = [model.config.decoder_start_token_id, *target[:-1]]
    with torch.no_grad():
        return model.eval()(
            torch.tensor([source]), decoder_input_ids=torch.tensor([read]), output_attentions=True
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODELS)
def test_each_attention_is_the_models_own(
    folder_of: Callable[[str], Path], name: str, kind: Kind
) -> None:
    model = load_huggingface(folder_of(name), name, None, kind)
    target = None if kind == "encoder" else TARGET
    heads = recorded_heads(model, HeadOptions(everything=True))
    found = prepare(model, TEXT, TextOptions(bos=False, target=target)).record(heads)
    source = [token.id for token in model.tokenizer.encode(TEXT, bos=False, special=False)]
    written = [token.id for token in model.read_target(TARGET)]
    own = own_attentions(folder_of(name), name, source, written)
    expected = {
        "encoder": own.encoder_attentions,
        "decoder": own.decoder_attentions,
        "cross": own.cross_attentions,
    }[kind]
    assert [layer.layer for layer in found.layers] == list(range(len(expected)))
    for layer in found.layers:
        np.testing.assert_allclose(layer.weights, expected[layer.layer][0], atol=1e-5)
    assert found.kind == kind
    assert found.causal == (kind == "decoder")
    if kind == "cross":
        assert "".join(token.text for token in found.query_tokens) == found.target == TARGET
        assert "".join(token.text for token in found.key_tokens) == TEXT


@pytest.mark.parametrize("name", MODELS)
def test_without_a_target_the_model_writes_one(folder_of: Callable[[str], Path], name: str) -> None:
    model = load_huggingface(folder_of(name), name, None)
    source = [token.id for token in model.tokenizer.encode(TEXT, bos=False, special=False)]
    made = model.model.generate(
        torch.tensor([source]), max_new_tokens=63, do_sample=False, num_beams=1
    )
    special = {model.model.config.eos_token_id, model.model.config.pad_token_id}
    expected = [id_ for id_ in made[0, 1:].tolist() if id_ not in special]
    text, tokens = model.write(source)
    assert [token.id for token in tokens][: len(expected)] == expected[: len(tokens)]
    assert all(token.text == text[token.start : token.end] for token in tokens)


def test_what_is_computed_is_the_same_with_a_capture(folder_of: Callable[[str], Path]) -> None:
    model = load_huggingface(folder_of("bart"), "bart", None)
    inputs = {"input_ids": torch.tensor([[5, 6, 7]]), "decoder_input_ids": torch.tensor([[0, 9]])}
    before = model.model(**inputs).logits
    model.run([5, 6, 7], Wanted({1: (0, 1)}), lambda _: None, [9, 8])
    torch.testing.assert_close(model.model(**inputs).logits, before, atol=0, rtol=0)


def test_a_model_of_one_sequence_has_no_target(gpt2_folder: Path) -> None:
    model = load_huggingface(gpt2_folder, "tiny", None)
    with pytest.raises(UsageError, match="not an encoder-decoder"):
        model.require("write")
    heads = recorded_heads(model, HeadOptions())
    with pytest.raises(UsageError, match="target is the output"):
        prepare(model, TEXT, TextOptions(target=TARGET)).record(heads)


@pytest.mark.parametrize("kind", [kind for kind in get_args(Kind) if kind != "self"])
def test_a_model_of_one_sequence_has_one_kind_of_attention(gpt2_folder: Path, kind: Kind) -> None:
    with pytest.raises(UsageError, match=f"kind='{kind}' is for encoder-decoders"):
        load(Source(str(gpt2_folder), kind=kind))


def test_a_configuration_without_a_start_token_falls_back_to_another(
    folder_of: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "t5"
    shutil.copytree(folder_of("t5"), folder)
    (folder / "generation_config.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    del config["decoder_start_token_id"]
    (folder / "config.json").write_text(json.dumps(config))
    blocks: list[object] = []
    load_huggingface(folder, "t5", None).run([5, 6], Wanted({0: (0,)}), blocks.append, [7])
    assert len(blocks) == 1


def test_a_model_that_writes_nothing_is_told(
    folder_of: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_huggingface(folder_of("bart"), "bart", None)
    monkeypatch.setattr(EncoderDecoder, "write", lambda *_: ("", ()))
    with pytest.raises(InputError, match="wrote nothing"):
        prepare(model, TEXT, TextOptions(bos=False)).record(recorded_heads(model, HeadOptions()))


@pytest.mark.parametrize("name", MODELS)
def test_a_head_of_the_encoder_is_traced(folder_of: Callable[[str], Path], name: str) -> None:
    model = load_huggingface(folder_of(name), name, None, "encoder")
    heads = recorded_heads(model, HeadOptions(heads="L1H2"))
    prepared = prepare(model, TEXT, TextOptions(bos=False))
    weights = prepared.record(heads).weights(Head(1, 2))
    found = prepared.trace(Head(1, 2), 3)
    np.testing.assert_allclose(found.pattern, weights, atol=1e-5)
    scores = found.scores.astype(np.float64)
    expected = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(expected, weights, atol=1e-5)
    assert found.merge_error < 1e-5
    assert found.next_tokens == ()
    assert (found.bias is not None) == (name == "t5")
