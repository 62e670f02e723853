"""Rows of attention over a sound are those that transformers computes eagerly."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import attnviz
from attnviz.errors import ModelError
from attnviz.kit.prepare import Prepared, TextOptions, load_model, prepare
from attnviz.models.catalog import Source
from attnviz.records.capture import Kind
from attnviz.records.heads import every_head
from attnviz.records.places import RawSound
from tests.speech.zoo import RATE, ZOO, Spoken, syllables

THEIRS = {
    "self": "attentions",
    "cross": "cross_attentions",
    "decoder": "decoder_attentions",
    "encoder": "encoder_attentions",
}
SAID = "the cat sat"


@pytest.fixture(scope="module", params=ZOO, ids=lambda spoken: spoken.name)
def folder(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Spoken, Path]:
    spoken: Spoken = request.param
    return spoken, spoken.make(tmp_path_factory.mktemp(spoken.name))


def prepared(folder: Path, kind: Kind) -> Prepared:
    """A sound as attnviz reads it."""
    model = load_model(Source(str(folder), quiet=True, kind=None if kind == "self" else kind))
    sound = RawSound("a.wav", syllables(), RATE, 1.5)
    target = SAID if kind in ("cross", "decoder") else None
    return prepare(model, "", TextOptions(given=(sound,), target=target))


def eager(spoken: Spoken, folder: Path, run: Prepared) -> dict[str, Any]:
    """What transformers gives of the same sound and the same tokens."""
    model = getattr(transformers, spoken.model).from_pretrained(folder, attn_implementation="eager")
    extract = transformers.AutoFeatureExtractor.from_pretrained(folder)
    given = extract(syllables(), sampling_rate=RATE, return_tensors="pt")
    inputs = {model.main_input_name: given[model.main_input_name]}
    if spoken.writes:
        begin = model.config.decoder_start_token_id
        inputs["decoder_input_ids"] = torch.tensor([[begin, *(t.id for t in run.target[:-1])]])
    with torch.no_grad():
        return dict(model(**inputs, output_attentions=True))


def kinds_of(spoken: Spoken) -> tuple[Kind, ...]:
    """The attentions that a model has."""
    return ("cross", "encoder", "decoder") if spoken.writes else ("self",)


def difference(spoken: Spoken, folder: Path, kind: Kind) -> float:
    """The largest difference of a weight between attnviz and transformers."""
    run = prepared(folder, kind)
    capture = run.record(every_head(run.model.identity.heads_per_layer))
    theirs = eager(spoken, folder, run)[THEIRS[kind]]
    pairs = zip(capture.layers, theirs, strict=True)
    return max(float(np.abs(layer.weights - rows[0].numpy()).max()) for layer, rows in pairs)


def test_every_row_is_that_of_eager_attention(folder: tuple[Spoken, Path]) -> None:
    spoken, path = folder
    for kind in kinds_of(spoken):
        assert difference(spoken, path, kind) < 1e-5


def test_a_model_in_memory_comes_with_what_makes_its_features(folder: tuple[Spoken, Path]) -> None:
    spoken, path = folder
    model = getattr(transformers, spoken.model).from_pretrained(path).eval()
    extract = transformers.AutoFeatureExtractor.from_pretrained(path)
    words = transformers.PreTrainedTokenizerFast.from_pretrained(path)
    with pytest.raises(ModelError, match="makes no features of a sound"):
        attnviz.load_model(model, words)
    if spoken.name not in ("whisper", "wav2vec2"):
        return
    whole = transformers.WhisperProcessor(extract, words) if spoken.writes else extract
    target = SAID if spoken.writes else None
    runs = [
        attnviz.capture(model=ready, audio=(syllables(), RATE), target=target)
        for ready in (attnviz.load_model(model, whole), attnviz.load_model(path))
    ]
    assert np.array_equal(runs[0].pattern(1, 1), runs[1].pattern(1, 1))
