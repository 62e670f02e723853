"""A model in memory, to run many texts with."""

from collections.abc import Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import attnviz
from attnviz.draw.titles import amount
from attnviz.errors import UsageError, option
from attnviz.kit.option import feature
from attnviz.kit.prepare import load_model as run_load_model
from attnviz.kit.values import Loaded, check_as_it_is, placement_of
from attnviz.models.catalog import Source
from attnviz.models.placement import BUILTIN, DType, Engine
from attnviz.records.capture import ShownKind

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerFast, ProcessorMixin

    from attnviz.records.why import Write


class Model(Loaded):
    """A model in memory, made by `load_model`; each method is the function of its name.

    >>> model = attnviz.load_model("builtin")
    >>> model
    <Model builtin, 5 layers, 20 heads>
    >>> model.capture("a fluffy blue creature")
    <AttentionCapture builtin, 5 tokens, L0H0 to L4H3 (20 heads)>
    """

    def __repr__(self) -> str:
        layers = amount(len(self.heads_per_layer), "layer")
        return f"<Model {self.name}, {layers}, {amount(sum(self.heads_per_layer), 'head')}>"

    def capture(self, text: str = "", **options: Any) -> "attnviz.AttentionCapture":
        """`attnviz.capture` with this model."""
        return attnviz.capture(text, self, **options)

    def show(self, text: str = "", **options: Any) -> "attnviz.Shown":
        """`attnviz.show` with this model."""
        return attnviz.show(text, self, **options)

    def heads(
        self, text: "str | Sequence[str] | None" = None, **options: Any
    ) -> "attnviz.Result[Any]":
        """`attnviz.heads` with this model."""
        return attnviz.heads(text, self, **options)

    def predict(self, text: "str | Sequence[str]", **options: Any) -> "attnviz.Result[Any]":
        """`attnviz.predict` with this model."""
        return attnviz.predict(text, self, **options)

    def ablate(self, text: "str | Sequence[str]", **options: Any) -> "attnviz.Result[Any]":
        """`attnviz.ablate` with this model."""
        return attnviz.ablate(text, self, **options)

    def patch(
        self, text: "str | Sequence[str]", source: "str | Sequence[str]", **options: Any
    ) -> "attnviz.Result[Any]":
        """`attnviz.patch` with this model."""
        return attnviz.patch(text, source, self, **options)

    def circuit(
        self,
        text: "str | Sequence[str]",
        source: "str | Sequence[str] | None" = None,
        **options: Any,
    ) -> "attnviz.Result[Any]":
        """`attnviz.circuit` with this model."""
        return attnviz.circuit(text, source, self, **options)

    def compare(self, *texts: str, **options: Any) -> "attnviz.Result[Any]":
        """`attnviz.compare` with this model."""
        return attnviz.compare(*texts, model=self, **options)

    def explain(self, text: str, **options: Any) -> "attnviz.Calculation[Any]":
        """`attnviz.explain` with this model."""
        return attnviz.explain(text, self, **options)

    def generate(self, prompt: Any, **options: Any) -> "attnviz.AttentionAnswer":
        """`attnviz.generate` with this model."""
        return attnviz.generate(prompt, self, **options)

    def align(self, text: str = "", **options: Any) -> "attnviz.Result[Any]":
        """`attnviz.align` with this model."""
        return attnviz.align(text, self, **options)

    def tokens(self, text: str, **options: Any) -> "attnviz.Result[Any]":
        """`attnviz.tokens` with this model."""
        return attnviz.tokens(text, self, **options)

    def why(self, text: "str | Sequence[str]", **options: Any) -> "attnviz.Result[Any]":
        """`attnviz.why` with this model."""
        return attnviz.why(text, self, **options)

    def verify(self, text: str, **options: Any) -> "attnviz.Verified":
        """`attnviz.verify` with this model."""
        return attnviz.verify(text, self, **options)

    def writes(self, text: str, **options: Any) -> "attnviz.Result[Write]":
        """`attnviz.writes` with this model."""
        return attnviz.writes(text, self, **options)


@feature()
def load_model(
    model: "str | PathLike[str] | PreTrainedModel | None" = None,
    tokenizer: "PreTrainedTokenizerFast | ProcessorMixin | None" = None,
    *,
    name: str | None = None,
    revision: str | None = None,
    offline: bool = False,
    engine: Engine = "auto",
    device: "str | torch.device" = "auto",
    dtype: DType = "auto",
    kind: ShownKind | None = None,
    causal: bool = False,
    max_memory: int | None = None,
) -> Model:
    """Load a model once, to run many texts with it; or take one that is already in memory.

    >>> attnviz.load_model("builtin", max_memory=2 << 30).name
    'builtin'

    Args:
        model: `builtin` (None), a hub id such as `gpt2`, or a model's folder; or a transformers
            model in evaluation mode, wrapped by PEFT or not, which stays as and where it is. Then
            only `name`, `kind` and `max_memory` have an effect. Its fingerprint is computed for
            each call, so that the states of a training loop differ.
        tokenizer: that of a model in memory, a fast one; or its processor, if it reads images.
        name: the name of a model in memory; None is transformers' name, the same for two of one
            class. Without `model`, the name of the model to load.
        revision: a branch, tag or commit of a hub model.
        offline: never use the network.
        engine: the from-scratch model for a GPT-2 ("native"), or "transformers".
        device: "cpu", "cuda:1" or any other of torch; "auto" takes a graphics processor, if any.
        dtype: the type that it runs in, "bfloat16" or "float16"; "auto" is float32.
        kind: the attention of an encoder-decoder: "cross" (None), "encoder" or "decoder";
            "implicit": the implicit attention of Mamba-2 and Gated DeltaNet layers, for `show` and
                `capture`.
        causal: mask later tokens in `embeddings`, which have no mask of their own.
        max_memory: bytes that may be used; None is 80% of the free memory.

    Raises:
        ModelError: it cannot be found, fetched or loaded, or there is no such device.
        UsageError: this engine does not run in this type.
    """
    placement = placement_of(device, dtype, max_memory)
    if model is None:
        model, name = name or BUILTIN, None
    if isinstance(model, Model):
        raise UsageError("this model is already loaded", "use it directly")
    if not isinstance(model, str | PathLike):
        from attnviz.models.huggingface.load import wrap_huggingface

        others = revision, offline, engine == "native"
        check_as_it_is(placement=placement, others=others, instead="name, kind and max_memory")
        return Model(wrap_huggingface(model, tokenizer, kind, name), max_memory)
    if name is not None:
        raise UsageError(f"{option('name')} cannot rename {model}")
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
