"""The verdicts on made-up statements: right, wrong, negated, invented and off topic.

And whether the document that a right one is from is used, and the others not.

python -m benchmarks.answers FOLDER [0|1]

Each line of texts/facts.jsonl is a small world: a text, a question, and answers. A model reads the
text among others and checks each answer. Lines with an even number were there while the rule
was made (0); those with an odd number are to be measured once (1).
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import attnviz

FACTS = Path(__file__).parent / "texts" / "facts.jsonl"
TEXTS = 3
"""The number of texts that a question is about: its own, and others."""
KINDS = ("right", "also", "wrong", "negated", "invented", "off")
WORDINGS = ("{}", "Answer in one sentence. {}", "Use only the documents. {}")


def worlds() -> list[dict[str, str]]:
    return [json.loads(line) for line in FACTS.read_text(encoding="utf-8").splitlines()]


def documents(every: list[dict[str, str]], n: int) -> dict[str, str]:
    """The text of a world among those of others, at a place that varies."""
    places = [(n + 2 * i) % len(every) for i in range(TEXTS)]
    turned = places[n % TEXTS :] + places[: n % TEXTS]
    return {f"text {i}": every[i]["text"] for i in turned}


def verdicts(model: Any, half: int) -> Counter[tuple[str, str]]:
    every, counts = worlds(), Counter[tuple[str, str]]()
    for n, world in list(enumerate(every))[half::2]:
        question = WORDINGS[n % 3].format(world["question"])
        for kind in (kind for kind in KINDS if kind in world):
            answer = attnviz.generate(
                question, model, docs=documents(every, n), target=world[kind], heads="L0H0"
            )
            check = answer.check()
            (said,) = check.statements
            counts[kind, said.verdict] += 1
            for each in check.effects if kind == "right" else ():
                if use := check.use_of(each):
                    counts["own" if each.segment == f"text {n}" else "other", use] += 1
            found = said.contradiction and said.contradiction.said
            print(kind, repr(world[kind]), said.verdict, found or "", sep="\t", flush=True)
    return counts


def main() -> None:
    folder, half = sys.argv[1], int((*sys.argv, "0")[2])
    counts = verdicts(attnviz.load_model(folder), half)
    for kind in (*KINDS, "own", "other"):
        told = {verdict: n for (of, verdict), n in counts.items() if of == kind}
        print(kind, sum(told.values()), told)


if __name__ == "__main__":
    main()
