"""Options of `show` that do not go together: said at once, before anything is read or run."""

from collections.abc import Mapping
from typing import Any

from attnviz.commands.options import LINE
from attnviz.errors import UsageError
from attnviz.writers.formats import Format

PICTURE_ONLY = ("cmap", "color_scale", "dpi", "title")
CHOOSING = ("query", "key", "top", "least", "no_self", "no_previous")
FILTERS = ("rollout", "reduce", "drop_sink", "drop_key", *CHOOSING)
SPELLING = {"least": "min"}


def check_combination(given: Mapping[str, Any], form: Format) -> None:
    """Every option that was given has a meaning for this format.

    Args:
        given: the command's parameters by name.
        form: the format that was chosen.

    Raises:
        UsageError: naming the option, and what it is for.
    """
    view = given["view"]
    if given["chars"] and given["words"]:
        raise UsageError("--words merges what --chars does, and more", "give one of them")
    if given["over"] and not given["reduce"]:
        raise UsageError("--over says over what to reduce", "add --reduce mean or --reduce max")
    for option in ("head", "reduce") if given["rollout"] else ():
        if given[option]:
            raise UsageError("--rollout is over all heads", f"leave --{option} out")
    if given["scores"]:
        _check_scores(given, form)
    if not form.picture:
        _refuse(given, PICTURE_ONLY, form, "it is for pictures: -o FILE.png")
    if view in ("table", "text", "links") and form.picture:
        raise UsageError(f"--view {view} cannot be a picture", "use --view heatmap or --view grid")
    if form.name != "txt" and not form.picture:
        _refuse(given, ("view", "orient"), form, "rows and captures have no view")
    if form.name == "txt" and view not in ("heatmap", "grid"):
        _refuse(given, ("orient",), form, "it turns --view heatmap, --view grid and pictures")
    if form.name == "npz":
        _refuse(given, FILTERS, form, "a capture holds whole patterns; filter when you show it")
    if form.name == "html":
        _refuse(
            given, (*CHOOSING, "scores"), form, "a page shows whole patterns, to look around in"
        )
    _check_lines(given, form)


NOT_OF_SCORES = (
    *("words", "chars", "rollout", "weighted", "drop_sink", "drop_key", "reduce"),
    *("least", "verify", "color_scale"),
)


def _check_scores(given: Mapping[str, Any], form: Format) -> None:
    """Scores are no shares: they can be looked at, and written as they are."""
    for name in NOT_OF_SCORES:
        if given[name]:
            option = f"--{SPELLING.get(name, name).replace('_', '-')}"
            raise UsageError("scores are shown as they are", f"leave {option} out")
    if given["view"] not in (None, "heatmap"):
        raise UsageError(f"--view {given['view']} shows weights", "leave it or --scores out")


def _check_lines(given: Mapping[str, Any], form: Format) -> None:
    if LINE in str(given["output"] or "") and not given["lines"]:
        raise UsageError(f"{LINE} in -o stands for the number of a line", "add --lines")
    one_each = form.picture or form.name in ("npz", "html")
    if given["lines"] and one_each and LINE not in str(given["output"] or ""):
        raise UsageError(
            f"with --lines each line makes a {form.name} of its own",
            f"put {LINE} into the name: -o heads-{LINE}.{form.name}",
        )


def _refuse(given: Mapping[str, Any], names: tuple[str, ...], form: Format, why: str) -> None:
    for name in names:
        if given[name]:
            option = f"--{SPELLING.get(name, name).replace('_', '-')}"
            raise UsageError(f"{option} does nothing for {form.name}", why)
