"""`attnviz predict` with models that fill masks."""

from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)

import attnviz
from attnviz.errors import ExitStatus
from tests.conftest import Run, loaded_once
from tests.reading import rows_in

WORDS = "the cat sat on a mat and dog ran .".split()
SIZES = {
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
}


def folder_of(folder: Path, model: Any, names: tuple[str, str, str]) -> Path:
    """A model with a tokenizer of words, whose special tokens have these names."""
    first, last, mask = names
    vocabulary = {name: i for i, name in enumerate(["[PAD]", first, last, mask, "[UNK]", *WORDS])}
    backend = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = Whitespace()
    backend.post_processor = TemplateProcessing(
        single=f"{first} $A {last}",
        special_tokens=[(name, vocabulary[name]) for name in (first, last)],
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        mask_token=mask,
        cls_token=first,
        sep_token=last,
        pad_token="[PAD]",
    )
    tokenizer.save_pretrained(folder)
    model.eval().save_pretrained(folder)
    return loaded_once(folder)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    model = BertForMaskedLM(BertConfig(vocab_size=5 + len(WORDS), **SIZES))
    folder = tmp_path_factory.mktemp("bert")
    return folder_of(folder, model, ("[CLS]", "[SEP]", "[MASK]"))


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    model = RobertaForMaskedLM(RobertaConfig(vocab_size=5 + len(WORDS), pad_token_id=0, **SIZES))
    folder = tmp_path_factory.mktemp("roberta")
    return folder_of(folder, model, ("<s>", "</s>", "<mask>"))


def theirs(model: Any, folder: Path, ids: list[int]) -> np.ndarray:
    """The probabilities that transformers computes, (n, V)."""
    loaded = model.from_pretrained(folder).eval()
    with torch.no_grad():
        found: np.ndarray = loaded(torch.tensor([ids])).logits[0].double().softmax(-1).numpy()
    return found


def test_each_mask_is_filled_as_transformers_fills_it(run: Run, bert: Path) -> None:
    text = "the [MASK] sat on a [MASK] ."
    found = rows_in(run("predict", text, "-m", str(bert), "--top", "5", "-f", "jsonl").out)
    ids = [1, 5, 3, 7, 8, 9, 3, 14, 2]
    expected = theirs(BertForMaskedLM, bert, ids)
    assert [row["position"] for row in found] == [2] * 5 + [6] * 5
    assert {row["after"] for row in found} == {None}
    for position in (2, 6):
        mine = [row for row in found if row["position"] == position]
        best = np.argsort(-expected[position])[:5]
        assert [row["id"] for row in mine] == best.tolist()
        assert [row["probability"] for row in mine] == pytest.approx(expected[position][best])
    shown = run("predict", text, "-m", str(bert)).out
    assert "in place of [MASK]#1" in shown
    assert "what “[MASK]#2” attends to in each layer" in shown


def test_evidence_looks_to_both_sides(bert: Path) -> None:
    found = attnviz.predict("the [MASK] sat on a mat", str(bert)).record
    capture = attnviz.capture("the [MASK] sat on a mat", str(bert), special=True)
    for link in found.evidence:
        assert link.weight == pytest.approx(float(capture.pattern(*link.head)[2, link.key]))
    assert any(link.key > 2 for link in found.evidence)


def test_the_lens_ends_with_the_model_itself(run: Run, bert: Path) -> None:
    found = attnviz.predict("the [MASK] sat", str(bert), lens=True, top=3).record
    assert [each.layer for each in found.lens] == [0, 1, None]
    assert found.lens[-1].candidates[0].id == found.last.candidates[0].id


def test_either_spelling_of_a_mask_is_read(run: Run, roberta: Path) -> None:
    out = [
        run("predict", f"the {mask} sat", "-m", str(roberta), "-f", "jsonl").out
        for mask in ("<mask>", "[MASK]")
    ]
    assert out[0] == out[1]
    expected = theirs(RobertaForMaskedLM, roberta, [1, 5, 3, 7, 2])
    assert rows_in(out[0])[0]["probability"] == pytest.approx(expected[2].max())


def test_the_mean_over_lines_is_of_all_masks_of_each_text(run: Run, bert: Path) -> None:
    given = b"the [MASK] sat\nno mask here\na [MASK] and a [MASK]\n"
    ended = run("predict", "--lines", "-m", str(bert), "--top", "1", "-f", "jsonl", stdin=given)
    assert ended.status is ExitStatus.INPUT
    assert "line 2" in ended.err
    *lines, mean = rows_in(ended.out)
    assert [row["line"] for row in lines] == [1, 3, 3]
    first, *other = (row["probability"] for row in lines)
    assert mean["probability"] == pytest.approx(fmean([first, fmean(other)]))
    shown = run("predict", "--lines", "-m", str(bert), stdin=given).out
    assert "probability of the likeliest token in place of a mask" in shown


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("the cat sat",), ExitStatus.INPUT, "fills masks, but the text has none; write [MASK]"),
        (("a [MASK]", "--each"), ExitStatus.USAGE, "--each is for next tokens"),
        (("a [MASK]", "--attribute"), ExitStatus.USAGE, "--attribute is for next tokens"),
    ],
)
def test_what_cannot_be_filled_is_told(
    run: Run, bert: Path, arguments: tuple[str, ...], status: ExitStatus, said: str
) -> None:
    ended = run("predict", *arguments, "-m", str(bert))
    assert ended.status is status
    assert said in ended.err
    assert ended.err.count("\n") == 1


def test_a_model_without_an_output_layer_predicts_nothing(run: Run, tmp_path: Path) -> None:
    model = BertModel(BertConfig(vocab_size=5 + len(WORDS), **SIZES))
    folder = folder_of(tmp_path / "bare", model, ("[CLS]", "[SEP]", "[MASK]"))
    ended = run("predict", "the [MASK] sat", "-m", str(folder))
    assert ended.status is ExitStatus.USAGE
    assert "does not predict" in ended.err
