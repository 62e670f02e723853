"""Every intervention beside the oracle, and both engines beside each other."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor
from transformers import AutoModelForMaskedLM, GPT2LMHeadModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from attnviz.errors import ModelError
from attnviz.models.catalog import Source, load
from attnviz.models.huggingface import interventions
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.placement import BATCH_TOKENS
from attnviz.models.scratch.native import load_checkpoint
from attnviz.models.scratch.runs import intervene_native
from attnviz.records.heads import Head
from attnviz.records.interventions import (
    CutLink,
    Edit,
    Intervention,
    Interventions,
    Site,
    SourceRun,
)
from tests.architectures import engine_of
from tests.builtin import FOLDER, LAYERS
from tests.interventions import (
    ARCHITECTURES,
    CUTS,
    EDITS,
    HEADS,
    IDS,
    KEEP_TO_THEMSELVES,
    LLAMA,
    NEAR,
    SITES,
    SOURCE,
    STRONG,
    SWITCH,
    TOGETHER,
    Architecture,
    attention_without,
    followed,
    logits_of,
    oracle,
    passing,
    runs_of,
    vectors_in_source,
)


def check(
    architecture: Architecture, changes: list[Intervention], patch: pytest.MonkeyPatch
) -> None:
    model = architecture.model()
    source = vectors_in_source(architecture, model)
    found = runs_of(model, [*changes, ()])
    plain = found[-1]
    np.testing.assert_allclose(plain.last, logits_of(model)[-1], atol=NEAR)
    for index, each in enumerate(changes):
        logits = oracle(architecture, model, each, source, patch)
        np.testing.assert_allclose(found[index].last, logits[-1], atol=NEAR, err_msg=str(each))
        np.testing.assert_allclose(found[index].followed, followed(logits), atol=NEAR)
        # each intervention changes something, or nothing would be compared
        moved = max(
            np.abs(found[index].last - plain.last).max(),
            np.abs(found[index].followed - plain.followed).max(),
        )
        assert moved > 5 * NEAR, each


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_edits_are_what_hooks_on_the_modules_make(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(ARCHITECTURES[name], [*EDITS, *TOGETHER], monkeypatch)


@pytest.mark.parametrize("name", SWITCH)
def test_a_removed_link_is_one_that_attention_does_not_have(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(ARCHITECTURES[name], CUTS, monkeypatch)


def test_nothing_stays_behind_in_the_model() -> None:
    model = ARCHITECTURES["llama, shared keys"].model()
    before, functions = logits_of(model), dict(ALL_ATTENTION_FUNCTIONS)
    runs_of(model, [*EDITS, *CUTS])
    changes = Interventions([*EDITS, *CUTS], source=SOURCE)
    with pytest.raises(ZeroDivisionError), torch.inference_mode():
        engine_of(model).intervene(IDS, changes, lambda _: 1 / 0)
    assert torch.equal(logits_of(model), before)
    assert not any(m._forward_pre_hooks or m._forward_hooks for m in model.modules())
    assert dict(ALL_ATTENTION_FUNCTIONS) == functions


def test_the_mean_is_a_constant_that_the_layer_adds() -> None:
    model = ARCHITECTURES["gpt2"].model()
    found = runs_of(model, [(Edit(Site("head", 0, 1), "mean"),)])[0]
    projection, width, given = model.transformer.h[0].attn.c_proj, 32 // HEADS, list[Tensor]()
    handle = projection.register_forward_pre_hook(lambda _m, args: given.append(args[0][0]))
    logits_of(model)
    handle.remove()
    mine = slice(width, 2 * width)
    projection.bias += given[0][:, mine].mean(dim=0) @ projection.weight[mine]
    projection.weight[mine] = 0
    np.testing.assert_allclose(found.last, logits_of(model)[-1], atol=NEAR)


# The source is as long as the text here.
OTHER = [15, 6, 17, 8, 5, 9, 11]
PATCH_ALL: list[Intervention] = [(Edit(Site("residual", n), "source"),) for n in (0, 1)]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_all_of_the_stream_patched_is_the_source_and_nothing_patched_the_text(name: str) -> None:
    model = ARCHITECTURES[name].model()
    found = runs_of(model, [*PATCH_ALL, ()], source=SourceRun(OTHER, range(7)))
    for run in found[:2]:
        np.testing.assert_allclose(run.last, logits_of(model, OTHER)[-1], atol=NEAR)
    np.testing.assert_allclose(found[2].last, logits_of(model)[-1], atol=NEAR)
    from_itself: list[Intervention] = [(Edit(site, "source"),) for site in SITES.values()]
    for run in runs_of(model, from_itself, source=SourceRun(IDS, range(7))):
        np.testing.assert_allclose(run.last, logits_of(model)[-1], atol=NEAR)


@pytest.mark.parametrize("name", KEEP_TO_THEMSELVES)
def test_a_link_of_attention_that_is_kept_within_is_refused(name: str) -> None:
    with pytest.raises(ModelError, match="keeps its attention to itself: no link is cut"):
        runs_of(ARCHITECTURES[name].model(), CUTS[:1])


def tiny(config: str, **more: Any) -> Any:
    """A tiny model of an architecture, with Llama's names of sizes."""
    return Architecture(config, LLAMA | more, "", "", "").model()


HYBRID = {"layer_types": ["conv", "full_attention"], "block_ff_dim": 40, "num_key_value_heads": 2}
STREAMS = {
    **{"num_kv_shared_layers": 0, "layer_types": ["sliding_attention", "full_attention"]},
    **{"activation_sparsity_pattern": [0.0, 0.0], "head_dim": 8, "num_key_value_heads": 2},
    **{"hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 61, "laurel_rank": 4},
}
LATENT = {"kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8}
NOT_KNOWN: dict[str, tuple[Callable[[], Any], Intervention, str]] = {
    # a norm over the sum: what attention adds cannot be told from what the MLP adds
    "norms over sums": (
        lambda: tiny("Bert", is_decoder=True),
        (Edit(Site("mlp", 0), "zero"),),
        "what the MLPs of BertLMHeadModel add cannot be told apart",
    ),
    # the projections' weights are used, their modules are not called
    "a projection that is not called": (
        lambda: Architecture(
            "Bloom",
            {"vocab_size": 61, "hidden_size": 32, "n_layer": 2, "n_head": HEADS}
            | {"pretraining_tp": 2, "slow_but_exact": True},
            *("", "", ""),
            switches=False,
        ).model(),
        (Edit(Site("head", 0, 1), "zero"),),
        "Linear is not called for its output",
    ),
    # weights times values is not its output, which a sink makes smaller afterwards
    "a sink behind the weights": (
        lambda: tiny("GraniteSWA", num_key_value_heads=2),
        (CutLink(Head(0, 1), 6, 5),),
        "GraniteSWAAttention does more to a row than attnviz knows: no link is cut",
    ),
    "a layer without attention": (
        lambda: tiny("Lfm2", **HYBRID),
        (CutLink(Head(0, 1), 6, 5),),
        "layer 0 of Lfm2ForCausalLM calls no attention",
    ),
    # several streams, one for each of Gemma 3n's predictions
    "several streams": (
        lambda: tiny("Gemma3nText", **STREAMS),
        (Edit(Site("residual", 0), "zero"),),
        r"vectors of the shape \(4, 1, 7, 32\) are not those of 7 tokens",
    ),
    "what is added to several streams": (
        lambda: tiny("Gemma3nText", **STREAMS),
        (Edit(Site("mlp", 0), "zero"),),
        "what the MLPs of Gemma3nForCausalLM add cannot be told apart",
    ),
    "projections of other names": (
        lambda: tiny("DeepseekV3", **LATENT, v_head_dim=8, first_k_dense_replace=2),
        (Edit(Site("head", 0, 1), "zero"),),
        "the projections of DeepseekV3Attention are not where attnviz looks for them",
    ),
}


@pytest.mark.parametrize("name", NOT_KNOWN)
def test_an_architecture_that_is_not_known_is_refused_in_a_sentence(name: str) -> None:
    model, changes, sentence = NOT_KNOWN[name]
    with pytest.raises(ModelError, match=sentence):
        runs_of(model(), [changes])


LATENT_OR_HYBRID = {
    "projections of other names": ("DeepseekV3", LATENT | {"v_head_dim": 8}),
    "a layer without attention": ("Lfm2", HYBRID),
}


@pytest.mark.parametrize("name", LATENT_OR_HYBRID)
def test_the_stream_is_patched_whatever_the_layer_is_made_of(name: str) -> None:
    config, more = LATENT_OR_HYBRID[name]
    model = tiny(config, **more)
    for run in runs_of(model, PATCH_ALL, source=SourceRun(OTHER, range(7))):
        np.testing.assert_allclose(run.last, logits_of(model, OTHER)[-1], atol=NEAR)


def test_a_layer_that_shares_its_modules_is_changed_in_its_own_turn() -> None:
    torch.manual_seed(0)
    config = transformers.AlbertConfig(**LLAMA, embedding_size=12)
    model = AutoModelForMaskedLM.from_config(config).eval().requires_grad_(False)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    block = model.albert.encoder.albert_layer_groups[0].albert_layers[0]
    for layer in (0, 1):
        turn = -1

        def of_turn(vectors: Tensor, layer: int = layer) -> Tensor:
            nonlocal turn
            turn += 1
            changed = vectors.clone()
            if turn == layer:
                changed[0, 6, 8:16] = 0
            return changed

        found = runs_of(model, [(Edit(Site("head", layer, 1), "zero", (6,)),)])[0]
        with passing(block.attention.dense, True, of_turn):
            np.testing.assert_allclose(found.last, logits_of(model)[-1], atol=NEAR)
        assert np.abs(found.last - logits_of(model)[-1].numpy()).max() > 5 * NEAR


NEAR_HALF = 0.04
"""How near a change of the logits comes in half precision, as a share of the largest logit."""


@pytest.mark.parametrize("name", [name for name in SWITCH if "experts" not in name])
def test_changes_in_half_precision_come_near_those_in_full(name: str) -> None:
    changes = [*STRONG, *EDITS, *TOGETHER, *CUTS, ()]
    *exact, plain = runs_of(ARCHITECTURES[name].model(), changes)
    *half, plain_half = runs_of(ARCHITECTURES[name].model(torch.bfloat16), changes)
    near = NEAR_HALF * np.abs(plain.last).max()
    for index, (full, run) in enumerate(zip(exact, half, strict=True)):
        assert run.last.dtype == run.followed.dtype == np.float32
        moved = full.last - plain.last
        assert np.abs(moved - (run.last - plain_half.last)).max() <= near, changes[index]
        # a run without a strong one would not be near
        assert index >= len(STRONG) or np.abs(moved).max() > near, changes[index]


def seen_sizes(model: Any) -> list[int]:
    """The tokens of each forward pass of the model from now on."""
    sizes = list[int]()
    embedding = next(m for m in model.modules() if isinstance(m, torch.nn.Embedding))
    embedding.register_forward_hook(lambda _m, _args, out: sizes.append(out[..., 0].numel()))
    return sizes


def test_many_runs_are_batches_of_so_many_tokens_and_each_as_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = ARCHITECTURES["llama, shared keys"].model()
    few = [*EDITS, *TOGETHER, *CUTS]
    many = few * 8
    sizes = seen_sizes(model)
    found = runs_of(model, many)
    assert max(sizes) <= BATCH_TOKENS
    assert sizes[-2:] == [292 * 7, (len(many) - 292) * 7]
    alone = [runs_of(model, [changes])[0] for changes in few]
    for index, run in enumerate(found):
        np.testing.assert_allclose(run.last, alone[index % len(few)].last, atol=NEAR)
    monkeypatch.setattr(interventions, "LOGITS_AT_ONCE", 3 * 7 * 61)
    sizes.clear()
    runs_of(model, few[:7])
    assert sizes[-3:] == [21, 21, 7]


# Both engines, on GPT-2's architecture.


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The same weights in both engines."""
    folder = tmp_path_factory.mktemp("gpt2")
    model = ARCHITECTURES["gpt2"].model()
    model.config.tie_word_embeddings = True
    model.tie_weights()
    model.save_pretrained(folder)
    return GPT2LMHeadModel.from_pretrained(folder).eval(), load_checkpoint(folder).eval()


def native(model: Any, source: SourceRun = SOURCE) -> Callable[..., None]:
    def run(ids: list[int], *rest: Any, **more: Any) -> None:
        with torch.inference_mode():
            intervene_native(model, torch.tensor([list(ids)]), *rest, **more)

    return run


def test_the_native_engine_is_the_oracle_too(
    gpt2: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    architecture, (theirs, ours) = ARCHITECTURES["gpt2"], gpt2
    source = vectors_in_source(architecture, theirs)
    changes = [*EDITS, *TOGETHER, *CUTS, ()]
    for each, run in zip(changes, runs_of(None, changes, through=native(ours)), strict=True):
        logits = oracle(architecture, theirs, each, source, monkeypatch)
        np.testing.assert_allclose(run.last, logits[-1], atol=NEAR, err_msg=str(each))
        np.testing.assert_allclose(run.followed, followed(logits), atol=NEAR)


def test_links_of_a_long_text_are_removed_in_blocks_of_rows(
    gpt2: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, ours = gpt2
    ids = torch.randint(0, 61, (300,), generator=torch.Generator().manual_seed(0)).tolist()
    changes: list[Intervention] = [
        # in the second block, the third, and both sides of an edge
        (CutLink(Head(0, 1), 200, 3), CutLink(Head(0, 1), 200, 170, renormalise=True)),
        (CutLink(Head(1, 2), 299, 0, renormalise=True), CutLink(Head(1, 2), 299, 299)),
        (CutLink(Head(0, 3), 127, 127), CutLink(Head(0, 3), 128, 128)),
    ]
    sizes = list[int]()
    ours.h[0].attn.pattern.register_forward_hook(lambda _m, _a, p: sizes.append(p.size(2)))
    found = [runs_of(theirs, changes, ids), runs_of(None, changes, ids, through=native(ours))]
    assert sizes[-3:] == [128, 128, 44]
    plain = logits_of(theirs, ids)
    for index, each in enumerate(changes):
        with monkeypatch.context() as patch:
            file = transformers.models.gpt2.modeling_gpt2
            cuts = [change for change in each if isinstance(change, CutLink)]
            patch.setattr(file, "eager_attention_forward", attention_without(cuts))
            patch.setattr(theirs.config, "_attn_implementation", "eager")
            logits = logits_of(theirs, ids)
        for runs in found:
            np.testing.assert_allclose(runs[index].last, logits[-1], atol=NEAR)
            np.testing.assert_allclose(runs[index].followed, followed(logits, ids), atol=NEAR)
        # of the second, nothing but what the last position predicts
        moved = logits[-1] - plain[-1], followed(logits, ids) - followed(plain, ids)
        assert max(change.abs().max() for change in moved) > 4 * NEAR, each


@pytest.mark.parametrize("renormalise", [False, True])
def test_links_of_every_query_are_removed_many_rows_at_a_time(
    renormalise: bool, gpt2: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = gpt2[0]
    ids = torch.randint(0, 61, (300,), generator=torch.Generator().manual_seed(1)).tolist()
    cuts = [
        CutLink(Head(0, head), query, key, renormalise)
        # two heads lose the same links, one others
        for head, before in ((1, 1), (2, 1), (3, 2))
        for query in range(2, 300)
        for key in (query - before, query // 2)
    ]
    blocks, weights = list[int](), AttentionCall.weights

    def counted(call: AttentionCall, queries: Tensor, hidden: Any) -> Tensor:
        blocks.append(int(queries.max()) + 1)
        return weights(call, queries, hidden)

    with monkeypatch.context() as patch:
        patch.setattr(AttentionCall, "weights", counted)
        run = runs_of(model, [tuple(cuts)], ids)[0]
    assert blocks == [130, 258, 300]  # each of 128 queries, from the third
    plain = logits_of(model, ids)
    monkeypatch.setattr(
        transformers.models.gpt2.modeling_gpt2, "eager_attention_forward", attention_without(cuts)
    )
    monkeypatch.setattr(model.config, "_attn_implementation", "eager")
    logits = logits_of(model, ids)
    np.testing.assert_allclose(run.last, logits[-1], atol=NEAR)
    np.testing.assert_allclose(run.followed, followed(logits, ids), atol=NEAR)
    assert (followed(logits, ids) - followed(plain, ids)).abs().max() > 5 * NEAR


def test_a_row_of_which_nothing_is_left_is_zero_in_both_engines(gpt2: tuple[Any, Any]) -> None:
    whole: Intervention = tuple(CutLink(Head(0, 1), 2, key, renormalise=True) for key in range(3))
    zero: Intervention = (Edit(Site("head", 0, 1), "zero", (2,)),)
    for through, model in ((None, gpt2[0]), (native(gpt2[1]), None)):
        cut, edited = runs_of(model, [whole, zero], through=through)
        np.testing.assert_allclose(cut.followed, edited.followed, atol=NEAR)


def test_a_key_that_a_window_hides_gets_no_weight_where_no_other_is_left() -> None:
    model = ARCHITECTURES["mistral, a window"].model(torch.float16)
    model.set_attn_implementation("eager")  # its masks hold the lowest number of that type
    cut = tuple(CutLink(Head(0, 1), 6, key, renormalise=True) for key in range(3, 7))
    zero = Edit(Site("head", 0, 1), "zero", (6,))
    found, expected, plain = runs_of(model, [cut, (zero,), ()])
    np.testing.assert_array_equal(found.last, expected.last)
    assert not np.array_equal(found.last, plain.last)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_attention_that_adds_little_to_its_weighted_values_is_refused(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = transformers.models.gpt2.modeling_gpt2
    eager = file.eager_attention_forward

    def adding(*args: Any, **more: Any) -> tuple[Tensor, Tensor]:
        output, weights = eager(*args, **more)
        return output + 0.01, weights

    model = ARCHITECTURES["gpt2"].model(dtype)
    model.set_attn_implementation("eager")
    runs_of(model, CUTS)
    monkeypatch.setattr(file, "eager_attention_forward", adding)
    with pytest.raises(ModelError, match="GPT2Attention does more to a row than attnviz knows"):
        runs_of(model, CUTS)


def test_both_engines_agree_on_the_built_in_model() -> None:
    changes: list[Intervention] = [*EDITS, *TOGETHER, *CUTS, ()]
    for layer in range(LAYERS):
        changes += [(Edit(Site("residual", layer), "source", (2,)),)]
        changes += [(Edit(Site("head", layer, 3), "source"), CutLink(Head(layer, 0), 5, 1, True))]
    found = []
    for engine in ("native", "transformers"):
        model: Any = load(Source(str(FOLDER), engine=engine))  # type: ignore[arg-type]
        model.model.double()  # only the results are rounded to float32 then
        found.append(runs_of(None, changes, through=model.intervene))
    for each, ours, theirs in zip(changes, *found, strict=True):
        for one, other in ((ours.last, theirs.last), (ours.followed, theirs.followed)):
            np.testing.assert_allclose(one, other, rtol=2e-7, atol=2e-7, err_msg=str(each))
