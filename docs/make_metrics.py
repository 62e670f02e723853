"""Write the list in docs/metrics.md from METRICS, or (`--check`) say that it has drifted."""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from drift import write_or_compare

from attnviz.records.metrics import IMAGE_METRICS, METRICS, ROLES, Score

TARGET = Path(__file__).with_name("metrics.md")
LIST = re.compile(r"(?<=<!-- metrics -->\n).*?(?=<!-- /metrics -->)", re.DOTALL)
OF_IMAGES = re.compile(r"(?<=<!-- image metrics -->\n).*?(?=<!-- /image metrics -->)", re.DOTALL)


def lines() -> Iterator[str]:
    """The metrics, and the roles in the order in which a head has them."""
    yield from table(METRICS.own.values(), "queries")
    yield from ("", "| role | condition | rows that can show it |", "| --- | --- | --- |")
    for role in (each for each in ROLES if each.metric in METRICS.own):
        yield f"| {role.name} | `{role.metric}` ≥ {role.least:g} | at least {role.rows} |"
    yield ""


def table(scores: Iterable[Score], rows: str) -> Iterator[str]:
    """Scores that are means over such rows."""
    yield from (
        "",
        f"| metric | | mean over the {rows} of the | unit |",
        "| --- | --- | --- | --- |",
    )
    for score in scores:
        yield f"| `{score.name}` | `{score.short}` | {score.meaning} | {score.unit or 'share'} |"


def main() -> int:
    """Write or compare; the exit code."""
    found = TARGET.read_text(encoding="utf-8")
    text = LIST.sub("\n".join([*lines(), ""]), found)
    images = "\n".join([*table(IMAGE_METRICS.values(), "patches"), "", ""])
    text = OF_IMAGES.sub(images, text)
    return write_or_compare(TARGET, text)


if __name__ == "__main__":
    sys.exit(main())
