"""A model in memory, to run many texts with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attnviz.api.given import check_choices, check_count, check_one_of, check_word, is_torch_module
from attnviz.data.capture import Kind
from attnviz.data.card import NamedHead
from attnviz.errors import UsageError, option
from attnviz.models.catalog import Source
from attnviz.models.known import BUILTIN
from attnviz.models.placement import Device, DType, Engine, Placement
from attnviz.runs.options import TextOptions, Truncation
from attnviz.runs.prepare import load_model as run_load_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from attnviz.api.capture import AttentionCapture
    from attnviz.api.generate import AttentionAnswer
    from attnviz.api.show import Shown
    from attnviz.data.verify import Verified
    from attnviz.data.why import Why, Write
    from attnviz.models.loaded import LoadedModel
    from attnviz.runs.results.calculation import Calculation
    from attnviz.runs.results.result import Result

PairKind: TypeAlias = Literal["cross", "encoder", "decoder"]


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A model in memory, made by `load_model`; each method is the function of its name.

    >>> model = attnviz.load_model("builtin")
    >>> model
    <Model builtin, 5 layers, 20 heads>
    >>> model.capture("a fluffy blue creature")
    <AttentionCapture builtin, 5 tokens, L0H0 to L4H3 (20 heads)>
    """

    _loaded: "LoadedModel"
    _max_memory: int | None = None
    _source: Source | None = None

    def __repr__(self) -> str:
        heads = sum(self.heads_per_layer)
        return f"<Model {self.name}, {len(self.heads_per_layer)} layers, {heads} heads>"

    @property
    def name(self) -> str:
        """The name that it was loaded by."""
        return self._loaded.identity.name

    @property
    def fingerprint(self) -> str | None:
        """Of its weights as they are: names, shapes, types, and fixed samples of every tensor."""
        return self._now()._loaded.identity.fingerprint

    def _now(self) -> "Model":
        """Itself; a model that was in memory may have been trained since it was loaded."""
        if self._source is not None:
            return self
        from attnviz.models.fingerprint import as_it_is_now  # torch

        return replace(self, _loaded=as_it_is_now(self._loaded))

    @property
    def heads_per_layer(self) -> tuple[int, ...]:
        """How many heads each layer has."""
        return self._loaded.identity.heads_per_layer

    @property
    def named_heads(self) -> tuple[NamedHead, ...]:
        """The heads that the model's card names, each with its behaviour."""
        return self._loaded.card.heads

    def capture(self, text: str, **options: Any) -> "AttentionCapture":
        """`attnviz.capture` with this model."""
        from attnviz.api.capture import capture

        return capture(text, self, **options)

    def show(self, text: str, **options: Any) -> "Shown":
        """`attnviz.show` with this model."""
        from attnviz.api.show import show

        return show(text, self, **options)

    def heads(self, text: str | None = None, **options: Any) -> "Result[Any]":
        """`attnviz.heads` with this model."""
        from attnviz.api.heads import heads

        return heads(text, self, **options)

    def predict(self, text: "str | Sequence[str]", **options: Any) -> "Result[Any]":
        """`attnviz.predict` with this model."""
        from attnviz.api.predict import predict

        return predict(text, self, **options)

    def ablate(self, text: "str | Sequence[str]", **options: Any) -> "Result[Any]":
        """`attnviz.ablate` with this model."""
        from attnviz.api.ablate import ablate

        return ablate(text, self, **options)

    def patch(
        self, text: "str | Sequence[str]", source: "str | Sequence[str]", **options: Any
    ) -> "Result[Any]":
        """`attnviz.patch` with this model."""
        from attnviz.api.patch import patch

        return patch(text, source, self, **options)

    def compare(self, *texts: str, **options: Any) -> "Result[Any]":
        """`attnviz.compare` with this model."""
        from attnviz.api.compare import compare

        return compare(*texts, model=self, **options)

    def explain(self, text: str, **options: Any) -> "Calculation[Any]":
        """`attnviz.explain` with this model."""
        from attnviz.api.explain import explain

        return explain(text, self, **options)

    def generate(self, prompt: Any, **options: Any) -> "AttentionAnswer":
        """`attnviz.generate` with this model."""
        from attnviz.api.generate import generate

        return generate(prompt, self, **options)

    def why(self, text: str, **options: Any) -> "Result[Why]":
        """`attnviz.why` with this model."""
        from attnviz.api.why import why

        return why(text, self, **options)

    def verify(self, text: str, **options: Any) -> "Verified":
        """`attnviz.verify` with this model."""
        from attnviz.api.verify import verify

        return verify(text, self, **options)

    def writes(self, text: str, **options: Any) -> "Result[Write]":
        """`attnviz.writes` with this model."""
        from attnviz.api.why import writes

        return writes(text, self, **options)


def load_model(
    model: "str | PathLike[str] | PreTrainedModel | None" = None,
    tokenizer: "PreTrainedTokenizerFast | None" = None,
    *,
    name: str | None = None,
    revision: str | None = None,
    offline: bool = False,
    engine: Engine = "auto",
    device: Device = "auto",
    dtype: DType = "auto",
    kind: Kind | None = None,
    causal: bool = False,
    max_memory: int | None = None,
) -> Model:
    """Load a model once, to run many texts with it; or take one that is in memory already.

    >>> attnviz.load_model("builtin", max_memory=2 << 30).name
    'builtin'

    Args:
        model: `builtin` (None), a hub id such as `gpt2`, or a model's folder; or a transformers
            model in evaluation mode, wrapped by PEFT or not, which stays as and where it is. Then
            only `name`, `kind` and `max_memory` have a meaning. Its fingerprint is taken anew for
            each call, so that it tells the states of a training loop apart.
        tokenizer: that of a model in memory, a fast one.
        name: what to call a model in memory; None is what transformers calls it, the same for two
            of one class. Without `model`, the name of the model to load.
        revision: a branch, tag or commit of a hub model.
        offline: never use the network.
        engine: the from-scratch model for a GPT-2 ("native"), or "transformers".
        device: "cpu", "cuda" or "mps"; "auto" takes a graphics processor where there is one.
        dtype: what it runs in, "bfloat16" or "float16"; "auto" is float32.
        kind: of an encoder-decoder, which attention: "cross" (None), "encoder" or "decoder".
        causal: mask later tokens in `embeddings`, which have no mask of their own.
        max_memory: bytes that may be used; None is 80% of what is free.

    Raises:
        ModelError: it cannot be found, fetched or loaded, or there is no such device.
        UsageError: this engine does not run in this type.
    """
    placement = placement_of(engine, device, dtype, max_memory)
    check_word("revision", revision)
    check_word("name", name)
    check_choices(kind=(kind, PairKind))
    if model is None:
        model, name = name or BUILTIN, None
    if isinstance(model, Model):
        raise UsageError("this model is loaded already", "use it as it is")
    if not isinstance(model, str | PathLike):
        from attnviz.models.huggingface.load import wrap_huggingface

        others = revision, offline, engine == "native"
        check_as_it_is(placement=placement, others=others, instead="name, kind and max_memory")
        return Model(wrap_huggingface(model, tokenizer, kind, name), max_memory)
    if name is not None:
        raise UsageError(f"{model} has a name", f"leave {option('name')} out")
    if tokenizer is not None:
        raise UsageError("a model that is loaded by its name has a tokenizer", "leave yours out")
    source = Source(
        fspath(model),
        revision,
        offline,
        quiet=True,
        kind=kind,
        causal=causal,
        engine=engine,
        placement=placement,
    )
    return Model(run_load_model(source), max_memory, source)


AnyModel: TypeAlias = str | PathLike[str] | Model
"""A model: its name, its folder, or what `load_model` returns."""


def loaded(model: AnyModel, name: str = "model") -> Model:
    """A model that is given by its name or as it is.

    Raises:
        UsageError: it is something else; `name` is the parameter that has it.
        AttnvizError: as `load_model`.
    """
    if isinstance(model, Model):
        return model._now()
    if isinstance(model, str | PathLike):
        return load_model(model)
    hint = "give a name, a folder, or what attnviz.load_model returns"
    if is_torch_module(model):
        hint = "give attnviz.load_model(model, tokenizer)"
    raise UsageError(f"{option(name)} is of type {type(model).__name__}", hint)


def placement_of(engine: Engine, device: Device, dtype: DType, max_memory: int | None) -> Placement:
    """Where a model runs; `engine` is checked beside it.

    Raises:
        UsageError: a value is not known.
    """
    check_one_of("engine", engine, Engine)
    check_one_of("device", device, Device)
    check_one_of("dtype", dtype, DType)
    check_count("max_memory", max_memory, every=True)
    return Placement(device, dtype, max_memory)


def check_as_it_is(*, placement: Placement, others: Sequence[object], instead: str) -> None:
    """Check that nothing is asked of a model in memory that it cannot change.

    Raises:
        UsageError: one of these options is given.
    """
    if any(others) or placement != Placement(max_memory=placement.max_memory):
        raise UsageError("a model in memory is taken as it is", f"give {instead} alone")


def text_options(
    model: Model,
    bos: bool | None,
    special: bool,
    truncate: Truncation | None,
    target: str | None = None,
) -> TextOptions:
    """How a text becomes tokens of a model.

    Raises:
        UsageError: a value is none that the option takes.
    """
    check_word("target", target)
    return TextOptions(bos, special, truncate, target, model._max_memory)
