"""A transcript: a command line as it is typed, and all that it prints.

    $ FORCE_COLOR=1 attnviz show --lines < moles.txt
    ! note: a line of standard error
    exit 0
    standard output

The first line alone makes a new case: `python -m tests.golden.make` writes the rest.
"""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

from attnviz import __version__
from attnviz.cli import run

HERE = Path(__file__).parent
EXPECTED, INPUTS, SAMPLES = HERE / "expected", HERE / "inputs", HERE.parents[1] / "sample_texts"
VARIABLES = {"COLUMNS": "80", "ATTNVIZ_CONFIG": "", "HF_HUB_OFFLINE": "1"}
FOREIGN = "ATTNVIZ_MODEL", "NO_COLOR", "FORCE_COLOR", "TERM", "COLORTERM"
NUMBER = re.compile(r"(?<![\w.])[-−+]?(?:\d*\.\d+(?:e[-+]?\d+)?|\d+e[-+]?\d+)(?!\w)")
MASKS = {
    rf"(attnviz) {re.escape(__version__)}": r"\1 VERSION",
    r'("versions": )\{"attnviz"[^}]*\}': r"\1{}",
    r"\b(?=[0-9a-f]*[a-f])[0-9a-f]{16,}\b": "DIGEST",
    r"\b\d:\d\d:\d\d\b": "TIME",
    r"(?<![\w.])\d(\.\d+)?e[-+]\d\d\b": "ROUNDING",
}
WIDTH, SOME = 240, 8


def transcripts() -> list[Path]:
    return sorted(path for path in EXPECTED.glob("**/*.txt") if path.read_text()[:1] == "$")


@contextlib.contextmanager
def workplace() -> Iterator[None]:
    """The working folder of every case: the samples, the inputs, and a scan.

    Its path is short, so that no line which names it is shortened or broken.
    """
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, contextlib.chdir(folder):
        shutil.copytree(SAMPLES, ".", dirs_exist_ok=True)
        shutil.copytree(INPUTS, ".", dirs_exist_ok=True)
        transcript("$ attnviz scan moles.txt --split line --length 16 --workers 1 -o scanned")
        yield


def transcript(line: str) -> str:
    """The transcript of a command line, run in this process."""
    words = shlex.split(line.removeprefix("$ "))
    words, source = (words[:-2], Path(words[-1])) if words[-2:-1] == ["<"] else (words, None)
    start = words.index("attnviz")
    here = str(Path.cwd())
    variables = dict(each.replace("$PWD", here).split("=", 1) for each in words[:start])
    status, out, err = _run(words[start:], source, variables)
    form = words[words.index("-f") + 1] if "-f" in words else "txt"
    notes = "".join(f"! {each}\n" for each in err.splitlines())
    return _masked(f"{line}\n{notes}exit {status}\n{_readable(out, form)}")


def same(one: str, other: str) -> bool:
    """Whether two texts are equal but for the last digit of their decimal fractions.

    Another processor adds in another order, so that a last digit may be rounded differently.
    """
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    numbers = (
        [Decimal(n.replace("−", "-")) for n in NUMBER.findall(text)] for text in (one, other)
    )
    return all(abs(a - b) <= max(abs(a) / 1000, _digit(a)) for a, b in zip(*numbers, strict=True))


def _digit(number: Decimal) -> Decimal:
    """One in the last digit of a number."""
    return Decimal((0, (1,), number.as_tuple().exponent))


def _run(words: list[str], source: Path | None, variables: dict[str, str]) -> tuple[int, str, str]:
    """The exit code of a command, and what it writes to standard output and error."""
    stdin = io.BytesIO(source.read_bytes() if source else b"")
    out, err = io.BytesIO(), io.BytesIO()
    with (
        patch.object(sys, "argv", words),
        patch.object(sys, "stdin", io.TextIOWrapper(stdin, "utf-8")),
        patch.object(sys, "stdout", io.TextIOWrapper(out, "utf-8", write_through=True)),
        patch.object(sys, "stderr", io.TextIOWrapper(err, "utf-8", write_through=True)),
        patch.dict(os.environ, VARIABLES),
    ):
        for name in FOREIGN:
            os.environ.pop(name, None)
        os.environ.update(variables, XDG_CACHE_HOME=str(Path.cwd() / "cache"))
        try:
            run()
        except SystemExit as ended:
            status = int(ended.code or 0)
        return status, out.getvalue().decode(), err.getvalue().decode()


def _readable(out: str, form: str) -> str:
    """An output for people to compare: the words of a picture or page, four digits of a number."""
    if form in ("json", "jsonl") or out.startswith("{"):
        return "".join(f"{_laid_out(node)}\n" for node in _nodes(out))
    if form in ("csv", "tsv"):
        return NUMBER.sub(lambda found: _rounded(found[0]), out)
    if form in ("svg", "html"):
        words = re.sub(r"<(script|style|metadata)\b.*?</\1>|<[^>]*>", "\n", out, flags=re.DOTALL)
        return "".join(f"{line.strip()}\n" for line in words.splitlines() if line.strip())
    return out


def _nodes(text: str) -> Iterator[Any]:
    """The JSON documents of a text, one behind the other."""
    decoder = json.JSONDecoder(parse_float=lambda number: float(_rounded(number)))
    while text := text.lstrip():
        node, end = decoder.raw_decode(text)
        yield json.loads(json.dumps(node, sort_keys=True)) if "$schema" in node else node
        text = text[end:]


def _rounded(number: str) -> str:
    """A number to at most four digits and four decimals."""
    return repr(round(float(f"{float(number):.4g}"), 4))


def _laid_out(node: Any, indent: str = "") -> str:
    """JSON with as much in a line as fits."""
    line = json.dumps(node, ensure_ascii=False)
    if len(indent + line) <= WIDTH or not isinstance(node, dict | list):
        return line
    if isinstance(node, list) and isinstance(node[0], float):
        return json.dumps([*node[:SOME], f"and {len(node) - SOME} more"])
    inner = indent + " "
    if isinstance(node, dict):
        rows = [f"{json.dumps(k)}: {_laid_out(v, inner)}" for k, v in node.items()]
    else:
        rows = [_laid_out(each, inner) for each in node]
    begin, end = "{}" if isinstance(node, dict) else "[]"
    return f"{begin}\n{inner}" + f",\n{inner}".join(rows) + f"\n{indent}{end}"


def _masked(text: str) -> str:
    """Without what differs from computer to computer, and from run to run."""
    text = text.replace(str(Path.cwd()), "FOLDER")
    for pattern, mask in MASKS.items():
        text = re.sub(pattern, mask, text)
    return text
