"""Which heads a user's layers and heads choose, and what is refused."""

import pytest

from attnviz.errors import UsageError
from attnviz.records.heads import Head, choose_heads, every_head

HEADS_PER_LAYER = (3, 3, 5)

CHOSEN: list[tuple[str | None, str | None, str]] = [
    (None, "L1H2", "L1H2"),
    (None, "l1h2", "L1H2"),
    (None, "1.2", "L1H2"),
    (None, "2", "L0H2 L1H2 L2H2"),  # a number alone: that head of every layer
    ("1", None, "L1H0 L1H1 L1H2"),  # a layer alone: all its heads
    ("0,2", "1", "L0H1 L2H1"),
    ("0-1", "0-1", "L0H0 L0H1 L1H0 L1H1"),
    ("1-0", "0", "L0H0 L1H0"),  # a range may be written backwards
    (None, "4", "L2H4"),  # only the layers that have it
    ("-1", None, "L2H0 L2H1 L2H2 L2H3 L2H4"),  # from the end
    ("-3", "-1", "L0H2"),
    (None, "-1", "L0H2 L1H2 L2H4"),  # the last one of each layer
    (None, "-5", "L2H0"),
    ("-2--1", "0", "L1H0 L2H0"),
    ("0,-1", "-2-2", "L0H1 L0H2 L2H2 L2H3"),
    (None, "1.2, L0H1 ,1.2", "L0H1 L1H2"),  # each once, in order
    ("all", "all", "L0H0 L0H1 L0H2 L1H0 L1H1 L1H2 L2H0 L2H1 L2H2 L2H3 L2H4"),
]


@pytest.mark.parametrize(("layers", "heads", "expected"), CHOSEN)
def test_names_ranges_and_lists_choose_heads(
    layers: str | None, heads: str | None, expected: str
) -> None:
    chosen = choose_heads(HEADS_PER_LAYER, layers, heads)
    assert " ".join(map(str, chosen)) == expected


REFUSED: list[tuple[str | None, str | None, str]] = [
    ("3", None, "there is no layer 3; this model's layers are 0 to 2"),
    ("0-7", None, "there is no layer 7"),
    (None, "5", "there is no head 5; this model's heads are 0 to 4"),
    ("0", "4", "there is no head 4; this model's heads are 0 to 2"),
    (None, "L0H4", "there is no head L0H4; layer 0 of this model has heads 0 to 2"),
    (None, "L9H0", "there is no layer 9"),
    ("1", "L0H0", "heads='L0H0' is not in layers="),
    (None, "fluffy", "heads='fluffy' cannot be read"),
    (None, "1.2.3", "cannot be read"),
    ("", None, "layers='' cannot be read"),
    ("-4", None, "there is no layer -4; this model's layers are 0 to 2; -1 is the last"),
    ("0", "-4", "there is no head -4; this model's heads are 0 to 2; -1 is the last"),
    (None, "L-1H0", "heads='L-1H0' cannot be read"),  # a name has numbers from 0
    ("--1", None, "cannot be read"),
]


@pytest.mark.parametrize(("layers", "heads", "says"), REFUSED)
def test_a_choice_that_cannot_be_met_says_what_there_is(
    layers: str | None, heads: str | None, says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        choose_heads(HEADS_PER_LAYER, layers, heads)
    assert says in str(caught.value)


def test_a_layer_without_attention_has_no_heads() -> None:
    assert every_head((2, 0, 1)) == (Head(0, 0), Head(0, 1), Head(2, 0))
    assert choose_heads((2, 0, 1), None, "0") == (Head(0, 0), Head(2, 0))
