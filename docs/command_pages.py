"""A page of the site for each command, made of the declarations that make its help."""

import html
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import typer
from typer.core import TyperArgument, TyperOption

from attnviz.cli import COMMANDS, app, command
from attnviz.kit.help import description_of, signature_of

INDEX = """# Commands

`attnviz COMMAND --help` says the same in the terminal, and `--help-all` lists every option.

| command | what it does |
| --- | --- |
"""


@cache
def command_pages() -> dict[str, str]:
    """The Markdown of each page, by its place; the list of all commands first."""
    rows = (f"| [`{name}`]({name}.md) | {about} |\n" for name, about in COMMANDS.items())
    pages = {f"reference/{name}.md": "\n".join(_lines(name)) for name in COMMANDS}
    return {"reference/index.md": INDEX + "".join(rows), **pages}


def _lines(name: str) -> Iterator[str]:
    """Usage, examples, and a heading for each option, under which a link finds it."""
    made: Any = command(name)
    # a command keeps the help option of its first context, and is made once for the whole process
    context = typer.Context(made, info_name=f"attnviz {name}", **app.info.context_settings)
    usage = " ".join([context.command_path, *made.collect_usage_pieces(context)])
    yield f"# attnviz {name}\n\n{_escaped(made.help)}\n\n```text\n{usage}\n```\n"
    _, *examples = filter(None, made.epilog.split("\n\n"))
    yield "\n".join(["```sh", *examples, "```\n"])
    panels: dict[str, list[TyperArgument | TyperOption]] = {}
    for each in (each for each in made.get_params(context) if not each.hidden):
        panel = "Arguments" if isinstance(each, TyperArgument) else each.rich_help_panel
        panels.setdefault(panel or "Options", []).append(each)
    for title, parameters in panels.items():
        yield f"## {title}\n"
        for each in parameters:
            anchor = max(each.opts, key=len).lstrip("-").lower()
            yield f"### `{signature_of(each).plain}` {{ #{anchor} }}\n"
            yield f"{_escaped(description_of(each, context).plain)}\n"


def _escaped(text: str) -> str:
    """A text of the help, in which nothing is Markdown."""
    return re.sub(r"([\\`*_{}\[\]])", r"\\\1", html.escape(text, quote=False))
