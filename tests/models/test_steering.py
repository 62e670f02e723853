"""Vectors added to the stream, or projected out of it, beside plain hooks; in both engines."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import GPT2LMHeadModel

from attnviz.errors import ModelError
from attnviz.models.catalog import Source, load
from attnviz.models.loaded import LoadedModel
from attnviz.records.capture import NOTHING
from attnviz.records.interventions import ChangedRun, Edit, Interventions, Site
from attnviz.records.tokens import Sampling
from tests.architectures import engine_of
from tests.builtin import FOLDER
from tests.interventions import ARCHITECTURES, IDS, NEAR, followed, logits_of, passing

NEW = 6
GREEDY = Sampling(NEW)


def vector(width: int, size: float = 2.0) -> np.ndarray:
    drawn = np.random.default_rng(0).standard_normal(width).astype(np.float32)
    return size * drawn


def added(v: Tensor, x: Tensor) -> Tensor:
    return x + v


def projected(v: Tensor, x: Tensor) -> Tensor:
    unit = v / v.norm()
    return x - (x @ unit)[..., None] * unit


BY = {"added": added, "projected": projected}


def runs_with(engine: LoadedModel, v: np.ndarray, edits: list[tuple[Edit, ...]]) -> list[Any]:
    found: dict[int, ChangedRun] = {}
    sites = {edit.site for each in edits for edit in each}
    wanted = Interventions(edits, whole=True, given=dict.fromkeys(sites, v[None]))
    engine.intervene(IDS, wanted, lambda run: found.__setitem__(run.index, run))
    return [found[i] for i in range(len(edits))]


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_each_architecture_adds_and_projects_as_a_hook_on_its_layer_does(
    name: str, by: Any, record_property: Callable[[str, object], None]
) -> None:
    model = ARCHITECTURES[name].model()
    v = vector(32)
    change = partial(BY[by], torch.from_numpy(v))
    sites = [Site("residual", layer) for layer in (0, 1)]
    edits: list[tuple[Edit, ...]] = [(Edit(site, by),) for site in sites]
    edits += [(Edit(sites[0], by), Edit(sites[1], by))]
    plain, errors = logits_of(model), list[float]()
    for run, each in zip(runs_with(engine_of(model), v, edits), edits, strict=True):
        places = [ARCHITECTURES[name].site(model, edit.site) for edit in each]
        with (
            passing(*places[0], change),
            passing(*places[-1], change if len(places) > 1 else _as_is),
        ):
            logits = logits_of(model)
        assert (logits - plain).abs().max() > 0.1
        errors.append(float((torch.from_numpy(run.followed) - followed(logits)).abs().max()))
        errors.append(float((torch.from_numpy(run.last) - logits[-1]).abs().max()))
    record_property("error", max(errors))
    assert max(errors) < NEAR


def _as_is(x: Tensor) -> Tensor:
    return x


def written(engine: LoadedModel, ids: list[int], sampling: Sampling = GREEDY) -> list[int]:
    new = list[int]()

    def go_on(id_: int) -> bool:
        new.append(id_)
        return True

    engine.generate(ids, sampling, NOTHING, lambda _: None, go_on)
    return new


def by_hand(model: Any, place: Any, change: Any, ids: list[int], ends: tuple[int, ...]) -> Any:
    """The likeliest tokens and their logits, each from a whole run with a hook."""
    so_far, every = list(ids), list[Tensor]()
    for _ in range(NEW):
        with passing(*place, change):
            every.append(logits_of(model, so_far)[-1])
        id_ = int(every[-1].argmax())
        if id_ in ends:
            break
        so_far.append(id_)
    return so_far[len(ids) :], every


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_steered_model_writes_as_a_loop_with_hooks_does(name: str, layer: int) -> None:
    model = ARCHITECTURES[name].model()
    v = vector(32)
    plain = engine_of(model)
    steered = plain.steered({layer: v}, "v.npy added at layer 1")
    place = ARCHITECTURES[name].site(model, Site("residual", layer))
    change = partial(added, torch.from_numpy(v))
    new, logits = by_hand(model, place, change, IDS, (2,))
    assert written(steered, IDS) == new
    answer = steered.answered([IDS], new)[0]
    assert (answer - torch.stack(logits[: len(new)])).abs().max() < NEAR
    # the model itself stays as it was
    assert not any(m._forward_pre_hooks for m in model.modules())
    unchanged, before = by_hand(model, place, _as_is, IDS, (2,))
    assert written(plain, IDS) == unchanged
    assert (before[0] - logits[0]).abs().max() > 0.1


@pytest.mark.parametrize("engine", ["native", "transformers"])
@pytest.mark.parametrize("by", ["added", "projected"])
def test_both_engines_change_the_bundled_model_as_hooks_do(engine: Any, by: Any) -> None:
    model: Any = GPT2LMHeadModel.from_pretrained(FOLDER).eval()
    own = load(Source(engine=engine))
    v = vector(own.stream_width, 5.0)
    for layer in range(own.identity.n_layer):
        (run,) = runs_with(own, v, [(Edit(Site("residual", layer), by),)])
        place = model.transformer.h[layer], True
        with passing(*place, partial(BY[by], torch.from_numpy(v))):
            logits = logits_of(model)
        assert (torch.from_numpy(run.followed) - followed(logits)).abs().max() < 10 * NEAR


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_both_engines_write_and_read_with_it_at_every_layer(engine: Any) -> None:
    """The last layer of a prompt that is read once takes its keys from the stream, too."""
    model: Any = GPT2LMHeadModel.from_pretrained(FOLDER).eval()
    own = load(Source(engine=engine))
    v = vector(own.stream_width)
    ids, others = [*IDS, *range(20, 40)], set[tuple[int, ...]]()
    for layer in range(own.identity.n_layer):
        steered = own.steered({layer: v}, "v.npy added")
        change = partial(added, torch.from_numpy(v))
        new, logits = by_hand(model, (model.transformer.h[layer], True), change, ids, (0,))
        assert written(steered, ids) == new
        others.add(tuple(new))
        reader = steered.having_read(ids)
        for each in (steered, reader):
            answer = each.answered([ids], new)[0]
            assert (answer - torch.stack(logits[: len(new)])).abs().max() < 1e-4
    assert len(others - {tuple(written(own, ids))}) > 1


def test_several_vectors_are_added_at_once_and_the_name_says_so() -> None:
    model = ARCHITECTURES["gpt2"].model()
    v, w = vector(32), vector(32)[::-1].copy()
    both = engine_of(model).steered({0: v, 1: w}, "v.npy added at layer 0 and w.npy at layer 1")
    places = [(model.transformer.h[layer], True) for layer in (0, 1)]
    changes = [partial(added, torch.from_numpy(each)) for each in (v, w)]
    with passing(*places[0], changes[0]), passing(*places[1], changes[1]):
        logits = logits_of(model)
    assert (both.answered([IDS], [1])[0, 0] - logits[-1]).abs().max() < NEAR
    assert both.identity.name == "tiny with v.npy added at layer 0 and w.npy at layer 1"


def test_a_model_in_half_precision_is_moved_in_float32() -> None:
    """A direction is gone from a stream whose own precision could not compute it away."""
    model = ARCHITECTURES["llama, shared keys"].model(torch.bfloat16)
    seen = list[Tensor]()
    v = vector(32)
    edit = Edit(Site("residual", 1), "projected")
    with passing(model.model.layers[1].input_layernorm, True, lambda x: seen.append(x) or x):
        runs_with(engine_of(model), v, [(edit,)])
    unit = torch.from_numpy(v) / float(np.linalg.norm(v))
    left = (seen[-1].float() @ unit).abs().max()
    assert left < 0.004 * seen[-1].float().norm(dim=-1).max()


def test_a_forward_pass_that_was_replaced_is_refused() -> None:
    """It might lead past the view, so that nothing would be added."""
    model = ARCHITECTURES["gpt2"].model()
    model.transformer.forward = model.transformer.forward
    with pytest.raises(ModelError, match="was replaced"):
        engine_of(model).steered({0: vector(32)}, "")
