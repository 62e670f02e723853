"""`attnviz.compare`: one word in several texts, or one text in two models."""

from typing import Any

from attnviz.commands.compare.record import Pairing
from attnviz.commands.compare.rows import of_models, of_texts
from attnviz.commands.compare.run import compare_models, compare_texts
from attnviz.errors import UsageError
from attnviz.kit.model import AnyModel, loaded, text_options
from attnviz.kit.prepare import Truncation
from attnviz.kit.result import Result
from attnviz.kit.values import (
    HeadNames,
    Names,
    check_choices,
    check_count,
    check_text,
    one_name,
    recorded,
    transforms,
    which_heads,
)


@recorded
def compare(
    *texts: str,
    model: AnyModel = "builtin",
    against: AnyModel | None = None,
    pair: Pairing | None = None,
    query: str | int | None = None,
    heads: HeadNames | None = None,
    layers: HeadNames | None = None,
    weighted: bool = False,
    chars: bool | None = None,
    words: bool = False,
    drop_sink: bool = False,
    drop_key: Names = (),
    top: int | None = None,
    bos: bool | None = None,
    special: bool = False,
    truncate: Truncation | None = None,
) -> Result[Any]:
    """Compare what a word attends to in several texts, or two models on one text.

    >>> moles = "American shrew mole", "one mole of carbon dioxide"
    >>> attnviz.compare(*moles, query="mole")
    <Result of compare: builtin, 2 texts>

    Args:
        texts: two or more; one with `against`.
        model: a name as for `load_model`, or a loaded model.
        against: another model to run on the one text.
        pair: compare each head with that of the "same" name in it, or with the "best" match (None).
        query: the word to compare; None compares all rows.
        heads, layers: as for `attnviz.capture`.
        weighted, chars, words, drop_sink, drop_key: transforms, as for `attnviz.show`.
        top: how many of the heads that differ most, or are most alike.
        bos, special, truncate: as for `attnviz.capture`.

    Returns:
        a result whose record is a `TextComparison`, or a `ModelComparison`.

    Raises:
        AttnvizError: a text, a model or an option cannot be used; the message says
            what to do instead.
    """
    for text in texts:
        check_text(text)
    check_count("top", top, every=True)
    check_choices(pair=(pair, Pairing))
    if pair is not None and against is None:
        raise UsageError("pair is for two models", "add against, or leave it out")
    model = loaded(model)
    done = transforms(
        weighted=weighted, chars=chars, words=words, drop_sink=drop_sink, drop_key=drop_key
    )
    how = (text_options(model, bos, special, truncate), which_heads(layers, heads), done)
    if against is None:
        return of_texts(compare_texts(model._loaded, texts, one_name(query), *how), top)
    if len(texts) != 1 or query is not None:
        raise UsageError(
            "against compares two models over one text, row by row", "give one text, and no query"
        )
    other = loaded(against, "against")
    return of_models(
        compare_models(model._loaded, other._loaded, texts[0], *how, pair or "best"), top
    )
