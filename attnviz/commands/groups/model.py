"""Options: the model, and how it runs."""

from dataclasses import dataclass

from attnviz.commands import completion
from attnviz.commands.groups.panels import of_model
from attnviz.commands.groups.text import Tokens
from attnviz.commands.session import Session
from attnviz.errors import UsageError, option
from attnviz.models.catalog import Source
from attnviz.models.placement import Device, DType, Engine, Placement, size_of
from attnviz.records.capture import PairKind


@dataclass(frozen=True)
class Fetched:
    """How a model of the hub may be had."""

    revision: str | None = of_model(
        None, "--revision", metavar="REV", help="A branch, tag or commit of a hub model."
    )
    offline: bool = of_model(
        False, "--offline", help="Never use the network; a hub model must be in the cache."
    )


@dataclass(frozen=True)
class Named:
    """The model's name."""

    model: str = of_model(
        "builtin",
        "--model",
        "-m",
        metavar="NAME",
        envvar="ATTNVIZ_MODEL",
        autocompletion=completion.models,
        help="builtin, translator, embeddings, a hub id such as gpt2, or a model's folder.",
    )


@dataclass(frozen=True)
class WhichModel(Fetched, Named):
    """The model, and how it may be had."""


@dataclass(frozen=True)
class ModelRun:
    """Where and how the model runs."""

    engine: Engine = of_model(
        "auto",
        "--engine",
        help="The code that runs a GPT-2: from scratch (native), or transformers, which runs all "
        "other models. auto: native where possible.",
    )
    device: Device = of_model(
        "auto", "--device", help="The device to run on. auto: a GPU if there is one."
    )
    dtype: DType = of_model(
        "auto",
        "--dtype",
        help="The precision of the run. auto: float32. The weights shown are always float32.",
    )
    max_memory: str | None = of_model(
        None,
        "--max-memory",
        metavar="SIZE",
        help="Refuse a run that needs more memory than this: 4GB, 1.5GiB. Default: 80% of the "
        "free memory.",
    )

    @property
    def placement(self) -> Placement:
        """Where and how the model runs, as a record.

        Raises:
            UsageError: the size cannot be read.
        """
        try:
            size = None if self.max_memory is None else size_of(self.max_memory)
            if size == 0:
                raise ValueError
        except ValueError:
            raise UsageError(
                f"{option('max_memory', repr(self.max_memory))} is not a size",
                "give one such as 4GB or 500MB",
            ) from None
        return Placement(self.device, self.dtype, size)


@dataclass(frozen=True)
class Verify:
    """Whether the capture is checked against transformers."""

    verify: bool = of_model(
        False,
        "--verify",
        help="Compare the model's output with and without capture, and the weights with "
        "transformers' own eager attention. A difference that float32 rounding does not explain "
        "ends with exit code 1.",
    )


@dataclass(frozen=True)
class Target:
    """What an encoder-decoder is to have written."""

    target: str | None = of_model(
        None,
        "--target",
        metavar="TEXT",
        help="The output to assume for an encoder-decoder. Default: the output it generates.",
    )


@dataclass(frozen=True)
class Kind:
    """Which attention of an encoder-decoder."""

    kind: PairKind | None = of_model(
        None,
        "--kind",
        help="Which attention of an encoder-decoder to show: from its output to its input "
        "(cross), or within either of them. Default: cross.",
    )


@dataclass(frozen=True)
class Causal:
    """Whether later tokens are masked."""

    causal: bool = of_model(
        False,
        "--causal",
        help="Mask later tokens in --model embeddings and in examples, which otherwise have none.",
    )


RUN = (WhichModel, ModelRun, Verify, Target, Kind, Causal, Tokens)
"""The groups that concern the run of a model, which a saved capture has behind it."""


def source_of(
    session: Session,
    which: WhichModel,
    run: ModelRun | None = None,
    kind: Kind | None = None,
    causal: Causal | None = None,
) -> Source:
    """Which model, and how it is had and run."""
    return Source(
        name=which.model,
        revision=which.revision,
        offline=which.offline,
        quiet=session.quiet,
        kind=kind.kind if kind else None,
        causal=causal.causal if causal else False,
        engine=run.engine if run else "auto",
        placement=(run or ModelRun()).placement,
    )
