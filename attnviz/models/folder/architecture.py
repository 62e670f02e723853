"""The configuration of any architecture, as transformers reads it, under common names."""

from pathlib import Path
from typing import Any

from attnviz.data.capture import Kind
from attnviz.errors import ModelError
from attnviz.models.folder.files import read_config, read_object
from attnviz.models.folder.gate import foreign
from attnviz.models.folder.sizes import ModelSizes, check_kind, pair_kind, token_id

NO_LIMIT = 1 << 20
"""The context of a model with relative positions, which only memory limits."""

BESIDE = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
"""What transformers reads for a tokenizer beside its vocabulary."""

BEHIND_PADDING = (
    *("roberta", "roberta-prelayernorm", "camembert", "xlm-roberta", "xlm-roberta-xl", "xmod"),
    *("data2vec-text", "ibert", "mpnet", "longformer", "esm", "luke", "markuplm", "lilt"),
    "prophetnet",
)
"""Models whose positions begin after the padding token's id."""


def transformers_config(folder: Path) -> Any:
    """config.json through transformers; nothing is fetched and no remote code is run.

    Raises:
        ModelError: it is damaged, or transformers does not know the architecture.
    """
    from transformers import AutoConfig
    from transformers.utils import logging

    logging.set_verbosity_error()  # its remarks on settings do not concern attention
    read_config(folder)  # which checks it
    with foreign(folder):
        return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def tokenizer_settings(folder: Path) -> dict[str, Any]:
    """The folder's tokenizer_config.json; empty where it has none.

    Raises:
        ModelError: it, or a file that is read with it, cannot be read.
    """
    there = {name: read_object(folder / name) for name in BESIDE if (folder / name).is_file()}
    return there.get(BESIDE[0], {})


def transformers_tokenizer(folder: Path) -> Any:
    """The tokenizer that transformers makes of a folder; no remote code is run.

    Many of its classes take the vocabulary of tokenizer.json alone, and cut texts in their own way.

    Raises:
        ModelError: it makes none.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast
    from transformers.utils import logging

    tokenizer_settings(folder)  # which checks them
    logging.set_verbosity_error()
    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        with foreign(folder):
            return AutoTokenizer.from_pretrained(folder, **local)
    except ModelError:  # its class is not one of transformers'
        with foreign(folder):
            return PreTrainedTokenizerFast.from_pretrained(folder, **local)


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
    if not isinstance(heads, int) or not isinstance(layers, int):
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
