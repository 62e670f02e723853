"""Write the figures of benchmark runs into the tables of docs/performance.md.

python -m benchmarks --json jobs.json
python -m benchmarks.pages --json pages.json
python -m benchmarks.explore --json app.json
python docs/make_benchmarks.py jobs=jobs.json pages=pages.json app=app.json     any of them
"""

import json
import re
import sys
from pathlib import Path

TARGET = Path(__file__).with_name("performance.md")
LEFT_OUT = ("medians",)  # whole records
SAID = {True: "yes", False: "**no**"}


def main() -> None:
    """Write each table into the document."""
    text = TARGET.read_text(encoding="utf-8")
    for name, _, file in (argument.partition("=") for argument in sys.argv[1:]):
        rows = json.loads(Path(file).read_text(encoding="utf-8"))
        place = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
        table = _table(rows)
        text = place.sub(lambda _, table=table: table, text)
    TARGET.write_text(text, encoding="utf-8")


def _table(rows: list[dict[str, object]]) -> str:
    columns = [column for column in rows[0] if column not in LEFT_OUT]
    cells = [[_said(row[column]) for column in columns] for row in rows]
    lines = [columns, ["---"] * len(columns), *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _said(value: object) -> str:
    return SAID[value] if isinstance(value, bool) else str(value)


if __name__ == "__main__":
    main()
