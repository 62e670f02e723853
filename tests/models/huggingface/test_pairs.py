"""Pairs of texts: what a model reads of them is what `tokenizer(a, b)` makes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from tokenizers import Tokenizer, processors
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

import attnviz
from attnviz.commands.show.capture import AttentionCapture
from attnviz.errors import ExitStatus, InputError, UsageError
from attnviz.models.huggingface.vision import float64_copy, telling
from attnviz.records.heads import Head
from tests.architectures import PAIR_SIZES, SIZES, T5_SIZES
from tests.conftest import Run
from tests.reading import rows_in

A, B = "who wrote it", "the letter was written by her"
SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"]
WORDS = f"{A} {B} one two three four five six seven".split()
VOCABULARY = {name: i for i, name in enumerate(dict.fromkeys(SPECIAL + WORDS))}
TYPES = ["input_ids", "token_type_ids", "attention_mask"]
NO_TYPES = ["input_ids", "attention_mask"]
APART = {
    "types": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", TYPES),
    "marks": ("[CLS] $A [SEP]", "[CLS] $A [SEP] [SEP] $B [SEP]", NO_TYPES),
    "ends": ("$A [SEP]", "$A [SEP] $B [SEP]", NO_TYPES),
    "begins": ("[CLS] $A", "[CLS] $A [CLS] $B:1", TYPES),
}
"""How a tokenizer sets texts apart: as that of BERT, RoBERTa, T5, and Llama, which does not."""


def tokenizer_of(way: str) -> Any:
    single, pair, names = APART[way]
    backend = Tokenizer(WordLevel(VOCABULARY, unk_token="[UNK]"))
    backend.pre_tokenizer = Whitespace()
    special = [(name, VOCABULARY[name]) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(single, pair, special)
    named = {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=backend, **named, pad_token="[PAD]", model_input_names=names
    )


@dataclass(frozen=True)
class Family:
    way: str
    make: Callable[[], Any]
    kind: str = "self"


DEBERTA = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 2}
FAMILIES = {
    "BERT": Family("types", lambda: hf.BertModel(hf.BertConfig(**SIZES))),
    "ALBERT": Family("types", lambda: hf.AlbertModel(hf.AlbertConfig(**SIZES, embedding_size=12))),
    "ELECTRA": Family("types", lambda: hf.ElectraModel(hf.ElectraConfig(**SIZES))),
    "DeBERTa": Family("types", lambda: hf.DebertaV2Model(hf.DebertaV2Config(**SIZES, **DEBERTA))),
    "no types": Family("types", lambda: hf.BertModel(hf.BertConfig(**SIZES, type_vocab_size=1))),
    "RoBERTa": Family("marks", lambda: hf.RobertaModel(hf.RobertaConfig(**SIZES))),
    "T5": Family("ends", lambda: hf.T5Model(hf.T5Config(**T5_SIZES)), "encoder"),
    "BART": Family("marks", lambda: hf.BartModel(hf.BartConfig(**PAIR_SIZES)), "encoder"),
    "BART, across": Family("marks", lambda: hf.BartModel(hf.BartConfig(**PAIR_SIZES)), "cross"),
}


def spread(model: Any) -> Any:
    """The model with weights so large that attention is not flat."""
    torch.manual_seed(5)
    for parameter in model.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


@cache
def plain(name: str) -> tuple[Any, Any]:
    family = FAMILIES[name]
    model = spread(family.make())
    return model, tokenizer_of(family.way)


@cache
def ours(name: str) -> attnviz.Model:
    kind = FAMILIES[name].kind
    return attnviz.load_model(*plain(name), kind=None if kind == "self" else kind)  # type: ignore


def eager(name: str) -> np.ndarray:
    """The weights of transformers itself (layers, h, n_q, n_k), of what its tokenizer makes."""
    model, tokenizer = plain(name)
    given = tokenizer(A, B, return_tensors="pt")
    kind = FAMILIES[name].kind
    if name == "no types":
        given.pop("token_type_ids")  # it has an embedding of one type alone
    if kind != "self":
        read = tokenizer("one two", add_special_tokens=False, return_tensors="pt").input_ids
        start = torch.tensor([[model.config.decoder_start_token_id]])
        given["decoder_input_ids"] = torch.cat([start, read[:, :-1]], dim=1)
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with torch.no_grad():
        out = model(**given, output_attentions=True)
    model.set_attn_implementation(before)
    named = {"self": "attentions", "encoder": "encoder_attentions", "cross": "cross_attentions"}
    return torch.stack(out[named[kind]])[:, 0].numpy()


def stacked(captured: AttentionCapture) -> np.ndarray:
    return np.stack([layer.weights for layer in captured.record.layers])


@pytest.mark.parametrize("name", FAMILIES)
def test_the_weights_of_a_pair_are_those_of_transformers(name: str) -> None:
    target = {"target": "one two"} if FAMILIES[name].kind == "cross" else {}
    captured = ours(name).capture(A, text_pair=B, **target)
    assert stacked(captured) == pytest.approx(eager(name), abs=1e-5)
    if not target and name != "no types":
        assert ours(name).verify(A, text_pair=B).exact


def test_a_mark_within_one_text_is_not_a_pair() -> None:
    one = ours("BERT").capture(f"{A} [SEP] {B}", special=True)
    pair = ours("BERT").capture(A, text_pair=B)
    assert [t.id for t in one.tokens] == [t.id for t in pair.tokens]
    assert float(np.abs(stacked(one) - stacked(pair)).max()) > 0.01
    assert any("one segment" in note and "text_pair" in note for note in one.notes)
    assert not pair.notes
    last = ours("BERT").capture(f"{A} [SEP]", special=True)
    assert not any("one segment" in note for note in last.notes)  # it parts nothing
    told = ours("RoBERTa").capture(f"{A} [SEP] {B}", special=True).notes
    assert not any("one segment" in note for note in told)  # which has no segments


def test_each_token_knows_its_text_and_its_slice() -> None:
    tokens = ours("BERT").capture(A, text_pair=B).tokens
    text = ours("BERT").capture(A, text_pair=B).text
    assert [(t.label, t.segment) for t in tokens[3:7]] == [
        ("it", "A"), ("[SEP]", None), ("the", "B"), ("letter", "B"),
    ]  # fmt: skip
    assert [text[t.start : t.end] for t in tokens] == [t.text for t in tokens]
    shared = attnviz.tokens(A, ours("BERT"), text_pair=B)
    assert [row.get("segment") for row in shared.rows] == [t.segment for t in tokens]
    assert "segment" not in attnviz.tokens(A, ours("BERT")).rows[0]


def test_a_segment_is_selected_and_saved(tmp_path: Path) -> None:
    captured = ours("BERT").capture(A, text_pair=B)
    captured.save(tmp_path / "pair.npz")
    again = attnviz.load(tmp_path / "pair.npz")
    assert again.tokens == captured.tokens
    for each in (captured, again):
        columns = each.show(query="@A", key="@B", heads="L0H0").to_columns()
        assert set(columns["query"]) == {1, 2, 3}
        assert set(columns["key"]) == {5, 6, 7, 8, 9, 10}
    assert {*again.show(query="@B#2", heads="L0H0").to_columns()["query_token"]} == {"letter"}
    with pytest.raises(UsageError, match="@B"):
        ours("BERT").show(A, query="@B")
    words = captured.show(words=True, query="@B", heads="L0H0").to_columns()
    assert {*words["query_token"]} == {*B.split()}


def state_of(name: str) -> tuple[Any, Any]:
    """What transformers makes of the pair: hidden states and weights."""
    model, tokenizer = plain(name)
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with torch.no_grad():
        out = model(
            **tokenizer(A, B, return_tensors="pt"),
            output_attentions=True,
            output_hidden_states=True,
        )
    model.set_attn_implementation(before)
    return out.hidden_states, out.attentions


def test_every_calculation_reads_the_segments() -> None:
    model = ours("BERT")
    states, weights = state_of("BERT")
    row = weights[1][0, 2, 6].double()
    steps = model.explain(A, text_pair=B, head="L1H2", query="letter")
    assert steps.arrays["pattern"][6] == pytest.approx(row.numpy(), abs=1e-5)
    assert steps.arrays["x"] == pytest.approx(states[1][0].numpy(), abs=1e-4)
    asked = {"head": "L1H2", "query": "letter", "key": "who", "versus": "her"}
    found = model.why(A, text_pair=B, **asked).record
    assert found.contrast == pytest.approx(float((row[1] / row[10]).log()), abs=1e-3)
    assert float(found.query_shares.values.sum()) == pytest.approx(found.contrast, abs=1e-3)
    layer = plain("BERT")[0].encoder.layer[1].attention
    v = layer.self.value(states[1][0]).view(-1, 4, 6)[:, 2]
    norms = (v @ layer.output.dense.weight[:, 12:18].T).norm(dim=-1).detach()
    weighted = model.capture(A, text_pair=B, weighted=True)
    assert weighted.record.extras["value_norms"][1, 2] == pytest.approx(norms.numpy(), abs=1e-4)
    written = attnviz.writes(A, model, text_pair=B, head="L1H2", query="letter").record
    assert written.weights == pytest.approx(row.numpy(), abs=1e-5)
    cosines = model.compare(A, "who wrote one", text_pair=B, query="letter").record
    assert cosines.captures[0].query_tokens[6].segment == "B"


@cache
def fills() -> tuple[Any, Any]:
    return spread(hf.BertForMaskedLM(hf.BertConfig(**SIZES))), tokenizer_of("types")


def test_a_mask_in_a_pair_is_filled_as_transformers_fills_it() -> None:
    model, tokenizer = fills()
    found = attnviz.predict(A, attnviz.load_model(*fills()), text_pair="the [MASK] was", top=5)
    given = tokenizer(A, "the [MASK] was", return_tensors="pt")
    with torch.no_grad():
        logits = model(**given).logits[0, 6].softmax(-1)
    assert [row["id"] for row in found.rows] == logits.topk(5).indices.tolist()
    assert [row["probability"] for row in found.rows] == pytest.approx(logits.topk(5).values)
    lens = attnviz.predict(A, attnviz.load_model(*fills()), text_pair="the [MASK] was", lens=True)
    assert lens.record.lens[-1].candidates[0].id == int(logits.argmax())


def test_parts_of_a_model_are_ablated_with_the_segments() -> None:
    config = hf.BertConfig(**SIZES, is_decoder=True)
    model, tokenizer = spread(hf.BertLMHeadModel(config)), tokenizer_of("types")
    given = tokenizer(A, B, return_tensors="pt")
    ids = given.input_ids[0]

    def losses(head: int | None) -> torch.Tensor:
        def cut(_module: Any, args: Any) -> Any:
            (values,) = args[:1]
            values = values.clone()
            values[..., 6 * (head or 0) : 6 * (head or 0) + 6] = 0
            return (values, *args[1:])

        dense = model.bert.encoder.layer[1].attention.output.dense
        handle = None if head is None else dense.register_forward_pre_hook(cut)
        with torch.no_grad():
            logits = model(**given).logits[0, :-1].log_softmax(-1)
        if handle is not None:
            handle.remove()
        return logits.gather(-1, ids[1:, None])[:, 0]

    report = attnviz.ablate(A, attnviz.load_model(model, tokenizer), text_pair=B, layers=1)
    changes = {row["head"]: row["change"] for row in report.rows if row["kind"] == "head"}
    for head in range(4):
        expected = float((losses(head) - losses(None)).mean())
        assert changes[head] == pytest.approx(expected, abs=1e-4)


def test_an_encoder_that_is_run_alone_is_told_the_segments() -> None:
    config = hf.EncoderDecoderConfig.from_encoder_decoder_configs(
        hf.BertConfig(**SIZES), hf.BertConfig(**SIZES, is_decoder=True, add_cross_attention=True)
    )
    model = spread(hf.EncoderDecoderModel(config))
    given = tokenizer_of("types")(A, B, return_tensors="pt")
    view = telling(model, given.input_ids, given.token_type_ids)
    with torch.no_grad():
        for encoder in (view.get_encoder(), float64_copy(view).get_encoder()):
            found = encoder(input_ids=given.input_ids).last_hidden_state
            plain = model.get_encoder()(**given).last_hidden_state
            assert found.float().numpy() == pytest.approx(plain.numpy(), abs=1e-4)
        start = torch.tensor([[1]])
        both = (m(input_ids=given.input_ids, decoder_input_ids=start).logits for m in (view, model))
        assert float((next(both) - next(both)).abs().max()) > 0.01


def test_several_texts_have_a_pair_each_or_one_for_all() -> None:
    model = ours("BERT")
    others = ["two three four five six seven", B]
    mean = model.capture([A, A], text_pair=others)
    apart = [model.capture(A, text_pair=each) for each in others]
    expected = (stacked(apart[0]) + stacked(apart[1])) / 2
    assert stacked(mean) == pytest.approx(expected, abs=1e-6)
    asked = {"head": "L1H2", "query": "@A#1", "key": "@B#1"}
    both = model.why([A, "one two three"], text_pair=B, **asked)
    assert both.rows
    with pytest.raises(UsageError, match="text_pair"):
        model.capture([A, A], text_pair=[B])


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("words", [(7, 3), (3, 7), (7, 7), (6, 7)])
def test_a_long_pair_is_cut_as_the_library_cuts_it(side: str, words: tuple[int, int]) -> None:
    a, b = (" ".join(WORDS[-n:]) for n in words)
    config = hf.BertConfig(**{**SIZES, "max_position_embeddings": 12})
    model, tokenizer = hf.BertModel(config).eval(), tokenizer_of("types")
    own = attnviz.load_model(model, tokenizer)
    tokenizer.truncation_side = side
    expected = tokenizer(a, b, truncation="longest_first", max_length=12)
    captured = own.capture(a, text_pair=b, truncate=side)
    long = sum(words) > 9
    assert [t.id for t in captured.tokens] == expected.input_ids
    assert [t.type for t in captured.tokens] == expected.token_type_ids
    assert any("both texts" in note for note in captured.notes) == long
    if long:
        with pytest.raises(InputError, match=f"{sum(words) + 3} tokens"):
            own.capture(a, text_pair=b)


def test_models_that_set_no_mark_between_texts_take_no_pairs() -> None:
    llama = hf.LlamaModel(hf.LlamaConfig(**{**SIZES, "num_key_value_heads": 4}))
    for model in ("builtin", attnviz.load_model(llama.eval(), tokenizer_of("begins"))):
        with pytest.raises(UsageError, match="takes no pairs"):
            attnviz.capture(A, model, text_pair=B)
    with pytest.raises(UsageError, match="takes no pairs"):
        attnviz.tokens(A, text_pair=B)


@pytest.mark.parametrize("pair", ["", "  \n"])
def test_an_empty_second_text_is_refused(pair: str) -> None:
    with pytest.raises(InputError, match="second text of the pair"):
        ours("BERT").capture(A, text_pair=pair)


def test_a_pair_is_beside_no_image_and_no_saved_capture() -> None:
    with pytest.raises(UsageError, match="text_pair"):
        attnviz.capture(A, "shapes", text_pair=B, image="sample:shapes-1")
    with pytest.raises(UsageError, match="text_pair"):
        attnviz.show(ours("BERT").capture(A), text_pair=B)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose tokenizer transformers puts together itself."""
    path = tmp_path_factory.mktemp("bert")
    model, tokenizer = fills()
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def test_the_shell_takes_pairs_from_its_option_and_from_lines(run: Run, folder: Path) -> None:
    model = attnviz.load_model(str(folder))
    rows = ["-m", str(folder), "--head", "L1H2", "-f", "jsonl"]
    alone = run("show", A, "--text-pair", B, *rows, "--query", "@A", "--key", "@B")
    weights = stacked(model.capture(A, text_pair=B))[1, 2, 1:4, 5:11]
    assert alone.err == ""
    found = sorted(rows_in(alone.out), key=lambda row: (row["query"], row["key"]))
    assert [row["weight"] for row in found] == pytest.approx(weights.ravel(), abs=1e-6)
    line = b'{"text": "who wrote it", "text_pair": "the letter was written by her"}\n'
    listed = run("show", "--lines", *rows, "--query", "@A", "--key", "@B", stdin=line)
    assert listed.out == alone.out
    given = run("show", "--lines", "--text-pair", B, *rows, "--key", "@B", stdin=b"who wrote it\n")
    assert given.status is ExitStatus.OK
    bad = run(
        "show", "--lines", *rows, stdin=b'{"text_pair": "who"}\n{"text": "a", "text_pair": 1}\n'
    )
    assert "no text with the text_pair" in bad.err
    assert "text_pair is not a text" in bad.err
    shown = run("tokens", A, "--text-pair", B, "-m", str(folder)).out
    assert "segment" in shown
    shown = run("show", A, "--text-pair", B, "-m", str(folder)).out
    assert "3 of text A and 6 of B" in " ".join(shown.split())


def test_a_file_of_prompts_has_pairs(run: Run, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"text": "who wrote it", "text_pair": "the [MASK] was", "query": "who"}\n')
    mean = run("predict", "--pairs", str(file), "-m", str(folder), "--top", "1", "-f", "jsonl")
    own = attnviz.predict(A, str(folder), text_pair="the [MASK] was", top=1)
    assert rows_in(mean.out)[0]["probability"] == pytest.approx(own.rows[0]["probability"])
    asked = run("why", "--pairs", str(file), "-m", str(folder), "--head", "L1H2", "-f", "jsonl")
    assert asked.status is ExitStatus.OK
    file.write_text('{"text": "a blue bird", "source": "a red bird", "text_pair": "who"}\n')
    refused = run("patch", "--pairs", str(file))
    assert "text_pair is not read here" in refused.err


def test_special_tokens_that_a_text_spells_follow_one_rule(run: Run, folder: Path) -> None:
    masked, marked = f"{A} [MASK]", f"{A} [SEP] {B}"
    for command in ("show", "predict", "tokens"):
        said = run(command, masked, "-m", str(folder))
        assert "read as such: [MASK]" in said.err, command
    for command in ("heads", "tokens"):
        assert "read as text: [SEP]; --special" in run(command, marked, "-m", str(folder)).err
        read = run(command, marked, "--special", "-m", str(folder)).err
        assert "read as such: [SEP]" in read
        assert "one segment; --text-pair" in read
    for command in ("show", "generate"):
        built_in = run(command, "a fluffy <|endoftext|> creature").err
        assert "read as text: <|endoftext|>; --special" in built_in
    mask = VOCABULARY["[MASK]"]
    for each in ("[MASK]", "<mask>"):
        captured = attnviz.capture(f"who {each}", str(folder))
        assert [t.id for t in captured.tokens][2] == mask
    assert Head(1, 2) in attnviz.capture(masked, str(folder)).record.heads
