"""Sets of heads that a measure names: `top5:induction`, `induction:0.4`, `role:sink`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import attnviz
from attnviz.errors import ExitStatus, UsageError
from attnviz.kit import cache, scores
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
def test_what_was_kept_is_measured_again_if_it_is_not_whole(kept: dict) -> None:
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
        ("induction:2", "no head reaches induction 2 on the probe; L4H0 has most, 0.98"),
        ("role:duplicate token", "no head of these has the role 'duplicate token' on the probe"),
        ("role:sunk", "heads='role:sunk' names no set of heads"),
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
    with pytest.raises(UsageError, match="probe"):
        attnviz.capture("a bird", "translator", target="un oiseau", heads="top1:first")
