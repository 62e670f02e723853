"""How often the link that `show` tells of is one that a reader would accept.

python -m benchmarks.links HALF MODEL...

The texts (`texts/links.jsonl`) were written before any rule was run on them. HALF is `development`
or `held_out`; models that predict what comes next take the texts for causal models, others those
for encoders. Beside the rule stands a baseline: the strongest link of the mean over all heads,
without those to the token itself and to the first one.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import attnviz
from attnviz.records.rests import ALIKE, ASKED

TEXTS = Path(__file__).parent / "texts/links.jsonl"


def span(text: str, name: str) -> tuple[int, int]:
    """Where a word stands in a text; `word/2` is its second occurrence."""
    numbered = re.fullmatch(r"(.+?)/(\d)", name, re.DOTALL)
    word, number = (numbered[1], int(numbered[2])) if numbered else (name, 1)
    bounds = [r"(?<!\w)" if word[0].isalnum() else "", r"(?!\w)" if word[-1].isalnum() else ""]
    found = [*re.finditer(bounds[0] + re.escape(word) + bounds[1], text)]
    return found[number - 1].span()


def is_accepted(case: Any, query: Any, key: Any) -> bool:
    """Whether a link between two tokens is one of those that a reader accepts."""

    def lies_in(token: Any, name: str) -> bool:
        start, end = span(case["text"], name)
        begin = token.start + len(token.text) - len(token.text.lstrip())
        return not token.special and begin < end and start < token.end

    return any(lies_in(query, a) and lies_in(key, b) for a, b in case["links"])


def told_links(model: Any, case: Any) -> list[tuple[int, int, tuple[int, int]]]:
    """The links (query, key, head) of the first screen, the strongest first."""
    record = attnviz.show(case["text"], model).record
    capture, head = record.capture, record.choice.heads[0]
    brings, links = capture.brings, list[tuple[int, int, tuple[int, int]]]()
    if record.choice.why == "brings":
        key = next(i for i, t in enumerate(capture.key_tokens) if t.end > brings.start)
        links.append((len(capture.query_tokens) - 1, key, brings.head))
    links += [
        (link.query, link.key, head) for link in (record.finding.links if record.finding else ())
    ]
    return links


def is_alike(capture: Any, query: int, key: int, head: tuple[int, int]) -> bool:
    """Whether over half of the other queries, of three or more, give the key more than .3."""
    weights = capture.pattern(*head)[:, key]
    others = [q for q in range(len(weights)) if q > key or (not capture.record.causal and q != key)]
    return len(others) >= ASKED and bool((weights[others] > ALIKE).mean() > 0.5)


def baseline(capture: Any) -> tuple[int, int]:
    """The strongest link of the mean over all heads, without self, first and special tokens."""
    mean = np.mean([capture.pattern(*head) for head in capture.heads], axis=0)
    mean[np.diag_indices(len(mean))] = mean[:, 0] = 0
    special = [token.special for token in capture.tokens]
    mean[special], mean[:, special] = 0, 0
    query, key = np.unravel_index(mean.argmax(), mean.shape)
    return int(query), int(key)


def measured(folder: str, cases: Sequence[Any]) -> Iterator[str]:
    """The lines of a model: each text with its told link, and the figures."""
    model = attnviz.load_model(folder)
    of = "causal" if model._loaded.can("predict") else "encoder"
    counts = dict.fromkeys(("first", "any", "alike", "baseline"), 0)
    cases = [case for case in cases if case["model"] == of]
    for case in cases:
        capture = attnviz.capture(case["text"], model)
        links = told_links(model, case)
        hits = [is_accepted(case, capture.tokens[q], capture.tokens[k]) for q, k, _ in links]
        counts["first"] += hits[:1] == [True]
        counts["any"] += any(hits)
        counts["alike"] += any(is_alike(capture, *link) for link in links)
        query, key = baseline(capture)
        counts["baseline"] += is_accepted(case, capture.tokens[query], capture.tokens[key])
        told = ", ".join(
            f"{capture.tokens[q].label} → {capture.tokens[k].label}" for q, k, _ in links
        )
        yield f"{'yes' if any(hits) else 'no ':3} {told:60} | {case['text'][-40:]!r}"
    yield f"{folder}: {counts} of {len(cases)}"


if __name__ == "__main__":
    half, *folders = sys.argv[1:]
    every = [json.loads(line) for line in TEXTS.read_text(encoding="utf-8").splitlines()]
    for each in folders:
        print(*measured(each, [case for case in every if case["half"] == half]), sep="\n")
