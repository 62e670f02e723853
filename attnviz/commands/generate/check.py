"""Whether an answer rests on its prompt: runs without some of it, each at most once."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from attnviz.commands.generate.answer import ADDED, OWN_ID, Answer, AnswerShares
from attnviz.commands.generate.contradiction import (
    contents_of,
    contradictions,
    is_untested,
    raised_words,
    rivals_of,
    words_of,
)
from attnviz.commands.generate.occluded import See, without_regions
from attnviz.commands.generate.runs import UNRELATED, AnswerRuns, own_text, unrelated_prompt
from attnviz.errors import InputError, option
from attnviz.inputs.prompts import Prompt
from attnviz.records.grounding import (
    Check,
    CheckMethod,
    Contradiction,
    Deletion,
    Grounds,
    SmallestSet,
    Statement,
    Without,
    against_random,
    correlation_of_ranks,
    curves,
    single_deletions,
    smallest_set,
    subset_fit,
)
from attnviz.records.reasoning import MATTERS
from attnviz.records.rows import LINE, Field, Fields, keyed
from attnviz.records.tokens import RESTS, Token
from attnviz.records.transforms import Contributions

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


@dataclass(frozen=True, eq=False)
class Deletable:
    """The segments that can be deleted: their names, shares, and tokens; those at `documents`."""

    names: tuple[str, ...]
    shares: tuple[float, ...]
    places: tuple[tuple[int, ...], ...]
    documents: tuple[int, ...]

    def without(self, runs: AnswerRuns, among: Sequence[int]) -> Without:
        """The runs without some of these segments, which are numbered anew."""
        return lambda sets: runs.without(
            [t for i in some for t in self.places[among[i]]] for some in sets
        )

    def of(self, some: Iterable[int]) -> "tuple[list[str], list[float]]":
        """The names and the shares of these segments."""
        chosen = list(some)
        return [self.names[i] for i in chosen], [self.shares[i] for i in chosen]


def checked(
    model: "LoadedModel",
    tokens: Sequence[Token],
    prompt: Prompt,
    of: Sequence[int | None],
    answer: Answer,
    method: CheckMethod,
    see: See | None = None,
) -> Check:
    """Measure how deletions of segments change an answer's probability.

    The last segment of text stays, as it asks for the answer; images are made grey instead.

    Args:
        model: that read the prompt.
        tokens: of the prompt.
        prompt: with the segments.
        of: for each of these tokens the number of its segment; None for a special token.
        answer: with the shares of the segments.
        method: single deletions (also of a chain), random subsets, or curves.
        see: reads the prompt with other images, or None without images.

    Raises:
        InputError: there is nothing to delete.
    """
    attention = {c.name: share for c, share in answer.mean_shares() if c.part == "segment"}
    names = [each.name for each in prompt.segments]
    crossed = answer.capture.kind == "cross"
    texts = {i for i, name in enumerate(names) if name not in prompt.images}
    last = None if crossed else next((s for s in reversed(of) if s in texts), None)
    see = see if method in ("delete", "chain") else None
    shares_of = {names[i]: attention[names[i]] for i in texts if names[i] in attention}
    parts = _deletable(names, of, shares_of, last, prompt.asking, method, alone=see is None)
    documents, shares = parts.of(parts.documents)
    runs = _runs_of(model, tokens, answer, [] if crossed else _texts(prompt, parts))
    check = Check(
        method,
        float(runs.without([()]).sum()),
        documents=tuple(documents),
        shares=tuple(shares),
        kind="document" if prompt.asking else "segment",
        measure="contribution" if answer.capture.transformed_by(Contributions) else "attention",
    )
    if documents:
        check = _grounded(check, runs, parts, answer, prompt)
    check = replace(check, **_FINDERS[method](runs, parts))
    if last is not None and names[last] in prompt.asking:
        check = replace(check, asked=_without_question(runs, names[last], of, last))
    check = replace(check, runs=len(runs.made))
    check = _with_images(check, runs, answer, see) if see else check
    if last is None:
        return check
    sink = names[of[0]] if of[0] is not None and names[of[0]] in parts.names else None
    return replace(check, sink=sink, kept=(names[last], attention[names[last]]))


def _runs_of(
    model: "LoadedModel", tokens: Sequence[Token], answer: Answer, documents: Sequence[str]
) -> AnswerRuns:
    """The runs of an answer with the rivals that are words of these documents."""
    ids, new = ([each.id for each in own] for own in (tokens, answer.capture.query_tokens))
    reader = model.having_read(ids)
    rivals = rivals_of(reader, ids, answer, contents_of(model, documents))
    return AnswerRuns(model, reader, ids, new, rivals)


def _grounded(
    check: Check, runs: AnswerRuns, parts: Deletable, answer: Answer, prompt: Prompt
) -> Check:
    """The check with each statement: how grounded it is, and what documents say in its place."""
    gone = sorted(token for i in parts.documents for token in parts.places[i])
    given, rivals = _grounds(runs, gone, written=answer.capture.kind != "cross")
    words, texts = words_of(answer), _texts(prompt, parts)
    raised = raised_words(words, given, prompt.question, texts)
    ahead = partial(contradictions, runs, words, given, rivals, answer, texts, raised)
    found = [replace(each, document=_saying(each, runs, parts)) for each in ahead()]
    torn = [each.place for each in ahead(torn=True)]
    torn += [w.first for w in words if w.negates and not given.raised(w.first, w.after, 0)]
    said = tuple(
        Statement(
            each.text,
            each.first,
            each.after,
            given.of(each.text, each.first, each.after),
            contradiction=next((c for c in found if each.first <= c.place < each.after), None),
            words=tuple(w for w in raised if each.first <= w.place < each.after),
            undecided=is_untested(each.text)
            or any(each.first <= place < each.after for place in torn),
        )
        for each in answer.parts("sentence")
    )
    return replace(check, grounds=given, statements=said)


def _without_question(
    runs: AnswerRuns, name: str, of: Sequence[int | None], last: int
) -> Deletion | None:
    """The effect of the question, which is not among the segments that are deleted."""
    own = [place for place, segment in enumerate(of) if segment == last]
    if len(own) == len(of):
        return None
    whole, without = runs.without([(), own])
    return Deletion(name, 0.0, tuple((without - whole).tolist()))


def _texts(prompt: Prompt, parts: Deletable) -> list[str]:
    """The texts of the documents."""
    names = {parts.names[i] for i in parts.documents}
    own = (each for each in prompt.segments if each.name in names)
    return ["".join(prompt.text[a:b] for a, b in each.slices) for each in own]


def _saying(found: Contradiction, runs: AnswerRuns, parts: Deletable) -> str:
    """The document without which the rival loses most of its lead; empty where it loses none."""
    sets = ((), *(parts.places[i] for i in parts.documents))
    pairs = runs.with_rivals([*runs.deleted(sets)])[:, found.place]
    whole, *without = (pairs[:, 1] - pairs[:, 0]).tolist()
    least = min(range(len(without)), key=without.__getitem__)
    return parts.names[parts.documents[least]] if without[least] < whole - MATTERS else ""


def _with_images(check: Check, runs: AnswerRuns, answer: Answer, see: See) -> Check:
    """The check with the effects of images, and of regions of them, on the answer."""
    effects, regions = without_regions(see, answer, runs.ids, runs.without([()])[0])
    more = check.runs + len(effects) + len(regions)
    return replace(check, effects=(*check.effects, *effects), occlusions=regions, runs=more)


def _deletable(
    names: Sequence[str],
    of: Sequence[int | None],
    attention: Mapping[str, float],
    last: int | None,
    asking: Collection[str],
    method: CheckMethod,
    *,
    alone: bool,
) -> Deletable:
    """The segments that can be deleted; `alone`: there is nothing else to measure."""
    others = [i for i, name in enumerate(names) if i != last and name in attention]
    hint = f"cut the prompt with {option('by')} or {option('segments')}"
    if asking:
        hint = "give it documents"
    if not others and alone:
        wrong = f"{option('check')} deletes segments before the last one, but there are none"
        raise InputError(wrong, hint)
    documents = [n for n, i in enumerate(others) if names[i] not in (*RESTS, *asking)]
    if method == "subsets" and not documents:
        wrong = f"{option('check_method', method)} deletes documents, but there are none"
        raise InputError(wrong, hint)
    if method == "curve" and len(documents) < 2:
        wrong = f"{option('check_method', method)} compares orders of documents"
        raise InputError(f"{wrong}, but there {'is one' if documents else 'are none'}", hint)
    own = [names[i] for i in others]
    places = [tuple(token for token, segment in enumerate(of) if segment == i) for i in others]
    shares = (attention[name] for name in own)
    return Deletable(tuple(own), tuple(shares), tuple(places), tuple(documents))


def _delete(runs: AnswerRuns, parts: Deletable) -> dict[str, Any]:
    """Each segment by itself; then a smallest set of documents."""
    everything = range(len(parts.names))
    without = parts.without(runs, everything)
    effects = single_deletions(parts.names, parts.shares, without)
    lost = -np.array([effect.change for effect in effects])
    found: dict[str, Any] = {
        "effects": effects,
        "correlation": correlation_of_ranks(np.array(parts.shares), lost),
        "group": against_random(parts.shares, without),
    }
    if parts.documents:
        names, shares = parts.of(parts.documents)
        without = parts.without(runs, parts.documents)
        found["noise"] = _noise(runs, parts)
        if some := smallest_set(shares, without):
            fewer = [tuple(other for other in some if other != i) for i in some]
            whole, left, *others = without([(), some, *fewer]).sum(axis=1).tolist()
            own = tuple(left - other for other in others)
            found["smallest"] = SmallestSet(tuple(names[i] for i in some), left - whole, own)
    return found


def _subsets(runs: AnswerRuns, parts: Deletable) -> dict[str, Any]:
    names, _ = parts.of(parts.documents)
    return {"subsets": subset_fit(names, parts.without(runs, parts.documents))}


def _curve(runs: AnswerRuns, parts: Deletable) -> dict[str, Any]:
    most = sorted(parts.documents, key=lambda i: -parts.shares[i])
    ranked = [parts.places[i] for i in most]
    return {"curves": curves(ranked, runs.without)}


_FINDERS: Mapping[CheckMethod, Callable[[AnswerRuns, Deletable], dict[str, Any]]] = {
    "delete": _delete,
    "chain": _delete,
    "subsets": _subsets,
    "curve": _curve,
}

# Groundedness: without the documents, and with unrelated text in their place.


def _grounds(runs: AnswerRuns, gone: Sequence[int], *, written: bool) -> tuple[Grounds, Grounds]:
    """The answer, and its rivals, with and without these tokens, and with unrelated ones for them.

    `written`: the model writes texts of the language that it reads.
    """
    own = own_text(runs.model, len(gone)) if written else []
    texts = [unrelated_prompt(runs.ids, gone, own, n) for n in range(UNRELATED if own else 0)]
    whole, without, *unrelated = runs.with_rivals([*runs.deleted([(), gone]), *texts])
    noise = np.reshape(unrelated, (len(unrelated), *whole.shape))
    given, rivals = (Grounds(whole[:, i], without[:, i], noise[..., i]) for i in range(2))
    return given, rivals


def _noise(runs: AnswerRuns, parts: Deletable) -> float | None:
    """The greatest change by the loss of unrelated text in the place of one document.

    The texts take turns at the places of the documents, as 19 for each would be 19 runs for each.
    """
    number = len(parts.documents)
    size = sum(len(parts.places[i]) for i in parts.documents)
    own = own_text(runs.model, size) if runs.model.kind != "cross" else []
    if not own:
        return None
    at = (n % number if number < UNRELATED else n * number // UNRELATED for n in range(UNRELATED))
    turns = [(n, parts.places[parts.documents[i]]) for n, i in enumerate(at)]
    turns.sort(key=itemgetter(1))  # those that share a prefix run together
    texts = [unrelated_prompt(runs.ids, gone, own, n) for n, gone in turns]
    changes = (runs.without(gone for _, gone in turns) - runs.after(texts)).sum(axis=1)
    return float(np.abs(changes).max())


# The rows of curves.


CURVE_POINT = Fields[Mapping[str, Any]](
    "CurveRow",
    "With --check-method curve: the answer's log-probability with some tokens of the documents.",
    keyed(
        LINE,
        OWN_ID,
        Field(
            "curve",
            Literal["deletion", "insertion"],
            "Whether the tokens are deleted from all documents, or inserted into none.",
        ),
        Field("tokens", int, "How many tokens of them."),
        Field(
            "log_probability",
            float,
            "The answer's (nats); documents with the most attention first.",
        ),
        Field("random_low", float, "The least value in 10 random orders of the documents."),
        Field("random_high", float, "The greatest."),
        ADDED,
    ),
)


def curve_points(
    shares: AnswerShares, top: int | None, line: int | None
) -> Iterator[Mapping[str, Any]]:
    same = shares.answer.in_rows(line)
    names = ("tokens", "log_probability", "random_low", "random_high")
    for curve in shares.check.curves if shares.check else ():
        for point in zip(curve.tokens, curve.values, curve.low, curve.high, strict=True):
            yield {**same, "curve": curve.kind, **dict(zip(names, point, strict=True))}
