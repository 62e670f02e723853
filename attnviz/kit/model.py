"""A loaded model, as the functions of commands take it: by its name, by its folder, or loaded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from attnviz.errors import UsageError, option
from attnviz.kit import options as g
from attnviz.kit.option import check_number
from attnviz.kit.prepare import TextOptions, Truncation
from attnviz.kit.prepare import load_model as run_load_model
from attnviz.kit.session import Session
from attnviz.kit.values import is_torch_module
from attnviz.models.catalog import Source
from attnviz.models.placement import Device, DType, Placement
from attnviz.records.capture import PairKind
from attnviz.records.heads import NamedHead

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

L = TypeVar("L", bound="Loaded")


@dataclass(frozen=True, eq=False, repr=False)
class Loaded:
    """A model in memory, and where it was loaded from; None: it was in memory before."""

    _loaded: "LoadedModel"
    _max_memory: int | None = None
    _source: Source | None = None

    @property
    def name(self) -> str:
        """The name that it was loaded by."""
        return self._loaded.identity.name

    @property
    def fingerprint(self) -> str | None:
        """Of its weights as they are: names, shapes, types, and fixed samples of every tensor."""
        return self._now()._loaded.identity.fingerprint

    def _now(self: L) -> L:
        """Itself; a model that was in memory may have been trained since it was loaded."""
        if self._source is not None:
            return self
        from attnviz.models.weights import as_it_is_now  # torch

        return replace(self, _loaded=as_it_is_now(self._loaded))

    @property
    def heads_per_layer(self) -> tuple[int, ...]:
        """How many heads each layer has."""
        return self._loaded.identity.heads_per_layer

    @property
    def named_heads(self) -> tuple[NamedHead, ...]:
        """The heads that the model's card names, each with its behaviour."""
        return self._loaded.card.heads


AnyModel: TypeAlias = str | PathLike[str] | Loaded
"""A model: its name, its folder, or what `load_model` returns."""


def loaded(model: AnyModel, name: str = "model", *, causal: bool = False) -> Loaded:
    """A model that is given by its name or as it is.

    Raises:
        UsageError: it is something else; `name` is the parameter that has it.
        AttnvizError: as `load_model`.
    """
    if isinstance(model, Loaded):
        return model._now()
    if isinstance(model, str | PathLike):
        source = Source(fspath(model), quiet=True, causal=causal)
        return Loaded(run_load_model(source), None, source)
    hint = "give a name, a folder, or what attnviz.load_model returns"
    if is_torch_module(model):
        hint = "give attnviz.load_model(model, tokenizer)"
    raise UsageError(f"{option(name)} is of type {type(model).__name__}", hint)


def model_of(
    session: Session,
    which: g.WhichModel,
    run: g.ModelRun,
    kind: PairKind | None = None,
    *,
    causal: bool = False,
) -> Loaded:
    """The model as functions of Python take it."""
    source = g.source_of(session, which, run, kind, causal=causal)
    return Loaded(session.load(source), source.placement.max_memory, source)


def placement_of(device: Device, dtype: DType, max_memory: int | None) -> Placement:
    """Where a model runs.

    Raises:
        UsageError: the memory is no number of bytes.
    """
    if max_memory is not None:
        check_number("max_memory", max_memory, 1, whole=True)
    return Placement(device, dtype, max_memory)


def check_as_it_is(*, placement: Placement, others: Sequence[object], instead: str) -> None:
    """Check that nothing is asked of a model in memory that it cannot change.

    Raises:
        UsageError: one of these options is given.
    """
    if any(others) or placement != Placement(max_memory=placement.max_memory):
        raise UsageError("a model in memory is taken as it is", f"give {instead} alone")


def text_options(
    model: Loaded,
    bos: bool | None,
    special: bool,
    truncate: Truncation | None,
    target: str | None = None,
) -> TextOptions:
    """How a text becomes tokens of a model."""
    return TextOptions(bos, special, truncate, target, model._max_memory)
