"""The table: strongest first, complete, and readable at every width."""

import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Group

from attnviz.console import Display
from attnviz.draw.terminal import table
from attnviz.draw.terminal.table import QueryRow, render, rows_of
from attnviz.records.exhibit import Exhibit, Map
from attnviz.records.heads import Head, NamedHead
from attnviz.records.rests import rests_in
from attnviz.records.transforms import NormBased
from tests.factories import make_capture, make_exhibit, view_lines

CREATURE = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.9, 0.1, 0.0, 0.0, 0.0, 0.0],
        [0.5, 0.2, 0.3, 0.0, 0.0, 0.0],
        [0.02, 0.03, 0.48, 0.47, 0.0, 0.0],
        [0.25, 0.25, 0.25, 0.125, 0.125, 0.0],
        [0.2, 0.2, 0.2, 0.2, 0.1, 0.1],
    ],
    np.float32,
)


def creature(**options: object) -> Exhibit:
    capture = make_capture("a fluffy blue creature roamed here", patterns={Head(0, 0): CREATURE})
    return make_exhibit(capture, **options)  # type: ignore[arg-type]


def lines(exhibit: Exhibit, width: int = 80, **display: bool) -> list[str]:
    return view_lines(render, exhibit, width, **display)


def line_of(query: str, exhibit: Exhibit, width: int = 80) -> str:
    return next(line for line in lines(exhibit, width) if line.strip().startswith(f"{query} →"))


def test_weights_and_the_rest_sum_to_1() -> None:
    capture = make_capture("one two three four five six seven eight", bos=True)
    exhibit = make_exhibit(capture)
    for row in rows_of(exhibit, exhibit.maps[0]):
        shown = row.strongest(3, 0.05)
        total = sum(weight for _, weight in shown.keys) + shown.rest + shown.resting
        assert total == pytest.approx(1, abs=1e-5)
        apart = rests_in(capture, Head(0, 0))[: row.query + 1].sum()
        counted = len(shown.keys) + shown.others  # every token up to itself, but for rests
        assert row.query + 1 - apart <= counted <= row.query + 1


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("top", [None, 1, 4])
def test_what_is_printed_adds_up_to_1(width: int, top: int | None) -> None:
    text = " ".join(lines(creature(top=top), width))
    for row in re.split(r"[a-z]+ → ", text)[1:]:
        assert sum(map(float, re.findall(r"\d\.\d\d", row))) == pytest.approx(1, abs=0.02)


def test_top_and_least_decide_how_many_keys_there_are() -> None:
    assert len(re.findall(r"\d\.\d\d", line_of("here", creature(top=1)))) == 1 + 1  # and the rest
    assert "+0.20 on 2 more" in line_of("here", creature(least=0.15), 200)
    every = " ".join(lines(creature(top=6, queries=[5]), 60))
    assert len(re.findall(r"[a-z] +\d\.\d\d", every)) == 6  # folded, not dropped


def test_rows_without_a_link_are_left_out_and_counted() -> None:
    text = lines(creature(least=0.5))
    assert [line.split()[0] for line in text if "→" in line] == ["a", "fluffy", "blue"]
    assert text[-2:] == ["", "3 rows have no link of at least 0.5"]
    text = lines(creature(keys=[4]))
    assert [line.split()[0] for line in text if "→" in line] == ["roamed", "here"]
    assert text[-1] == "4 rows have no link to the keys asked for"
    one = lines(creature(queries=[2, 3], keys=[0, 1], least=0.2))
    assert one[-1] == "1 row has no link of at least 0.2 to the keys asked for"
    assert not any("no link" in line for line in lines(creature(top=1)))


def test_a_table_of_no_rows_says_so() -> None:
    text = lines(creature(queries=[3, 4, 5], least=0.9))
    assert not any("→" in line for line in text)
    assert text[-1] == "there is no link of at least 0.9"


def test_heads_without_a_row_are_left_out_and_named() -> None:
    even = np.tril(np.ones((6, 6), np.float32)) / np.arange(1, 7, dtype=np.float32)[:, None]
    capture = make_capture(
        "a fluffy blue creature roamed here", patterns={Head(0, 0): CREATURE, Head(0, 1): even}
    )
    text = lines(make_exhibit(capture, heads=capture.heads[:2], queries=[2, 3, 5], least=0.45))
    assert "L0H0" in text
    assert not any(line.startswith("L0H1") for line in text)
    assert text[-1] == "4 rows, among them all of L0H1, have no link of at least 0.45"


def long_text(tokens: int, **options: object) -> Exhibit:
    words = " ".join("extraordinarily" if n % 9 == 4 else f"w{n}" for n in range(tokens))
    return make_exhibit(make_capture(words), **options)  # type: ignore[arg-type]


def test_a_long_text_has_two_keys_on_a_line() -> None:
    text = lines(long_text(120))
    rows = [line for line in text if "→" in line]
    assert len(rows) == 120
    assert max(len(re.findall(r"\S +\d\.\d\d ▇", row)) for row in rows) >= 2
    assert len([line for line in text if re.search(r"\d\.\d\d", line)]) == 120


def test_only_a_long_table_of_a_whole_text_says_how_to_see_less() -> None:
    hint = "--query and --top show fewer, -o FILE.png draws all"
    assert lines(long_text(61))[-1] == f"61 rows; {hint}"
    for exhibit in (long_text(60), long_text(70, top=1), long_text(70, queries=list(range(65)))):
        assert hint not in " ".join(lines(exhibit))


@pytest.mark.parametrize("width", [40, 56, 64, 72, 80, 100])
def test_what_is_left_is_written_in_one_form(width: int) -> None:
    for exhibit in (creature(), creature(top=2), long_text(30), long_text(30, top=1)):
        rests = [line for line in lines(exhibit, width) if "+0." in line]
        assert len({" on " in line for line in rests}) == 1


def test_a_rest_of_nothing_is_not_written() -> None:
    weights = np.eye(4, dtype=np.float32)
    weights[3] = (0.004, 0.0, 0.0, 0.996)
    exhibit = make_exhibit(make_capture("a b c d", patterns={Head(0, 0): weights}), top=1)
    assert not any("+" in line or "0.00" in line for line in lines(exhibit))


def test_a_key_that_is_a_number_is_in_quotes() -> None:
    even = np.full((4, 4), 0.25, np.float32)
    capture = make_capture("in 1776 . now", patterns={Head(0, 0): even})
    text = " ".join(" ".join(lines(make_exhibit(capture, queries=[3]), 120)).split())
    assert all(key in text for key in ("→ in 0.25", '"1776" 0.25', '"." 0.25', "now 0.25"))


def test_masked_keys_are_never_shown_nor_counted() -> None:
    first = line_of("a", creature(top=5))
    assert "more" not in first
    assert len(re.findall(r"\d\.\d\d", first)) == 1


def test_a_head_that_is_named_twice_has_both_titles_or_both_names() -> None:
    named = (NamedHead("one", Head(0, 1), "looks back"), NamedHead("two", Head(0, 1), "looks on"))
    capture = make_capture("a b c", named_heads=named)
    exhibit = make_exhibit(capture, heads=capture.heads[:2], about="")
    assert "L0H1 · known for: looks back; looks on" in lines(exhibit)
    long = replace(named[1], title="looks at whatever stands around it")
    exhibit = make_exhibit(replace(capture, named_heads=(named[0], long)), heads=capture.heads[:2])
    # where that is too long, by the names of the card
    assert "L0H1 · known for: one, two" in lines(exhibit, 52)
    names = (replace(each, behaviour=each.behaviour * 9) for each in named)
    exhibit = make_exhibit(replace(capture, named_heads=tuple(names)), heads=capture.heads[:2])
    assert "L0H1" in lines(exhibit, 37)
    assert not any("…" in line for line in lines(exhibit, 37))


def test_without_unicode_bars_and_arrows_are_ascii() -> None:
    text = "\n".join(lines(creature(), unicode=False))
    assert text.isascii()
    assert re.search(r"creature > blue +0.48 ===", text)


def test_weights_above_1_scale_the_bars() -> None:
    """As after a transform that multiplies weights by the norm of the values."""
    capture = make_capture(
        "a fluffy blue creature roamed here", patterns={Head(0, 0): CREATURE * 4}
    )
    text = "\n".join(lines(make_exhibit(replace(capture, transforms=(NormBased(),)))))
    assert "4.00 ▇▇▇▇▇▇▇▇▇▇" in text
    assert not re.search("▇{11}", text)
    assert re.search("2.00 ▇{5} ", text)


def test_a_long_table_comes_in_pieces_that_are_printed_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = list[str]()

    def counted(exhibit: Exhibit, head_map: Map) -> list[QueryRow]:
        begun.append(head_map.label)
        return rows_of(exhibit, head_map)

    monkeypatch.setattr(table, "rows_of", counted)
    capture = make_capture(["a "] * 600)
    exhibit = make_exhibit(capture, heads=capture.heads[:2], top=1)
    sizes = []
    for part in render(exhibit, Display(80)):
        if isinstance(part, Group):
            sizes.append((len(begun), len(part.renderables)))
    assert {heads: sum(n for h, n in sizes if h == heads) for heads in (1, 2)} == {1: 600, 2: 600}
    assert max(n for _, n in sizes) < 300
