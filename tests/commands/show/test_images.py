"""`attnviz show --image`: image tokens as one column, as patches, and laid over the image."""

import dataclasses
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.color import Color

import attnviz
from attnviz.commands.show.outputs import OutputRequest, Show, choose_output, over_images
from attnviz.commands.show.run import beside_images, show_capture
from attnviz.console import Display
from attnviz.draw.headlines import sink_said
from attnviz.draw.overlay import density, panels_of, sinks_of, size_of
from attnviz.draw.terminal.around import heading
from attnviz.errors import UsageError
from attnviz.kit.choose import default_head
from attnviz.records.apply import whole_exhibit
from attnviz.records.exhibit import Filters
from attnviz.records.heads import Head
from tests.conftest import Run, loaded_once
from tests.vision.zoo import species

TEXT = "what colour is the circle?"
SHAPES = ((400, 300), (90, 400))


@pytest.fixture(scope="module")
def folder(llava_folder: Path) -> Path:
    return llava_folder


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Noise, wide and tall."""
    draw, made = np.random.default_rng(0), list[Path]()
    for number, (width, height) in enumerate(SHAPES):
        path = tmp_path_factory.mktemp("images") / f"{number}.png"
        Image.fromarray(draw.integers(0, 255, (height, width, 3), np.uint8)).save(path)
        made.append(path)
    return made


@pytest.fixture(scope="module")
def captured(folder: Path, images: list[Path]) -> attnviz.AttentionCapture:
    return attnviz.capture(TEXT, folder, image=images[0], heads="L1H2")


def rows_of(run: Run, *arguments: str | Path) -> list[dict[str, object]]:
    ended = run("show", *map(str, arguments), "-f", "jsonl")
    assert ended.status == 0, ended.err
    return [json.loads(line) for line in ended.out.splitlines()]


def test_an_image_is_one_column_that_holds_all_of_its_weight(
    run: Run, folder: Path, images: list[Path], captured: attnviz.AttentionCapture
) -> None:
    asked = ("-m", str(folder), "--image", str(images[0]), "--head", "L1H2", "--query", "-1")
    ended = run("show", TEXT, *asked, "--top", "1", "--key", "image")
    weights, tokens = captured.record.layers[0].weights[0], captured.record.key_tokens
    own = sum(float(weights[-1, t.index]) for t in tokens if t.image == 0)
    assert f"image {own:.2f}" in ended.out
    assert "@r0c0" not in ended.out
    assert "image of 400 × 300 pixels as 8 × 8 tokens, 25% of it cropped away" in " ".join(
        ended.out.split()
    )


def test_rows_say_which_pixels_each_patch_stands_for(
    run: Run, folder: Path, images: list[Path]
) -> None:
    rows = rows_of(run, TEXT, "-m", folder, "--image", images[0], "--head", "L0H0", "--query", "-1")
    placed = [row for row in rows if row["image"] == 1]
    assert len(placed) == 64
    first = next(row for row in placed if row["key_token"] == "@r0c0")
    assert (first["row"], first["column"], first["y0"]) == (0, 0, 0)
    assert first["x0"] == pytest.approx(48.3, abs=0.5)  # of 400 pixels the middle 300
    assert all(row["x0"] is None for row in rows if row["image"] is None)


@pytest.mark.parametrize(
    ("name", "patches"),
    [
        ("@r3c5", {(3, 5)}),
        ("@0.5,0.5", {(4, 4)}),
        ("@0.13,0.01:0.3,0.2", {(0, 0), (0, 1), (1, 0), (1, 1)}),
        ("@1:0.5,0.5", {(4, 4)}),
    ],
)
def test_patches_points_and_regions_are_keys(
    run: Run, folder: Path, images: list[Path], name: str, patches: set[tuple[int, int]]
) -> None:
    asked = ("-m", folder, "--image", images[0], "--head", "L0H0", "--query", "-1", "--key", name)
    assert {(row["row"], row["column"]) for row in rows_of(run, TEXT, *asked)} == patches


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("@1.5,0.2", "is outside the image"),
        ("@-0.1,0.5", "is outside the image"),
        ("@-.5,0:.5,1", "is outside the image"),
        ("@0.5,0.5:0.2,0.2", "ends before it begins; give left, top, right and bottom"),
        ("@0.01,0.5", "is in a part of the image that was cropped away"),
        ("@2:0.5,0.5", "is in image 2, which does not exist"),
        ("@r9c9", "is not in the image; the grid is 8 × 8"),
    ],
)
def test_a_place_that_is_not_there_is_refused(
    run: Run, folder: Path, images: list[Path], name: str, said: str
) -> None:
    asked = ("-m", str(folder), "--image", str(images[0]), "--head", "L0H0", "--key", name)
    ended = run("show", TEXT, *asked)
    assert ended.status == 2
    assert said in ended.err


def test_two_images_stand_where_the_text_says(run: Run, folder: Path, images: list[Path]) -> None:
    both = ("--image", str(images[0]), "--image", str(images[1]))
    ended = run("show", "is <image> like <image> ?", "-m", str(folder), *both, "--head", "L0H0")
    assert "image 1" in ended.out
    assert "image 2" in ended.out
    ended = run("show", "is <image> like <image> ?", "-m", str(folder), *both[:2])
    assert ended.status != 0
    assert "the text has 2 <image> for 1 image; give as many of both" in ended.err


def test_a_saved_capture_has_its_images(
    run: Run, captured: attnviz.AttentionCapture, tmp_path: Path
) -> None:
    captured.save(tmp_path / "c.npz")
    loaded = attnviz.load(tmp_path / "c.npz").record
    (ours,), (theirs,) = captured.record.images, loaded.images
    assert (ours.raw.pixels == theirs.raw.pixels).all()
    assert ours.views == theirs.views
    assert loaded.key_tokens == captured.record.key_tokens
    ended = run("show", str(tmp_path / "c.npz"), "-o", str(tmp_path / "o.png"))
    assert ended.status == 0, ended.err


def test_a_picture_shows_the_weights_where_their_pixels_are(
    captured: attnviz.AttentionCapture,
) -> None:
    """The grid of weights comes back from the middles of the patches."""
    *_, panel = panels_of(whole_exhibit(captured.record))
    image = captured.record.images[0]
    painted = density(image, panel.grids, image.raw.size)
    weights = captured.record.layers[0].weights[0][-1]
    for token in captured.record.key_tokens:
        if token.patch:
            x0, y0, x1, y1 = token.patch.box
            at = int((y0 + y1) / 2 * 300), int((x0 + x1) / 2 * 400)
            assert painted[at] == pytest.approx(weights[token.index], rel=1e-6)
    assert np.isnan(painted[:, :40]).all()  # cropped away


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_picture_of_an_image_is_an_overlay(
    run: Run, folder: Path, images: list[Path], tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"o.{suffix}"
    asked = ("-m", str(folder), "--image", str(images[0]), "--head", "L0H0", "--query", "-1")
    ended = run("show", TEXT, *asked, "-o", str(path))
    assert ended.status == 0, ended.err
    assert path.stat().st_size > 1000


def test_the_terminal_draws_the_image_in_two_pixels_a_cell(
    run: Run, folder: Path, images: list[Path]
) -> None:
    asked = ("-m", str(folder), "--image", str(images[0]), "--head", "L0H0", "--view", "image")
    plain = run("show", TEXT, *asked)
    assert "on the image" in plain.out
    assert "blank: not seen by the model" in plain.out
    truecolor = {"COLORTERM": "truecolor", "TERM": "xterm-256color"}
    colored = run("show", TEXT, *asked, "--color", "always", variables=truecolor)
    assert "▀" in colored.out
    assert max(map(len, plain.out.splitlines())) <= 80


def test_of_256_colours_each_pixel_has_the_nearest(
    run: Run, folder: Path, images: list[Path], tmp_path: Path
) -> None:
    """Dark brown stays dark: it is no red, as a terminal that rounds each channel has it."""
    dark = np.full((112, 112, 3), (62, 48, 42), np.uint8)
    Image.fromarray(dark).save(tmp_path / "dark.png")
    asked = ("-m", str(folder), "--image", str(tmp_path / "dark.png"), "--head", "L0H0")
    few = {"TERM": "screen-256color", "COLORTERM": ""}
    ended = run("show", TEXT, *asked, "--view", "image", "--color", "always", variables=few)
    numbers = {int(n) for n in re.findall(r"48;5;([0-9]+)", ended.out)}
    reds = {number for number in numbers if Color.from_ansi(number).get_truecolor()[1:] == (0, 0)}
    assert numbers
    assert min(numbers) >= 16
    assert not reds
    assert "38;2;" not in ended.out


def test_panels_that_are_too_many_are_left_out(run: Run, folder: Path, images: list[Path]) -> None:
    """Of each head, one for each image."""
    asked = ("-m", str(folder), "--head", "all", "--view", "image", "--query", "circle")
    heads = 8
    ended = run("show", TEXT, *asked, *("--image", str(images[0])) * 4)
    assert ended.out.count("on image") == 24
    assert f"the terminal shows the first 24 panels, and leaves {4 * heads - 24} panels out" in (
        " ".join(ended.out.split())
    )
    ended = run("show", TEXT, *asked, "--image", str(images[0]))
    assert "leaves" not in ended.out


def test_views_of_an_image_are_told_in_words(captured: attnviz.AttentionCapture) -> None:
    (image,) = captured.record.images
    (view,) = image.views
    own = [dataclasses.replace(view, name=name) for name in ("overview", "tile", "tile", "tiles")]
    for views, said in (
        (own[:1], "as 8 × 8 tokens, 25% of"),
        (own[:3], "as 8 × 8 tokens, and 2 tiles of 8 × 8, 25% of"),
        (own[:2], "as 8 × 8 tokens, and 1 tile of 8 × 8, 25% of"),
        (own[3:], "as tiles of 8 × 8 tokens, 25% of"),
    ):
        images = (dataclasses.replace(image, views=tuple(views)),)
        assert said in size_of(dataclasses.replace(captured.record, images=images), 0)


def test_a_sink_is_what_nearly_every_word_attends_to(captured: attnviz.AttentionCapture) -> None:
    """One token is given what the sinks of real models have."""
    (layer,) = captured.record.layers
    weights = layer.weights.copy()
    sink = next(t.index for t in captured.record.key_tokens if t.patch and t.patch.row == 3)
    weights[0, :, sink] += 0.9
    capture = captured.record.only(captured.record.heads)
    object.__setattr__(capture, "layers", (type(layer)(layer.layer, layer.heads, weights),))
    exhibit = whole_exhibit(capture)
    assert np.flatnonzero(sinks_of(exhibit, exhibit.maps[0], 0)).tolist() == [sink]
    plain = whole_exhibit(captured.record)
    assert not sinks_of(plain, plain.maps[0], 0).any()


@pytest.mark.parametrize("merged", [True, False])
def test_the_first_line_says_the_share_on_the_image_and_on_its_sinks(
    captured: attnviz.AttentionCapture, merged: bool
) -> None:
    """Every row gives .3 to the first token, .4 to one patch, and .3 to the other patches."""
    (layer,) = captured.record.layers
    patches = [t.index for t in captured.record.key_tokens if t.patch]
    weights = np.zeros_like(layer.weights)
    weights[:, :, 0] = 0.3
    weights[:, :, patches] = 0.3 / (len(patches) - 1)
    weights[:, :, patches[7]] = 0.4
    layers = (type(layer)(layer.layer, layer.heads, weights),)
    crafted = dataclasses.replace(captured.record, layers=layers)
    text = [t for t in crafted.query_tokens if t.index > patches[-1]]
    keys = () if merged else ("@r3c3",)
    for query, name in (("?", "?"), (None, f"mean of {len(text)} text tokens")):
        show = Show(filters=Filters(queries=(query,) if query else (), keys=keys), legible=True)
        (line, *_) = heading(show_capture(crafted, show), Display(width=500))
        assert line.plain.endswith(f"; {name}: .70 on the image, 57% of that on sinks")


def test_text_models_refuse_an_image(run: Run, images: list[Path]) -> None:
    ended = run("show", TEXT, "--image", str(images[0]))
    assert ended.status == 2
    assert "builtin reads no images" in ended.err


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama 3.2 Vision, whose text has cross-attention to images, and which has a template."""
    return loaded_once(species("mllama").make(tmp_path_factory.mktemp("mllama")))


@pytest.mark.slow
def test_without_a_patch_among_the_keys_the_picture_is_a_heatmap(
    run: Run, crossed: Path, images: list[Path], tmp_path: Path
) -> None:
    asked = ("-m", str(crossed), "--image", str(images[0]))
    ended = run("show", TEXT, *asked, "-o", str(tmp_path / "plain.png"))
    assert ended.status == 0, ended.err
    own = attnviz.show(TEXT, crossed, image=images[0]).record
    assert choose_output(beside_images(over_images(OutputRequest("png")), own)).view == "heatmap"
    assert SAID_BESIDE in ended.err
    ended = run("show", TEXT, *asked, "--view", "image")
    assert ended.status == 2
    assert "beside the tokens of the text; show it with --kind cross." in ended.err
    ended = run("show", TEXT, *asked, "--view", "image", "--kind", "cross", "--query", "-1")
    assert "on the image" in ended.out


SAID_BESIDE = "beside the tokens of the text; --kind cross shows the attention to them\n"


@pytest.mark.slow
def test_the_one_token_of_an_image_beside_the_text_is_not_the_image(
    run: Run, crossed: Path, images: list[Path], tmp_path: Path
) -> None:
    asked = (TEXT, "-m", str(crossed), "--image", str(images[0]), "--query", "?")
    ended = run("show", *asked)
    assert "on the image" not in ended.out
    assert "each image as one" not in ended.out
    assert ended.err.count(SAID_BESIDE) == 1
    notes = json.loads(run("show", *asked, "-f", "json").out)["notes"]
    (note,) = [each for each in notes if "cross-attention" in each]
    assert note.endswith(SAID_BESIDE.strip().replace("--kind cross", "kind='cross'"))
    assert note in attnviz.show(TEXT, crossed, image=images[0], query="?").notes
    assert SAID_BESIDE not in run("show", *asked, "--kind", "cross").err
    attnviz.capture(TEXT, crossed, image=images[0]).save(tmp_path / "c.npz")
    assert SAID_BESIDE in run("show", str(tmp_path / "c.npz"), "--drop-key", "?").err


def test_patches_that_are_dropped_still_lie_in_the_text(
    run: Run, folder: Path, images: list[Path]
) -> None:
    asked = (TEXT, "-m", str(folder), "--image", str(images[0]), "--drop-key", "@0,0:1,1")
    assert "cross-attention" not in run("show", *asked).err


def test_no_head_is_chosen_by_its_look_at_an_image_that_is_no_key(
    crossed: Path, images: list[Path]
) -> None:
    own = attnviz.capture(TEXT, crossed, image=images[0]).record
    assert default_head(own).why == "moves"


@pytest.mark.parametrize(("kind", "row"), [("cross", "-1"), ("encoder", "@r3c3")])
def test_patches_stay_apart_where_an_image_is_all_that_is_attended_to(
    run: Run, folder: Path, crossed: Path, images: list[Path], kind: str, row: str
) -> None:
    model = crossed if kind == "cross" else folder
    asked = ("-m", str(model), "--image", str(images[0]), "--kind", kind)
    for more in ((), ("--query", row)):
        ended = run("show", TEXT, *asked, *more)
        assert ended.status == 0, ended.err
        assert "→ @" in ended.out
        assert "→ image" not in ended.out


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--no-bos",), "--bos does nothing beside a chat template"),
        (("--bos",), "--bos does nothing beside a chat template"),
        (("--target", "foo"), "--target is the output of an encoder-decoder"),
        (("--truncate", "left"), "--truncate cannot cut an image or a sound"),
    ],
)
def test_options_that_do_nothing_beside_an_image_are_refused(
    run: Run, crossed: Path, images: list[Path], option: tuple[str, ...], said: str
) -> None:
    ended = run("show", TEXT, "-m", str(crossed), "--image", str(images[0]), *option)
    assert ended.status == 2
    assert said in ended.err


def test_a_beginning_token_that_the_processor_writes_cannot_be_left_out(
    run: Run, crossed: Path, images: list[Path]
) -> None:
    asked = ("-m", str(crossed), "--image", str(images[0]), "--no-bos")
    ended = run("show", f"<image>{TEXT}", *asked)
    assert ended.status == 2
    assert "writes <|endoftext|> itself; leave --bos out" in ended.err


@pytest.mark.parametrize("command", ["predict", "ablate", "heads", "why"])
def test_other_commands_read_images(
    run: Run, folder: Path, images: list[Path], command: str
) -> None:
    more = ["--head", "L0H0"] if command in ("why", "ablate") else []
    ended = run(command, TEXT, "-m", str(folder), "--image", str(images[0]), *more)
    assert ended.status == 0, ended.err
    assert ended.out


@pytest.mark.parametrize("place", ["image", "@0.3,0.2:0.7,0.9"])
def test_links_to_places_are_cut_and_explained(
    run: Run, folder: Path, images: list[Path], place: str
) -> None:
    asked = (TEXT, "-m", str(folder), "--image", str(images[0]), "--head", "L1H2")
    keys = rows_of(run, *asked, "--query", "circle", "--key", place)
    cut = run("ablate", *asked, "--cut", f"circle:{place}")
    assert f"{len(keys)} links from circle to {place} removed" in " ".join(cut.out.split())
    if place.startswith("@"):  # it is no segment, where there are some
        beside = run("ablate", *asked, "--cut", f"circle:{place}", "--segment", "first=0:4")
        assert beside.out == cut.out
    why = run("why", *asked, "--query", "circle", "--key", place, "-f", "json")
    strongest = max(keys, key=lambda row: float(str(row["weight"])))
    assert json.loads(why.out)["key"] == strongest["key"]


def test_an_image_changes_what_is_predicted(folder: Path, images: list[Path]) -> None:
    model = attnviz.load_model(folder)
    pixels = [np.asarray(Image.open(path).convert("RGB")) for path in images]
    logits = [
        attnviz.predict(TEXT, model, image=each, top=1).rows[0]["probability"] for each in pixels
    ]
    assert logits[0] != logits[1]


def test_repeats_of_an_image_token_are_no_induction(folder: Path, images: list[Path]) -> None:
    """Its tokens have one id, and are not the same word again."""
    report = attnviz.heads("ab", folder, image=images[0]).rows
    assert all((row["duplicate"] or 0) < 0.2 for row in report)


def test_pictures_are_the_same_bytes_each_time(
    captured: attnviz.AttentionCapture, tmp_path: Path
) -> None:
    for name in ("a.png", "b.png"):
        captured.show("image").save(tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    with Image.open(io.BytesIO((tmp_path / "a.png").read_bytes())) as image:
        assert max(image.size) > 500


def test_a_very_long_image_is_shown(folder: Path) -> None:
    shown = attnviz.show(TEXT, folder, image=np.zeros((5, 900, 3), np.uint8), heads="L0H0")
    (view,) = shown.record.capture.images[0].views
    assert view.window == pytest.approx((447.5, 0, 452.5, 5), abs=0.3)


def test_weights_of_ones_own_lie_on_an_image(tmp_path: Path) -> None:
    tokens = ["<image>"] * 6 + ["red"]
    weights = np.full((7, 7), 1 / 7)
    weights[-1] = [0.5, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05]
    own = attnviz.from_attention(
        weights, tokens, image=np.zeros((20, 30, 3), np.uint8), grid=(2, 3), causal=False
    )
    (panel,) = panels_of(whole_exhibit(own.record))[-1:]
    assert panel.grids[0].ravel() == pytest.approx(weights[-1, :6])
    assert panel.share == pytest.approx(0.95)
    shown = own.show("image", query="red")
    assert "weight from 0 to 0.5" in str(shown)  # its tokens are not one
    (drawn,) = (each for axes in shown.figure().axes for each in axes.images)
    assert drawn.get_array().shape == (20, 30, 4)
    assert (panels_of(shown.record)[0].grids[0] == panel.grids[0]).all()
    shown.save(tmp_path / "own.png")
    with pytest.raises(UsageError, match="not a grid of 2 × 2"):
        attnviz.from_attention(weights, tokens, image=np.zeros((20, 30, 3), np.uint8))
    with pytest.raises(UsageError, match=r"no token is <pad>, .* name .*image_token"):
        attnviz.from_attention(
            weights, tokens, image=np.zeros((20, 30, 3), np.uint8), image_token="<pad>"
        )


def test_relative_attention_is_the_ratio_to_a_neutral_prompt(
    run: Run, folder: Path, images: list[Path]
) -> None:
    asked = ("-m", folder, "--image", images[0], "--head", "L1H2", "--query", "-1")
    ours, neutral = (
        {row["key_token"]: row["weight"] for row in rows_of(run, text, *asked) if row["image"]}
        for text in (TEXT, "describe it")
    )
    rows = rows_of(run, TEXT, *asked, "--relative", "describe it")
    assert len(rows) == 64  # of text there is no ratio
    for row in rows:
        expected = ours[row["key_token"]] / max(neutral[row["key_token"]], 0.01 / 64)
        assert row["ratio"] == pytest.approx(expected, rel=1e-4)
    words = tuple(map(str, asked))
    shown = run("show", TEXT, *words, "--relative", TEXT)  # beside itself nothing stands out
    assert "up to 1.0 times the neutral prompt" in shown.out
    refused = run("show", TEXT, *words, "--relative", "describe it", "--view", "table")
    assert refused.status == 2
    refused = run("show", TEXT, "--relative", "describe it", "-f", "csv")
    assert "--relative is for images" in refused.err


def test_the_head_that_looks_at_single_places_is_shown(captured: attnviz.AttentionCapture) -> None:
    """One head's rows move over the image; those of most others all fall on one token, a sink."""
    (layer,) = captured.record.layers
    seen = [t.index for t in captured.record.key_tokens if t.image is not None]
    weights = np.repeat(layer.weights, 7, axis=0)
    rows = [t.index for t in captured.record.query_tokens if t.image is None and t.index > seen[-1]]
    for n, row in enumerate(rows):
        weights[1, row, seen[n % len(seen)]] += 0.6
        weights[2:, row, seen[5]] += 0.9
    layers = (type(layer)(layer.layer, tuple(range(7)), weights),)
    capture = dataclasses.replace(captured.record, layers=layers)
    choice = default_head(capture)
    assert (choice.heads, choice.why) == ((Head(1, 1),), "sees")


def test_the_links_to_an_image_are_listed(run: Run, folder: Path, images: list[Path]) -> None:
    asked = ("-m", str(folder), "--image", str(images[0]), "--view", "links", "--head", "all")
    assert "→ image" in run("show", TEXT, *asked, "--min", "0.1").out


def test_ratios_are_not_multiplied(run: Run, folder: Path, images: list[Path]) -> None:
    asked = ("-m", str(folder), "--image", str(images[0]), "--relative", "describe it")
    for option in ("--rollout", "--weighted"):
        ended = run("show", TEXT, *asked, option)
        assert ended.status == 2
        assert f"leave it or {option} out" in ended.err


def test_an_image_alone_is_a_text(run: Run, images: list[Path]) -> None:
    """Of no word, no behaviour is looked for."""
    ended = run("show", "<image>", "-m", "shapes", "--image", str(images[0]))
    assert ended.status == 0, ended.err


def test_the_edges_of_an_image_belong_to_it(run: Run, folder: Path, images: list[Path]) -> None:
    square = images[0].with_name("square.png")
    Image.open(images[0]).resize((112, 112)).save(square)
    asked = ("-m", folder, "--image", square, "--head", "L0H0", "--query", "-1")
    (row,) = rows_of(run, TEXT, *asked, "--key", "@1,1")
    assert (row["row"], row["column"]) == (7, 7)


def test_a_title_calls_no_patch_a_sink(captured: attnviz.AttentionCapture) -> None:
    """The first token, which takes everything here, is a part of the image."""
    (layer,) = captured.record.layers
    seen = next(t.index for t in captured.record.key_tokens if t.patch)
    weights = np.zeros_like(layer.weights)
    weights[:, :, seen] = 1
    layers = (type(layer)(layer.layer, layer.heads, weights),)
    capture = dataclasses.replace(captured.record, layers=layers)
    assert sink_said(whole_exhibit(capture)) == ""


def test_one_panel_has_the_resolution_of_its_image(run: Run, folder: Path, tmp_path: Path) -> None:
    """Each pixel of a board of black and white is one of the picture."""
    board = np.indices((1200, 1200)).sum(axis=0) % 2 * np.uint8(255)
    Image.fromarray(np.repeat(board[..., None], 3, axis=2).astype(np.uint8)).save(
        tmp_path / "b.png"
    )
    asked = ("-m", str(folder), "--image", str(tmp_path / "b.png"), "--head", "L0H0")
    ended = run("show", TEXT, *asked, "--query", "-1", "-o", str(tmp_path / "o.png"))
    assert ended.status == 0, ended.err
    with Image.open(tmp_path / "o.png") as picture:
        grey = np.asarray(picture.convert("L")).astype(int)
    middle = grey[grey.shape[0] // 2, 200:1000]
    assert (np.abs(np.diff(middle)) > 40).mean() > 0.95


def test_images_are_counted_from_1_in_json_and_captures_that_counted_from_0_are_read(
    run: Run, folder: Path, images: list[Path], tmp_path: Path
) -> None:
    new, old = tmp_path / "new.npz", tmp_path / "old.npz"
    text = "is <image> like <image> ?"
    captured = attnviz.capture(text, folder, image=list(images), heads="L1H2")
    captured.save(new)
    told = json.loads(run("show", str(new), "-f", "json").out)["tokens"]
    numbers = {t["image"]: t["label"][:3] for t in told if t["label"].startswith("@")}
    assert numbers == {1: "@1:", 2: "@2:"}
    arrays = dict(np.load(new))
    facts = json.loads(str(arrays["meta"]))
    for token in facts["query_tokens"]:
        if "image" in token:
            token["image"] -= 1
    np.savez(old, **{**arrays, "meta": np.array(json.dumps(facts))})
    assert attnviz.load(old).record.key_tokens == captured.record.key_tokens
    assert attnviz.load(new).record.key_tokens == captured.record.key_tokens
