"""`attnviz.show`: which tokens attend to which, as links, columns, pictures and text."""

from typing import TYPE_CHECKING, Unpack

from attnviz.commands.show.run import show_text
from attnviz.commands.show.shown import Shown, ShowOptions, show_of, shown_of, viewed_as
from attnviz.kit.model import AnyModel, loaded, text_options
from attnviz.kit.prepare import Truncation
from attnviz.kit.values import check_choices, check_text, recorded

if TYPE_CHECKING:
    from attnviz.commands.show.capture import AttentionCapture


@recorded
def show(
    given: "str | AttentionCapture",
    model: AnyModel = "builtin",
    *,
    view: str | None = None,
    bos: bool | None = None,
    special: bool = False,
    truncate: Truncation | None = None,
    target: str | None = None,
    **options: Unpack[ShowOptions],
) -> Shown:
    """Show which tokens attend to which, in a text or a capture.

    >>> attnviz.show("a fluffy blue creature", words=True, reduce="mean")
    <Shown builtin, 5 tokens, mean>

    Args:
        given: a text; or a capture, which has its run behind it.
        model: a name as for `load_model`, or a loaded model.
        view: "table", "heatmap", "grid", "text" or "links" as text; "heatmap" or "grid" as a
            picture.
        bos: put a beginning token in front; None means as the model was trained.
        special: read `<|endoftext|>` in the text as the special token.
        truncate: cut a text that is too long from this side.
        target: of an encoder-decoder, what it is to have written; None is what it writes.
        options: those of `ShowOptions`.

    Raises:
        AttnvizError: the text, the model or an option cannot be used; the message says
            what to do instead.
    """
    viewed = viewed_as(view, options)
    check_choices(truncate=(truncate, Truncation))
    if hasattr(given, "record"):
        return shown_of(given.record, viewed)
    what = show_of(viewed)  # its errors come before a model is loaded
    check_text(given)
    model = loaded(model)
    how = text_options(model, bos, special, truncate, target)
    return Shown(show_text(model._loaded, given, how, what), viewed)
