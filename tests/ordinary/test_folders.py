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
from attnviz.api import Model
from attnviz.errors import ModelError
from attnviz.models.catalog import Source, tokenizer_of
from tests.conftest import slow, some
from tests.ordinary.chats.test_templates import CHATS, rendered, transformers_says
from tests.ordinary.models import Ordinary, build, older, only_texts
from tests.ordinary.table import EVERY

TEXT = "The cat sat on the mat, and it was 12:30."
TEXTS = (
    TEXT,
    " two  spaces,\ttab\n\nand lines ",
    "naïve café 你好 🙂",
    "user: it's <b>you</b>, isn't it?\nassistant: weather 2024",
)
TEMPLATES = {
    "tinyllama-1.1b-chat": "zephyr",
    "llama-2-7b": "llama2",
    "llama-3.2-1b-instruct": "llama3",
    "mistral-7b-instruct-v0.3": "mistral",
    "mixtral-8x7b": "mistral",
    "qwen2-0.5b": "chatml",
    "qwen2.5-7b-instruct": "qwen2",
    "qwen3-4b": "qwen3",
    "qwen3-30b-a3b": "qwen3",
    "falcon-7b": "falcon",
    "gemma-2b": "gemma",
    "gemma-2-2b-it": "gemma",
    "gemma-3-1b-it": "gemma3",
    "phi-3-mini-128k": "phi3",
    "stablelm-2-1.6b": "chatml",
    "gpt-oss-20b": "gpt_oss",
    "olmo-2-1b": "olmo",
    "granite-3.1-2b": "granite",
    "command-r": "command_r_tool_use",
    "smollm3-3b": "smollm",
}
"""The models that have a chat template, each with one in its family's style."""
THREE = ("plain", "system and two turns", "tools with a call and a result")
TEXTS_ALONE = ("gpt2", "qwen2-0.5b", "bert-base-uncased", "roberta-base-squad2", "bart-large-cnn")
OLDER = tuple(row.name for row in EVERY[1::3])
WRITE = {
    *modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values(),
    *modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES.values(),
}
WRITERS = [row for row in EVERY if row.config["architectures"][0] in WRITE]
BEAMS = [row for row in WRITERS if (row.generation or {}).get("num_beams", 1) > 1]
SOME_WRITERS = [
    *some([row for row in WRITERS if row not in BEAMS]),
    BEAMS[0],
    *map(slow, BEAMS[1:]),
]
"""Every third, and one of those whose settings ask for beams."""


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
    if row.name in OLDER:
        older(row, path)
    if row.name in TEXTS_ALONE:
        only_texts(row, path)
    if row.name in TEMPLATES:
        held = Path(__file__).parent / "chats" / f"{TEMPLATES[row.name]}.jinja"
        shutil.copy(held, path / "chat_template.jinja")
    yield Folder(row, path)
    shutil.rmtree(path)


def test_tokens_are_those_of_transformers(ordinary: Folder) -> None:
    tokenizer = tokenizer_of(Source(str(ordinary.path)))
    for text in TEXTS:
        tokens = tokenizer.encode(text, bos=tokenizer.bos, special=False)
        assert [token.id for token in tokens] == ordinary.tokenizer(text).input_ids, text


@pytest.mark.parametrize(
    "ordinary", [row for row in EVERY if row.name in TEMPLATES], ids=str, indirect=True
)
def test_three_chats_have_the_texts_and_tokens_of_transformers(ordinary: Folder) -> None:
    tokenizer = tokenizer_of(Source(str(ordinary.path)))
    for kind in THREE:
        try:
            expected = transformers_says(ordinary.tokenizer, CHATS[kind])
        except Exception:  # what a template raises
            with pytest.raises(ModelError, match="chat template"):
                rendered(ordinary.path, CHATS[kind])
            continue
        text = rendered(ordinary.path, CHATS[kind]).text
        tokens = tokenizer.encode(text, bos=False, special=True)
        assert (text, [token.id for token in tokens]) == expected, kind


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


@pytest.mark.parametrize("ordinary", some(EVERY), ids=str, indirect=True)
def test_commands_of_each_kind_take_it(ordinary: Folder) -> None:
    target = {"target": "the mat"} if ordinary.pair else {}
    assert ordinary.model.show(TEXT, **target).to_columns()
    assert ordinary.model.heads(TEXT, **target).rows
    architecture = ordinary.row.config["architectures"][0]
    if architecture in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        assert ordinary.model.predict(TEXT).rows


@pytest.mark.parametrize("ordinary", SOME_WRITERS, ids=str, indirect=True)
@pytest.mark.filterwarnings("ignore:Unfeasible length")
def test_an_answer_is_that_of_transformers_or_says_that_its_beams_are_not(ordinary: Folder) -> None:
    answer = ordinary.model.generate(TEXT, max_new_tokens=3)
    beams = (ordinary.row.generation or {}).get("num_beams", 1)
    assert sum(f"{beams} beams" in note for note in answer.notes) == (beams > 1)
    made = getattr(transformers, ordinary.row.config["architectures"][0])
    model = made.from_pretrained(ordinary.path, dtype=torch.float32).eval()
    ids = ordinary.tokenizer(TEXT, return_tensors="pt").input_ids
    with torch.no_grad():
        written = model.generate(ids, max_new_tokens=3, do_sample=False, num_beams=1)[0]
    new = written[1 if ordinary.pair else ids.size(1) :].tolist()
    ends = model.generation_config.eos_token_id
    assert [t.id for t in answer.tokens] == [i for i in new if i not in np.atleast_1d(ends)]
