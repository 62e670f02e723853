"""Vectors from files and arrays: what is taken, and one sentence for everything else."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

import attnviz
from attnviz.errors import AttnvizError, ExitStatus, InputError, UsageError
from attnviz.inputs.captures import npy_bytes
from attnviz.inputs.vectors import vector_of
from tests.conftest import Run

PROMPT = "a blue bird slept . the bird was"
VECTOR = np.linspace(-1, 1, 128, dtype=np.float32)


def header(shape: str, descr: str = "<f4") -> bytes:
    """The header of an .npy file that claims a shape."""
    told = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    told = told.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(told).to_bytes(2, "little") + told


HOSTILE = {
    "nothing": b"",
    "a text": b"a blue bird slept",
    "an archive": b"PK\x03\x04" + bytes(100),
    "a magic alone": b"\x93NUMPY\x01\x00",
    "another version": b"\x93NUMPY\x09\x00" + bytes(100),
    "a long header": b"\x93NUMPY\x01\x00\xff\xff" + b"[" * 65535,
    "a header that is code": header("__import__('os').abort()"),
    "a header without an end": b"\x93NUMPY\x01\x00\x1f\x00{'descr': '<f4', 'shape': (128, 1",
    "a shape of truths": header("(True, 128)") + VECTOR.tobytes(),
    "a shape of 10^12": header("(1000000000000,)") + VECTOR.tobytes(),
    "a shape below 0": header("(-128,)") + VECTOR.tobytes(),
    "a product of two below 0": header("(-1, -128)") + VECTOR.tobytes(),
    "a shape of 10^12 by 0": header("(1000000000000, 0)"),
    "more than it has": header("(129,)") + VECTOR.tobytes(),
    "less than it has": header("(127,)") + VECTOR.tobytes(),
    "a pickle": header("(1,)", "|O") + b"cos\nsystem\n(S'true'\ntR.",
    "a matrix": npy_bytes(np.ones((2, 128), np.float32)),
    "one number": npy_bytes(np.ones((), np.float32)),
    "no number": npy_bytes(np.ones(0, np.float32)),
    "whole numbers": header("(128,)", "<i4") + bytes(512),
    "complex numbers": header("(64,)", "<c8") + bytes(512),
    "texts": header("(128,)", "<U1") + bytes(512),
    "a record": header("(128,)", "<f4").replace(b"'<f4'", b"[('a','<f4')]") + VECTOR.tobytes(),
    "a number that is none": npy_bytes(np.where(VECTOR > 0, np.nan, VECTOR)),
    "infinity": npy_bytes(np.where(VECTOR > 0, np.inf, VECTOR)),
    "too large for float32": header("(2,)", "<f8") + np.array([1e300, 1]).tobytes(),
    "nothing but 0": npy_bytes(np.zeros(128, np.float32)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_no_vector_is_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    path.write_bytes(HOSTILE[name])
    tracemalloc.start()
    with pytest.raises(InputError, match=r"v\.npy") as caught:
        vector_of(path)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300 + len(str(path))


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", ">f4"])
@pytest.mark.parametrize("shape", [(128,), (1, 128)])
def test_a_vector_of_any_precision_is_read(
    dtype: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    np.save(tmp_path / "v.npy", VECTOR.astype(dtype).reshape(shape))
    read = vector_of(tmp_path / "v.npy")
    assert read is not None
    np.testing.assert_array_equal(read.values, VECTOR.astype(dtype).astype(np.float32))
    assert read.values.dtype == np.float32
    assert read.name == "v.npy"


GIVEN = {
    "numpy": VECTOR,
    "numpy, float64": VECTOR.astype(float),
    "torch": torch.from_numpy(VECTOR),
    "torch, bfloat16 with a gradient": torch.from_numpy(VECTOR).bfloat16().requires_grad_(),
    "a list": VECTOR.tolist(),
}


@pytest.mark.parametrize("name", GIVEN)
def test_python_takes_any_array_in_the_place_of_a_file(name: str, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", VECTOR)
    near = 1e-2 if "bfloat16" in name else 1e-6
    of_file = attnviz.ablate(PROMPT, direction=tmp_path / "v.npy", layers=2, answer="blue")
    of_array = attnviz.ablate(PROMPT, direction=GIVEN[name], layers=2, answer="blue")
    assert of_array.rows[0]["change"] == pytest.approx(of_file.rows[0]["change"], abs=near)
    answers = [
        attnviz.generate(PROMPT, add=add, strength=3, max_new_tokens=4)
        for add in (f"2:{tmp_path / 'v.npy'}", [f"2:{tmp_path / 'v.npy'}"], {2: GIVEN[name]})
    ]
    assert len({answer.text for answer in answers}) == 1


def test_what_is_no_array_of_numbers_is_refused() -> None:
    for given in ({"a": 1}, [[1], [1, 2]], [None], ["a"], object(), VECTOR.reshape(2, 64), []):
        with pytest.raises(AttnvizError, match="direction"):
            attnviz.ablate(PROMPT, direction=given)
    with pytest.raises(InputError, match="a vector has 3 numbers, and the stream of builtin 128"):
        attnviz.ablate(PROMPT, direction=[1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="a vector has 3 numbers"):
        attnviz.generate(PROMPT, add={0: [1.0, 2.0, 3.0]})
    for add in ("v.npy", "4:", ":v.npy", "L4:v.npy", {"four": VECTOR}, VECTOR, [VECTOR]):
        with pytest.raises(UsageError, match="is not LAYER:FILE"):
            attnviz.generate(PROMPT, add=add)


def test_a_file_of_another_model_is_refused_on_the_command_line(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.ones(64, np.float32))
    for asked in (
        ["generate", "--add", f"1:{tmp_path}/v.npy"],
        ["ablate", "--direction", f"{tmp_path}/v.npy"],
    ):
        ended = run(asked[0], PROMPT, *asked[1:])
        assert ended.status is ExitStatus.INPUT
        assert "v.npy has 64 numbers, and the stream of builtin 128" in ended.err
    ended = run("generate", PROMPT, "--add", "1:none.npy")
    assert ended.status is ExitStatus.INPUT
    assert "there is no file" in ended.err
