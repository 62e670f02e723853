"""The looks of an answer, and the combinations that have a meaning."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from attnviz.commands.generate.answer import AnswerView, RowUnit
from attnviz.errors import UsageError, option
from attnviz.kit import options as g
from attnviz.kit.deliver import LINE, Destination, check_no_input
from attnviz.kit.option import panel_option
from attnviz.kit.session import Session
from attnviz.kit.write import check_folder, make_folder
from attnviz.records.grounding import CheckMethod

answer_option = partial(panel_option, "The answer")
WHOLE = {
    "npz": "which holds the rows of each token and head",
    "html": "which has sentences, or words, and tokens",
}
"""Formats that have rows of their own, and which."""


@dataclass(frozen=True)
class AnswerLooks(g.Canvas):
    """The way in which the answer is shown."""

    rows: Annotated[
        RowUnit | None,
        g.look_option(
            "--rows",
            help="A row's unit: a part of the answer (sections are thinking, tool calls and "
            "results, and the answer), or the whole answer in one head.",
            show_default="sentence; of links, token; of images, word",
        ),
    ] = None
    view: Annotated[
        AnswerView | None,
        g.look_option(
            "--view",
            help="table: the share of each segment. links: the tokens that each row attends to "
            "most. heatmap: the shares in colours. text: the prompt, shaded by what each row "
            "attended to. image: the images of the prompt, likewise.",
            show_default="table; of a translation, links; of a picture, image or heatmap",
        ),
    ] = None
    title: Annotated[
        str | None,
        g.look_option(
            "--title",
            metavar="TITLE",
            help="The title of a picture.",
            show_default="model and heads",
        ),
    ] = None
    square: Annotated[
        bool,
        g.look_option(
            "--square",
            help="The attention of each sentence of the answer to its earlier sentences; with "
            "--check also its effect on the later ones.",
        ),
    ] = False
    check: Annotated[
        bool,
        answer_option(
            "--check",
            help="Also delete one segment after another, then all documents, and measure how much "
            "less probable the answer becomes.",
        ),
    ] = False
    check_method: Annotated[
        CheckMethod | None,
        answer_option(
            "--check-method",
            help="delete: as --check by itself. chain: the same, rows being the links that --hops "
            "goes back. subsets: random subsets of the documents, and a sparse "
            "linear fit. curve: more and more of their tokens.",
            show_default="delete",
        ),
    ] = None

    def unit(self, view: AnswerView) -> RowUnit:
        """The unit of a row in this view."""
        plain: Mapping[AnswerView, RowUnit] = {"links": "token", "image": "word"}
        return self.rows or plain.get(view, "sentence")

    @property
    def checks(self) -> CheckMethod | None:
        """The method by which the answer is checked, or None without a check."""
        return self.check_method or ("delete" if self.check else None)


def check_resume(session: Session, to: Destination, *, lines: bool) -> None:
    """See that a file can be gone on with, and that its rows are of answers."""
    wrong = f"is for a file of answers, {option('output', 'FILE.jsonl')} {option('resume')}"
    if not session.value("resume"):
        session.refuse("pages", wrong=wrong)
        return
    if not lines or to.output is None or to.each_line_apart or to.format.name != "jsonl":
        raise UsageError(
            f"{option('resume')} continues the lines of a file of rows",
            f"add {option('lines')} and {option('output', 'FILE.jsonl')}",
        )
    if to.output.exists() and not to.output.is_file():
        raise UsageError(f"{str(to.output)!r} cannot be gone on with", "name a regular file")
    session.refuse("square", wrong=f"does nothing for {option('resume')}")
    if session.value("pages") is not None:
        session.refuse("rows", "contribution", wrong=f"does nothing for {option('pages')}")
    if session.value("check_method") in ("curve", "chain"):
        raise UsageError("an answer has no rows of points or links", "choose another method")
    if session.value("rows") not in (None, "sentence"):
        raise UsageError("a row of a results file is a sentence", f"leave {option('rows')} out")
    if pages := session.value("pages"):
        check_no_input(session, pages / f"{LINE}.html")
        check_folder(pages)
        make_folder(pages)


def check_looks(session: Session, to: Destination, looks: AnswerLooks, *, signed: bool) -> None:
    """See that every option of how the answer is shown has a meaning there.

    `signed`: values may be below zero.
    """
    form = to.format
    if signed and (looks.view in ("text", "image") or form.name == "html"):
        where = option("view", looks.view) if looks.view else "a page"
        raise UsageError(
            f"{where} shows weights, but contributions have a sign",
            f"leave it or {option('contribution')} out",
        )
    if looks.square:
        wrong = f"does nothing for {option('square')}"
        session.refuse("rows", "view", "hops", "sections", "check_method", wrong=wrong)
    if form.picture and looks.view in ("table", "links", "text"):
        hint = f"use {option('view', 'heatmap')} or {option('view', 'image')}"
        session.refuse("view", wrong="cannot be a picture", hint=hint)
    elif form.name != "txt" and not form.picture:
        session.refuse("view", wrong=f"does nothing for {form.name}")
    if form.name in WHOLE:
        wrong = f"does nothing for {form.name}, {WHOLE[form.name]}"
        idle = ["check", "check_method", "reduce", "hops"] if form.name == "npz" else []
        if form.name == "npz" or looks.rows not in ("sentence", "word"):
            idle.append("rows")
        session.refuse("square", "sections", *idle, wrong=wrong)
    if form.picture and looks.checks == "curve":
        session.refuse("rows", "sections", wrong="does nothing for a picture of curves")
    elif form.picture:
        session.refuse("check", "check_method", wrong="is for tables, pages and rows")
    else:
        hint = f"leave it out, or add {option('output', 'FILE.png')}"
        session.refuse(g.Canvas, "title", wrong="is for pictures", hint=hint)
    _check_rows(session, looks)


def _check_rows(session: Session, looks: AnswerLooks) -> None:
    """See that options of segments, sections and heads fit the rows and the view."""
    if looks.rows != "section" and not session.given("hops"):
        session.refuse("sections", wrong="is for sections", hint=f"add {option('rows', 'section')}")
    if looks.view == "links":
        wrong = f"is for segments, not for {option('view', 'links')}"
        session.refuse("hops", "sections", "by", "segments", wrong=wrong)
    if looks.rows == "head":
        session.refuse("reduce", "hops", wrong="joins heads, but here each has a row of its own")
        if looks.view in ("text", "links", "image"):
            raise UsageError(
                f"{option('view', looks.view)} shows what parts of the answer attended to",
                f"leave it or {option('rows', 'head')} out",
            )
