"""`attnviz ablate --together`: a set of heads away at each token, and the loss by position."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.collections import PolyCollection

import attnviz
from attnviz.commands.ablate.curve import ScorePositions
from attnviz.commands.ablate.curve_shown import draw
from attnviz.errors import ExitStatus, UsageError
from tests.conftest import Run
from tests.hooked import Hooked
from tests.reading import on_one_line, rows_in

TEXTS = [
    "a blue bird slept . the bird was blue",
    "Anna met Ben and Clara . Anna met Ben and Clara . Anna met Ben",
    "the cat sat near the old door and then it slept",
]
SET = (3, 1), (4, 0)
HEADS = "L3H1,L4H0"


def without_set(hooked: Hooked, text: str) -> np.ndarray:
    """The log-probability of each token that followed, with a plain hook on each head."""

    def zero(heads: list[int]):
        def change(_module: torch.nn.Module, args: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
            z = args[0].clone()
            for head in heads:
                z[..., head * hooked.width : (head + 1) * hooked.width] = 0
            return (z,)

        return change

    layers = hooked.model.transformer.h
    handles = [
        layers[layer].attn.c_proj.register_forward_pre_hook(zero([head])) for layer, head in SET
    ]
    after = hooked.followed(text).numpy()
    for handle in handles:
        handle.remove()
    return after


def test_each_token_without_a_set_is_as_hooks_on_all_its_heads_make_it() -> None:
    hooked = Hooked()
    rows = attnviz.ablate(TEXTS[1], heads=HEADS, together=True, rows="token").rows
    before, after = hooked.followed(TEXTS[1]).numpy(), without_set(hooked, TEXTS[1])
    np.testing.assert_allclose([row["before"] for row in rows], before, atol=1e-4)
    np.testing.assert_allclose([row["after"] for row in rows], after, atol=1e-4)
    assert [(part["layer"], part["head"]) for part in rows[0]["parts"]] == list(SET)
    assert np.abs(after - before).max() > 1


def test_the_mean_of_its_tokens_is_what_the_set_costs_together(run: Run) -> None:
    found = attnviz.ablate(TEXTS, heads=HEADS, together=True, rows="token", mlps="1")
    both = attnviz.ablate(TEXTS, heads=HEADS, together=True, mlps="1")
    mean = found.record.report.effects[0].change.mean
    assert mean == pytest.approx(both.record.report.effects[0].change.mean, abs=1e-6)
    out = run("ablate", TEXTS[0], "--head", HEADS, "--together", "--rows", "token").out
    assert "without L3H1, L4H0: " in out
    assert "largest change of a single token" not in out  # there is one row
    many = run("ablate", TEXTS[0], "--head", "all", "--together", "--rows", "token").out
    assert "20 heads" in many
    assert "without L0H0 to L4H3 (20 heads): " in many


def curves(texts: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    hooked = Hooked()
    return [(-hooked.followed(text).numpy(), -without_set(hooked, text)) for text in texts]


def test_the_curve_has_the_mean_loss_of_the_texts_that_have_a_position() -> None:
    found = attnviz.ablate(TEXTS, heads=HEADS, together=True, curve=True, between="2:9")
    each = curves(TEXTS)
    rows = [row for row in found.rows if row["line"] is None]
    assert [row["position"] for row in rows] == list(range(1, max(len(a) for a, _ in each) + 1))
    for row in rows:
        there = [(a[row["position"] - 1], b[row["position"] - 1]) for a, b in each if
                 len(a) >= row["position"]]  # fmt: skip
        whole, without = np.array(there, np.float64).T
        assert row["texts"] == len(there)
        for name, values in (("loss", whole), ("loss_without", without),
                             ("loss_change", without - whole)):  # fmt: skip
            assert row[name] == pytest.approx(values.mean(), abs=1e-4)
            if len(there) > 1:
                error = values.std(ddof=1) / len(there) ** 0.5
                assert row[f"{name}_error"] == pytest.approx(error, abs=1e-4)
            else:
                assert row[f"{name}_error"] is None


def test_the_in_context_score_is_the_late_loss_less_the_early_one() -> None:
    found = attnviz.ablate(TEXTS, heads=HEADS, together=True, curve=True, between="2:9")
    scores = []  # within 3 positions: more would overlap
    for whole, without in curves(TEXTS):
        if len(whole) >= 9:
            scores.append([x[5:12].mean() - x[:5].mean() for x in (whole, without)])
    assert len(scores) > 1
    score = found.record.in_context
    assert score.whole.mean == pytest.approx(np.mean(scores, axis=0)[0], abs=1e-4)
    assert score.without.mean == pytest.approx(np.mean(scores, axis=0)[1], abs=1e-4)
    assert score.whole.mean != pytest.approx(score.without.mean, abs=1e-2)
    assert found.rows[-1]["in_context"] == pytest.approx(score.whole.mean, abs=1e-6)


def test_a_text_that_does_not_reach_the_late_position_has_no_score(run: Run) -> None:
    given = "ablate", TEXTS[0], "--head", HEADS, "--together", "--curve"
    out = run(*given).out
    most = "the model reads at most 256 tokens, and position 500 is beyond (see --between)"
    assert f"no in-context score: {most}" in on_one_line(out)
    short = run(*given, "--between", "20:170").out
    assert "no in-context score: no text has positions 20 and 170 (--between" in on_one_line(short)
    assert rows_in(run(*given, "-f", "jsonl").out)[0]["in_context"] is None
    long = run("ablate", "the cat slept . " * 45, *given[2:], "--between", "20:170")
    score = "in-context score, the loss at 170 less that at 20, within 5 positions: -"
    assert score in on_one_line(long.out)


@pytest.mark.parametrize(
    ("between", "wrong"),
    [
        ("50", "--between '50' is not EARLY:LATE"),
        ("9:2", "position 9 does not come before 2"),
        ("7:7", "position 7 does not come before 7"),
        ("0:7", "nothing predicts the token at position 0, so it has no loss"),
        ("50:256", "position 256 is beyond the model's context of 256 tokens"),
    ],
)
def test_positions_that_cannot_be_are_refused(run: Run, between: str, wrong: str) -> None:
    given = "--head", HEADS, "--together", "--curve", "--between", between
    ended = run("ablate", TEXTS[0], *given)
    assert ended.status is ExitStatus.USAGE
    assert ended.err.startswith(f"attnviz: {wrong}")


def test_a_curve_is_of_a_set_and_of_the_tokens_of_the_text() -> None:
    for more, wrong in (
        ({}, "curve is for together"),
        ({"together": True, "answer": "blue"}, "answer.* does nothing for a curve"),
        ({"together": True, "rows": "token"}, "rows.* does nothing for a curve"),
    ):
        with pytest.raises(UsageError, match=wrong):
            attnviz.ablate(TEXTS[0], heads=HEADS, curve=True, **more)
    with pytest.raises(UsageError, match="is for curve"):
        attnviz.ablate(TEXTS[0], heads=HEADS, between="2:9")


def test_a_text_counts_for_the_score_only_if_it_has_both_positions() -> None:
    losses = np.full((3, 2, 12), np.nan, np.float32)
    losses[0] = np.arange(12)  # has both
    losses[1, :, 4:] = 100.0  # begins behind the early one, as a text without its first tokens
    losses[2, :, :6] = 100.0  # ends before the late one
    whole = attnviz.ablate(TEXTS[0], heads=HEADS, together=True, curve=True).record
    record = replace(whole, losses=losses, between=ScorePositions(2, 9))
    assert record.in_context.whole.mean == pytest.approx(8 - 2)  # positions 6–12 and 1–5
    assert record.in_context.whole.error is None
    alone = replace(record, losses=losses[1:])
    assert np.isnan(alone.in_context.whole.mean)


def test_texts_of_several_lengths_have_a_mean_in_the_terminal(run: Run) -> None:
    lines = "\n".join([TEXTS[0], "the cat sat", TEXTS[1]]).encode()
    options = "--head", HEADS, "--together", "--curve", "--between", "2:9", "--lines", "-"
    ended = run("ablate", *options, stdin=lines)
    assert ended.status is ExitStatus.OK
    *_, mean = ended.out.split("all lines")
    rows = [line.split() for line in mean.splitlines() if line[:1].isdigit() and ";" not in line]
    assert [(row[0], row[-1]) for row in rows] == [
        ("1", "3"), ("2–3", "3"), ("4–7", "2"), ("8–15", "2")
    ]  # fmt: skip
    assert {len(row) for row in rows} == {8}
    alone = run("ablate", *options[:-4], "--lines", "-", stdin=b"a bird slept\nthe old cat sat on")
    lone = next(line for line in alone.out.split("all lines")[1].splitlines() if "4–5" in line)
    assert len(lone.split()) == 5  # one text has no standard error


def test_links_and_sets_have_names_of_their_own(run: Run) -> None:
    given = "ablate", TEXTS[0], "--cut", "bird#2:blue#1", "--together"
    assert "the links of 20 heads" in run(*given, "--rows", "token").out
    assert "without the links of 20 heads" in on_one_line(run(*given, "--curve").out)
    assert "negative = the links help" in on_one_line(run(*given, "--rows", "token").out)
    two = "ablate", TEXTS[0], "--head", HEADS, "--together", "--rows", "token"
    assert "negative = the heads help" in on_one_line(run(*two).out)


def test_its_picture_has_both_curves_and_their_bands(run: Run, tmp_path: Path) -> None:
    found = attnviz.ablate(TEXTS, heads=HEADS, together=True, curve=True, between="2:9")
    axes = found.figure().axes[0]
    whole, without = (line for line in axes.lines if len(line.get_xdata()) > 2)
    rows = [row for row in found.rows if row["line"] is None]
    np.testing.assert_allclose(whole.get_ydata(), [row["loss"] for row in rows], atol=1e-6)
    np.testing.assert_allclose(
        without.get_ydata(), [row["loss_without"] for row in rows], atol=1e-6
    )
    bands = [each for each in axes.collections if isinstance(each, PolyCollection)]
    for band, name in zip(bands, ("loss", "loss_without"), strict=True):
        edges = {
            (row["position"], round(row[name] + sign * row[f"{name}_error"], 4))
            for row in rows
            for sign in (-1, 1)
            if row[f"{name}_error"] is not None
        }
        drawn = {(int(x), round(float(y), 4)) for x, y in band.get_paths()[0].vertices}
        assert len(edges) > 10
        assert edges <= drawn
    many = np.random.default_rng(0).random((3, 2, 1000), np.float32)
    long = replace(found.record, losses=many, between=ScorePositions())
    points = draw(long).figure.axes[0].lines[0]
    assert points.get_xdata()[:2].tolist() == [5, 14]  # the middles of nine positions each
    np.testing.assert_allclose(points.get_ydata()[1], many[:, 0, 9:18].mean(), atol=1e-6)
    short = draw(replace(long, losses=many[:, :, :18])).figure.axes[0]
    assert all(tick == int(tick) for tick in short.get_xticks())  # there is no position 2.5
    file = tmp_path / "curve.svg"
    given = "--head", HEADS, "--together", "--curve", "-o", str(file)
    assert run("ablate", TEXTS[1], *given).status is ExitStatus.OK
    drawn = file.read_text(encoding="utf-8")
    for name in ("without L3H1, L4H0", "all parts", "position", "loss (nats)"):
        assert f">{name}<" in drawn
