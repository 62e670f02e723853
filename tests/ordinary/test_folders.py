"""Every ordinary folder is read as transformers reads it, and commands of each kind take it."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers.models.auto import modeling_auto

import attnviz
from attnviz.api.model import Model
from attnviz.models.catalog import Source, tokenizer_of
from tests.ordinary.models import Ordinary, build
from tests.ordinary.table import EVERY

TEXT = "The cat sat on the mat, and it was 12:30."
TEXTS = (
    TEXT,
    " two  spaces,\ttab\n\nand lines ",
    "naïve café 你好 🙂",
    "user: it's <b>you</b>, isn't it?\nassistant: weather 2024",
)


@dataclass(frozen=True)
class Folder:
    """An ordinary folder; attnviz's model and transformers' own tokenizer are loaded once."""

    row: Ordinary
    path: Path

    @cached_property
    def model(self) -> Model:
        return attnviz.load_model(str(self.path))

    @cached_property
    def tokenizer(self) -> Any:
        return transformers.AutoTokenizer.from_pretrained(self.path)

    @property
    def pair(self) -> bool:
        return bool(self.row.config.get("is_encoder_decoder"))


@pytest.fixture(scope="module", params=EVERY, ids=str)
def ordinary(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folder]:
    row = request.param
    path = build(row, tmp_path_factory.mktemp("ordinary") / row.name)
    yield Folder(row, path)
    shutil.rmtree(path)


def test_tokens_are_those_of_transformers(ordinary: Folder) -> None:
    tokenizer = tokenizer_of(Source(str(ordinary.path)))
    for text in TEXTS:
        tokens = tokenizer.encode(text, bos=tokenizer.bos, special=False)
        assert [token.id for token in tokens] == ordinary.tokenizer(text).input_ids, text


def test_weights_are_those_of_transformers_eager_attention(ordinary: Folder) -> None:
    if ordinary.pair:
        model = attnviz.load_model(str(ordinary.path), kind="encoder")
    else:
        model = ordinary.model
    capture = model.capture(TEXT, heads=None)
    reference = transformers.AutoModel.from_pretrained(
        ordinary.path, attn_implementation="eager", dtype=torch.float32
    ).eval()
    body = reference.get_encoder() if ordinary.pair else reference
    with torch.no_grad():
        theirs = body(**ordinary.tokenizer(TEXT, return_tensors="pt"), output_attentions=True)
    for head in capture.heads:
        weights = theirs.attentions[head.layer][0, head.head].numpy()
        np.testing.assert_allclose(capture.pattern(*head), weights, atol=1e-5)


def test_commands_of_each_kind_take_it(ordinary: Folder) -> None:
    target = {"target": "the mat"} if ordinary.pair else {}
    assert ordinary.model.show(TEXT, **target).to_columns()
    assert ordinary.model.heads(TEXT, **target).rows
    architecture = ordinary.row.config["architectures"][0]
    if architecture in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        assert ordinary.model.predict(TEXT).rows


@pytest.mark.filterwarnings("ignore:Unfeasible length")
def test_an_answer_is_that_of_transformers_or_says_that_its_beams_are_not(ordinary: Folder) -> None:
    own = transformers.AutoConfig.from_pretrained(ordinary.path)
    auto = "Seq2SeqLM" if ordinary.pair else "CausalLM"
    made = getattr(transformers, f"AutoModelFor{auto}")._model_mapping.get(type(own), None)
    if made is None or ordinary.row.config["architectures"][0] != made.__name__:
        return  # it writes no text
    answer = ordinary.model.generate(TEXT, max_new_tokens=3)
    beams = (ordinary.row.generation or {}).get("num_beams", 1)
    assert sum(f"{beams} beams" in note for note in answer.notes) == (beams > 1)
    model = made.from_pretrained(ordinary.path, dtype=torch.float32).eval()
    ids = ordinary.tokenizer(TEXT, return_tensors="pt").input_ids
    with torch.no_grad():
        written = model.generate(ids, max_new_tokens=3, do_sample=False, num_beams=1)[0]
    new = written[1 if ordinary.pair else ids.size(1) :].tolist()
    ends = model.generation_config.eos_token_id
    assert [t.id for t in answer.tokens] == [i for i in new if i not in np.atleast_1d(ends)]
