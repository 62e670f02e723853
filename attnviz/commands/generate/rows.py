"""The rows of an answer, and the forms in which it goes out."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from attnviz.commands.generate.answer import (
    ADDED,
    OWN_ID,
    AnswerPart,
    AnswerShares,
    AnswerView,
    KeyKind,
)
from attnviz.commands.generate.chain import CHAIN, chain_rows
from attnviz.commands.generate.check import CURVE_POINT, curve_points
from attnviz.commands.generate.choice import names_of
from attnviz.commands.generate.results import FAILED, OF_ANSWER
from attnviz.commands.generate.shown import draw, picture_view, render
from attnviz.commands.generate.square import SQUARE
from attnviz.kit.result import Form, Result
from attnviz.records.grounding import Check, Use, Verdict
from attnviz.records.rows import ABSENT, LINE, Field, Fields, JsonOutput, keyed, measured

SegmentShare: TypeAlias = Mapping[str, Any]
"""A row: a column's share in a part of an answer; `ABSENT` is what was not asked for."""

SHARE = Fields[SegmentShare](
    "ShareRow",
    "The share of a segment in the attention of a part of the answer.",
    keyed(
        LINE,
        OWN_ID,
        Field("row", int, "The number of the part of the answer, or of the head, from 1."),
        Field("text", str, "The part of the answer, or empty for the whole answer in one head."),
        Field("segment", str, "The name of the segment."),
        Field(
            "part",
            KeyKind,
            "The kind of segment; sink: the first token, and other rests but special tokens; "
            "region: a part of an image, with --check.",
        ),
        Field(
            "share",
            float | None,
            "The mean weight on it; those of a row sum to 1, regions apart, which are within their "
            "image; null: of a region whose tokens have no known places.",
        ),
        Field("layer", int, "With --rows head: the head's layer.", optional=True),
        Field("head", int, "With --rows head: its number in the layer.", optional=True),
        Field(
            "change",
            float | None,
            "With --check: the change of this part's log-probability (nats) without the segment.",
            optional=True,
        ),
        Field(
            "lookback", float | None, "With --rows head: the head's lookback ratio.", optional=True
        ),
        Field("heads", str, "The heads whose rows were joined, as --head takes them, or all."),
        Field(
            "needed",
            bool | None,
            "With --check: whether the document is one of a smallest set without which most of "
            "what all of them give is lost; null without a document.",
            optional=True,
        ),
        Field(
            "use",
            Use | None,
            "With --check: whether the loss of the document changes the whole answer more than "
            "that of unrelated text; against: it makes it likelier; null without a document.",
            optional=True,
        ),
        Field(
            "weight",
            float | None,
            "With --check-method subsets: the document's addition to the logit of the answer's "
            "probability, or null without a document.",
            optional=True,
        ),
        Field(
            "change_of_all",
            float | None,
            "With --check: the change of this part's log-probability without all documents; null: "
            "there are none.",
            optional=True,
        ),
        Field(
            "groundedness",
            float | None,
            "With --check: that change as a share of what there was to give, from 0 "
            "to 1; null: under 0.1 nats a token.",
            optional=True,
        ),
        Field(
            "unrelated",
            float | None,
            "The 95th percentile of the same with unrelated text in the documents' place.",
            optional=True,
        ),
        Field(
            "verdict",
            Verdict | None,
            "With --check: what the documents say of the statement that this part is, or is in; "
            "null: it is in none, or there are no documents.",
            optional=True,
        ),
        Field("given", str | None, "Words that the documents contradict.", optional=True),
        Field("instead", str | None, "What they say in their place.", optional=True),
        Field("says", str | None, "The document that says it.", optional=True),
        Field(
            "section", str, "With --rows section, or in a results file: its section.", optional=True
        ),
        Field("hops", int, "With --hops: how often shares were carried back.", optional=True),
        Field(
            "through",
            float | None,
            "With --hops: how much of the share came through written tokens; below 0 of a part of "
            "the answer that passed its own on; null: of a region.",
            optional=True,
        ),
        Field(
            "gate",
            float,
            "The mean share that a gate after the softmax lets through in this part.",
            optional=True,
        ),
        Field("passed", float, "The share of the length that passes.", optional=True),
        Field("image", int | None, "The image of a region made grey, from 1.", optional=True),
        Field("x0", int | None, "Its pixels, or null without a region.", optional=True),
        Field("y0", int | None, optional=True),
        Field("x1", int | None, optional=True),
        Field("y1", int | None, optional=True),
        Field(
            "rests",
            float,
            "The weight of this part that rests, and is not a share of a segment: that on the "
            "first token, special tokens, and other keys that take weight whatever is written.",
        ),
        ADDED,
        *OF_ANSWER,
    ),
)


JSON = JsonOutput((SHARE, CURVE_POINT, CHAIN, SQUARE, FAILED))


def _share_rows(shares: AnswerShares, top: int | None, line: int | None) -> Iterator[SegmentShare]:
    """A row for each part of the answer and each column."""
    check, lookback = shares.check, shares.lookback
    names, through, gates = names_of(shares.answer.choice), shares.through, shares.gates
    rests = shares.rests
    for n, part in enumerate(shares.parts):
        head = part.head
        for i, (column, share) in enumerate(
            zip(shares.answer.columns, shares.shares[n], strict=True)
        ):
            segment = column.name if column.part == "segment" else ""
            row: SegmentShare = {
                **shares.answer.in_rows(line),
                "row": shares.before + n + 1,
                "text": "" if head else part.text,
                "segment": column.name,
                "part": column.part,
                "share": float(share),
                "layer": head.layer if head else ABSENT,
                "head": head.head if head else ABSENT,
                "lookback": ABSENT if lookback is None else measured(float(lookback[n])),
                "heads": str(head) if head else names,
                "rests": float(rests[n]),
                **_of_check(check, segment, part),
                "section": ABSENT if part.section is None else part.section,
                "hops": shares.answer.hops or ABSENT,
                "through": ABSENT if through is None else float(through[n, i]),
                "gate": ABSENT if gates is None else float(gates[0, n]),
                "passed": ABSENT if gates is None else float(gates[1, n]),
            }
            yield row
            yield from _regions(check, row, part)


def _regions(check: Check | None, row: SegmentShare, part: AnswerPart) -> Iterator[SegmentShare]:
    """A row for each region of an image, behind the image's own row."""
    for each in check.occlusions if check and not part.head else ():
        if row["part"] == "segment" and row["segment"] == each.segment:
            own = slice(part.first, part.after)
            yield {
                **row,
                "part": "region",
                "share": float(np.mean(each.shares[own])) if each.shares else None,
                "change": sum(each.changes[own]),
                "through": ABSENT if row["through"] is ABSENT else None,
                "image": each.image + 1,
                **dict(zip(("x0", "y0", "x1", "y1"), each.box, strict=True)),
            }


def _of_check(check: Check | None, segment: str, part: AnswerPart) -> dict[str, Any]:
    """The results of a check for a segment (empty: for the part) in a part of the answer."""
    if check is None:
        return {}
    found = dict[str, Any]()
    if check.occlusions:
        found |= dict.fromkeys(("image", "x0", "y0", "x1", "y1"))
    if check.effects:
        own = (each.changes for each in check.effects if each.segment == segment)
        found["change"] = next((sum(each[part.first : part.after]) for each in own), None)
        needed = check.smallest.segments if check.smallest else ()
        found["needed"] = segment in needed if segment in check.documents else None
        found["use"] = check.uses.get(segment)
    if check.subsets is not None:
        found["weight"] = dict(check.subsets.weights).get(segment)
    names = ("change_of_all", "groundedness", "unrelated", "verdict", "given", "instead", "says")
    found |= dict.fromkeys(names)  # null without documents, as lines of a table have one header
    if check.grounds is not None:
        changes = check.grounds.changes
        of = check.grounds.of("all" if part.head else part.text, part.first, part.after)
        change = sum(changes[part.first : part.after])
        found |= {"change_of_all": change, "groundedness": of.share, "unrelated": of.unrelated}
        for statement in check.statements:
            if not part.head and statement.holds(part.first, part.after):
                found["verdict"] = statement.verdict
                if said := statement.contradiction:
                    found |= {"given": said.given, "instead": said.instead}
                    found["says"] = said.document or None
    return found


_OF_METHOD: Mapping[str, tuple[Fields[Any], Callable[..., Iterator[Any]]]] = {
    "curve": (CURVE_POINT, curve_points),
    "chain": (CHAIN, chain_rows),
}
"""Rows of their own; of another method they are shares."""


def of_shares(
    shares: AnswerShares, line: int = 1, view: AnswerView = "table"
) -> Result[AnswerShares]:
    """The shares in an answer; in a terminal, in this view."""
    method = shares.check.method if shares.check else ""
    capture = shares.answer.capture
    form = Form[AnswerShares](
        "generate",
        *_OF_METHOD.get(method, (SHARE, _share_rows)),
        lambda shares: shares.answer.about,
        terminal=lambda shares, display: render(shares, display, view),
        picture=lambda shares, **look: draw(
            shares, picture_view(capture, None) if view == "table" else view, **look
        ),
        page="attnviz.commands.generate.page:page",
    )
    return Result(form, shares, (capture,), asked=capture.asked, _line=line)
