"""Sets of heads that a measure names: `top5:induction`, `induction:0.4`, `role:sink`."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import attnviz
from attnviz.errors import ExitStatus, UsageError
from attnviz.kit import cache, scores, sets
from attnviz.records import metrics
from attnviz.records.heads import Head
from tests.conftest import Run

TEXT = "a blue bird slept . the bird was"
SOURCE = "a red bird slept . the bird was"


@pytest.fixture(scope="module")
def table() -> list[dict]:
    """The probe's table, as the command prints it."""
    return attnviz.heads().rows


def heads_in(rows: list[dict]) -> set[tuple[int, int]]:
    return {(row["layer"], row["head"]) for row in rows}


def test_the_strongest_heads_of_a_score_are_those_of_the_table(table: list[dict]) -> None:
    for score, count in (("induction", 3), ("previous", 1), ("entropy", 20)):
        strongest = sorted(table, key=lambda row: -row[score])[:count]
        for name in (f"top{count}:{score}", f" TOP{count}:{score.upper()} "):
            found = attnviz.ablate(TEXT, heads=name).rows
            assert heads_in(found) == heads_in(strongest)


def test_a_score_and_a_role_name_those_that_reach_it(table: list[dict]) -> None:
    reach = [row for row in table if row["first"] >= 0.35]
    assert 0 < len(reach) < 20
    assert heads_in(attnviz.ablate(TEXT, heads="first:0.35").rows) == heads_in(reach)
    assert heads_in(attnviz.ablate(TEXT, heads="first:.35").rows) == heads_in(reach)
    for role in ("sink", "previous token"):
        wanted = heads_in([row for row in table if row["role"] == role])
        assert wanted
        name = f"role:{role.replace(' ', '-')}"
        assert heads_in(attnviz.ablate(TEXT, heads=name).rows) == wanted


def test_sets_stand_beside_names_and_within_layers(table: list[dict]) -> None:
    both = attnviz.ablate(TEXT, heads="L0H1,top1:induction,role:previous token").rows
    assert heads_in(both) == {(0, 1), (4, 0), (3, 1)}
    upper = [row for row in table if row["layer"] in (1, 2)]
    strongest = max(upper, key=lambda row: row["induction"])
    found = attnviz.ablate(TEXT, heads="top1:induction", layers="1-2").rows
    assert heads_in(found) == heads_in([strongest])


def shown(columns: dict) -> list[dict]:
    pairs = zip(columns["layer"].tolist(), columns["head"].tolist(), strict=True)
    return [{"layer": layer, "head": head} for layer, head in pairs]


USES: dict[str, Callable[[str], list[dict]]] = {
    "capture": lambda name: [
        {"layer": head.layer, "head": head.head}
        for head in attnviz.capture(TEXT, heads=name).record.heads
    ],
    "show": lambda name: shown(attnviz.show(TEXT, heads=name).to_columns()),
    "heads": lambda name: attnviz.heads(TEXT, heads=name).rows,
    "probe": lambda name: attnviz.heads(heads=name).rows,
    "patch": lambda name: attnviz.patch(TEXT, SOURCE, heads=name).rows,
    "compare": lambda name: attnviz.compare(TEXT, SOURCE, heads=name).rows,
    "models": lambda name: attnviz.compare(TEXT, against="builtin", heads=name).rows,
    "circuit": lambda name: attnviz.circuit(TEXT, SOURCE, heads=name).rows[0]["circuit"],
    "generate": lambda name: [
        {"layer": head.layer, "head": head.head}
        for head in attnviz.generate("the bird", heads=name, target="slept").capture.heads
    ],
    "labels": lambda name: (
        attnviz.heads(labels=[{"text": TEXT, "links": [["bird", ["blue"]]]}], heads=name).rows
    ),
}


@pytest.mark.parametrize("use", USES.values(), ids=list(USES))
def test_wherever_heads_are_named_a_set_may_be(use: Callable[[str], list[dict]]) -> None:
    assert heads_in(use("top2:induction,L0H0")) == heads_in(use("L4H0,L4H1,L0H0"))


def test_the_command_line_says_which_heads_a_set_is_once(run: Run) -> None:
    lines = f"{TEXT}\n{SOURCE}\n".encode()
    options = "--lines", "-", "--head", "top2:induction"
    for command in ("ablate", "show"):
        ended = run(command, *options, stdin=lines)
        assert ended.status is ExitStatus.OK
        assert ended.err.count("note: top2:induction: L4H0, L4H1\n") == 1
    assert run("ablate", *options, "--quiet", stdin=lines).err == ""
    shown = run("generate", "the bird", "--head", "role:induction", "--max-new-tokens", "1")
    assert "builtin, L4H0" in shown.out


def test_the_probe_runs_once_for_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    attnviz.heads()
    monkeypatch.setattr(sets, "_PROBED", {})
    monkeypatch.setattr(scores, "score_probe", None)
    assert heads_in(attnviz.ablate(TEXT, heads="top1:induction").rows) == {(4, 0)}


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {"scores": [], "roles": {}},
        {"scores": {"L0H0": {"entropy": "x"}}, "roles": {}},
        {"scores": {f"L{i}H{j}": {} for i in range(5) for j in range(4)}, "roles": {}},
    ],
)
def test_what_was_kept_is_measured_again_if_it_is_not_whole(
    monkeypatch: pytest.MonkeyPatch, kept: dict
) -> None:
    monkeypatch.setattr(sets, "_PROBED", {})
    model = attnviz.load_model()
    path = cache.kept_in(model._loaded, scores.PROBED)
    before = path.read_text() if path.exists() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schema": "attnviz-roles/1", **kept}))
    try:
        assert heads_in(attnviz.ablate(TEXT, model, heads="top1:induction").rows) == {(4, 0)}
    finally:
        Path(path).write_text(before) if before else path.unlink()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("induction:2", "no head here reaches induction 2 on the probe; L4H0 has most, 0.98"),
        ("role:duplicate token", "no head here has the role 'duplicate token' on the probe"),
        ("role:sunk", "'role:sunk' names no set of heads"),
        ("top0:induction", "'top0:induction' names no set of heads"),
        ("top2:speed", "'top2:speed' names no set of heads"),
        ("induction:", "'induction:' names no set of heads"),
        (":", "':' names no set of heads"),
    ],
)
def test_a_set_that_there_is_not_is_refused(name: str, wrong: str) -> None:
    with pytest.raises(UsageError) as refused:
        attnviz.ablate(TEXT, heads=name)
    assert wrong in str(refused.value)


def test_a_model_that_cannot_read_the_probe_has_no_sets() -> None:
    wrong = "no measure names heads of translator, as the probe cannot .*; give their names"
    with pytest.raises(UsageError, match=wrong):
        attnviz.capture("a bird", "translator", target="un oiseau", heads="top1:first")
    encoder = attnviz.load_model("translator", kind="encoder")
    with pytest.raises(UsageError, match=r"has 101 tokens, but .* at most 96; give their names"):
        attnviz.capture("a bird", encoder, heads="top1:first")


def test_a_saved_capture_has_no_sets() -> None:
    captured = attnviz.capture(TEXT)
    for use in (attnviz.show, attnviz.heads):
        with pytest.raises(UsageError, match="a capture has no probe to measure it; name heads"):
            use(captured, heads="top1:first")


def test_one_head_may_be_named_by_a_set(run: Run) -> None:
    for command in ("why", "explain"):
        named = run(command, TEXT, "--head", "top1:induction", "-f", "jsonl").out
        assert named == run(command, TEXT, "--head", "L4H0", "-f", "jsonl").out
    several = run("why", TEXT, "--head", "top2:induction")
    assert several.status is ExitStatus.USAGE
    assert "names 2 heads" in several.err


def test_json_records_the_heads_of_each_set() -> None:
    name = "top2:induction, role:sink,L0H1,top2:induction"
    options = attnviz.ablate(TEXT, heads=name).made["options"]
    roles = [row for row in attnviz.heads().rows if row["role"] == "sink"]
    sinks = [f"L{row['layer']}H{row['head']}" for row in roles]
    assert options == {
        "heads": name,
        "sets": {"top2:induction": ["L4H0", "L4H1"], "role:sink": sinks},
    }
    assert "sets" not in attnviz.ablate(TEXT, heads="L4H0").made["options"]


def test_a_path_may_end_in_heads_of_a_set(run: Run) -> None:
    named = attnviz.patch(TEXT, SOURCE, to="L4H0.q,L4H1.q,logits")
    found = attnviz.patch(TEXT, SOURCE, to="top2:induction.q,logits", heads="top2:previous")
    assert found.record.receivers == named.record.receivers
    assert found.made["options"]["sets"].keys() == {"top2:induction", "top2:previous"}
    whole = attnviz.patch(TEXT, SOURCE, to=["top1:induction"]).record.receivers
    assert {str(each) for each in whole} == {"L4H0.q", "L4H0.k", "L4H0.v"}
    ended = run("patch", TEXT, "--from", SOURCE, "--to", "top2:sinks.q")
    assert ended.status is ExitStatus.USAGE
    assert "names no set of heads" in ended.err


def test_a_scan_keeps_the_names_of_the_heads(run: Run, tmp_path: Path) -> None:
    ended = run("scan", "sample:creatures", "--head", "top2:induction", "-o", str(tmp_path / "to"))
    assert "note: top2:induction: L4H0, L4H1\n" in ended.err
    manifest = json.loads((tmp_path / "to" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["heads"]["heads"] == "L4H0,L4H1"


def test_the_probe_runs_once_where_the_cache_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(sets, "_PROBED", {})
    ran, probe = list[object](), scores.score_probe
    monkeypatch.setattr(scores, "score_probe", lambda *given: ran.append(given) or probe(*given))
    attnviz.ablate([TEXT, SOURCE], heads="top1:induction")
    attnviz.show(TEXT, heads="top1:induction")
    assert len(ran) == 1


def test_names_are_the_same_in_any_case_and_with_any_hyphens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = {
        Head(0, 0): ({"my-Score_2": 0.3}, "My-own Role"),
        Head(0, 1): ({"my-Score_2": 1}, None),
    }
    monkeypatch.setattr(metrics, "METRICS", {"my-Score_2": metrics.METRICS["first"]})
    monkeypatch.setattr(metrics, "ROLES", [replace(metrics.ROLES[0], name="My-own Role")])
    heads = [*table]
    for name in ("top1:my-Score_2", "TOP1:My score 2", "my-score-2:.5"):
        assert sets._of_set(name, table, heads) == [Head(0, 1)]
    below = {Head(0, 0): ({"my-Score_2": -0.3}, None), Head(0, 1): ({"my-Score_2": -0.5}, None)}
    assert sets._of_set("my-score-2:-0.4", below, heads) == [Head(0, 0)]
    for name in ("role:My-own Role", "role:my own role", "Role:MY-OWN-ROLE"):
        assert sets._of_set(name, table, heads) == [Head(0, 0)]
