"""Folders of all sorts: shown as they are, or refused by name, and nothing of theirs is run."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import attnviz
from attnviz.errors import ExitStatus, ModelError
from attnviz.models import placement
from attnviz.models.catalog import Source, load
from attnviz.models.placement import Placement
from tests.architectures import edit_config, save_over_bytes
from tests.conftest import Run

SIZES = {
    "vocab_size": 257,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "pad_token_id": 0,
}
TEXT = "abc def ghi"


def saved(folder: Path, model: str, config: str, **more: Any) -> str:
    torch.manual_seed(0)
    sizes = {name: value for name, value in {**SIZES, **more}.items() if value is not None}
    made = getattr(transformers, model)(getattr(transformers, config)(**sizes))
    return str(save_over_bytes(folder, made))


def hybrid(folder: Path) -> str:
    kinds = {"layer_types": ["conv", "full_attention"], "block_ff_dim": 40}
    return saved(folder, "Lfm2ForCausalLM", "Lfm2Config", num_key_value_heads=2, **kinds)


def t5(folder: Path) -> str:
    sizes = {"d_model": 24, "d_kv": 6, "d_ff": 40, "num_layers": 2, "num_heads": 4}
    return saved(
        folder, "T5ForConditionalGeneration", "T5Config", **sizes, decoder_start_token_id=0
    )


@pytest.mark.parametrize(
    ("model", "config", "more", "said"),
    [
        (
            "LongformerModel",
            "LongformerConfig",
            {"attention_window": 4},
            "longformer returns is not a matrix over the tokens",
        ),
        (
            "FunnelModel",
            "FunnelConfig",
            {
                **{"num_hidden_layers": None, "hidden_size": None, "num_attention_heads": None},
                **{"block_sizes": [2, 1], "d_model": 24, "n_head": 4, "d_head": 6, "d_inner": 40},
            },
            "funnel has several attentions in one layer",
        ),
        ("FNetModel", "FNetConfig", {}, "attnviz cannot find attention in fnet: it has none"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.endswith("Model") else "",
)
def test_what_cannot_be_shown_is_refused_by_name(
    run: Run, tmp_path: Path, model: str, config: str, more: dict[str, Any], said: str
) -> None:
    folder = saved(tmp_path, model, config, **more)
    ended = run("show", TEXT, "--model", folder)
    assert ended.status is ExitStatus.MODEL
    assert ended.out == ""
    assert said in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("model", "config", "more"),
    [
        ("LlamaForCausalLM", "LlamaConfig", {"is_causal": False}),
        ("RobertaPreLayerNormModel", "RobertaPreLayerNormConfig", {"max_position_embeddings": 64}),
        (
            "BartForCausalLM",
            "BartConfig",
            {
                **{"d_model": 24, "encoder_attention_heads": 4, "decoder_attention_heads": 3},
                **{"encoder_layers": 2, "decoder_layers": 1, "decoder_ffn_dim": 40},
            },
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith(tuple("BLR")) else "",
)
def test_what_configurations_say_otherwise_is_seen_at_work(
    run: Run, tmp_path: Path, model: str, config: str, more: dict[str, Any]
) -> None:
    ended = run("show", TEXT, "--model", saved(tmp_path, model, config, **more), "--verify")
    assert ended.status is ExitStatus.OK, ended.err


def test_a_text_as_long_as_the_positions_that_are_left_is_shown(run: Run, tmp_path: Path) -> None:
    """RoBERTa's positions begin behind the padding's id."""
    sizes = {"max_position_embeddings": 34, "pad_token_id": 1}
    folder = saved(tmp_path, "RobertaPreLayerNormModel", "RobertaPreLayerNormConfig", **sizes)
    assert run("show", "x" * 32, "--model", folder).status is ExitStatus.OK
    assert "the model takes at most 32" in run("show", "x" * 33, "--model", folder).err


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
def test_a_t5_folder_is_verified(run: Run, tmp_path: Path, kind: str) -> None:
    target = [] if kind == "encoder" else ["--target", "xyz"]
    ended = run("show", TEXT, "--model", t5(tmp_path), "--kind", kind, "--verify", *target)
    assert ended.status is ExitStatus.OK, ended.err
    assert "largest difference 0.0e+00" in ended.err


def test_the_code_in_a_folder_is_never_run(run: Run, tmp_path: Path) -> None:
    folder, proof = tmp_path / "evil", tmp_path / "ran"
    folder.mkdir()
    code = {"AutoConfig": "evil.EvilConfig"}
    (folder / "config.json").write_text(json.dumps({"model_type": "evil", "auto_map": code}))
    (folder / "evil.py").write_text(f"open({str(proof)!r}, 'w').write('ran')\n")
    ended = run("show", TEXT, "--model", str(folder), stdin=b"y\n")
    assert ended.status is ExitStatus.MODEL
    assert ended.out == ""
    assert not proof.exists()


def test_a_setting_of_a_wrong_type_is_named(run: Run, tmp_path: Path) -> None:
    folder = saved(tmp_path, "LlamaForCausalLM", "LlamaConfig")
    edit_config(tmp_path, num_attention_heads="four")
    ended = run("show", TEXT, "--model", folder)
    assert ended.status is ExitStatus.MODEL
    assert "'num_attention_heads' expected int, got str (value: 'four')" in ended.err


def test_a_hybrid_says_which_layers_have_no_attention(run: Run, tmp_path: Path) -> None:
    folder = hybrid(tmp_path / "model")
    ended = run("show", TEXT, "--model", folder, "--head", "all", "-f", "jsonl", "--top", "1")
    assert ended.status is ExitStatus.OK
    note = f"note: layer 0 of {folder} has no attention\n"
    assert ended.err == note
    for command in (
        ("show", TEXT, "--head", "L1H0"),
        ("heads", TEXT),
        ("ablate", TEXT),
        ("heads",),
    ):
        assert run(*command, "--model", folder).err == note
    assert run("predict", TEXT, "--model", folder, "--lines").err == note  # once for all lines
    other = str(shutil.copytree(folder, tmp_path / "other"))
    against = run("compare", TEXT, "--model", folder, "--against", other)
    assert against.err == note + note.replace(folder, other)


@pytest.mark.slow
def test_a_scan_of_a_hybrid_says_so_too(run: Run, tmp_path: Path) -> None:
    folder = hybrid(tmp_path / "model")
    (tmp_path / "corpus.txt").write_text(TEXT)
    given = (str(tmp_path / "corpus.txt"), "-m", folder, "-o", str(tmp_path / "scanned"))
    said = f"layer 0 of {folder} has no attention"
    for command in (("scan", *given), ("scan", *given), ("atlas", given[-1])):
        assert f"note: {said}\n" in run(*command).err  # of a finished scan, too
    assert attnviz.atlas(given[-1]).notes == (said,)


def test_the_models_own_weights_count_towards_what_may_be_used(tmp_path: Path) -> None:
    folder = saved(tmp_path, "LlamaForCausalLM", "LlamaConfig")
    model = load(Source(folder, placement=Placement()))
    weights = 4 * model.identity.parameters
    working = model.working_bytes(11, 11)
    from attnviz.kit.prepare import TextOptions, prepare
    from attnviz.records.heads import Head

    room = weights + working + 4 * 11 * 11
    prepare(model, TEXT, TextOptions(max_memory=room)).record([Head(0, 0)])
    with pytest.raises(ModelError, match="needs about"):
        prepare(model, TEXT, TextOptions(max_memory=room - 1)).record([Head(0, 0)])


def test_cached_files_of_a_container_are_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory.max").write_text("8000000\n")
    (tmp_path / "memory.current").write_text("7900000\n")
    (tmp_path / "memory.stat").write_text("anon 1000\ninactive_file 7000000\n")
    monkeypatch.setattr(placement, "GROUPS", tmp_path)
    assert placement.free_bytes() <= 7_100_000
    (tmp_path / "memory.max").write_text("max\n")
    assert placement.free_bytes() > 7_100_000


PROPHETNET: dict[str, Any] = {
    **dict.fromkeys(("num_hidden_layers", "num_attention_heads", "intermediate_size")),
    **dict.fromkeys(("num_encoder_layers", "num_decoder_layers"), 2),
    **dict.fromkeys(("num_encoder_attention_heads", "num_decoder_attention_heads"), 4),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 30),
    "max_position_embeddings": 20,
}
LED: dict[str, Any] = {
    **dict.fromkeys(("encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 30),
    "d_model": 24,
    "max_encoder_position_embeddings": 20,
    "max_decoder_position_embeddings": 12,
    "attention_window": 4,
}
BEHIND = {"max_position_embeddings": 20, "pad_token_id": 1}


@pytest.mark.parametrize(
    ("model", "config", "more", "context"),
    [
        ("RobertaModel", "RobertaConfig", BEHIND, 18),
        ("LukeModel", "LukeConfig", {**BEHIND, "entity_vocab_size": 5, "entity_emb_size": 8}, 18),
        ("MarkupLMModel", "MarkupLMConfig", BEHIND, 18),
        ("LiltModel", "LiltConfig", {**BEHIND, "channel_shrink_ratio": 2}, 18),
        ("LEDModel", "LEDConfig", LED, 20),
    ],
)
def test_the_longest_text_runs_and_a_longer_one_is_refused(
    run: Run, tmp_path: Path, model: str, config: str, more: dict[str, Any], context: int
) -> None:
    folder = saved(tmp_path, model, config, **more)
    pair = ["--target", "a"] if config == "LEDConfig" else []
    longest = run("show", "a" * context, "--model", folder, *pair)
    assert longest.status is ExitStatus.OK, longest.err
    longer = run("show", "a" * (context + 1), "--model", folder, *pair)
    assert longer.status is ExitStatus.INPUT
    assert f"at most {context}" in longer.err


def test_scores_that_a_module_returns_for_weights_are_refused_and_its_context_known(
    run: Run, tmp_path: Path
) -> None:
    folder = saved(tmp_path, "ProphetNetModel", "ProphetNetConfig", **PROPHETNET)
    ended = run("show", "a" * 19, "--model", folder, "--target", "a")
    assert ended.status is ExitStatus.MODEL
    assert "rows that do not sum to 1" in ended.err
    assert "at most 19" in run("show", "a" * 20, "--model", folder, "--target", "a").err


@pytest.mark.parametrize("text", ["a", "abc"])
def test_one_token_needs_no_mask(run: Run, tmp_path: Path, text: str) -> None:
    folder = saved(
        tmp_path,
        "ModernBertDecoderForCausalLM",
        "ModernBertDecoderConfig",
        **dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 0),
    )
    ended = run("show", text, "--model", folder, "--no-bos", "--verify")
    assert ended.status is ExitStatus.OK, ended.err


@pytest.mark.parametrize("family", ["UMT5", "MT5", "LongT5", "SwitchTransformers"])
def test_a_model_with_fewer_encoder_than_decoder_layers_writes(
    run: Run, tmp_path: Path, family: str
) -> None:
    sizes = {"d_model": 24, "d_kv": 6, "d_ff": 30, "num_heads": 4}
    layers = {"num_layers": 1, "num_decoder_layers": 2, "num_experts": 2}
    folder = saved(
        tmp_path, f"{family}ForConditionalGeneration", f"{family}Config", **sizes, **layers
    )
    ended = run("show", TEXT, "--model", folder, "--head", "L1H3", "-f", "json")
    assert ended.status is ExitStatus.OK, ended.err
    assert json.loads(ended.out)["model"]["heads_per_layer"] == [4, 4]


def test_a_configuration_without_a_padding_token_is_no_bug(run: Run, tmp_path: Path) -> None:
    sizes = {"hidden_size": 24, "dim_head": 6, "dim_ff": 30, "prompt_length": 2}
    folder = saved(tmp_path, "CpmAntModel", "CpmAntConfig", **sizes)
    ended = run("show", TEXT, "--model", folder)
    assert ended.status is ExitStatus.MODEL
    assert "does not attend to each of the tokens" in ended.err  # some are its own


def test_quantised_weights_are_refused_as_such(run: Run, tmp_path: Path) -> None:
    folder = saved(tmp_path, "LlamaForCausalLM", "LlamaConfig")
    edit_config(tmp_path, quantization_config={"quant_method": "gptq", "bits": 4})
    ended = run("show", TEXT, "--model", folder)
    assert ended.status is ExitStatus.MODEL
    assert "are quantised" in ended.err


def test_a_failure_of_transformers_own_is_named_as_such(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved(tmp_path, "LlamaForCausalLM", "LlamaConfig")

    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no such kernel\nand more")

    monkeypatch.setattr("transformers.models.llama.modeling_llama.LlamaMLP.forward", fails)
    ended = run("show", TEXT, "--model", folder, "--engine", "transformers")
    assert ended.status is ExitStatus.MODEL
    version = transformers.__version__
    assert f"transformers {version} itself cannot run this llama" in ended.err
    assert "(no such kernel)" in ended.err
