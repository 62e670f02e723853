"""What is answered, be it asked over HTTP or by a notebook's cell: parts of runs, and commands."""

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeAlias

from attnviz.commands.serve.asked import asked_of, head_in, heads_in, view_in
from attnviz.commands.serve.jobs import LiveJob, Served, Viewer, Work
from attnviz.commands.serve.page import page_of
from attnviz.commands.serve.runs import LiveRuns, Sent
from attnviz.errors import UsageError
from attnviz.inputs.given import within
from attnviz.kit.calling import Offered, json_of, offered, sentence_of
from attnviz.kit.intervene import watched
from attnviz.kit.values import Loaded
from attnviz.kit.write import encoded

FORMATS = {
    "application/json": "json",
    "text/plain": "txt",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/jsonl": "jsonl",
    "text/html": "html",
    "image/png": "png",
    "image/svg+xml": "svg",
    "application/pdf": "pdf",
    "application/x-npz": "npz",
}
"""What a command's result can be, by the `Accept` of a request."""
TellToken: TypeAlias = Callable[[str], bytes]


def packed(part: Sent) -> bytes:
    """A part as the page reads it: its length, the facts' length, the facts, and the arrays.

    Each array begins at a multiple of 4 bytes after the facts, as its name, type and size say.
    """
    arrays, forms = [], []
    for name, array in part.arrays.items():
        content = array.tobytes()
        arrays.append(content + bytes(-len(content) % 4))
        forms.append([name, array.dtype.kind + str(array.dtype.itemsize), array.size])
    facts = json.dumps({**part.facts, "arrays": forms}, ensure_ascii=True).encode()
    facts += b" " * (-len(facts) % 4)
    whole = b"".join([struct.pack("<I", len(facts)), facts, *arrays])
    return struct.pack("<I", len(whole)) + whole


def told(done: int, of: int) -> bytes:
    return packed(Sent({"part": "progress", "done": done, "of": of}))


def wrong_part(error: Exception) -> bytes:
    return packed(Sent({"part": "wrong", "wrong": sentence_of(error)}))


@dataclass(frozen=True, eq=False)
class Answers:
    """Models by name, and the commands that are offered with them."""

    served: Mapping[str, Served]
    commands: Mapping[str, Offered]
    pages: dict[str, tuple[str, str]] = field(default_factory=dict)

    def model(self, name: object) -> tuple[str, Served]:
        """The model of a name; the first one for None."""
        name = next(iter(self.served)) if name is None else name
        if not isinstance(name, str) or name not in self.served:
            raise UsageError("this model is not loaded", f"name one of {', '.join(self.served)}")
        return name, self.served[name]

    def page(self, name: object) -> tuple[str, str]:
        """The page of a model, and its policy; each is made once."""
        name, served = self.model(name)
        if name not in self.pages:
            others = [each for each in self.served if each != name]
            self.pages[name] = page_of(served.model, name, others)
        return self.pages[name]

    def run(self, path: str, content: Mapping[str, Any]) -> tuple[Served, Viewer, Work[bytes]]:
        """The model, the view and the work of what a page asks, by its path."""
        _, served = self.model(content.get("model"))
        asked, view, head = asked_of(content), view_in(content), head_in(content.get("head"))
        if path == "rest" and content.get("picks") is True:
            head = None
        removed = heads_in(content.get("removed"))
        runs = served.runs

        def parts(job: LiveJob[bytes]) -> Iterator[Sent]:
            if path == "without":
                return runs.without(asked, removed, job)
            return {"run": runs.patterns, "rest": runs.rest, "head": runs.head}[path](
                asked, head, job
            )

        def work(job: LiveJob[bytes]) -> Iterator[bytes]:
            with within(None), watched(job):
                yield from map(packed, parts(job))

        return served, view, work

    def invoke(
        self, name: str, content: Mapping[str, Any], form: str, token: TellToken | None = None
    ) -> tuple[Served, Work[bytes]]:
        """The model and the work of a command's call; `token` makes what tells a written token."""
        own, served = self.model(content.get("model"))
        models = {own: served.model, **{each: one.model for each, one in self.served.items()}}

        def work(job: LiveJob[bytes]) -> Iterator[bytes]:
            def read(text: str) -> None:
                job()
                if token:
                    job.give(token(text))

            with watched(job, read):
                yield written(self.commands[name].invoke(content, models, None), form)

        return served, work


def answers_of(models: Mapping[str, Loaded], commands: Iterable[str]) -> Answers:
    """The answers about loaded models; `commands`: all that there are."""
    one = Lock()
    served = {name: Served(model, LiveRuns(model), one) for name, model in models.items()}
    return Answers(served, offered(commands))


def written(result: Any, form: str) -> bytes:
    """A result in a format, as its command writes it."""
    if form == "json":
        return json_of(result).encode()
    if form == "txt":
        return f"{result}\n".encode(errors="replace")
    return b"".join(encoded(result.pieces(form)))
