"""Sound files, read and checked: the result is one channel of samples from -1 to 1.

WAV files are read here, a part at a time; other formats by the package soundfile.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import SEEK_END, BytesIO
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import InputError, UsageError, missing, option
from attnviz.inputs.given import found
from attnviz.records.places import RawSound, Waveform

SOUNDS = (".wav", ".flac", ".mp3", ".ogg", ".oga", ".opus", ".m4a", ".aac", ".aif", ".aiff")
"""The endings of sound files."""
WAV = b"RIFF", b"RF64"
LONGEST = 60
"""The most seconds that are read, from the second at which a model begins."""
LEAST_RATE, MOST_RATE, MOST_CHANNELS = 1_000, 384_000, 64
MOST_CHUNKS = 1_000
"""The most parts of a WAV file before its samples."""
AT_ONCE = 1 << 16
"""The number of samples of each channel that are read at once."""
PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
TYPES = {(PCM, 16): "<i2", (PCM, 32): "<i4", (FLOAT, 32): "<f4", (FLOAT, 64): "<f8"}
ONE = {8: 1 << 7, 16: 1 << 15, 24: 1 << 23, 32: 1 << 31}
"""The divisor of samples with this number of bits."""
LOUDEST = 1 << 31
"""The largest sample in floating point, as of integers that were not divided."""
STREAMED = 0xFFFF_FFFF
"""The size in headers of files that were written into a pipe, or exceed 4 GB."""


def sound_of(sound: Any, start: float = 0.0) -> RawSound:
    """Read a sound that is given as a file, or as (samples, rate): samples (n) or (n, channels).

    `start`: the second to begin at.
    """
    if start < 0 or start != start:
        raise UsageError(f"{option('start', start)} is not a second of a sound", "give 0 or more")
    if isinstance(sound, str | PathLike):
        return read_sound(Path(sound), start)
    if isinstance(sound, bytes):  # the content of a file
        if sound[:4] not in WAV:
            raise InputError("the content is not that of a WAV file", "save the sound as WAV")
        return _read_wav(Path("sound"), BytesIO(sound), start)
    if not isinstance(sound, tuple) or len(sound) != 2:
        raise UsageError(
            f"a value of type {type(sound).__name__} is not a sound",
            "give a file, or (samples, rate)",
        )
    samples = _in_memory(sound[0])
    given: Any = sound[1] if isinstance(sound[1], Real) else 0
    if not (LEAST_RATE <= given <= MOST_RATE and given % 1 == 0):
        raise UsageError(
            f"the rate of a sound is not a whole number from {LEAST_RATE:,} to {MOST_RATE:,}",
            "give (samples, rate)",
        )
    rate = int(given)
    _check_form("the sound", rate, samples.shape[1])
    first, last = (min(round(s * rate), len(samples)) for s in (start, start + LONGEST))
    part = samples[first:last]
    whole = part if part.dtype.kind == "f" else part / ONE[8 * part.itemsize]
    return _checked("sound", iter([whole]), rate, len(samples), start)


def _in_memory(given: Any) -> NDArray[Any]:
    """Samples (n, channels) of an array or a list."""
    try:
        samples = np.asarray(given)
    except (TypeError, ValueError, RuntimeError):  # of several lengths, or on another device
        samples = np.empty((), object)
    if samples.dtype == np.uint8:
        raise UsageError(
            "the samples of a sound are uint8, in which 128 is silence",
            "give (samples - 128.0) / 128",
        )
    integers = samples.dtype.kind == "i" and samples.itemsize in (2, 4)
    if samples.ndim not in (1, 2) or not (samples.dtype.kind == "f" or integers):
        raise UsageError(
            f"the samples of a sound are {samples.dtype} of the shape {samples.shape}",
            "give (n) or (n, channels), fractions from -1 to 1 or int16 or int32",
        )
    if samples.ndim == 2 and len(samples) <= MOST_CHANNELS < samples.shape[1]:
        raise UsageError(
            f"the samples of a sound are (channels, n) {samples.shape}", "give (n, channels)"
        )
    return samples[:, None] if samples.ndim == 1 else samples


def read_sound(path: Path, start: float = 0.0) -> RawSound:
    """Read the samples of a file from a second on, with all channels mixed to one.

    Raises:
        InputError: there is no such file, or it does not hold an audible sound.
        UsageError: a package is needed for it.
    """
    origin, path = repr(str(path)), found(path)
    try:
        if not path.is_file():
            why = "is a folder" if path.is_dir() else "does not exist"
            raise InputError(f"the sound {origin} {why}", "give the path of a sound file")
        with path.open("rb") as stream:
            if stream.read(4) in WAV:
                return _read_wav(path, stream, start)
        return _read_other(path, start)
    except OSError as error:
        raise InputError(
            f"the sound {origin} cannot be read ({error.strerror or error})", "give another file"
        ) from None


@dataclass(frozen=True)
class _SampleForm:
    """The form of samples in a WAV file: `code` PCM or FLOAT, with this number of `bits` each."""

    code: int
    bits: int
    channels: int
    rate: int

    @property
    def bytes(self) -> int:
        """The bytes of one sample of all channels."""
        return self.bits // 8 * self.channels


def _read_wav(path: Path, stream: BinaryIO, start: float) -> RawSound:
    stream.seek(0)
    layout, begin, size = _find_samples(path, stream)
    there = stream.seek(0, SEEK_END) - begin
    changes = list[str]()
    if size > there and size != STREAMED:
        changes.append("cut short: its header promises more")
    frames = min(size, there) // layout.bytes
    first = min(round(start * layout.rate), frames)
    stream.seek(begin + first * layout.bytes)
    blocks = _blocks(stream, layout, min(frames - first, LONGEST * layout.rate))
    return _checked(path.name, blocks, layout.rate, frames, start, changes)


def _find_samples(path: Path, stream: BinaryIO) -> tuple[_SampleForm, int, int]:
    """The form of the samples, their first byte, and the number of bytes by the header."""
    layout = None
    if stream.read(12)[8:] == b"WAVE":
        for _ in range(MOST_CHUNKS):
            head = stream.read(8)
            if len(head) < 8:
                break
            name, size = head[:4], struct.unpack("<I", head[4:])[0]
            if name == b"data" and layout is not None:
                return layout, stream.tell(), size
            begin = stream.tell()
            if name == b"fmt ":
                layout = _layout(path, stream.read(min(size, 40)))
            stream.seek(begin + size + size % 2)
    raise _damaged(path, "samples")


def _damaged(path: Path, lacks: str) -> InputError:
    return InputError(f"the WAV file {str(path)!r} is damaged: it has no {lacks}", "save it again")


def _layout(path: Path, form: bytes) -> _SampleForm:
    if len(form) < 16:
        raise _damaged(path, "format")
    code, channels, rate, _, _, bits = struct.unpack("<HHIIHH", form[:16])
    if code == EXTENSIBLE and len(form) >= 26:
        (code,) = struct.unpack("<H", form[24:26])
    if (code, bits) not in TYPES and (code, bits) not in ((PCM, 8), (PCM, 24)):
        raise InputError(
            f"the WAV file {str(path)!r} holds samples of {bits} bits in the format {code}, which "
            "attnviz does not read",
            "save it as PCM of 16 bits",
        )
    _check_form(f"the sound {str(path)!r}", rate, channels)
    return _SampleForm(code, bits, channels, rate)


def _check_form(what: str, rate: int, channels: int) -> None:
    if not (LEAST_RATE <= rate <= MOST_RATE and 1 <= channels <= MOST_CHANNELS):
        raise InputError(
            f"{what} has {channels:,} channels and {rate:,} samples per second",
            f"give one of 1 to {MOST_CHANNELS} channels and {LEAST_RATE:,} to {MOST_RATE:,}",
        )


def _blocks(stream: BinaryIO, layout: _SampleForm, count: int) -> Iterator[NDArray[Any]]:
    """Yield `count` samples as blocks (n, channels)."""
    while count > 0:
        data = stream.read(min(count, AT_ONCE) * layout.bytes)
        data = data[: len(data) // layout.bytes * layout.bytes]
        if not data:
            return
        count -= len(data) // layout.bytes
        yield _numbers(data, layout).reshape(-1, layout.channels)


def _numbers(data: bytes, layout: _SampleForm) -> NDArray[Any]:
    if layout.code == FLOAT:
        return np.frombuffer(data, TYPES[layout.code, layout.bits])
    if layout.bits == 8:
        whole = np.frombuffer(data, np.uint8).astype(np.int16) - 128
    elif layout.bits == 24:
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        whole = wide.reshape(-1).view("<i4") >> 8
    else:
        whole = np.frombuffer(data, TYPES[layout.code, layout.bits])
    return (whole / np.float64(ONE[layout.bits])).astype(np.float32)


def _read_other(path: Path, start: float) -> RawSound:
    """Read a file of another format, by the package soundfile."""
    if path.suffix.lower() == ".wav" or path.suffix.lower() not in SOUNDS:
        raise InputError(f"{str(path)!r} is not a sound that attnviz reads", "give a WAV file")
    try:
        import soundfile  # type: ignore[import-not-found]
    except ImportError:
        raise missing(f"{path.suffix.lower()} files need soundfile", "audio") from None
    try:
        with soundfile.SoundFile(str(path)) as file:
            rate, frames = int(file.samplerate), max(0, int(file.frames))
            _check_form(f"the sound {str(path)!r}", rate, int(file.channels))
            first = min(round(start * rate), frames)
            file.seek(first)
            blocks = file.blocks(
                AT_ONCE, frames=min(frames - first, LONGEST * rate), dtype="float32", always_2d=True
            )
            return _checked(path.name, blocks, rate, frames, start)
    except (RuntimeError, ValueError, TypeError) as error:
        raise InputError(
            f"the sound {str(path)!r} cannot be read ({str(error)[:120]})", "save it as WAV"
        ) from None


def _checked(
    name: str,
    blocks: Iterator[NDArray[Any]],
    rate: int,
    frames: int,
    start: float,
    changes: list[str] | None = None,
) -> RawSound:
    """Mix blocks (n, channels), of `frames` in all, to one channel, and check its sound."""
    seconds, changes, mixed, channels = frames / rate, changes or [], list[Waveform](), 1
    for block in blocks:
        channels = block.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):  # such results are refused
            mixed.append(block.mean(axis=1, dtype=np.float64).astype(np.float32))
    samples: Waveform = np.concatenate(mixed) if mixed else np.zeros(0, np.float32)
    if not frames:
        raise InputError(f"the sound {name!r} has no samples", "give another one")
    if not samples.size:
        raise InputError(
            f"the sound {name!r} ends after {seconds:.2f} s, before {option('start', start)}",
            "give an earlier second",
        )
    if not np.isfinite(samples).all():
        raise InputError(f"the sound {name!r} holds samples that are not numbers", "save it again")
    if (most := np.abs(samples).max()) > LOUDEST:
        raise InputError(f"the sound {name!r} holds a sample of {most:.2g}", "scale it to -1 to 1")
    if np.ptp(samples) == 0:
        part = "" if len(samples) == frames else " in the part that is read"
        what = "is silent" if len(samples) > 1 else "has a single sample"
        raise InputError(f"the sound {name!r} {what}{part}", "give another one")
    if channels > 1:
        changes.append(f"{channels} channels mixed")
    return RawSound(name, samples, rate, seconds, start, tuple(changes))
