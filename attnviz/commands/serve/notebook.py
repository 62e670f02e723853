"""`attnviz.live`: the live page in a notebook's cell; the kernel answers what it asks."""

from collections.abc import Mapping
from contextlib import suppress
from threading import Event
from typing import Any

import anywidget
import traitlets

from attnviz.commands.serve.answers import FORMATS, answers_of, told
from attnviz.commands.serve.jobs import NOBODY, LiveJob
from attnviz.commands.serve.page import FIRST, page_of
from attnviz.commands.show.capture import AttentionCapture
from attnviz.commands.show.command import show
from attnviz.draw.page import source
from attnviz.errors import AttnvizError
from attnviz.kit.calling import check_data, sentence_of
from attnviz.kit.values import Loaded
from attnviz.kit.write import encoded

WIDGET = "commands/serve/page/widget.js"
ASKED = ("show", "why")
"""The commands that the page calls."""


class Live(anywidget.AnyWidget):
    """The page of a model in a cell; made by `attnviz.live`.

    Attributes:
        head: the chosen head, as "L3H2"; "" before the first run.
        query: the position of the chosen query.
        text: the text that is shown.
    """

    _esm = source(WIDGET)
    _page = traitlets.Unicode().tag(sync=True)
    head = traitlets.Unicode().tag(sync=True)
    query = traitlets.Int().tag(sync=True)
    text = traitlets.Unicode().tag(sync=True)

    def __init__(self, model: Loaded) -> None:
        name = model.name
        super().__init__(_page=page_of(model, name, [], asks=False)[0])
        self._answers, self._jobs = answers_of({name: model}, ASKED), dict[int, LiveJob[bytes]]()
        self._model = model
        self.on_msg(self._heard)

    @property
    def capture(self) -> AttentionCapture:
        """The patterns of the text that is shown, of every head."""
        _, served = self._answers.model(None)
        with served.one:
            return AttentionCapture(served.runs.of_text(self.text).capture)

    def _heard(self, _: Any, content: Any, buffers: Any) -> None:
        """Begin what the page asks, or let it give way."""
        number = content.get("id")
        if content.get("gone"):
            if job := self._jobs.pop(number, None):
                job.gone.set()
            return
        try:
            check_data(asked := content["content"])
            self._begin(number, content["path"], asked, content.get("accept"))
        except Exception as error:
            self.send({"id": number, "wrong": sentence_of(error)})

    def _begin(self, number: int, path: str, asked: Mapping[str, Any], accept: str | None) -> None:
        def give(made: bytes | Exception | None) -> None:
            if made is None:
                self._jobs.pop(number, None)
            wrong = sentence_of(made) if isinstance(made, Exception) else None
            buffers = [made] if isinstance(made, bytes) else []
            self.send({"id": number, "ends": made is None, "wrong": wrong}, buffers)

        if path.startswith("v1/"):
            form = FORMATS.get(accept or "", "json")
            view, (served, work) = NOBODY, self._answers.invoke(path[3:], asked, form)
        else:
            served, view, work = self._answers.run(path, asked)
        self._jobs[number] = job = LiveJob[bytes](served, view, Event(), give, told)
        job.begin(work)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget, and the picture of the chosen head for where no kernel runs."""
        bundle, *more = super()._repr_mimebundle_(**options) or ({}, {})
        _, served = self._answers.model(None)
        with suppress(AttnvizError), served.one:
            picture = show(self.text or FIRST, self._model, heads=self.head or None)
            bundle["image/png"] = b"".join(encoded(picture.pieces("png")))
        return bundle, *more
