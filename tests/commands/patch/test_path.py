"""`attnviz patch --to` and `--fast`: effects along paths, and all effects by one gradient."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz.commands.patch.shown import view
from tests.conftest import Run
from tests.reading import on_one_line, rows_in

BLUE, RED = (f"a {color} bird slept . the bird was" for color in ("blue", "red"))
ASKED: dict[str, Any] = {"answer": "red", "versus": "blue"}
ASKED_OF = "--answer", "red", "--versus", "blue"


@pytest.fixture
def pairs(tmp_path: Path) -> str:
    file = tmp_path / "pairs.jsonl"
    lines = [{"text": BLUE, "source": RED, "answer": "red", "versus": "blue"}]
    lines += [{"text": RED, "source": BLUE, "answer": "blue", "versus": "red"}]
    file.write_text("\n".join(map(json.dumps, lines)))
    return str(file)


def changes(found: Any) -> dict[Any, float]:
    return {(row["layer"], row["head"], row["receiver"]): row["change"] for row in found.rows}


def test_the_last_heads_act_on_the_logits_alone() -> None:
    direct = changes(attnviz.patch(BLUE, RED, to="logits", layers=4, **ASKED))
    everything = changes(attnviz.patch(BLUE, RED, layers=4, **ASKED))
    for (layer, head, _), change in everything.items():
        assert np.isclose(direct[layer, head, "logits"], change, atol=1e-4)


def test_a_head_that_is_named_receives_by_its_queries_keys_and_values(run: Run) -> None:
    found = attnviz.patch(BLUE, RED, to=["L2H2", "logits"], **ASKED)
    each = attnviz.patch(BLUE, RED, to=["L2H2.q", "2.2.k", "l2h2.V,logits"], **ASKED)
    assert found.rows == each.rows
    senders = {"logits": 20, "L2H2.q": 8, "L2H2.k": 8, "L2H2.v": 8}
    receivers = [row["receiver"] for row in found.rows]
    assert {name: receivers.count(name) for name in senders} == senders
    out = run("patch", BLUE, "--from", RED, "--to", "L2H2", "--to", "logits", *ASKED_OF).out
    assert [line for line in out.splitlines() if line.startswith("to ")] == [
        *("to L2H2.q", "to L2H2.k", "to L2H2.v", "to logits")
    ]
    flags = "--to", "L2H2", "--to", "logits", *ASKED_OF, "-f", "jsonl"
    assert rows_in(run("patch", BLUE, "--from", RED, *flags).out) == found.rows


def test_the_heading_says_what_is_held_fixed(run: Run) -> None:
    for mlps, said in (("recompute", "MLPs computed anew"), ("freeze", "MLPs held fixed, too")):
        ended = run("patch", BLUE, "--from", RED, "--to", "L4H0.k", "--path-mlps", mlps)
        assert f"on paths to L4H0.k: all other heads held fixed, {said}" in on_one_line(ended.out)


def test_an_mlp_sends_at_all_positions_at_once() -> None:
    found = attnviz.patch(BLUE, RED, part="mlp", to=["L3.mlp", "logits"], **ASKED)
    assert [row["position"] for row in found.rows] == [None] * 8  # 3 before layer 3, and all 5
    held = attnviz.patch(BLUE, RED, part="mlp", to="logits", path_mlps="freeze", **ASKED)
    assert {row["receiver"] for row in held.rows} == {"logits"}
    assert not np.allclose(
        [row["change"] for row in held.rows],
        [row["change"] for row in found.rows if row["receiver"] == "logits"],
        atol=1e-3,
    )


def test_texts_of_other_lengths_have_paths_too() -> None:
    longer = "a red little bird slept . the bird was"
    found = attnviz.patch(BLUE, longer, to="L4H0.v", align="blue=red", **ASKED)
    assert len(found.rows) == 16
    assert found.record.strongest[0].change.mean != 0


def test_pairs_of_other_lengths_say_at_how_many_positions_they_are_patched() -> None:
    texts, sources = ["a blue fox was", BLUE], ["a red fox was", RED]
    found = attnviz.patch(texts, sources, layers=4, **ASKED)
    assert "taken from the source at all positions" in on_one_line(str(found))
    texts[1] = BLUE.replace("blue", "blue old")  # one more, which nothing stands for
    found = attnviz.patch(texts, sources, layers=4, align="blue=red", **ASKED)
    assert "taken from the source at 5 to 9 positions" in on_one_line(str(found))


def test_estimates_stand_beside_exact_changes_and_are_compared_by_rank(run: Run) -> None:
    fast = attnviz.patch(BLUE, RED, fast=True, check=True, **ASKED)
    exact = changes(attnviz.patch(BLUE, RED, **ASKED))
    for row in fast.rows:
        assert row["fast"]
        assert np.isclose(row["exact_change"], exact[row["layer"], row["head"], None], atol=1e-4)
        assert row["answer_logit_change"] is None
    both = np.array([[row["change"], row["exact_change"]] for row in fast.rows])
    ranks = both.argsort(axis=0).argsort(axis=0)
    rho = np.corrcoef(ranks, rowvar=False)[0, 1]
    assert fast.record.ranks_agree == pytest.approx(rho, abs=0.01)  # ties of what is nearly 0
    out = on_one_line(run("patch", BLUE, "--from", RED, "--fast", "--check", *ASKED_OF).out)
    assert f"of 20 parts: Spearman's ρ = {fast.record.ranks_agree:.3f}; farthest apart" in out
    sizes = [
        max(abs(each.exact.mean), abs(each.change.mean)) for each in fast.record.strongest
    ]  # what either finds
    assert sizes == sorted(sizes, reverse=True)
    alone = attnviz.patch(BLUE, RED, fast=True, **ASKED)
    assert changes(alone) == changes(fast)
    assert {row["exact_change"] for row in alone.rows} == {None}


@pytest.mark.parametrize("part", ["attention", "mlp", "residual"])
def test_every_position_of_other_parts_has_an_estimate_too(part: Any) -> None:
    fast = attnviz.patch(BLUE, RED, part=part, fast=True, check=True, **ASKED)
    exact = attnviz.patch(BLUE, RED, part=part, **ASKED)
    known = {(row["layer"], row["position"]): row["change"] for row in exact.rows}
    assert len(fast.rows) == len(exact.rows) == 5 * 9
    for row in fast.rows:
        assert np.isclose(row["exact_change"], known[row["layer"], row["position"]], atol=1e-4)
    assert fast.record.ranks_agree > 0.5


def test_a_direct_effect_is_estimated_with_the_heads_held_fixed() -> None:
    for mlps in ("recompute", "freeze"):
        how: Any = {"to": "logits", "path_mlps": mlps, **ASKED}
        fast = attnviz.patch(BLUE, RED, fast=True, check=True, **how)
        exact = changes(attnviz.patch(BLUE, RED, **how))
        assert {row["receiver"] for row in fast.rows} == {"logits"}
        for row in fast.rows:
            at = row["layer"], row["head"], "logits"
            assert np.isclose(row["exact_change"], exact[at], atol=1e-4)
        assert fast.record.ranks_agree > 0.8


def test_paths_to_parts_are_estimated_and_compared_by_rank(run: Run) -> None:
    to = ["L4H0.v", "L4H1", "L3.mlp", "logits"]
    fast = attnviz.patch(BLUE, RED, to=to, fast=True, check=True, **ASKED)
    exact = changes(attnviz.patch(BLUE, RED, to=to, **ASKED))
    assert changes(fast).keys() == exact.keys()
    for row in fast.rows:
        at = row["layer"], row["head"], row["receiver"]
        assert np.isclose(row["exact_change"], exact[at], atol=1e-4)
        assert row["rank_correlation"] == fast.record.ranks_agree > 0.8
    given = "patch", BLUE, "--from", RED, "--to", ",".join(to), "--fast", *ASKED_OF
    said = f"of {len(exact)} paths: Spearman's ρ = {fast.record.ranks_agree:.3f}"
    assert said in on_one_line(run(*given, "--check").out)
    alone = rows_in(run(*given, "-f", "jsonl").out)
    assert {row["rank_correlation"] for row in alone} == {None}


def test_pairs_have_means_of_paths_and_of_estimates() -> None:
    how: Any = {"answer": ["red", "blue"], "versus": ["blue", "red"]}
    paths = attnviz.patch([BLUE, RED], [RED, BLUE], to="L4H0.v", **how)
    mean = [row for row in paths.rows if row["line"] is None]
    each = [row for row in paths.rows if row["line"] is not None]
    for row in mean:
        same = [
            r["change"] for r in each if r["layer"] == row["layer"] and r["head"] == row["head"]
        ]
        assert np.isclose(row["change"], np.mean(same))
        assert row["error"] is not None
        assert row["receiver"] == "L4H0.v"
    fast = attnviz.patch([BLUE, RED], [RED, BLUE], fast=True, check=True, **how)
    assert fast.record.effects[0].exact.error is not None


def test_a_narrow_table_leaves_out_the_changes_of_both_tokens_first(run: Run, pairs: str) -> None:
    def shown(width: int) -> str:
        return run("patch", "--pairs", pairs, "--to", "L4H0.v", "--width", str(width)).out

    assert "log p answer" in shown(110)
    assert " share  ± s.e.  change (logits)" in shown(80)
    assert "log p" not in shown(80)
    assert "log p answer: " in shown(40)


@pytest.mark.parametrize("to", [["L4H0", "logits"], ["logits", "L4H0"]])
def test_receivers_share_the_scale_of_the_largest_change(to: list[str]) -> None:
    shown = view(attnviz.patch(BLUE, RED, to=to, **ASKED).record)
    assert shown.most == max(np.nanmax(np.abs(each.values)) for each in shown.maps)


def test_a_page_and_a_picture_have_a_map_for_each_receiver(run: Run, tmp_path: Path) -> None:
    given = "patch", BLUE, "--from", RED, "--to", "L4H0", "--to", "logits"
    run(*given, "-o", str(tmp_path / "paths.html"))
    page = (tmp_path / "paths.html").read_text("utf-8")
    for name in ("L4H0.q", "L4H0.k", "L4H0.v", "logits"):
        assert f"<caption>to {name}</caption>" in page
    assert "L3H1 → L4H0.v" in page
    figure = attnviz.patch(BLUE, RED, to=["L4H0", "logits"], **ASKED).figure()
    said = {text.get_text() for text in figure.findobj(lambda each: hasattr(each, "get_text"))}
    assert {"to L4H0.q", "to L4H0.k", "to L4H0.v", "to logits"} <= said


def test_the_strongest_paths_are_arrows_as_wide_as_their_shares() -> None:
    found = attnviz.patch(BLUE, RED, to=["L4H0", "L2.mlp", "logits"], **ASKED)
    (axes,) = (each for each in found.figure().axes if "strongest" in each.get_title("left"))
    arrows = sorted(axes.patches, key=lambda arrow: -arrow.get_linewidth())
    shares = [abs(effect.share.mean) for effect in found.record.strongest]
    drawn = [share for share in shares[:20] if share >= 0.01]
    assert len(arrows) == len(drawn) > 3
    widths = [arrow.get_linewidth() for arrow in arrows]
    assert np.allclose(widths, [max(6 * share, 0.4) for share in drawn])
    names = {text.get_text() for text in axes.texts}
    assert {"logits", "L4H0", "L4H1", "v"} <= names


def test_small_shares_are_written_with_more_digits_and_drawn_as_no_path(
    run: Run, tmp_path: Path
) -> None:
    found = attnviz.patch(BLUE, RED, to=["L4H0.q", "logits"], layers="0-2,4", **ASKED)
    of_q, of_logits = found.record.by_receiver
    assert abs(of_q.strongest[0].share.mean) < 0.01 < abs(of_logits.strongest[0].share.mean)
    alone = attnviz.patch(BLUE, RED, to="L4H0.q", layers="0-2", **ASKED)
    most = max((effect.share.mean for effect in of_q.effects), key=abs)
    written, shown = f"{most:.4f}", str(found)
    assert written in shown[: shown.index("to logits")]
    assert "0.00 " in shown[shown.index("to logits") :]
    found.save(tmp_path / "paths.html")
    assert f">{written}</td>" in (tmp_path / "paths.html").read_text("utf-8")

    def said(figure: Any) -> set[str]:
        return {text.get_text() for text in figure.findobj(lambda each: hasattr(each, "get_text"))}

    words = said(found.figure())
    assert {f"{most:.3f}", "share"} <= words
    assert any("grey: no head" in each for each in words)
    assert "no path has a share of 0.01 or more" in said(alone.figure())


def test_the_logits_read_no_token_but_the_last_directly(run: Run) -> None:
    for more in ((), ("--fast",)):
        ended = run("patch", BLUE, "--from", RED, "--to", "logits", "--query", "blue", *more)
        assert "only the last token, which is not patched" in ended.err
    both = run("patch", BLUE, "--from", RED, "--to", "logits", "--query", "blue", "--query", "-1")
    assert both.status == 0


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("L9H0.q", "there is no layer 9 (in --to L9H0.q); this model's layers are 0 to 4"),
        ("L4H7", "there is no head 7 (in --to L4H7); layer 4 has heads 0 to 3"),
        ("L5.mlp", "there is no layer 5 (in --to L5.mlp)"),
        ("L4H0.z", "--to 'L4H0.z' cannot be read"),
        ("", "--to '' cannot be read"),
        ("L0H1.q", "nothing that is patched comes before L0H1.q"),
    ],
)
def test_what_is_no_receiver_is_refused(named: str, said: str, run: Run) -> None:
    ended = run("patch", BLUE, "--from", RED, "--to", named)
    assert ended.status != 0
    assert said in on_one_line(ended.err)
