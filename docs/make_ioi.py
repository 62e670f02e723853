"""Write into docs/ioi.md what its commands print: Wang et al. 2022 on SmolLM2, step by step.

    python docs/make_ioi.py FOLDER           FOLDER holds SmolLM2-135M-Instruct
    python docs/make_ioi.py FOLDER --check   fails where an output is no longer what it was

The pairs are made here. The prose is written by hand and checked: every number with an error has to
stand in an output, every claim of `CLAIMS` has to hold, and the circuit is the heads that the rule
of the page chooses; else nothing is written. CI does not run this: it has no such model. It takes a
quarter of an hour on one processor core.
"""

import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from make_outputs import ROOT, filled
from make_trained import BLOCK

DOCUMENT = ROOT / "docs" / "ioi.md"
PAIRS, LEAST = 100, 0.01
NAMES = (
    "Mary John Tom James Sarah Anna David Laura Peter Kate Michael Paul Mark Lisa Emily Jack Alice "
    "Robert Susan George Emma Kevin Adam Simon Jane Rachel"
).split()
PLACES = "store park office school garden market station hospital library beach".split()
THINGS = "drink ball letter book cup gift key ring phone coin".split()
TEMPLATES = (
    "When {} and {} went to the {}, {} gave a {} to",
    "Then {} and {} had a long talk at the {}, and {} gave a {} to",
    "While {} and {} were working at the {}, {} gave a {} to",
    "After {} and {} left the {}, {} gave a {} to",
    "Then, {} and {} were thinking about going to the {}. {} wanted to give a {} to",
)


def pairs() -> Iterator[dict[str, str]]:
    """Texts in both orders of names, each with a source of three other names (the paper's ABC)."""
    draw = random.Random(0)
    for i in range(PAIRS):
        receiver, giver, *others = draw.sample(NAMES, 5)
        first = [receiver, giver] if i // 2 % 2 else [giver, receiver]  # ABBA, BABA
        place, thing = draw.choice(PLACES), draw.choice(THINGS)
        template = TEMPLATES[i // 4 % len(TEMPLATES)]
        yield {
            "text": template.format(*first, place, giver, thing),
            "source": template.format(*others[:2], place, others[2], thing),
            "answer": f" {receiver}",
            "versus": f" {giver}",
        }


Means = Mapping[str, tuple[float, float]]
"""The first number of each row of a table, with its standard error."""
ROW = re.compile(r"^(L\d+(?:H\d+| MLP)(?: → [\w.]+)?)\s+([+-][\d.]+)\s+([\d.]+)", re.MULTILINE)
NUMBER = re.compile(r"[+-]?\d+\.\d+ ± \d+\.\d+")
PROSE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
CIRCUIT = re.compile(r"(?<=held-out\.jsonl --head )\S+")


def means(output: str) -> Means:
    """The numbers of a table."""
    return {name: (float(mean), float(error)) for name, mean, error in ROW.findall(output)}


def chosen(outputs: str) -> str:
    """The heads with a share of LEAST, and three standard errors, on a path."""
    sends = {
        name.split(" ")[0]
        for name, (mean, error) in means(outputs).items()
        if "→" in name and abs(mean) >= max(LEAST, 3 * error)
    }
    return ",".join(sorted(sends, key=lambda head: [int(n) for n in re.findall(r"\d+", head)]))


def _largest(table: Means) -> str:
    return max(table, key=lambda name: abs(table[name][0]))


def _beyond(table: Means, name: str, sign: int = 1) -> bool:
    """Whether a mean is beyond three standard errors."""
    mean, error = table[name]
    return sign * mean > 3 * error


# The tables in the order of the page: direct parts, paths to the logits, to queries, some of these
# exactly, to values, to keys, one of these exactly, and what each head adds to the circuit.
CLAIMS: Mapping[str, Callable[[list[Means]], bool]] = {
    "L23H3 adds most directly": lambda of: _largest(of[0]) == "L23H3",
    "L23H3 has the largest share": lambda of: _largest(of[1]) == "L23H3 → logits",
    "L23H0 and L23H2 raise IO": lambda of: (
        _beyond(of[1], "L23H0 → logits") and _beyond(of[1], "L23H2 → logits")
    ),
    "L24H4 and L24H5 work against it": lambda of: (
        _beyond(of[1], "L24H4 → logits", -1) and _beyond(of[1], "L24H5 → logits", -1)
    ),
    "L20H0 and L19H2 act most": lambda of: (
        [name for name in of[2] if "L23H0.q" in name][:2] == ["L20H0 → L23H0.q", "L19H2 → L23H0.q"]
        and _beyond(of[2], "L19H2 → L23H0.q")
    ),
    "L17H4 sends most": lambda of: _largest(of[4]) == "L17H4 → L20H0.v",
    "L16H0 acts most": lambda of: _largest(of[5]) == "L16H0 → L17H4.k",
    "the estimate misses it": lambda of: (
        _beyond(of[6], "L16H0 → L17H4.k") and not _beyond(of[5], "L16H0 → L17H4.k")
    ),
    "16 of the 23 heads": lambda of: (
        len(of[-1]) == 23 and sum(mean > 2 * error for mean, error in of[-1].values()) == 16
    ),
    "five of them lower it": lambda of: sum(-mean > 2 * e for mean, e in of[-1].values()) == 5,
}


def checked(text: str, outputs: list[str]) -> None:
    """Check the prose by the outputs of the page.

    Raises:
        SystemExit: a sentence is no longer so.
    """
    every = " ".join("".join(outputs).replace("±", " ").split())
    prose = " ".join(PROSE.sub("", text).split())
    wrong = [said for said in NUMBER.findall(prose) if said.replace(" ± ", " ") not in every]
    tables = [table for table in map(means, outputs) if table]
    wrong += [claim for claim, holds in CLAIMS.items() if claim not in prose or not holds(tables)]
    if wrong:
        raise SystemExit("\n".join([f"{DOCUMENT.name}: no longer so:", *wrong]))


def made(text: str, folder: Path) -> str:
    """The document with today's outputs, and the circuit that they choose."""
    every, outputs = [json.dumps(pair) + "\n" for pair in pairs()], list[str]()
    for name, lines in {"ioi": every, "chosen-on": every[::2], "held-out": every[1::2]}.items():
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")

    def fill(found: re.Match[str]) -> str:
        block = CIRCUIT.sub(chosen("".join(outputs)), found[0])
        outputs.append(filled(block, folder))
        print(outputs[-1], flush=True)
        return outputs[-1]

    new = BLOCK.sub(fill, text)
    checked(new, outputs)
    return new


def main(arguments: list[str]) -> int:
    """Rewrite the document, or check it; the exit code is 1 where an output has changed."""
    model, *check = arguments
    old = DOCUMENT.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "smollm2").symlink_to(Path(model).resolve(), target_is_directory=True)
        new = made(old, folder)
    if check:
        print(f"{DOCUMENT.name}: {'as it was' if new == old else 'an output has changed'}")
        return int(new != old)
    DOCUMENT.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
