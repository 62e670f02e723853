"""`attnviz.predict`: which token comes next, and what the model attended to for it."""

from collections.abc import Sequence
from typing import Any

from attnviz.commands.predict.rows import of_mean, of_prediction
from attnviz.commands.predict.run import Reading, predict_text
from attnviz.errors import UsageError
from attnviz.kit.model import AnyModel, loaded, text_options
from attnviz.kit.option import check_count, check_word
from attnviz.kit.prepare import Truncation
from attnviz.kit.result import Result
from attnviz.kit.values import recorded, texts_of
from attnviz.records.predict import mean_of


@recorded
def predict(
    text: str | Sequence[str],
    model: AnyModel = "builtin",
    *,
    top: int = Reading.top,
    each: bool = False,
    lens: bool = False,
    answer: str | None = None,
    versus: str | None = None,
    attribute: bool = False,
    bos: bool | None = None,
    special: bool = False,
    truncate: Truncation | None = None,
) -> Result[Any]:
    """Predict the next tokens, with their probabilities.

    >>> found = attnviz.predict("Bark is very cute and he is a", top=3)
    >>> found.rows[0]["token"]
    'Bark'

    Args:
        text: a text; or several, each of which is read, and then their mean.
        model: a name as for `load_model`, or a loaded model.
        top: how many candidates.
        each: also after every position, with the token that really followed.
        lens: also after each layer, as if the model ended there.
        answer: also the logit and log-probability of this token after the text; as rows, these.
        versus: also those of this token, and the difference.
        attribute: instead the logit of `answer` (by default the likeliest token) as a sum over the
            parts of the model; with `versus` the difference.
        bos, special, truncate: as for `attnviz.capture`.

    Returns:
        a result whose record is a `Prediction`; of several texts a `PredictionMean`.

    Raises:
        AttnvizError: the text, the model or an option cannot be used; the message says
            what to do instead.
    """
    if attribute and (each or lens):
        raise UsageError("attribute, each and lens are several readings", "ask for one of them")
    if attribute and not isinstance(text, str):
        raise UsageError("parts of logits of several texts have no mean", "give one text")
    if versus is not None and not attribute and answer is None:
        raise UsageError("versus is for answer or attribute", "add an answer")
    check_word("answer", answer)
    check_word("versus", versus)
    check_count("top", top)
    texts = texts_of(text)
    model = loaded(model)
    reading = Reading(top, each, lens, attribute, answer, versus)
    options = text_options(model, bos, special, truncate)
    found = [predict_text(model._loaded, one, options, reading) for one in texts]
    parts = top if attribute else None
    results = [of_prediction(one, parts, line) for line, one in enumerate(found, start=1)]
    return results[0] if isinstance(text, str) else of_mean(mean_of(found)).after(results)
