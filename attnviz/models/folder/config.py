"""A folder's config.json, with its sizes checked, and its card."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attnviz.errors import ModelError, UsageError, option, readable, series
from attnviz.models.folder.files import CONFIG, cut, plain_config, read_config, read_object, reason
from attnviz.models.folder.llama import UnknownSettingError, llama_config
from attnviz.records.capture import Kind, ShownKind
from attnviz.records.heads import (
    LONGEST_NAME,
    Figure,
    Head,
    ModelCard,
    NamedHead,
    ReadHead,
    ReadOut,
    Reads,
    every_head,
)
from attnviz.records.rows import (
    MOST_ENTRIES,
    Field,
    Fields,
    JsonObject,
    check,
    check_lengths,
    counted,
    if_any,
    is_count,
    list_of,
    read_as,
)


@dataclass(frozen=True)
class ModelSizes:
    """The facts that a capture needs of a model of any architecture.

    `heads_per_layer`: those of `kind`, one of an encoder-decoder's three attentions.
    `context`: the largest number of tokens that the model takes. `bos_id`: its beginning token.
    `implicit`: its recurrent layers are asked for, whose heads are seen at work. `reads`: its
    only input.
    """

    architecture: str
    heads_per_layer: tuple[int, ...]
    vocab_size: int
    context: int
    bos_id: int | None
    kind: Kind = "self"
    implicit: bool = False
    reads: Reads = "text"


def token_id(value: object, vocab_size: int) -> int | None:
    """An id of the vocabulary, else None.

    A smaller GPT-2's configuration often keeps 50256, the beginning token of the first GPT-2.
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < vocab_size:
        return value
    return None


def _of_pair(kind: Kind | ShownKind | None) -> Kind:
    if kind == "implicit":
        raise lacks_implicit()
    return "cross" if kind is None or kind == "self" else kind


def check_kind(kind: Kind | ShownKind | None) -> None:
    """Check the kind of attention of a model that is neither an encoder-decoder nor implicit."""
    if kind == "implicit":
        raise lacks_implicit()
    if kind not in (None, "self"):
        raise UsageError(f"{option('kind', kind)} is for encoder-decoders, which this model is not")


SHOWN_SO = f"show it with {option('kind', 'implicit')}"
"""The advice for a model whose only attention is implicit."""


def lacks_implicit() -> UsageError:
    """The error for a model without implicit attention."""
    return UsageError(
        f"{option('kind', 'implicit')} is for models with Mamba-2 or Gated DeltaNet layers, but "
        "this model has none that attnviz knows"
    )


SIZES = {"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}
"""The sizes of the first GPT-2, which old files leave out."""
# The settings that gpt.py computes; it must not run a folder with any other.
COMPUTED: Mapping[str, tuple[Any, ...]] = {
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "tie_word_embeddings": (True,),
    "add_cross_attention": (False,),
    "reorder_and_upcast_attn": (False,),
}


@dataclass(frozen=True)
class GPTConfig:
    """The sizes of a model; the names are those of GPT-2's config.json."""

    vocab_size: int
    n_positions: int
    n_embd: int
    n_layer: int
    n_head: int
    n_inner: int | None = None
    layer_norm_epsilon: float = 1e-5

    @property
    def d_mlp(self) -> int:
        """Width of the hidden layer of the MLP; four times d_model unless given."""
        return self.n_inner or 4 * self.n_embd

    @property
    def parameters(self) -> int:
        """The number of the model's parameters, counted without building it."""
        d, mlp = self.n_embd, self.d_mlp
        layer = 4 * d * d + 2 * d * mlp + 9 * d + mlp
        return (self.vocab_size + self.n_positions + 2) * d + self.n_layer * layer

    @property
    def heads_per_layer(self) -> tuple[int, ...]:
        return (self.n_head,) * self.n_layer


@dataclass(frozen=True)
class FolderConfig:
    """A folder's config.json: sizes, which tokens begin and end a text, and the whole as `raw`."""

    sizes: GPTConfig
    bos_id: int | None
    ends: frozenset[int]
    raw: Mapping[str, Any]


@dataclass(frozen=True)
class Seq2SeqConfig:
    """The sizes of an encoder-decoder; `n_positions` bounds each of the two sequences."""

    vocab_size: int
    n_positions: int
    n_embd: int
    n_encoder: int
    n_decoder: int
    n_head: int
    n_inner: int
    layer_norm_epsilon: float = 1e-5

    @property
    def parameters(self) -> int:
        d, mlp = self.n_embd, self.n_inner
        attention, rest = 4 * d * d + 4 * d, 2 * d * mlp + mlp + d + 4 * d
        encoder, decoder = attention + rest, 2 * attention + rest + 2 * d
        layers = self.n_encoder * encoder + self.n_decoder * decoder
        return (self.vocab_size + 2 * self.n_positions + 4) * d + layers


SEQ2SEQ = "attnviz-seq2seq"


def seq2seq_config(folder: Path) -> Seq2SeqConfig:
    """Read and check the configuration of a from-scratch encoder-decoder."""
    raw = read_config(folder)
    sizes: dict[str, Any] = {item.name: raw.get(item.name) for item in fields(Seq2SeqConfig)}
    _check_sizes(folder, sizes)
    return Seq2SeqConfig(**sizes)


def folder_sizes(folder: Path, kind: Kind | ShownKind | None = None) -> ModelSizes:
    """The sizes of a folder's model, for any architecture; an encoder-decoder's for one `kind`."""
    architecture = read_config(folder).get("model_type")
    if architecture == SEQ2SEQ:
        pair, kind = seq2seq_config(folder), _of_pair(kind)
        heads = (pair.n_head,) * (pair.n_encoder if kind == "encoder" else pair.n_decoder)
        return ModelSizes(SEQ2SEQ, heads, pair.vocab_size, pair.n_positions, None, kind)
    if architecture != "gpt2":
        with suppress(UnknownSettingError):
            if kind in (None, "self") and (own := llama_config(folder)):
                heads, context = own.heads_per_layer, own.n_positions
                return ModelSizes(own.architecture, heads, own.vocab_size, context, own.bos_id)
        return sizes_of(folder, kind)
    check_kind(kind)
    config = gpt2_config(folder)
    gpt, bos = config.sizes, config.bos_id
    return ModelSizes("gpt2", gpt.heads_per_layer, gpt.vocab_size, gpt.n_positions, bos)


def gpt2_config(folder: Path) -> FolderConfig:
    """Read and check the configuration of a GPT-2 folder."""
    raw = read_config(folder)
    architecture = raw.get("model_type")
    if architecture != "gpt2":
        raise ModelError(
            f"the model in {str(folder)!r} has the architecture {architecture!r}, not gpt2",
            f"leave {option('engine')} out",
        )
    sizes: dict[str, Any] = {name: raw.get(name, default) for name, default in SIZES.items()}
    sizes["layer_norm_epsilon"] = raw.get("layer_norm_epsilon", 1e-5)
    _check_sizes(folder, sizes)
    inner = raw.get("n_inner")
    if inner is not None and (isinstance(inner, bool) or not isinstance(inner, int) or inner < 1):
        raise _wrong(folder, "n_inner", inner, "null or a whole number from 1")
    bos = token_id(raw.get("bos_token_id"), sizes["vocab_size"])
    end = token_id(raw.get("eos_token_id"), sizes["vocab_size"])
    ends = frozenset(() if end is None else (end,))
    return FolderConfig(GPTConfig(**sizes, n_inner=inner), bos, ends, raw)


def _check_sizes(folder: Path, sizes: Mapping[str, Any]) -> None:
    for name, value in sizes.items():
        if name == "layer_norm_epsilon":
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise _wrong(folder, name, value, "a number")
        elif isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise _wrong(folder, name, value, "a whole number from 1")
    width, heads = sizes["n_embd"], sizes["n_head"]
    if width % heads:
        raise _wrong(folder, "n_head", heads, f"a divisor of n_embd {width}")


def check_computable(config: FolderConfig, folder: Path) -> None:
    """Check that the from-scratch model computes exactly this kind of GPT-2."""
    for name, values in COMPUTED.items():
        value = config.raw.get(name, values[0])
        if value not in values:
            wanted = series([*map(repr, values)], "or")
            raise _wrong(folder, name, value, f"{wanted} for the from-scratch model")


def _wrong(folder: Path, name: str, value: object, wanted: str) -> ModelError:
    return ModelError(
        f"in {str(folder / CONFIG)!r} {name} is {value!r}, but must be {wanted}",
        "use the config.json that the model was saved with",
    )


# The configuration of any architecture, as transformers reads it, under common names.

NO_LIMIT = 1 << 20
"""The context of a model with relative positions, which only memory limits."""


BEHIND_PADDING = (
    *("roberta", "roberta-prelayernorm", "camembert", "xlm-roberta", "xlm-roberta-xl", "xmod"),
    *("data2vec-text", "ibert", "mpnet", "longformer", "esm", "luke", "markuplm", "lilt"),
    "prophetnet",
)
"""Models whose positions begin after the padding token's id."""


def transformers_config(folder: Path) -> Any:
    """config.json through transformers; nothing is fetched and no remote code is run."""
    from transformers import AutoConfig
    from transformers.utils import logging

    logging.set_verbosity_error()  # its remarks on settings do not concern attention
    raw = read_config(folder)
    _check_known(raw, folder)
    local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    plain, asked = plain_config(raw)
    try:
        if not asked:
            return AutoConfig.from_pretrained(folder, **local)
        with TemporaryDirectory(prefix="attnviz-") as written:
            (Path(written) / CONFIG).write_text(json.dumps(plain))
            return AutoConfig.from_pretrained(written, **local)
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
    if architecture is None and (folder.absolute().parent / "modules.json").is_file():
        raise ModelError(
            f"{where!r} is a part of a sentence-transformers model", "give the folder above it"
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


def sizes_of(folder: Path, kind: Kind | ShownKind | None = None) -> ModelSizes:
    """The sizes of a folder's model, for one kind of attention if it has several."""
    from attnviz.models.folder.reading import reads_of

    config = transformers_config(folder)
    text, implicit, reads = config.get_text_config(), kind == "implicit", reads_of(config)
    if config.is_encoder_decoder:
        kind = _of_pair(kind)
        # BART names them for both sides, T5 only the decoder's layers
        side = "encoder" if kind == "encoder" else "decoder"
        names = [f"{side}_attention_heads", f"{side}_num_attention_heads", "num_attention_heads"]
        part = getattr(config, side, None) or text  # two models in one (BERT2BERT)
        heads = _first_of(part, names)
        names = [f"{side}_layers", f"num_{side}_layers", f"{side}_num_hidden_layers"]
        layers = _first_of(part, [*names, "num_hidden_layers"])
    else:
        vision = getattr(config, "vision_config", None) if kind == "encoder" else None
        sights = ["cross_attention_layers", "encoder_hidden_size"]  # of an image's tokens
        crosses = kind == "cross" and hasattr(config, "vision_config") and _first_of(text, sights)
        if not (implicit or crosses or vision):
            check_kind(kind)
        heads, layers = (_first_of(vision or text, names) for names in (HEADS, LAYERS))
        heads = 1 if implicit else heads
    if not (isinstance(heads, int) and isinstance(layers, int) and heads > 0 < layers):
        raise ModelError(
            f"the model in {str(folder)!r} ({config.model_type}) has no attention heads to show",
            "use a model with attention" if config.model_type != "mamba2" else SHOWN_SO,
        )
    writes = reads == "text" or config.is_encoder_decoder
    vocabulary = getattr(text, "vocab_size", 0) if writes else 0
    return ModelSizes(
        architecture=config.model_type,
        heads_per_layer=(heads,) * layers,
        vocab_size=vocabulary,
        context=_context(text),
        bos_id=token_id(getattr(text, "bos_token_id", None), vocabulary),
        kind="self" if kind is None or kind == "implicit" else kind,
        implicit=implicit,
        reads=reads,
    )


HEADS, LAYERS = ("num_attention_heads", "num_heads"), ("num_hidden_layers", "depth")
"""The names of sizes in configurations; some vision sides have the later ones (Qwen-VL)."""


def _first_of(config: Any, names: Sequence[str]) -> Any:
    """The first of these settings that a configuration has."""
    return next((value for name in names if (value := getattr(config, name, None))), None)


def is_sighted(architecture: str) -> bool:
    """Whether models of this type read images beside a text."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as SIGHTED,
    )

    return architecture in SIGHTED


def _context(config: Any) -> int:
    names = ("max_encoder_position_embeddings", "max_target_positions", "max_position_embeddings")
    longest = next((size for name in names if (size := getattr(config, name, None))), None)
    if not isinstance(longest, int) or longest < 1:
        return NO_LIMIT
    if config.model_type in BEHIND_PADDING:
        return longest - int(config.pad_token_id) - 1
    return longest


# A folder's card.json, as the training writes it.

CARD = "card.json"
CARD_SCHEMA = 1
FIGURE = Fields[Figure](
    "FigureObject",
    "",
    (
        Field("behaviour", str),
        Field("measure", str),
        Field("held_out", int | float, "", lambda figure: figure.value),
        Field("bar", int | float | None),
        Field("n", int),
        if_any("texts", str),
    ),
)
CARD_HEAD = Fields[NamedHead](
    "CardHead",
    "",
    (Field("behaviour", str), Field("head", str, "", lambda e: str(e.head)), Field("title", str)),
)
READ_HEAD = Fields[ReadHead](
    "ReadHead",
    "A read-out's accuracy around a head: on the stream before it, its addition, the sum.",
    (
        Field("head", str, "", lambda each: str(each.head)),
        Field("before", int | float),
        Field("added", int | float),
        Field("after", int | float),
    ),
)
READOUT = Fields[ReadOut](
    "ReadOut",
    "Linear maps that read classes out of a model's vectors, measured on held-out words.",
    (
        Field("name", str),
        Field("behaviour", str),
        Field("classes", list[str]),
        Field("n", int),
        Field("chance", int | float),
        Field("token", int | float, "The accuracy of a read-out from only the token."),
        Field("heads", list_of(READ_HEAD)),
    ),
)
MODEL_CARD = Fields[ModelCard](
    "CardObject",
    "",
    (
        Field("schema", int, "", lambda _: CARD_SCHEMA),
        Field("name", str),
        Field("description", str),
        Field("bos", bool),
        Field("heads", list_of(CARD_HEAD)),
        Field("figures", list_of(FIGURE)),
        if_any("loss_limit", int | float | None),
        if_any("chance_cosine", int | float),
        if_any("retrieval", list[str], "", lambda c: [*map(str, c.retrieval)]),
        if_any("stop", list[str], "", lambda c: list(c.stop)),
        if_any("readouts", list_of(READOUT)),
    ),
)


def read_card(folder: Path, name: str, heads_per_layer: Sequence[int] | None) -> ModelCard:
    """Read the card of a model folder; an empty one where the folder has no card of this program.

    `heads_per_layer`: None for another attention of the model than that whose heads it names.
    """
    path = folder / CARD
    raw = read_object(path) if path.is_file() else {}
    schema = raw.get("schema")
    if schema is True or schema != CARD_SCHEMA:  # another program may use the same file name
        return ModelCard(name, "", bos=False)
    try:
        card = _card_from(raw)
    except ValueError as error:
        raise ModelError(
            f"the card {str(path)!r} cannot be read ({error})", "write it again or remove it"
        ) from None
    if heads_per_layer is None:
        return replace(card, heads=(), retrieval=(), readouts=())
    known = every_head(heads_per_layer)
    read = (each.head for readout in card.readouts for each in readout.heads)
    for head in (*(named.head for named in card.heads), *card.retrieval, *read):
        if head not in known:
            raise ModelError(
                f"the card {str(path)!r} names the head {head}, which the model lacks",
                "use the card that belongs to this model, or remove it",
            )
    return card


def _card_from(written: object) -> ModelCard:
    """A model's card, as `MODEL_CARD` writes it; its heads may be those of another model."""
    facts = read_as(MODEL_CARD, written, "card")
    heads, figures = facts["heads"], facts["figures"]
    retrieval, stop = facts.get("retrieval", []), facts.get("stop", [])
    readouts = facts.get("readouts", [])
    for entries in (heads, figures, retrieval, stop, readouts):
        check(len(entries) <= MOST_ENTRIES, "the length of a list")
    for entry in (facts, *heads, *figures):
        check_lengths(entry)
    check(all(0 < len(text) <= LONGEST_NAME for text in stop), "stop")
    return ModelCard(
        **{name: facts[name] for name in ("name", "description", "bos")},
        heads=tuple(
            NamedHead(entry["behaviour"], _head(entry["head"]), entry["title"]) for entry in heads
        ),
        figures=tuple(map(_figure, figures)),
        loss_limit=counted(facts.get("loss_limit"), "loss_limit"),
        retrieval=tuple(map(_head, retrieval)),
        stop=tuple(stop),
        chance_cosine=_share(facts.get("chance_cosine"), "chance_cosine"),
        readouts=tuple(map(_readout, readouts)),
    )


def _readout(entry: JsonObject) -> ReadOut:
    classes, heads = entry["classes"], entry["heads"]
    check(1 < len(classes) == len(set(classes)) <= MOST_ENTRIES, "the classes of a read-out")
    check(len(heads) <= MOST_ENTRIES and is_count(entry["n"]), "a read-out")
    check(all(len(each) <= LONGEST_NAME for each in classes), "the classes of a read-out")
    check_lengths(entry)
    around = []
    for each in heads:
        shares = {name: _share(each[name], name) for name in ("before", "added", "after")}
        around.append(ReadHead(_head(each["head"]), **shares))
    return ReadOut(
        name=readable(entry["name"]),
        behaviour=entry["behaviour"],
        classes=tuple(map(readable, classes)),
        n=entry["n"],
        chance=_share(entry["chance"], "chance"),
        token=_share(entry["token"], "token"),
        heads=tuple(around),
    )


def _share(value: Any, name: str) -> Any:
    """A number from 0 to 1, or None."""
    number = counted(value, name)
    check(number is None or 0 <= number <= 1, name)
    return number


def _head(name: str) -> Head:
    named = re.fullmatch(r"L([0-9]{1,4})H([0-9]{1,4})", name)
    if named is None:
        raise ValueError(f"{readable(name)!r} is no head")
    return Head(int(named[1]), int(named[2]))


def _figure(entry: JsonObject) -> Figure:
    check(is_count(entry["n"]), "n")
    return Figure(
        behaviour=entry["behaviour"],
        measure=entry["measure"],
        value=counted(entry["held_out"], "held_out"),
        bar=counted(entry["bar"], "bar"),
        n=entry["n"],
        texts=entry.get("texts", ""),
    )
