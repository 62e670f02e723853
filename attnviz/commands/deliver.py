"""Answers to where they were asked to go: the terminal, a stream, or a file."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeAlias, cast

from rich.console import RenderableType
from rich.text import Text

from attnviz.commands.answers import Answer
from attnviz.commands.options import LINE, View
from attnviz.commands.session import Session, plain_text
from attnviz.console import Display
from attnviz.data.exhibit import ColorScale, Exhibit, Orient
from attnviz.errors import UsageError
from attnviz.renderers.picture.words import PictureOptions
from attnviz.writers.atomic import check_target, is_terminal, write_bytes
from attnviz.writers.formats import Format
from attnviz.writers.stream import write_stream

Chunks: TypeAlias = Iterable[str | bytes]


@dataclass(frozen=True)
class Look:
    """How an exhibit is drawn, in the terminal or as a picture; None is the default."""

    view: View | None = None
    orient: Orient | None = None
    cmap: str | None = None
    color_scale: ColorScale | None = None
    dpi: int | None = None
    title: str | None = None

    def of_picture(self, *, by_row: bool = False) -> PictureOptions:
        """What concerns pictures, with their defaults."""
        given = {
            "cmap": self.cmap,
            "dpi": self.dpi,
            "color_scale": self.color_scale or ("row" if by_row else None),
            "orient": self.orient,
        }
        asked = {name: value for name, value in given.items() if value is not None}
        return PictureOptions(**asked, title=self.title)  # type: ignore[arg-type]


def deliver(
    session: Session, answers: Iterable[Answer], form: Format, look: Look, output: Path | None
) -> None:
    """Write the answers as they come, to stdout, to one file, or to a file for each line.

    Raises:
        OutputError: the file or the stream cannot take them.
        BrokenPipeError: the reader of stdout has gone; no error to a user.
    """
    write = _WRITERS.get(form.name) or (_picture if form.picture else _text)
    if output is None:
        for number, answer in enumerate(answers):
            if form.name == "txt":
                _print(session, answer, look, first=number == 0)
            else:
                write_stream(
                    session.environment.stdout.buffer, write(session, answer, form, look, number)
                )
    elif LINE in str(output):
        for answer in answers:
            path = Path(str(output).replace(LINE, str(answer.line or 1)))
            write_bytes(path, _encoded(write(session, answer, form, look, 0)))
    else:
        parts = (write(session, answer, form, look, n) for n, answer in enumerate(answers))
        write_bytes(output, _encoded(chain.from_iterable(parts)))


def _encoded(chunks: Chunks) -> Iterator[bytes]:
    return (chunk.encode("utf-8") if isinstance(chunk, str) else chunk for chunk in chunks)


def _rows(_session: Session, answer: Answer, form: Format, _look: Look, number: int) -> Chunks:
    from attnviz.writers.rows import row_chunks

    return row_chunks(answer.exhibit, form.name, line=answer.line or 1, header=number == 0)


def _object(_session: Session, answer: Answer, _form: Format, _look: Look, _number: int) -> Chunks:
    from attnviz.writers.json_object import json_chunks

    return json_chunks(answer.exhibit, line=answer.line)


def _saved(_session: Session, answer: Answer, _form: Format, _look: Look, _number: int) -> Chunks:
    from attnviz.writers.npz import npz_chunks

    return npz_chunks(answer.exhibit.capture)


def _page(_session: Session, answer: Answer, _form: Format, _look: Look, _number: int) -> Chunks:
    from attnviz.runs.webpage import page_of

    return page_of(answer.exhibit)


def _picture(session: Session, answer: Answer, form: Format, look: Look, _number: int) -> Chunks:
    from attnviz.renderers.picture.canvas import PictureFormat
    from attnviz.renderers.picture.figure import draw, figure_bytes

    options = look.of_picture(by_row=answer.exhibit.by_row)
    drawn = draw(answer.exhibit, options)
    for note in drawn.notes:
        session.note(note)
    name = cast("PictureFormat", form.name)
    return [figure_bytes(drawn.figure, name, dpi=options.dpi)]


def _text(session: Session, answer: Answer, _form: Format, look: Look, number: int) -> Chunks:
    """What the terminal would show, without colours and as UTF-8, for a file."""
    width = session.consoles.out.width
    return [plain_text(_parts(answer, Display(width), look, first=number == 0), width)]


_WRITERS: dict[str, Callable[[Session, Answer, Format, Look, int], Chunks]] = {
    "jsonl": _rows,
    "csv": _rows,
    "tsv": _rows,
    "json": _object,
    "npz": _saved,
    "html": _page,
}


def _print(session: Session, answer: Answer, look: Look, *, first: bool) -> None:
    session.show(_parts(answer, session.consoles.display, look, first=first))


def _parts(
    answer: Answer, display: Display, look: Look, *, first: bool
) -> Iterator[RenderableType]:
    """What stands on the terminal for one answer; the lines of a stream are numbered."""
    if answer.line is not None:
        yield Text(("" if first else "\n") + f"line {answer.line}", style="bold")
    yield view(answer.exhibit, display, look)


def view(exhibit: Exhibit, display: Display, look: Look) -> RenderableType:
    """One exhibit as what the terminal shows."""
    orient = look.orient or "query-rows"
    if exhibit.capture.signed and look.view not in (None, "heatmap"):
        raise UsageError(f"--view {look.view} shows weights, and these are scores", "leave it out")
    if look.view == "heatmap" or (look.view is None and exhibit.capture.signed):
        from attnviz.renderers.terminal import heatmap

        return heatmap.render(exhibit, display, orient=orient)
    if look.view == "grid":
        from attnviz.renderers.terminal import grid

        return grid.render(exhibit, display, orient=orient)
    if look.view == "text":
        from attnviz.renderers.terminal import text

        return text.render(exhibit, display)
    if look.view == "links":
        from attnviz.renderers.terminal import links

        return links.render(exhibit, display)
    from attnviz.renderers.terminal import table

    return table.render(exhibit, display)


def check_output(output: Path | None, form: Format) -> None:
    """See early, before a model is loaded, whether the file can be written.

    Raises:
        OutputError: it cannot.
        UsageError: bytes would go to a terminal (`-o /dev/tty`).
    """
    if output is None:
        return
    check_target(Path(str(output).replace(LINE, "1")))
    if form.binary and is_terminal(output):
        raise UsageError(
            f"{form.name} is not text, and a terminal cannot show it",
            f"write it to a file with -o FILE{form.suffix}",
        )
