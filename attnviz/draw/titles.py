"""Sentences that several media show: the names of records, choices and transforms."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from attnviz.draw.labels import distinct_labels, name_of
from attnviz.errors import option, readable, series
from attnviz.records.capture import Capture, FloatArray, ModelIdentity
from attnviz.records.exhibit import Exhibit, Map
from attnviz.records.metrics import Estimate
from attnviz.records.questions import asks_for_knowledge
from attnviz.records.transforms import (
    Additions,
    Contributions,
    Difference,
    ErrorsOverTexts,
    Implicit,
    KeysDropped,
    MeanOverTexts,
    Merged,
    NormBased,
    Reduced,
    Relative,
    RolledOut,
    Scores,
    SpecialDropped,
    Transform,
)

ROLLOUT = (
    "attention rollout: the product of all layers, each half mean attention and half the token "
    "itself"
)
DRIFTS = "; in a causal model it drifts to the first token"

NO_SUM = "; rows do not sum to 1"

MERGED = {
    "images": "each image as one",
    "frames": "frames of a time merged",
    "patches": "the row of the image is the mean over its patches",
}


IMPLICIT = (
    "implicit attention of recurrent layers, signed: M of y = M·x + D·x before gate and norm; rows "
    "do not sum to 1"
)


def transform_titles(capture: Capture) -> list[str]:
    """A sentence about each transform of a capture, true after all of them."""
    titles = [transform_title(each, causal=capture.causal) for each in capture.transforms]
    if capture.transformed_by(KeysDropped):  # it rescales rows
        titles = [title.removesuffix(NO_SUM) for title in titles]
    return [readable(title) for title in titles]


def transform_title(transform: Transform, *, causal: bool = False) -> str:
    """A sentence about the effect of a transform on the patterns, perhaps of a causal model."""
    match transform:
        case Scores():
            return "scores before mask and softmax: scaled dot products of queries and keys"
        case Contributions():
            each = "each key's share of the head's output, along its direction"
            return f"contribution weights: {each}; below 0 it works against it; rows sum to 1"
        case Additions(cosine):
            return f"what each token adds to the cosine of image and text, {cosine:.3f}"
        case Implicit():
            return IMPLICIT
        case Difference():
            return "the first pattern minus the second"
        case NormBased():
            each = "each weight times the norm of the vector that its key contributes"
            return f"norm-based: {each}{NO_SUM}"
        case Relative(prompt):
            return f"divided by the attention of “{beginning(prompt)}”"
        case Merged("chars"):
            return "parts of characters merged"
        case Merged("images" | "frames" | "patches" as unit):
            return MERGED[unit]
        case Merged():
            return "pieces of words merged"
        case RolledOut():
            return f"{ROLLOUT}{DRIFTS if causal else ''}"
        case KeysDropped():
            return _dropped(transform)
        case SpecialDropped(share):
            return f"{share:.0%} of the weight was on special tokens or blanks, which are left out"
        case MeanOverTexts(texts):
            return f"mean over {texts:,} texts"
        case ErrorsOverTexts(texts):
            return f"standard errors of the mean over {texts:,} texts"
        case Reduced(how, over):
            return f"{how} over {'all of these' if over == 'all' else over}"


def _dropped(transform: KeysDropped) -> str:
    keys, empty = transform.keys, transform.empty
    named = map(name_of, keys) if len(keys) <= 4 else (f"{len(keys)} keys",)
    on = series([*named, *(["each head's rests"] if transform.own else [])])
    are = "is" if len(keys) + bool(transform.own) == 1 else "are"
    dropped = f"{transform.share:.0%} of the weight was on {on}, which {are} left out"
    dropped += " (rests only by their columns)" if transform.by_columns else ""
    queries = f"{len(empty)} queries" if len(empty) > 4 else series([*map(name_of, empty)])
    return f"{dropped}, {queries} attended to nothing else" if empty else dropped


def left_out(exhibit: Exhibit) -> str:
    """The meaning of an empty cell of this exhibit in a few words; empty if it has none."""
    reasons = ["masked"] if exhibit.capture.causal else []
    if exhibit.top is not None:
        reasons.append(f"not among the {exhibit.top} strongest")
    if exhibit.least > 0:
        reasons.append(f"under {exhibit.least:g}")
    reasons += [NEAR[distance] for distance in exhibit.skip]
    if any(len(each.dropped) > len(exhibit.dropped) for each in exhibit.maps):
        reasons.append("a rest of the head")
    return series(reasons, "or")


CLOSED = 0.05
"""A gate that lets through less than this share of a head's output counts as closed."""


def gate_sentences(exhibit: Exhibit) -> list[str]:
    """Sentences about the gates after the softmax in the shown rows; empty without gates."""
    gates = exhibit.gates
    if gates is None:
        return []
    every = distinct_labels(exhibit.capture.query_tokens)
    labels = [every[query] for query in exhibit.queries]
    several = len(exhibit.maps) > 1
    places = [f"{each.label} at {at}" if several else at for each in exhibit.maps for at in labels]
    return about_gates(gates.reshape(2, -1), places, several=several)


def about_gates(gates: FloatArray, places: Sequence[str], *, several: bool) -> list[str]:
    """Sentences about the share that gates let through (2, places), and the places where it is 0.

    `several`: heads.
    """
    if not gates.size:
        return []
    mean, share = (float(each.mean()) for each in gates)
    closed = [places[i] for i in np.flatnonzero(gates[1] < CLOSED).tolist()]
    whose = "these heads'" if several else "the head's"
    told = [
        f"after the softmax a gate multiplies {whose} weighted values by {mean:.2f} on average; "
        f"{share:.2f} of the output's length remains"
    ]
    if closed:
        more = f" and {len(closed) - MOST_CLOSED} more" if len(closed) > MOST_CLOSED else ""
        named = ", ".join(closed[:MOST_CLOSED]) + more
        told.append(f"gated to nothing (under {CLOSED}), so that its weights add nothing: {named}")
    return told


MOST_CLOSED = 4

NEAR = {0: "to itself", 1: "to the token before it"}
"""Links of a distance (query minus key) that may be left out."""


def facts(capture: Capture) -> str:
    """The model and the size of its input: `builtin, 9 tokens with BOS`."""
    model, alone = readable(capture.model.name), capture.image_alone
    array = capture.model.engine == "array"
    if capture.kind == "cross" or (array and capture.kind == "answer"):
        size = f"{amount(len(capture.query_tokens), 'query token')} to "
        size += amount(len(capture.key_tokens), "key token")
    elif capture.kind == "answer":
        size = size_of_answer(capture)
    else:
        size = amount(len(capture.key_tokens if alone else capture.query_tokens), "token")
    begin = capture.key_tokens[:1] if capture.bos else ()  # which a template may have written
    timed = capture.timed
    special = (t for t in capture.key_tokens if t.special and not t.inset and t.time is None)
    labels = [token.label for token in (*begin, *special)]
    around = _own_tokens([*dict.fromkeys(labels)]) if alone else [*dict.fromkeys(labels)]
    none = "" if alone or timed else " without BOS"
    beside = f" with {series(around)}" if around and not timed else none
    parts = [model, size if capture.kind == "answer" else size + beside]
    if capture.images:
        from attnviz.draw.overlay import image_facts

        parts.append(image_facts(capture))
    if capture.sound is not None:
        parts.append(capture.sound.facts)
    of = Counter(token.segment for token in capture.key_tokens)
    if of["A"]:
        parts.append(f"{of['A']:,} of text A and {of['B']:,} of B")
    before, after = capture.left_out
    if before or after:
        parts.append(f"the {'first' if before else 'last'} {before or after:,} left out")
    if capture.sinks:
        rest = "may sum to less than 1: any rest goes to a sink that is not a token"
        parts.append(f"rows {'sum to less than 1' if array else rest}")
    return ", ".join((*parts, *transform_titles(capture)))


def _own_tokens(labels: Sequence[str]) -> list[str]:
    """A model's own tokens, some of them numbered: `[class]`, `4 register tokens`."""
    kinds = Counter(label.rstrip("0123456789 ]").removeprefix("[") for label in labels)
    return [f"[{kind}]" if n == 1 else f"{n} {kind} tokens" for kind, n in kinds.items()]


def caption(capture: Capture) -> str:
    """The model, its input's size, and the text: `builtin, 9 tokens with BOS: “a fluffy …”`."""
    text = beginning(capture.text)
    return f"{facts(capture)}: “{text}”" if text else facts(capture)


def size_of_answer(capture: Capture) -> str:
    """`74 prompt tokens, 2 new`."""
    return f"{amount(prompt_size(capture), 'prompt token')}, {len(capture.query_tokens):,} new"


def prompt_size(capture: Capture) -> int:
    """The number of an answer's key tokens that belong to the prompt; they come first."""
    answered = 0 if capture.kind == "cross" else len(capture.query_tokens) - 1
    return len(capture.key_tokens) - answered


def beginning(text: str) -> str:
    """The beginning of a text, on one line; it ends with a word, unless that is very long."""
    line = readable(" ".join(text.split()))
    if len(line) <= BEGINNING:
        return line
    whole = line[:BEGINNING].rfind(" ")
    return line[: whole if whole > BEGINNING // 2 else BEGINNING - 1] + "…"


BEGINNING = 80  # letters


def written(capture: Capture, *, row: str = "row") -> str:
    """The output of an encoder-decoder, and the meaning of its rows (or columns)."""
    # an array's origin is unknown, and a text with images was not written
    if capture.model.engine == "array" or capture.images:
        return f"queries: “{readable(capture.target)}”"
    rows = f"each {row} is the word that a position predicts; its input is the previous word"
    return f"written: “{readable(elided(capture.target))}” ({rows})"


ELIDED = re.compile(r"\b([cdjlmnst]|qu)' (?=\w)", re.IGNORECASE)


def elided(text: str) -> str:
    """A translator's output, with the apostrophes of French joined: `je t' aime` as `je t'aime`.

    Only printed text is joined: a token such as `t'` stays one.
    """
    return ELIDED.sub(r"\1'", text)


def pane_titles(exhibit: Exhibit, head_map: Map, before: str = " ") -> tuple[str, ...]:
    """Titles for a small place, the fullest first: `L1H2 adjectives, induction` ... `L1H2`."""
    names = [
        *dict.fromkeys(
            readable(named.behaviour)
            for named in exhibit.capture.named(head_map.layer, head_map.head)
        )
    ]
    known = (f"{head_map.label}{before}{', '.join(names[:n])}" for n in range(len(names), 0, -1))
    return *known, head_map.label


def amount(number: int, what: str) -> str:
    """`1 layer`, `2 layers`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def amounts(fewest: int, most: int, what: str) -> str:
    """`2 layers`, `0 to 1 layers`."""
    return amount(most, what) if fewest == most else f"{fewest:,} to {most:,} {what}s"


def duration(seconds: float) -> str:
    """`40 seconds`, `12 minutes`, `7 hours`, `3 days`."""
    for unit, size, most in (("second", 1, 120), ("minute", 60, 120), ("hour", 3600, 48)):
        if seconds < most * size:
            return amount(max(1, round(seconds / size)), unit)
    return amount(round(seconds / 86400), "day")


def percent(part: int, whole: int) -> str:
    """`17%`, rounded to the nearest; `100%` only for the whole, and `less than 1%` for less."""
    share = 100 if part == whole else min(99, round(100 * part / whole))
    return f"{share}%" if share else "less than 1%"


# Numbers for people, if a fixed number of decimals would show only zeros.

LEAST = 0.0005
"""A smaller probability would be 0.000 with three decimals."""


def with_error(number: Estimate, form: str = "+z.3f") -> str:
    """A mean with its standard error, if it has one: `+0.612 ± 0.034`."""
    error = "" if number.error is None else f" ± {number.error:{form.lstrip('+')}}"
    return f"{number.mean:{form}}{error}"


def probability(value: float) -> str:
    """A probability as `0.364`, or as `3.1e-5` if three decimals would round it to 0."""
    if value >= LEAST or value <= 0:
        return f"{value:.3f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


# Notes to be shown with the output of a run.

MOST_NAMED = 8
QUERIES, KEYS = ("query", "queries"), ("key", "keys", "drop_key", "drop_keys")
"""The options that name tokens of the text."""


def run_notes(capture: Capture) -> tuple[str, ...]:
    """Notes about tokens cut off, words and answers that the model does not know, and names that
    match only pieces."""
    before, after = capture.left_out
    notes = []
    if count := before or after:
        cut = f"{'first' if before else 'last'} {amount(count, 'token')}"
        cut += " of both texts together" * any(token.segment for token in capture.key_tokens)
        notes = [f"the {cut} {'is' if count == 1 else 'are'} left out to fit the model's context"]
    if words := capture.unknown_words:
        untrained = "the model was not trained on these words and cannot translate them"
        notes.append(f"{untrained}: {named_words(words)}{_word_list(capture.model)}")
    if capture.loss is not None and not capture.strange and asks_for_knowledge(capture.text):
        ignorant = "the built-in model cannot answer this, as it knows nothing of the world"
        notes.append(f"{ignorant}; try {option('model', 'gpt2')}")
    if capture.sound is not None:
        notes += capture.sound.notes
    return (*notes, *capture.notes, *_piece_notes(capture))


def without_image(capture: Capture) -> str:
    """A note if a model of text and images was not given an image, else ""."""
    if not capture.model.reads_images or capture.images:
        return ""
    return f"{readable(capture.model.name)} reads images too; none was given"


def named_words(words: Sequence[str]) -> str:
    """`“zorblax”, “quux” and 3 more`."""
    named = ", ".join(f"“{readable(word)}”" for word in words[:MOST_NAMED])
    return named + (f" and {len(words) - MOST_NAMED} more" if len(words) > MOST_NAMED else "")


def _word_list(model: ModelIdentity) -> str:
    """A note on the file that lists the words that a translator knows."""
    folder = "attnviz/builtin/translator" if model.name == "translator" else model.name
    return f"; {readable(folder)}/words.txt lists those that it knows"


def _piece_notes(capture: Capture) -> tuple[str, ...]:
    """A sentence for each name of a query or key that matches no whole word of the text."""
    from attnviz.records.positions import word_around

    sides = (capture.query_tokens, QUERIES), (capture.key_tokens, KEYS)
    notes = []
    for tokens, options in sides:
        values = [capture.asked.options.get(name) or () for name in options]
        names = [n for each in values for n in ([each] if isinstance(each, str | int) else each)]
        around = ((name, word_around(tokens, name)) for name in names if isinstance(name, str))
        notes += [
            f"“{readable(name)}” is not a whole word of the text, but a piece of “{readable(word)}”"
            for name, word in around
            if word
        ]
    return tuple(dict.fromkeys(notes))


def model_notes(model: ModelIdentity | None) -> tuple[str, ...]:
    """Notes about a model that differs from what a user expects."""
    if model is None:
        return ()
    notes = [model.differs] if model.differs else []
    if without := [str(layer) for layer, heads in enumerate(model.heads_per_layer) if not heads]:
        layers = f"layer{'s' * (len(without) > 1)} {', '.join(without)}"
        verb = "have" if len(without) > 1 else "has"
        what = "implicit attention" if model.implicit else "attention"
        what += " of this kind" * model.reads_images  # but cross-attention, or other layers'
        notes.append(f"{layers} of {readable(model.name)} {verb} no {what}")
    if model.own_code:
        notes.append(
            f"the folder of {readable(model.name)} names its own code, and transformers' "
            f"{model.architecture} was run instead: results differ wherever the codes differ"
        )
    return tuple(notes)


def text_notes(capture: Capture) -> tuple[str, ...]:
    """Notes about a text and its model, also that the text is unlike its training."""
    strange = strange_note(int(capture.strange), 1, "text")
    about_model = model_notes(capture.model)
    return (*about_model, *run_notes(capture), *filter(None, (strange, without_image(capture))))


def strange_note(strange: int, texts: int, what: str) -> str:
    """A note if `strange` of `texts` ("text", "line") are unlike the built-in model's, else ""."""
    if not strange:
        return ""
    where = f"{strange:,} of {amount(texts, what)}: " if texts > 1 else ""
    other = f"try {option('model', 'gpt2')}"
    return f"{where}the built-in model is small and has not seen text like this; {other}"


# A weight as a bar of cells.


def bar_of(share: float, cells: int, unicode: bool) -> str:
    """A bar of at most `cells` cells, or a thin mark for values too small for one."""
    full, thin = ("▇", "▏") if unicode else ("=", "-")
    n = round(max(0.0, min(1.0, share)) * cells)
    return full * n if n else thin if cells and share >= 0.005 else ""
