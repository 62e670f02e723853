"""The public Python API of scans: `attnviz.scan` and `attnviz.atlas`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from attnviz.commands.atlas.folder import Request, Store
from attnviz.commands.atlas.headlines import one_head, scatter_of, two_scores
from attnviz.commands.atlas.record import Atlas, HeadAtlas, Split
from attnviz.commands.atlas.tables import import_parquet, read_atlas, read_head
from attnviz.commands.scan.executors import HowRun
from attnviz.commands.scan.plan import Estimated, make_plan
from attnviz.commands.scan.run import run_scan
from attnviz.commands.scan.tasks import Done
from attnviz.draw.titles import amount, model_notes
from attnviz.kit.model import AnyModel, check_as_it_is, loaded, placement_of
from attnviz.kit.values import FilePath, HeadNames, path_of, which_heads
from attnviz.models.catalog import Source
from attnviz.models.placement import Device, DType, Engine
from attnviz.records.capture import Kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class ScanAtlas:
    """The result of a scan; made by `attnviz.scan` and `attnviz.atlas`.

    >>> with open("words.txt", "w") as file:
    ...     print("the cat sat on the mat and the cat ran", file=file)
    >>> found = attnviz.scan("words.txt", output="scanned", workers=1, heads="L1H2,L4H0")
    >>> found.head("L4H0").row["documents"]
    1
    """

    folder: str
    _atlas: Atlas

    def __repr__(self) -> str:
        documents, tokens = self._atlas.size
        return (
            f"<ScanAtlas of {self.model}: {amount(len(self.rows), 'head')}, "
            f"{amount(documents, 'document')}, {amount(tokens, 'token')}>"
        )

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._atlas.model

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What was asked, over which files, with which versions."""
        return self._atlas.asked

    @property
    def made(self) -> Mapping[str, Any]:
        """How it was made: the model with its fingerprint, versions, seed and options."""
        return self._atlas.made

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the model: that some of its layers have no attention."""
        return model_notes(self._atlas.identity)

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """A row for each head: `layer`, `head`, and each score with its error and its documents."""
        return self._atlas.rows

    def to_columns(self) -> dict[str, list[Any]]:
        """The same by column, as pandas.DataFrame and polars.DataFrame take it."""
        return {name: [row[name] for row in self.rows] for name in self.rows[0]}

    def figure(self, plot: str | None = None, **look: Any) -> "Figure":
        """The scores of all heads as a picture: a grid each, or two against each other.

        Args:
            plot: two scores, `"previous,induction"`.
            look: `cmap` and `dpi`; with `plot` also `top`, how many heads are named at most.

        Raises:
            UsageError: these are not two scores, or no such colour map.
        """
        if plot is None:
            from attnviz.commands.atlas import picture as grids

            return grids.draw(self._atlas, **look).figure
        from attnviz.commands.atlas import scatter

        return scatter.draw(self._atlas, scatter_of(self._atlas, *two_scores(plot)), **look).figure

    def head(self, name: str) -> HeadAtlas:
        """All that was found of one head: `row`, `histograms`, `tokens` and `examples`.

        Args:
            name: as in `"L1H2"` or `"1.2"`.

        Raises:
            UsageError: the scan has no such head.
            InputError: the result is damaged.
        """
        return read_head(self.folder, self._atlas.row(one_head(self._atlas, name)))


def scan(
    *corpus: FilePath,
    output: FilePath,
    model: AnyModel = "builtin",
    split: Split = Request.split,
    field: str = Request.key,
    length: int = Request.length,
    max_docs: int | None = None,
    seed: int = Request.seed,
    heads: HeadNames | None = None,
    layers: HeadNames | None = None,
    workers: int | None = None,
    ray: str | None = None,
    max_bad: float = HowRun.max_bad,
    revision: str | None = None,
    offline: bool = False,
    engine: Engine = "auto",
    device: Device = "auto",
    dtype: DType = "auto",
    kind: Kind | None = None,
    max_memory: int | None = None,
) -> ScanAtlas:
    """Measure every head over a corpus; see docs/scan.md.

    Scanning into the same folder again goes on where it stopped. A script needs
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
        split: what a document of a text file is: "file", "paragraph" or "line".
        field: the field of JSON lines, or the column of Parquet, that holds the text.
        length: the most tokens of a window.
        max_docs: how many documents are read; None: all.
        seed: another number draws other windows as examples and for the tokens.
        heads: `"L1H2"`, `"1.2,1.3"`, `"0-3"`; None means all.
        layers: `"1"`, `"0-2"`; None means all.
        workers: how many processes; None is one for each processor; 1 for a loaded model.
        ray: the address of a Ray cluster, "local" or "auto"; None runs on this machine.
        max_bad: percent of the documents that may be skipped.
        revision: a branch, tag or commit of a hub model.
        offline: never use the network.
        engine: the from-scratch model for a GPT-2 ("native"), or "transformers".
        device: "cpu", "cuda" or "mps"; "auto" takes a graphics processor where there is one.
        dtype: what it runs in, "bfloat16" or "float16"; "auto" is float32.
        kind: of an encoder-decoder, which attention: "encoder".
        max_memory: bytes that a worker may use; None is a share of what is free.

    Raises:
        AttnvizError: the corpus, the model, the folder or an option cannot be used; the message
            says what to do instead.
    """
    import_parquet()
    request = Request(
        tuple(path_of("corpus", path) for path in corpus),
        split=split,
        key=field,
        length=length,
        documents=max_docs,
        seed=seed,
        heads=which_heads(layers, heads),
    )
    store = Store.at(path_of("output", output))
    placement = placement_of(engine, device, dtype, max_memory)
    if isinstance(model, str | PathLike):
        name, held = path_of("model", model), None
        source = Source(
            name, revision, offline, quiet=True, kind=kind, engine=engine, placement=placement
        )
    else:
        from attnviz.models.weights import with_all_bytes  # torch

        held = with_all_bytes(loaded(model)._loaded)
        others = revision, offline, kind, engine != "auto"
        check_as_it_is(placement=placement, others=others, instead="max_memory")
        source = Source(held.identity.name, held.identity.revision, placement=placement)
    run_scan(
        make_plan(store, request, source, held), HowRun(workers, ray, max_bad=max_bad), _Silent()
    )
    return atlas(output)


def atlas(folder: FilePath) -> ScanAtlas:
    """The result of a scan.

    >>> with open("words.txt", "w") as file:
    ...     print("the cat sat on the mat and the cat ran", file=file)
    >>> made = attnviz.scan("words.txt", output="scanned", workers=1, heads="L1H2")
    >>> attnviz.atlas("scanned").rows[0]["head"]
    2

    Args:
        folder: what `attnviz.scan` wrote, or its URL.

    Raises:
        UsageError: pyarrow is not installed.
        InputError: it holds no finished scan.
    """
    where = path_of("folder", folder)
    return ScanAtlas(where, read_atlas(where))


class _Silent:
    """Says nothing of how a scan goes on."""

    def expect(self, estimate: Estimated) -> None:
        pass

    def note(self, said: str) -> None:
        pass

    def begin(self, what: str, done: int, tasks: int) -> None:
        pass

    def did(self, done: Done) -> None:
        pass
