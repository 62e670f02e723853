"""An answer as it is written: rows as they come, a table, a picture, a capture or a page.

prompt, ready to be answered ─► new tokens ─► answer ─► shares of segments ─► pieces
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from attnviz.commands.generate.answer import RowUnit, View
from attnviz.commands.generate.rows import share_rows
from attnviz.commands.generate.run import Answering, NewToken, streamed
from attnviz.commands.generate.shown import by_segment, render
from attnviz.commands.show.page import page_of
from attnviz.console import Display
from attnviz.draw.picture.paint import options_of
from attnviz.draw.terminal.around import line_heading
from attnviz.inputs.captures import npz_chunks
from attnviz.kit.formats import PICTURES, Piece, record_chunks
from attnviz.records.apply import whole_exhibit
from attnviz.records.exhibit import PictureLook
from attnviz.records.rows import made_to_dict

Watch: TypeAlias = Callable[[], object]
"""A function to call at each new token."""
WHOLE = ("npz", "html")
"""Formats that hold the rows of each head."""


@dataclass(frozen=True)
class AnswerLook:
    """How to write an answer; `check`: with the changes by deletions of segments."""

    format: str = "txt"
    view: View = "table"
    unit: RowUnit = "sentence"
    check: bool = False
    picture: PictureLook = field(default_factory=PictureLook)
    display: Display = field(default_factory=Display)

    @property
    def each_head(self) -> bool:
        """Whether the rows of each head are needed."""
        return self.format in WHOLE or self.unit == "head"


def pieces_of(
    ready: Answering, look: AnswerLook, watch: Watch, line: int | None = None, *, first: bool = True
) -> Iterable[Piece]:
    """The answer in its format.

    Rows of a stream are written while the model writes, each when its part of the answer has ended;
    except with a check, which needs the whole answer.

    Args:
        ready: the prompt to answer.
        look: how to write it.
        watch: a function to call at each new token.
        line: the number of the input line; None where there is one prompt.
        first: nothing was written before it, so that rows begin with their header.
    """
    if look.format in ("jsonl", "csv", "tsv") and not look.check and look.unit != "head":
        for records in _streamed(ready, look.unit, watch, line or 1):
            yield from record_chunks(records, look.format, "generate", header=first)
            first = False
        return
    answer = ready.answer(ready.tokens_with_rows(watch))
    if look.format in WHOLE:
        if look.format == "npz":
            yield from npz_chunks(answer.capture)
        else:
            yield from page_of(whole_exhibit(answer.capture))
        return
    shares, check = answer.shares(look.unit), ready.check(answer) if look.check else None
    if look.format == "txt":
        yield from [] if line is None else [line_heading(line, first=first)]
        yield from render(shares, check, look.display, look.view)
    elif look.format in PICTURES:
        from attnviz.draw.picture.canvas import figure_bytes
        from attnviz.draw.picture.heatmap import draw

        options = options_of(look.picture, None)
        yield figure_bytes(draw(by_segment(shares), options).figure, look.format, options.dpi)
    else:
        records = list(share_rows(shares, line or 1, check))
        made = made_to_dict([answer.capture])
        yield from record_chunks(records, look.format, "generate", header=first, made=made)


def _streamed(
    ready: Answering, unit: RowUnit, watch: Watch, line: int
) -> Iterator[Sequence[Mapping[str, object]]]:
    """The records of each part of the answer, as soon as the next part has begun."""
    new, out = list[NewToken](), 0
    for token in streamed(ready.write):
        new.append(token)
        watch()
        answer = ready.answer(new)
        ended = _ended([row.text for row in answer.rows(unit)])
        if ended > out:
            yield list(share_rows(answer.shares(unit, slice(out, ended)), line, first=out))
            out = ended
    yield list(share_rows(ready.answer(new).shares(unit, slice(out, None)), line, first=out))


def _ended(texts: Sequence[str]) -> int:
    """How many parts of an unfinished answer no later token can change.

    A part has ended where the next one has begun. One that is blank, or ends within a character,
    may still become the beginning of the next.
    """
    whole = [bool(text.strip()) and "\ufffd" not in text for text in texts]
    pairs = range(len(texts) - 1)
    return max((i + 1 for i in pairs if whole[i] and whole[i + 1]), default=0)
