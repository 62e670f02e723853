"""Which heads attend to the keys that a file says are true.

labelled texts ─► tokens ─► rows of the labelled queries ─► mass on true keys ─► means over texts
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnviz.analyses.labels import MeasureLabels, label_scores
from attnviz.data.labels import LabelledText, LabelReport
from attnviz.errors import InputError, UsageError, spelled
from attnviz.kit.prepare import HeadOptions, Prepared, TextOptions, prepare
from attnviz.records.capture import Capture
from attnviz.records.heads import Head, choose_heads
from attnviz.records.positions import find_positions

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


class LabelRun:
    """Labelled texts run through a model, one after the other.

    Args:
        model: any model.
        options: how texts become tokens.
        heads: which heads are scored.

    Raises:
        UsageError: heads that the model does not have.
    """

    def __init__(self, model: "LoadedModel", options: TextOptions, heads: HeadOptions) -> None:
        self._model, self._options = model, options
        self._heads = choose_heads(model.identity.heads_per_layer, heads.layers, heads.heads)
        self._texts: list[Mapping[Head, NDArray[np.float64]]] = []
        self._runs: list[Capture] = []
        self._rows = 0

    def add(self, labelled: LabelledText) -> None:
        """Run one text.

        Raises:
            InputError: it does not fit, or a link is none that its rows can have.
        """
        prepared = prepare(self._model, labelled.text, self._options)
        measure = MeasureLabels(_true_keys(prepared, labelled))
        queries = tuple(sorted(measure.keys))
        prepared.budget.check_patterns(self._heads, 0)
        prepared.run(self._heads, measure, queries)
        self._texts.append(measure.means())
        self._runs.append(prepared.empty)
        self._rows += len(queries)

    def report(self) -> LabelReport:
        """The scores over all texts.

        Raises:
            InputError: there was none.
        """
        if not self._texts:
            raise InputError("no labelled text could be run", "see the errors above")
        scores = label_scores(self._texts)
        texts, rows = len(self._texts), self._rows
        return LabelReport(self._model.identity, texts, rows, scores, self._runs)


def _in_a_link(name: str, value: str | None) -> str:
    """A parameter of `find_positions` as one who wrote the file calls it."""
    side = {"queries": "the query", "keys": "the key"}[name]
    return side if value is None else f"{side} {value}"


def _true_keys(prepared: Prepared, labelled: LabelledText) -> dict[int, set[int]]:
    """The true keys of each labelled query."""
    empty, true = prepared.empty, dict[int, set[int]]()
    try:
        for names, of_keys in labelled.links:
            keys = find_positions(empty.key_tokens, of_keys, "keys")
            for query in find_positions(empty.query_tokens, names, "queries"):
                true.setdefault(query, set()).update(keys)
    except UsageError as error:
        wrong, hint = (spelled(said, _in_a_link) for said in (error.wrong, error.hint))
        raise InputError(f"line {labelled.number}: {wrong}", hint) from None
    seen = empty.allowed_count()
    for query, keys_of_query in true.items():
        unseen = [key for key in keys_of_query if key >= seen[query]]
        if unseen:
            raise InputError(
                f"line {labelled.number}: token {query} cannot attend to token {unseen[0]}, which "
                "stands after it",
                "name keys before their query",
            )
    return true
