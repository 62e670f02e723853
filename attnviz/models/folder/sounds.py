"""A model folder's feature extractor, as transformers has it, from settings that were checked."""

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attnviz.errors import ModelError
from attnviz.models.folder.files import (
    CONFIG,
    IMAGES,
    foreign,
    read_config,
    read_object,
    reason,
)
from attnviz.models.folder.images import ELSEWHERE, PROCESSOR

MOST: Mapping[str, float] = {
    **{"sampling_rate": 384_000, "chunk_length": 600, "feature_size": 1_024},
    **{"num_mel_bins": 1_024, "n_fft": 1 << 14, "hop_length": 1 << 14},
}
"""The largest numbers that settings may have; they decide how much is computed."""
OTHERS = 1 << 24
"""The largest of all others, such as the samples of a window."""
MOST_COMPUTED = 1 << 25
"""The most numbers in the spectra of a window."""


def read_extractor(folder: Path) -> Any:
    """Read the feature extractor of a folder, which makes the samples of a sound to inputs.

    Raises:
        ModelError: the folder has no settings of one, or ones that transformers does not take.
    """
    settings = _settings(folder)
    with foreign(folder), TemporaryDirectory(prefix="attnviz-") as written:
        clean = Path(written)
        config = {"model_type": read_config(folder).get("model_type")}
        (clean / CONFIG).write_text(json.dumps(config))
        (clean / IMAGES).write_text(json.dumps(settings))
        try:
            from transformers import AutoFeatureExtractor

            return AutoFeatureExtractor.from_pretrained(
                clean, local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # any: its classes compute with the settings
            raise ModelError(
                f"transformers makes no feature extractor of {str(folder)!r} "
                f"({reason(error, clean)})",
                "save it beside the model (processor.save_pretrained)",
            ) from None


def _settings(folder: Path) -> dict[str, Any]:
    """The settings of the feature extractor that are numbers, words and switches, without lists."""
    found = read_object(folder / IMAGES) if (folder / IMAGES).is_file() else {}
    if not found and (folder / PROCESSOR).is_file():
        found = read_object(folder / PROCESSOR).get("feature_extractor") or {}
    if not isinstance(found, dict) or not found:
        raise ModelError(
            f"there is no {IMAGES} beside the model, which says how sounds are read",
            "save it there (feature_extractor.save_pretrained)",
        )
    plain = int | float | str | bool
    kept = {k: v for k, v in found.items() if isinstance(v, plain) and k not in ELSEWHERE}
    for name, value in kept.items():
        most = MOST.get(name, OTHERS)
        low = 1 if name in MOST else -OTHERS
        if name in MOST and (isinstance(value, bool) or not isinstance(value, int)):
            raise ModelError(
                f"the {IMAGES} in {str(folder)!r} has {name} {value!r}, not a whole number",
                "use the file that belongs to the model",
            )
        if isinstance(value, int | float) and name != "return_attention_mask":
            number = float(value)
            if not low <= number <= most:
                raise ModelError(
                    f"the {IMAGES} in {str(folder)!r} has {name} {value:,}, but attnviz takes "
                    f"{low:,} to {most:,}",
                    "use the file that belongs to the model",
                )
    names = {"chunk_length": 30, "sampling_rate": 16_000, "hop_length": 160, "n_fft": 400}
    seconds, rate, hop, wide = (float(kept.get(name, usual)) for name, usual in names.items())
    window, spectra = seconds * rate, seconds * rate / hop * wide
    if max(window, spectra) > MOST_COMPUTED:
        raise ModelError(
            f"the {IMAGES} in {str(folder)!r} asks for {spectra:,.0f} numbers, but attnviz takes "
            f"{MOST_COMPUTED:,} at most",
            "use the file that belongs to the model",
        )
    return kept
