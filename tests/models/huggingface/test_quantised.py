"""Quantised weights of a folder become floating point, or are told by whom they are read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from attnviz.errors import ExitStatus
from attnviz.models.catalog import Source, load
from attnviz.models.huggingface import load as loading
from tests.architectures import save_over_bytes
from tests.conftest import Run

TEXT = "a blue dog"
SMALL: dict[str, Any] = {
    **{"vocab_size": 257, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"num_key_value_heads": 2, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None},
}
BLOCK = 128
LEVELS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
"""The numbers of four bits without their sign (OCP Microscaling Formats 1.0, table 5)."""


def quantise(folder: Path, settings: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
    """Put these tensors in the place of those in a folder, and the settings beside."""
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": settings}))


@pytest.fixture
def fp8(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**SMALL, hidden_size=128, intermediate_size=256)
    folder = save_over_bytes(tmp_path / "fp8", transformers.LlamaForCausalLM(config))
    tensors = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        if not name.endswith("_proj.weight"):
            tensors[name] = tensor
            continue
        rows, columns = (-(-size // BLOCK) for size in tensor.shape)
        scales = torch.rand(rows, columns) / 4_000 + 1e-4
        whole = scales.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
        tensors[name] = (tensor / whole[: len(tensor), : tensor.size(1)]).to(torch.float8_e4m3fn)
        tensors[f"{name}_scale_inv"] = scales
    settings = {"quant_method": "fp8", "weight_block_size": [BLOCK] * 2}
    quantise(folder, {**settings, "activation_scheme": "dynamic"}, tensors)
    return folder


def test_fp8_is_each_number_times_the_scale_of_its_block(fp8: Path, run: Run) -> None:
    held = load_file(fp8 / "model.safetensors")
    model = load(Source(str(fp8)))
    name = "model.layers.1.mlp.down_proj.weight"
    scales = held[f"{name}_scale_inv"].repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
    own = model.model.state_dict()[name]
    assert own.dtype == torch.float32
    assert torch.allclose(own, held[name].float() * scales, atol=1e-7, rtol=1e-6)
    ended = run("show", TEXT, "-m", str(fp8), "-f", "json")
    assert "is quantised (fp8); as float32 it takes" in ended.err
    assert json.loads(ended.out)["model"]["quantization"] == "fp8"


def test_mxfp4_is_each_level_times_a_power_of_two(tmp_path: Path) -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 64, "head_dim": 16, "num_local_experts": 4}
    kinds = {"num_experts_per_tok": 2, "layer_types": ["sliding_attention", "full_attention"]}
    config = transformers.GptOssConfig(**SMALL, **sizes, **kinds)
    folder = save_over_bytes(tmp_path / "mxfp4", transformers.GptOssForCausalLM(config))
    tensors = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            experts, inner, outer = tensor.shape
            blocks = torch.randint(0, 256, (experts, outer, inner // 32, 16), dtype=torch.uint8)
            tensors[f"{name}_blocks"] = blocks
            tensors[f"{name}_scales"] = torch.randint(118, 124, blocks.shape[:3]).to(torch.uint8)
        else:
            tensors[name] = tensor
    quantise(folder, {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}, tensors)
    model = load(Source(str(folder)))
    assert model.identity.quantization == "mxfp4"
    name = "model.layers.0.mlp.experts.down_proj"
    blocks, powers = (tensors[f"{name}_{each}"].numpy() for each in ("blocks", "scales"))
    nibbles = np.stack([blocks & 15, blocks >> 4], axis=-1).reshape(*blocks.shape[:3], 32)
    signed = np.where(nibbles >> 3, -1, 1) * LEVELS[nibbles & 7]
    expected = (signed * 2.0 ** (powers[..., None].astype(int) - 127)).reshape(4, 64, 64)
    own = model.model.state_dict()[name].numpy()
    assert np.array_equal(own, expected.swapaxes(1, 2))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"quant_method": "gptq"}, "quantised (gptq), but attnviz reads only floating point"),
        ({"quant_method": "awq"}, "(GPTQModel reads these)"),
        ({"load_in_4bit": True}, "(bitsandbytes reads these)"),
        ({"quant_method": "new"}, "use the model that they were made from.\n"),
    ],
)
def test_other_kinds_are_told_by_whom_they_are_read(
    fp8: Path, run: Run, settings: dict[str, Any], said: str
) -> None:
    quantise(fp8, settings, load_file(fp8 / "model.safetensors"))
    ended = run("show", TEXT, "-m", str(fp8))
    assert ended.status == ExitStatus.MODEL
    assert said in ended.err.splitlines(keepends=True)[-1]


def test_without_accelerate_fp8_says_how_to_install_it(
    fp8: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    assert "install it with: pip install accelerate" in run("show", TEXT, "-m", str(fp8)).err
