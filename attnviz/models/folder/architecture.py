"""The configuration of any architecture, as transformers reads it, under common names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnviz.errors import ModelError
from attnviz.models.folder.files import read_config
from attnviz.models.folder.gate import cut, reason
from attnviz.models.folder.sizes import ModelSizes, check_kind, pair_kind, token_id
from attnviz.records.capture import Kind

NO_LIMIT = 1 << 20
"""The context of a model with relative positions, which only memory limits."""


BEHIND_PADDING = (
    *("roberta", "roberta-prelayernorm", "camembert", "xlm-roberta", "xlm-roberta-xl", "xmod"),
    *("data2vec-text", "ibert", "mpnet", "longformer", "esm", "luke", "markuplm", "lilt"),
    "prophetnet",
)
"""Models whose positions begin after the padding token's id."""


def transformers_config(folder: Path) -> Any:
    """config.json through transformers; nothing is fetched and no remote code is run.

    Raises:
        ModelError: transformers does not know the architecture, or does not take its settings.
    """
    from transformers import AutoConfig
    from transformers.utils import logging

    logging.set_verbosity_error()  # its remarks on settings do not concern attention
    _check_known(read_config(folder), folder)
    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # any: its classes compute with the settings
        raise not_taken(folder, error) from None


def not_taken(folder: Path, error: Exception) -> ModelError:
    """The error for settings that transformers' own classes refuse, or fail over."""
    from transformers import __version__

    return ModelError(
        f"transformers {__version__} does not take the config.json in {str(folder)!r} "
        f"({reason(error, folder)})",
        "use the config.json that the model was saved with",
    )


def _check_known(raw: Mapping[str, Any], folder: Path) -> None:
    """Check that transformers has code of its own for this type of model.

    Raises:
        ModelError: it has none; or there is no type.
    """
    from transformers import CONFIG_MAPPING, __version__

    architecture, where = raw.get("model_type"), str(folder)
    if isinstance(architecture, str) and architecture in CONFIG_MAPPING:
        return
    if raw.get("auto_map"):
        raise ModelError(
            f"this model brings its own code, which attnviz never runs: transformers {__version__} "
            f"has none for the model type {cut(repr(architecture))} of {where!r}",
            "use a model whose architecture is in transformers itself",
        )
    if architecture is None:
        raise ModelError(
            f"the config.json in {where!r} has no model_type, by which transformers {__version__} "
            "chooses the architecture",
            "if it is in its authors' format, use its version for transformers; else add the "
            'model_type, such as "bert"',
        )
    raise ModelError(
        f"transformers {__version__} has no model type {cut(repr(architecture))}, which the "
        f"config.json in {where!r} names",
        "use a model that it has, or a version of transformers that has this one",
    )


def sizes_of(folder: Path, kind: Kind | None = None) -> ModelSizes:
    """The sizes of a folder's model, for one kind of attention if it has several.

    Raises:
        ModelError: as `transformers_config`; or the model has no attention heads.
        UsageError: the model does not have this kind of attention.
    """
    config = transformers_config(folder)
    text = config.get_text_config()
    if config.is_encoder_decoder:
        kind = pair_kind(kind)
        heads, layers = _of_pair(text, "encoder" if kind == "encoder" else "decoder")
    else:
        check_kind(kind)
        heads = getattr(text, "num_attention_heads", None)
        layers = getattr(text, "num_hidden_layers", None)
    if not (isinstance(heads, int) and isinstance(layers, int) and heads > 0 < layers):
        raise ModelError(
            f"the model in {str(folder)!r} ({config.model_type}) has no attention heads to show",
            "use a model with attention",
        )
    vocabulary = getattr(text, "vocab_size", None)
    if not isinstance(vocabulary, int):
        raise reads_no_text(config.model_type)
    return ModelSizes(
        architecture=config.model_type,
        heads_per_layer=(heads,) * layers,
        vocab_size=vocabulary,
        context=_context(text),
        bos_id=token_id(getattr(text, "bos_token_id", None), vocabulary),
        kind=kind or "self",
    )


def reads_no_text(architecture: str) -> ModelError:
    """The error for a model of images or sound."""
    return ModelError(f"{architecture} does not read text", "use a language model")


def _of_pair(config: Any, side: str) -> tuple[int | None, int | None]:
    """Heads and layers of one side; BART names them for both, T5 only the decoder's layers."""
    heads = getattr(config, f"{side}_attention_heads", None) or config.num_attention_heads
    layers = getattr(config, f"{side}_layers", None) or getattr(config, f"num_{side}_layers", None)
    return heads, layers or config.num_hidden_layers


def _context(config: Any) -> int:
    names = ("max_encoder_position_embeddings", "max_position_embeddings")
    longest = next((size for name in names if (size := getattr(config, name, None))), None)
    if not isinstance(longest, int) or longest < 1:
        return NO_LIMIT
    if config.model_type in BEHIND_PADDING:
        return longest - int(config.pad_token_id) - 1
    return longest
