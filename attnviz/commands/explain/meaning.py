"""The meaning of a head's addition: tokens and contexts near it, and read-outs around it.

A result that chance also reaches is left out, and each result has the level of chance beside it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attnviz.builtin.evidence import evidence
from attnviz.commands.explain.sheet import HeadSheet
from attnviz.commands.explain.trajectory import trajectory_of
from attnviz.draw.labels import name_of
from attnviz.draw.titles import amount
from attnviz.errors import InputError
from attnviz.inputs.text import read_file
from attnviz.kit.cache import keep, known
from attnviz.kit.prepare import Prepared, TextOptions, prepare
from attnviz.models.folder.readouts import read_maps
from attnviz.records.capture import FloatArray
from attnviz.records.heads import NONE, Head, ReadOut
from attnviz.records.meaning import (
    MOMENTS,
    SURE,
    Context,
    Contexts,
    Meaning,
    Moment,
    Neighbours,
    Place,
    Read,
    Reading,
    neighbours,
    reading,
)
from attnviz.records.rows import Field, Fields, at, list_of
from attnviz.records.trace import HeadTrace

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


def meaning_of(prepared: Prepared, trace: HeadTrace, among: Path | None) -> Meaning:
    """The meaning of what the head of a trace adds; `among`: a file of texts, one a line."""
    model = prepared.model
    chance = chance_of(model) if trace.nearest else None
    nearest = tuple(each for each in trace.nearest if each.score > (chance or 0))
    contexts = None if among is None else contexts_among(model, among, prepared.options, trace)
    asked = _asked(trace)
    fitting = [each for each in model.card.readouts if _fits(each, asked)]
    readings = readings_of(model, trace, fitting)
    behaviours = [each.behaviour for each in fitting]
    plane = [each for each in model.card.readouts if each.behaviour in behaviours[:1]]
    return Meaning(
        chance, nearest, readings, contexts, trajectory_of(prepared, trace.query, plane[:2])
    )


KEPT = "chance"
MOST_TEXTS, MOST_PLACES = 1_000, 20_000
"""The most texts and tokens to look for contexts in: the model runs over each text."""


def chance_of(model: "LoadedModel") -> float:
    """The cosine that the nearest token reaches by chance: the card's, else measured once."""
    if model.card.chance_cosine is not None:
        return model.card.chance_cosine
    kept = known(model, KEPT).get("cosine")
    if isinstance(kept, float) and 0 <= kept <= 1:
        return kept
    from attnviz.models.engine import chance_cosine

    measured = chance_cosine(model.output_vectors())
    keep(model, KEPT, {"cosine": measured})
    return measured


def _asked(trace: HeadTrace) -> Mapping[str, Collection[str]]:
    """The behaviours that the query has an occasion for, each with the words that answer."""
    asked, tokens = dict[str, set[str]](), trace.capture.key_tokens
    for behaviour, occasions in evidence(trace.capture).items():
        for each in occasions:
            if each.query == trace.query:
                words = {tokens[position].label for position in each.positions}
                asked.setdefault(behaviour, set()).update(words)
    return asked


def _fits(readout: ReadOut, asked: Mapping[str, Collection[str]]) -> bool:
    """Whether a read-out was made for words such as the query, after one of its classes where
    these are words."""
    answers = asked.get(readout.behaviour)
    if answers is None:
        return False
    return readout.behaviour == "senses" or not set(answers).isdisjoint(readout.classes)


def readings_of(
    model: "LoadedModel", trace: HeadTrace, readouts: Iterable[ReadOut]
) -> tuple[Reading, ...]:
    """The readings of those read-outs that were made for the head, at the query."""
    head = Head(trace.layer, trace.head)
    fitting = [each for each in readouts if each.around(head)]
    vectors = {name: array[trace.query] for name, array in _vectors(trace).items()}
    if not fitting or len(vectors) < len(MOMENTS):
        return ()
    maps = read_maps(model.tokenizer.folder, fitting, trace.x.shape[1])
    return tuple(
        reading(each, head, maps, vectors) for each in fitting if (each.name, head) in maps
    )


def contexts_among(
    model: "LoadedModel", path: Path, options: TextOptions, trace: HeadTrace
) -> Contexts:
    """The nearest contexts among the texts of a file, one a line.

    Each is run once; every position but special tokens is a context. Where a norm stands over
    what is added to the stream, there is no sum of both to compare.

    Raises:
        InputError: the file has no text or too many, or one does not fit the model.
    """
    numbered = enumerate(read_file(path).split("\n"), 1)
    lines = [(number, text.removesuffix("\r")) for number, text in numbered if text.strip()]
    if not 0 < len(lines) <= MOST_TEXTS:
        wrong = f"{str(path)!r} has {amount(len(lines), 'text')}"
        raise InputError(wrong, f"give 1 to {MOST_TEXTS:,}, each on a line")
    places: list[Place] = []
    vectors: list[dict[Moment, FloatArray]] = []
    for number, text in lines:
        try:
            prepared = prepare(model, text, replace(options, target=None))
        except InputError as error:
            wrong = f"line {number} of {str(path)!r}: {error.wrong}"
            raise InputError(wrong, error.hint) from None
        tokens = prepared.empty.query_tokens
        own = [token.index for token in tokens if not token.special]
        other = prepared.trace(Head(trace.layer, trace.head), own[-1])
        vectors.append({name: array[own] for name, array in _vectors(other).items()})
        said = prepared.empty.target or text  # the words that the queries are
        places += [(said, number, tokens[at]) for at in own]
        if len(places) > MOST_PLACES:
            raise InputError(f"{str(path)!r} has more than {MOST_PLACES:,} tokens", "give fewer")
    found = []
    for moment, array in _vectors(trace).items():
        others = np.concatenate([each[moment] for each in vectors])
        found.append(neighbours(moment, array[trace.query], others, places))
    return Contexts(len(lines), len(places), tuple(found))


def _vectors(trace: HeadTrace) -> dict[Moment, FloatArray]:
    """The vectors to compare, at every query (n_q, d)."""
    added = trace.kinds.factor * (trace.z @ trace.w_o.weight)
    if trace.kinds.residual != "plain":
        return {"before": trace.x, "added": added}
    return {"before": trace.x, "added": added, "after": trace.x + added}


# What is written as JSON.


READ = Fields[Read](
    "Read",
    "The read-out of one vector around a head.",
    (
        Field("moment", Moment),
        Field("read", str | None, "The likeliest class, or null without one.", at("found.0")),
        Field("probability", float | None, "", at("found.1")),
        Field("accuracy", float, "How often this read-out is right on held-out words."),
    ),
)
READING = Fields[Reading](
    "Reading",
    "The readings of a read-out around the head at the query.",
    (
        Field("name", str, "", at("readout.name")),
        Field("classes", list[str], "", at("readout.classes")),
        Field("chance", float, "How often chance is right.", at("readout.chance")),
        Field("n", int, "Held-out words.", at("readout.n")),
        Field("token", float, "Accuracy from only the token.", at("readout.token")),
        Field("reads", list_of(READ)),
    ),
)
CONTEXT = Fields[Context](
    "Context",
    "A position of a given text.",
    (
        Field("line", int),
        Field("text", str),
        Field("index", int, "", at("token.index")),
        Field("token", str, "", at("token.label")),
        Field("cosine", float),
    ),
)
NEIGHBOURS = Fields[Neighbours](
    "Neighbours",
    "The contexts nearest to one vector.",
    (
        Field("moment", Moment),
        Field("chance", float, "The cosine that chance reaches."),
        Field("nearest", list_of(CONTEXT)),
    ),
)
CONTEXTS = Fields[Contexts](
    "Contexts",
    "The nearest contexts among given texts.",
    (Field("texts", int), Field("positions", int), Field("neighbours", list_of(NEIGHBOURS))),
)


# The sentences of step 5.

AROUND = 24  # characters of a context to show on either side of its word


def tell_meaning(sheet: HeadSheet, *, nothing: bool) -> None:
    """Write what the addition means; `nothing`: it is 0."""
    meaning = sheet.meaning
    if meaning.readings:
        sheet.say(
            f"What linear maps read out of the vectors at “{sheet.query}” (unsure: no class has a "
            f"probability of {SURE}):"
        )
    for each in meaning.readings:
        _read_out(sheet, each)
    _closest_tokens(sheet, nothing=nothing)
    if meaning.contexts:
        _closest_contexts(sheet, meaning.contexts)


def _read_out(sheet: HeadSheet, reading: Reading) -> None:
    """Write the class that each linear map reads out around the head, and how often it is right."""
    readout, head = reading.readout, sheet.head
    before, added, after = (said_by(reading, read) for read in reading.reads)
    sheet.line(f"{readout.name}: before {head} {before} → after it {after}")
    sheet.say(addition(reading, added, taken_up=added == after, known=added == before))
    right = [("token alone", readout.token), *((r.moment, r.accuracy) for r in reading.reads)]
    each = ", ".join(f"{name} {share:.2f}" for name, share in right)
    sheet.say(f"Right of {readout.n} held-out words: {each}; chance {readout.chance:.2f}.")
    others = [r for r in readout.heads if r.head != reading.head and not readout.nothing(r.added)]
    others.sort(key=lambda each: -each.added)
    if others:
        also = ", ".join(f"{each.head} {each.added:.2f}" for each in others)
        sheet.say(f"Other heads whose addition it is read from: {also}.")


def addition(reading: Reading, said: str, *, taken_up: bool, known: bool) -> str:
    """The read-out of the addition by itself, and whether the stream has it before and after."""
    added, head = reading.reads[MOMENTS.index("added")], reading.head
    if added.found is None or added.found[1] < SURE:
        return f"From only what {head} adds: {said}."
    if not taken_up:
        return f"What {head} adds reads as {said}; after it, the stream does not."
    return f"{head} adds {said}{', which could be read before it, too' if known else ''}."


def said_by(reading: Reading, read: Read) -> str:
    """`blue`; `unsure`; `cannot be told (right 0.07, chance 0.09)`."""
    if read.found is None:
        return f"cannot be told (right {read.accuracy:.2f}, chance {reading.readout.chance:.2f})"
    said, probability = read.found
    said = f"no {reading.readout.name}" if said == NONE else said
    return said if probability >= SURE else "unsure"


def _closest_tokens(sheet: HeadSheet, *, nothing: bool) -> None:
    """The tokens of the vocabulary that are nearer than chance reaches, and what else to ask."""
    chance, near = sheet.meaning.chance, sheet.meaning.nearest
    if chance is None:
        why = "as it is 0" if nothing else "whose vectors have another width"
        sheet.say(f"It cannot be compared with the tokens of the vocabulary, {why}.")
        return
    if near:
        tokens = ", ".join(f"{name_of(p.label)} {p.score:.2f}" for p in near)
        sheet.line(f"Closest tokens of the vocabulary, by cosine: {tokens} (chance {chance:.2f}).")
    else:
        sheet.line(
            "It is like no token of the vocabulary: the closest one is no closer, by cosine, "
            f"than the closest one to a random vector ({chance:.2f})."
        )
    if sheet.trace.capture.kind == "self":
        writes = sheet.display.speller("writes", None)
        sheet.say(f"attnviz why with {writes} tells what it does to the prediction.")


def _closest_contexts(sheet: HeadSheet, contexts: Contexts) -> None:
    """The nearest words of given texts, for the stream before and after, and for what is added."""
    among = f"{amount(contexts.positions, 'token')} of {amount(contexts.texts, 'text')}"
    sheet.line(f"Nearest among {among}, by cosine, above what the best reaches by chance:")
    for each in contexts.neighbours:
        sheet.line(f"{each.moment} (chance {each.chance:.2f})")
        for context in each.nearest:
            sheet.line(f"  {context.cosine:.2f} {_in_place(context)}")
        if not each.nearest:
            sheet.say("  none")


def _in_place(context: Context) -> str:
    """`line 2: a small [creature] slept`: a word in its text, with a little on either side."""
    token, text = context.token, context.text
    before, after = text[: token.start], text[token.end :]
    before = f"…{before[-AROUND:]}" if len(before) > AROUND else before
    after = f"{after[:AROUND]}…" if len(after) > AROUND else after
    return f"line {context.line}: {before}[{text[token.start : token.end]}]{after}"
