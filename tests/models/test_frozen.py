"""A run held fixed: scores and logits are sums over the parts of the model, and say why."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaConfig, LlamaForCausalLM

import attnviz.models.frozen.layer as frozen_layer
import attnviz.models.frozen.run as frozen_run
from attnviz.errors import ModelError
from attnviz.models import engine
from attnviz.models.folder.config import GPTConfig
from attnviz.models.frozen.contrast import Contrast, HeadOutput, largest_products
from attnviz.models.frozen.features import _given
from attnviz.models.frozen.last import writes
from attnviz.models.frozen.run import FrozenRun
from attnviz.models.huggingface.attention import recording
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.frozen import freeze_transformers
from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.runs import freeze_decoder
from attnviz.records.heads import Head
from attnviz.records.parts import Group, Part, Shares
from attnviz.records.why import Side
from tests.architectures import ARCHITECTURES, Architecture, N, named
from tests.commands.heads.test_retrieval import planted
from tests.conftest import slow
from tests.frozen import (
    EXPERTS,
    IN_FLOAT32,
    QUERY,
    every_head,
    frozen,
    heads_of,
    model_of,
    worst_sum,
)

READ = [a for a in ARCHITECTURES if not a.fallback and not a.image]
REFUSED = [a for a in ARCHITECTURES if a.fallback]


def small_gpt(seed: int = 0, dtype: torch.dtype = torch.float64) -> GPT:
    """A GPT with every parameter random."""
    torch.manual_seed(seed)
    model = GPT(GPTConfig(31, 16, 12, n_layer=3, n_head=2))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, mean=float(parameter.dim() == 1) * 0.3, std=0.3)
    return model.to(dtype).eval()


IDS = torch.tensor([[3, 14, 1, 5, 9, 2, 6, 5]])


def part_values(shares: Shares) -> dict[Part, float]:
    return dict(zip(shares.parts, shares.values[0].tolist(), strict=True))


# ---- exact ----


@pytest.mark.parametrize("architecture", READ, ids=lambda a: a.name)
@pytest.mark.parametrize("dtype", [slow(torch.float32), torch.float64])
def test_the_parts_add_up_to_the_score(architecture: Architecture, dtype: torch.dtype) -> None:
    if architecture.name in EXPERTS:  # which transformers runs in float32 and less
        dtype = torch.float32
    double = dtype is torch.float64
    exact = 1e-12 if double and architecture.name not in IN_FLOAT32 else 1e-5
    assert worst_sum(frozen(architecture, dtype)) <= exact


def test_a_layer_that_asks_otherwise_when_it_is_run_again_is_refused() -> None:
    """A query projection that counts its calls: its second run is no run of the first."""
    model = model_of(named("llama"))
    query, calls = model.layers[1].self_attn.q_proj, iter(range(1, 100))
    query.forward = lambda x: torch.nn.functional.linear(x, query.weight) * next(calls)
    ids = named("llama").inputs()["input_ids"]
    with pytest.raises(ModelError, match="attends in a way that is not known"):
        freeze_transformers(model, ids, heads_of(model))


def test_a_run_in_half_precision_is_not_held_fixed() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        with pytest.raises(ModelError, match="do not add up"):
            frozen(named("llama"), dtype)


@pytest.mark.parametrize("architecture", READ, ids=lambda a: a.name)
def test_the_contrast_is_what_the_weights_say(architecture: Architecture) -> None:
    """Position biases, soft caps and learned sinks are part of it, though no part wrote them."""
    sums = frozen(architecture)
    for head in every_head(sums)[:4]:
        row = sums.row(head, QUERY)
        first, second = np.argsort(-row.weights)[:2].tolist()
        expected = Contrast(sums, head, QUERY, first, None)
        said = np.log(row.weights[first]) + row.entropy
        assert expected.total + expected.added == pytest.approx(said, abs=1e-4)
        versus = Contrast(sums, head, QUERY, first, second)
        said = np.log(row.weights[first] / row.weights[second])
        assert versus.total + versus.added == pytest.approx(said, abs=1e-4)


@pytest.mark.parametrize(
    "architecture", [a for a in ARCHITECTURES if a.fallback][:3], ids=lambda a: a.name
)
def test_models_that_keep_their_attention_to_themselves_are_refused(
    architecture: Architecture,
) -> None:
    model = architecture.model()
    with pytest.raises(ModelError, match="keeps its queries, keys and values to itself"):
        freeze_transformers(model, architecture.inputs()["input_ids"], [4, 4])


@pytest.mark.parametrize("name", ["gpt2", "olmo2", "bert", "granite", "gemma2", "lfm2"])
def test_the_model_is_left_as_it_was(name: str) -> None:
    architecture = named(name)
    model, inputs = model_of(architecture), architecture.inputs()
    with torch.no_grad():
        before = model(**inputs).last_hidden_state
        sums = freeze_transformers(model, inputs["input_ids"], heads_of(model))
        Contrast(sums, every_head(sums)[-1], QUERY, 0, None).table("head", 3)
        torch.testing.assert_close(model(**inputs).last_hidden_state, before, atol=0, rtol=0)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert not any("forward" in vars(module) for module in model.modules())


def test_both_engines_give_the_same_parts() -> None:
    architecture = named("gpt2")
    model = model_of(architecture, torch.float64)
    ids = architecture.inputs()["input_ids"]
    theirs = freeze_transformers(model, ids, [4, 4])
    config = GPTConfig(61, 64, 24, n_layer=2, n_head=4)
    native = GPT(config).double().eval()
    copied = dict(native.named_parameters())
    for name, value in model.named_parameters():
        if "c_attn" in name:
            for letter, part in zip("qkv", value.chunk(3, dim=-1), strict=True):
                copied[name.replace("c_attn", f"w_{letter}")].data = part.data
        else:
            copied[name.replace("attn.c_proj", "attn.w_o")].data = value.data
    ours = freeze_decoder(native, ids)
    for sums in (theirs, ours):
        assert sums.n == N
    for head in (Head(0, 1), Head(1, 3)):
        one, other = (Contrast(sums, head, QUERY, 2, 4) for sums in (theirs, ours))
        for side in ("query_walk", "key_walk"):
            mine, them = (part_values(getattr(each, side).shares) for each in (other, one))
            assert mine == pytest.approx(them, abs=1e-9)


# ---- what a contrast is ----


def test_what_is_added_to_all_keys_scores_changes_no_part() -> None:
    """b_K adds q·b_K to every score of a row."""
    model = small_gpt()
    before = Contrast(freeze_decoder(model, IDS), Head(1, 0), 6, 2, None)
    moved = small_gpt()
    moved.h[1].attn.w_k.bias.data += 5.0
    after = Contrast(freeze_decoder(moved, IDS), Head(1, 0), 6, 2, None)
    raw = after.row.raw - before.row.raw
    assert abs(raw[0]) > 0.1
    for side in ("query_walk", "key_walk"):
        one, other = (part_values(getattr(each, side).shares) for each in (before, after))
        assert one == pytest.approx(other, abs=1e-5)  # a float32 row's weights sum to 1 so far


def test_a_norms_weight_may_as_well_stand_in_the_projection() -> None:
    model, folded = small_gpt(), small_gpt()
    block = folded.h[1]
    for name in ("w_q", "w_k", "w_v"):
        projection = getattr(block.attn, name)
        projection.bias.data += block.ln_1.bias.data @ projection.weight.data
        projection.weight.data *= block.ln_1.weight.data[:, None]
    block.ln_1.weight.data.fill_(1)
    block.ln_1.bias.data.fill_(0)
    sums = [freeze_decoder(each, IDS) for each in (model, folded)]
    one, other = (Contrast(each, Head(1, 1), 7, 3, 1) for each in sums)
    for side in ("query_walk", "key_walk"):
        mine, them = (part_values(getattr(each, side).shares) for each in (one, other))
        assert mine == pytest.approx(them, abs=1e-9)


@pytest.mark.parametrize("group", ["part", "head", "layer", "source"])
def test_sums_over_parts_have_the_same_total(group: Group) -> None:
    contrast = Contrast(freeze_decoder(small_gpt(), IDS), Head(2, 0), 7, 2, None)
    for walk in (contrast.query_walk, contrast.key_walk):
        shares = walk.shares.by(group)
        assert len(set(shares.parts)) == len(shares.parts)
        assert shares.values.sum() == pytest.approx(contrast.total, abs=1e-6)
    query_parts, key_parts, table = contrast.table(group, 3)
    assert table.sum() == pytest.approx(contrast.total, abs=1e-4)
    assert table.shape == (len(query_parts), len(key_parts))
    by_query = part_values(contrast.query_walk.shares.by(group))
    for part, row in zip(query_parts[:-1], table, strict=False):
        assert part is not None
        assert row.sum() == pytest.approx(by_query[part], abs=1e-4)


def test_a_heads_part_is_its_output_at_the_query_through_the_frozen_norm() -> None:
    """Computed by hand: A v W_O, centred, times the norm's scale and weight, W_Q, and the keys."""
    model = small_gpt()
    run = freeze_decoder(model, IDS)
    reader, head = Head(2, 1), Head(0, 1)
    contrast = Contrast(run, reader, 7, 3, 1)
    a, block = run.layers[0].attention, model.h[2]
    assert a is not None
    x = run.streams[2][7]
    scale = block.ln_1.weight.detach() / torch.sqrt(x.var(unbiased=False) + block.ln_1.eps)
    b = run.layers[2].attention
    assert b is not None
    keys = (b.k[1, 3] - b.k[1, 1]) * b.scaling
    for source in range(8):
        wrote = a.weights(torch.tensor([7]))[1, 0, source] * a.v[1, source] @ a.w_o[1]
        query = ((wrote - wrote.mean()) * scale) @ block.attn.w_q.weight[:, 6:].detach()
        got = part_values(contrast.query_walk.shares)[Part("head", 0, head.head, source)]
        assert got == pytest.approx(float(query @ keys), abs=1e-9)


# ---- circuits set by hand ----


def induction(*, swapped: bool = False) -> FrozenRun:
    """A text whose last token came before: its follower is found through the head before.

    Swapped: the query asks with the token before it, and keys answer with themselves.
    """
    model = planted()
    attn = model.h[1].attn
    attn.w_q.weight.data *= 0.001  # so that other keys have some weight, too
    if swapped:
        attn.w_q.weight.data, attn.w_k.weight.data = attn.w_k.weight.data, attn.w_q.weight.data
    ids = list(range(40, 60))
    ids += [45, 7] if swapped else [45]
    return freeze_decoder(model, torch.tensor([ids]))


def test_an_induction_circuit_goes_through_its_keys() -> None:
    sums = induction()
    row = sums.row(Head(1, 0), 20)
    assert row.weights.argmax() == 6  # what followed the earlier 45
    contrast = Contrast(sums, Head(1, 0), 20, 6, None)
    by_head = part_values(contrast.key_walk.shares.by("head"))
    assert by_head[Part("head", 0, 0)] / contrast.total >= 0.99
    assert (
        part_values(contrast.query_walk.shares.by("head"))[Part("embedding")]
        > 0.99 * contrast.total
    )
    (part, *_) = (contrast.key_walk.shares.parts[i] for i in contrast.key_walk.shares.strongest(1))
    assert part == Part("head", 0, 0, 5)  # it took the token before


def test_the_same_circuit_through_its_query_is_told_apart() -> None:
    sums = induction(swapped=True)
    contrast = Contrast(sums, Head(1, 0), 21, 5, None)
    assert sums.row(Head(1, 0), 21).weights.argmax() in (5, 20)
    by_query = part_values(contrast.query_walk.shares.by("head"))
    assert by_query[Part("head", 0, 0)] / contrast.total >= 0.99
    assert (
        part_values(contrast.key_walk.shares.by("head"))[Part("embedding")] > 0.99 * contrast.total
    )


def test_a_tree_leads_from_the_key_to_the_token_before_and_its_embedding() -> None:
    contrast = Contrast(induction(), Head(1, 0), 20, 6, None)
    (first, *_) = contrast.tree("key", 2, 1)
    assert (first.part, first.query, first.key) == (Part("head", 0, 0, 5), 6, 5)
    below, rest = first.children
    assert rest.part is None
    assert below.value + rest.value == pytest.approx(first.value)
    assert below.part == Part("embedding", source=5)
    assert below.value == pytest.approx(first.value, rel=0.01)


def test_what_a_part_is_made_of_adds_up_to_it() -> None:
    sums = freeze_decoder(small_gpt(), IDS)
    contrast = Contrast(sums, Head(2, 0), 7, 2, None)
    for walk in (contrast.query_walk, contrast.key_walk):
        values = part_values(walk.shares)
        for head, source in ((Head(1, 1), 4), (Head(0, 0), 2)):
            below, _ = sums.of_taken(walk, head, source)
            value = values[Part("head", *head, source)]
            assert below.shares.values.sum() == pytest.approx(value, abs=1e-9)
            assert all(part.layer is None or part.layer < head.layer for part in below.shares.parts)


# ---- the check ----


@pytest.mark.parametrize(
    "name", ["gpt2", "llama", "qwen3", "olmo2", "bert", "gemma2", "granite", "t5"]
)
def test_without_a_part_the_score_is_what_the_sum_predicts(name: str) -> None:
    sums = frozen(named(name), torch.float64)
    for key in (int(sums.row(Head(1, 2), QUERY).weights.argmax()),):
        contrast = Contrast(sums, Head(1, 2), QUERY, key, None)
        for side in ("query", "key"):
            walk = contrast.query_walk if side == "query" else contrast.key_walk
            shares = walk.shares.by("head")
            for i in shares.strongest(6):
                if shares.parts[i].kind == "biases":
                    continue
                without = contrast.without(side, shares.parts[i])  # type: ignore[arg-type]
                assert without.fixed == pytest.approx(without.predicted, abs=1e-6)
                assert (without.free is None) == (name == "bert")  # whose norms come after
                assert without.weight is None or 0 <= without.weight <= 1


def test_the_biases_row_of_the_table_is_that_of_their_sum() -> None:
    architecture = named("opt")
    sums = frozen(architecture, torch.float64)
    contrast = Contrast(sums, Head(1, 2), QUERY, 3, 1)
    parts, _, table = contrast.table("head", 30)
    by_query = part_values(contrast.query_walk.shares.by("head"))
    for part, row in zip(parts[:-1], table, strict=False):
        assert part is not None
        assert row.sum() == pytest.approx(by_query[part], abs=1e-5)


def test_with_norms_that_follow_the_score_is_that_of_the_model_itself() -> None:
    model = small_gpt()
    run = freeze_decoder(model, IDS)
    contrast = Contrast(run, Head(1, 0), 6, 2, 1)
    part = Part("mlp", 0)
    x = run.streams[1] - run.mlps[0]
    block = model.h[1]
    query = block.attn.w_q(block.ln_1(x)).detach()[6, :6]
    keys = block.attn.w_k(block.ln_1(run.streams[1])).detach()[:, :6]
    scores = keys @ query / 6**0.5
    without = contrast.without("query", part)
    assert without.free == pytest.approx(float(scores[2] - scores[1]), abs=1e-9)
    weight = torch.softmax(scores[:7], dim=0)[2]
    assert without.weight == pytest.approx(float(weight), abs=1e-6)


# ---- what for ----


def test_logits_are_sums_over_parts() -> None:
    model = small_gpt()
    run = freeze_decoder(model, IDS)
    with torch.no_grad():
        logits = model(IDS)[0, 7]
    assert run.output is not None
    walk = run.of_logits(7, run.output.weight[[4, 9]])
    assert walk.shares.total == pytest.approx(logits[[4, 9]].numpy(), abs=1e-9)
    assert walk.shares.values.sum(axis=1) == pytest.approx(logits[[4, 9]].numpy(), abs=1e-9)


def test_what_a_head_does_to_the_logits_is_that_of_a_hook_with_the_norm_held_fixed() -> None:
    model = small_gpt()
    run = freeze_decoder(model, IDS)
    a = run.layers[1].attention
    assert a is not None
    final = run.streams[-1][7]
    scale = model.ln_f.weight / torch.sqrt(final.var(unbiased=False) + model.ln_f.eps)
    wrote = (a.weights(torch.tensor([7]))[1, 0, :, None] * a.v[1]).sum(dim=0) @ a.w_o[1]
    logits = model.logits((wrote - wrote.mean()) * scale).detach()
    writes = HeadOutput(run, Head(1, 1), 7)
    for moved in writes.moved(4):
        expected = float(logits[moved.id] - logits.mean())
        assert moved.effect == pytest.approx(expected, abs=1e-9)
        assert sum(moved.by_source) == pytest.approx(expected, abs=1e-4)
    effects = [moved.effect for moved in writes.moved(4)]
    assert effects[0] == pytest.approx(float((logits - logits.mean()).max()))
    assert effects[4] == pytest.approx(float((logits - logits.mean()).min()))


@pytest.mark.parametrize("name", ["gpt2", "llama", "olmo2", "bert"])
def test_readers_read_what_their_own_contrast_says_of_it(name: str) -> None:
    sums, writer = frozen(named(name), torch.float64), Head(0, 1)
    readers = HeadOutput(sums, writer, QUERY).readers()
    assert {reader.head.layer for reader in readers} == {1}
    for reader in readers:
        if reader.through == "value":
            continue
        contrast = Contrast(sums, reader.head, reader.query, reader.key, None)
        assert reader.total == pytest.approx(contrast.total, abs=1e-6)
        if reader.through == "query":
            by_head = part_values(contrast.query_walk.shares.by("head"))
            assert reader.value == pytest.approx(by_head[Part("head", *writer)], abs=1e-6)


def test_a_reader_through_its_keys_reads_the_circuit_set_by_hand() -> None:
    readers = HeadOutput(induction(), Head(0, 0), 6).readers()
    (by_key,) = (reader for reader in readers if reader.through == "key")
    assert (by_key.head, by_key.query) == (Head(1, 0), 20)
    assert by_key.value / by_key.total > 0.9


def test_a_mask_of_one_row_is_that_of_every_query() -> None:
    """As LayoutLM's is."""
    model = model_of(named("bert"))
    ids = named("bert").inputs()["input_ids"]
    seen: list[AttentionCall] = []
    with recording(model, seen.append), torch.no_grad():
        model(ids)
    mask = torch.zeros(1, 1, 1, N)
    mask[..., -2:] = torch.finfo(torch.float32).min
    visible = replace(seen[0], _masks=mask).visible()
    assert visible.shape == (N, N)
    assert visible[:, :-2].all()
    assert not visible[:, -2:].any()


# ---- long texts ----


SIDES: tuple[Side, ...] = ("query", "key")
SMALL_LLAMA = {
    "vocab_size": 31,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


class Largest(TorchDispatchMode):
    """Sees how many bytes the largest tensor has that is made."""

    size = 0

    def __torch_dispatch__(
        self, function: Any, _types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, torch.Tensor):
                self.size = max(self.size, tensor.untyped_storage().nbytes())
        return made


def all_that_is_asked(sums: FrozenRun, head: Head, query: int) -> list[np.ndarray]:
    """Numbers of everything that a run held fixed is for."""
    contrast = Contrast(sums, head, query, query // 2, None)
    removed = [contrast.without(side, Part("head", 0, 1)).fixed for side in SIDES]
    tree = contrast.tree("key", 2, 2)
    written = HeadOutput(sums, Head(0, 1), query)
    assert sums.output is not None
    return [
        contrast.row.weights,
        contrast.query_walk.shares.values,
        contrast.key_walk.shares.values,
        contrast.table("head", 3)[2],
        np.array([*removed, *(node.value for node in (*tree, *tree[0].children))]),
        written.lengths,
        np.array([moved.effect for moved in written.moved(3)]),
        np.array([(each.query, each.key, each.value, each.total) for each in written.readers()]),
        np.concatenate([added for _, added in writes(sums, [3, query], [1, 2])]),
    ]


@pytest.mark.parametrize("native", [True, False])
def test_no_tensor_of_a_long_text_is_its_square(
    native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 300
    ids = torch.randint(31, (1, n), generator=torch.Generator().manual_seed(0))

    def found() -> list[np.ndarray]:
        torch.manual_seed(1)
        if native:
            model = GPT(GPTConfig(31, n, 12, n_layer=2, n_head=4)).double().eval()
            return all_that_is_asked(freeze_decoder(model, ids), Head(1, 1), n - 2)
        llama = LlamaForCausalLM(LlamaConfig(**SMALL_LLAMA)).double().eval()
        return all_that_is_asked(freeze_transformers(llama, ids, [4, 4]), Head(1, 1), n - 2)

    whole = found()
    monkeypatch.setattr(frozen_layer, "ROWS_AT_ONCE", 20 * n)
    monkeypatch.setattr(frozen_run, "AT_ONCE", 40 * n)
    monkeypatch.setattr(engine, "MOST_ROWS", 20)
    monkeypatch.setattr(engine, "LEAST_ROWS", 1)
    with Largest() as largest:
        in_rows = found()
    for one, other in zip(in_rows, whole, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    assert largest.size < 8 * n * n  # of one head, in float64


PARALLEL_OR_BEHIND = {"gpt_neox", "cohere", "olmo2"}
"""Their MLPs read the stream before attention, or no norm of the stream."""


@pytest.mark.parametrize("architecture", READ, ids=lambda a: a.name)
def test_what_an_mlp_is_given_is_known_where_a_norm_gives_it(architecture: Architecture) -> None:
    run, model = frozen(architecture, torch.float32), model_of(architecture)
    given = list[torch.Tensor]()
    mlps = [m for name, m in model.named_modules() if name.endswith((".mlp", ".feed_forward"))]
    hooks = [m.register_forward_pre_hook(lambda _, args: given.append(args[0])) for m in mlps]
    with torch.no_grad():
        model(**architecture.inputs())
    for hook in hooks:
        hook.remove()
    for layer, read in zip(run.layers, given or [None] * len(run.layers), strict=True):
        stream = run.behind_attention(run.layers.index(layer))
        norm = layer.before_mlp(stream)
        if read is not None:
            unknown = architecture.name in PARALLEL_OR_BEHIND or layer.attention is None
            assert (norm is None) == unknown
        if norm is not None and read is not None:
            assert frozen_layer.near(norm(stream[None])[0], read.reshape(stream.shape))


@torch.no_grad()
def test_the_norm_of_an_mlp_is_not_that_of_attention_which_adds_nothing() -> None:
    model, read = model_of(named("llama")), list[torch.Tensor]()
    model.layers[1].self_attn.o_proj.weight.data.zero_()
    ids = named("llama").inputs()["input_ids"]
    run = freeze_transformers(model, ids, heads_of(model))
    model.layers[1].mlp.register_forward_pre_hook(lambda _, args: read.append(args[0][0]))
    model(ids)
    norm = run.layers[1].before_mlp(run.behind_attention(1))
    assert norm is not None
    assert frozen_layer.near(norm(run.streams[1][None])[0], read[0])
    unit = run.streams[1] / run.streams[1].square().mean(dim=-1, keepdim=True).sqrt()
    given = _given(run, 1, "ln2.hook_normalized")  # an RMSNorm's, without its weight
    assert torch.allclose(given, unit, atol=1e-4)


@pytest.mark.parametrize("most", [1, 8, 500])
@pytest.mark.parametrize("spread", [0.02, 3])
def test_the_largest_products_are_those_of_all_vectors_multiplied(most: int, spread: float) -> None:
    draw = np.random.default_rng(most)
    # lengths that bound most products, or hardly any
    rows, columns = (
        directions / np.linalg.norm(directions, axis=0) * 10 ** draw.uniform(-spread, 0, count)
        for count in (1500, 1100)
        for directions in (draw.standard_normal((3, count)),)
    )
    sizes = np.abs(rows.T @ columns)
    expected = np.sort(sizes, axis=None)[::-1][:most]
    found = largest_products(rows, columns, most)
    assert len({*found}) == most
    np.testing.assert_allclose([sizes[pair] for pair in found], expected)


def test_no_product_is_large_where_all_are_0() -> None:
    assert largest_products(np.zeros((3, 4)), np.ones((3, 5)), 2) == []
