"""The input of a folder's model by its configuration: a text, only an image, or speech."""

from typing import Any

from attnviz.errors import ModelError
from attnviz.records.heads import Reads

APART = frozenset(
    "swin swinv2 swin2sr donut-swin vitdet hiera focalnet dinat segformer pvt pvt_v2 cvt levit "
    "mobilevit mobilevitv2 glpn videomae vivit timesformer vjepa2 sam_vision_model".split()
)
"""Models of images whose attention has windows, several resolutions or several frames."""


SPOKEN = frozenset(
    "whisper moonshine speech_to_text "
    "wav2vec2 hubert unispeech unispeech-sat data2vec-audio".split()
)
"""Models that read only speech; the first three write a text of it."""


TOWERS = ("clip", "siglip", "siglip2", "metaclip_2")
"""Models that read a text and an image apart from each other, each with layers of its own."""


BESIDE = ("blip", "vilt")
"""Models that read one image beside every text, in which nothing stands for it."""


def reads_of(config: Any) -> Reads:
    """The kind of input that a model with this configuration of transformers reads.

    Raises:
        ModelError: something else, or parts of an image by themselves.
    """
    from transformers.models.auto import modeling_auto as auto

    if config.model_type in APART:
        raise ModelError(
            f"{config.model_type} attends within parts of an image or of a video, and not to all "
            "patches of an image at once",
            "use one that does, such as ViT or DINOv2",
        )
    classifies = next((n for n in config.architectures or () if "ImageClassification" in n), None)
    if config.model_type in TOWERS and classifies:
        raise ModelError(
            f"attnviz does not read a {classifies}, which is half of a model of two sides",
            "save its image side by itself (model.vision_model.save_pretrained)",
        )
    if config.model_type in SPOKEN:
        return "speech"
    words = isinstance(getattr(config.get_text_config(), "vocab_size", None), int)
    patches = all(hasattr(config, name) for name in ("patch_size", "num_channels"))
    if patches and (
        not words or config.model_type in auto.MODEL_FOR_IMAGE_MAPPING_NAMES
    ):  # BEiT predicts from a vocabulary
        return "image"
    if not words or config.model_type in auto.MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES:
        raise reads_no_text(config.model_type)
    return "text"


def reads_no_text(architecture: str) -> ModelError:
    """The error for a model of something else."""
    from transformers.models.auto import modeling_auto as auto

    detects = architecture in auto.MODEL_FOR_OBJECT_DETECTION_MAPPING_NAMES
    does = "detects objects" if detects else "does not read text"
    return ModelError(
        f"{architecture} {does}, and is of a kind that attnviz does not read",
        "use a language model, or one that attends to all patches of an image, such as ViT",
    )
