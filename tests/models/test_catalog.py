"""Which engine runs a folder, where, in what type of number and memory, and what it can do."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import GPT2LMHeadModel

import attnviz
from attnviz.errors import ExitStatus, ModelError, UsageError
from attnviz.kit.prepare import Prepared
from attnviz.kit.session import as_flag
from attnviz.models.catalog import Source, load
from attnviz.models.folder.config import check_computable, gpt2_config
from attnviz.models.loaded import Ability
from attnviz.models.placement import Placement, check_weights, size_of, written
from attnviz.records.capture import KeepEverything, PatternBlock, Wanted
from tests.architectures import edit_config, named, save_over_bytes
from tests.conftest import Run, bytes_tokenizer
from tests.ordinary.table import GPTS

TEXT = "A fluffy, blue creature?"


def as_on_the_hub(folder: Path) -> None:
    """The hub's own GPT-2 files: no `transformer.` prefix, and mask buffers among the weights."""
    state = load_file(folder / "model.safetensors")
    bare = {name.removeprefix("transformer."): tensor for name, tensor in state.items()}
    for layer in (0, 1):
        bare[f"h.{layer}.attn.bias"] = torch.ones(1, 1, 61, 61).tril()
        bare[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(bare, folder / "model.safetensors", metadata={"format": "pt"})
    edit_config(folder, n_ctx=61, architectures=["GPT2LMHeadModel"], resid_pdrop=0.1)


def patterns(source: Source, ids: list[int]) -> list[np.ndarray]:
    model = load(source)
    heads = {n: tuple(range(h)) for n, h in enumerate(model.identity.heads_per_layer)}
    keep = KeepEverything((len(ids), len(ids)))
    model.run(ids, Wanted(heads), keep)
    return [layer.weights for layer in keep.layers()]


@pytest.mark.parametrize("layout", ["saved", "hub"])
def test_a_gpt2_folder_runs_on_the_from_scratch_model_with_the_same_patterns(
    gpt2_copy: Path, layout: str
) -> None:
    if layout == "hub":
        as_on_the_hub(gpt2_copy)
    ids = list(range(40, 57))
    assert load(Source(str(gpt2_copy))).identity.engine == "native"
    ours = patterns(Source(str(gpt2_copy)), ids)
    theirs = patterns(Source(str(gpt2_copy), engine="transformers"), ids)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_next_token_probabilities_are_those_of_transformers(gpt2_copy: Path) -> None:
    as_on_the_hub(gpt2_copy)
    model = load(Source(str(gpt2_copy)))
    tokens = model.tokenizer.encode(TEXT, bos=False, special=False)
    ids = torch.tensor([[token.id for token in tokens]])
    theirs = GPT2LMHeadModel.from_pretrained(gpt2_copy).eval()
    with torch.no_grad():
        expected = theirs(ids).logits[0].softmax(-1)
        ours = model.model(ids)[0].softmax(-1)  # type: ignore[attr-defined]
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
        ({"reorder_and_upcast_attn": True}, "reorder_and_upcast_attn"),
        ({"activation_function": "relu"}, "activation_function"),
    ],
)
def test_what_the_from_scratch_model_does_not_compute_is_run_by_transformers(
    gpt2_copy: Path, changes: dict[str, Any], names: str
) -> None:
    edit_config(gpt2_copy, **changes)
    with pytest.raises(ModelError, match=names):
        load(Source(str(gpt2_copy), engine="native"))
    ids = list(range(40, 57))
    assert load(Source(str(gpt2_copy))).identity.engine == "transformers"
    theirs = GPT2LMHeadModel.from_pretrained(gpt2_copy, attn_implementation="eager").eval()
    with torch.no_grad():
        expected = theirs(torch.tensor([ids]), output_attentions=True).attentions
    for ours, eager in zip(patterns(Source(str(gpt2_copy)), ids), expected, strict=True):
        np.testing.assert_allclose(ours, eager[0], atol=1e-5)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_the_weights_of_a_folder_are_mapped_and_not_copied(gpt2_copy: Path) -> None:
    state = load(Source(str(gpt2_copy))).model.state_dict()  # type: ignore[attr-defined]
    maps = Path("/proc/self/maps").read_text().splitlines()
    spans = [
        line.split()[0].split("-")
        for line in maps
        if line.endswith(str(gpt2_copy / "model.safetensors"))
    ]
    for name, tensor in state.items():
        at = tensor.data_ptr()
        assert any(int(first, 16) <= at < int(last, 16) for first, last in spans), name


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_a_pickled_checkpoint_that_holds_only_tensors_is_loaded(
    gpt2_copy: Path, engine: Any
) -> None:
    ids = list(range(40, 57))
    expected = patterns(Source(str(gpt2_copy), engine=engine), ids)
    state = load_file(gpt2_copy / "model.safetensors")
    (gpt2_copy / "model.safetensors").unlink()
    torch.save(state, gpt2_copy / "pytorch_model.bin")
    for ours, safe in zip(
        patterns(Source(str(gpt2_copy), engine=engine), ids), expected, strict=True
    ):
        np.testing.assert_array_equal(ours, safe)


def test_the_configuration_of_the_hubs_gpt2_is_computable(tmp_path: Path) -> None:
    """As it lies on the hub, with settings of old versions in it."""
    (config,) = (row.config for row in GPTS if row.name == "gpt2")
    (tmp_path / "config.json").write_text(json.dumps(config))
    read = gpt2_config(tmp_path)
    check_computable(read, tmp_path)
    assert (read.sizes.heads_per_layer, read.sizes.n_embd) == ((12,) * 12, 768)


def test_a_model_without_attention_is_refused_by_name(tmp_path: Path) -> None:
    transformers.MambaConfig(vocab_size=257, hidden_size=16).save_pretrained(tmp_path)
    bytes_tokenizer().save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ModelError, match=r"\(mamba\) has no attention heads"):
        load(Source(str(tmp_path)))


@pytest.mark.parametrize("asked", [["--head", "L0H0"], ["--layer", "0"]])
def test_a_layer_without_attention_is_named(run: Run, tmp_path: Path, asked: list[str]) -> None:
    architecture = named("lfm2")
    config = architecture.config()
    config.vocab_size = 257
    torch.manual_seed(1)
    save_over_bytes(tmp_path, transformers.Lfm2ForCausalLM(config))
    ended = run("show", "abc", "--model", str(tmp_path), *asked)
    assert ended.status is ExitStatus.USAGE
    assert "layer 0 of this model has no attention" in ended.err
    assert run("show", "abc", "--model", str(tmp_path)).out.startswith("L1H")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_in_half_precision_weights_are_float32_and_rows_sum_to_1(
    gpt2_copy: Path, dtype: Any
) -> None:
    ids = list(range(40, 57))
    source = Source(str(gpt2_copy), placement=Placement(dtype=dtype))
    assert load(source).identity.engine == "transformers"
    assert load(source).identity.dtype == dtype
    exact = patterns(Source(str(gpt2_copy)), ids)
    for ours, whole in zip(patterns(source, ids), exact, strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours.sum(axis=2), 1, atol=1e-5)  # bfloat16 alone: 1e-2
        np.testing.assert_allclose(ours, whole, atol=0.02)
    with pytest.raises(UsageError, match="does not run in"):
        load(Source(str(gpt2_copy), engine="native", placement=Placement(dtype=dtype)))


def test_too_little_memory_is_said_before_anything_is_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Prepared, "run", lambda *_: pytest.fail("the model was run"))
    ended = run("show", TEXT, "--head", "all", "-f", "json", "--max-memory", "100KB")
    assert ended.status is ExitStatus.MODEL
    assert ended.out == ""
    assert "of memory, but 100 KB may be used" in ended.err


def test_what_would_fit_is_named_and_fits(run: Run) -> None:
    text = "the fluffy blue creature " * 60
    few = ["show", text, "--truncate", "right", "--max-memory"]
    room = f"{load(Source('builtin')).identity.parameters * 4 // 1024 + 6000}KB"
    ended = run(*few, room, "-f", "json", "--head", "all")
    assert ended.status is ExitStatus.MODEL
    assert "try --head L0H0 or -f jsonl --top 5" in ended.err
    assert run(*few, room, "-f", "json", "--head", "L0H0").status is ExitStatus.OK
    assert run(*few, room, "-f", "jsonl", "--top", "5", "--head", "all").status is ExitStatus.OK


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_a_model_that_does_not_fit_is_not_loaded(gpt2_folder: Path, engine: Any) -> None:
    source = Source(str(gpt2_folder), engine=engine, placement=Placement(max_memory=1000))
    with pytest.raises(ModelError, match="this model needs about"):
        load(source)


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("auto", 4), ("bfloat16", 2)])
def test_a_model_is_loaded_where_the_numbers_of_its_weights_just_fit(
    gpt2_folder: Path, dtype: Any, size: int
) -> None:
    with safe_open(gpt2_folder / "model.safetensors", "np") as weights:
        names = list(weights.keys())
        numbers = sum(math.prod(weights.get_slice(name).get_shape()) for name in names)
    check_weights(gpt2_folder, Placement(dtype=dtype, max_memory=numbers * size))
    with pytest.raises(ModelError, match="this model needs about"):
        check_weights(gpt2_folder, Placement(dtype=dtype, max_memory=numbers * size - 1))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--max-memory", "much"], "--max-memory 'much' is not a size"),
        (["--model", "translator", "--dtype", "float16"], "runs on the from-scratch code"),
    ],
)
def test_an_option_that_cannot_be_is_refused(run: Run, arguments: list[str], says: str) -> None:
    ended = run("show", TEXT, *arguments)
    assert ended.status is ExitStatus.USAGE
    assert says in ended.err


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device")
def test_a_device_that_is_not_there_is_said(gpt2_copy: Path) -> None:
    source = Source(str(gpt2_copy), placement=Placement(device="cuda"))
    with pytest.raises(ModelError, match="this machine has no cuda device; use device='cpu'"):
        load(source)


def test_weights_that_are_not_numbers_are_not_shown(
    run: Run, gpt2_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large model is not looked through when it is loaded, but what it computes is."""
    state = load_file(gpt2_copy / "model.safetensors")
    state["transformer.h.0.attn.c_attn.weight"][3, 5] = torch.nan
    save_file(state, gpt2_copy / "model.safetensors", metadata={"format": "pt"})
    monkeypatch.setattr("attnviz.models.weights.SEARCHED", 0)
    ended = run("show", "abc", "--model", str(gpt2_copy))
    assert ended.status is ExitStatus.MODEL
    assert "the attention of layer 0 is not a number" in ended.err


def test_sinks_are_said_and_their_rows_are_left_as_they_are(run: Run, tmp_path: Path) -> None:
    architecture = named("gpt_oss")
    config = architecture.config()
    config.vocab_size, config.pad_token_id = 257, None
    torch.manual_seed(1)
    save_over_bytes(tmp_path, transformers.GptOssForCausalLM(config))
    ended = run("show", "abc", "--model", str(tmp_path), "--head", "L0H0", "-f", "json")
    assert ended.status is ExitStatus.OK
    weights = np.array(json.loads(ended.out)["patterns"][0])
    assert (weights.sum(axis=1) < 0.95).all()
    saved = str(tmp_path / "saved.npz")
    assert run("show", "abc", "--model", str(tmp_path), "-o", saved).status is ExitStatus.OK
    assert "goes to a sink" in run("show", saved, "--head", "L0H0").out


def test_a_block_may_be_used_only_during_the_call_and_comes_in_order(gpt2_copy: Path) -> None:
    blocks: list[PatternBlock] = []
    load(Source(str(gpt2_copy))).run(list(range(50)), Wanted({0: (1,), 1: (0, 2)}), blocks.append)
    assert [block.layer for block in blocks] == sorted(block.layer for block in blocks)
    assert {block.heads for block in blocks if block.layer == 1} == {(0, 2)}


@pytest.mark.parametrize(
    ("text", "size"), [("4GB", 4 << 30), ("500M", 500 << 20), ("1.5 GiB", 3 << 29), ("77", 77)]
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert size_of(text) == size


def test_sizes_are_written_as_people_read_them() -> None:
    assert [written(n) for n in (10, 3 << 20, 5 << 28, 40 << 30)] == [
        *("1 KB", "3.0 MB", "1.2 GB", "40 GB")
    ]


NO_VALUES = (
    "--weighted is for models of one text with projections, which {} is not; leave it out, or "
    "use another model."
)


@pytest.mark.parametrize("ability", ["predict", "value_norms", "record"])
def test_the_builtin_model_can_do_all_but_write(ability: Ability) -> None:
    builtin = load(Source())
    builtin.require(ability)
    assert builtin.can(ability)
    assert not builtin.can("write")


@pytest.mark.parametrize(
    ("source", "ability", "message"),
    [
        (Source(), "write", "builtin is not an encoder-decoder; use --model translator."),
        (Source("translator"), "value_norms", NO_VALUES.format("translator")),
        (Source("embeddings"), "value_norms", NO_VALUES.format("embeddings")),
        (
            Source("embeddings"),
            "record",
            "this has no queries, keys and values; choose another model.",
        ),
    ],
)
def test_a_model_that_cannot_is_refused(source: Source, ability: Ability, message: str) -> None:
    with pytest.raises(UsageError) as error:
        load(source).require(ability)
    assert error.value.spelled(as_flag) == message


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device")
@pytest.mark.parametrize("device", ["cuda:0", torch.device("cuda", 1), "xla", "meta"])
def test_a_device_as_torch_names_it_is_looked_for(device: Any) -> None:
    with pytest.raises(ModelError, match=f"this machine has no {device} device; use device='cpu'"):
        attnviz.load_model("builtin", device=device)


@pytest.mark.parametrize("device", ["abacus", "cuda:x", "", None, 3])
def test_what_torch_calls_no_device_is_refused(device: Any) -> None:
    with pytest.raises(UsageError, match="is not a device of PyTorch; use device="):
        attnviz.load_model("builtin", device=device)


def test_the_processor_is_a_device_by_each_of_its_names() -> None:
    text, (head, *_) = "a fluffy blue creature", attnviz.capture("a b", "builtin").heads
    for device in ("cpu", "cpu:0", torch.device("cpu")):
        found = attnviz.load_model("builtin", device=device).capture(text).pattern(*head)
        assert np.array_equal(found, attnviz.capture(text).pattern(*head))


@pytest.mark.parametrize(
    ("name", "meant"),
    [("gtp2", "gpt2"), ("GPT2", "gpt2"), ("biultin", "builtin"), ("own/modle", "own/model")],
)
def test_the_name_of_a_known_model_that_is_misspelled_is_not_to_be_fetched(
    name: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnviz.models.catalog.cached_names", lambda: ["own/model"])
    with pytest.raises(ModelError, match=rf"was not fetched: .*; did you mean {meant}\?$"):
        load(Source(name, offline=True))
    with pytest.raises(ModelError, match="hf download some/other"):
        load(Source("some/other", offline=True))
