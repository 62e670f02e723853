"""A GGUF file is the model that transformers makes of it, and a damaged one is told so."""

import json
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import gguf
import numpy as np
import pytest
import torch
import transformers

import attnviz
from attnviz.errors import ExitStatus, ModelError, UsageError
from attnviz.models.catalog import Source, files_of_model, load, locate
from attnviz.models.folder import gguf as reader
from attnviz.models.folder import gguf_folder
from attnviz.models.folder.files import LINK, SHAPES, cache_folder
from attnviz.models.folder.gguf import ARCHITECTURES, read_gguf, shapes_of
from attnviz.models.scratch.native import NativeModel
from attnviz.models.weights import read_weights
from tests.conftest import Run
from tests.models.folder.gguf_files import Kind, made, tensors, write

SAMPLE = "the dog was bred to scent, chase and flush out badgers"
TEXTS = (
    *(SAMPLE, "", " ", "  two  spaces ", "a\n\nb\r\n\tc", "1234 567.8", "don't I'll we're"),
    *(
        "naïve café",
        "e\u0301",
        "猫 and 楚留香",
        "مرحبا",
        "😀 👨\u200d👩\u200d👧",
        "<|user|>hi<|end|>",
    ),
    *("<s>x</s><unk>", "\u2581\u2581a", "<0x41>", "A B C", "x" * 300),
)
TYPES: Mapping[str, Mapping[str, Any]] = {
    "llama": {},
    "mistral": {"sliding_window": 5},
    "qwen2": {"head_dim": None},
    "qwen3": {"head_dim": 128},
    "gemma": {},
    "gemma2": {"query_pre_attn_scalar": 16, "sliding_window": 5},
    "gemma3_text": {"query_pre_attn_scalar": 16, "sliding_window": 5},
    "phi3": {"head_dim": None, "pad_token_id": 0, "sliding_window": 5},
    "gpt2": {},
}
READ_BY_BOTH = ("llama", "qwen2", "qwen3", "gemma2", "gemma3_text", "phi3", "gpt2")
"""Types that transformers reads from such a file."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Any]]:
    """A file of each type, in float32, with the model that it was made of."""
    folder, held = tmp_path_factory.mktemp("gguf"), dict[str, tuple[Path, Any]]()

    def of(kind: str) -> tuple[Path, Any]:
        if kind not in held:
            model = made(kind, 640, **{k: v for k, v in TYPES[kind].items() if v is not None})
            tokenizer = (
                "llama" if kind in ("mistral", "gemma", "gemma2", "gemma3_text", "phi3") else "gpt2"
            )
            more = {"tokenizer.ggml.padding_token_id": 0} if kind == "phi3" else {}
            path = write(folder / f"{kind}.gguf", model, tokenizer=tokenizer, **more)
            held[kind] = path, model
        return held[kind]

    return of


def logits_of(path: Path, ids: torch.Tensor) -> torch.Tensor:
    model = load(Source(str(path)))
    assert isinstance(model, NativeModel)
    with torch.inference_mode():
        return model.model.read_out(model.model.hidden(ids))


@pytest.mark.parametrize("kind", TYPES)
def test_it_computes_what_the_model_it_was_made_of_does(
    files: Callable[[str], tuple[Path, Any]], kind: str
) -> None:
    path, model = files(kind)
    ids = torch.randint(3, 300, (1, 17), generator=torch.Generator().manual_seed(2))
    with torch.inference_mode():
        expected = model(ids).logits
    ours = logits_of(path, ids)
    assert torch.allclose(ours, expected, atol=1e-5 * float(expected.abs().max()), rtol=0)


@pytest.mark.parametrize("kind", READ_BY_BOTH)
def test_weights_and_tokens_are_those_that_transformers_makes_of_it(
    files: Callable[[str], tuple[Path, Any]], kind: str
) -> None:
    path, _ = files(kind)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    )
    own, expected = read_weights(locate(Source(str(path)))[0]), theirs.state_dict()
    named = {name for name in expected if name in own or not theirs.config.tie_word_embeddings}
    assert own.keys() == (named if kind != "gpt2" else expected.keys() - {"lm_head.weight"})
    for name in own:
        assert torch.equal(own[name], expected[name]), name
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    ours = load(Source(str(path))).tokenizer.backend
    # a Qwen2 normalizes texts, which transformers does not where it reads such a file
    for text in (t for t in TEXTS if kind != "qwen2" or t != "e\u0301"):
        ids = tokenizer(text)["input_ids"]
        assert ours.encode(text).ids == ids, text
        assert ours.decode(ids, skip_special_tokens=False) == tokenizer.decode(ids), text


@pytest.mark.parametrize("kind", [Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q5_0, Kind.Q4_1])
def test_quantised_weights_are_those_that_the_package_makes_of_them(
    tmp_path: Path, kind: Kind
) -> None:
    model = made("llama", 640)
    path = write(tmp_path / "model.gguf", model, kind)
    held = {t.name: t for t in gguf.GGUFReader(path).tensors}["blk.1.ffn_up.weight"]
    expected = gguf.dequantize(held.data, held.tensor_type)
    own = read_weights(locate(Source(str(path)))[0])["model.layers.1.mlp.up_proj.weight"]
    assert held.tensor_type == kind
    assert np.array_equal(own.float().numpy(), expected)
    assert own.element_size() == (2 if kind in (Kind.F16, Kind.BF16) else 4)
    assert np.abs(expected - model.model.layers[1].mlp.up_proj.weight.detach().numpy()).max() < 0.2


SCALES = {Kind.Q4_K: (0, 4), Kind.Q5_K: (0, 4), Kind.Q6_K: (208, 210), Kind.IQ4_NL: (0, 2)}
"""The bytes of a block that are its scales."""


@pytest.mark.parametrize("kind", SCALES)
def test_random_blocks_are_dequantised_as_the_package_does(tmp_path: Path, kind: Kind) -> None:
    model = made("llama", 640, hidden_size=256, intermediate_size=256)
    path = write(tmp_path / "model.gguf", model, Kind.Q8_0)
    block, width = gguf.GGML_QUANT_SIZES[kind]
    blocks = np.random.default_rng(3).integers(0, 256, (256 * 256 // block, width), np.uint8)
    first, last = SCALES[kind]
    blocks[:, first:last] = np.full((len(blocks), (last - first) // 2), 0.01, np.float16).view("u1")
    replaced = tmp_path / "random.gguf"
    copy_with(path, replaced, "blk.0.ffn_down.weight", blocks.reshape(256, -1), kind)
    own = read_weights(locate(Source(str(replaced)))[0])["model.layers.0.mlp.down_proj.weight"]
    assert np.array_equal(own.numpy(), gguf.dequantize(blocks.reshape(256, -1), kind))
    assert own.isfinite().all()
    assert own.std() > 0


def copy_with(path: Path, target: Path, name: str, data: Any, kind: Kind) -> None:
    """Copy a file with other bytes for one tensor."""
    held = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(target, "llama")
    for field in held.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            of = field.types[-1] if len(field.types) > 1 else None
            writer.add_key_value(field.name, field.contents(), field.types[0], of)
    for tensor in held.tensors:
        other = tensor.name == name
        used = kind if other else tensor.tensor_type
        writer.add_tensor(tensor.name, data if other else tensor.data, raw_dtype=used)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_llama_3_turns_its_positions_by_the_factors_in_the_file(tmp_path: Path) -> None:
    scaled = {"rope_type": "llama3", "rope_theta": 1000.0, "factor": 8.0}
    trained = {"original_max_position_embeddings": 32}
    band = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    model = made("llama", 640, rope_parameters={**scaled, **trained, **band})
    plain = 1000.0 ** (-torch.arange(0, 16, 2) / 16)
    factors = (plain / model.model.rotary_emb.inv_freq).numpy()
    path = write(tmp_path / "model.gguf", model, factors=factors)
    ids = torch.arange(3, 103)[None]
    with torch.inference_mode():
        expected = model(ids).logits
    assert factors.max() > 4
    assert torch.allclose(logits_of(path, ids), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("name", "more"), [("linear", {}), ("yarn", {"original_context_length": 32})]
)
def test_scaled_positions_are_those_of_the_file(tmp_path: Path, name: str, more: Any) -> None:
    trained = {"original_max_position_embeddings": 32} if more else {}
    rope = {"rope_type": name, "rope_theta": 1000.0, "factor": 4.0, **trained}
    model = made("llama", 640, rope_parameters=rope)
    scaling = {"type": name, "factor": 4.0, **more}
    settings = {f"ARCH.rope.scaling.{key}": value for key, value in scaling.items()}
    path = write(tmp_path / "model.gguf", model, **settings)
    ids = torch.arange(3, 63)[None]
    with torch.inference_mode():
        expected = model(ids).logits
    assert torch.allclose(logits_of(path, ids), expected, atol=1e-4, rtol=0)


# Where it is found, and what is said of it.


def test_a_capture_names_the_quantisation_and_keeps_the_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("model.gguf"), made("llama", 640), Kind.Q8_0, **{"general.file_type": 7})
    ended = run("show", SAMPLE, "-m", "model.gguf", "-o", "kept.npz")
    assert "model.gguf is quantised (Q8_0); as float32 it takes" in ended.err
    for source in (["show", SAMPLE, "-m", "model.gguf"], ["show", "kept.npz"]):
        made_by = json.loads(run(*source, "-f", "json").out)["model"]
        assert (made_by["quantization"], made_by["engine"]) == ("Q8_0", "native")
    assert "quantization" not in json.loads(run("show", "a b", "-f", "json").out)["model"]
    assert "a GGUF file, Q8_0" in run("models", "model.gguf", "-f", "csv").out


def test_it_runs_on_transformers_and_in_half_precision_too(
    files: Callable[[str], tuple[Path, Any]], run: Run
) -> None:
    path, _ = files("llama")
    for options, dtype in (
        (("--engine", "transformers"), "float32"),
        (("--dtype", "bfloat16"), "bfloat16"),
    ):
        shown = json.loads(run("show", SAMPLE, "-m", str(path), *options, "-f", "json").out)
        assert (shown["model"]["engine"], shown["model"]["dtype"]) == ("transformers", dtype)


def test_a_folder_or_a_blob_without_a_suffix_is_the_file(
    files: Callable[[str], tuple[Path, Any]], run: Run, tmp_path: Path
) -> None:
    path, _ = files("llama")
    blob = tmp_path / "blobs" / "sha256-1f2e"
    folder = tmp_path / "downloaded"
    for place in (blob, folder / "model.gguf"):
        place.parent.mkdir()
        place.symlink_to(path)
    (folder / "config.json").write_text('{"model_type": "llama"}')
    shown = [run("tokens", SAMPLE, "-m", str(p), "-f", "jsonl").out for p in (path, blob, folder)]
    assert shown[0] == shown[1] == shown[2] != ""
    (folder / "other.gguf").symlink_to(path)
    said = run("tokens", SAMPLE, "-m", str(folder)).err
    assert "holds several GGUF files: model.gguf, other.gguf; give one of them" in said


def test_the_folder_that_is_saved_is_the_model_that_transformers_reads_of_the_file(
    files: Callable[[str], tuple[Path, Any]], run: Run, tmp_path: Path
) -> None:
    path, _ = files("gemma3_text")
    ended = run("models", str(path), "--save", str(tmp_path / "new" / "folder"))
    assert (ended.status, "a context of 128 tokens" in ended.out) == (0, True)
    saved = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "new" / "folder")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name)
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(saved.state_dict()[name], tensor), name
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "new" / "folder")
    assert (
        tokenizer(SAMPLE)["input_ids"]
        == load(Source(str(path))).tokenizer.backend.encode(SAMPLE).ids
    )
    again = run("models", str(path), "--save", str(tmp_path / "new" / "folder"))
    assert (again.status, "is there already" in again.err) == (ExitStatus.USAGE, True)
    refused = run("models", "builtin", "--save", str(tmp_path / "other"))
    assert "writes the folder of a GGUF file, but builtin is none" in refused.err
    assert [each.name for each in tmp_path.iterdir()] == ["new"]


def test_what_is_kept_of_a_file_is_made_anew_when_the_file_changes(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", made("llama", 640))
    first = locate(Source(str(path)))[0]
    assert locate(Source(str(path)))[0] == first
    assert first.parent == cache_folder()
    write(path, made("llama", 700))
    assert locate(Source(str(path)))[0] != first
    assert attnviz.tokens(SAMPLE, model=path).record


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "model.gguf", made("llama", 640))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    folder = locate(Source(str(path)))[0]
    assert (folder / "tokenizer.json").is_file()
    assert locate(Source(str(path)))[0] == folder  # and it is made once


def test_without_the_package_it_is_said_how_to_install_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "model.gguf", made("llama", 640))
    monkeypatch.setattr(reader, "find_spec", lambda name: None)
    ended = run("show", SAMPLE, "-m", str(path))
    assert ended.status == ExitStatus.USAGE
    assert (
        "reading a GGUF file needs the package gguf, which is not installed; install it"
        in ended.err
    )


def test_a_folder_of_which_the_cache_lost_a_part_is_made_again(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", made("llama", 640))
    folder = locate(Source(str(path)))[0]
    for name in ("config.json", "tokenizer.json", LINK):
        (folder / name).unlink()
        assert locate(Source(str(path)))[0] == folder
        assert (folder / name).exists()


def test_a_scan_goes_on_when_the_cache_was_emptied(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", made("llama", 640))
    before = files_of_model(Source(str(path)))
    rmtree(locate(Source(str(path)))[0])
    assert files_of_model(Source(str(path))) == before
    assert [name for name, _, _ in before] == ["model.gguf"]


def test_a_strangers_folder_is_not_taken_for_one_of_the_cache(
    files: Callable[[str], tuple[Path, Any]], run: Run, tmp_path: Path
) -> None:
    own = locate(Source(str(files("llama")[0])))[0]
    evil = tmp_path / "evil"
    copytree(own, evil, symlinks=True)
    (evil / SHAPES).write_text('{"a": 5}')
    ended = run("models", str(evil))
    assert (ended.status, "bug" in ended.err) == (0, False)  # it is a folder that holds a GGUF file
    (evil / LINK).unlink()
    (evil / LINK).write_bytes(b"GGUF")
    ended = run("models", str(evil))
    assert (ended.status, "is damaged or incomplete" in ended.err) == (ExitStatus.MODEL, True)


def test_a_pipe_is_not_waited_for(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.gguf")
    for name in (tmp_path, tmp_path / "model.gguf"):
        assert run("models", str(name)).status == ExitStatus.MODEL


def test_a_name_may_be_as_long_as_a_name_can_be(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / f"{'a' * 245}.gguf", made("llama", 640))
    assert run("tokens", "a", "-m", str(path)).status == 0
    assert run("tokens", "a", "-m", str(tmp_path / ("b" * 300))).status == ExitStatus.MODEL


def test_weights_beside_a_gguf_file_are_the_model(
    files: Callable[[str], tuple[Path, Any]], run: Run, tmp_path: Path, gpt2_copy: Path
) -> None:
    for name in ("a.gguf", "b.gguf"):
        (gpt2_copy / name).symlink_to(files("llama")[0])
    assert "model.safetensors" in os.listdir(gpt2_copy)
    assert load(Source(str(gpt2_copy))).identity.architecture == "gpt2"


def test_the_stated_type_is_believed_only_as_a_name(
    files: Callable[[str], tuple[Path, Any]], run: Run, tmp_path: Path
) -> None:
    _, model = files("llama")
    for kind, stated, said in (
        (Kind.F32, 15, "F32"),
        (Kind.Q8_0, 0, "Q8_0"),
        (Kind.Q8_0, [1, 2], "Q8_0"),
        (Kind.Q8_0, 7, "Q8_0"),
    ):
        path = write(tmp_path / "model.gguf", model, kind, **{"general.file_type": stated})
        row = json.loads(run("models", str(path), "-f", "jsonl").out)
        assert row["where"] == f"a GGUF file, {said}"


def test_pieces_that_go_together_in_too_many_ways_are_refused_early() -> None:
    tokens = [f"{'a' * i}{'b' * j}" for i in range(60) for j in range(60 - i)]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    with pytest.raises(ValueError, match="in too many ways"):
        list(gguf_folder._merges(vocabulary, [0.0] * len(tokens)))


def test_a_file_of_the_hub_is_named_after_a_colon(
    files: Callable[[str], tuple[Path, Any]],
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = tmp_path / "snapshots" / "x" / "models--org--m" / "snapshots" / ("c" * 40) / "model.gguf"
    kept.parent.mkdir(parents=True)
    kept.symlink_to(files("llama")[0])

    def found(repository: str, name: str, **more: Any) -> str:
        assert (repository, name) == ("org/m", "model.gguf")
        return str(kept)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", found)
    shown = json.loads(run("show", SAMPLE, "-m", "org/m:model.gguf", "-f", "json").out)
    assert (shown["model"]["revision"], shown["model"]["name"]) == ("c" * 40, "org/m:model.gguf")
    for command in (("params", "org/m:model.gguf"), ("models", "org/m:model.gguf")):
        assert run(*command).status == 0
    damaged = tmp_path / "bad.gguf"
    damaged.write_bytes(b"GGUF")
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *name, **more: str(damaged))
    assert "is damaged or incomplete" in run("show", SAMPLE, "-m", "org/m:bad.gguf").err


# Damaged files.

START = struct.Struct("<4sIQQ")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "model.gguf"
    return write(path, made("llama", 640, hidden_size=32, intermediate_size=32)).read_bytes()


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _setting(name: str, kind: int, content: bytes) -> bytes:
    return _text(name) + struct.pack("<I", kind) + content


ARCHITECTURE = _setting("general.architecture", 8, _text("llama"))


def _made_of(settings: list[bytes], tensors: list[bytes], more: bytes = bytes(4096)) -> bytes:
    head = START.pack(b"GGUF", 3, len(tensors), len(settings))
    return head + b"".join(settings) + b"".join(tensors) + more


def _axes(*sizes: int, kind: int = 0, place: int = 0) -> list[bytes]:
    """A tensor of these sizes."""
    form = f"<I{len(sizes)}QIQ"
    return [_text("token_embd.weight") + struct.pack(form, len(sizes), *sizes, kind, place)]


def _list(of: int, length: int) -> bytes:
    return _setting("a", 9, struct.pack("<IQ", of, length))


def _damaged() -> Iterator[tuple[str, bytes]]:
    """Headers that are wrong in one place."""
    most, tensor = (1 << 64) - 1, _axes(32, 4)
    yield "only its first bytes", b"GGUF"
    yield "another version", START.pack(b"GGUF", 1, 1, 1) + bytes(64)
    yield "the other order of bytes", START.pack(b"GGUF", 3 << 24, 1, 1) + bytes(64)
    yield "no tensors", _made_of([ARCHITECTURE], [])
    yield "a million tensors", START.pack(b"GGUF", 3, 1 << 20, 1) + ARCHITECTURE + bytes(64)
    yield "all tensors there can be", START.pack(b"GGUF", 3, most, 1) + ARCHITECTURE
    yield "all settings there can be", START.pack(b"GGUF", 3, 1, most) + ARCHITECTURE
    yield "no architecture", _made_of([], tensor)
    number = _setting("general.architecture", 4, bytes(4))
    yield "an architecture that is a number", _made_of([number], tensor)
    bytes_alone = _setting("general.architecture", 8, struct.pack("<Q", 2) + b"\xff\xfe")
    yield "a text that is no text", _made_of([bytes_alone], tensor)
    wrong = {f"a setting of the type {k}": _setting("a", k, bytes(8)) for k in (13, 99, 1 << 31)}
    for length in (1 << 21, 1 << 40, most):
        wrong[f"a text of {length} bytes"] = _setting("a", 8, struct.pack("<Q", length))
        wrong[f"a list of {length} texts"] = _list(8, length)
        wrong[f"a list of {length} numbers"] = _list(10, length)
    wrong["a list of lists"] = _setting("a", 9, struct.pack("<IQ", 9, 1) * 100)
    wrong["a setting twice"] = ARCHITECTURE
    for alignment in (0, 7, 1 << 31):
        own = _setting("general.alignment", 4, struct.pack("<I", alignment))
        wrong[f"an alignment of {alignment}"] = own
    wrong["an alignment that is a text"] = _setting("general.alignment", 8, _text("a"))
    for what, setting in wrong.items():
        yield what, _made_of([ARCHITECTURE, setting], tensor)
    tensors = {
        "a tensor twice": [*tensor, *tensor],
        "a tensor over another": [*tensor, tensor[0].replace(b"embd", b"embe")],
        "no axes": _axes(),
        "a thousand axes": _axes(*[1] * 1000),
        "an axis of no length": _axes(0, 32),
        "a place behind the end": _axes(32, 4, place=1 << 40),
        "a place between two numbers": _axes(32, 4, place=3),
        "rows that are no whole blocks": _axes(33, 4, kind=8),
        **{f"the sizes {s}": _axes(*s) for s in ((1 << 40, 1), (1 << 63, 1 << 63), (32, 9999))},
        **{f"numbers of the kind {kind}": _axes(32, 4, kind=kind) for kind in (4, 5, 77)},
        "neither settings nor tokens": tensor,
    }
    for what, own_tensors in tensors.items():
        yield what, _made_of([ARCHITECTURE], own_tensors)


DAMAGED = dict(_damaged())


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_header_is_told_so(tmp_path: Path, run: Run, what: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(DAMAGED[what])
    ended = run("tokens", SAMPLE, "-m", str(path))
    assert (ended.status, ended.err.count("\n")) == (ExitStatus.MODEL, 1)
    assert "model.gguf' is damaged or incomplete (" in ended.err
    assert ended.out == ""


def test_a_file_that_ends_early_is_told_so(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    for share in range(1, 20):
        path.write_bytes(whole[: len(whole) * share // 20])
        with pytest.raises(ModelError, match="damaged or incomplete"):
            load(Source(str(path)))


def test_numbers_changed_in_its_header_end_in_a_sentence_or_in_a_model(
    whole: bytes, tmp_path: Path
) -> None:
    path, drawn = tmp_path / "model.gguf", np.random.default_rng(4)
    for _ in range(60):
        changed = bytearray(whole)
        for at in drawn.integers(0, 9_000, 3):
            changed[at] = drawn.integers(0, 256)
        path.write_bytes(changed)
        try:
            load(Source(str(path)))
        except (ModelError, UsageError):
            continue


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"general.architecture": "falcon"}, "reads the GGUF files of llama, qwen2"),
        ({"split.count": 3}, "is one of several files; join them"),
        ({"tokenizer.ggml.model": "bert"}, "of a kind that attnviz does not read: bert"),
        ({"tokenizer.ggml.pre": "superb"}, "in a way that attnviz does not know: superb"),
        ({"llama.attention.value_length": 8}, "damaged or incomplete"),
        ({"llama.block_count": 0.5}, "config.json"),
        ({"llama.attention.head_count": 5, "llama.attention.head_count_kv": 5}, "config.json"),
        ({"llama.attention.head_count": "four"}, "damaged or incomplete"),
    ],
)
def test_what_attnviz_does_not_read_is_named(
    files: Callable[[str], tuple[Path, Any]], run: Run, tmp_path: Path, settings: Any, said: str
) -> None:
    path = write(tmp_path / "model.gguf", files("llama")[1], **settings)
    ended = run("show", SAMPLE, "-m", str(path))
    assert (ended.status, ended.err.count("\n")) == (ExitStatus.MODEL, 1)
    assert said in ended.err


def test_a_tensor_that_the_architecture_does_not_have_is_named(
    files: Callable[[str], tuple[Path, Any]], run: Run, tmp_path: Path
) -> None:
    path, own = files("llama")[0], b"blk.0.ffn_gate.weight"
    other = tmp_path / "model.gguf"
    other.write_bytes(path.read_bytes().replace(own, b"blk.0.ffn_gate_exp.we"))
    assert "which attnviz does not know of llama" in run("show", SAMPLE, "-m", str(other)).err


def test_shapes_are_those_of_the_model(files: Callable[[str], tuple[Path, Any]]) -> None:
    for kind in ("llama", "gpt2"):
        path, model = files(kind)
        held = {name: tuple(t.shape) for name, t in model.state_dict().items()}
        shapes = shapes_of(read_gguf(path))
        assert {name: held[name] for name in shapes} == shapes
        assert set(tensors(model, kind)) == set(read_gguf(path).tensors)
    assert len(ARCHITECTURES) == len(TYPES) - 1
