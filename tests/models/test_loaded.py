"""A model is asked for what it can do, and one that cannot says so."""

from collections.abc import Callable

import pytest

from attnviz.errors import UsageError
from attnviz.kit.session import as_flag
from attnviz.models.catalog import Source, load
from attnviz.models.loaded import LoadedModel, predicting, tracing, valuing, writing

Capability = Callable[[LoadedModel], object]

NO_PREDICTION = (
    "does not predict the token that follows a text; use a model that does, such as builtin or "
    "gpt2."
)
NO_VALUES = (
    "--weighted is for models of one text with projections, which {} is not; leave it out, or "
    "use another model."
)


@pytest.mark.parametrize("capability", [predicting, valuing, tracing])
def test_the_builtin_model_can_do_all_but_write(capability: Capability) -> None:
    builtin = load(Source())
    assert capability(builtin) is builtin


@pytest.mark.parametrize(
    ("source", "capability", "message"),
    [
        (Source(), writing, "builtin is not an encoder-decoder; use --model translator."),
        (Source("translator"), predicting, f"translator {NO_PREDICTION}"),
        (Source("translator"), valuing, NO_VALUES.format("translator")),
        (Source("embeddings"), predicting, f"embeddings {NO_PREDICTION}"),
        (Source("embeddings"), valuing, NO_VALUES.format("embeddings")),
        (
            Source("embeddings"),
            tracing,
            "this has no queries, keys and values; choose another model.",
        ),
    ],
)
def test_a_model_that_cannot_is_refused(
    source: Source, capability: Capability, message: str
) -> None:
    with pytest.raises(UsageError) as error:
        capability(load(source))
    assert error.value.spelled(as_flag) == message
