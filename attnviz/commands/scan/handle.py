"""The result of a scan, as Python has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attnviz.commands.atlas.headlines import one_head, scatter_of, two_scores
from attnviz.commands.atlas.record import Atlas, HeadAtlas
from attnviz.commands.atlas.tables import read_atlas, read_head
from attnviz.draw.titles import amount, model_notes
from attnviz.kit.option import check_number
from attnviz.kit.values import FilePath, path_of

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

        if look.get("top") is not None:
            check_number("top", look["top"], 1, whole=True)

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
