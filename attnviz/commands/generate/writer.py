"""Answers in their format, one after the other."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from attnviz.commands.generate.answer import Answer, AnswerView, repeats
from attnviz.commands.generate.looks import AnswerLooks
from attnviz.commands.generate.occluded import MANY, runs_of
from attnviz.commands.generate.results import Results, answer_lines
from attnviz.commands.generate.rows import of_shares
from attnviz.commands.generate.run import Answering
from attnviz.commands.generate.shown import picture_view
from attnviz.commands.generate.square import of_square, square_of, with_suppression
from attnviz.commands.show.run import pieces_of
from attnviz.draw.terminal.around import line_heading
from attnviz.draw.titles import amount, run_notes, without_image
from attnviz.errors import InputError, option
from attnviz.kit.deliver import Destination, deliver
from attnviz.kit.lines import each_line, say
from attnviz.kit.result import Result
from attnviz.kit.session import Session
from attnviz.kit.write import ROWS, Piece, encoded, record_chunks, write_bytes
from attnviz.records.apply import whole_exhibit
from attnviz.records.capture import ModelIdentity
from attnviz.records.rows import ABSENT


@dataclass(frozen=True)
class Writer:
    """Writes answers one after the other; `watch` is called at each new token.

    `strange`: of each prompt that was answered, whether the model has seen no texts like it.
    `alone`: of each, that it has no image.
    """

    session: Session
    to: Destination
    looks: AnswerLooks
    watch: Callable[[], object]
    results: Results | None = None
    strange: list[bool] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)
    told: set[str] = field(default_factory=set)
    with_id: list[bool] = field(default_factory=list)

    def write_lines(
        self,
        lines: Iterable[tuple[int, str | InputError]],
        answered: Callable[[str, int], Iterable[Piece]],
    ) -> None:
        """Write the answer to each line; a bad line is reported and left out."""

        def of_line(text: str, line: int) -> list[Piece]:
            return list(answered(text, line))  # its errors are this line's

        if self.results is None:
            none = "no line could be answered"
            deliver(self.session, self.to, each_line(self.session, lines, of_line, none=none))
        else:
            answer_lines(
                self.session, self.results, lines, lambda text, line: encoded(of_line(text, line))
            )

    def noted(self, asked: Answering, line: int | None) -> Iterator[Piece]:
        """An answer in its format, with notes on stderr before and after it."""
        where, read = "" if line is None else f"line {line}: ", asked.read
        say(self.session, () if self.strange else asked.model_notes)
        notes = [note for note in asked.notes if note not in self.told]
        # on the template and on keys, the same for every line
        self.told.update([*asked.prompt.notes[:1], *asked.unread_notes])
        say(self.session, (*notes, *run_notes(read)), where)
        answer = yield from self._pieces(asked, line)
        new = len(answer.weights)
        full = f"the answer ends after {amount(new, 'token')}, as the model's context is full"
        say(self.session, [full] if new == asked.room else (), where)
        again = repeats([token.id for token in answer.capture.query_tokens])
        looping = f"the answer repeats itself; {option('temperature', 0.7)} draws other tokens"
        say(self.session, [looping] if again and asked.target is None else (), where)
        wordless = (
            "the answer has no word, so that its shares say little; end the prompt in mid-sentence"
        )
        say(self.session, [] if any(map(str.isalnum, answer.text)) else [wordless], where)
        self.strange.append(read.strange)
        self.alone.append(without_image(read))

    def _pieces(self, asked: Answering, line: int | None) -> Generator[Piece, None, Answer]:
        """An answer in its format; the first one's rows have their header.

        Rows of a stream are written while the model writes, each when its part of the answer has
        ended; except with a check or gates, which need the whole answer.
        """
        form, looks, first = self.to.format.name, self.looks, not self.strange
        self._check_columns(asked)
        each_head = looks.rows == "head"
        view = self._view(asked)
        parts_may_change = looks.square or looks.rows == "section" or asked.sections or asked.hops
        at_end = looks.checks or each_head or parts_may_change or asked.model.gated
        if form in ROWS and not (at_end or self.results is not None):
            for shares in asked.stream(looks.unit(view), self.watch):
                rows = of_shares(shares, line or 1).rows
                yield from record_chunks(rows, form, "generate", header=first)
                first = False
            return shares.answer
        page = self.results and self.results.page_of(line or 1)
        if asked.see and looks.checks in ("delete", "chain"):
            runs = runs_of(asked.read.images)
            said = f"the check makes regions of images grey, in {runs} runs of their own"
            say(self.session, [said] if runs > MANY else ())
        each_head = each_head or form == "npz" or ((form == "html" or bool(page)) and asked.apart)
        asked = replace(asked, each_head=each_head)
        answer = asked.written(self.watch)
        if form == "npz":
            yield from pieces_of(whole_exhibit(answer.capture), form)
            return answer
        result = _result(asked, answer, looks, view, line or 1)
        if form == "txt" and line is not None:
            yield line_heading(line, first=first)
        if page:
            write_bytes(page, encoded(result.pieces("html")))
        if form in ROWS:
            rows = result.rows
            if self.results is not None:
                rows = [*self.results.rows(result.record, rows, asked.prompt)]
            yield from record_chunks(rows, form, "generate", header=first)
        else:
            look = {"cmap": looks.cmap, "dpi": looks.dpi, "title": looks.title}
            yield from result.pieces(form, self.to.display(self.session), **look)
        return answer

    def _view(self, asked: Answering) -> AnswerView:
        """The view that is asked for; else of a translation its links, unless it is cut."""
        if self.looks.view is not None:
            return self.looks.view
        if self.to.format.name != "txt":
            return picture_view(asked.read, self.looks.rows) if self.to.format.picture else "table"
        cut = self.session.given("by", "segments", "docs", "rows", "hops", "sections")
        plain = asked.model.kind == "cross" and not (cut or self.looks.checks)
        return "links" if plain else "table"

    def _check_columns(self, asked: Answering) -> None:
        """See that a prompt has an id where those before it had one, as rows of a table do."""
        has = asked.prompt.id is not ABSENT
        if self.to.format.name in ("csv", "tsv") and has not in (self.with_id or [has]):
            raise InputError(
                "texts and questions have other columns", f"use {option('format', 'jsonl')}"
            )
        self.with_id.append(has)


@contextmanager
def writing(
    session: Session,
    to: Destination,
    looks: AnswerLooks,
    model: ModelIdentity,
    open_results: Callable[[Path, ModelIdentity], AbstractContextManager[Results]],
) -> Iterator[Writer]:
    """A writer of this model's answers; with --resume, into a file of results."""
    with ExitStack() as opened:
        results = None
        if session.value("resume") and to.output is not None:
            results = opened.enter_context(open_results(to.output, model))
        watch = opened.enter_context(session.counting("token"))
        yield Writer(session, to, looks, watch, results)


def _result(
    asked: Answering, answer: Answer, looks: AnswerLooks, view: AnswerView, line: int
) -> Result[Any]:
    """The result for an answer: its shares, or the attention among its sentences."""
    if looks.square:
        square = square_of(answer)
        square = with_suppression(asked.model, square) if looks.checks else square
        return of_square(square, line)
    check = asked.check(answer, looks.checks) if looks.checks else None
    return of_shares(replace(answer.shares(looks.unit(view)), check=check), line, view)
