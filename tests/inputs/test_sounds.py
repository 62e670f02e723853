"""Sound files, ordinary and hostile: what comes out is one channel of samples from -1 to 1."""

import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from attnviz.errors import InputError, UsageError
from attnviz.inputs.sounds import LONGEST, read_sound, sound_of
from attnviz.records.speech import resampled

TONE = 0.5 * np.sin(2 * np.pi * 440 * np.arange(8_000) / 8_000)
"""A second at 8,000 samples."""


def chunk(name: bytes, content: bytes, size: int | None = None) -> bytes:
    return name + struct.pack("<I", len(content) if size is None else size) + content


def form(code: int, bits: int, channels: int = 1, rate: int = 8_000, tail: bytes = b"") -> bytes:
    block = channels * bits // 8
    return chunk(
        b"fmt ", struct.pack("<HHIIHH", code, channels, rate, rate * block, block, bits) + tail
    )


def wav(path: Path, *chunks: bytes, magic: bytes = b"RIFF", size: int | None = None) -> Path:
    """A WAV file of these chunks, written by hand."""
    body = b"WAVE" + b"".join(chunks)
    path.write_bytes(chunk(magic, body, size))
    return path


def samples(bits: int, code: int = 1, tone: NDArray[Any] = TONE) -> bytes:
    """The samples of a tone in a form."""
    if code == 3:
        return tone.astype(f"<f{bits // 8}").tobytes()
    whole = np.round(tone * (2 ** (bits - 1) - 1)).astype(np.int64)
    if bits == 8:
        return (whole + 128).astype(np.uint8).tobytes()
    return b"".join(int(each).to_bytes(bits // 8, "little", signed=True) for each in whole)


@pytest.mark.parametrize(
    ("code", "bits"), [(1, 8), (1, 16), (1, 24), (1, 32), (3, 32), (3, 64)], ids=str
)
def test_every_form_of_samples_is_read(tmp_path: Path, code: int, bits: int) -> None:
    path = wav(tmp_path / "a.wav", form(code, bits), chunk(b"data", samples(bits, code)))
    raw = read_sound(path)
    assert (raw.rate, raw.seconds, raw.changes) == (8_000, 1.0, ())
    assert np.abs(raw.samples - TONE).max() <= (0.01 if bits == 8 else 1e-4)


def test_an_extensible_form_names_its_own(tmp_path: Path) -> None:
    tail = struct.pack("<HHIH", 22, 32, 4, 3) + b"\x00" * 14
    raw = read_sound(
        wav(tmp_path / "a.wav", form(0xFFFE, 32, tail=tail), chunk(b"data", samples(32, 3)))
    )
    assert np.abs(raw.samples - TONE).max() < 1e-6


def test_channels_are_mixed_and_said(tmp_path: Path) -> None:
    both = np.stack([TONE, np.zeros_like(TONE)], axis=1).reshape(-1)
    raw = read_sound(
        wav(tmp_path / "a.wav", form(1, 16, 2), chunk(b"data", samples(16, tone=both)))
    )
    assert np.abs(raw.samples - TONE / 2).max() < 1e-4
    assert raw.changes == ("2 channels mixed",)


def test_other_chunks_are_passed_over_also_odd_ones(tmp_path: Path) -> None:
    odd = chunk(b"LIST", b"abc") + b"\x00"
    path = wav(tmp_path / "a.wav", odd, form(1, 16), odd, chunk(b"data", samples(16)), odd)
    assert len(read_sound(path).samples) == 8_000


def test_a_header_of_endless_chunks_is_not_read_to_its_end(tmp_path: Path) -> None:
    many = chunk(b"LIST", b"") * 2_000
    path = wav(tmp_path / "a.wav", form(1, 16), many, chunk(b"data", samples(16)))
    with pytest.raises(InputError, match="has no samples"):
        read_sound(path)


def test_a_sound_begins_where_it_is_asked_to(tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", form(1, 16), chunk(b"data", samples(16)))
    raw = read_sound(path, 0.25)
    assert np.abs(raw.samples - TONE[2_000:]).max() < 1e-4
    assert (raw.begin, raw.seconds) == (0.25, 1.0)
    with pytest.raises(InputError, match=r"ends after 1\.00 s"):
        read_sound(path, 1.5)


def test_a_sound_of_hours_is_read_in_part(tmp_path: Path) -> None:
    path = wav(tmp_path / "a.wav", form(1, 8), chunk(b"data", samples(8), 3 * 3_600 * 8_000))
    with path.open("r+b") as file:  # a hole, which takes no room
        file.truncate(44 + 3 * 3_600 * 8_000)
    raw = read_sound(path)
    assert raw.seconds == pytest.approx(3 * 3_600)
    assert len(raw.samples) == LONGEST * 8_000


@pytest.mark.parametrize("magic", [b"RIFF", b"RF64"])
def test_a_header_that_promises_gigabytes_is_not_believed(tmp_path: Path, magic: bytes) -> None:
    data = chunk(b"data", samples(16), 0xFFFF_FFF0)
    raw = read_sound(wav(tmp_path / "a.wav", form(1, 16), data, magic=magic, size=0xFFFF_FFFF))
    assert len(raw.samples) == 8_000
    assert raw.changes == ("cut short: its header promises more",)


BAD = {
    "no such file": (None, "does not exist"),
    "nothing": (b"", "not a sound that attnviz reads"),
    "only a name": (b"RIFF", "has no samples"),
    "no WAVE": (chunk(b"RIFF", b"AVI "), "has no samples"),
    "no form": (chunk(b"RIFF", b"WAVE" + chunk(b"data", samples(16))), "has no samples"),
    "half a form": (chunk(b"RIFF", b"WAVE" + chunk(b"fmt ", b"\x01\x00")), "has no format"),
    "no samples": (chunk(b"RIFF", b"WAVE" + form(1, 16) + chunk(b"data", b"")), "has no samples"),
    "a text": (b"hello, this is not a sound", "not a sound that attnviz reads"),
    "A-law": (chunk(b"RIFF", b"WAVE" + form(6, 8) + chunk(b"data", b"abc")), "the format 6"),
    "12 bits": (chunk(b"RIFF", b"WAVE" + form(1, 12) + chunk(b"data", b"abc")), "12 bits"),
    "no channel": (chunk(b"RIFF", b"WAVE" + form(1, 16, 0) + chunk(b"data", b"ab")), "0 channels"),
    "a rate of 1": (chunk(b"RIFF", b"WAVE" + form(1, 16, 1, 1)), "1 samples per second"),
    "silence": (chunk(b"RIFF", b"WAVE" + form(1, 16) + chunk(b"data", bytes(800))), "is silent"),
    "one sample": (
        chunk(b"RIFF", b"WAVE" + form(1, 16) + chunk(b"data", b"ab")),
        "has a single sample",
    ),
    "no number": (
        chunk(b"RIFF", b"WAVE" + form(3, 32) + chunk(b"data", struct.pack("<2f", np.nan, 0.0))),
        "not numbers",
    ),
    "doubles beyond floats": (
        chunk(b"RIFF", b"WAVE" + form(3, 64) + chunk(b"data", struct.pack("<2d", 1e300, 0.0))),
        "not numbers",
    ),
    "a sample of 1e30": (
        chunk(b"RIFF", b"WAVE" + form(3, 32) + chunk(b"data", struct.pack("<2f", 1e30, 0.0))),
        r"holds a sample of 1e\+30",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_sound_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    content, said = BAD[name]
    path = tmp_path / "a.wav"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_sound(path)


def test_other_formats_need_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.flac"
    path.write_bytes(b"fLaC")
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(UsageError, match="need soundfile, which is not installed") as error:
        read_sound(path)
    assert "install" in error.value.hint


def test_other_formats_are_read_by_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.flac"
    path.write_bytes(b"fLaC")

    class SoundFile:
        samplerate, frames, channels = 8_000, 8_000, 2

        def __init__(self, name: str) -> None:
            assert name == str(path)

        def __enter__(self) -> "SoundFile":
            return self

        def __exit__(self, *_: object) -> None:
            """Nothing is open."""

        def seek(self, frame: int) -> None:
            self.at = frame

        def blocks(self, size: int, **how: Any) -> Any:
            whole = np.stack([TONE, TONE], axis=1).astype(how["dtype"])
            yield whole[self.at : self.at + min(size, how["frames"])]

    monkeypatch.setitem(sys.modules, "soundfile", SimpleNamespace(SoundFile=SoundFile))
    raw = read_sound(path, 0.5)
    assert np.abs(raw.samples - TONE[4_000:]).max() < 1e-6
    assert raw.changes == ("2 channels mixed",)


@pytest.mark.parametrize("rate", [8_000, 8_000.0, np.int64(8_000), np.float32(8_000)], ids=repr)
def test_samples_in_memory_are_a_sound(rate: Any) -> None:
    for given in (TONE, TONE.astype(np.float32), TONE.tolist(), torch.tensor(TONE)):
        raw = sound_of((given, rate), 0.5)
        assert np.abs(raw.samples - TONE[4_000:]).max() < 1e-6
        assert type(raw.rate) is int


@pytest.mark.parametrize("form", ["<i2", ">i2", "<i4"])
def test_integers_in_memory_are_scaled_as_those_of_a_file(form: str) -> None:
    whole = (TONE * 2 ** (8 * np.dtype(form).itemsize - 1)).astype(form)
    both = np.stack([whole, whole], axis=1)
    raw = sound_of((both, 8_000))
    assert raw.changes == ("2 channels mixed",)
    assert np.abs(raw.samples - TONE).max() < 1e-4


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (TONE, "a value of type ndarray is not a sound"),
        (None, "a value of type NoneType is not a sound"),
        ((TONE, 8_000, 1), "a value of type tuple is not a sound"),
        *(
            ((TONE, rate), "the rate of a sound is not a whole number from 1,000 to 384,000")
            for rate in (8_000.5, "8000", None, True, np.nan, np.inf, 10**400, 8_000j, TONE)
        ),
        ((TONE.astype(np.int64), 8_000), r"are int64 of the shape \(8000,\)"),
        ((TONE.astype(np.uint8), 8_000), "128 is silence"),
        ((TONE > 0, 8_000), "are bool"),
        ((8_000, TONE), r"are int64 of the shape \(\)"),
        (("a.wav", 8_000), "are <U5"),
        (([[0.1], [0.1, 0.2]], 8_000), "are object"),
        ((TONE[None, None], 8_000), r"of the shape \(1, 1, 8000\)"),
        ((TONE[None], 8_000), r"are \(channels, n\) \(1, 8000\)"),
        ((np.stack([TONE] * 2), 8_000), r"are \(channels, n\) \(2, 8000\)"),
    ],
)
def test_what_is_wrong_with_samples_in_memory_is_said(given: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        sound_of(given)


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000, 15_999])
def test_another_rate_keeps_the_tones_that_both_hold(rate: int) -> None:
    def tone(hertz: float, at: int) -> NDArray[np.float32]:
        return np.sin(2 * np.pi * hertz * np.arange(at) / at).astype(np.float32)

    heard = resampled(tone(440, rate), rate, 16_000)
    assert abs(len(heard) - 16_000) <= 1
    inner = slice(400, 15_500)
    assert np.abs(heard[inner] - tone(440, 16_000)[inner]).max() < 1e-4
    if rate > 20_000:  # a tone above half of the new rate would come back as another
        assert np.abs(resampled(tone(9_500, rate), rate, 16_000)[inner]).max() < 1e-3
