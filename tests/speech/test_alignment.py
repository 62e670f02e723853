"""Words are aligned with time as Whisper's authors do it, and planted heads are found."""

import tracemalloc
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoFeatureExtractor, WhisperForConditionalGeneration

import attnviz
from attnviz.commands.show.capture import AttentionCapture
from attnviz.errors import InputError, UsageError
from attnviz.records.capture import END_READ
from attnviz.records.heads import Head
from attnviz.records.places import PADDING
from attnviz.records.speech import SpokenWord, aligned, lost_letters, path_shares
from tests.conftest import Run, loaded_once
from tests.speech.zoo import RATE, SPECIAL, WINDOW, as_wav, named, spoken_tokenizer, syllables

SAID = "the cat sat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return loaded_once(named("whisper").make(tmp_path_factory.mktemp("whisper")))


def diagonal(rows: int, frames: int, wide: int = 1) -> NDArray[np.float32]:
    """Weights (rows, frames) of which each row is on a part of its own."""
    weights = np.zeros((rows, frames), np.float32)
    for row in range(rows):
        at = (2 * row + 1) * frames // (2 * rows)
        weights[row, at - wide // 2 : at - wide // 2 + wide] = 1 / wide
    return weights


def path_of(gain: NDArray[np.floating[Any]]) -> list[int]:
    """The frame at which each row (rows, frames) begins, on the monotone path of the most gain."""
    rows, frames = gain.shape
    best = np.full((rows, frames), -np.inf, np.float32)
    came: dict[tuple[int, int], tuple[int, int]] = {}
    for row in range(rows):
        for frame in range(frames):
            steps = [(row - 1, frame - 1), (row - 1, frame), (row, frame - 1)]
            known = [step for step in steps if min(step) >= 0]
            last = max(known, key=lambda step: best[step], default=None)
            best[row, frame] = gain[row, frame] + (0 if last is None else best[last])
            if last is not None:
                came[row, frame] = last
    at, begins = (rows - 1, frames - 1), [0] * rows
    while True:
        begins[at[0]] = at[1]
        if at not in came:
            return begins
        at = came[at]


def as_in_timing_py(weights: NDArray[np.float32], rows: slice) -> list[int]:
    """The order of `timing.py`, written down a second time, of weights (heads, rows, frames).

    All rows of the decoder scale a frame: those of the beginning, the words and the end. Only
    then are the `rows` cut out that predict a word or the end.
    """
    scaled = weights / weights.sum(axis=2, keepdims=True)
    scaled = (scaled - scaled.mean(axis=1, keepdims=True)) / scaled.std(axis=1, keepdims=True)
    frames = scaled.shape[2]
    inside = [np.abs(np.arange(n - 3, n + 4)) for n in range(frames)]  # mirrored at both ends
    inside = [np.where(near < frames, near, 2 * (frames - 1) - near) for near in inside]
    smooth = np.stack([np.median(scaled[:, :, near], axis=2) for near in inside], axis=2)
    return path_of(smooth.mean(axis=0)[rows])


def test_words_begin_where_the_authors_of_whisper_let_them_begin(
    folder: Path, tmp_path: Path
) -> None:
    """Thirty targets of 1 to 20 words, by the attention of transformers' own model."""
    sound, ready = syllables(1.5), attnviz.load_model(folder)
    model = WhisperForConditionalGeneration.from_pretrained(folder, attn_implementation="eager")
    features = AutoFeatureExtractor.from_pretrained(folder)(
        sound, sampling_rate=RATE, return_tensors="pt"
    )["input_features"]
    tokenizer, heads = spoken_tokenizer(), model.generation_config.alignment_heads
    begin = tokenizer.convert_tokens_to_ids([SPECIAL[n] for n in (0, 1, 4, 6)])
    seen = np.random.default_rng(0)
    for number in range(30):
        words = ["".join(seen.choice(list("aehlot"), 1 + n % 2)) for n in range(1 + number % 20)]
        inner = tokenizer(" ".join(words), add_special_tokens=False)["input_ids"]
        ids = torch.tensor([[*begin, *inner, tokenizer.eos_token_id]])
        with torch.no_grad():
            made = model(features, decoder_input_ids=ids, output_attentions=True).cross_attentions
        weights = np.stack([made[layer][0, head, :, :75].numpy() for layer, head in heads])
        begins = np.array(as_in_timing_py(weights, slice(len(begin) - 1, -1))) * 0.02
        run = attnviz.capture(model=ready, audio=(sound, RATE), target=" ".join(words))
        found = attnviz.align(run).record.words
        assert [word.text for word in found] == words
        expected = [begins[word.tokens[0] - len(begin) + 1] for word in found]
        assert [word.begin for word in found] == pytest.approx(expected), words
        if number == 4:  # a saved capture and a run have the same row that reads the end
            run.save(tmp_path / "a.npz")
            assert attnviz.align(attnviz.load(tmp_path / "a.npz")).record.words == found
            direct = attnviz.align(model=ready, audio=(sound, RATE), target=" ".join(words))
            assert direct.record.words == found


def test_rows_of_the_beginning_scale_a_frame_and_have_no_time() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(60), 6).astype(np.float32)
    tokens = ["<|en|>", "<|transcribe|>", "<|notimestamps|>", "a", " cat", "</s>"]
    found = attnviz.align(attnviz.from_attention(weights[None], tokens, times=0.05)).record.words
    begins = as_in_timing_py(weights[None], slice(3, None))
    assert [word.begin for word in found] == pytest.approx([0.05 * n for n in begins[:2]])


def test_words_begin_and_end_where_their_weight_does() -> None:
    weights = np.stack([diagonal(6, 60, wide=8)] * 2)
    tokens = ["the", " c", "at", " sat", ".", "</s>"]
    run = attnviz.from_attention(weights, tokens, times=0.05)
    found = attnviz.align(run, heads="0.1").record
    assert [word.text for word in found.words] == ["the", "cat", "sat."]
    assert found.heads == (Head(0, 1),)
    begins, ends = [word.begin for word in found.words], [word.end for word in found.words]
    assert ends[:-1] == begins[1:]
    for word, middle in zip(found.words, (0.25, 1.0, 2.0), strict=True):
        assert word.begin - 0.05 <= middle <= word.end + 0.05


def test_a_text_without_an_end_ends_with_the_sound() -> None:
    run = attnviz.from_attention(diagonal(3, 60)[None], ["the", " cat", " sat"], times=0.05)
    assert attnviz.align(run).record.words[-1].end == pytest.approx(60 * 0.05)


def test_heads_are_aligned_one_after_another() -> None:
    """Medians of all heads at once took eleven times the weights."""
    weights = np.random.default_rng(0).dirichlet(np.ones(400), (64, 20)).astype(np.float32)
    run = attnviz.from_attention(weights, [" a"] * 19 + ["</s>"], times=0.02).record
    tracemalloc.start()
    aligned(run, [Head(0, head) for head in range(64)])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < weights.nbytes / 2


def test_more_words_than_frames_are_refused_and_a_word_of_no_frame_has_no_weight() -> None:
    weights = np.full((1, 3, 2), 0.5, np.float32)
    tokens = ["the", " cat", " sat"]
    with pytest.raises(UsageError, match="3 words are too many for a sound of 2 frames"):
        attnviz.align(attnviz.from_attention(weights, tokens, times=0.05))
    shared = np.eye(3, dtype=np.float32)[[0, 1, 2, 2]][None]  # "sat" and the end, of one frame
    run = attnviz.from_attention(shared, [*tokens, "</s>"], times=0.05)
    found = attnviz.align(run)
    last = found.record.words[-1]
    assert (last.begin, last.end, last.weight) == (0.1, 0.1, 0.0)
    assert "not told apart" in " ".join(str(found).split())


def test_a_text_without_spaces_has_the_words_that_a_reader_sees() -> None:
    run = attnviz.from_attention(diagonal(3, 30)[None], ["猫", "坐", "</s>"], times=0.1)
    assert [word.text for word in attnviz.align(run).record.words] == ["猫", "坐"]


def test_padding_is_heard_by_nobody(folder: Path, tmp_path: Path) -> None:
    path = as_wav(tmp_path / "a.wav", syllables(1.2))
    found = attnviz.align(str(path), attnviz.load_model(folder), target=SAID).record
    assert [word.text for word in found.words] == SAID.split()
    assert found.words[-1].end <= 1.2 + 0.02
    assert found.heads == (Head(1, 1), Head(2, 0), Head(2, 3))


def test_padding_takes_nothing_from_a_words_weight() -> None:
    """Three quarters of each row lie on frames without sound; what is left is scaled to 1."""
    weights = np.concatenate([diagonal(3, 30, 10) / 4, np.full((3, 10), 0.075)], axis=1)
    run = attnviz.from_attention(weights[None], ["a", " cat", "</s>"], times=0.1).record
    keys = [replace(t, name=PADDING) if t.index >= 30 else t for t in run.key_tokens]
    found = attnviz.align(AttentionCapture(replace(run, key_tokens=tuple(keys)))).record
    assert [word.weight for word in found.words] == pytest.approx([1, 1], abs=0.15)


def test_the_upper_half_of_the_layers_aligns_where_no_head_is_named() -> None:
    run = attnviz.from_attention(np.stack([[diagonal(2, 8)]] * 4), ["a", "</s>"], times=0.1)
    assert attnviz.align(run).record.heads == (Head(2, 0), Head(3, 0))


def test_a_diagonal_scores_one_and_what_has_no_path_little() -> None:
    sink = np.zeros((8, 80), np.float32)
    sink[:, 30] = 1
    even = np.full((8, 80), 1 / 80, np.float32)
    back = diagonal(8, 80)[::-1]
    follows, constant, broad, backwards = path_shares(np.stack([diagonal(8, 80), sink, even, back]))
    assert follows == pytest.approx(1)
    assert max(constant, broad, backwards) < 0.3


def test_planted_heads_are_found_with_score_one(folder: Path, tmp_path: Path) -> None:
    """Two heads whose queries and keys are angles of their positions: nothing else is left."""
    model = WhisperForConditionalGeneration.from_pretrained(folder)
    planted = {Head(0, 2), Head(2, 1)}
    rows, frames = 3 + len(SAID) + 1, 50 * WINDOW
    with torch.no_grad():
        for name, each in model.named_parameters():
            if "layer_norm" not in name and "encoder_attn" not in name:
                each.zero_()
        _turn(model.model.encoder.embed_positions.weight, np.arange(frames) / frames)
        own = (np.arange(rows) - 2.5).clip(0) / (len(SAID) + 1)
        _turn(model.model.decoder.embed_positions.weight[:rows], own)
        for layer in range(3):
            attention = model.model.decoder.layers[layer].encoder_attn
            for each in attention.parameters():
                each.zero_()
            for head in range(4):
                if (layer, head) in planted:
                    attention.q_proj.weight[8 * head : 8 * head + 4, :4] = 60 * torch.eye(4)
                    attention.k_proj.weight[8 * head : 8 * head + 4, :4] = 60 * torch.eye(4)
    model.generation_config.alignment_heads = None
    model.save_pretrained(tmp_path)
    for file in ("tokenizer.json", "tokenizer_config.json", "preprocessor_config.json"):
        (tmp_path / file).write_bytes((folder / file).read_bytes())
    ready = attnviz.load_model(tmp_path)
    sound: Any = (syllables(WINDOW), RATE)
    result = attnviz.heads(model=ready, audio=sound, target=SAID, alignment=True)
    best = {Head(row["layer"], row["head"]): row["alignment"] for row in result.rows}
    assert set(list(best)[:2]) == planted
    assert min(best[head] for head in planted) > 0.99
    assert max(score for head, score in best.items() if head not in planted) < 0.4
    chosen = attnviz.show(model=ready, audio=sound, target=SAID).record.choice
    assert chosen is not None
    assert (chosen.heads, chosen.why) == ((Head(2, 1),), "aligned")  # in the upper layers


def _turn(weight: torch.Tensor, shares: NDArray[np.floating[Any]]) -> None:
    """Positions as angles, in four numbers whose mean is zero and whose length is one."""
    angle = torch.tensor(shares * np.pi)
    parts = (angle.cos(), -angle.cos(), angle.sin(), -angle.sin())
    weight[:, :4] = torch.stack(parts, dim=1).float()


def test_only_a_text_that_attends_to_a_sound_is_aligned(folder: Path, tmp_path: Path) -> None:
    path = str(as_wav(tmp_path / "a.wav", syllables(1.0)))
    with pytest.raises(UsageError, match="there is no sound"):
        attnviz.align("a cat")
    with pytest.raises(UsageError, match="not from a text to a sound; use this model's cross"):
        attnviz.align(path, attnviz.load_model(folder, kind="encoder"))
    alone = named("wav2vec2").make(tmp_path / "alone")
    for refused in (attnviz.align, partial(attnviz.heads, alignment=True)):
        with pytest.raises(UsageError, match="to a sound; use a model that writes a text"):
            refused(path, str(alone))
    with pytest.raises(UsageError, match="there is no sound"):
        attnviz.heads("a cat", alignment=True)


def test_letters_that_a_tokenizer_loses_are_told(run: Run, folder: Path, tmp_path: Path) -> None:
    capture = attnviz.capture(
        str(as_wav(tmp_path / "a.wav", syllables())), str(folder), target="a cat"
    )
    assert lost_letters(capture.record) == ""
    lossy = replace(capture.record, target="a catЖ")
    AttentionCapture(lossy).save(tmp_path / "lossy.npz")
    assert "no token for “Ж”, which is left out" in run("align", str(tmp_path / "lossy.npz")).err


def test_a_saved_capture_is_aligned_as_the_run_is(folder: Path, tmp_path: Path) -> None:
    run = attnviz.capture(model=attnviz.load_model(folder), audio=(syllables(), RATE), target=SAID)
    run.save(tmp_path / "a.npz")
    again = attnviz.load(tmp_path / "a.npz")
    words: tuple[SpokenWord, ...] = attnviz.align(again).record.words
    assert words == attnviz.align(run).record.words
    assert again.record.sound is not None
    assert run.record.sound is not None
    assert again.record.sound.facts == run.record.sound.facts
    assert (again.record.sound.envelope == run.record.sound.envelope).all()
    assert again.key_tokens == run.key_tokens
    short = {END_READ: run.record.extras[END_READ][..., :-1]}
    AttentionCapture(replace(run.record, extras=short)).save(tmp_path / "b.npz")
    with pytest.raises(InputError, match="the shape of end_read"):
        attnviz.load(tmp_path / "b.npz")
    merged = run.show(words=True).record.capture  # whose columns are others
    assert END_READ not in merged.extras
