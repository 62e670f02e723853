"""Write the list in docs/metrics.md from METRICS, or (`--check`) say that it has drifted."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from drift import write_or_compare

from attnviz.records.metrics import METRICS, ROLES

TARGET = Path(__file__).with_name("metrics.md")
LIST = re.compile(r"(?<=<!-- metrics -->\n).*?(?=<!-- /metrics -->)", re.DOTALL)


def lines() -> Iterator[str]:
    """The metrics, and the roles in the order in which a head has them."""
    yield ""
    yield from ("| metric | | mean over the queries of the | unit |", "| --- | --- | --- | --- |")
    for metric in METRICS.values():
        unit = metric.unit or "share"
        yield f"| `{metric.name}` | `{metric.short}` | {metric.meaning} | {unit} |"
    yield from ("", "| role | condition | rows that can show it |", "| --- | --- | --- |")
    for role in ROLES:
        yield f"| {role.name} | `{role.metric}` ≥ {role.least:g} | at least {role.rows} |"
    yield ""


def main() -> int:
    """Write or compare; the exit code."""
    found = TARGET.read_text(encoding="utf-8")
    text = LIST.sub("\n".join([*lines(), ""]), found)
    return write_or_compare(TARGET, text)


if __name__ == "__main__":
    sys.exit(main())
