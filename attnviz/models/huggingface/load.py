"""A model folder loaded through transformers, every weight of it checked."""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import torch
from torch import Tensor, nn

from attnviz.errors import COMMAND, AttnvizError, ModelError
from attnviz.models.folder.config import (
    NO_LIMIT,
    SHOWN_SO,
    ModelSizes,
    not_taken,
    transformers_config,
)
from attnviz.models.folder.files import (
    PICKLED,
    cut,
    foreign,
    linked_gguf,
    plain_config,
    read_config,
)
from attnviz.models.folder.reading import BESIDE, TOWERS, reads_no_text, reads_of
from attnviz.models.folder.tokenizer import TYPES
from attnviz.models.huggingface.attention import forward, reads_images, watching
from attnviz.models.huggingface.beside import ImageBeside, blank_beside
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.capture import CannotCompute, ProvenRows
from attnviz.models.huggingface.image_encoders import ImageEncoder, fitted, reader_of
from attnviz.models.huggingface.implicit import ImplicitAttention, implicit_heads, scanning_modules
from attnviz.models.huggingface.layers import Layers, agrees
from attnviz.models.huggingface.model import (
    CausalLM,
    HuggingFaceModel,
    MaskedLM,
    OneSequence,
    PairDecoder,
    PairEncoder,
    PrefixLM,
    VisionSide,
)
from attnviz.models.huggingface.pixels import few_patches
from attnviz.models.huggingface.similarity import ClipSight
from attnviz.models.huggingface.speech import SpeechModel, SpeechWriter, with_alignment
from attnviz.models.placement import ANYWHERE, Placement, check_weights, written
from attnviz.models.tokenizer import TextTokenizer, read_folder, without_tokens
from attnviz.models.weights import (
    check_evaluating,
    check_finite,
    check_parameters,
    fingerprint,
    lacks,
    other_shape,
    read_weights,
    weights_in,
)
from attnviz.records.capture import Kind, ModelIdentity, ShownKind
from attnviz.records.heads import ModelCard


def load_huggingface(
    folder: Path,
    name: str,
    revision: str | None,
    kind: Kind | ShownKind | None = None,
    placement: Placement = ANYWHERE,
) -> HuggingFaceModel:
    """Load a local folder through transformers; nothing is fetched and no remote code is run."""
    sizes, card, tokenizer = read_folder(folder, name, kind)
    check_weights(folder, placement)
    with foreign(folder):
        model = _load_weights(folder, placement)
    return _engine(model, name, sizes, card, tokenizer, revision)


def wrap_huggingface(
    model: Any, tokenizer: Any, kind: Kind | ShownKind | None = None, name: str | None = None
) -> HuggingFaceModel:
    """A transformers model that is in memory already, wrapped by PEFT or not; it stays as it is.

    `tokenizer`: of a model that reads images, its processor; of only images, the processor of
    these. `name`: its name, or None for the one that transformers gives it.
    """
    from transformers import PreTrainedModel

    model, tokenizer = _unwrapped(model, tokenizer)
    plain = model.get_base_model() if hasattr(model, "get_base_model") else model  # PEFT
    if not isinstance(plain, PreTrainedModel):
        raise ModelError(
            f"a {type(model).__name__} is not a transformers model", "give a name or a folder"
        )
    check_evaluating(plain)
    reader = reader_of(plain, tokenizer)
    folder = Path(mkdtemp(prefix="attnviz-"))  # of configuration and tokenizer, while it is used
    try:
        with foreign(None):
            plain.config.save_pretrained(folder)
            reader.save_pretrained(folder)
        name = name or plain.name_or_path or type(plain).__name__
        sizes, card, read = read_folder(folder, name, kind, as_saved=True)
        read = replace(read, types=TYPES in reader.model_input_names)
        if model is not plain:
            _check_within(model, plain, _few_tokens(plain, sizes))
        wrapped = _engine(plain, name, sizes, card, read, None)
    except BaseException as error:
        rmtree(folder, ignore_errors=True)
        if not isinstance(error, AttnvizError):
            raise
        place = rf" ?\bin '{re.escape(str(folder))}[^']*'"  # of no use: it is gone
        raise type(error)(re.sub(place, "", error.wrong).strip(), error.hint) from None
    finalize(wrapped.tokenizer, rmtree, folder, ignore_errors=True)
    return wrapped


def _unwrapped(model: Any, tokenizer: Any) -> tuple[Any, Any]:
    """The model in a SentenceTransformer or a CrossEncoder, and its tokenizer; others unchanged."""
    from transformers import PreTrainedModel

    first = model[0] if isinstance(model, nn.Sequential) and len(model) else model
    inner = getattr(first, "auto_model", None) or getattr(first, "model", None)
    whole = isinstance(model, PreTrainedModel) or hasattr(model, "get_base_model")  # PEFT
    if whole or not isinstance(inner, PreTrainedModel):
        return model, tokenizer
    return inner, tokenizer or getattr(first, "tokenizer", None)


def _engine(
    model: Any,
    name: str,
    sizes: ModelSizes,
    card: ModelCard,
    tokenizer: TextTokenizer,
    revision: str | None,
) -> HuggingFaceModel:
    assert tokenizer.folder is not None
    if model.config.model_type in TOWERS:
        vision = model.vision_model.config
        heads = (vision.num_attention_heads,) * vision.num_hidden_layers
        own = ModelSizes(vision.model_type, heads, 0, NO_LIMIT, None, reads="image")
        nothing, bare = without_tokens(tokenizer.folder), replace(card, heads=())
        sight = _engine(model.vision_model, name, own, bare, nothing, revision)
        text = _engine(model.text_model, name, sizes, card, tokenizer, revision)
        if hasattr(model, "visual_projection"):  # and no head that pools the patches
            same = {each.name: getattr(sight, each.name) for each in fields(sight)}
            sight = ClipSight(**same, towers=model, reader=tokenizer)
        return replace(text, sight=sight)
    tokenizer = replace(tokenizer, types=tokenizer.types and _tells_types(model))
    return _one_side(model, name, sizes, card, tokenizer, revision)


def _one_side(
    model: Any,
    name: str,
    sizes: ModelSizes,
    card: ModelCard,
    tokenizer: TextTokenizer,
    revision: str | None,
) -> HuggingFaceModel:
    model, tokenizer = _read_by(model, sizes, tokenizer)
    attention = _attention(model, sizes)
    card, unaligned = with_alignment(card, model, sizes)
    differs = tokenizer.differs or unaligned, _other_function(model, tokenizer)
    identity = ModelIdentity(
        name=name,
        architecture=sizes.architecture,
        heads_per_layer=attention.heads_per_layer,
        parameters=model.num_parameters(),
        engine="transformers",
        dtype=str(model.dtype).removeprefix("torch."),
        revision=revision,
        fingerprint=fingerprint(*weights_in(model)),
        differs="; ".join(filter(None, differs)),
        implicit=sizes.implicit,
        reads_images=reads_images(model),
        reads=sizes.reads,
    )
    own = _engine_class(model, sizes, causal=attention.causal)
    return (ImplicitAttention if sizes.implicit else own)(
        identity=identity,
        card=replace(card, heads=()) if sizes.implicit else card,
        tokenizer=tokenizer,
        causal=attention.causal,
        kind=sizes.kind,
        sinks=attention.sinks or any("sink" in name for name, _ in model.named_parameters()),
        model=model,
    )


def _read_by(model: Any, sizes: ModelSizes, tokenizer: TextTokenizer) -> tuple[Any, TextTokenizer]:
    """The model, fitted to the images that it reads; and the tokenizer, which says how.

    Raises:
        ModelError: it reads nothing that attnviz gives it.
    """
    if sizes.reads == "image":
        assert tokenizer.folder is not None
        model, differs = fitted(model, tokenizer.folder)
        return model, replace(tokenizer, differs=differs)
    if sizes.reads == "text" and "input_ids" not in inspect.signature(model.forward).parameters:
        raise reads_no_text(model.config.model_type)
    return model, tokenizer


def _other_function(model: Any, tokenizer: TextTokenizer) -> str:
    """A note where the model runs with another attention function than its config.json names."""
    assert tokenizer.folder is not None
    asked = plain_config(read_config(tokenizer.folder))[1]
    runs = model.config._attn_implementation
    other = asked not in ("", "eager", runs)
    return f"its config.json asks for {asked}; it runs with {runs}" if other else ""


def _tells_types(model: Any) -> bool:
    """Whether a model distinguishes the types of tokens; XLNet does so without an embedding."""
    config = getattr(model.config, "encoder", model.config)
    named = TYPES in inspect.signature(model.forward).parameters or config is not model.config
    return named and getattr(config, "type_vocab_size", 2) > 1


def _engine_class(model: Any, sizes: ModelSizes, *, causal: bool) -> type[HuggingFaceModel]:
    """The engine for what a model can do."""
    kind = sizes.kind
    if sizes.reads == "image":
        return ImageEncoder
    if sizes.reads == "speech":
        return SpeechWriter if model.config.is_encoder_decoder else SpeechModel
    if model.config.model_type in BESIDE:
        return ImageBeside
    if kind in ("cross", "encoder") and reads_images(model):
        return HuggingFaceModel if kind == "cross" else VisionSide
    if kind != "self":
        return PairEncoder if kind == "encoder" else PairDecoder
    if model.get_output_embeddings() is None:
        return OneSequence
    if causal:
        return CausalLM
    return PrefixLM if reads_images(model) and model.can_generate() else MaskedLM


def _attention(model: Any, sizes: ModelSizes) -> "ModelAttention":
    """Seen at work, as configurations leave it open, or name it wrongly."""
    if sizes.reads == "speech":  # it is at work where it hears something
        return ModelAttention(sizes.heads_per_layer, causal=sizes.kind == "decoder", sinks=False)
    inputs, layers = _few_tokens(model, sizes), len(sizes.heads_per_layer)
    if sizes.implicit:
        heads = implicit_heads(model, inputs, layers)
        return ModelAttention(heads, causal=True, sinks=False)
    if sizes.kind == "encoder" and reads_images(model):  # it is at work where there is an image
        return ModelAttention(sizes.heads_per_layer, causal=False, sinks=False)
    return attention_of(model, inputs, layers, sizes.kind)


@dataclass(frozen=True)
class ModelAttention:
    """The attention of a model: heads of each layer (or 0), and whether it is causal.

    `sinks`: its attention function is not transformers' own, and may leave a part of a row out.
    """

    heads_per_layer: tuple[int, ...]
    causal: bool
    sinks: bool


def attention_of(model: Any, inputs: Mapping[str, Any], layers: int, kind: Kind) -> ModelAttention:
    """The attention that a model has, seen at work on a few tokens."""
    heads, looks_ahead, sinks, numbering = [0] * layers, False, False, Layers(model, kind)
    attending = set[nn.Module]()

    def see(module: Any, pattern: Tensor) -> None:
        nonlocal looks_ahead
        layer = numbering.at_work(module)
        if layer is not None and kind != "cross" and pattern.size(1) != pattern.size(2):
            raise ModelError(
                f"the attention that {model.config.model_type} returns is not a matrix over the "
                "tokens",
                "use another model",
            )
        if layer is not None and layer < layers:
            heads[layer] = pattern.size(0)
            attending.add(module)
            looks_ahead |= bool(pattern.triu(1).any())

    def on_call(call: AttentionCall) -> None:
        nonlocal sinks
        sinks |= call.foreign
        see(call.module, _some_pattern(call))

    with torch.inference_mode(), watching(model, on_call, see):
        forward(model.base_model, **inputs)
    if not any(heads):
        raise ModelError(
            f"attnviz cannot find attention in {model.config.model_type}: it has none, or computes "
            "it in a way that attnviz does not know",
            SHOWN_SO if scanning_modules(model) else "use another model",
        )
    without = {layer for layer, n in enumerate(heads) if not n}
    for layer, module in numbering.silent(without, attending):
        raise ModelError(
            f"the attention of layer {layer}, of the class {type(module).__name__}, does not call "
            "the attention function of transformers, so attnviz cannot show it",
            "let it call that function, as the other layers do",
        )
    return ModelAttention(tuple(heads), causal=not looks_ahead, sinks=sinks)


def _some_pattern(call: AttentionCall) -> Tensor:
    """The pattern (h, n_q, n_k); where it is not known, the links that the mask leaves."""
    heads, n_q = call.q.shape[:2]
    try:
        return ProvenRows().of(call, -1, range(heads))(torch.arange(n_q))[0]
    except ModelError:
        try:
            seen = call.visible().float()
        except CannotCompute:  # a mask of another form
            seen = torch.ones(n_q, call.k.size(1))
            seen = seen.tril() if call.causal else seen
        return (seen / seen.sum(dim=-1, keepdim=True)).expand(heads, -1, -1)


def _few_tokens(model: Any, sizes: ModelSizes) -> dict[str, Any]:
    """The arguments of a forward pass over a few tokens."""
    if sizes.reads == "image":
        return few_patches(model)
    padding = getattr(model.config.get_text_config(), "pad_token_id", None)
    ids = [id_ for id_ in range(min(5, sizes.vocab_size)) if id_ != padding][:4]
    text = torch.tensor([ids], device=model.device)
    if model.config.model_type in BESIDE:
        return {"input_ids": text, **blank_beside(model)}
    if sizes.kind == "cross" and reads_images(model):
        width = model.config.get_text_config().hidden_size
        image = torch.zeros((1, 2, width), dtype=model.dtype, device=model.device)
        return {"input_ids": text, "cross_attention_states": image}
    one = sizes.kind == "self" or reads_images(model)
    return {"input_ids": text} | ({} if one else {"decoder_input_ids": text})


def _check_within(wrapper: Any, plain: Any, inputs: dict[str, Any]) -> None:
    """Check that all that PEFT adds is within the model, which is the part that is run."""
    configs = getattr(wrapper, "peft_config", {}).values()
    inside = not any(getattr(config, "alora_invocation_tokens", None) for config in configs)
    if inside and isinstance(wrapper, nn.Module):
        with torch.inference_mode():
            outer, inner = (forward(m, **inputs, use_cache=False)[0] for m in (wrapper, plain))
        inside = agrees(inner, outer)
    if not inside:
        raise ModelError(
            f"what this {type(wrapper).__name__} adds to its {type(plain).__name__} stands "
            "outside of it, where attnviz does not follow",
            "merge it into the model, or give the plain model",
        )


def _load_weights(folder: Path, placement: Placement) -> Any:
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    quantised = _dequantising(folder)
    for model_class, config in _model_classes(transformers_config(folder)):
        if quantised:
            config.quantization_config = quantised
        _check_size(model_class, config, folder)
        linked = linked_gguf(folder) is not None
        given = read_weights(folder, placement.torch_dtype()) if linked else None
        model, report = model_class.from_pretrained(
            None if linked else folder,
            state_dict=given,
            config=config,
            dtype=placement.torch_dtype(),
            # None is transformers' own choice; modules that keep their attention to themselves
            # return it only where it is computed eagerly
            attn_implementation=None if model_class._can_set_attn_implementation() else "eager",
            use_safetensors=not (folder / PICKLED).is_file() or None,
            local_files_only=True,
            ignore_mismatched_sizes=True,  # reported below, by name and shape
            output_loading_info=True,
        )
        if reads_of(config) == "image":  # what is behind the layers is not run
            report["missing_keys"] = {n for n in report["missing_keys"] if "pooler." not in n}
        if not report["missing_keys"]:
            break
    for name, shape, expected in sorted(report["mismatched_keys"]):
        raise other_shape(folder, name, tuple(shape), tuple(expected))
    for name in sorted(report["missing_keys"]):
        raise lacks(folder, name)
    check_finite(dict(model.named_parameters()), folder)
    return model.to(placement.torch_device()).eval().requires_grad_(False)


READ_BY = {
    "gptq": "GPTQModel",
    "awq": "GPTQModel",
    "bitsandbytes": "bitsandbytes",
    "compressed-tensors": "compressed-tensors",
    "torchao": "torchao",
}
"""The packages that run weights as they are quantised."""


def _dequantising(folder: Path) -> dict[str, Any]:
    """The settings with which transformers makes floating point of quantised weights, if it can."""
    settings = read_config(folder).get("quantization_config")
    method = settings.get("quant_method") if isinstance(settings, dict) else None
    if isinstance(settings, dict) and (
        settings.get("load_in_4bit") or settings.get("load_in_8bit")
    ):
        method = "bitsandbytes"
    if not settings or (method == "fp8" and find_spec("accelerate")) or method == "mxfp4":
        return {**settings, "dequantize": True} if settings else {}
    if method == "fp8":
        raise ModelError(
            f"the weights in {str(folder)!r} are quantised (fp8), and it takes the package "
            "accelerate to make floating point of them",
            f"install it{COMMAND}accelerate",
        )
    reader = READ_BY.get(str(method))
    raise ModelError(
        f"the weights in {str(folder)!r} are quantised ({cut(method)}), but attnviz reads only "
        "floating point, mxfp4, fp8 and GGUF",
        f"use the model that they were made from{f' ({reader} reads these)' if reader else ''}",
    )


MOST_BESIDE = 1 << 28
"""Bytes of what a model makes for itself: masks, and sines of positions."""


def _check_size(model_class: Any, config: Any, folder: Path) -> None:
    """Build the model without memory, and check that its files hold what it is to have."""
    try:
        with torch.device("meta"):
            model = model_class(config)
    except Exception as error:  # any: it computes with the settings
        raise not_taken(folder, error) from None
    check_parameters(sum(parameter.numel() for parameter in model.parameters()), folder)
    beside = sum(buffer.nbytes for buffer in model.buffers())
    if beside > MOST_BESIDE:
        raise ModelError(
            f"the config.json in {str(folder)!r} asks for {written(beside)} beside the weights",
            "use the config.json that belongs to these weights",
        )


def _model_classes(config: Any) -> Iterator[tuple[Any, Any]]:
    """The transformers classes that a folder may hold, each with its configuration.

    That is the one that config.json names; where it names none that fits, what `AutoModelFor…`
    would take: a language model if the weights are those of one, else the bare model. GPT-2's
    output is tied to its embedding, so its language model is always whole.
    """
    import transformers

    name = str(next(iter(config.architectures or ()), "GPT2Model"))
    if config.model_type == "gpt2" and name == "GPT2Model":
        name = "GPT2LMHeadModel"
    named = getattr(transformers, name, None)
    for each in (config, config.get_text_config()):
        if getattr(named, "config_class", None) is type(each):
            yield named, each
            return
    pair, masked = transformers.AutoModelForSeq2SeqLM, transformers.AutoModelForMaskedLM
    written = (pair,) if config.is_encoder_decoder else (masked, transformers.AutoModelForCausalLM)
    for auto in (*written, transformers.AutoModel):
        mapped = auto._model_mapping.get(type(config), None)
        first = mapped[0] if isinstance(mapped, tuple) else mapped
        if first is not None:
            yield first, config if first.config_class is type(config) else config.get_text_config()
