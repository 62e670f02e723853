"""Write the table of docs/python.md: each option of a command, and its place in Python.

`--check` says whether it has drifted. An option that has no place in Python needs a reason here.
"""

import inspect
import re
import sys
from pathlib import Path
from typing import Any

from drift import write_or_compare

import attnviz
from attnviz.cli import COMMANDS, command

TARGET = Path(__file__).with_name("python.md")
BEGIN, END = "<!-- options -->\n", "<!-- end of options -->\n"
OTHERS = {"show": ("capture",), "why": ("writes",)}
"""Functions that take options of a command beside the one of its name."""
WITHOUT_MODEL = ("scan", "atlas", "report")
FUNCTIONS = {
    name: (name, *OTHERS.get(name, ()), *(() if name in WITHOUT_MODEL else ("load_model",)))
    for name in COMMANDS
    if name in attnviz.__all__
}
"""The functions that take a command's options: the first that has one is named."""
RETURNS = {
    "show": attnviz.Shown,
    "explain": attnviz.Calculation,
    "generate": attnviz.AttentionAnswer,
    "scan": attnviz.ScanAtlas,
    "atlas": attnviz.ScanAtlas,
    "report": attnviz.Evaluation,
}
"""What functions return that give no `Result`."""
ELSEWHERE = {
    "file": "read the file: `Path(…).read_text()`",
    "lines": "a loop",
    "format": "`.rows`, `.to_columns()`, `.save(…)`",
    "output": "`.save(…)`",
    "width": "a terminal's",
    "paper": "`panels([…], width=CM)`",
    "no_color": "a terminal's",
    "color": "a terminal's",
    "quiet": "`.notes` holds the notes; nothing is printed",
    "debug": "Python shows its own tracebacks",
    "verify": "`verify(…)`",
    "shard": "only the command: parts are separate processes",
    "merge": "only the command: parts are separate processes",
}
"""What stands in Python for options that have no argument."""
OF = {
    ("atlas", "head"): "`ScanAtlas.head(…)`",
    ("atlas", "sort"): "sort `.to_columns()`",
    ("atlas", "top"): "cut `.to_columns()`",
    ("atlas", "plot"): "`ScanAtlas.figure(plot)`",
    ("atlas", "export"): "only the command",
    ("atlas", "folders"): "`atlas(folder)`",
    ("report", "file"): "`report(path)`",
    ("report", "fail_on"): "compare `.contradicted`",
    ("report", "fail_under"): "compare `.groundedness.mean`",
    ("report", "fail_drop"): "compare `.change.mean`",
    ("report", "max_failed"): "compare `.unanswered`",
    ("report", "top"): "cut `.to_columns()`",
    ("generate", "rows"): "`AttentionAnswer.shares(rows)`",
    ("generate", "check"): "`AttentionAnswer.check()`, `.square(check)`",
    ("generate", "square"): "`AttentionAnswer.square()`",
    ("generate", "check_method"): "`AttentionAnswer.check(method)`",
    ("generate", "view"): "`.figure(…)`, or `.shares(…)`",
    ("generate", "title"): "`.figure(title)`",
    ("generate", "chat"): "`generate(prompt)`, a list of messages",
    ("predict", "lines"): "`predict(text)`, a list of texts",
    ("why", "lines"): "`why(text)`, a list of texts",
    ("why", "pairs"): "`why(text)`, a list of texts",
    ("predict", "pairs"): "`predict(text, answer, versus)`, a list of each",
    ("ablate", "lines"): "`ablate(text)`, a list of texts",
    ("ablate", "pairs"): "`ablate(text, answer, versus)`, a list of each",
    ("patch", "pairs"): "`patch(text, source, answer, versus)`, a list of each",
    ("circuit", "pairs"): "`circuit(text, source, answer, versus)`, a list of each",
    ("generate", "resume"): "only the command: a loop keeps its own results",
    ("generate", "pages"): "`AttentionAnswer.save(…)`",
    ("generate", "text"): "`generate(prompt)`",
    ("generate", "format"): "`.shares(…)`, `.to_columns(…)`, `.figure(…)`, `.page()`",
    ("generate", "output"): "`AttentionAnswer.save(…)`",
    ("explain", "format"): "`.arrays`, `.save(…)`",
    ("show", "format"): "`.to_columns()`, `.save(…)`",
    ("scan", "quiet"): "nothing is printed",
    ("scan", "dry_run"): "`estimate_scan(…)`",
    ("show", "text"): "`show(given)`",
    ("why", "writes"): "`writes(…)`",
    ("compare", "text"): "`compare(texts)`",
}
PICTURES = {"cmap", "dpi"}


def place_of(name: str, option: str, of: str) -> str:
    """Where an option of a command is in Python; what it names there exists."""
    place = _place_of(name, option, of)
    for attribute in re.findall(r"`\.(\w+)", place):
        returned = RETURNS.get(of, attnviz.Result)
        if not (hasattr(returned, attribute) or attribute in returned.__annotations__):
            raise LookupError(f"what {of} returns has no {attribute}, where {option} is to be")
    return place


def _place_of(name: str, option: str, of: str) -> str:
    if (of, name) in OF:
        return OF[of, name]
    flag = option.lstrip("-").replace("-", "_")
    for function in FUNCTIONS[of]:
        taken = parameters_of(function)
        for candidate in (flag, name):
            if candidate in taken:
                return f"`{function}({candidate})`"
    if name in PICTURES:
        return f"`.figure({name})`"
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    raise LookupError(f"{of} {option} ({name}) has no place in Python")


def parameters_of(function: str) -> set[str]:
    """The arguments of a function; those of `ShowOptions` are arguments of `show`."""
    found = set(inspect.signature(getattr(attnviz, function)).parameters)
    return found | set(attnviz.ShowOptions.__annotations__) if function == "show" else found


def options_of(name: str) -> list[tuple[str, str]]:
    """The parameters of a command, each with its longest spelling."""
    made: Any = command(name)
    return [
        (each.name, max(each.opts, key=len))
        for each in made.params
        if not each.hidden
        and each.name not in ("help", "help_all", "install_completion", "show_completion")
    ]


def table() -> str:
    """One row for each option, with all the commands that have it there."""
    rows: dict[tuple[str, str], list[str]] = {}
    for name in COMMANDS:
        if name not in FUNCTIONS:
            continue
        for parameter, option in options_of(name):
            shown = option if option.startswith("-") else option.upper()
            place = place_of(parameter, option, name).replace(f"`{name}(", "`…(")
            rows.setdefault((shown, place), []).append(name)
    lines = ["| option | of | in Python |", "| --- | --- | --- |"]
    lines += [f"| `{o}` | {', '.join(of)} | {p} |" for (o, p), of in sorted(rows.items())]
    return "\n".join(lines) + "\n"


def only_in_python(places: str) -> str:
    """The arguments that no command has."""
    functions = dict.fromkeys(name for names in FUNCTIONS.values() for name in names)
    found = [
        f"`{function}({name})`"
        for function in functions
        for name in inspect.signature(getattr(attnviz, function)).parameters
        if name not in ("options", "model") and not re.search(rf"\({name}\)`", places)
    ]
    return f"Only in Python: {', '.join(['`from_attention`', '`load`', *found])}.\n"


def main() -> int:
    """Write or compare; the exit code."""
    text = TARGET.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    places = table()
    made = before + BEGIN + "\n" + places + "\n" + only_in_python(places) + END + after
    return write_or_compare(TARGET, made)


if __name__ == "__main__":
    sys.exit(main())
