"""Activations of other texts, beside plain hooks on the modules."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attnviz.models.catalog import Source, load
from attnviz.records.interventions import ChangedRun, Edit, Interventions, Site
from tests.architectures import engine_of
from tests.builtin import FOLDER
from tests.conftest import some
from tests.interventions import (
    ARCHITECTURES,
    IDS,
    NEAR,
    SITES,
    Architecture,
    followed,
    logits_of,
    part_of,
    passing,
)

OTHERS = [[15, 6, 17, 8, 5], [9, 11, 3, 5, 6, 7, 8, 21, 30], [1, 2]]
SAME_LENGTH = [[15, 6, 17, 8, 5, 9, 11], [9, 11, 3, 5, 6, 7, 8]]


def vectors_by_hand(architecture: Architecture, model: Any, site: Site, ids: list[int]) -> Tensor:
    """A site's vectors (n, width), by a hook."""
    found = list[Tensor]()

    def keep(vectors: Tensor) -> Tensor:
        found.append(part_of(vectors, site).clone())
        return vectors

    with passing(*architecture.site(model, site), keep):
        logits_of(model, ids)
    return found[-1]


def with_vectors(architecture: Architecture, model: Any, site: Site, instead: Tensor) -> Tensor:
    """The logits (n, V) where a site has these vectors: (n, width), or one for all positions."""

    def change(vectors: Tensor) -> Tensor:
        vectors = vectors.clone()
        part_of(vectors, site)[:] = instead
        return vectors

    with passing(*architecture.site(model, site), change):
        return logits_of(model)


@pytest.mark.parametrize("name", some([*ARCHITECTURES]))
def test_means_over_other_texts_are_what_hooks_put_in(name: str) -> None:
    architecture = ARCHITECTURES[name]
    model, sites = architecture.model(), [Site("head", 1, 2), *SITES.values()]
    engine = engine_of(model)
    edits = [(Edit(site, "given"),) for site in sites]
    for texts, by_position in ((OTHERS, False), (SAME_LENGTH, True)):
        each = [engine.site_vectors(ids, sites) for ids in texts]
        given, wanted = {}, []
        for site in sites:
            hooked = [vectors_by_hand(architecture, model, site, ids) for ids in texts]
            for mine, theirs in zip(each, hooked, strict=True):
                np.testing.assert_allclose(mine[site], theirs, atol=NEAR)
            if by_position:
                instead = sum(hooked) / len(texts)
            else:
                instead = torch.cat(hooked).mean(dim=0, keepdim=True)
            assert isinstance(instead, Tensor)
            given[site] = instead.numpy()
            wanted.append(with_vectors(architecture, model, site, instead))
        runs = dict[int, ChangedRun]()
        asked = Interventions(edits, whole=True, given=given)
        engine.intervene(IDS, asked, lambda run, runs=runs: runs.update({run.index: run}))
        for i, logits in enumerate(wanted):
            assert (logits - logits_of(model)).abs().max() > 5 * NEAR  # it changes something
            np.testing.assert_allclose(runs[i].last, logits[-1], atol=NEAR, err_msg=str(edits[i]))
            np.testing.assert_allclose(runs[i].followed, followed(logits), atol=NEAR)


def test_both_engines_find_the_same_vectors() -> None:
    sites = [Site("head", 1, 2), Site("attention", 2), Site("mlp", 0), Site("residual", 3)]
    ids = [3, 40, 7, 55, 7]
    native, other = (
        load(Source(str(FOLDER), engine=engine)).site_vectors(ids, sites)
        for engine in ("native", "transformers")
    )
    for site in sites:
        assert native[site].shape[0] == len(ids)
        np.testing.assert_allclose(native[site], other[site], atol=1e-4)
