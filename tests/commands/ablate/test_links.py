"""`attnviz ablate --cut`: several links at once, of every token and of segments."""

from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz.commands.ablate.record import links_named
from attnviz.errors import UsageError
from tests.conftest import Run
from tests.reading import on_one_line, rows_in

TEXT = "a blue bird slept . the bird was"  # BOS is token 0
ONE, TWO = range(1, 6), range(6, 9)
SEGMENTS = ["one=0:19", "two=/the bird was/"]
HEADS = "L0H0,L1H0,L2H0,L4H0"


def changes(cut: Any, **more: Any) -> list[float]:
    """The changes of heads, one after the other, always in the same order."""
    rows = attnviz.ablate(TEXT, cut=cut, heads=HEADS, answer="blue", **more).rows
    return [row["change"] for row in sorted(rows, key=lambda row: (row["layer"], row["head"]))]


def links(queries: Any, keys: Any) -> list[str]:
    return [f"{query}:{key}" for query in queries for key in keys if key <= query]


BETWEEN, WITHIN = links(TWO, ONE), links(ONE, ONE) + links(TWO, TWO)
CASES: dict[str, tuple[Any, list[str]]] = {
    "the first token's": ("*:0", links(range(9), [0])),
    "all of one query": ("-1:*", links([8], range(9))),
    "between two segments": ("@two:@one", BETWEEN),
    "within one": ("@two:@two", links(TWO, TWO)),
    "within each": ("@:@", WITHIN),
    "of a segment to a token": ("@two:blue", links(TWO, [2])),
    "several, of which some are the same": (
        ["@two:@one", "-1:blue", "bird#1:a"],
        [*BETWEEN, "3:1"],
    ),
}


@pytest.mark.parametrize(
    ("name", "query", "key"),
    [
        ("circle:@0.3,0.5:0.8,0.95", "circle", "@0.3,0.5:0.8,0.95"),
        ("@2:0.3,0.5:0.8,0.95:@0.5,0.5", "@2:0.3,0.5:0.8,0.95", "@0.5,0.5"),
        ("@2:r3c5:@2:t1r0c0", "@2:r3c5", "@2:t1r0c0"),
        ("@r3c5:image 2", "@r3c5", "image 2"),
        ("@two:@2", "@two", "@2"),
    ],
)
def test_places_of_images_keep_their_colons(name: str, query: str, key: str) -> None:
    found = links_named([name])
    assert found is not None
    assert found.names == ((query, key),)


@pytest.mark.parametrize("name", CASES)
def test_a_name_stands_for_its_links_and_all_are_cut_together(name: str) -> None:
    named, each = CASES[name]
    segments = SEGMENTS if "@" in str(named) else ()
    found = attnviz.ablate(TEXT, cut=named, segments=segments, heads=HEADS, answer="blue")
    assert found.record.cut.number == len(each)
    for renormalise in (False, True):
        if not renormalise or name not in ("the first token's", "all of one query"):
            mine = changes(named, segments=segments, renormalise=renormalise)
            np.testing.assert_allclose(mine, changes(each, renormalise=renormalise), atol=1e-6)
            assert max(map(abs, mine)) > 1e-3


def test_a_row_of_every_token_keeps_its_only_link_when_others_are_rescaled() -> None:
    wanted = changes(links(range(1, 9), [0]), renormalise=True)
    np.testing.assert_allclose(changes("*:0", renormalise=True), wanted, atol=1e-6)


def test_cutting_every_link_of_a_head_is_ablating_it() -> None:
    ablated = attnviz.ablate(TEXT, heads=HEADS, answer="blue").rows
    wanted = [r["change"] for r in sorted(ablated, key=lambda r: (r["layer"], r["head"]))]
    np.testing.assert_allclose(changes("*:*"), wanted, atol=1e-4)


def test_a_last_row_predicts_no_token_of_the_text(run: Run) -> None:
    for more in ({}, {"rows": "token"}, {"cut": ["-1:blue", "was:0"]}):
        with pytest.raises(UsageError, match="only the last token's row, which predicts no token"):
            attnviz.ablate(TEXT, **{"cut": "-1:blue", **more})
    assert changes("-1:blue") == changes("was:blue")
    rows = attnviz.ablate(TEXT, cut=["-1:blue", "bird#2:blue"], rows="token").record.changes
    assert np.abs(rows).max() > 0.01
    out = run("ablate", TEXT, "--cut", "-1:blue", "--head", "L4H0", "--together").out
    assert "blue" in out.partition("before")[2]
    assert "-0.000" not in out


def test_a_row_that_keeps_its_only_link_is_told(run: Run) -> None:
    kept = "(a row that would have no other keeps its links)"
    for cut, renormalise, told in (
        ("*:0", True, True),
        ("*:0", False, False),
        ("3:1", True, False),
    ):
        more = ("--renormalise",) if renormalise else ()
        out = on_one_line(run("ablate", TEXT, "--cut", cut, *more, "--head", "L4H0").out)
        assert (kept in out) == told


def test_the_links_are_told_in_words_and_rows_name_them(run: Run) -> None:
    parts = "--segment", SEGMENTS[0], "--segment", SEGMENTS[1]
    for cuts, words in (
        (["*:0"], "a head's 9 links from every token to 0 removed"),
        (["@two:@one"], "a head's 15 links from segment two to segment one removed"),
        (["@:@"], "a head's 21 links within each segment removed"),
        (["-1:blue", "@one:@one"], "a head's 16 links from -1 to blue and within segment one"),
    ):
        given = [word for cut in cuts for word in ("--cut", cut)]
        more = parts if "@" in "".join(cuts) else ()
        out = run("ablate", TEXT, *given, *more, "--head", "L4H0").out
        assert words in on_one_line(out)
    given = "--cut", "-1:blue", "--cut", "bird#2:0", "--head", "L4H0,L3H1", "--together"
    assert "without these links of L3H1, L4H0" in on_one_line(run("ablate", TEXT, *given).out)
    (row, *_) = rows_in(run("ablate", TEXT, *given[:6], "-f", "jsonl").out)
    assert (row["cut_query"], row["cut_key"]) == ("-1, bird#2", "blue, 0")


def test_a_name_that_is_no_segment_says_which_there_are() -> None:
    for cut, said in {
        "@three:@one": "'@three' is no segment; there are: @other, @one, @two",
        "@:@one": "has @ on only one side",
        "@one:@two": "'@one' never attends to '@two'",
    }.items():
        with pytest.raises(UsageError, match=said):
            attnviz.ablate(TEXT, cut=cut, segments=SEGMENTS)
    with pytest.raises(UsageError, match="links of 20 heads are too many to cut"):
        attnviz.ablate("the cat slept . " * 60, cut="*:*")
    assert attnviz.ablate("a @ b c", cut="b:@", heads="L4H0").record.cut.number == 1
