"""The way of a token to its meaning: sums of projections, told with how often they are right."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from numpy.typing import NDArray
from safetensors.numpy import load_file

import attnviz
from attnviz.commands.explain.trajectory import trajectory_of as trajectory_of_readouts
from attnviz.draw.picture.trajectory import draw
from attnviz.errors import ExitStatus, UsageError
from attnviz.kit.prepare import TextOptions, prepare
from attnviz.models.catalog import Source, load
from attnviz.records.heads import Head
from attnviz.records.meaning import Trajectory
from tests.browsing import Open, until
from tests.builtin import FOLDER
from tests.conftest import Run
from tests.hooked import Hooked

TEXT = "a soft green table"
NAMES = "Anna met Mary because she was late"
LAYER = 4
"""The last layer before which colours and textures are read."""
PLACES = 1e-4


def trajectory_of(text: str, query: str, head: str = "L3H2") -> Trajectory:
    found = attnviz.explain(text, head=head, query=query).record.meaning.trajectory
    assert isinstance(found, Trajectory)
    return found


def read_out(name: str, vector: NDArray[np.float64]) -> dict[str, float]:
    """The logits of a read-out's classes before the layer, straight from the model's folder."""
    card = json.loads((Path(FOLDER) / "card.json").read_text())
    (classes,) = (each["classes"] for each in card["readouts"] if each["name"] == name)
    maps = load_file(Path(FOLDER) / "readouts.safetensors")[f"{name}.L{LAYER}H0"][0]
    logits = np.append(vector, 1.0) @ maps.astype(np.float64)
    return dict(zip(classes, logits.tolist(), strict=True))


def stream(text: str, position: int) -> NDArray[np.float64]:
    """What arrives at the layer, by transformers."""
    hooked = Hooked()
    with torch.inference_mode():
        ids = torch.tensor([hooked.ids(text)])
        states = hooked.model(ids, output_hidden_states=True).hidden_states
    return np.asarray(states[LAYER][0, position].double())


def test_the_end_is_what_the_read_outs_read_in_the_stream_of_transformers() -> None:
    found, x = trajectory_of(TEXT, "table"), stream(TEXT, 4)
    for axis, label, end in zip(
        found.axes, ("green", "soft"), found.waypoints[-1].place, strict=True
    ):
        logits = read_out(axis.readout.name, x)
        assert axis.label == label == max(logits, key=lambda each: logits[each])
        assert end == pytest.approx(logits[label] - logits["none"], abs=PLACES)
        odds = np.exp([*logits.values()])
        assert axis.read[1] == pytest.approx(np.exp(logits[label]) / odds.sum(), abs=PLACES)


def test_a_head_moves_it_by_what_plain_hooks_see_it_add() -> None:
    hooked, found = Hooked(), trajectory_of(TEXT, "table")
    moves = dict(zip(found.labels["rows"][1:], np.diff(found.places, axis=0), strict=True))
    assert len(moves) == 1 + LAYER * 5  # the position, and four heads and an MLP in each layer
    for layer in range(LAYER):
        for head in range(4):
            part = slice(head * hooked.width, (head + 1) * hooked.width)
            w_o = hooked.model.transformer.h[layer].attn.c_proj.weight[part].detach()
            added = np.asarray((hooked.z(TEXT, layer, head)[4].clone() @ w_o).double())
            for axis, moved in zip(found.axes, moves[f"L{layer}H{head}"], strict=True):
                with_it, without = (
                    read_out(axis.readout.name, each) for each in (added, np.zeros(len(added)))
                )
                expected = [with_it[c] - without[c] for c in (axis.label, "none")]
                assert moved == pytest.approx(expected[0] - expected[1], abs=PLACES)


def test_a_read_out_without_a_class_of_nothing_has_two_axes_against_the_mean() -> None:
    found, x = (
        trajectory_of("Anna met Mary because she was late", "she"),
        stream("Anna met Mary because she was late", 5),
    )
    logits = read_out("referent", x)
    order = sorted(logits, key=lambda label: -logits[label])
    assert [axis.label for axis in found.axes] == order[:2]
    mean = float(np.mean([*logits.values()]))
    expected = [logits[label] - mean for label in order[:2]]
    assert found.waypoints[-1].place == pytest.approx(expected, abs=PLACES)
    assert found.labels["columns"][0] == f"{order[0]} rather than the mean of all classes (logit)"


def said(figure: Figure) -> str:
    texts = [text.get_text() for text in figure.findobj(Text)]
    return " ".join(" ".join(texts).split()).replace("held- out", "held-out")


def test_the_picture_tells_accuracy_and_chance_beside_what_it_claims() -> None:
    found, told = trajectory_of(TEXT, "table"), said(attnviz.explain(TEXT).figure())
    across, up = np.diff(found.places, axis=0)[found.labels["rows"].index("L3H2") - 1]
    read = "colour green (right 0.84), texture soft (right 0.90)"
    assert f"“table” before layer 4 reads as: {read}" in told
    assert f"L3H2 moves it by {across:+.2f} (green) and {up:+.2f} (soft)" in told
    for axis in found.axes:
        assert axis.name in told
        assert f"right for {axis.accuracy:.2f} of 600 held-out words; chance 0.09" in told


def test_each_arrow_leads_from_one_place_to_the_next_and_the_longest_have_their_names() -> None:
    found, figure = trajectory_of(TEXT, "table"), attnviz.explain(TEXT, head="L3H2").figure()
    axes = figure.axes[0]
    arrows = [each for each in axes.findobj(Annotation) if each.arrow_patch]
    drawn = [(each.xyann, each.xy) for each in arrows]
    places = [tuple(place) for place in found.places.tolist()]
    assert drawn == [(pytest.approx(start), pytest.approx(end)) for start, end in pairwise(places)]
    for name, each in zip(found.labels["rows"][1:], arrows, strict=True):
        solid, thick = each.arrow_patch.get_linestyle() == "-", each.arrow_patch.get_linewidth() > 2
        assert solid == ("H" in name)
        assert thick == (name == "L3H2")
    moves = np.linalg.norm(np.diff(found.places, axis=0), axis=1)
    longest = [found.labels["rows"][1:][i] for i in np.argsort(-moves)[:3]]
    to_places = {each.get_text(): each for each in axes.texts if each.get_text()}
    for name in longest:
        at = found.labels["rows"].index(name)
        middle = (found.places[at] + found.places[at - 1]) / 2
        shown = axes.transAxes.transform(to_places[name].get_position())
        away = np.linalg.norm(shown - axes.transData.transform(middle)) / figure.dpi
        assert away < 0.8, name  # inches


def test_letters_of_a_class_that_have_a_meaning_in_a_picture_are_written_as_they_are() -> None:
    found = trajectory_of(TEXT, "table")
    first = replace(found.axes[0], label="$x_1$ %d")
    told = said(draw(replace(found, axes=(first, found.axes[1])), Head(3, 2), "a model").figure)
    assert "$x_1$ %d rather than no colour (log-odds)" in told
    assert "$x_1$ %d)" in told


def test_a_read_out_of_one_class_or_of_nothing_above_chance_draws_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepared = prepare(load(Source()), TEXT, TextOptions())
    colour = next(each for each in prepared.model.card.readouts if each.name == "colour")
    deaf = replace(colour, heads=tuple(replace(each, before=0.1) for each in colour.heads))
    assert trajectory_of_readouts(prepared, 4, [deaf]) is None
    assert trajectory_of_readouts(prepared, 4, []) is None
    assert trajectory_of_readouts(prepared, 4, [colour]) is not None
    maps = {("colour", each.head): np.ones((3, 129, 2), np.float32) for each in colour.heads}
    monkeypatch.setattr("attnviz.commands.explain.trajectory.read_maps", lambda *_: maps)
    assert trajectory_of_readouts(prepared, 4, [replace(colour, classes=("green", "none"))]) is None


def test_what_no_class_has_half_of_is_unsure_and_no_class_is_told_as_such() -> None:
    told = said(attnviz.explain("a fluffy creature", query="creature", head="L4H0").figure())
    assert "“creature” before layer 4 reads as: no colour (right 0.84)" in told
    assert "L4H0 adds to it only later" in told
    assert "colour unsure" in said(attnviz.explain("a wet blue boat").figure())


@pytest.mark.parametrize("format", ["png", "svg", "pdf"])
def test_the_command_writes_the_picture_and_json_has_its_numbers(
    run: Run, tmp_path: Path, format: str
) -> None:
    file = tmp_path / f"way.{format}"
    run("explain", TEXT, "-o", str(file), "--dpi", "100")
    assert file.stat().st_size > 5_000
    written = json.loads(run("explain", TEXT, "-f", "json").out)
    places = trajectory_of(TEXT, "table").places
    assert written["arrays"]["trajectory"] == [pytest.approx([*place]) for place in places]
    assert len(written["trajectory"]["rows"]) == len(places)


@pytest.mark.parametrize(
    "more", [[TEXT, "--query", "a"], [TEXT, "-m", "translator"], ["--example", "three-inputs"]]
)
def test_without_a_meaning_to_read_no_picture_is_written(
    run: Run, tmp_path: Path, more: list[str]
) -> None:
    file = tmp_path / "way.svg"
    result = run("explain", *more, "-o", str(file))
    assert result.status == ExitStatus.USAGE
    assert "write " in result.err
    assert not file.exists()
    if more[0] == TEXT:
        assert (
            "no read-out of builtin applies to" in result.err
            or "no read-out of translator" in result.err
        )


def test_maps_that_a_folder_lacks_leave_the_rest_of_the_calculation(tmp_path: Path) -> None:
    for file in Path(FOLDER).iterdir():
        if file.is_file() and file.name != "readouts.safetensors":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    found = attnviz.explain(TEXT, attnviz.load_model(tmp_path))
    assert found.record.meaning.trajectory is None
    with pytest.raises(UsageError, match="no read-out"):
        found.figure()


@pytest.mark.slow
def test_the_page_draws_the_same_way(opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "lesson.html"
    attnviz.explain(TEXT).save(str(file))
    page = opened(file, "#h=L3H2")
    for text, query in ((TEXT, "table"), (NAMES, "she")):
        page.fill("#text", text)
        until(page, f"document.body.dataset.ready === {text!r}")
        page.click(f'#written button >> text="{query}"')
        found = trajectory_of(text, query)
        titles = page.locator("#step-5 .plane title").all_text_contents()
        expected = [
            f"{name}: {x:.2f} {found.axes[0].label}, {y:.2f} {found.axes[1].label}"
            for name, (x, y) in zip(
                found.labels["rows"][1:], np.diff(found.places, axis=0), strict=True
            )
        ]
        assert [each.replace("-0.00", "0.00") for each in expected] == titles
        told = page.inner_text("#step-5")
        for axis in found.axes:
            assert f"right for {axis.accuracy:.2f}".replace(" 0.", " .") in told
    page.click('#written button >> text="was"')
    assert page.locator("#step-5 .plane").count() == 0
