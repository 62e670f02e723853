"""The live page: the lesson's, with runs that come from a server."""

from collections.abc import Sequence
from contextlib import suppress
from html import escape
from typing import Any

from attnviz.commands.explain.page import ENGINE, PARTS, TRY, data_of
from attnviz.commands.explain.page import FOLDER as LESSON
from attnviz.commands.explain.page import STYLES as LESSON_STYLES
from attnviz.commands.explain.readings import carried_readouts
from attnviz.commands.generate.prompt import template_of
from attnviz.draw.page import (
    COMMON,
    HALF,
    HEAD,
    LINES,
    MAP,
    filled,
    policies,
    policy,
    safe_json,
    source,
)
from attnviz.draw.titles import amount
from attnviz.errors import AttnvizError, readable
from attnviz.inputs.given import MEDIA
from attnviz.kit.values import Loaded
from attnviz.records.tokens import Chat

FOLDER = "commands/serve/page"
STYLES = (*LESSON_STYLES, f"{FOLDER}/live.css")
OWN = (f"{FOLDER}/remote.js", f"{FOLDER}/live.js")
SCRIPTS = (f"{COMMON}.js", *MAP, LINES, ENGINE, HALF, *PARTS[:-1], *OWN, PARTS[-1])
FIRST = "a fluffy blue creature roamed the verdant forest"
"""The text of a page that was opened without one."""


def page_of(
    model: Loaded, name: str, others: Sequence[str], *, asks: bool = True
) -> tuple[str, str]:
    """The page of a model, and its policy.

    `others`: names of models that the server has, too. `asks`: it asks the server that it comes
    from; else the frame that it stands in, and its policy stands in the page.
    """
    style, script = source(*STYLES), source(*SCRIPTS)
    loaded = model._loaded
    width = int(loaded.output_vectors().size(-1)) if loaded.card.readouts else 0
    readouts, maps = carried_readouts(loaded, width)
    live = {"models": [name, *others], "asks": asks, "options": _options(model), **_inputs(model)}
    data = {**_data(model, name, width), "readouts": readouts, "live": live}
    values = {
        "title": escape(f"{readable(name)} · attnviz"),
        "policies": "" if asks else policies(policy(style, script)),  # else a header has it
        "style": style,
        "text": escape(data["texts"][0]["text"]),
        "data": safe_json(data),
        "maps": maps,
        "worker": "",
        "packed": "",
        "script": script,
    }
    page = filled(source(HEAD, f"{LESSON}/lesson.html"), values)
    return page, policy(style, script, connects=True)


def _data(model: Loaded, name: str, width: int) -> dict[str, Any]:
    """What a lesson says of its model and its first text, before anything is run."""
    loaded, data = model._loaded, data_of(model._loaded)
    heads = data["about"]["headsPerLayer"]
    size = f"{amount(len(heads), 'layer')}, {amount(sum(heads), 'head')}"
    return {
        **data,
        "typed": True,
        "why": None,
        "texts": [{"text": "" if loaded.reads != "text" else FIRST, "target": ""}],
        "start": {"layer": 0, "head": 0, "query": 0},
        "headline": "",
        "facts": f"{readable(name)}: {size}",
        "examples": [{"text": text} for text in TRY.get(loaded.identity.name, ())],
        "about": {**data["about"], "d_model": width, "error": None, "norm": "", "biases": []},
        "model": name,
    }


def _options(model: Loaded) -> list[str]:
    """The options with which a shell loads the same model."""
    source = model._source
    told = {"--kind": source.kind, "--revision": source.revision} if source else {}
    return [word for flag, value in told.items() if value for word in (flag, value)]


def _inputs(model: Loaded) -> dict[str, object]:
    """What a model can read beside a text, as the page asks for it."""
    loaded = model._loaded
    pair = {"self": None, "encoder": "second text"}.get(loaded.kind, "written text")
    sees = loaded.reads_images or loaded.reads == "image" or loaded.sight is not None
    return {
        "text": loaded.reads == "text",
        "chat": _has_template(model),
        "beside": pair,
        "image": ",".join(MEDIA["image"].suffixes) if sees else None,
        "sound": ",".join(MEDIA["speech"].suffixes) if loaded.reads == "speech" else None,
    }


def _has_template(model: Loaded) -> bool:
    with suppress(AttnvizError):
        return template_of(model._loaded, Chat({"messages": []}, ())) is not None
    return False
