"""Texts on the page of an answer about its parts, for readers who have no attnviz."""

import re
from collections.abc import Iterator
from html import escape

from attnviz.commands.generate.sources import AnswerReport
from attnviz.draw.glossary import find_term
from attnviz.draw.titles import about_gates, amount, prompt_size
from attnviz.records.grounding import Check

# Sentences. A term in brackets, as `[share|share of attention]`, is a button that tells its
# definition; no text of a user goes through this.


def with_terms(sentence: str, used: dict[str, str]) -> str:
    def term(found: "re.Match[str]") -> str:
        said, name = found[1], found[2] or found[1]
        entry = find_term(name)
        assert entry is not None, name
        used[entry.name] = entry.definition
        target = f'popovertarget="{id_of(entry.name)}"'
        return f'<button type="button" class="term" {target}>{said}</button>'

    return re.sub(r"\[([^\]|]+)\|?([^\]]*)\]", term, escape(sentence))


def id_of(term: str) -> str:
    return "term-" + re.sub(r"\W", "-", term)


def question(report: AnswerReport) -> str:
    return report.answer.before if report.asking is None else report.text(report.asking)


def before(report: AnswerReport) -> str:
    tokens = amount(prompt_size(report.answer.capture), "token")
    if report.answer.capture.kind == "cross":
        return f"The [model] read this text of {tokens} and wrote the answer."
    if report.asking is None:
        return f"The [model] read this text of {tokens}, its [prompt], and went on with it."
    if report.answer.asking:
        documents = amount(len(report.sources), "source")
        return f"Before this, the [model] read {documents}, shown below: a [prompt] of {tokens}."
    read = f"The [model] read a text of {tokens}, its [prompt], and went on with it."
    return f"{read} This is how it ends."


def on_support(report: AnswerReport) -> str:
    check, number = report.check, len(report.shares.parts)
    check = check if check and len(check.statements) == number else None
    said = f"A statement is a {report.unit} of the answer."
    said += f" Choose one of the {number} to see its own sources." if number > 1 else ""
    if check is None or not check.statements:
        return f"{said} Whether the sources support it was not measured."
    said += " Its [groundedness] says how much of its [probability] the sources give, from 0 "
    if not check.grounds or not len(check.grounds.unrelated):
        return f"{said}(nothing) to 1 (all). There is no unrelated text to compare it with."
    return (
        f"{said}(nothing) to 1 (all). It is not supported where unrelated text in their place "
        "gives as much, or they give fewer than half of its words, and contradicted where they say "
        "something else in the place of a word. Supported does not mean true."
    )


def measured(report: AnswerReport) -> list[str]:
    if report.check and report.check.subsets:
        return ["weight"]
    return ["change (nats)"] if report.changes else []


def on_shares(report: AnswerReport) -> Iterator[str]:
    check = report.check
    yield (
        "The [share|share of attention] is the part of all [attention] that the model gave to a "
        "source while it wrote the answer. Shares sum to 1 over the sources and, below the rule, "
        "all else: the question, the answer itself, and rests, such as the first token, which "
        "take the attention that no source is given."
    )
    if report.answer.hops:
        yield (
            "What the answer gave to its own earlier tokens was carried back to what these "
            f"attended to, {amount(report.answer.hops, 'time')}."
        )
    if report.shares.gates is not None:
        names = [f"statement {n}" for n in range(1, len(report.shares.parts) + 1)]
        several = len(report.answer.choice.heads) > 1
        for told in about_gates(report.shares.gates, names, several=several):
            yield f"{told[0].upper()}{told[1:]}."
    if check is None:
        yield (
            "It shows where the model looked, not what mattered to its answer: nothing was deleted "
            "to find out. attnviz generate … --check -o page.html does that (in Python: "
            "answer.check() before answer.save)."
        )
    elif check.effects:
        yield (
            "The change when a source is deleted is that of the answer's [log-probability], in "
            "[nats], when the model reads the text without it: −0.7 makes the answer half as "
            "probable, and less than 0.1 does not count as a change."
        )
        if check.occlusions:
            yield "An image is not deleted but made grey, so that it has as many tokens."
        yield from _on_sets(check)
    elif check.subsets:
        yield (
            "The weight is what a source adds to the [logit] of the answer's probability, in a "
            "sparse linear fit to runs with random sources left out."
        )


def _on_sets(check: Check) -> Iterator[str]:
    if check.grounds is not None and len(check.documents) > 1:
        yield (
            "Each line deletes one source, so that of two that say the same, neither is missed; "
            "the last one deletes all at once."
        )
    if check.smallest is not None:
        yield (
            "Those marked “needed” are a smallest set without which at least four fifths of what "
            "all sources give is lost."
        )
    if check.noise is not None:
        yield (
            f"The loss of unrelated text in the place of a source changes the answer by "
            f"{check.least:.2f} nats at most: “used” costs more, and “against” makes "
            "the answer likelier by more."
        )


def on_matrix(report: AnswerReport) -> str:
    others = f" Only {len(report.named)} have a column of their own." if report.others else ""
    return (
        f"A number is the [share|share of attention] that a statement (a row) gave to a source (a "
        f"column), the mean over its [tokens|token]. The further its blue is from the colour of "
        f"the page, the larger the share; the last blue is that of {report.top:.2f}.{others}"
    )
