"""Options: how things are shown."""

from dataclasses import dataclass
from typing import Any

import typer

from attnviz.commands import completion
from attnviz.commands.groups.panels import of_look
from attnviz.console import ColorMode
from attnviz.records.exhibit import ColorScale, Look, Orient
from attnviz.writers.formats import VIEWS


def _known_view(name: str | None) -> str | None:
    if name is not None and name not in VIEWS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, VIEWS))}.")
    return name


@dataclass(frozen=True)
class Canvas:
    """How a picture is drawn."""

    cmap: str | None = of_look(
        None,
        "--cmap",
        metavar="NAME",
        help="The Matplotlib colour map of a picture.",
        show_default="Blues; RdBu_r for values with a sign, viridis for layers",
        autocompletion=completion.cmaps,
    )
    dpi: int | None = of_look(
        None,
        "--dpi",
        metavar="N",
        help="The resolution of a picture, in dots per inch.",
        show_default="150",
    )

    @property
    def given(self) -> dict[str, Any]:
        """What was given, for a renderer that has defaults of its own."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Views:
    """Which view, and which way round."""

    view: str | None = of_look(
        None,
        "--view",
        metavar="|".join(VIEWS),
        help=" ".join(f"{name}: {what}." for name, what in VIEWS.items()),
        callback=_known_view,
        autocompletion=completion.views,
    )
    orient: Orient | None = of_look(
        None,
        "--orient",
        help="key-rows draws keys as rows, as some lessons do; columns then sum to 1.",
        show_default="query-rows",
    )


@dataclass(frozen=True)
class Looks(Canvas, Views):
    """How an exhibit is drawn, in the terminal or as a picture."""

    color_scale: ColorScale | None = of_look(
        None,
        "--color-scale",
        help="The colour scale of a picture: linear, log (which shows small weights), or each row "
        "on its own scale.",
        show_default="linear",
    )
    title: str | None = of_look(
        None,
        "--title",
        metavar="TITLE",
        help="The title of a picture, above the line that says which model, text and head it is "
        "of; an empty one removes both.",
        show_default="the head",
    )

    @property
    def look(self) -> Look:
        """The record that renderers take."""
        return Look(**vars(self))


@dataclass(frozen=True)
class Color:
    """Whether the terminal shows colours."""

    color: ColorMode = of_look(
        "auto",
        "--color",
        help="Whether to use colours. auto: on a terminal, unless NO_COLOR is set. always: in a "
        "pipe, too.",
    )
    no_color: bool = of_look(False, "--no-color", help="The same as --color never.")


@dataclass(frozen=True)
class Screen(Color):
    """What the terminal shows."""

    width: int | None = of_look(
        None,
        "--width",
        metavar="N",
        help="The width of terminal output in columns, 40 or more.",
        show_default="the terminal's",
    )
