"""Two columns with lines: a line's opacity is its weight, and what is left out is said."""

import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

import attnviz
from attnviz.draw.picture.links import COLORS, LEAST_DRAWN, MOST_TOKENS, drawn_as
from attnviz.errors import UsageError
from attnviz.records.exhibit import Exhibit, Look
from tests.conftest import Run

TEXT = "a fluffy blue creature roamed the verdant forest"


def exhibit_of(text: str = TEXT, **options: object) -> Exhibit:
    return attnviz.show(text, view="heatmap", **options).record  # type: ignore[arg-type]


def lines_of(figure: Figure) -> LineCollection:
    (found,) = [each for each in figure.findobj(LineCollection) if len(each.get_segments())]
    return found


def said(figure: Figure) -> str:
    texts = [text.get_text() for text in figure.findobj(Text)]
    return " ".join(" ".join(texts).split())


def drawn_weights(figure: Figure, most: float) -> dict[tuple[int, int], float]:
    """The weight of each line by its opacity, by the rows of its query and key."""
    lines = lines_of(figure)
    rows = [tuple(int(y) for _, y in segment) for segment in lines.get_segments()]
    return {
        (query, key): float(color[3]) * most
        for (query, key), color in zip(rows, lines.get_colors(), strict=True)
    }


def test_a_line_is_as_opaque_as_its_weight_is_strong() -> None:
    weights = np.asarray(attnviz.show(TEXT, heads="L3H2").record.capture.layers[0].weights[0])
    expected = {
        (query, key): float(weights[query, key])
        for query, key in np.argwhere(weights >= LEAST_DRAWN).tolist()
        if 0 < key <= query  # BOS takes what nothing needs
    }
    found = drawn_weights(drawn_as(exhibit_of(heads="L3H2"), Look()).figure, max(expected.values()))
    assert found.keys() == expected.keys()
    assert [found[at] for at in expected] == pytest.approx([*expected.values()], abs=1e-5)


def test_each_head_has_a_colour_that_is_named() -> None:
    figure = drawn_as(exhibit_of(heads="L3H0,L3H2"), Look()).figure
    colors = {tuple(color[:3]) for color in lines_of(figure).get_colors()}
    assert colors == {to_rgb(each) for each in COLORS[:2]}
    for name, color in zip(("L3H0", "L3H2"), COLORS, strict=False):
        beside = next(axes for axes in figure.axes if name in {t.get_text() for t in axes.texts})
        row = [text.get_text() for text in beside.texts].index(name)
        assert beside.lines[row].get_color() == color
    patterns = {each.label: each.weights for each in exhibit_of(heads="L3H0,L3H2").maps}
    most = max(float(np.max(pattern[1:, 1:])) for pattern in patterns.values())
    for head, color in zip(("L3H0", "L3H2"), COLORS, strict=False):
        own = [each for each in lines_of(figure).get_colors() if tuple(each[:3]) == to_rgb(color)]
        own_most = float(np.max(patterns[head][1:, 1:])) / most
        assert max(float(each[3]) for each in own) == pytest.approx(own_most, abs=1e-5)


def test_what_rests_take_is_left_out_and_said() -> None:
    exhibit = exhibit_of(heads="L3H2")
    share = np.mean([exhibit.maps[0].weights[query, 0] for query in range(1, 9)])  # type: ignore[union-attr]
    assert f"keys on which a head rests: {share:.0%} of the weight" in said(
        drawn_as(exhibit, Look()).figure
    )
    asked = exhibit_of(heads="L3H2", key="BOS")
    assert "left out" not in said(drawn_as(asked, Look()).figure)


def test_filters_hold() -> None:
    figure = drawn_as(exhibit_of(heads="L3H2", query="creature", top=1), Look()).figure
    assert len(lines_of(figure).get_segments()) == 1


def test_of_a_long_text_the_strongest_links_are_drawn_and_the_others_counted() -> None:
    exhibit = exhibit_of(" ".join([TEXT] * 20), heads="L3H2")
    figure = drawn_as(exhibit, Look()).figure
    rows = {int(y) for segment in lines_of(figure).get_segments() for _, y in segment}
    assert max(rows) < MOST_TOKENS
    assert re.search(
        r"shown are \d+ of 161 queries and \d+ of 161 keys; [\d,]+ links of 0.02 and more, up to "
        r"0.\d\d, are left out",
        said(figure),
    )


def test_the_least_weight_is_that_of_the_links_that_are_counted() -> None:
    exhibit = replace(exhibit_of(" ".join([TEXT] * 20), heads="L3H2"), least=0.05)
    assert "links of 0.05 and more, up to 0." in said(drawn_as(exhibit, Look()).figure)


def test_more_heads_than_colours_are_refused() -> None:
    with pytest.raises(UsageError, match="draws up to 12 heads, and these are 20"):
        drawn_as(exhibit_of(heads="all"), Look())


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(UsageError, match="no link is left to draw"):
        drawn_as(replace(exhibit_of(heads="L3H2"), least=0.999), Look())


@pytest.mark.parametrize("format", ["png", "svg", "pdf"])
def test_the_command_writes_it_in_each_format(run: Run, tmp_path: object, format: str) -> None:
    file = f"{tmp_path}/links.{format}"
    done = run("show", TEXT, "--view", "links", "-o", file)
    assert done.status == 0, done.err
    with open(file, "rb") as stream:
        first = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[format]
        assert stream.read(8).startswith(first)


def test_cross_attention_has_the_words_of_both_texts(run: Run, tmp_path: object) -> None:
    file = f"{tmp_path}/links.svg"
    done = run("show", "the small cat sleeps", "-m", "translator", "--view", "links", "-o", file)
    assert done.status == 0, done.err
    with open(file, encoding="utf-8") as stream:
        written = stream.read()
    assert "petit" in written
    assert "small" in written


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (("--orient", "key-rows"), "queries stand on the left"),
        (("--cmap", "Blues"), "its lines have a colour for each head"),
    ],
)
def test_an_option_without_a_meaning_is_refused(
    run: Run, tmp_path: object, option: tuple[str, str], why: str
) -> None:
    refused = run("show", TEXT, "--view", "links", "-o", f"{tmp_path}/x.png", *option)
    assert (refused.status, why in refused.err) == (2, True)
