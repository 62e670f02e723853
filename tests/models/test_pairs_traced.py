"""A head of a decoder, or of cross-attention: its trace against the model's own numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from attnviz.commands.explain.sheet import Sheet
from attnviz.commands.explain.steps import render
from attnviz.console import Display
from attnviz.errors import ModelError
from attnviz.kit.prepare import TextOptions, prepare
from attnviz.models.catalog import Source, load
from attnviz.models.huggingface.load import load_huggingface
from attnviz.models.loaded import LoadedModel
from attnviz.models.scratch.lessons import other_row
from attnviz.models.scratch.translator import NativeTranslator
from attnviz.records.capture import Kind
from attnviz.records.heads import Head
from attnviz.records.trace import HeadTrace
from tests.architectures import BART_OVER_BYTES, OVER_BYTES, T5_SIZES, Tiny, folders_of
from tests.conftest import bytes_tokenizer, slow
from tests.dissections import dissected
from tests.traces import check_trace

TEXT, TARGET, QUERY = "a blue cat", "un chat", 4
HEADS = (Head(0, 1), Head(1, 3))
GEMMA: dict[str, Any] = {
    "vocab_size": 257,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "attn_logit_softcapping": None,
    "max_position_embeddings": 64,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}
PAIRS: dict[str, Tiny] = {
    "t5": ("T5Config", "T5ForConditionalGeneration", {**T5_SIZES, **OVER_BYTES}),
    # norms over the sums, in which the parts of a layer cannot be told apart
    "bart": ("BartConfig", "BartForConditionalGeneration", BART_OVER_BYTES),
    "marian": ("MarianConfig", "MarianMTModel", BART_OVER_BYTES),
    # the same layers with norms before the parts
    "mbart": ("MBartConfig", "MBartForConditionalGeneration", BART_OVER_BYTES),
    # norms before and behind each part, rotary positions, grouped queries
    "t5gemma": (
        "T5GemmaConfig",
        "T5GemmaForConditionalGeneration",
        {"encoder": dict(GEMMA), "decoder": dict(GEMMA), **OVER_BYTES},
    ),
}
OWN: dict[Kind, str] = {"cross": "cross_attentions", "decoder": "decoder_attentions"}


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    return folders_of(PAIRS, tmp_path_factory.mktemp("models"))


def traced(model: LoadedModel, head: Head, query: int = QUERY) -> HeadTrace:
    """The trace of a head for one word that is to be written."""
    target = None if model.kind == "encoder" else TARGET
    return prepare(model, TEXT, TextOptions(bos=False, target=target)).trace(head, query)


def own_run(folder: Path, name: str, found: HeadTrace, watch: Callable[[Any], Any]) -> Any:
    """The output of transformers itself in eager mode; `watch` hooks on before it."""
    model = getattr(transformers, PAIRS[name][1]).from_pretrained(
        folder, attn_implementation="eager"
    )
    source = bytes_tokenizer().encode(TEXT).ids
    read = [0, *(token.id for token in found.capture.query_tokens[:-1])]
    watch(model.eval())
    with torch.no_grad():
        return model(
            torch.tensor([source]),
            decoder_input_ids=torch.tensor([read]),
            output_attentions=True,
            output_hidden_states=True,
        )


def written(trace: HeadTrace, width: int = 200) -> str:
    """The sheet of a trace on one line, with single spaces."""
    lines = render(trace, Sheet(Display(width, unicode=True)), about="")
    return " ".join(" ".join(line.plain for line in lines).split())


@pytest.mark.parametrize("head", [slow(HEADS[0]), HEADS[1]])
@pytest.mark.parametrize("kind", ["cross", "decoder"])
@pytest.mark.parametrize("name", PAIRS)
def test_a_trace_is_made_of_the_models_own_weights_states_and_logits(
    folder_of: Callable[[str], Path], name: str, kind: Kind, head: Head
) -> None:
    found = traced(load_huggingface(folder_of(name), name, None, kind), head)
    own = own_run(folder_of(name), name, found, lambda model: None)
    check_trace(found, getattr(own, OWN[kind])[head.layer][0, head.head].numpy())
    assert found.merge_error < 1e-4
    assert found.masks == (kind == "decoder")
    if kind == "cross":
        assert found.source is not None
        encoded = own.encoder_last_hidden_state[0].numpy()
        np.testing.assert_allclose(found.source, encoded, atol=1e-5, rtol=1e-5)
    else:
        states = own.decoder_hidden_states[head.layer][0].numpy()
        np.testing.assert_allclose(found.x, states, atol=1e-5, rtol=1e-5)
    if head.layer == 0:  # what leaves the last layer passes one more norm there
        after = own.decoder_hidden_states[1][0, QUERY].numpy()
        np.testing.assert_allclose(found.x_after, after, atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(found.logits, own.logits[0, QUERY].numpy(), atol=1e-4, rtol=1e-5)
    top = torch.softmax(own.logits[0, QUERY], -1).max()
    assert found.next_tokens[0].score == pytest.approx(float(top), abs=1e-5)


@pytest.mark.parametrize("kind", ["cross", "decoder"])
@pytest.mark.parametrize(
    ("name", "own", "crossing", "mlp"),
    [
        (
            "t5",
            "decoder.block.1.layer.0.SelfAttention.o",
            "decoder.block.1.layer.1.EncDecAttention.o",
            "decoder.block.1.layer.2.DenseReluDense",
        ),
        (
            "mbart",
            "model.decoder.layers.1.self_attn.out_proj",
            "model.decoder.layers.1.encoder_attn.out_proj",
            "model.decoder.layers.1.fc2",
        ),
        (
            "t5gemma",
            "model.decoder.layers.1.post_self_attn_layernorm",
            "model.decoder.layers.1.post_cross_attn_layernorm",
            "model.decoder.layers.1.post_feedforward_layernorm",
        ),
    ],
)
def test_each_part_of_a_decoder_adds_what_its_own_module_gives(
    folder_of: Callable[[str], Path], name: str, own: str, crossing: str, mlp: str, kind: Kind
) -> None:
    found = traced(load_huggingface(folder_of(name), name, None, kind), Head(1, 2))
    made: dict[str, np.ndarray] = {}

    def keep(path: str) -> Callable[..., None]:
        def hook(_module: object, _given: object, out: torch.Tensor) -> None:
            made[path] = out[0, QUERY].numpy()

        return hook

    def watch(model: Any) -> None:
        for path in (own, crossing, mlp):
            model.get_submodule(path).register_forward_hook(keep(path))

    own_run(folder_of(name), name, found, watch)
    close = {"atol": 1e-4, "rtol": 1e-5}
    assert found.kinds.residual == ("normed" if name == "t5gemma" else "plain")
    np.testing.assert_allclose(found.mlp_out, made[mlp], **close)
    if kind == "cross":
        np.testing.assert_allclose(found.attention_added, made[crossing], **close)
        assert found.cross_added is None
    else:
        np.testing.assert_allclose(found.attention_added, made[own], **close)
        np.testing.assert_allclose(found.cross_added, made[crossing], **close)


@pytest.mark.parametrize("kind", ["cross", "decoder"])
@pytest.mark.parametrize("name", ["bart", "marian"])
def test_where_norms_stand_over_the_sums_the_parts_of_a_decoder_are_not_told_apart(
    folder_of: Callable[[str], Path], name: str, kind: Kind
) -> None:
    found = traced(load_huggingface(folder_of(name), name, None, kind), Head(1, 2))
    assert (found.kinds.residual, found.kinds.norm, found.cross_added) == ("mixed", "", None)
    np.testing.assert_array_equal(found.x, found.normed)
    assert "parts cannot be separated" in written(found)


@pytest.mark.parametrize("kind", ["cross", "decoder"])
def test_a_decoder_that_adds_its_parts_up_in_another_way_is_refused_in_one_sentence(
    folder_of: Callable[[str], Path], kind: Kind
) -> None:
    model = load_huggingface(folder_of("mbart"), "mbart", None, kind)
    layer = model.model.model.decoder.layers[1]
    layer.register_forward_hook(lambda _module, _given, out: out * 2 + 1)
    with pytest.raises(ModelError, match=f"adds {kind} attention up is not known; its patterns"):
        traced(model, Head(1, 0))


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("head", [Head(0, 1), Head(1, 3)])
def test_the_translators_trace_agrees_with_its_pattern_and_its_own_sublayers(
    kind: Kind, head: Head
) -> None:
    model = load(Source("translator", kind=kind))
    assert isinstance(model, NativeTranslator)
    prepared = prepare(model, "a fluffy blue creature found Bark", TextOptions())
    found = prepared.trace(head, 2)
    check_trace(found, prepared.record([head]).weights(head))
    assert found.masks == (kind == "decoder")
    seen: dict[str, np.ndarray] = {}

    def keep(name: str) -> Callable[..., None]:
        def hook(_module: object, given: Any, out: Any) -> None:
            seen[f"into {name}"], seen[name] = given[0][0].numpy(), out[0].numpy()

        return hook

    stack = model.model.encoder if kind == "encoder" else model.model.decoder
    block: Any = stack[head.layer]
    norm, attention = (block.ln_cross, block.cross) if kind == "cross" else (block.ln_1, block.attn)
    watched = (("norm", norm), ("attention", attention), ("mlp", block.mlp))
    handles = [module.register_forward_hook(keep(name)) for name, module in watched]
    prepared.record([Head(0, 0)])
    for handle in handles:
        handle.remove()
    close = {"atol": 1e-4, "rtol": 1e-5}
    np.testing.assert_allclose(found.x, seen["into norm"], **close)
    np.testing.assert_allclose(found.normed, seen["norm"], **close)
    np.testing.assert_allclose(found.attention_out, seen["attention"][2], **close)
    np.testing.assert_allclose(found.mlp_out, seen["mlp"][2], **close)
    if kind == "cross":
        with torch.no_grad():
            encoded = model.model.encode(torch.tensor([prepared.ids]))[0].numpy()
        np.testing.assert_allclose(found.source, encoded, **close)


@pytest.mark.parametrize("kind", ["cross", "decoder"])
def test_the_prediction_is_the_word_that_the_query_is_named_by(kind: Kind) -> None:
    model = load(Source("translator", kind=kind))
    prepared = prepare(model, "a fluffy blue creature", TextOptions())
    for token in prepared.target:
        found = prepared.trace(Head(1, 2), token.index)
        assert found.next_tokens[0].label == token.label
        assert found.capture.query_tokens[found.query].label == token.label


def test_general_similarity_compares_the_written_side_with_the_read_side(
    folder_of: Callable[[str], Path],
) -> None:
    found = traced(load_huggingface(folder_of("t5"), "t5", None, "cross"), Head(1, 2))
    assert found.source is not None
    x, m = found.normed.astype(np.float64), found.source.astype(np.float64)
    scores = (x[QUERY] @ found.w_q.weight) @ (m @ found.w_k.weight).T
    np.testing.assert_allclose(other_row(found, "general").scores, scores, atol=1e-4)


def test_zeros_that_t5_adds_in_cross_attention_are_no_bias(
    folder_of: Callable[[str], Path],
) -> None:
    cross = traced(load_huggingface(folder_of("t5"), "t5", None, "cross"), Head(1, 2))
    assert cross.bias is None
    assert "bias" not in written(cross)
    decoder = traced(load_huggingface(folder_of("t5"), "t5", None, "decoder"), Head(1, 2))
    assert decoder.bias is not None


def test_an_architecture_that_hides_its_queries_is_refused(
    folder_of: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_huggingface(folder_of("bart"), "bart", None).model
    monkeypatch.setattr(type(model), "_can_set_attn_implementation", classmethod(lambda _: False))
    with pytest.raises(ModelError, match="keeps its queries, keys and values to itself"):
        dissected(model, {}, "cross", Head(0, 0), 0)


def test_an_encoder_that_is_no_model_by_itself_is_refused() -> None:
    with pytest.raises(ModelError, match="Linear keeps its queries, keys and values to itself"):
        dissected(
            torch.nn.Linear(2, 2), {}, "self", Head(0, 0), 0
        )  # as FSMT's encoder, a bare module
