"""Results files as `generate --check -o results.jsonl` writes them, made without a model."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnviz.records.grounding import Groundedness

Line = Mapping[str, Any]
SOURCES = ("system", "question")
RUN = {"model": "builtin 8c6242cd678a12b7", "settings": "--check"}


def answer(
    line: int,
    grounded: Sequence[float | None] = (0.8,),
    *,
    documents: Mapping[str, tuple[float, bool]] = {"letter": (-3.0, True)},
    unrelated: float | None = 0.1,
    system: float = 0.0,
    id_: str | int | None = None,
    contradicted: Mapping[int, tuple[str, str, str]] = {},
    **more: Any,
) -> list[dict[str, Any]]:
    """The rows of an answer: a statement for each groundedness.

    `contradicted`: by statement, the word, what is said instead, and the document that says it.

    `documents`: the change of each by its deletion, in every statement, and whether it is needed.
    """
    names = ["sink", *(["system"] if system else []), *documents, "question", "answer"]
    own = {"id": f"q{line}" if id_ is None else id_}
    rest = (1 - system) / (len(names) - bool(system))
    return [
        {
            "line": line,
            **own,
            "row": n,
            "text": f"statement {n} .",
            "segment": name,
            "part": name if name in ("sink", "answer") else "segment",
            "share": system if name == "system" else rest,
            "change": documents[name][0] if name in documents else None,
            "heads": "L4H0",
            "needed": documents[name][1] if name in documents else None,
            "change_of_all": None,
            "groundedness": value,
            "unrelated": None if value is None else unrelated,
            **said_of(value, unrelated, contradicted.get(n)),
            "section": "answer",
            "source": "document" if name in documents else name if name in SOURCES else None,
            "question": f"What is {line}?",
            **RUN,
            **more,
        }
        for n, value in enumerate(grounded, start=1)
        for name in names
    ]


def said_of(
    value: float | None, unrelated: float | None, found: tuple[str, str, str] | None
) -> dict[str, str | None]:
    """The verdict on a statement, and what is said in the place of its words."""
    supported = Groundedness(value, unrelated).supported
    verdict = {True: "supported", False: "not supported", None: "untested"}[supported]
    verdict = "contradicted" if found else "known" if value is None else verdict
    given, instead, says = found or (None, None, None)
    return {"verdict": verdict, "given": given, "instead": instead, "says": says}


def failed(line: int, why: str = "the prompt is too long") -> list[dict[str, Any]]:
    """The row of a line without an answer."""
    return [{"line": line, "id": f"q{line}", "error": why, **RUN}]


def written(path: Path, *answers: Iterable[Line | str]) -> str:
    """The file of these answers; a text is a row as it is."""
    rows = (row if isinstance(row, str) else json.dumps(row) for each in answers for row in each)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return str(path)
