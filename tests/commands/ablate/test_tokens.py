"""`attnviz ablate --rows token`: at which tokens a part helps."""

import re
from pathlib import Path

import numpy as np
import pytest

import attnviz
from attnviz.errors import ExitStatus
from tests.conftest import Run
from tests.hooked import Hooked
from tests.reading import on_one_line, rows_in

TEXT = "a blue bird slept . the bird was blue"
SAME = ["a red dog slept . the dog was red", TEXT]


def test_each_token_changes_as_a_hook_on_the_head_makes_it() -> None:
    hooked = Hooked()
    rows = attnviz.ablate(TEXT, rows="token").rows
    assert len(rows) == 20 * 9
    before = hooked.followed(TEXT)
    for head in ((0, 1), (2, 0), (4, 0), (4, 3)):
        own = [row for row in rows if (row["layer"], row["head"]) == head]
        assert [row["position"] for row in own] == list(range(1, 10))
        changes = [row["change"] for row in own]
        np.testing.assert_allclose(changes, hooked.changed(TEXT, *head, 0.0), atol=1e-4)
        np.testing.assert_allclose([row["before"] for row in own], before, atol=1e-4)
        for row in own:
            assert row["after"] == pytest.approx(row["before"] + row["change"], abs=1e-5)
    assert rows[0]["token"] == "a"
    assert (rows[8]["token"], rows[8]["exact"]) == ("blue#2", " blue")


def test_their_mean_is_the_row_of_the_part_and_the_largest_comes_first() -> None:
    for more in ({}, {"replacement": "mean"}, {"mlps": "all"}, {"cut": "was:blue#1"}):
        found = attnviz.ablate(TEXT, rows="token", **more)
        parts = {(r["kind"], r["layer"], r["head"]): r for r in attnviz.ablate(TEXT, **more).rows}
        assert found.record.changes.shape == (len(parts), 9)
        for effect, changes in zip(found.record.report.effects, found.record.changes, strict=True):
            (part,) = effect.parts
            row = parts[part.kind, part.layer, part.head]
            assert changes.mean() == pytest.approx(row["change"], abs=1e-5)
        assert np.abs(found.record.changes).max() > 0.1
        largest = np.abs(found.record.changes).max(axis=1)
        assert found.record.strongest[0] == largest.argmax()
        assert (found.rows[0]["layer"], found.rows[0]["kind"]) == (
            found.record.report.effects[largest.argmax()].parts[0].layer,
            found.record.report.effects[largest.argmax()].parts[0].kind,
        )


def test_the_terminal_names_parts_and_tokens_and_fits(run: Run) -> None:
    for width in ("40", "80"):
        out = run("ablate", TEXT, "--rows", "token", "--top", "3", "--width", width).out
        assert max(map(len, out.splitlines())) <= int(width)
        assert "       L2H0  L4H0  L1H1\n" in out
        assert "blue#2 -7.81 -4.49  0.00\n" in out
        assert "blue#2 -7.815, bird#2 -1.723, was -0.170" in on_one_line(out)
    long = run("ablate", "the cat slept . " * 20, "--rows", "token", "--top", "2", "--head", "L4H0")
    assert len(long.out.splitlines()) < 15


def test_a_picture_has_parts_down_and_tokens_across(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "tokens.svg"
    given = "--rows", "token", "--head", "L4H0", "--mlp", "1", "-o", str(file)
    assert run("ablate", TEXT, *given).status == ExitStatus.OK
    drawn = file.read_text(encoding="utf-8")
    for name in ("L4H0", "L1 MLP", "blue#2", "change at each token (nats)"):
        assert f">{name}<" in drawn


def test_texts_of_one_length_have_a_mean_at_each_position(run: Run, tmp_path: Path) -> None:
    found = attnviz.ablate(SAME, rows="token", heads="L4H0")
    each = [attnviz.ablate(text, rows="token", heads="L4H0").record.changes[0] for text in SAME]
    np.testing.assert_allclose(found.record.changes[0], np.mean(each, axis=0), atol=1e-6)
    error = np.abs(each[0] - each[1]) / 2  # of two values
    np.testing.assert_allclose(found.record.errors[0], error, atol=1e-5)
    means = [row for row in found.rows if row["line"] is None]
    assert [row["token"] for row in means][:4] == ["a", "red|blue#1", "dog|bird#1", "slept"]
    assert [row["exact"] for row in means][:4] == [" a", None, None, " slept"]
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text("\n".join(f'{{"text": "{text}", "answer": "."}}' for text in SAME))
    out = run("ablate", "--pairs", str(pairs), "--rows", "token", "--head", "L4H0").out
    assert "red|blue#1: the texts differ at this position" in on_one_line(out)


def test_texts_of_several_lengths_are_counted_from_their_ends(run: Run, tmp_path: Path) -> None:
    texts = ["the cat was red", TEXT]
    found = attnviz.ablate(texts, rows="token", heads="L4H0")
    alone = [attnviz.ablate(text, rows="token", heads="L4H0").record for text in texts]
    each = [record.changes[0] for record in alone]
    wanted = [(own + other) / 2 for own, other in zip(each[0], each[1][-4:], strict=True)]
    with_all_heads = (alone[0].before + alone[1].before[-4:]) / 2
    np.testing.assert_allclose(found.record.before, with_all_heads, atol=1e-5)
    means = [row for row in found.rows if row["line"] is None]
    np.testing.assert_allclose([row["change"] for row in means], wanted, atol=1e-4)
    assert [row["position"] for row in means] == [-4, -3, -2, -1]
    assert [row["token"] for row in means] == ["the", "cat|bird", "was", "red|blue"]
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(texts))
    given = "--rows", "token", "--head", "L4H0"
    out = on_one_line(run("ablate", "--lines", "--file", str(lines), *given).out)
    assert "tokens are counted from the end, as far as all texts have them" in out
    assert "-1 red|blue" in out.partition("mean of 2 texts")[2]


def test_the_parts_that_a_narrow_grid_leaves_out_are_told(run: Run) -> None:
    narrow = on_one_line(run("ablate", TEXT, "--rows", "token", "--width", "40").out)
    assert "of these 10 parts: use a wider terminal" in narrow
    assert "the part with the largest change of a single token comes first" in narrow
    wide = run("ablate", TEXT, "--rows", "token", "--width", "120").out
    assert "use a wider terminal" not in wide


def test_the_page_has_a_cell_for_each_part_and_token(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "tokens.html"
    assert run("ablate", "a blue <b> bird", "--rows", "token", "-o", str(path)).status == 0
    page = path.read_text()
    rows = rows_in(run("ablate", "a blue <b> bird", "--rows", "token", "-f", "jsonl").out)
    titles = re.findall(r'title="([^"]*)"', page)
    assert len(titles) == len(rows)
    part = f"L{rows[0]['layer']}H{rows[0]['head']}"
    assert f"{part} at {rows[0]['token']}: {rows[0]['change']:+.4f} nats" in titles
    assert "<b>" not in page
    assert "<script" not in page
