"""Captures of weights that another program computed."""

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from transformers import (
    BertConfig,
    BertModel,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
)

import attnviz
from attnviz.errors import UsageError
from attnviz.inputs.arrays import tokens_of

WORDS = ["the", "cat", "sat", "down"]


def weights(*shape: int, causal: bool = True, seed: int = 0) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=shape)
    if causal:
        scores = np.where(np.triu(np.ones(shape[-2:]), 1) > 0, -np.inf, scores)
    raised = np.exp(scores)
    found: np.ndarray = raised / raised.sum(-1, keepdims=True)
    return found


@pytest.mark.parametrize(
    ("given", "heads"),
    [
        (weights(4, 4), "L0H0"),
        (weights(3, 4, 4), "L0H0, L0H1, L0H2"),
        (weights(2, 2, 4, 4), "L0H0, L0H1, L1H0, L1H1"),
        (weights(2, 1, 2, 4, 4), "L0H0, L0H1, L1H0, L1H1"),
        ((weights(1, 2, 4, 4), weights(1, 1, 4, 4)), "L0H0, L0H1, L1H0"),
        ([weights(2, 4, 4), None, weights(4, 4)], "L0H0, L0H1, L2H0"),
        (weights(4, 4).tolist(), "L0H0"),
        ([[weights(4, 4), weights(4, 4)]], "L0H0, L0H1"),
        (torch.tensor(weights(3, 4, 4)).bfloat16().requires_grad_(), "L0H0, L0H1, L0H2"),
    ],
)
def test_arrays_of_every_shape_are_heads_of_layers(given: Any, heads: str) -> None:
    capture = attnviz.from_attention(given, WORDS)
    assert ", ".join(map(str, capture.heads)) == heads
    assert capture.record.causal
    pattern = capture.pattern(*capture.heads[-1])
    assert (pattern.dtype, pattern.shape) == (np.float32, (4, 4))
    np.testing.assert_allclose(pattern.sum(1), 1, atol=0.01)


def test_what_transformers_returns_is_taken_as_it_is(gpt2_folder: Path) -> None:
    theirs = GPT2LMHeadModel.from_pretrained(gpt2_folder, attn_implementation="eager").eval()
    ids = [5, 6, 7, 5]
    with torch.no_grad():
        found = theirs(torch.tensor([ids]), output_attentions=True).attentions
    capture = attnviz.from_attention(found, WORDS, model="mine")
    for layer, array in enumerate(found):
        for head in range(array.shape[1]):
            np.testing.assert_array_equal(capture.pattern(layer, head), array[0, head].numpy())
    assert repr(capture).startswith("<AttentionCapture mine, 4 tokens")


def written(folder: Path, new: int = 4, texts: int = 1) -> Any:
    """What transformers returns of a text of four tokens that it goes on with."""
    model = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()
    return model.generate(
        torch.tensor([[5, 6, 7, 5]] * texts),
        max_new_tokens=new,
        min_new_tokens=new,
        do_sample=False,
        output_attentions=True,
        return_dict_in_generate=True,
        pad_token_id=0,
    )


def test_the_steps_of_generate_are_the_rows_of_one_text(gpt2_folder: Path) -> None:
    """Beside one run over all tokens that were read; the last one was written alone."""
    made = written(gpt2_folder)
    ids = made.sequences[0].tolist()
    names = [f"w{n}" for n in range(len(ids))]
    theirs = GPT2LMHeadModel.from_pretrained(gpt2_folder, attn_implementation="eager").eval()
    with torch.no_grad():
        whole = theirs(torch.tensor([ids[:-1]]), output_attentions=True).attentions
    alone = [[layer[0] for layer in step] for step in made.attentions]  # rows (H, 1, k)
    for steps in (made.attentions, list(map(list, made.attentions)), alone):
        for tokens in (names, names[:-1]):
            capture = attnviz.from_attention(steps, tokens)
            assert (capture.record.kind, capture.record.causal) == ("self", True)
            assert [token.text.strip() for token in capture.tokens] == names[:-1]
            for head in capture.heads:
                expected = whole[head.layer][0, head.head].numpy()
                np.testing.assert_allclose(capture.pattern(*head), expected, atol=1e-5)
    with pytest.raises(UsageError, match="steps are not consecutive"):
        attnviz.from_attention((made.attentions[0], made.attentions[2]), names)


def test_one_step_is_the_row_of_the_token_that_it_read(gpt2_folder: Path) -> None:
    step = written(gpt2_folder).attentions[2]  # which reads the sixth token
    names = [f"w{n}" for n in range(6)]
    with pytest.raises(UsageError, match="name the tokens of these rows as queries"):
        attnviz.from_attention(step, names)
    given: tuple[Any, ...] = (-1, [5], range(5, 6), np.array([-1]))
    for queries in given:
        capture = attnviz.from_attention(step, names, queries=queries)
        assert capture.record.causal
        assert [token.label for token in capture.tokens] == ["w5"]
        np.testing.assert_array_equal(capture.pattern(1, 1), step[1][0, 1].numpy())
    told = str(capture.show(heads="L1H1"))
    assert "1 query token to 6 key tokens" in told
    assert "new" not in told
    own = capture.links(heads="L1H1")
    assert sorted(link.key.label for link in own) == names
    without = capture.to_columns(heads="L1H1", skip="self")
    assert sorted(without["key_token"]) == names[:-1]


def test_rows_of_some_tokens_are_those_of_the_whole_text() -> None:
    whole = weights(2, 3, 7, 7)
    names = [f"w{n}" for n in range(7)]
    for given in (whole, whole[:, :, 3:5]):
        some = attnviz.from_attention(given, names, queries=[3, 4])
        assert [token.label for token in some.key_tokens] == names[:5]  # later ones are masked
        np.testing.assert_allclose(some.pattern(1, 2), whole[1, 2, 3:5, :5], rtol=1e-6)
        assert some.record.allowed_count().tolist() == [4, 5]
    assert attnviz.from_attention(whole, names, queries=range(7)).record.kind == "self"
    refused: tuple[Any, ...] = ([1, 3], [7], [-8], "w1", [], [0.5], [[1]], [4, 3])
    for wrong in refused:
        with pytest.raises(UsageError, match="queries are not consecutive positions"):
            attnviz.from_attention(whole, names, queries=wrong)
    with pytest.raises(UsageError, match=r"not causal.*give only the tokens of these rows"):
        attnviz.from_attention(weights(2, 7, 7, causal=False), names, queries=[3])


def test_rows_of_an_image_keep_their_places() -> None:
    tokens = ["<image>"] * 4 + WORDS
    pixels = np.zeros((8, 8, 3), np.uint8)
    run = attnviz.from_attention(weights(8, 8), tokens, image=pixels, queries=[2, 3, 4])
    assert [token.label for token in run.tokens] == ["@r1c0", "@r1c1", "the"]
    assert [token.index for token in run.tokens] == [0, 1, 2]


def test_axes_of_another_order_are_named_and_never_guessed() -> None:
    whole = weights(2, 3, 4, 4)  # layers, heads, queries, keys
    for axes, array in {
        "qhk": whole[1].transpose(1, 0, 2),
        "bqhk": whole[:1].transpose(0, 2, 1, 3),
        "hlqk": whole.transpose(1, 0, 2, 3),
        "kq": whole[1, 0].T,
    }.items():
        found = attnviz.from_attention(array, WORDS, axes=axes)
        layer = 1 if axes == "hlqk" else 0
        expected = whole[0 if axes == "bqhk" else 1, 0]
        np.testing.assert_allclose(found.pattern(layer, 0), expected, rtol=1e-6)
    each = [layer.transpose(1, 0, 2) for layer in whole]
    found = attnviz.from_attention(each, WORDS, axes="qhk")
    np.testing.assert_allclose(found.pattern(1, 2), whole[1, 2], rtol=1e-6)
    with pytest.raises(UsageError, match="an order other than hqk as axes"):
        attnviz.from_attention(each, WORDS)
    with pytest.raises(UsageError, match="does not hold attention"):
        attnviz.from_attention([whole], WORDS, axes="lhqk")  # of one layer there is one
    for wrong in ("qh", "qqk", "xqk", "hqkb", ""):
        with pytest.raises(UsageError, match=f"with the axes '{wrong}' does not hold attention"):
            attnviz.from_attention(each, WORDS, axes=wrong)


def test_one_text_of_a_batch_is_chosen_by_its_number(gpt2_folder: Path) -> None:
    batch = torch.tensor(np.stack([weights(3, 4, 4, seed=n) for n in range(5)]))
    for given in ([batch.bfloat16().requires_grad_(), None], (batch,), batch):
        found = attnviz.from_attention(given, WORDS, index=2)
        np.testing.assert_allclose(found.pattern(0, 1), batch[2, 1].numpy(), atol=0.01)
        for index in (5, -6):
            with pytest.raises(UsageError, match="a batch of 5 texts is not one text; choose one"):
                attnviz.from_attention(given, WORDS, index=index)
    with pytest.raises(UsageError, match="a batch of 5 texts is not one text; choose one by index"):
        attnviz.from_attention([batch], WORDS)
    made = written(gpt2_folder, texts=2)
    names = [f"w{n}" for n in range(8)]
    second = attnviz.from_attention(made.attentions, names, index=1)
    np.testing.assert_allclose(second.pattern(1, 0)[-1], made.attentions[-1][1][1, 0, 0].numpy())


def test_an_encoder_decoder_writes_rows_of_both_attentions() -> None:
    config = T5Config(
        **{"vocab_size": 40, "d_model": 12, "d_kv": 4, "d_ff": 16, "num_layers": 2, "num_heads": 3},
        **{"decoder_start_token_id": 0, "eos_token_id": None, "pad_token_id": 0},
    )
    model, ids = T5ForConditionalGeneration(config).eval(), torch.tensor([[5, 6, 7, 8]])
    model.set_attn_implementation("eager")
    made = model.generate(
        ids, max_new_tokens=5, do_sample=False, output_attentions=True, return_dict_in_generate=True
    )
    with torch.no_grad():
        read = model(
            input_ids=ids, decoder_input_ids=made.sequences[:, :-1], output_attentions=True
        )
    target = ["<pad>", *"abcde"]
    cross = attnviz.from_attention(made.cross_attentions, target, WORDS)
    assert [token.label for token in cross.tokens] == target[:-1]  # each is read
    np.testing.assert_allclose(
        cross.pattern(1, 2), read.cross_attentions[1][0, 2].numpy(), atol=1e-5
    )
    own = attnviz.from_attention(made.decoder_attentions, target)
    np.testing.assert_allclose(
        own.pattern(1, 2), read.decoder_attentions[1][0, 2].numpy(), atol=1e-5
    )
    written = attnviz.from_attention(made.cross_attentions, target[1:], WORDS)
    assert [token.label for token in written.tokens] == target[1:]  # each is predicted


def test_weights_on_later_tokens_are_of_no_causal_model() -> None:
    bert = BertModel(
        BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2),
        add_pooling_layer=False,
    )
    bert.set_attn_implementation("eager")
    with torch.no_grad():
        found = bert.eval()(torch.tensor([[1, 2, 3]]), output_attentions=True).attentions
    capture = attnviz.from_attention(found, ["[CLS]", "play", "##ing"])
    assert not capture.record.causal
    assert [t.label for t in capture.tokens] == ["[CLS]", "play", "ing"]
    assert capture.text == "playing"
    with pytest.raises(attnviz.AttnvizError, match="not causal"):
        attnviz.from_attention(found, WORDS[:3], causal=True)


def test_cross_attention_has_two_texts() -> None:
    capture = attnviz.from_attention(weights(2, 3, 4, causal=False), ["▁le", "▁chat", "▁s"], WORDS)
    assert capture.record.kind == "cross"
    assert [t.label for t in capture.key_tokens] == WORDS
    assert capture.record.texts == (" le chat s", "the cat sat down")
    shown = str(capture.show(heads="L0H1"))
    assert "queries: “le chat s”" in shown
    assert "written" not in shown  # nothing is known of how the rows were made


def test_such_a_capture_is_saved_scored_and_drawn_like_any_other(tmp_path: Path) -> None:
    capture = attnviz.from_attention(weights(2, 2, 4, 4), ["a", "b", "a", "b"])
    capture.save(tmp_path / "c.npz")
    again = attnviz.load(tmp_path / "c.npz")
    np.testing.assert_array_equal(again.pattern(1, 1), capture.pattern(1, 1))
    scored = attnviz.heads(again)
    expected = np.mean([capture.pattern(0, 0)[q, q - 2] for q in (2, 3)])
    assert scored.rows[0]["duplicate"] == pytest.approx(expected)
    assert capture.figure("grid").axes
    assert capture.page().startswith("<!doctype html>")


def test_rows_that_a_sink_takes_a_part_of_sum_to_less_than_one() -> None:
    assert attnviz.from_attention(weights(4, 4) * 0.7, WORDS).record.sinks
    assert not attnviz.from_attention(weights(4, 4), WORDS).record.sinks
    part = attnviz.from_attention(weights(4, 4)[:, :3], WORDS, WORDS[:3])
    shown = str(part.show()).replace("\n", " ")
    assert "rows sum to less than 1" in shown
    assert "sink" not in shown


@pytest.mark.parametrize(
    ("given", "tokens", "said"),
    [
        (weights(4, 4), WORDS[:3], "layer 0 has 4 queries and 4 keys, and the tokens are 3 and 3"),
        (weights(2, 3, 4, 4), "text", "tokens is not a list of texts"),
        (weights(4, 4), [], "tokens is not a list of texts"),
        (np.ones(4), WORDS, "an array of shape (4,) does not hold attention"),
        (
            weights(2, 2, 2, 4, 4),
            WORDS,
            "a batch of 2 texts is not one text; choose one by index, from 0 to 1",
        ),
        (np.ones((4, 4)), WORDS, "row 0 of L0H0 is not a row of attention: its sum is 4"),
        (np.log(weights(4, 4) + 1e-9), WORDS, "is not a row of attention"),
        (np.full((4, 4), np.nan), WORDS, "is not a row of attention"),
        ("weights", WORDS, "attention is not an array of numbers"),
        (weights(4, 4) + 1j, WORDS, "attention is not an array of numbers"),
        (weights(4, 4), None, "tokens is not a list of texts; give the result of the tokenizer's"),
        *(
            (none, WORDS, 'attn_implementation="eager"')
            for none in ([None] * 2, (), None, ((), ()))
        ),
        (np.empty((0, 4, 4)), WORDS, "does not hold attention"),
        ([weights(4, 4), weights(5, 5)], WORDS, "layer 1 has 5 queries"),
    ],
)
def test_what_is_no_attention_is_told(given: Any, tokens: Any, said: str) -> None:
    with pytest.raises(attnviz.AttnvizError) as raised:
        attnviz.from_attention(given, tokens)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("spelled", "text", "labels"),
    [
        (["The", "Ġcat", "Ġsat", "."], "The cat sat.", ["The", "cat", "sat", "."]),
        (["<s>", "▁The", "▁cat", "s", "</s>"], " The cats", ["<s>", "The", "cat", "s", "</s>"]),
        (
            ["[CLS]", "un", "##aff", "##able", "[SEP]"],
            "unaffable",
            ["[CLS]", "un", "aff", "able", "[SEP]"],
        ),
        (["the", "cat", "sat"], "the cat sat", ["the", "cat", "sat"]),
        (["the", " cat", " sat"], "the cat sat", ["the", "cat", "sat"]),
        (["Ġcaf", "Ã©"], " café", ["caf", "é"]),
        (["Ġ", "æ", "¥", "ļ", "x"], " 楚x", ["␣", "楚 1/3", "楚 2/3", "楚 3/3", "x"]),
        (["Ġx", "æ", "y"], " x\ufffdy", ["x", "\ufffd", "y"]),
        (["<|endoftext|>", "a"], "a", ["<|endoftext|>", "a"]),
        (["##", "a"], "## a", ["##", "a"]),
        (["我", "Ġ是"], "我 Ġ是", ["我", "Ġ是"]),
        (["æĪĳ", "çĪ±", "ä½ł"], "我爱你", ["我", "爱", "你"]),
        (["¥", "ļ", "ä½ł", "å"], "\ufffd\ufffd你\ufffd", ["\ufffd", "\ufffd", "你", "\ufffd"]),
        (["Hello", "Ċ", "world"], "Hello\nworld", ["Hello", "\\n", "world"]),
        (["<｜User｜>", "Ġa", "小猫"], " a小猫", ["<｜User｜>", "a", "小猫"]),
        (["▁", "<0xE6>", "<0xA5>", "<0x9A>"], " 楚", ["␣", "楚 1/3", "楚 2/3", "楚 3/3"]),
        (["Ġ", "▁raw"], "Ġ raw", ["Ġ", "raw"]),
        (["[UNK]", "a"], "[UNK] a", ["[UNK]", "a"]),
    ],
)
def test_spellings_of_tokenizers_are_read(spelled: list[str], text: str, labels: list[str]) -> None:
    found, tokens = tokens_of(spelled)
    assert found == text
    assert [token.label for token in tokens] == labels
    for token in tokens:
        assert token.text == found[token.start : token.end]


def test_real_tokens_spell_the_text_that_they_are_of() -> None:
    tokenizer = attnviz.load_model()._loaded.tokenizer
    text = "the naïve café 楚留香 👩 ran - off"
    spelled = tokenizer.backend.encode(text).tokens
    found, tokens = tokens_of(spelled)
    assert found.strip() == text
    assert "".join(t.text for t in tokens if not t.part or t.part[0] == 1).strip() == text


ALPHABETS = (
    "the cat sat on a mat ",
    "我爱你小猫坐、。楚",
    "あいうえカタカナ",
    "שלום עולם",
    "नमस्ते दुनिया ",
    "ПРИВЕТ мир ",
    "déjà Ünï ßøł ĠĊ",
    "👩\u200d🚀🏽🇨🇭 é\u0301",
    " \t\n\r\x00\x7f\xa0\xad\u3000\U0010ffff",
)


def bytes_trained(merges: int) -> Tokenizer:
    """A byte-level BPE of the alphabets, with an added token of letters that are no bytes."""
    made = Tokenizer(BPE())
    made.pre_tokenizer = ByteLevel(add_prefix_space=False, trim_offsets=False)
    own = ByteLevel.alphabet()
    trainer = BpeTrainer(vocab_size=256 + merges, initial_alphabet=own, show_progress=False)
    made.train_from_iterator([f"{' '.join(each)} {each}" for each in ALPHABETS * 3], trainer)
    made.add_tokens(["小猫"])
    made.add_special_tokens(["<｜begin▁of▁sentence｜>"])
    return made


def test_tokens_of_bytes_have_the_places_that_their_tokenizer_gives_them() -> None:
    """Random texts of all scripts, with spaces, breaks and added tokens anywhere."""
    chosen = random.Random(0)
    for merges in (0, 30, 300):
        tokenizer = bytes_trained(merges)
        for number in range(150):
            few = chosen.sample(ALPHABETS, chosen.randint(1, 3))
            text = "".join(chosen.choice(chosen.choice(few)) for _ in range(1 + number % 40))
            text += chosen.choice(" 我")  # without them it may be a word
            encoded = tokenizer.encode(text)
            tokens = ["<｜begin▁of▁sentence｜>", *encoded.tokens]
            found, places = tokens_of(tokens)
            assert found == text, tokens
            assert [(token.start, token.end) for token in places[1:]] == encoded.offsets
            assert [token.label for token in places[:1]] == tokens[:1]


def test_bytes_of_one_letter_are_one_letter_behind_a_space_too() -> None:
    rows = [[1, 0, 0, 0, 0], [0.2, 0.8, 0, 0, 0], [0.1, 0.3, 0.6, 0, 0], [0.1, 0.1, 0.3, 0.5, 0]]
    run = attnviz.from_attention([*rows, [0.2] * 5], ["a", "Ġæ", "¥", "ļ", "Ġb"])
    shown = run.to_columns(chars=True)
    found = {
        (query, key): weight
        for query, key, weight in zip(
            shown["query"], shown["key_exact"], shown["weight"], strict=True
        )
    }
    assert [run.text, *shown["key_token"][-3:]] == ["a 楚 b", "楚", "a", "b"]
    assert found[2, " 楚"] == pytest.approx(0.6)
    assert "楚#1" not in str(run.show(view="table"))


@pytest.mark.parametrize(
    "words",
    [
        *(["dağ", "ağaç"], ["člověk", "če"], ["łódź", "ład"], ["PÓŁNOC"], ["VÔĽA", "ÚĽ"]),
        *(["été", "naïve"], ["Ærø", "smørrebrød"], ["Ħal", "ħobż"], ["İstanbul", "ığdır"]),
        *(["ĉu", "aŭ"], ["māja", "ķīlis"], ["¿qué?", "¡sí!"], ["«a»", "5°", "½"]),
    ],
)
def test_ordinary_words_are_not_taken_for_bytes(words: list[str]) -> None:
    found, tokens = tokens_of(words)
    assert found == " ".join(words)
    assert [token.label for token in tokens] == words


@pytest.mark.parametrize(
    "times",
    [
        *([0.1] * 4, "x", ["ab"] * 4, [(0, 1), (1,)], [], True, 0, -1, math.nan, math.inf, 1e300),
        *([(0, 1)] * 4, [(1, 0)] * 4, [(n, n + 1) for n in (3, 2, 1, 0)], 400_000, 10**40, {1: 2}),
    ],
)
def test_times_that_are_no_seconds_are_refused_in_a_sentence(times: Any) -> None:
    with pytest.raises(UsageError, match="times are not seconds of consecutive frames"):
        attnviz.from_attention(weights(4, 4), WORDS, times=times)


@pytest.mark.parametrize(
    "times", [0.5, np.float32(0.5), np.array(0.5), [(n / 2, n / 2 + 0.5) for n in range(4)]]
)
def test_times_are_numbers_of_any_type(times: Any) -> None:
    run = attnviz.from_attention(weights(4, 4), WORDS, times=times)
    assert [token.time for token in run.key_tokens] == [(0, 0.5), (0.5, 1), (1, 1.5), (1.5, 2)]
