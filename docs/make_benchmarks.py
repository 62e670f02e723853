"""Write the figures of a benchmark run into the table of docs/benchmarks.md.

python -m benchmarks --json figures.json
python docs/make_benchmarks.py figures.json
"""

import json
import re
import sys
from pathlib import Path

TARGET = Path(__file__).with_name("benchmarks.md")
TABLE = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- /table -->)", re.DOTALL)
COLUMNS = ("job", "ours", "against", "theirs", "ratio", "must", "reached")


def main() -> None:
    """Write the table into the document."""
    rows = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for row in rows:
        row["reached"] = "yes" if row["reached"] else "**no**"
    lines = [COLUMNS, ["---"] * len(COLUMNS), *([row[c] for c in COLUMNS] for row in rows)]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    text = TARGET.read_text(encoding="utf-8")
    TARGET.write_text(TABLE.sub(lambda _: table, text), encoding="utf-8")


if __name__ == "__main__":
    main()
