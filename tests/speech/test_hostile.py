"""A folder of a model of speech is a stranger's: its settings are checked before it is run."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz.errors import AttnvizError
from tests.speech.zoo import RATE, named, syllables

SETTINGS: dict[str, Any] = {
    "samples": {"chunk_length": 10**9},
    "a window of gigabytes": {"chunk_length": 600, "sampling_rate": 384_000},
    "no step": {"hop_length": 0},
    "small steps": {"hop_length": 1, "n_fft": 1 << 14},
    "many filters": {"feature_size": 1 << 20},
    "a word": {"sampling_rate": "fast"},
    "a fraction": {"n_fft": 400.5},
    "another class": {"feature_extractor_type": "NoSuchExtractor"},
    "another rate": {"sampling_rate": 8_000},
    "fewer filters": {"feature_size": 7},
    "no number": {"padding_value": float("nan")},
    "a list": ["feature_size"],
    "nothing": {},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_cannot_be_are_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    folder = named("whisper").make(tmp_path)
    path, wrong = folder / "preprocessor_config.json", SETTINGS[name]
    right = json.loads(path.read_text())
    path.write_text(json.dumps({**right, **wrong} if isinstance(wrong, dict) and wrong else wrong))
    tracemalloc.start()
    with pytest.raises(AttnvizError) as error:
        attnviz.show(model=str(folder), audio=(syllables(), RATE), target="a")
    assert tracemalloc.get_traced_memory()[1] < 1 << 28
    tracemalloc.stop()
    assert "\n" not in str(error.value)


def changed(folder: Path, **settings: Any) -> str:
    """The folder, with other settings of its features."""
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    return str(folder)


@pytest.mark.parametrize("name", ["moonshine", "speech_to_text", "wav2vec2"])
def test_settings_that_an_extractor_has_not_move_no_frame(tmp_path: Path, name: str) -> None:
    """Only Whisper's has a window and a step; the others keep what a file says in vain."""
    folders = [named(name).make(tmp_path / each) for each in ("plain", "other")]
    changed(folders[1], hop_length=4_000, chunk_length=600)
    said = {"target": "a"} if named(name).writes else {}
    runs = [attnviz.capture(model=str(at), audio=(syllables(), RATE), **said) for at in folders]
    plain, other = ([key.time for key in run.key_tokens] for run in runs)
    assert plain == other
    assert plain[-1][1] < 1.6


def test_frames_that_are_not_as_long_as_the_sound_are_refused(tmp_path: Path) -> None:
    """Without torchaudio, Speech2Text's features are 160 samples apart at any rate."""
    folder = changed(named("speech_to_text").make(tmp_path), sampling_rate=48_000)
    with pytest.raises(AttnvizError, match="does not fit the model"):
        attnviz.show(model=folder, audio=(syllables(), RATE), target="a")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("whisper", {"chunk_length": 1}),
        ("whisper", {"hop_length": 16_000}),
        ("moonshine", {"sampling_rate": 1}),
    ],
)
def test_features_that_do_not_fit_are_the_fault_of_their_settings(
    tmp_path: Path, name: str, settings: dict[str, int]
) -> None:
    folder = changed(named(name).make(tmp_path), **settings)
    with pytest.raises(AttnvizError) as error:
        attnviz.show(model=folder, audio=(syllables(), RATE), target="a")
    assert "preprocessor_config.json that belongs to the model" in error.value.hint
    assert "text" not in str(error.value)


NONE = ([[99, 0]], [["a", "b"]], "x", [[1]], [[True, 0]], [[1.0, 0]], 7)


@pytest.mark.parametrize("heads", [*NONE, None, [[1, 1], [1, 1]]])
def test_alignment_heads_that_are_none_are_not_taken(tmp_path: Path, heads: Any) -> None:
    folder = named("whisper").make(tmp_path)
    path = folder / "generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "alignment_heads": heads}))
    shown = attnviz.show(model=str(folder), audio=(syllables(), RATE), target="a")
    assert shown.record.maps[0].layer in (1, 2)
    note = "the alignment_heads of its settings are not heads of this model, and are left out"
    assert shown.record.capture.model.differs == (note if heads in NONE else "")


def test_a_sound_too_short_for_a_frame_is_refused_in_a_sentence(tmp_path: Path) -> None:
    folder = named("moonshine").make(tmp_path)
    few = np.array([0.1, -0.1, 0.2], np.float32)
    with pytest.raises(AttnvizError):
        attnviz.show(model=str(folder), audio=(few, RATE), target="a")
