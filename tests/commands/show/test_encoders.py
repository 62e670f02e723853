"""`attnviz show a.png` with a model that reads images alone."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import attnviz
from attnviz.draw.overlay import of_whole_image, panels_of
from attnviz.errors import ExitStatus, UsageError
from attnviz.kit.choose import default_head
from attnviz.records.apply import whole_exhibit
from attnviz.records.capture import Capture, FloatArray, LayerPattern
from attnviz.records.heads import Head
from tests.conftest import Run, slow
from tests.vision.encoders import encoder
from tests.vision.test_image_patches import noise

REGISTERS = [f"[register {n}]" for n in range(1, 5)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One with a class and registers, and one of patches alone."""
    names = {"dino": "dinov2_with_registers", "siglip": "siglip_vision_model"}
    where = tmp_path_factory.mktemp("encoders")
    return {short: str(encoder(name).make(where / short)) for short, name in names.items()}


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("images") / "a.png"
    Image.fromarray(noise(120, 90)).save(path)
    return str(path)


def rows_of(run: Run, *arguments: str) -> list[dict[str, object]]:
    ended = run("show", *arguments, "-f", "jsonl")
    assert ended.status == 0, ended.err
    return [json.loads(line) for line in ended.out.splitlines()]


def test_an_image_is_given_as_the_text_or_by_its_option(
    run: Run, folders: dict[str, str], picture: str
) -> None:
    as_text = run("show", picture, "-m", folders["dino"], "--head", "L1H2")
    by_option = run("show", "--image", picture, "-m", folders["dino"], "--head", "L1H2")
    assert as_text.status == 0, as_text.err
    assert as_text.err == by_option.err == ""
    assert as_text.out == by_option.out
    assert "21 tokens with [class] and 4 register tokens, image of 120 × 90" in " ".join(
        as_text.out.split()
    )


def test_standard_input_is_not_read_beside_an_image_alone(
    run: Run, folders: dict[str, str], picture: str
) -> None:
    asked = ["show", "--image", picture, "-m", folders["siglip"], "--head", "L1H2"]
    assert run(*asked, stdin=b"a pipe that may stay open") == run(*asked)


def test_a_recording_is_refused_as_one_and_the_listing_says_what_is_read(
    run: Run, folders: dict[str, str], tmp_path: Path
) -> None:
    sound = tmp_path / "s.wav"
    sound.write_bytes(b"RIFF")
    refused = run("show", str(sound), "-m", folders["siglip"])
    assert refused.status is ExitStatus.USAGE
    assert "reads only images, and no recording" in refused.err
    assert "parameters, reads images\n" in run("models", folders["siglip"], "--width", "200").out


def test_a_table_has_a_row_for_each_own_token_and_one_for_all_patches(
    run: Run, folders: dict[str, str], picture: str
) -> None:
    ended = run("show", picture, "-m", folders["dino"], "--head", "L1H2", "--width", "100")
    rows = [line.split("→")[0].strip() for line in ended.out.splitlines() if "→" in line]
    assert rows == ["[class]", *REGISTERS, "image"]
    ended = run("show", picture, "-m", folders["siglip"], "--head", "L1H2", "--width", "100")
    assert ended.out.count("→") == 1


def test_the_row_of_the_image_is_the_mean_over_its_patches(
    folders: dict[str, str], picture: str
) -> None:
    capture = attnviz.capture(picture, folders["siglip"], heads="L1H2")
    whole = of_whole_image(whole_exhibit(capture.record))
    (panel,) = panels_of(whole)
    expected = capture.pattern(1, 2).mean(axis=0).reshape(4, 4)
    assert np.abs(panel.grids[0] - expected).max() < 1e-6
    assert np.isclose(panel.share, 1)


def test_a_picture_lays_the_row_of_the_class_over_the_image(
    folders: dict[str, str], picture: str
) -> None:
    capture = attnviz.capture(picture, folders["dino"], heads="L1H2,L0H1")
    panels = panels_of(of_whole_image(whole_exhibit(capture.record)))
    assert [panel.map.label for panel in panels] == ["L0H1", "L1H2"]
    for panel, (layer, head) in zip(panels, [(0, 1), (1, 2)], strict=True):
        assert np.array_equal(panel.grids[0].ravel(), capture.pattern(layer, head)[0, 5:])
        assert panel.query == 0


@pytest.mark.parametrize(("heads", "across"), [("all", 4), ("L0H0,L1H0,L1H1", 3)])
def test_heads_stand_side_by_side_and_layers_below_each_other(heads: str, across: int) -> None:
    figure = attnviz.show("docs/images/patterned.png", "shapes-vit", heads=heads).figure()
    lefts = {round(axes.get_position().x0, 3) for axes in figure.axes if axes.get_images()}
    assert len(lefts) == across


def test_heads_have_a_scale_each_whose_end_stands_above_the_panel(
    folders: dict[str, str], picture: str
) -> None:
    def panels(**look: Any) -> list[tuple[str, Any]]:
        figure = attnviz.show(picture, folders["dino"], heads="L0H0,L1H2", **look).figure()
        drawn = [axes for axes in figure.axes if axes.get_images()]
        title = [" ".join(t.get_text() for t in a.texts).replace("\n", " ") for a in drawn]
        return list(zip(title, [axes.get_images()[0].get_array() for axes in drawn], strict=True))

    capture = attnviz.capture(picture, folders["dino"])
    for (layer, head), (title, _) in zip([(0, 0), (1, 2)], panels(), strict=True):
        row = capture.pattern(layer, head)[0]
        assert f"{row[5:].sum():.2f} on the image, {row[1:5].sum():.2f} on registers" in title
        assert f"{row[0]:.2f} on [class], max {row[5:].max():.2g}" in title
    one = panels(color_scale="linear")
    changed = [(a != b).any() for (_, a), (_, b) in zip(one, panels(), strict=True)]
    assert sorted(changed) == [False, True]  # the panel with the largest weight stays
    assert "max" not in one[0][0]
    with pytest.raises(UsageError, match="logarithmic"):
        panels(color_scale="log")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("cls", ["[class]"]),
        ("CLS", ["[class]"]),
        ("class", ["[class]"]),
        ("[class]", ["[class]"]),
        ("register", REGISTERS),
        ("register#2", ["[register 2]"]),
        ("[register 3]", ["[register 3]"]),
        ("@.3,.2", ["@r0c0"]),
        ("@0.6,0.6", ["@r2c2"]),
        ("@r3c1", ["@r3c1"]),
        ("0", ["[class]"]),
    ],
)
def test_queries_are_named(
    run: Run, folders: dict[str, str], picture: str, name: str, found: list[str]
) -> None:
    rows = rows_of(run, picture, "-m", folders["dino"], "--head", "L0H0", "--query", name)
    assert [*dict.fromkeys(row["query_token"] for row in rows)] == found


def test_rows_carry_the_places_of_patches_and_none_of_own_tokens(
    run: Run, folders: dict[str, str], picture: str
) -> None:
    rows = rows_of(run, picture, "-m", folders["dino"], "--head", "L0H0", "--query", "cls")
    places = {row["key_token"]: (row.get("image"), row.get("row"), row.get("x0")) for row in rows}
    assert places["[class]"] == places["[register 4]"] == (None, None, None)
    assert places["@r2c1"][:2] == (1, 2)


def test_a_saved_capture_shows_the_same(
    run: Run, folders: dict[str, str], picture: str, tmp_path: Path
) -> None:
    saved = str(tmp_path / "a.npz")
    assert run("show", picture, "-m", folders["dino"], "-o", saved).status == 0
    first, again = run("show", picture, "-m", folders["dino"]), run("show", saved)
    assert first.status == again.status == 0
    assert first.out == again.out


@pytest.mark.parametrize("options", [["--weighted"], ["--rollout"], ["--reduce", "mean"], []])
@pytest.mark.parametrize("name", ["dino", slow("siglip")])
def test_every_form_can_be_drawn(
    run: Run, folders: dict[str, str], picture: str, tmp_path: Path, name: str, options: list[str]
) -> None:
    for suffix in ("png",) if options else ("png", "svg"):
        to = tmp_path / f"a.{suffix}"
        ended = run("show", picture, "-m", folders[name], *options, "-o", str(to))
        assert ended.status == 0, ended.err
        assert to.stat().st_size > 1000
    for more in ([], ["--view", "image"], ["--view", "heatmap"]):
        assert run("show", picture, "-m", folders[name], *options, *more).status == 0


def test_a_page_of_an_image_is_written(
    run: Run, folders: dict[str, str], picture: str, tmp_path: Path
) -> None:
    for name in folders:
        to = tmp_path / f"{name}.html"
        assert run("show", picture, "-m", folders[name], "-o", str(to)).status == 0
        assert "[class]" in to.read_text() or name == "siglip"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--words"], "--words is about a text"),
        (["--chars"], "--chars is about a text"),
        (["--view", "text"], "--view text is about a text"),
        (["--bos"], "--bos needs a text"),
        (["--special"], "--special needs a text"),
        (["--truncate", "left"], "--truncate cannot cut an image"),
        (["--target", "a"], "--target is the output of an encoder-decoder"),
        (["--kind", "encoder"], "--kind encoder is for encoder-decoders"),
        (["--query", "@2,2"], "is outside the image"),
        (["--query", "distillation"], "this model has no distillation token"),
    ],
)
def test_options_about_a_text_are_refused(
    run: Run, folders: dict[str, str], picture: str, options: list[str], said: str
) -> None:
    ended = run("show", picture, "-m", folders["dino"], *options)
    assert ended.status is ExitStatus.USAGE
    assert said in ended.err
    assert ended.err.count("\n") == 1


def test_a_text_is_refused(run: Run, folders: dict[str, str], picture: str) -> None:
    for arguments in (["a cat"], ["a cat", "--image", picture], ["a.txt"]):
        ended = run("show", *arguments, "-m", folders["dino"])
        assert ended.status is ExitStatus.USAGE
        assert "reads only images, and no text" in ended.err


@pytest.mark.parametrize("command", ["why", "ablate", "generate"])
def test_commands_that_ask_about_a_text_say_which_take_an_image(
    run: Run, folders: dict[str, str], picture: str, command: str
) -> None:
    given = ("hello", "--image", picture) if command == "generate" else (picture,)
    ended = run(command, *given, "-m", folders["dino"])
    assert ended.status is ExitStatus.USAGE
    assert "reads only images, but this is asked about a text" in ended.err


def test_predict_counts_images(run: Run, tmp_path: Path) -> None:
    lines = tmp_path / "images.txt"
    lines.write_text(f"{Path('docs/images/patterned.png').resolve()}\n" * 2)
    ended = run("predict", "--lines", "--file", str(lines), "-m", "shapes-vit", "--top", "1")
    assert "mean of 2 images" in ended.out


def test_it_is_verified(folders: dict[str, str], picture: str) -> None:
    for folder in folders.values():
        assert attnviz.verify(picture, folder).exact


def test_python_prints_the_same_rows(folders: dict[str, str], picture: str) -> None:
    shown = attnviz.show(image=picture, model=folders["dino"], heads="L1H2")
    assert str(shown).count("→") == 6
    assert len(shown.to_columns()["weight"]) == 21 * 21
    with pytest.raises(UsageError, match="is about a text"):
        attnviz.show(image=picture, model=folders["dino"], words=True)


# The head that is shown where none is named.


def planted(capture: Capture, rows: dict[Head, FloatArray]) -> Capture:
    """The capture with these rows of the class, and even ones elsewhere."""
    n = len(capture.key_tokens)
    layers = []
    for layer in capture.layers:
        weights = np.full_like(layer.weights, 1 / n)
        for head, row in rows.items():
            if head.layer == layer.layer:
                weights[head.head, 0] = row
        layers.append(LayerPattern(layer.layer, layer.heads, weights))
    return replace(capture, layers=tuple(layers))


def test_the_default_head_is_the_one_whose_class_attends_to_few_places(
    folders: dict[str, str], picture: str
) -> None:
    record = attnviz.capture(picture, folders["dino"]).record
    compact, spread, registers = (np.zeros(21, np.float32) for _ in range(3))
    compact[7:9] = 0.5
    spread[5:] = 1 / 16
    registers[1] = 1.0
    rows = {Head(0, 1): spread, Head(1, 2): compact, Head(1, 0): registers}
    chosen = default_head(planted(record, rows))
    assert chosen.heads == (Head(1, 2),)
    assert chosen.why == "sees"


def test_the_default_head_attends_to_no_sink(folders: dict[str, str], picture: str) -> None:
    record = attnviz.capture(picture, folders["dino"]).record
    sink, place = np.zeros(21, np.float32), np.zeros(21, np.float32)
    sink[20] = 1.0
    place[9] = 0.6
    rows = dict.fromkeys(record.heads, sink) | {Head(0, 3): place}
    assert default_head(planted(record, rows)).heads == (Head(0, 3),)


def test_weights_of_ones_own_are_told_as_those_of_a_run(
    folders: dict[str, str], picture: str
) -> None:
    ran = attnviz.capture(image=picture, model=folders["dino"], heads="L1H2")
    tokens = ["[CLS]", *REGISTERS, *["<image>"] * 16]
    own = attnviz.from_attention(ran.pattern(1, 2), tokens, image=picture, grid=(4, 4))
    assert own.record.image_alone
    shown = str(own.show()).split("\n\n")
    assert "21 tokens with [CLS] and 4 register tokens" in " ".join(shown[0].split())
    assert "[CLS]: " in " ".join(shown[0].split())
    assert shown[1].count("→") == 6
    (panel,) = panels_of(of_whole_image(whole_exhibit(own.record)))
    assert np.array_equal(panel.grids[0].ravel(), ran.pattern(1, 2)[0, 5:])
    assert str(own.show(query="cls")).count("→") == 1


@pytest.mark.parametrize("command", ["generate", "tokens"])
def test_commands_about_a_text_say_that_the_model_reads_none(
    run: Run, folders: dict[str, str], picture: str, command: str
) -> None:
    for text in ("a cat", picture):
        ended = run(command, text, "-m", folders["dino"])
        assert ended.status is ExitStatus.USAGE
        assert "reads only images" in ended.err
