"""The Llama family from scratch computes what transformers' eager attention does."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from attnviz.errors import ModelError
from attnviz.models.attention import attached
from attnviz.models.catalog import Source, load
from attnviz.models.folder.llama import OWN, UnknownSettingError, llama_config
from attnviz.models.scratch import llama
from attnviz.models.scratch.llama import Llama
from attnviz.models.scratch.native import NativeModel, load_llama
from attnviz.records.capture import NOTHING
from attnviz.records.interventions import Edit, Site, SiteKind, SourceRun
from attnviz.records.paths import LETTERS, LOGITS, Paths, Receiver, SlopeOf
from attnviz.records.tokens import Sampling
from tests.architectures import edit_config, save_over_bytes
from tests.conftest import Run
from tests.programs import loaded_by

SMALL: Mapping[str, Any] = {
    **{"vocab_size": 257, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128},
    **{"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0},
}
MORE: Mapping[str, Mapping[str, Any]] = {
    "mistral": {"head_dim": 12},
    "qwen3": {"head_dim": 12},
    "gemma": {"head_dim": 12},
    "gemma2": {"head_dim": 12, "query_pre_attn_scalar": 20},
    "gemma3_text": {"head_dim": 12, "query_pre_attn_scalar": 20},
    "granite": {
        **{"embedding_multiplier": 2.5, "logits_scaling": 3.0},
        **{"residual_multiplier": 0.3, "attention_multiplier": 0.4},
    },
    "phi3": {"original_max_position_embeddings": 64},
    "stablelm": {"hidden_size": 64},
}
OF_64 = {"original_max_position_embeddings": 64}
ROTATIONS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "linear": {"factor": 3.0},
    "dynamic": {"factor": 2.0},
    "yarn": {"factor": 4.0, **OF_64},
    "yarn by its own measure": {
        **{"rope_type": "yarn", "factor": 4.0, "mscale": 0.7, "mscale_all_dim": 0.4, **OF_64},
        **{"beta_fast": 16, "beta_slow": 2, "truncate": False},
    },
    "llama3": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **OF_64},
    "longrope": OF_64,
}
WINDOWS: Mapping[str, Mapping[str, Any]] = {
    "mistral": {"sliding_window": 37},
    "qwen2": {"use_sliding_window": True, "sliding_window": 37, "max_window_layers": 2},
    "qwen3": {"use_sliding_window": True, "sliding_window": 37, "max_window_layers": 1},
    "gemma2": {"sliding_window": 37},
    "gemma3_text": {"sliding_window": 37},
    "phi3": {"sliding_window": 37},
    "smollm3": {"use_sliding_window": True, "sliding_window": 37},
}


def settings_of(kind: str, rotation: str, *, window: bool) -> dict[str, Any]:
    own: dict[str, Any] = {**SMALL, **MORE.get(kind, {}), **(WINDOWS[kind] if window else {})}
    width = 4 if kind == "stablelm" else own.get("head_dim", 8)
    rope = {"rope_type": rotation, "rope_theta": 1000.0, **ROTATIONS[rotation]}
    if rotation == "longrope":
        for name, first in (("short_factor", 1.0), ("long_factor", 2.5)):
            rope[name] = [first + 0.2 * i for i in range(width // 2)]
    if kind == "gemma3_text":
        near = {"rope_type": "default", "rope_theta": 100.0}
        return {**own, "rope_parameters": {"full_attention": rope, "sliding_attention": near}}
    return {**own, "rope_parameters": rope}


def saved(folder: Path, kind: str, settings: Mapping[str, Any]) -> Any:
    """A seeded model whose attention is far from uniform, saved; transformers' own."""
    torch.manual_seed(0)
    config = transformers.CONFIG_MAPPING[kind](**settings)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for name, p in model.named_parameters():
            drawn = torch.randn_like(p)
            if p.dim() == 1:
                p.add_(0.2 * drawn)
            else:
                sharp = 1.5 if any(n in name for n in ("q_proj", "k_proj", "qkv")) else 1.0
                p.copy_(drawn * sharp / p.size(1) ** 0.5)
    save_over_bytes(folder, model.eval())
    return model


def ids_of(n: int) -> torch.Tensor:
    return torch.randint(3, 257, (1, n), generator=torch.Generator().manual_seed(n))


def own_model(folder: Path, dtype: torch.dtype = torch.float32) -> Llama:
    config = llama_config(folder)
    assert config is not None
    return load_llama(folder, config, dtype)


def rows_and_logits(model: Llama, ids: torch.Tensor, rows: int) -> tuple[Any, torch.Tensor]:
    patterns: dict[int, list[torch.Tensor]] = {}

    def keep(layer: int) -> Any:
        def hook(pattern: torch.Tensor) -> None:
            more = ids.size(1) - pattern.size(3)
            patterns.setdefault(layer, []).append(torch.nn.functional.pad(pattern, (0, more)))

        return hook

    hooks = {f"h.{layer}.attn.pattern": keep(layer) for layer in range(4)}
    with torch.inference_mode(), attached(model, hooks):
        logits = model.read_out(model.hidden(ids, rows=rows))
    return [torch.cat(patterns[layer], dim=2) for layer in range(4)], logits


CASES = [
    (kind, rotation, window)
    for kind in OWN
    for rotation in ROTATIONS
    for window in ((False, True) if rotation == "default" else (kind in WINDOWS,))
    if kind != "phi3" or rotation in ("default", "longrope")
    if kind in WINDOWS or not window
]


@pytest.mark.parametrize(("kind", "rotation", "window"), CASES)
def test_rows_and_logits_are_those_of_eager_attention(
    kind: str, rotation: str, window: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama, "UNREAD_ROWS", 64)
    theirs = saved(tmp_path, kind, settings_of(kind, rotation, window=window))
    own = own_model(tmp_path)
    sharpest = 0.0
    for n in (1, 17, 200):  # 200 is beyond the training and beyond max_position_embeddings
        ids = ids_of(n)
        with torch.inference_mode():
            told = theirs(input_ids=ids, output_attentions=True, use_cache=False)
        patterns, logits = rows_and_logits(own, ids, rows=50)
        for got, expected in zip(patterns, told.attentions, strict=True):
            torch.testing.assert_close(got, expected, atol=1e-5, rtol=0)
            sharpest = max(sharpest, float(expected[..., 1:, :].max()) if n > 1 else 0.0)
        largest = float(told.logits.abs().max())
        with torch.inference_mode():
            unread = own(ids)
        for each in (logits, unread):
            torch.testing.assert_close(each, told.logits, atol=1e-5 * largest, rtol=0)
    assert sharpest > 0.5  # uniform rows would be the same under any rotation


@pytest.mark.parametrize(
    ("kind", "rotation"),
    [
        *((kind, "default") for kind in ("llama", "gemma2", "gemma3_text", "mistral", "olmo2")),
        *(("llama", rotation) for rotation in ("yarn", "dynamic", "longrope")),
    ],
)
def test_variants_of_a_prompt_that_was_read_have_the_logits_of_transformers(
    kind: str, rotation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama, "UNREAD_ROWS", 16)
    theirs = saved(tmp_path, kind, settings_of(kind, rotation, window=kind in WINDOWS))
    prompt, other = ids_of(130)[0].tolist(), ids_of(131)[0].tolist()
    cut = [prompt[:k] + prompt[k + 9 :] for k in (60, 0, 121)]
    changed = [prompt[:k] + other[k : k + 9] + prompt[k + 9 :] for k in (90, 20, 90)]
    variants, answer = [prompt, prompt[:50], *cut, *changed], [7, 8, 6]
    model = load(Source(str(tmp_path)))
    assert isinstance(model, NativeModel)
    reader, tokens = model.having_read(prompt), [0]
    embed = Llama.embed

    def counted(self: Llama, ids: torch.Tensor, *args: Any) -> torch.Tensor:
        tokens[0] += ids.numel()
        return embed(self, ids, *args)

    monkeypatch.setattr(Llama, "embed", counted)
    told = reader.log_probabilities(variants, answer)
    for ids, own in zip(variants, told, strict=True):
        with torch.inference_mode():
            logits = theirs(input_ids=torch.tensor([[*ids, *answer[:-1]]])).logits[0, -3:].double()
        expected = logits.log_softmax(-1)[range(3), answer]
        np.testing.assert_allclose(own, expected, atol=1e-5 * float(logits.abs().max()))
    whole = sum(len(ids) + 2 for ids in variants)
    by_length = rotation in ("dynamic", "longrope")  # the keys in front change, too
    assert tokens[0] == whole if by_length else tokens[0] < 0.5 * whole


@pytest.mark.parametrize("kind", ["llama", "gemma3_text", "phi3", "olmo2"])
def test_greedy_text_from_its_cache_is_that_of_transformers(kind: str, tmp_path: Path) -> None:
    settings = settings_of(kind, "default", window=kind in WINDOWS)
    theirs = saved(tmp_path, kind, settings)
    told = theirs.generate(
        ids_of(9), max_new_tokens=60, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    loaded = load(Source(str(tmp_path)))
    assert isinstance(loaded, NativeModel)
    new: list[int] = []

    def go_on(id_: int) -> bool:
        new.append(id_)
        return True

    model = replace(loaded, ends=frozenset())
    model.generate(ids_of(9)[0].tolist(), Sampling(most=60), NOTHING, lambda _: None, go_on)
    assert new == told[0, 9:].tolist()


@pytest.mark.parametrize("kind", ["llama", "gemma2", "olmo2", "qwen3"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_as_near_to_float64_as_that_of_transformers(
    kind: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    theirs, ids = saved(tmp_path, kind, settings_of(kind, "default", window=False)), ids_of(40)
    with torch.inference_mode():
        exact = theirs.to(dtype).double()(input_ids=ids).logits
        half = theirs.to(dtype)(input_ids=ids).logits.double()
    ours = rows_and_logits(own_model(tmp_path, dtype), ids, rows=64)[1].double()
    assert (ours - exact).abs().mean() <= 1.25 * (half - exact).abs().mean()


def test_half_precision_weights_stay_so_in_memory_and_are_computed_with_in_float32(
    tmp_path: Path,
) -> None:
    saved(tmp_path, "llama", settings_of("llama", "default", window=False))
    weights = tmp_path / "model.safetensors"
    halves = {name: each.bfloat16() for name, each in load_file(weights).items()}
    save_file(halves, weights, metadata={"format": "pt"})
    own = own_model(tmp_path)
    assert {p.dtype for p in own.parameters()} == {torch.bfloat16}
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    for model in (own, own.dense()):
        logits = rows_and_logits(model, ids_of(17), rows=17)[1]
        assert logits.dtype == torch.float32
        with torch.inference_mode():
            torch.testing.assert_close(logits, theirs(input_ids=ids_of(17)).logits)


@pytest.mark.parametrize("kind", list(OWN))
def test_defaults_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    """A config.json without sizes has those of the class, whatever the class says later."""
    theirs = transformers.CONFIG_MAPPING[kind]()
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    own = llama_config(tmp_path)
    assert own is not None
    sizes = {
        "vocab_size": own.vocab_size,
        "hidden_size": own.n_embd,
        "num_hidden_layers": own.n_layer,
        "num_attention_heads": own.n_head,
        "num_key_value_heads": own.n_group,
        "intermediate_size": own.d_mlp,
        "max_position_embeddings": own.n_positions,
        "tie_word_embeddings": own.tied,
        "bos_token_id": own.bos_id,
    }
    for name, value in sizes.items():
        assert value == getattr(theirs, name), name
    epsilon = "layer_norm_eps" if kind == "stablelm" else "rms_norm_eps"
    assert own.epsilon == getattr(theirs, epsilon)
    end = theirs.eos_token_id
    assert own.ends == frozenset(() if end is None else (end,))
    whole = own.d_head == (getattr(theirs, "head_dim", None) or own.n_embd // own.n_head)
    assert whole
    rope = theirs.rope_parameters
    for layer, rotary in enumerate(own.rotary):
        names = getattr(theirs, "layer_types", None)
        of_layer = rope[names[layer]] if kind == "gemma3_text" else rope
        assert rotary is None or rotary.theta == of_layer["rope_theta"]
        window = own.windows[layer]
        slides = names is not None and names[layer] == "sliding_attention"
        if kind != "mistral":
            assert window == (theirs.sliding_window if slides else None)
    if kind == "mistral":
        assert {*own.windows} == {theirs.sliding_window}
    if kind == "smollm3":
        assert [each is not None for each in own.rotary] == [*map(bool, theirs.no_rope_layers)]


HALF = {"rope_theta": 1e4, "factor": 2.0, "partial_rotary_factor": 0.5}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rope_parameters": {"rope_type": "axial", "rope_theta": 1e4}}, "axial"),
        ({"rope_parameters": {**HALF, "rope_type": "linear"}}, "4 of 8"),
        ({"rope_parameters": {**HALF, "rope_type": "dynamic"}}, "4 of 8"),
        ({"hidden_act": "relu"}, "relu"),
        ({"experts_of_tomorrow": 4}, "experts_of_tomorrow"),
        ({"num_key_value_heads": 3}, "evenly"),
        ({"num_hidden_layers": 1.5}, "num_hidden_layers"),
        ({"rope_scaling": [1, 2]}, "rope_parameters"),
    ],
)
def test_a_setting_that_is_not_known_is_named(
    changes: Mapping[str, Any], reason: str, tmp_path: Path
) -> None:
    saved(tmp_path, "llama", settings_of("llama", "default", window=False))
    edit_config(tmp_path, **changes)
    with pytest.raises(UnknownSettingError, match=reason):
        llama_config(tmp_path)
    with pytest.raises(ModelError, match=reason):
        load(Source(str(tmp_path), engine="native"))


def test_a_folder_with_such_a_setting_runs_on_transformers_and_debug_says_why(
    tmp_path: Path,
) -> None:
    saved(tmp_path, "llama", settings_of("llama", "default", window=False))
    edit_config(tmp_path, made_by="somebody")
    assert load(Source(str(tmp_path))).identity.engine == "transformers"
    command = ["-m", "attnviz", "show", "abc", "--model", str(tmp_path), "-f", "json"]
    plain, debugged = (
        subprocess.run([sys.executable, *command, *more], capture_output=True, text=True)
        for more in ((), ("--debug",))
    )
    assert "'made_by' is no setting of llama" in debugged.stderr
    assert "made_by" not in plain.stderr
    assert plain.stdout == debugged.stdout


@pytest.mark.parametrize("kind", ["llama", "gemma3_text"])
def test_both_engines_have_one_fingerprint_and_one_number_of_parameters(
    kind: str, tmp_path: Path
) -> None:
    saved(tmp_path, kind, settings_of(kind, "default", window=False))
    own, theirs = (
        load(Source(str(tmp_path), engine=engine)).identity for engine in ("native", "transformers")
    )
    assert (own.engine, theirs.engine) == ("native", "transformers")
    for name in ("fingerprint", "parameters", "heads_per_layer", "dtype", "architecture"):
        assert getattr(own, name) == getattr(theirs, name), name


def test_it_is_shown_without_transformers_and_pytorchs_compiler(tmp_path: Path) -> None:
    saved(tmp_path, "llama", settings_of("llama", "default", window=False))
    heavy, shown = loaded_by("show", "abc def", "--model", str(tmp_path))
    assert heavy == ["torch"]
    assert "next:" in shown


@pytest.mark.parametrize("kind", ["llama", "gemma3_text", "granite", "olmo2"])
def test_what_commands_compute_is_what_they_compute_on_transformers(
    kind: str, tmp_path: Path, run: Run
) -> None:
    saved(tmp_path, kind, settings_of(kind, "default", window=kind in WINDOWS))
    text = "the cat sat on the mat and the cat sat on"
    for line in (
        *("heads", "why -H L2H1", "ablate -l 1", "predict", "show -l 2 --weighted"),
        *("show -l 3 --scores", "predict --lens"),
    ):
        command, *options = line.split()
        own, theirs = (
            run(command, text, "-m", str(tmp_path), "--engine", engine, "-f", "json", *options)
            for engine in ("native", "transformers")
        )
        assert (own.status, theirs.status) == (0, 0), (line, own.err, theirs.err)
        numbers = [list(_numbers(json.loads(each.out))) for each in (own, theirs)]
        assert len(numbers[0]) > 5, line
        np.testing.assert_allclose(*numbers, atol=2e-4, rtol=2e-4, err_msg=line)


def test_paths_and_their_estimates_after_other_runs_are_those_of_transformers(
    tmp_path: Path,
) -> None:
    saved(tmp_path, "llama", settings_of("llama", "default", window=False))
    ids, source = ids_of(9)[0].tolist(), SourceRun([*ids_of(8)[0].tolist(), 5], range(9))
    edits = [Edit(Site("head", layer, 3), "source") for layer in range(4)]
    receivers = [LOGITS, Receiver(3), *(Receiver(3, 2, letter) for letter in LETTERS)]
    kinds: list[tuple[SiteKind, int]] = [("head", layer) for layer in range(4)]
    slope_of = SlopeOf(kinds, source, lambda *_: (7, 9), "recompute", receivers)
    every = [(i, to) for i, each in enumerate(edits) for to in receivers if to.follows(each.site)]
    estimates, exact = [], []
    for engine in ("native", "transformers"):
        model = load(Source(str(tmp_path), engine=engine))  # type: ignore[arg-type]
        found: list[tuple[int, Receiver, Any]] = []
        model.paths(ids, Paths(edits, receivers, source), lambda *it, found=found: found.append(it))
        last = {(i, to): logits for i, to, logits in found}
        exact.append([last[path] for path in every])
        first = model.first_order(ids, slope_of)
        estimates.append([first.of(edits[i], to) for i, to in every])
    np.testing.assert_allclose(*estimates, atol=1e-4)
    assert np.abs(estimates[0]).min() > 1e-4
    np.testing.assert_allclose(*exact, atol=1e-4)
    assert np.ptp(exact[0], axis=0).max() > 0.1


def _numbers(value: Any) -> Any:
    if isinstance(value, Mapping):
        value = [value[name] for name in sorted(value)]
    if isinstance(value, list):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, float):
        yield value


def test_weights_that_lack_a_tensor_or_have_another_shape_are_told(tmp_path: Path) -> None:
    saved(tmp_path, "phi3", settings_of("phi3", "default", window=False))
    weights = tmp_path / "model.safetensors"
    whole = load_file(weights)
    name = "model.layers.0.self_attn.qkv_proj.weight"
    for other in (None, whole[name][:-8], torch.cat([whole[name], whole[name][:8]])):
        state = {n: t for n, t in whole.items() if n != name}
        save_file(state if other is None else {**state, name: other.contiguous()}, weights)
        with pytest.raises(ModelError, match=r"config\.json asks for"):
            load(Source(str(tmp_path)))
