"""The lesson page: a head's calculation to touch, on texts that a reader types.

A model from scratch travels in the page, which runs it in a worker. The worker's scripts stand in
the page as text, from which a blob is made, and nothing is fetched from anywhere.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.builtin.evidence import LIMITS, LOOK_AHEAD, LOOK_BACK
from attnviz.commands.explain.made import departures, error_of_half, made_run
from attnviz.commands.explain.readings import carried_readouts, kinds_of_words
from attnviz.commands.explain.record import AS_TEXT, NO_IMAGE, Subject, Traced, picked
from attnviz.draw import page as document
from attnviz.draw.glossary import definitions
from attnviz.draw.headlines import head_title
from attnviz.draw.labels import BLUES, BLUES_ON_DARK, SIGNED, SIGNED_ON_DARK
from attnviz.draw.page import COMMON, HALF, HEAD, MAP, filled, policies, policy, safe_json, source
from attnviz.draw.titles import beginning, facts
from attnviz.errors import UsageError, option, readable
from attnviz.kit.choose import MOST_PAIRS, ORDER
from attnviz.kit.prepare import Prepared, prepare
from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head, every_head
from attnviz.records.predict import log_softmax

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

FOLDER = "commands/explain/page"
STYLES = (f"{COMMON}.css", f"{FOLDER}/lesson.css")
WORKER = (HALF, *(f"{FOLDER}/{name}.js" for name in ("tokenizer", "model", "worker")))
ENGINE = f"{FOLDER}/engine.js"
_BEFORE, _STEPS = "state prose strips text fits pattern heads next", "score readings plane sums"
PARTS = tuple(f"{FOLDER}/{name}.js" for name in f"{_BEFORE} steps {_STEPS} lesson".split())
"""The scripts of a lesson, behind those of its engine; the last one starts the page."""
SCRIPTS = (f"{COMMON}.js", *MAP, ENGINE, f"{FOLDER}/local.js", *PARTS)
LARGEST = 16_000_000
"""The most bytes of a page whose numbers have four bytes each; else they have two."""
TRY = {
    "builtin": (
        "a fluffy blue creature roamed the forest . the creature was",
        "Bark is very cute and he is a dog",
        "the clues pointed at Bob . the murderer was",
        "the American shrew mole dug a tunnel",
        "Mrs Potter met Mr Dursley . Mrs Potter met Mr",
        "The animal didn't cross the street because it was too tired",
    ),
    "translator": (
        "a blue creature roamed the forest",
        "the old man found a red apple",
        "I don't know your name.",
    ),
}
"""Texts to try, by the name of a bundled model."""
MOST_WEIGHTS = 20_000_000
"""The most bytes of weights, in float32, that a page carries."""


def page_of(traced: Traced, prepared: Prepared) -> Iterator[str]:
    """The page of a head's calculation, piece by piece.

    Raises:
        UsageError: the text was read with special tokens, or with images.
        InputError: no page could hold it.
    """
    if prepared.options.special:
        raise UsageError(f"a page reads no special tokens from a text, as {option('special')} does")
    if prepared.options.given:
        raise UsageError(f"{option('image')} {NO_IMAGE}", AS_TEXT)
    held, why, error = *_held(prepared), None
    packed = document.packed_arrays(*held)
    if len(packed) > LARGEST:
        packed = document.packed_arrays(*held, half=True)
        error = error_of_half(held[1]) if why else _error_of_half(traced, prepared)
    style, script = source(*STYLES), source(*SCRIPTS)
    readouts, maps = carried_readouts(prepared.model, traced.trace.x.shape[1])
    values = {
        "title": escape(
            f"{beginning(traced.trace.capture.text)}: {readable(traced.trace.model.name)}"
        ),
        "policies": policies(policy(style, script, works=True)),
        "style": style,
        "text": _as_markup(_read(prepared)),
        "data": safe_json({**_data(traced, prepared, why, error), "readouts": readouts}),
        "maps": maps,
        "worker": source(*WORKER),
        "packed": packed,
        "script": script,
    }
    yield filled(source(HEAD, f"{FOLDER}/lesson.html"), values)


def _held(
    prepared: Prepared,
) -> tuple[tuple[Mapping[str, object], Mapping[str, FloatArray]], str | None]:
    """The numbers on the page, the model or a run of it; and why no text can be typed."""
    from attnviz.models.scratch.carried import carried

    model = carried(prepared.model, bos=prepared.options.bos)
    if model is not None and model.bytes <= MOST_WEIGHTS:
        return (model.facts, model.arrays), None
    if model is None:
        why = "only Python runs this model"
    else:
        why = f"this model has {model.bytes / 1e6:,.0f} MB of weights, but a page carries at most "
        why += f"{MOST_WEIGHTS / 1e6:.0f} MB"
    said = f"This page shows the text that it was made with. No other can be typed, as {why}."
    return made_run(prepared, _read(prepared), LARGEST), said


def _data(
    traced: Traced, prepared: Prepared, why: str | None, error: Mapping[str, float] | None
) -> Mapping[str, Any]:
    """Everything of the page but its numbers."""
    trace, capture = traced.trace, traced.trace.capture
    biases = [letter for letter in "qkv" if vars(trace)[f"w_{letter}"].bias is not None]
    about = {"d_model": trace.x.shape[1], "error": error, "norm": trace.kinds.norm}
    of_model = data_of(prepared.model)
    return {
        **of_model,
        "typed": why is None,
        "why": why and " ".join([why, *departures(trace.kinds)]),
        "texts": [{"text": _read(prepared), "target": capture.target}],
        "start": {
            "layer": trace.layer,
            "head": trace.head,
            "query": trace.query,
            "picked": traced.choice.picked,
        },
        "headline": head_title(traced.choice, traced.finding, capture),
        "facts": facts(capture),
        "about": {**of_model["about"], **about, "biases": biases},
        "examples": [
            each
            for text in TRY.get(prepared.model.identity.name, ())
            for each in _example(prepared, text)
        ],
    }


def data_of(model: "LoadedModel") -> dict[str, Any]:
    """What a page says of a model on any text."""
    heads, named = model.identity.heads_per_layer, model.card.heads
    return {
        "named": [
            {**each.head._asdict(), "title": each.title, "behaviour": each.behaviour}
            for each in named
        ],
        "links": kinds_of_words(model),
        "rules": {
            **asdict(LIMITS),
            "order": ORDER,
            "back": LOOK_BACK,
            "ahead": LOOK_AHEAD,
            "rows": MOST_PAIRS,
        },
        "about": {
            "model": readable(model.identity.name),
            "layers": len(heads),
            "heads": max(heads),
            "headsPerLayer": heads,
            "context": model.tokenizer.context,
            "kind": model.kind,
            "causal": model.causal,
        },
        "colors": {
            "light": BLUES,
            "dark": BLUES_ON_DARK,
            "signed": {"light": SIGNED, "dark": SIGNED_ON_DARK},
        },
        "terms": definitions(),
    }


def _example(prepared: Prepared, text: str) -> Iterator[Mapping[str, Any]]:
    """A text to try, with the head and query that explain picks; not the text of the page."""
    if text == prepared.empty.text:
        return
    tried = prepare(prepared.model, text, replace(prepared.options, target=None))
    choice, query, finding = picked(tried, Subject())
    (head,) = choice.heads
    title = head_title(choice, finding, tried.empty)
    yield {"text": text, "layer": head.layer, "head": head.head, "query": query, "headline": title}


def _as_markup(text: str) -> str:
    """A text as HTML; what cannot be printed is a reference to it, which the page's reader sees."""
    return "".join(c if c.isprintable() or c == "\n" else f"&#{ord(c)};" for c in escape(text))


def _read(prepared: Prepared) -> str:
    """The part of the text that the model read."""
    tokens = [token for token in prepared.source if not token.special]
    if prepared.empty.left_out == (0, 0):
        return prepared.empty.text
    return prepared.empty.text[tokens[0].start : tokens[-1].end]


def _error_of_half(traced: Traced, prepared: Prepared) -> Mapping[str, float]:
    """The largest differences that weights of float16 make to this text, in weights and in the
    probabilities of the next token."""
    from attnviz.models.scratch.carried import in_half

    trace, half = traced.trace, replace(prepared, model=in_half(prepared.model))
    every = every_head(prepared.model.identity.heads_per_layer)
    pairs = zip(prepared.record(every).layers, half.record(every).layers, strict=True)
    after = half.trace(Head(trace.layer, trace.head), trace.query)
    found = {"weight": max(float(np.abs(a.weights - b.weights).max()) for a, b in pairs)}
    logits = [each.logits[None] for each in (trace, after) if each.logits is not None]
    if logits:  # an encoder predicts nothing
        exact, rounded = map(np.exp, map(log_softmax, logits))
        found["probability"] = float(np.abs(exact - rounded).max())
    return found
