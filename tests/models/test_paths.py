"""Path patching beside plain hooks, written from its definition, and beside closed forms."""

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from attnviz.commands.patch.run import receivers_of
from attnviz.errors import ModelError
from attnviz.models.catalog import Source, load
from attnviz.models.folder.config import GPTConfig
from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.paths import paths_native, slopes_native
from attnviz.models.scratch.runs import intervene_native
from attnviz.records.interventions import Edit, Interventions, Site, SiteKind, SourceRun
from attnviz.records.paths import LOGITS, MlpsOnPaths, Paths, Receiver, SlopeOf
from tests.architectures import engine_of
from tests.builtin import FOLDER
from tests.conftest import slow
from tests.interventions import (
    ARCHITECTURES,
    HEADS,
    IDS,
    KEEP_TO_THEMSELVES,
    SOURCE,
    Architecture,
    logits_of,
    part_of,
    passing,
)

LAYERS = 3
NEAR = 2e-5
MLPS: tuple[MlpsOnPaths, ...] = get_args(MlpsOnPaths)
SENDERS = [Site("head", layer, head) for layer in range(LAYERS) for head in (0, 3)]
SENDERS += [Site("mlp", layer) for layer in range(LAYERS)]
# a head that shares its keys with another one, in a layer behind one that is held fixed
HEADS_READ = [Receiver(2, 1, letter) for letter in ("q", "k", "v")] + [Receiver(1, 2, "k")]
OTHERS = [LOGITS, Receiver(2), Receiver(1)]
Inputs = dict[tuple[int, int, str], Tensor]


def deeper(name: str) -> Architecture:
    """The architecture with three layers."""
    sizes = dict(ARCHITECTURES[name].sizes)
    for key in sizes.keys() & {"num_hidden_layers", "n_layer", "num_layers"}:
        sizes[key] = LAYERS
    if "attention_types" in sizes:
        sizes["attention_types"] = [[["global", "local", "global"], 1]]
    return replace(ARCHITECTURES[name], sizes=sizes)


def attention(seen: Inputs, given: Inputs) -> Callable[..., tuple[Tensor, Tensor]]:
    """Attention, written out, that keeps each head's inputs, and takes those that are given."""

    def attend(
        module: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, **more: Any
    ) -> tuple[Tensor, Tensor]:
        inputs = {"q": q}
        for letter, shared in (("k", k), ("v", v)):
            inputs[letter] = shared.repeat_interleave(q.size(1) // shared.size(1), dim=1)
        for head in range(q.size(1)):
            for letter, values in inputs.items():
                seen[module.layer_idx, head, letter] = values[0, head].clone()
        inputs = {letter: values.clone() for letter, values in inputs.items()}
        for (layer, head, letter), values in given.items():
            if layer == module.layer_idx:
                inputs[letter][0, head] = values
        scaling = more.get("scaling") or q.size(-1) ** -0.5
        scores = inputs["q"] @ inputs["k"].transpose(2, 3) * scaling
        if more.get("softcap"):
            scores = more["softcap"] * torch.tanh(scores / more["softcap"])
        scores = scores + mask
        if hasattr(module, "sinks"):
            sinks = module.sinks.view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
            scores = torch.cat([scores, sinks], dim=3)
        pattern = scores.softmax(dim=3)[..., : k.size(2)]
        return (pattern @ inputs["v"]).transpose(1, 2), pattern

    return attend


class Oracle:
    """One model with plain hooks on modules that are named by hand."""

    def __init__(self, architecture: Architecture, model: Any, monkeypatch: Any) -> None:
        self._architecture, self._model, self._monkeypatch = architecture, model, monkeypatch
        self._every = [Site(kind, n) for kind in ("head", "mlp") for n in range(LAYERS)]
        self._clean = self._vectors(IDS, range(len(IDS)))
        self._source = self._vectors(SOURCE.ids, SOURCE.places)

    def _vectors(self, ids: Sequence[int], places: Sequence[int]) -> dict[Site, Tensor]:
        """The vectors (n, width) of every site, at these places."""
        found: dict[Site, Tensor] = {}
        with ExitStack() as stack:
            for site in self._every:

                def keep(vectors: Tensor, site: Site = site) -> Tensor:
                    found[site] = vectors.reshape(-1, vectors.size(-1))[list(places)].clone()
                    return vectors

                stack.enter_context(passing(*self._architecture.site(self._model, site), keep))
            logits_of(self._model, ids)
        return found

    def _run(self, changes: dict[Site, Tensor], given: Inputs) -> tuple[Tensor, Inputs]:
        """The last logits, and the inputs of all heads and what MLPs add, where it is changed."""
        seen: Inputs = {}
        with ExitStack() as stack, self._monkeypatch.context() as patch:
            if self._architecture.switches:
                file = sys.modules[type(self._model).__module__]
                patch.setattr(file, "eager_attention_forward", attention(seen, given))
                patch.setattr(self._model.config, "_attn_implementation", "eager")
            for site in self._every:

                def instead(vectors: Tensor, site: Site = site) -> Tensor:
                    seen[site.layer, -1, site.kind] = vectors.reshape(-1, vectors.size(-1)).clone()
                    return changes[site].reshape(vectors.shape) if site in changes else vectors

                stack.enter_context(passing(*self._architecture.site(self._model, site), instead))
            return logits_of(self._model)[-1], seen

    def after(
        self,
        sender: Site,
        receiver: Receiver,
        mlps: MlpsOnPaths,
        positions: Sequence[int] = range(len(IDS)),
    ) -> Tensor:
        """The logits after the last position where one path is patched, at these positions."""
        held = {site: self._clean[site].clone() for site in self._every}
        if mlps == "recompute":
            held = {site: vectors for site, vectors in held.items() if site.kind == "head"}
        whole = sender._replace(head=None)
        sent = self._clean[whole].clone()
        rows = list(positions)
        part_of(sent, sender)[rows] = part_of(self._source[whole], sender)[rows]
        logits, seen = self._run({**held, whole: sent}, {})
        if receiver.layer is None:
            return logits
        if receiver.head is None:
            return self._run({Site("mlp", receiver.layer): seen[receiver.layer, -1, "mlp"]}, {})[0]
        at = receiver.layer, receiver.head, receiver.letter or ""
        return self._run({}, {at: seen[at]})[0]


def engine(model: Any) -> Any:
    """The model as an engine that knows its three layers."""
    two = engine_of(model)
    return replace(two, identity=replace(two.identity, heads_per_layer=(HEADS,) * LAYERS))


def found_by(model: Any, paths: Paths, ids: Sequence[int] = IDS) -> dict[tuple[int, Receiver], Any]:
    found: dict[tuple[int, Receiver], Any] = {}

    def keep(sender: int, receiver: Receiver, logits: Any) -> None:
        assert (sender, receiver) not in found
        found[sender, receiver] = logits

    model.paths(ids, paths, keep)
    return found


def paths_to(receivers: Sequence[Receiver], mlps: MlpsOnPaths) -> Paths:
    return Paths([Edit(site, "source") for site in SENDERS], receivers, SOURCE, mlps)


@pytest.mark.parametrize("mlps", [MLPS[0], *map(slow, MLPS[1:])])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_path_is_what_plain_hooks_make_of_it(
    name: str, mlps: MlpsOnPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    architecture = deeper(name)
    # experts have no kernel for float64
    model = architecture.model(torch.float32 if "experts" in name else torch.float64)
    receivers = [*OTHERS, *(HEADS_READ if architecture.switches else ())]
    found = found_by(engine(model), paths_to(receivers, mlps))
    expected = {(i, to) for i, site in enumerate(SENDERS) for to in receivers if to.follows(site)}
    assert found.keys() == expected
    oracle, plain = Oracle(architecture, model, monkeypatch), logits_of(model)[-1]
    moved = []
    for (i, to), logits in found.items():
        theirs = oracle.after(SENDERS[i], to, mlps)
        np.testing.assert_allclose(logits, theirs, atol=NEAR, err_msg=f"{SENDERS[i]} to {to}")
        moved.append(float((theirs - plain).abs().max()))
    assert np.median(moved) > 100 * NEAR  # the paths carry something


@pytest.mark.parametrize("mlps", MLPS)
def test_a_path_from_the_positions_that_are_aligned_is_what_plain_hooks_make_of_it(
    mlps: MlpsOnPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    architecture = deeper("llama, shared keys")
    model, positions = architecture.model(torch.float64), (0, 2, len(IDS) - 1)
    receivers = [*OTHERS, *HEADS_READ]
    edits = [Edit(site, "source", positions) for site in SENDERS]
    found = found_by(engine(model), Paths(edits, receivers, SOURCE, mlps))
    oracle, everywhere = Oracle(architecture, model, monkeypatch), list[float]()
    for (i, to), logits in found.items():
        theirs = oracle.after(SENDERS[i], to, mlps, positions)
        np.testing.assert_allclose(logits, theirs, atol=NEAR, err_msg=f"{SENDERS[i]} to {to}")
        everywhere.append(float((theirs - oracle.after(SENDERS[i], to, mlps)).abs().max()))
    assert max(everywhere) > 100 * NEAR  # the other positions would carry something, too


KINDS: list[tuple[SiteKind, int]] = [
    (kind, layer) for kind in get_args(SiteKind) for layer in range(LAYERS)
]
STEP, OF_QUOTIENTS = 2e-3, 1e-3  # norms and softmax of many models compute in float32
CUTS = None, *MLPS


def vectors_of(architecture: Architecture, model: Any, run: SourceRun) -> dict[Site, Tensor]:
    """The vectors (n, width) of every kind of site, at the places of a run."""
    found: dict[Site, Tensor] = {}
    with ExitStack() as stack:
        for kind, layer in KINDS:

            def keep(vectors: Tensor, site: Site = Site(kind, layer)) -> Tensor:  # noqa: B008
                found[site] = vectors.reshape(-1, vectors.size(-1))[list(run.places)].clone()
                return vectors

            place = architecture.site(model, Site(kind, layer))
            stack.enter_context(passing(*place, keep))
        logits_of(model, run.ids)
    return found


@pytest.mark.parametrize("direct", [*map(slow, CUTS[:-1]), CUTS[-1]])
@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if "experts" not in name])
def test_the_first_order_of_every_patch_is_its_difference_quotient(
    name: str, direct: MlpsOnPaths | None
) -> None:
    architecture = deeper(name)
    model = architecture.model(torch.float64)
    clean = vectors_of(architecture, model, SourceRun(IDS, range(len(IDS))))
    source = vectors_of(architecture, model, SOURCE)

    def measured(site: Site, positions: Sequence[int], step: float) -> float:
        """The difference of two logits where a site has moved a little towards the source."""
        whole = site._replace(head=None)
        moved = clean[whole].clone()
        own, other = part_of(moved, site), part_of(source[whole], site)
        at = list(positions)
        own[at] += step * (other - own)[at]
        held = {"head", "mlp"} if direct == "freeze" else {"head"} if direct else set()
        changes = {each: vectors for each, vectors in clean.items() if each.kind in held}
        changes[whole] = moved
        with ExitStack() as stack:
            for each, vectors in changes.items():
                place = architecture.site(model, each)
                stack.enter_context(passing(*place, lambda x, v=vectors: v.clone().view(x.shape)))
            last = logits_of(model)[-1]
        return float(last[7] - last[9])

    kinds = [kind for kind in KINDS if not direct or kind[0] in ("head", "mlp")]
    slope_of = SlopeOf(kinds, SOURCE, lambda *_: (7, 9), direct)
    found = engine(model).first_order(IDS, slope_of)
    np.testing.assert_allclose(found.before, logits_of(model)[-1], atol=NEAR)
    np.testing.assert_allclose(found.ends, logits_of(model, SOURCE.ids)[-1], atol=NEAR)
    for kind, layer in kinds:
        site = Site(kind, layer, 3 if kind == "head" else None)
        for positions in (tuple(range(len(IDS))), (4,), (6,)):
            up, down = (measured(site, positions, step) for step in (STEP, -STEP))
            exact = (up - down) / (2 * STEP)
            assert np.isclose(
                found.of(Edit(site, "source", positions)), exact, atol=OF_QUOTIENTS
            ), site


@pytest.mark.parametrize("mlps", MLPS)
@pytest.mark.parametrize("name", ["gpt2", "llama, shared keys", slow("gpt-neox, a parallel block")])
def test_the_first_order_of_a_path_to_a_part_is_its_difference_quotient(
    name: str, mlps: MlpsOnPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    architecture = deeper(name)
    model = architecture.model(torch.float64)
    receivers = [*OTHERS, *HEADS_READ]
    kinds = [kind for kind in KINDS if kind[0] in ("head", "mlp")]
    slope_of = SlopeOf(kinds, SOURCE, lambda *_: (7, 9), mlps, receivers)
    found = engine(model).first_order(IDS, slope_of)
    oracle, sizes = Oracle(architecture, model, monkeypatch), list[float]()
    clean, source = oracle._clean, oracle._source

    def measured(sender: Site, to: Receiver, step: float) -> float:
        """The difference of two logits where what is sent has moved a little to the source."""
        oracle._source = {at: own + step * (source[at] - own) for at, own in clean.items()}
        last = oracle.after(sender, to, mlps)
        return float(last[7] - last[9])

    for sender in SENDERS:
        for to in (to for to in receivers if to.follows(sender)):
            up, down = (measured(sender, to, step) for step in (STEP, -STEP))
            exact = (up - down) / (2 * STEP)
            sizes.append(abs(exact))
            assert np.isclose(found.of(Edit(sender, "source"), to), exact, atol=OF_QUOTIENTS / 10)
    assert np.median(sizes) > OF_QUOTIENTS


@pytest.mark.parametrize("mlps", MLPS)
def test_layers_that_hand_on_more_than_the_stream_are_run_as_well(
    mlps: MlpsOnPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    architecture = deeper("llama, shared keys")
    model = architecture.model(torch.float64)
    first, _, last = model.model.layers
    kept: list[Any] = [0]
    model.register_forward_pre_hook(lambda *_: kept.append(0))  # nothing stays of another run
    first.mlp.register_forward_hook(lambda *it: kept.append(it[2]))
    last.mlp.register_forward_hook(lambda *it: it[2] + kept[-1])
    receivers = [*OTHERS, *HEADS_READ]
    found = found_by(engine(model), paths_to(receivers, mlps))
    oracle = Oracle(architecture, model, monkeypatch)
    for (i, to), logits in found.items():
        theirs = oracle.after(SENDERS[i], to, mlps)
        np.testing.assert_allclose(logits, theirs, atol=NEAR, err_msg=f"{SENDERS[i]} to {to}")


def test_a_path_runs_only_the_tokens_and_layers_that_it_needs() -> None:
    model = deeper("llama, shared keys").model(torch.float64)
    tokens = [0] * LAYERS
    for number, layer in enumerate(model.model.layers):

        def count(*it: Any, number: int = number) -> None:
            tokens[number] += it[2].shape[0] * it[2].shape[1]

        layer.mlp.register_forward_hook(count)
    n, many = len(IDS), [Edit(Site("head", 1, 0), "source")] * 50

    def needed(receivers: list[Receiver]) -> list[int]:
        """The tokens of each layer that 50 senders of layer 1 take beside none."""
        tokens[:] = [0] * LAYERS
        found_by(engine(model), Paths(many[:1], receivers, SOURCE))
        one = list(tokens)
        tokens[:] = [0] * LAYERS
        engine(model).paths(IDS, Paths(many, receivers, SOURCE), lambda *_: None)
        return [a - b for a, b in zip(tokens, one, strict=True)]

    assert needed([LOGITS]) == [0, 49, 49]  # the last token alone
    assert needed([Receiver(2)]) == [0, 49 * n, 2 * 49 * n]  # what arrives there, then its effect
    assert needed([Receiver(2, 0, "q")]) == [0, 49 * n, 2 * 49 * n]


def test_an_answer_alone_has_the_slope_of_its_log_probability() -> None:
    model = deeper("gpt2").model(torch.float64)
    slope_of = SlopeOf([("residual", 2)], SOURCE, lambda *_: (7,))
    found = engine(model).first_order(IDS, slope_of).of(Edit(Site("residual", 2), "source"))
    each = [
        engine(model).first_order(IDS, replace(slope_of, measure=lambda *_, i=i: (7, i)))
        for i in range(61)
    ]
    likely = logits_of(model)[-1].softmax(dim=-1)  # ∂ log p = Σ p_i ∂(logit - logit_i)
    sums = sum(
        p * run.of(Edit(Site("residual", 2), "source")) for p, run in zip(likely, each, strict=True)
    )
    assert np.isclose(found, float(sums), atol=NEAR)


@pytest.mark.parametrize("name", KEEP_TO_THEMSELVES)
def test_queries_keys_and_values_that_a_model_keeps_to_itself_are_refused(name: str) -> None:
    model = engine(deeper(name).model())
    with pytest.raises(ModelError, match="keeps its queries, keys and values to itself"):
        found_by(model, paths_to(HEADS_READ, "recompute"))


def test_a_model_that_carries_between_tokens_beside_its_attention_is_refused() -> None:
    model = deeper("gpt2").model()
    sender = Paths([Edit(Site("head", 0, 0), "source")], [LOGITS], SOURCE)
    direct = SlopeOf([("head", 0)], SOURCE, lambda *_: (7, 9), "recompute")
    assert found_by(engine(model), sender)
    assert engine(model).first_order(IDS, direct)
    some = replace(
        engine(model), identity=replace(engine(model).identity, heads_per_layer=(4, 0, 4))
    )
    shifted = deeper("gpt2").model()
    shifted.transformer.h[1].mlp.register_forward_hook(lambda *it: it[2] + it[2].roll(1, dims=1))
    for each in (some, engine(shifted)):
        with pytest.raises(ModelError, match="carries from token to token, beside its attention"):
            found_by(each, sender)
        with pytest.raises(ModelError, match="carries from token to token, beside its attention"):
            each.first_order(IDS, direct)


@pytest.mark.parametrize("mlps", MLPS)
def test_both_engines_agree_on_paths_of_the_built_in_model(mlps: MlpsOnPaths) -> None:
    found = []
    for name in ("native", "transformers"):
        model: Any = load(Source(str(FOLDER), engine=name))  # type: ignore[arg-type]
        model.model.double()
        senders = [Site("head", *head) for head in ((0, 1), (2, 0), (2, 3), (3, 2), (4, 0))]
        senders += [Site("mlp", layer) for layer in (0, 3, 4)]
        edits = [Edit(site, "source", places) for site in senders for places in (None, (2, 6))]
        names = ["logits", "L4H0", "L2.mlp", "L3.mlp", "L1H1.v"]
        receivers = receivers_of(names, model.identity.heads_per_layer)
        paths = Paths(edits, receivers, SOURCE, mlps)
        found.append(found_by(model, paths) | found_by(model, replace(paths, receivers=[LOGITS])))
    assert found[0].keys() == found[1].keys()
    for path, logits in found[0].items():
        np.testing.assert_allclose(logits, found[1][path], atol=NEAR, err_msg=str(path))


def test_both_engines_agree_on_first_orders_also_after_other_runs() -> None:
    kinds = [(kind, layer) for kind in get_args(SiteKind) for layer in range(5)]
    for direct in CUTS:
        found = []
        for name in ("native", "transformers"):
            model: Any = load(Source(str(FOLDER), engine=name))  # type: ignore[arg-type]
            model.intervene(IDS, Interventions([()]), lambda run: None)  # in inference mode
            found.append(model.first_order(IDS, SlopeOf(kinds, SOURCE, lambda *_: (7, 9), direct)))
        assert found[0].products[LOGITS].keys() == found[1].products[LOGITS].keys()
        for at, products in found[0].products[LOGITS].items():
            np.testing.assert_allclose(
                products, found[1].products[LOGITS][at], atol=2e-4, err_msg=str(at)
            )


# A linear model: attention is uniform, norms do nothing, MLPs are matrices. Every effect is a
# product of matrices, and effects add up.


class Linear(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width, width) / 8)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight


@pytest.fixture
def linear() -> GPT:
    torch.manual_seed(1)
    sizes = {"vocab_size": 23, "n_positions": 16, "n_embd": 12, "n_layer": LAYERS, "n_head": 2}
    model: Any = GPT(GPTConfig(**sizes))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    for block in model.h:
        block.ln_1, block.ln_2, block.mlp = torch.nn.Identity(), torch.nn.Identity(), Linear(12)
        for weight in (*block.attn.w_q.parameters(), *block.attn.w_k.parameters()):
            torch.nn.init.zeros_(weight)
    model.ln_f = torch.nn.Identity()
    found: GPT = model.double().requires_grad_(False)
    return found


TEXT, OTHER = [3, 1, 4, 1, 5], SourceRun([2, 7, 1, 8, 2], range(5))
BOTH_HEADS = [Site("head", layer, head) for layer in range(LAYERS) for head in (0, 1)]


def effects(model: GPT, receivers: Sequence[Receiver], mlps: MlpsOnPaths) -> dict[Any, Any]:
    """The change of the last logits by each path."""
    found: dict[Any, Any] = {}
    before = model(torch.tensor([TEXT]))[0, -1]

    def keep(sender: int, receiver: Receiver, logits: Any) -> None:
        found[BOTH_HEADS[sender], receiver] = logits - before.float().numpy()

    edits = [Edit(site, "source") for site in BOTH_HEADS]
    paths_native(model, torch.tensor([TEXT]), Paths(edits, receivers, OTHER, mlps), keep)
    return found


def test_the_direct_path_of_a_linear_model_is_a_product_of_matrices(linear: GPT) -> None:
    found = {mlps: effects(linear, [LOGITS], mlps) for mlps in MLPS}
    model: Any = linear
    # z at the last position: the mean of all values, as attention is uniform
    streams = [model.embed(torch.tensor([ids]))[0] for ids in (TEXT, OTHER.ids)]
    for layer, block in enumerate(model.h):
        for head in (0, 1):
            own = slice(6 * head, 6 * head + 6)
            w_v, w_o = block.attn.w_v.weight[:, own], block.attn.w_o.weight[own]
            z, other = (stream.mean(dim=0) @ w_v for stream in streams)
            wrote = (other - z) @ w_o
            direct = (wrote @ model.wte.weight.T).numpy()
            site = Site("head", layer, head)
            np.testing.assert_allclose(found["freeze"][site, LOGITS], direct, atol=1e-6)
            for later in model.h[layer:]:
                wrote = wrote + wrote @ later.mlp.weight
            through = (wrote @ model.wte.weight.T).numpy()
            np.testing.assert_allclose(found["recompute"][site, LOGITS], through, atol=1e-6)
            assert np.abs(through - direct).max() > 1e-3
        streams = [block(stream[None], None)[0] for stream in streams]


@pytest.mark.parametrize("mlps", MLPS)
def test_the_paths_of_a_linear_model_add_up_to_the_whole_effect(
    linear: GPT, mlps: MlpsOnPaths
) -> None:
    # by the first part that reads the sender: the logits, the values of a head, an MLP held fixed
    values = [Receiver(site.layer, site.head, "v") for site in BOTH_HEADS]
    added = [Receiver(layer) for layer in range(LAYERS)] if mlps == "freeze" else []
    found = effects(linear, [LOGITS, *values, *added], mlps)
    for letter in ("q", "k"):  # uniform attention has no other way
        asked = effects(linear, [to._replace(letter=letter) for to in values], mlps)  # type: ignore[arg-type]
        assert max(float(np.abs(change).max()) for change in asked.values()) < 1e-6
    before = linear(torch.tensor([TEXT]))[0, -1].float().numpy()
    edits = Interventions([(Edit(site, "source"),) for site in BOTH_HEADS], source=OTHER)
    whole: dict[int, Any] = {}
    intervene_native(
        linear, torch.tensor([TEXT]), edits, lambda run: whole.update({run.index: run.last})
    )
    for i, site in enumerate(BOTH_HEADS):
        total = sum(change for (sender, _), change in found.items() if sender == site)
        np.testing.assert_allclose(total, whole[i] - before, atol=1e-5)


@pytest.mark.parametrize("direct", CUTS)
def test_the_first_order_is_the_whole_effect_in_a_linear_model(
    linear: GPT, direct: MlpsOnPaths | None
) -> None:
    kinds: list[tuple[SiteKind, int]] = [("head", layer) for layer in range(LAYERS)]
    first = slopes_native(linear, TEXT, SlopeOf(kinds, OTHER, lambda *_: (7, 9), direct))
    values = [Receiver(site.layer, site.head, "v") for site in BOTH_HEADS]
    found = effects(linear, [LOGITS, *([] if direct else values)], direct or "recompute")
    for site in BOTH_HEADS:
        change = sum(change for (sender, _), change in found.items() if sender == site)
        assert np.isclose(first.of(Edit(site, "source")), change[7] - change[9], atol=1e-5)
