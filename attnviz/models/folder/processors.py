"""What makes a folder's inputs of images and sounds, as transformers has it, of checked settings.

The image processor that runs on pillow is taken, so that the same pixels come out wherever it runs;
transformers' other one needs torchvision, and so does its video part, which is left out.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from attnviz.errors import ModelError
from attnviz.models.folder.files import CONFIG, IMAGES, foreign, read_config, read_object, reason
from attnviz.models.folder.reading import BESIDE
from attnviz.models.folder.tokenizer import tokenizer_settings, transformers_tokenizer

PROCESSOR = "processor_config.json"
PROCESSORS = {IMAGES, PROCESSOR}
"""A model without either reads no images here, which is known without transformers and torch."""
MOST_SIDE, MOST_AREA = 1 << 12, 1 << 25
"""The most pixels of a side, and of an image, that settings may ask for."""
LEAST_STD = 1e-6
"""The least deviation of a colour, which pixels are divided by."""
SIDES = ("height", "width", "patch_size", "max_image_size")
ELSEWHERE = ("auto_map", "name_or_path", "chat_template", "tokenizer", "video_processor")


def read_processor(folder: Path, *, alone: bool = False) -> Any:
    """Read the processor of a folder: it makes images to tensors, and their places to tokens.

    `alone`: that of images, for a model that reads no text.

    Raises:
        ModelError: the folder has no settings of one, or ones that transformers does not take.
    """
    settings = {name: _settings(folder / name) for name in (IMAGES, PROCESSOR)}
    if not any(settings.values()):
        raise ModelError(
            f"there is no {IMAGES} beside the model, which says how images are read",
            "save it there (processor.save_pretrained), or give load_model the processor of a "
            "model in memory",
        )
    with foreign(folder), TemporaryDirectory(prefix="attnviz-") as written:
        try:
            made = _of_images if alone else _processor
            return made(folder, settings, Path(written))
        except ModelError:
            raise
        except Exception as error:  # any: its classes compute with the settings
            why = reason(error, Path(written))
            raise ModelError(
                f"transformers makes no image processor of {str(folder)!r} ({why})",
                "save the processor beside the model (processor.save_pretrained)",
            ) from None


def _processor(folder: Path, settings: Mapping[str, dict[str, Any]], clean: Path) -> Any:
    """The processor of a folder, by way of one (`clean`) that has only what was checked."""
    import transformers
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES

    config = read_object(folder / CONFIG)
    named = [each.get("processor_class") for each in settings.values()]
    named += [tokenizer_settings(folder).get("processor_class")]
    named += [PROCESSOR_MAPPING_NAMES.get(str(config.get("model_type")))]
    kinds = (getattr(transformers, name, None) for name in named if isinstance(name, str))
    kind: Any = _without_torchvision(next((k for k in kinds if isinstance(k, type)), None))
    if kind is None or not issubclass(kind, transformers.ProcessorMixin):
        raise _no_processor(config)
    of_videos: Any = sys.modules.get(kind.__module__)
    if getattr(of_videos, "num2words", str) is None:  # a package that only texts of videos need
        of_videos.num2words = str
    (clean / CONFIG).write_text(json.dumps({"model_type": config.get("model_type")}))
    for name, each in settings.items():
        if each:
            (clean / name).write_text(json.dumps(each))
    images = transformers.AutoImageProcessor.from_pretrained(
        clean, backend="pil", local_files_only=True, trust_remote_code=False
    )
    tokenizer = transformers_tokenizer(folder)
    given = {"tokenizer": tokenizer, "image_processor": images}
    args = [given.get(name) for name in kind.get_attributes()]
    own = {k: v for k, v in settings[PROCESSOR].items() if k != "image_processor"}
    still: Any = type(kind.__name__, (kind,), {"check_argument_for_proper_class": _unchecked})
    processor = still.from_args_and_dict(args, own)
    placed = isinstance(getattr(processor, "image_token", None), str)  # else one of sounds
    if not placed and config.get("model_type") not in BESIDE:
        raise _no_processor(config)
    return processor


@dataclass(frozen=True)
class ImagesAlone:
    """An image processor by itself, which is asked for places as a whole processor is."""

    image_processor: Any

    def _merge_kwargs(self, tokenizer_init_kwargs: object, **given: Any) -> dict[str, Any]:
        return {"images_kwargs": given}

    def _process_images(self, images: list[Any], **given: Any) -> tuple[Any, None]:
        return self.image_processor(images, **given), None


TORCHVISION = frozenset({"DINOv3ViTImageProcessor"})
"""Image processors that transformers has only for torchvision; ViT's steps in another order."""
RESIZED = (
    "its images are resized by pillow, to 8 bits, where transformers takes torchvision: the pixels "
    "differ by what is rounded"
)


def class_of_images(folder: Path) -> str:
    """The class of a folder's image processor as transformers 5 names it; empty where none is."""
    whole, own = (_settings(folder / name) for name in (PROCESSOR, IMAGES))
    own = whole.get("image_processor") or own
    names = (own.get(key) for key in ("image_processor_type", "feature_extractor_type"))
    named = next((name for name in names if isinstance(name, str)), "")
    return named.removesuffix("Fast").replace("FeatureExtractor", "ImageProcessor")


def _of_images(folder: Path, settings: Mapping[str, dict[str, Any]], clean: Path) -> ImagesAlone:
    import transformers

    own = dict(settings[PROCESSOR].get("image_processor") or settings[IMAGES])
    own.pop("feature_extractor_type", None)
    if name := class_of_images(folder):
        own["image_processor_type"] = "ViTImageProcessor" if name in TORCHVISION else name
    model_type = read_object(folder / CONFIG).get("model_type")
    (clean / CONFIG).write_text(json.dumps({"model_type": model_type}))
    (clean / IMAGES).write_text(json.dumps(own))
    return ImagesAlone(
        transformers.AutoImageProcessor.from_pretrained(
            clean, backend="pil", local_files_only=True, trust_remote_code=False
        )
    )


def _no_processor(config: Mapping[str, Any]) -> ModelError:
    return ModelError(
        f"attnviz knows no processor that puts images among the tokens of a text for "
        f"{config.get('model_type')!r}",
        "use a model that has one, such as LLaVA",
    )


def _without_torchvision(kind: Any) -> Any:
    """A processor class, whose file may read sizes from the image processor of torchvision."""
    if not hasattr(kind, "_backends"):  # transformers' stand-in for what cannot be imported
        return kind
    package, _, file = kind.__module__.rpartition(".")
    name = file.removeprefix("processing_")
    try:
        instead = import_module(f"{package}.image_processing_pil_{name}")
        with patch.dict(sys.modules, {f"{package}.image_processing_{name}": instead}):
            return getattr(import_module(kind.__module__), kind.__name__)
    except ImportError:
        return None


def _unchecked(_self: Any, _name: str, argument: Any) -> type:
    """In the place of transformers' check that a processor has its video part."""
    return type(argument)


def _settings(path: Path) -> dict[str, Any]:
    """The settings in a file that name no other file or code; empty where there is none."""
    if not path.is_file():
        return {}
    kept = {k: v for k, v in read_object(path).items() if k not in ELSEWHERE}
    for name, number in _numbers(kept):
        most = MOST_SIDE if name in SIDES else MOST_AREA
        least = LEAST_STD if name == "image_std" else 0
        if not least <= abs(number) <= most:
            limit = f"{most:,} at most" if abs(number) > most else f"numbers from {least:g} on"
            raise ModelError(
                f"the {path.name} in {str(path.parent)!r} has {name} {number:,}, but attnviz takes "
                f"{limit}",
                "use the file that belongs to the model",
            )
    return kept


def _numbers(settings: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Every number of nested settings, with the name that it goes by."""
    if isinstance(settings, dict):
        for key, value in settings.items():
            yield from _numbers(value, str(key))
    elif isinstance(settings, list):
        for value in settings:
            yield from _numbers(value, name)
    elif isinstance(settings, int | float) and not isinstance(settings, bool):
        yield name, settings


# A feature extractor, which makes a sound to what a model reads.

EXTRACTOR_MOST: Mapping[str, float] = {
    **{"sampling_rate": 384_000, "chunk_length": 600, "feature_size": 1_024},
    **{"num_mel_bins": 1_024, "n_fft": 1 << 14, "hop_length": 1 << 14},
}
"""The largest numbers that settings may have; they decide how much is computed."""
OTHERS = 1 << 24
"""The largest of all others, such as the samples of a window."""
MOST_COMPUTED = 1 << 25
"""The most numbers in the spectra of a window."""


def read_extractor(folder: Path) -> Any:
    """The feature extractor of a folder: it makes the samples of a sound to what a model reads.

    Raises:
        ModelError: the folder has no settings of one, or ones that transformers does not take.
    """
    settings = _of_extractor(folder)
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


def _of_extractor(folder: Path) -> dict[str, Any]:
    """The settings of the feature extractor that are numbers, words or switches, not lists."""
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
        most = EXTRACTOR_MOST.get(name, OTHERS)
        low = 1 if name in EXTRACTOR_MOST else -OTHERS
        if name in EXTRACTOR_MOST and (isinstance(value, bool) or not isinstance(value, int)):
            raise ModelError(
                f"the {IMAGES} in {str(folder)!r} has {name} {value!r}, which is no whole number",
                "use the file that belongs to the model",
            )
        if isinstance(value, int | float) and name != "return_attention_mask":
            number = float(value)
            if not low <= number <= most:
                raise ModelError(
                    f"the {IMAGES} in {str(folder)!r} has {name} {value:,}, and attnviz takes "
                    f"{low:,} to {most:,}",
                    "use the file that belongs to the model",
                )
    names = {"chunk_length": 30, "sampling_rate": 16_000, "hop_length": 160, "n_fft": 400}
    seconds, rate, hop, wide = (float(kept.get(name, usual)) for name, usual in names.items())
    window, spectra = seconds * rate, seconds * rate / hop * wide
    if max(window, spectra) > MOST_COMPUTED:
        raise ModelError(
            f"the {IMAGES} in {str(folder)!r} asks for {spectra:,.0f} numbers, and attnviz takes "
            f"{MOST_COMPUTED:,} at most",
            "use the file that belongs to the model",
        )
    return kept
