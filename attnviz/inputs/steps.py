"""Rows of attention as an engine gives them while it reads and writes: JSON lines, by step.

The layout is in `docs/formats.md`. Every claim is checked; nothing is run.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.errors import AttnvizError, InputError, UsageError, readable
from attnviz.inputs.arrays import NOTHING, capture_of, row_sums
from attnviz.inputs.beside import check_fields
from attnviz.inputs.text import LARGEST, Stdin, opened, read_lines
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.heads import Head, by_layer
from attnviz.records.rows import MOST_HEADS, Field, Fields, read_as

SCHEMA = "attnviz-rows/1"
FIRST = re.compile(rb'(\xef\xbb\xbf)?\s*\{.*"schema"\s*:\s*"attnviz-rows')
MOST_WEIGHTS = 1 << 28  # 1 GiB
LAYOUT = "docs/formats.md has the layout of these rows"
STEP = Fields[Any](
    "StepObject",
    "Tokens that are read in one step, or rows of a head for them.",
    (
        Field("schema", str, optional=True),
        Field("model", str, optional=True),
        Field("tokens", list[str], optional=True),
        Field("position", int, optional=True),
        Field("layer", int, optional=True),
        Field("head", int, optional=True),
        Field("weights", list[Any], optional=True),
    ),
)


def holds_steps(path: Path) -> bool:
    """Whether a file is JSON lines, the first of which means to have the schema of such rows."""
    with suppress(AttnvizError, OSError), opened(path) as stream:
        return FIRST.match(stream.readline(LARGEST)) is not None
    return False


def _is_first(line: object) -> bool:
    schema = line.get("schema") if isinstance(line, dict) else None
    return isinstance(schema, str) and schema.startswith(SCHEMA.partition("/")[0])


def parsed(path: Path) -> Iterator[object]:
    """The lines of a file, as JSON."""
    for number, line in read_lines(None, path, Stdin(None, is_terminal=False)):
        if isinstance(line, InputError):
            raise InputError(line.wrong, LAYOUT)
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            raise InputError(f"line {number} is not JSON", LAYOUT) from None


@dataclass
class _Steps:
    """The lines so far: all tokens, the step under way, and the rows of each head by step."""

    model: str = "array"
    tokens: list[str] = field(default_factory=list)
    step: range = range(0)
    placed: bool = False
    weights: int = 0
    rows: dict[Head, dict[range, FloatArray]] = field(default_factory=dict)

    def add(self, line: Any) -> None:
        """Add a line.

        Raises:
            ValueError: it cannot be right, or does not follow those before.
        """
        if isinstance(line, dict) and hasattr(line.get("weights"), "tolist"):  # an array
            line = {**line, "weights": line["weights"].tolist()}
        facts = read_as(STEP, line, "it")
        try:
            check_fields(line, [each.name for each in STEP.all])
        except InputError as error:
            raise ValueError(f"{error.wrong}; {error.hint}") from None
        if facts.get("schema", SCHEMA) != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        self.model = facts.get("model", self.model)
        if (new := facts.get("tokens")) is not None:
            self.step = range(len(self.tokens), len(self.tokens) + len(new))
            self.tokens += new
        if facts.get("position", self.step.start) != self.step.start:
            raise ValueError(f"it names position {facts['position']}, not {self.step.start}")
        self.placed |= "position" in facts
        if "weights" in facts:
            head = Head(facts.get("layer", -1), facts.get("head", -1))
            if not 0 <= min(head) <= max(head) < MOST_HEADS:
                raise ValueError("its weights are of no layer and head")
            self._add_rows(head, facts["weights"])
        elif {"layer", "head"} & {*facts}:
            raise ValueError("it names a head and has no weights")

    def _add_rows(self, head: Head, rows_of_step: list[Any]) -> None:
        try:
            given = np.atleast_2d(np.array(rows_of_step))
        except ValueError:
            raise ValueError("its rows have different lengths") from None
        if given.size and given.dtype.kind not in "iuf":
            raise ValueError("its weights are not numbers")
        weights = given.astype(np.float32)
        self.weights += weights.size
        if self.weights > MOST_WEIGHTS:
            raise ValueError(f"there are more than {MOST_WEIGHTS:,} weights")
        expected = len(self.step), len(self.tokens)
        if weights.shape != expected or not weights.size:
            raise ValueError(f"its weights have the shape {weights.shape}, not {expected}")
        row_sums(head.layer, [head.head], weights[None], self.step, self.tokens)
        if self.placed and np.triu(weights, 1 + self.step.start).max() > NOTHING:
            raise ValueError(f"{head} attends to a later position than its own")
        rows = self.rows.setdefault(head, {})
        if self.step in rows:
            raise ValueError(f"it is the second of {head} in one step")
        rows[self.step] = weights

    def capture(self, causal: bool | None) -> Capture:
        """The rows as a capture.

        Raises:
            ValueError: heads have rows of several tokens, or with gaps.
        """
        if not self.rows:
            raise ValueError("there are no weights")
        steps = {head: [*rows] for head, rows in self.rows.items()}
        one, first = next(iter(steps.items()))
        if others := [head for head, each in steps.items() if each != first]:
            raise ValueError(f"{others[0]} has rows of other steps than {one}")
        queries = range(first[0].start, first[-1].stop)
        if sum(map(len, first)) != len(queries):
            raise ValueError("a step between others has no weights")
        if len(self.rows) * len(queries) * len(self.tokens) > MOST_WEIGHTS:
            raise ValueError(f"there are more than {MOST_WEIGHTS:,} weights")
        most_layers, most_heads = (1 + max(each) for each in zip(*self.rows, strict=True))
        if most_layers * most_heads > MOST_HEADS:
            raise ValueError("there are more heads than any model has")
        layers = []
        for layer, heads in by_layer(self.rows).items():
            whole = np.zeros((len(heads), len(queries), len(self.tokens)), np.float32)
            for row, head in zip(whole, heads, strict=True):
                for step, weights in self.rows[Head(layer, head)].items():
                    own = slice(step.start - queries.start, step.stop - queries.start)
                    row[own, : weights.shape[1]] = weights
            layers.append((layer, heads, whole))
        causal = True if self.placed and causal is None else causal
        return capture_of(
            [(layer, weights) for layer, _, weights in layers],
            self.tokens,
            None,
            queries,
            model=self.model,
            causal=causal,
            unread=False,
            heads={layer: heads for layer, heads, _ in layers},
        )


def capture_of_steps(lines: Iterable[object], *, causal: bool | None = None) -> Capture:
    """A capture of the rows that an engine gave, each line as parsed JSON.

    Raises:
        InputError: a line cannot be right, or the rows are not of one text.
    """
    steps, place = _Steps(), "the file"
    try:
        for number, line in enumerate(lines, start=1):
            place = f"line {number}"
            if number == 1 and not _is_first(line):
                raise ValueError(f"its schema is not {SCHEMA}")
            steps.add(line)
        place = "the file"
        return steps.capture(causal)
    except UsageError as error:
        raise InputError(f"{place} cannot be read: {error.wrong}", LAYOUT) from None
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{place} cannot be read: {readable(str(error))}", LAYOUT) from None
