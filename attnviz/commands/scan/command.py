"""`attnviz scan`: what every head does over a whole corpus."""

import inspect
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from attnviz.commands.scan.estimate import ONE_TRIAL, Estimated, estimated_alone
from attnviz.commands.scan.executors import HowRun
from attnviz.commands.scan.plan import ScanPlan, make_plan
from attnviz.commands.scan.run import Watcher, run_scan
from attnviz.commands.scan.shown import Watching, estimate_lines
from attnviz.corpus.folder import Request, Store, asked_by
from attnviz.corpus.places import Split
from attnviz.corpus.result import ScanAtlas, read_atlas, read_scan, size_of
from attnviz.corpus.shards import check_field, corpus_files, spool
from attnviz.corpus.tables import import_parquet
from attnviz.draw.titles import amount, model_notes
from attnviz.errors import UsageError, option, readable
from attnviz.kit import completion
from attnviz.kit import options as g
from attnviz.kit.lines import say
from attnviz.kit.option import Call, Cli, command_of, feature, finished_by, panel_option, positional
from attnviz.kit.session import Session
from attnviz.kit.values import (
    AnyModel,
    FilePath,
    check_as_it_is,
    loaded,
    path_of,
    placement_of,
    which_heads,
)
from attnviz.kit.write import make_folder
from attnviz.models.catalog import Source
from attnviz.models.folder.config import is_sighted
from attnviz.models.folder.processors import PROCESSORS
from attnviz.models.placement import DType, Engine
from attnviz.records.capture import Kind

if TYPE_CHECKING:
    import torch

    from attnviz.models.loaded import LoadedModel

corpus_option = partial(panel_option, "The corpus")
scan_option = partial(panel_option, "The scan")
SplitInto: TypeAlias = Annotated[
    Split, corpus_option("--split", help="The unit that counts as a document in a text file.")
]
TextField: TypeAlias = Annotated[
    str,
    Cli(str | None, default=None),
    corpus_option(
        "--field",
        metavar="NAME",
        help="The field of JSON lines, or the column of Parquet, that holds the text.",
        show_default=Request.key,
    ),
]
WindowLength: TypeAlias = Annotated[
    int,
    corpus_option(
        "--length",
        metavar="N",
        min=8,
        help="The most tokens of a window; at most the model's context.",
    ),
]
MaxDocs: TypeAlias = Annotated[
    int | None,
    corpus_option("--max-docs", metavar="N", min=1, help="Read only the first N documents."),
]
WindowSeed: TypeAlias = Annotated[
    int,
    corpus_option(
        "--seed",
        metavar="N",
        min=0,
        help="The random seed that chooses the windows for examples and tokens.",
    ),
]
Workers: TypeAlias = Annotated[
    int | None,
    scan_option(
        "--workers",
        metavar="N",
        min=1,
        max=1024,
        help="The number of processes. Default: one for each processor.",
    ),
]
RayAddress: TypeAlias = Annotated[
    str | None,
    scan_option(
        "--ray",
        metavar="ADDRESS",
        help="Run on a Ray cluster: local, auto, or the address of its head.",
    ),
]
MaxBad: TypeAlias = Annotated[
    float,
    scan_option(
        "--max-bad",
        metavar="PERCENT",
        min=0.0,
        max=100.0,
        help="Stop if more than this share of the documents cannot be read.",
    ),
]


def _carried_out(planned: tuple[ScanPlan, HowRun], options: Mapping[str, Any]) -> ScanAtlas:
    """The scan's result; the command line may count a part of it, and shows its progress."""
    plan, how = planned
    run_scan(plan, how, Watcher())
    return read_scan(path_of("output", options["output"]))


@feature()
@finished_by(_carried_out)
def scan(
    *corpus: FilePath,
    output: FilePath,
    model: AnyModel = "builtin",
    split: SplitInto = Request.split,
    field: TextField = Request.key,
    length: WindowLength = Request.length,
    max_docs: MaxDocs = None,
    seed: WindowSeed = Request.seed,
    heads: g.HeadsNamed = None,
    layers: g.LayersNamed = None,
    workers: Workers = None,
    ray: RayAddress = None,
    max_bad: MaxBad = HowRun.max_bad,
    revision: str | None = None,
    offline: bool = False,
    engine: Engine = "auto",
    device: "str | torch.device" = "auto",
    dtype: DType = "auto",
    kind: Kind | None = None,
    max_memory: int | None = None,
) -> tuple[ScanPlan, HowRun]:
    """Measure every head over a corpus; see docs/scan.md.

    Scanning into the same folder again continues where it stopped. A script needs
    `if __name__ == "__main__":`, as workers are processes that import it.

    >>> with open("words.txt", "w") as file:
    ...     print("the cat sat on the mat and the cat ran", file=file)
    >>> attnviz.scan("words.txt", output="scanned", workers=1)
    <ScanAtlas of builtin: 20 heads, 1 document, 11 tokens>

    Args:
        corpus: files, folders, patterns or URLs.
        output: the folder of the result, or its URL.
        model: a name as for `load_model`; or a loaded model, which one worker runs, in this
            process.
        revision, offline, engine, device, dtype, kind: as for `load_model`.
        max_memory: bytes that a worker may use; None is a share of what is free.
    """
    import_parquet()
    store = Store.at(path_of("output", output))
    paths = tuple(path_of("corpus", path) for path in corpus)
    if field != Request.key:
        check_field(corpus_files(paths, store.where), field)
    which = which_heads(None, layers, heads)
    request = Request(
        paths, split=split, key=field, length=length, documents=max_docs, seed=seed, heads=which
    )
    placement = placement_of(device, dtype, max_memory)
    source = Source(
        revision=revision, offline=offline, kind=kind, engine=engine, placement=placement
    )
    source, in_memory = _model(model, source)
    return make_plan(store, request, source, in_memory), HowRun(workers, ray, max_bad=max_bad)


def _model(model: AnyModel | Source, source: Source) -> "tuple[Source, LoadedModel | None]":
    """This model as the source says; and the model itself, where it is in memory."""
    if isinstance(model, Source):
        return model, None
    if isinstance(model, str | PathLike):
        return replace(source, name=path_of("model", model), quiet=True), None
    from attnviz.models.weights import with_all_bytes  # torch

    in_memory = with_all_bytes(loaded(model)._loaded)
    others = source.revision, source.offline, source.kind, source.engine != "auto"
    check_as_it_is(placement=source.placement, others=others, instead="max_memory")
    identity = in_memory.identity
    return Source(identity.name, identity.revision, placement=source.placement), in_memory


def estimate_scan(*corpus: FilePath, output: FilePath, **options: Any) -> Estimated:
    """Estimate what `attnviz.scan` takes with the same arguments; nothing is written.

    A few windows from all over the corpus are run. What the folder has counted already is left
    out.

    >>> with open("words.txt", "w") as file:
    ...     print("the cat sat on the mat and the cat ran", file=file)
    >>> estimate = attnviz.estimate_scan("words.txt", output="nowhere", workers=1)
    >>> estimate.documents, estimate.windows, estimate.tokens
    (1, 1, 11)

    Args:
        corpus, output, options: those of `scan`.

    Returns:
        documents, windows, tokens, seconds, bytes of memory and of disk.

    Raises:
        AttnvizError: an argument cannot be used; the message says what to do instead.
    """
    plan, how = feature()(inspect.unwrap(scan))(*corpus, output=output, **options)
    return estimated_alone(plan, how)


EXAMPLES = """
attnviz scan sample:creatures -o scanned
attnviz scan sample:creatures -o scanned --dry-run
attnviz scan reviews.jsonl.gz --field body --model gpt2 --workers 2 -o scanned
attnviz atlas scanned
"""
SHORT_HELP = "output split length max_docs model layers heads workers quiet"

CorpusPlaces: TypeAlias = Annotated[
    list[str] | None,
    positional(
        "CORPUS",
        "Text, JSON lines or Parquet: files, folders, patterns, URLs; - for stdin.",
        autocompletion=completion.TEXTS,
    ),
]
OutputFolder: TypeAlias = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FOLDER", help="The folder of the result, or its URL."),
]
PartOfScan: TypeAlias = Annotated[
    str | None,
    scan_option(
        "--shard",
        metavar="I/N",
        help="Count only the I-th of N parts; processes that do the others share the folder.",
    ),
]
Merge: TypeAlias = Annotated[
    str | None,
    scan_option(
        "--merge",
        metavar="FOLDER",
        help="Write the result of a scan whose parts are all counted; give no corpus.",
    ),
]
DryRun: TypeAlias = Annotated[
    bool,
    scan_option(
        "--dry-run", help="Only estimate what the scan would take, from ten windows; write nothing."
    ),
]


@command_of(
    scan,
    "corpus output split field length max_docs seed model kind run layers heads workers ray shard "
    "merge dry_run max_bad",
)
def command_line(
    session: Session,
    call: Call[tuple[ScanPlan, HowRun]],
    *,
    corpus: CorpusPlaces = None,
    output: OutputFolder = None,
    model: g.WhichModel,
    kind: g.WhichKind = None,
    run: g.ModelRun,
    shard: PartOfScan = None,
    merge: Merge = None,
    dry_run: DryRun = False,
) -> None:
    """Measure every head over a corpus, and keep examples of what it attends to.

    Scanning into the same folder again continues where it stopped. attnviz atlas shows the result.
    """
    import_parquet()
    if dry_run:
        _show_estimate(session, call, corpus, output, g.source_of(session, model, run, kind))
        return
    part = _part(shard)
    if merge is not None:
        plan = _merging(session, corpus, merge)
        how = HowRun(call["workers"], call["ray"], merge=True, max_bad=call["max_bad"])
    else:
        paths, folder = _places(session, corpus, output)
        source = g.source_of(session, model, run, kind)
        plan, how = call(*paths, output=folder, model=source)
        how = replace(how, part=part)
    with session.bar("{task.fields[said]}", times=False) as bar:
        watching = Watching(session, bar)
        try:
            is_finished = run_scan(plan, how, watching)
        except KeyboardInterrupt:
            watching.stopped()
            raise
    if is_finished:
        _say_counted(session, plan.store)
    else:
        session.note(
            f"part {shard} is counted; attnviz scan --merge {plan.store.where} ends the scan "
            "when all parts are"
        )


def _show_estimate(
    session: Session,
    call: Call[tuple[ScanPlan, HowRun]],
    corpus: list[str] | None,
    output: str | None,
    source: Source,
) -> None:
    """Print the estimate of a scan on stdout."""
    session.refuse("shard", "merge", wrong=f"does nothing for {option('dry_run', True)}")
    if "-" in (corpus or ()):
        raise UsageError(
            f"{option('dry_run', True)} writes nothing, but standard input would be kept in a file",
            "name files",
        )
    paths, folder = _places(session, corpus, output)
    plan, how = call(*paths, output=folder, model=source)
    with session.bar("{task.fields[said]}", times=False) as bar:
        Watching(session, bar).begin("trial", ONE_TRIAL, ONE_TRIAL)
        about = estimated_alone(plan, how)
    session.show(estimate_lines(about))


def _say_counted(session: Session, store: Store) -> None:
    """The counts of a finished scan, and what could not be read."""
    result = read_atlas(store.where)
    say(session, model_notes(result.identity))
    identity, files = result.identity, {name for name, *_ in result.manifest.get("files", ())}
    if identity and files & PROCESSORS and is_sighted(identity.architecture):
        session.note(f"{readable(identity.name)} reads images too, but a scan gives it only text")
    bad = result.manifest["result"]["skipped"]
    if bad:
        first, *_ = (store.read("skipped.jsonl") or b"").splitlines()
        session.note(
            f"{amount(bad, 'document')} could not be read (the first: {json.loads(first)['why']}): "
            f"{store.url('skipped.jsonl')!r} says why"
        )
    if not store.remote:
        session.wrote(Path(store.where))
    session.note(f"{size_of(result.size)} in {store.where!r}; attnviz atlas {store.where} shows it")


def _places(
    session: Session, corpus: list[str] | None, output: str | None
) -> tuple[list[str], str]:
    """The paths of a corpus, and the folder of the result.

    Standard input is kept in that folder, so that several processes can read it.
    """
    if not corpus:
        raise UsageError("there is no corpus", "name files or folders of text")
    if output is None:
        raise UsageError(f"{option('output')} is missing", "name the folder of the result")
    if "-" not in corpus:
        return corpus, output
    store = Store.at(output)
    if store.remote:
        raise UsageError(
            "standard input needs a folder on this machine", "name a file, or another folder"
        )
    make_folder(Path(store.where))
    stdin = spool(session.stdin, Path(store.where) / "stdin")
    return [str(stdin) if path == "-" else path for path in corpus], output


def _merging(session: Session, corpus: list[str] | None, folder: str) -> ScanPlan:
    """The plan of a scan whose parts are all counted."""
    if corpus:
        raise UsageError(f"{option('merge')} takes no corpus")
    useless = "split field length max_docs seed model revision offline layers heads output shard"
    session.refuse(*useless.split(), wrong=f"does nothing for {option('merge')}")
    store = Store.at(folder)
    return make_plan(store, *asked_by(store))


def _part(written: str | None) -> tuple[int, int]:
    """`2/8` as (2, 8)."""
    number, _, parts = (written or "1/1").partition("/")
    if number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts):
        return int(number), int(parts)
    raise UsageError(f"{option('shard', written)} is not a part", "write 2/8 for the second of 8")
