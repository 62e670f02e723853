"""What else a model can do, it does with images: it predicts, writes, and is intervened in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from transformers import AutoModelForImageTextToText

from attnviz.errors import UsageError
from attnviz.kit.prepare import Prepared, TextOptions, frozen, load_model, prepare
from attnviz.models.catalog import Source
from attnviz.models.frozen.contrast import Contrast
from attnviz.records.capture import Wanted
from attnviz.records.heads import Head
from attnviz.records.interventions import (
    ChangedRun,
    CutLink,
    Edit,
    Intervention,
    Interventions,
    Site,
    SourceRun,
)
from attnviz.records.paths import LOGITS, Paths
from attnviz.records.places import RawImage
from attnviz.records.predict import LogitRows
from attnviz.records.tokens import Sampling
from tests.frozen import every_head
from tests.vision.zoo import processed, processor, species

CAUSAL = ["llava", "qwen2_5_vl", "gemma3"]
ANSWER = [50, 60, 70]


@dataclass(frozen=True)
class Seen:
    """A text with an image through attnviz, and what transformers makes of it."""

    prepared: Prepared
    plain: Any
    inputs: dict[str, Tensor]

    @cached_property
    def logits(self) -> Tensor:
        """(n, V)."""
        return self.run(self.inputs["input_ids"])

    def run(self, ids: Tensor) -> Tensor:
        """The logits (n, V) of ids that are those of the text, or go on after it."""
        more = ids.size(1) - self.inputs["input_ids"].size(1)
        inputs = {**self.inputs, "input_ids": ids, "attention_mask": torch.ones_like(ids)}
        for name in ("token_type_ids", "mm_token_type_ids"):
            if name in inputs:  # what is written is no part of PaliGemma's prompt
                kind = int(self.plain.config.model_type == "paligemma")
                inputs[name] = torch.nn.functional.pad(inputs[name], (0, more), value=kind)
        if (tiles := inputs.get("cross_attention_mask")) is not None:
            inputs["cross_attention_mask"] = torch.cat([tiles, *[tiles[:, -1:]] * more], dim=1)
        with torch.no_grad():
            return self.plain(**inputs).logits[0]

    @property
    def n(self) -> int:
        """How many tokens there are."""
        return len(self.prepared.ids)

    @property
    def image(self) -> list[int]:
        """The positions of patches."""
        return [token.index for token in self.prepared.source if token.patch]

    def changed(self, *changes: Intervention) -> list[ChangedRun]:
        """The runs under interventions, in order."""
        runs = list[ChangedRun]()
        self.prepared.model.intervene(self.prepared.ids, Interventions(changes), runs.append)
        return sorted(runs, key=lambda run: run.index)


def seen_by(name: str, folder: Path) -> Seen:
    """A text with an image, read by an architecture."""
    species(name).make(folder)
    text, draw = f"Look: {species(name).place} What?", np.random.default_rng(0)
    pixels = draw.integers(0, 256, (70, 90, 3), dtype=np.uint8)
    options = TextOptions(special=True, given=(RawImage("a.png", pixels),))
    prepared = prepare(load_model(Source(str(folder), quiet=True)), text, options)
    plain = AutoModelForImageTextToText.from_pretrained(folder).eval()
    inputs = processed(processor(folder), text, Image.fromarray(pixels))
    inputs.pop("labels", None)
    return Seen(prepared, plain, inputs)


@pytest.fixture(scope="module", params=CAUSAL)
def seen(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return seen_by(request.param, tmp_path_factory.mktemp("uses") / "model")


@pytest.fixture(scope="module", params=[*CAUSAL, "paligemma", "mllama"])
def writing(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return seen_by(request.param, tmp_path_factory.mktemp("writing") / "model")


def test_predictions_are_those_of_transformers(seen: Seen) -> None:
    blocks = list[LogitRows]()
    seen.prepared.model.predict(seen.prepared.ids, range(seen.n), blocks.append, lens=True)
    own = np.concatenate([block.logits for block in blocks if block.layer is None])
    assert np.array_equal(own, seen.logits.numpy())
    first = np.concatenate([block.logits for block in blocks if block.layer == 0])
    assert first.shape == own.shape
    assert not np.allclose(first, own, atol=0.1)


def test_what_it_writes_is_what_transformers_writes(writing: Seen) -> None:
    written = list[int]()

    def take(id_: int) -> bool:
        written.append(id_)
        return True

    model, ids = writing.prepared.model, writing.prepared.ids
    model.generate(ids, Sampling(most=6), Wanted({1: (0,)}), lambda _: None, take)
    most = {"max_new_tokens": 6, "do_sample": False}
    expected = writing.plain.generate(**writing.inputs, **most)[0, writing.n :].tolist()
    assert written == [id_ for id_ in expected if id_ != 0]  # which ends a text


def test_the_probability_of_an_answer_is_that_of_the_model_itself(writing: Seen) -> None:
    found = writing.prepared.model.log_probabilities([writing.prepared.ids] * 2, ANSWER)
    ids = torch.tensor([[*writing.prepared.ids, *ANSWER]])
    logs = writing.run(ids)[writing.n - 1 : -1].log_softmax(dim=-1)
    expected = logs[range(len(ANSWER)), ANSWER].numpy()
    assert np.abs(found - expected).max() < 1e-4


def test_a_model_that_reads_its_prompt_from_both_sides_predicts_nothing_within_it(
    tmp_path: Path,
) -> None:
    prepared = seen_by("paligemma", tmp_path / "model").prepared
    with pytest.raises(UsageError, match="reads a prompt from both sides, and predicts only what"):
        prepared.model.predict(prepared.ids, [0], lambda _: None, lens=False)


def test_cutting_every_link_to_an_image_keeps_it_out_of_a_head(seen: Seen) -> None:
    last = seen.n - 1
    cuts = tuple(CutLink(Head(1, 0), last, key, renormalise=True) for key in seen.image)
    same, cut = seen.changed((), cuts)
    assert np.array_equal(same.last, seen.logits[-1].numpy())
    assert np.abs(cut.last - same.last).max() > 1e-4


@pytest.mark.parametrize("kind", ["head", "mlp", "residual"])
def test_vectors_at_the_place_of_an_image_are_replaced(seen: Seen, kind: Any) -> None:
    site = Site(kind, 1, 0 if kind == "head" else None)
    same, other = seen.changed((), (Edit(site, "mean"),))
    assert np.array_equal(same.last, seen.logits[-1].numpy())
    assert np.abs(other.last - same.last).max() > 1e-3
    vectors = seen.prepared.model.site_vectors(seen.prepared.ids, [site])[site]
    assert len(vectors) == seen.n


def test_what_an_unchanged_layer_is_given_is_what_transformers_gives_it(seen: Seen) -> None:
    site = Site("residual", 1)
    own = seen.prepared.model.site_vectors(seen.prepared.ids, [site])[site]
    with torch.no_grad():
        states = seen.plain(**seen.inputs, output_hidden_states=True).hidden_states
    assert np.abs(own - states[1][0].numpy()).max() < 1e-4
    streams = [seen.prepared.model.vectors(seen.prepared.ids, at) for at in seen.image[:2]]
    assert np.abs(streams[0][1] - own[seen.image[0]]).max() < 1e-4
    assert not np.allclose(streams[0][0], streams[1][0], atol=1e-3)  # two parts of the image


def test_a_run_held_fixed_explains_scores_of_image_tokens_as_sums(seen: Seen) -> None:
    run, first, other = frozen(seen.prepared), seen.image[0], seen.image[-1]
    for head in every_head(run):
        a = run.attention(head)
        keys = a.k[head.head // a.group][[first, other]]
        scores = a.scaling * (keys @ a.q[head.head, seen.n - 1]).double()
        contrast = Contrast(run, head, seen.n - 1, first, other)
        for walk in (contrast.query_walk, contrast.key_walk):
            values = walk.shares.values[0]
            assert abs(values.sum() - float(scores[0] - scores[1])) < 2e-5 * np.abs(values).sum()


def test_paths_from_a_head_to_the_logits_are_followed(seen: Seen) -> None:
    ids = seen.prepared.ids
    source = SourceRun([*ids[:-1], ANSWER[0]], range(seen.n))
    found = list[Sequence[float]]()
    take: Callable[..., None] = lambda *path: found.append(path[-1])  # noqa: E731
    paths = Paths([Edit(Site("head", 0, 1), "source")], [LOGITS], source)
    seen.prepared.model.paths(ids, paths, take)
    assert np.abs(np.array(found[0]) - seen.logits[-1].numpy()).max() > 1e-3


def test_lengths_of_values_and_contributions_are_those_of_this_run(seen: Seen) -> None:
    prepared = seen.prepared
    norms = prepared.model.value_norms(prepared.ids)
    assert norms.shape[-1] == seen.n
    assert len({round(float(norm), 4) for norm in norms[1, 0, seen.image]}) > 1
    shares = prepared.record([Head(1, 0)], contributions=True).layers[0].weights
    assert np.abs(shares[0, -1, seen.image]).max() > 0
