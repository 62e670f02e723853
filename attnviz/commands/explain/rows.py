"""Explanations as calculations: of a head over a text, token embeddings, or small matrices."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from rich.text import Text

from attnviz.commands.explain.examples import (
    EMBEDDING_STEPS,
    WORKED_STEPS,
    render_embeddings,
    render_worked,
)
from attnviz.commands.explain.meaning import CONTEXTS, READING, meaning_of
from attnviz.commands.explain.record import Subject, Traced, picked
from attnviz.commands.explain.sheet import Sheet
from attnviz.commands.explain.steps import STEPS, render, render_lookup
from attnviz.console import Display
from attnviz.draw import titles
from attnviz.draw.headlines import headline
from attnviz.errors import UsageError, option
from attnviz.kit.choose import position_of
from attnviz.kit.prepare import Prepared, TextOptions, prepare
from attnviz.kit.result import Calculation, Form, Numbers
from attnviz.records.capture import Capture, Kind
from attnviz.records.rows import (
    ABSENT,
    EXACT,
    HEAD,
    LAYER,
    RUN_FIELDS,
    TARGET,
    TOKEN,
    UNKNOWN,
    Field,
    Fields,
    JsonOutput,
    at,
    fields_at,
    if_any,
    list_of,
    object_fields,
)
from attnviz.records.trace import EmbeddingTrace, Predicted, Similarity, Worked

if TYPE_CHECKING:
    from attnviz.draw.picture.canvas import Drawn
    from attnviz.models.loaded import LoadedModel
    from attnviz.models.scratch.lessons import EmbeddingModel


@dataclass(frozen=True)
class Telling:
    """The parts of a calculation to print, and how.

    `only`: these steps, `"3"`, `"2,3"` or `"2-4"`; `digits`: decimals, None as suits; `columns`:
    tokens as columns, too; `as_lookup`: as a look-up in a database.
    """

    only: str | None = None
    digits: int | None = None
    columns: bool = False
    as_lookup: bool = False

    def among(self, count: int) -> tuple[int, ...]:
        """The steps that are asked for, among as many.

        Raises:
            UsageError: one that there is not.
        """
        if self.only is None:
            return tuple(range(1, count + 1))
        chosen: set[int] = set()
        for item in self.only.split(","):
            found = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3}))?", item.strip())
            named = range(int(found[1]), int(found[2] or found[1]) + 1) if found else ()
            if not named or named[0] < 1 or named[-1] > count:
                raise UsageError(
                    f"{option('only', repr(self.only))} names no steps of this calculation",
                    f"they are 1 to {count}: {option('only', 3)}, 2,3 or 2-4",
                )
            chosen |= set(named)
        return tuple(sorted(chosen))

    def sheet(self, display: Display, digits: int = 4) -> Sheet:
        """The sheet to write on; `digits` where nobody said how many."""
        chosen = digits if self.digits is None else self.digits
        in_sums = 2 if self.digits is None else self.digits
        return Sheet(display, chosen, self.columns, in_sums)


T = TypeVar("T")


# What `attnviz explain` writes as one JSON object.


def calculation_fields(subject: str, run: tuple[Field[Any], ...] = ()) -> tuple[Field[Any], ...]:
    """The first fields: what the calculation is of, and the run; written in another order."""
    return (
        *object_fields("explain"),
        Field(
            "subject", Literal[subject], "", lambda record: ABSENT
        ),  # the schema names it before the run
        *run,
        Field("subject", Literal[subject], "", lambda record: subject, optional=True),
    )


def tokens_of(name: str, two: bool) -> Field[Capture]:
    """The tokens: one list where queries and keys are the same ones, else two."""
    side = "query_tokens" if name == "tokens" else name
    return Field(
        name,
        list_of(TOKEN),
        "",
        lambda run: getattr(run, side) if two == (run.kind in ("cross", "decoder")) else ABSENT,
        optional=True,
    )


ARRAYS: Field[Any] = Field(
    "arrays",
    dict[str, Any],
    "Every array as nested lists, by name; null means −∞.",
    lambda record: ABSENT,  # whoever writes the object streams them
)


def _scored(name: str, about: str, score: str) -> Fields[Predicted]:
    """A token with its score, by the name of that."""
    return Fields(
        name,
        about,
        (
            Field("token", str, "", at("label")),
            Field(score, float, "", at("score")),
            Field("exact", str, EXACT),
        ),
    )


NEAREST = _scored("Nearest", "A token close to what the head adds.", "cosine")
FOLLOWING = _scored("Following", "A token that may come next.", "probability")
TRACE = Fields[Traced](
    "TraceObject",
    "`attnviz explain TEXT -f json`.",
    (
        *fields_at(
            "trace",
            *calculation_fields("head", RUN_FIELDS),
            *fields_at(
                "capture",
                Field("kind", Kind),
                TARGET,
                tokens_of("tokens", two=False),
                tokens_of("query_tokens", two=True),
                tokens_of("key_tokens", two=True),
                UNKNOWN,
            ),
            Field("layer", int, LAYER),
            Field("head", int, HEAD),
            Field("query", int),
            Field("norm", str, "", at("kinds.norm")),
            Field("positions", str, "", at("kinds.positions")),
            Field("query_heads_per_key_value_head", int, "", at("kinds.group")),
            Field("scale", float),
            Field("nearest", list_of(NEAREST), "The tokens nearer than chance reaches."),
            Field("next_tokens", list_of(FOLLOWING)),
        ),
        Field(
            "nearest_chance",
            float | None,
            "The cosine that the nearest token reaches by chance; null if none can be compared.",
            at("meaning.chance"),
        ),
        Field("readings", list_of(READING), "", at("meaning.readings")),
        if_any("contexts", CONTEXTS, "", at("meaning.contexts")),
        if_any(
            "trajectory",
            dict[str, list[str]],
            "The rows (what is added, in order) and columns (axes) of the array of this name.",
            at("meaning.trajectory.labels"),
        ),
        if_any("other_similarity", Similarity, "", at("other.kind")),
        ARRAYS,
    ),
)
EMBEDDED = Fields[EmbeddingTrace](
    "EmbeddingsObject",
    "`attnviz explain TEXT --model embeddings -f json`.",
    (
        *calculation_fields("embeddings", RUN_FIELDS),
        Field("tokens", list_of(TOKEN)),
        Field("query", int),
        Field("causal", bool, "", at("capture.causal")),
        ARRAYS,
    ),
)
WORKED = Fields[Worked](
    "WorkedObject",
    "`attnviz explain --example` or `--matrices` `-f json`.",
    (
        *calculation_fields("example"),
        Field("labels", list[str], "", at("given.labels")),
        Field("heads", int, "How many heads there are.", at("given.heads")),
        Field("similarity", Similarity, "", at("way.similarity")),
        Field("causal", bool, "", at("way.causal")),
        Field("rounded", bool, "", at("way.rounded")),
        ARRAYS,
    ),
)
JSON = JsonOutput(objects=(TRACE, EMBEDDED, WORKED))


# From a text to a calculation.


def explain_head(
    model: "LoadedModel", text: str, options: TextOptions, subject: Subject, telling: Telling
) -> Calculation[Any]:
    """Run a text and record all that one head computes for one query."""
    from attnviz.models.scratch.lessons import other_row

    model.require("record")  # refused before anything is run
    prepared = prepare(model, text, options)
    choice, position, finding = picked(prepared, subject)
    trace = prepared.trace(choice.heads[0], position)
    other = other_row(trace, subject.similarity) if subject.similarity else None
    meaning = meaning_of(prepared, trace, subject.among)
    trace, capture = replace(trace, nearest=meaning.nearest), trace.capture
    only = telling.among(len(STEPS))

    def shown(display: Display) -> Iterable[Text]:
        sheet = telling.sheet(display)
        about = f"{headline(choice, finding, capture)} · {titles.facts(capture)}"
        if telling.as_lookup:
            return render_lookup(trace, sheet, about=about)
        return render(trace, sheet, about=about, only=only, other=other, meaning=meaning)

    arrays: dict[str, Numbers] = {**trace.arrays()}
    if other:
        arrays |= {"other_scores": other.scores, "other_weights": other.weights}
    if meaning.trajectory:
        arrays["trajectory"] = meaning.trajectory.places
    query = capture.query_tokens[trace.query].label
    form = _form(f"{choice.heads[0]} at {query}, {trace.model.name}", TRACE, arrays, shown)
    form = replace(form, page=partial(_page, prepared), picture=_draw)
    return Calculation(form, Traced(trace, choice, meaning, finding, other), (capture,))


def _draw(traced: Traced, **look: Any) -> "Drawn":
    """The picture of what the query's vector comes to mean."""
    trace, trajectory = traced.trace, traced.meaning.trajectory
    if trajectory is None:
        model, query = trace.model.name, trace.capture.query_tokens[trace.query].label
        raise UsageError(
            f"a picture shows how a vector gets its meaning, and no read-out of {model} applies to "
            f"“{query}” on this text",
            "write html or txt, or a word such as “table” after “green” or “she” after “Anna”",
        )
    from attnviz.draw.picture.trajectory import draw

    return draw(trajectory, traced.choice.heads[0], titles.caption(trace.capture), **look)


def _page(prepared: Prepared, traced: Traced) -> Iterable[str]:
    from attnviz.commands.explain.page import page_of

    return page_of(traced, prepared)


def explain_embeddings(
    model: "LoadedModel", text: str, options: TextOptions, subject: Subject, telling: Telling
) -> Calculation[Any]:
    """Compare the token embeddings of a text with each other; the model has no heads."""
    prepared = prepare(model, text, options)
    position = position_of(prepared.source, subject.query)
    trace = cast("EmbeddingModel", model).compare(prepared.empty, position)
    only = telling.among(len(EMBEDDING_STEPS))
    form = _form(
        f"embeddings, {trace.model.name}",
        EMBEDDED,
        trace.arrays(),
        lambda display: render_embeddings(trace, telling.sheet(display), only=only),
    )
    return Calculation(form, trace, (prepared.empty,))


def of_worked(worked: Worked, title: str, telling: Telling) -> Calculation[Worked]:
    """Attention on small matrices."""
    only, digits = telling.among(len(WORKED_STEPS)), 1 if worked.way.rounded else 4
    form = _form(
        title,
        WORKED,
        worked.arrays(),
        lambda display: render_worked(
            worked, telling.sheet(display, digits), title=title, only=only
        ),
    )
    return Calculation(form, worked)


def _form(
    about: str,
    facts: Fields[T],
    arrays: Mapping[str, Numbers],
    shown: Callable[[Display], Iterable[Text]],
) -> Form[T]:
    """The output forms of a calculation: steps, or facts with every array."""
    return Form(
        "explain",
        None,
        lambda record, top, line: (),
        lambda record: about,
        terminal=lambda record, display: shown(display),
        archive=lambda record: (facts.row(record), arrays),
    )
