"""A model is asked for what it can do, and one that cannot says so."""

import pytest

from attnviz.errors import UsageError
from attnviz.kit.session import as_flag
from attnviz.models.catalog import Source, load
from attnviz.models.loaded import Ability

NO_VALUES = (
    "--weighted is for models of one text with projections, which {} is not; leave it out, or "
    "use another model."
)


@pytest.mark.parametrize("ability", ["predict", "value_norms", "trace"])
def test_the_builtin_model_can_do_all_but_write(ability: Ability) -> None:
    builtin = load(Source())
    builtin.require(ability)
    assert builtin.can(ability)
    assert not builtin.can("write")


@pytest.mark.parametrize(
    ("source", "ability", "message"),
    [
        (Source(), "write", "builtin is not an encoder-decoder; use --model translator."),
        (Source("translator"), "value_norms", NO_VALUES.format("translator")),
        (Source("embeddings"), "value_norms", NO_VALUES.format("embeddings")),
        (
            Source("embeddings"),
            "trace",
            "this has no queries, keys and values; choose another model.",
        ),
    ],
)
def test_a_model_that_cannot_is_refused(source: Source, ability: Ability, message: str) -> None:
    with pytest.raises(UsageError) as error:
        load(source).require(ability)
    assert error.value.spelled(as_flag) == message
