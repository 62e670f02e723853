"""Print each measure of the package beside its limit; fail beyond one, but for `--print`.

Imports are those of files, without what is for type checkers. A room is a file or folder.
"""

import ast
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "attnviz"
Graph = Mapping[str, Collection[str]]


FILES = sorted(PACKAGE.rglob("*.py"))
NAMES = (".".join(file.relative_to(ROOT).with_suffix("").parts) for file in FILES)
MODULES = {name.removesuffix(".__init__"): file for name, file in zip(NAMES, FILES, strict=True)}
TREES = {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in MODULES.items()}
NODES = {name: [*ast.walk(tree)] for name, tree in TREES.items()}


def lines_of(*files: Path) -> int:
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def statements(node: ast.AST, *, inside: bool) -> Iterator[ast.AST]:
    """Everything but what is for type checkers; without `inside`, no functions either."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if inside or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from statements(child, inside=inside)


def imported(module: str, *, inside: bool) -> Iterator[str]:
    """The modules of the package that a module imports; imports are absolute."""
    for node in statements(TREES[module], inside=inside):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            names = (f"{node.module}.{each.name}" for each in node.names)
            yield from (name if name in MODULES else node.module for name in names)


@cache
def import_graph(*, inside: bool) -> Graph:
    return {name: {*imported(name, inside=inside)} - {name} for name in MODULES}


def circles(arrows: Graph) -> list[str]:
    """The strongly connected components of more than one file (Tarjan 1972)."""
    index, low = dict[str, int](), dict[str, int]()
    stack, components = list[str](), list[str]()

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in arrows[name]:
            if other not in index:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == index[name]:
            component = stack[stack.index(name) :]
            del stack[-len(component) :]
            components.extend([" ".join(sorted(component))] if len(component) > 1 else [])

    for name in arrows:
        if name not in index:
            visit(name)
    return components


def rooms(arrows: Graph, within: str = "attnviz.") -> Graph:
    """The import graph of the rooms of the package, or of one of its folders."""
    graph = defaultdict[str, set[str]](set)
    for name, others in arrows.items():
        room, *inner = (
            each.removeprefix(within).partition(".")[0] if each.startswith(within) else ""
            for each in (name, *others)
        )
        graph[room] |= {*inner} - {room, ""}
    return {room: others for room, others in graph.items() if room}


def upward(arrows: Graph, floors: list[list[str]]) -> list[str]:
    """Arrows between rooms from a floor to a higher one; a room that is on none has none."""
    floor = {room: number for number, on_it in enumerate(floors) for room in on_it}
    pairs = ((one, other) for one, others in rooms(arrows).items() for other in others)
    up = (pair for pair in pairs if {*pair} <= floor.keys() and floor[pair[0]] < floor[pair[1]])
    return sorted(" > ".join(pair) for pair in up)


def between_commands(arrows: Graph) -> list[str]:
    """Arrows between commands, whose names are in COMMANDS."""
    names, inner = strings(ast.walk(bound("COMMANDS"))), rooms(arrows, "attnviz.commands.")
    return sorted(f"{one} > {other}" for one in names for other in {*inner.get(one, ())} & names)


def bound(*names: str) -> Any:
    """The first value that is bound, with its type, to one of these names."""
    nodes = (node for tree in TREES.values() for node in tree.body)
    typed = (node for node in nodes if isinstance(node, ast.AnnAssign))
    return next(node.value for node in typed if ast.unparse(node.target) in names)


def strings(nodes: Iterable[ast.AST]) -> set[str]:
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    return {value for value in constants if isinstance(value, str)}


def long_functions(most: int) -> Iterator[str]:
    """Functions of more lines than this, without their docstring."""
    for module, nodes in NODES.items():
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = (ast.get_docstring(node, clean=False) or "").splitlines()
                if (node.end_lineno or 0) - node.lineno + 1 - len(docstring) > most:
                    yield f"{module}.{node.name}"


def double_names() -> list[str]:
    """Names of classes and of aliases of types that are defined in several files."""
    homes = defaultdict[str, set[str]](set)
    for module, nodes in NODES.items():
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                homes[node.name].add(module)
            elif isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation):
                homes[ast.unparse(node.target)].add(module)
    return sorted(name for name, where in homes.items() if len(where) > 1)


def splats() -> int:
    """Arguments `*name`, no constant, of calls of the package's own functions and classes.

    Others take what they are given one by one: `zip(*rows)`, `Group(*lines)`.
    """
    nodes = [node for each in NODES.values() for node in each]
    own = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    own |= {n.name for n in nodes if isinstance(n, ast.FunctionDef) and not n.args.vararg}
    calls = (node for node in nodes if isinstance(node, ast.Call))
    packed = (
        each.value.id
        for call in calls
        for each in call.args
        if ast.unparse(call.func).rpartition(".")[2] in own
        and isinstance(each, ast.Starred)
        and isinstance(each.value, ast.Name)
    )
    return sum(not name.isupper() for name in packed)


def naming(word: str) -> int:
    """How many files name something that most of the program need not know of, such as images."""
    return sum(bool(re.search(rf"\b{word}\b", file.read_text(encoding="utf-8"))) for file in FILES)


def watched(*arguments: str) -> list[int]:
    """How many modules a command loads, and how many files it enters; see watch.py."""
    with tempfile.TemporaryDirectory() as folder:
        own = {**os.environ, "ATTNVIZ_CONFIG": "", "XDG_CACHE_HOME": folder}
        command = [sys.executable, str(ROOT / ".ci" / "watch.py"), *arguments]
        ended = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True)
    return [int(number) for number in ended.stderr.split()[-2:]]


def measures(limits: dict[str, Any]) -> dict[str, int | list[str]]:
    """Each measure; that of a list is its length."""
    arrows, commands = import_graph(inside=True), between_commands(import_graph(inside=True))
    metrics = {row.args[0].value for row in bound("METRICS").args}
    scripts = (file for file in PACKAGE.rglob("*.*") if file.suffix in (".js", ".css", ".html"))
    spelled = {name: sorted(strings(nodes) & metrics) for name, nodes in NODES.items()}
    most = [f"{n}: {' '.join(s)}" for n, s in spelled.items() if 2 * len(s) > len(metrics)]
    schemas = [file for file in PACKAGE.rglob("*.json") if '"$schema"' in file.read_text("utf-8")]
    return {
        "lines": lines_of(*FILES),
        "files": len(FILES),
        "lines of page scripts": lines_of(*scripts),
        "lines of making": lines_of(*(ROOT / "making").rglob("*.py")),
        "lines of schemas": lines_of(*schemas),
        "functions over 40 lines": [*long_functions(40)],
        "files over 400 lines": [name for name, file in MODULES.items() if lines_of(file) > 400],
        "circles": circles(arrows),
        "circles at the top of files": circles(import_graph(inside=False)),
        "arrows up": upward(arrows, limits["floors"]),
        "arrows between commands": commands,
        "arrows not listed": sorted({*commands} - {*limits["commands"]}),
        "files that spell most metrics": most,
        "modules that tokens loads": watched("tokens", "a")[0],
        "files that show to PNG enters": watched("show", "a", "-o", "x.png")[1],
        "type names of several files": double_names(),
        "positional splats": splats(),
        "files that name images": naming("images?"),
        "files that name sounds": naming("sounds?"),
        "files that name implicit": naming("implicit"),
    }


def main(arguments: list[str]) -> int:
    """Print each measure beside its limit, what is in the lists, and the graph of rooms."""
    limits = tomllib.loads((ROOT / ".ci" / "limits.toml").read_text(encoding="utf-8"))
    beyond, details = False, list[str]()
    print(f"{'measure':<32}{'now':>8}{'limit':>8}")
    for name, measure in measures(limits).items():
        now = measure if isinstance(measure, int) else len(measure)
        limit = limits["limits"].get(name)
        over = limit is not None and now > limit
        beyond |= over
        shown = "-" if limit is None else f"{limit:,}"
        print(f"{name:<32}{now:>8,}{shown:>8}{'  beyond' if over else ''}")
        if isinstance(measure, list) and measure:
            details += ["", name, *(f"  {each}" for each in measure)]
    graph = sorted(rooms(import_graph(inside=True)).items())
    details += ["", "rooms", *(f"  {room} > {' '.join(sorted(to))}" for room, to in graph)]
    print(*details, sep="\n")
    return int(beyond and "--print" not in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
