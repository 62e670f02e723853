"""`attnviz.heads`: each head in numbers, and the role that follows."""

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attnviz.commands.heads.circuits import circuits_of
from attnviz.commands.heads.labels import LabelledText, LabelRun, labelled, read_labels
from attnviz.commands.heads.retrieval import Needles, measure_retrieval
from attnviz.commands.heads.rows import of_circuits, of_labels, of_report, of_retrieval
from attnviz.errors import InputError, UsageError, option
from attnviz.inputs.text import Stdin
from attnviz.kit.model import AnyModel, Loaded, loaded, text_options
from attnviz.kit.prepare import HeadOptions, TextOptions, Truncation
from attnviz.kit.result import Result
from attnviz.kit.scores import Probe, narrow, score_capture, score_probe, score_text
from attnviz.kit.values import (
    FilePath,
    HeadNames,
    Names,
    check_count,
    check_one_of,
    check_text,
    recorded,
    transforms,
    which_heads,
)
from attnviz.records.metrics import HeadReport, MetricName, RoleName
from attnviz.records.transforms import Transforms

Convention: TypeAlias = Literal["second", "whole"]

if TYPE_CHECKING:
    from attnviz.commands.show.capture import AttentionCapture


@recorded
def heads(
    text: "str | AttentionCapture | None" = None,
    model: AnyModel = "builtin",
    *,
    probe: bool = False,
    retrieval: bool = False,
    circuits: bool = False,
    labels: "FilePath | Iterable[Mapping[str, Any]] | None" = None,
    convention: Convention = "second",
    length: int = Probe.length,
    samples: int = Probe.samples,
    seed: int = Probe.seed,
    heads: HeadNames | None = None,
    layers: HeadNames | None = None,
    weighted: bool = False,
    chars: bool | None = None,
    words: bool = False,
    drop_sink: bool = False,
    drop_key: Names = (),
    sort: MetricName | None = None,
    role: RoleName | None = None,
    top: int | None = None,
    bos: bool | None = None,
    special: bool = False,
    truncate: Truncation | None = None,
    target: str | None = None,
) -> Result[Any]:
    """Score every head on a text or on the standard probe, and name its role.

    >>> attnviz.heads(sort="induction", top=1).rows[0]["role"]
    'induction'
    >>> links = [{"text": "a fluffy blue creature", "links": [["creature", ["fluffy", "blue"]]]}]
    >>> best = attnviz.heads(labels=links, heads="L3H2,L0H0").rows[0]
    >>> best["layer"], best["head"], round(best["mass"], 2)
    (3, 2, 0.85)

    Args:
        text: a text or a capture; None measures on the probe, a random sequence, repeated.
        model: a name as for `load_model`, or a loaded model.
        probe: measure on the probe.
        retrieval: measure instead which heads copy from a long text.
        circuits: read instead off the weights which heads copy and compose.
        labels: score the heads instead on links that are known to be right: a file of JSON lines,
            or objects with a `text` and its `links`, `[[query, [keys]], …]`.
        convention: of the probe: means over the rows of the second copy, or whole diagonals.
        length, samples, seed: of the probe: tokens, sequences, and where drawing begins.
        heads, layers: as for `attnviz.capture`.
        weighted, chars, words, drop_sink, drop_key: transforms, as for `attnviz.show`.
        sort: by this metric, the largest first; None: by layer and head.
        role: only heads that have it.
        top: how many heads; None: all.
        bos, special, truncate, target: as for `attnviz.capture`.

    Returns:
        a result whose record is a `HeadReport`, `Retrieval`, `Circuits` or `LabelReport`.

    Raises:
        AttnvizError: the text, the model or an option cannot be used; the message says
            what to do instead.
    """
    check_count("top", top, every=True)
    check_count("length", length, 2)
    check_count("samples", samples)
    check_count("seed", seed, 0)
    check_one_of("convention", convention, Convention)
    if sort is not None:
        check_one_of("sort", sort, MetricName)
    if role is not None:
        check_one_of("role", role, RoleName)
    instead = [retrieval, circuits, labels is not None]
    if sum((text is not None, probe, *instead)) > 1:
        raise UsageError("these are several measurements", "ask for one of them")
    model = loaded(model)
    options, which = (
        text_options(model, bos, special, truncate, target),
        which_heads(layers, heads),
    )
    if retrieval:
        return of_retrieval(measure_retrieval(model._loaded, Needles(), options), top)
    if circuits:
        return of_circuits(circuits_of(model._loaded), top)
    if labels is not None:
        run = LabelRun(model._loaded, options, which)
        for labelled_text in _labelled(labels):
            run.add(labelled_text)
        return of_labels(run.report(), top)
    if text is None:
        drawn = Probe(length, samples, seed, whole=convention == "whole")
        report = score_probe(model._loaded, drawn, options, which)
    else:
        done = transforms(
            weighted=weighted,
            chars=chars,
            words=words,
            drop_sink=drop_sink,
            drop_key=drop_key,
        )
        report = _over(text, model, options, which, done)
    return of_report(narrow(report, sort, role, top))


def _over(
    text: "str | AttentionCapture",
    model: Loaded,
    options: TextOptions,
    which: HeadOptions,
    transforms: Transforms,
) -> HeadReport:
    if not isinstance(text, str) and hasattr(text, "record"):
        return score_capture(text.record, which, transforms)
    check_text(text)
    return score_text(model._loaded, str(text), options, which, transforms)


def _labelled(labels: "FilePath | Iterable[Mapping[str, Any]]") -> Iterable[LabelledText]:
    """The labelled texts, the first wrong one of which is an error."""
    if isinstance(labels, str | PathLike):
        for each in read_labels(Path(labels), Stdin(None, False)):
            if isinstance(each, InputError):
                raise each
            yield each
    elif not isinstance(labels, Iterable):
        hint = "give a file, or objects with a text and its links"
        raise UsageError(f"{option('labels')} is of type {type(labels).__name__}", hint)
    else:
        for number, content in enumerate(labels, start=1):
            yield labelled(number, content)
