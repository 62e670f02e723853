"""What patches add to the cosine of an image and a text, in CLIP."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from numpy.typing import NDArray
from PIL import Image

import attnviz
from attnviz.draw.picture.overlay import drawn_as
from attnviz.errors import IdleOption, InputError, UsageError
from attnviz.kit.prepare import TextOptions, load_model, prepare
from attnviz.models.catalog import Source
from attnviz.models.placement import Placement
from attnviz.records.exhibit import Look
from attnviz.records.heads import every_head
from attnviz.records.places import RawImage
from attnviz.records.transforms import Additions
from tests.conftest import Run
from tests.vision.encoders import encoder, make_towers
from tests.vision.test_image_patches import noise

TEXT = "a red circle"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_towers("clip", tmp_path_factory.mktemp("clip") / "model")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("images") / "a.png"
    Image.fromarray(noise(40, 36)).save(path)
    return str(path)


def additions(shown: Any) -> dict[str, float]:
    """What is added, by key."""
    columns = shown.to_columns()
    return dict(zip(columns["key_token"].tolist(), columns["addition"].tolist(), strict=True))


def eager(folder: Path) -> Any:
    """The model as transformers runs it, in float64: the oracle."""
    kind = transformers.CLIPModel
    model = kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float64)
    return model.eval().requires_grad_(requires_grad=False)


@contextmanager
def outputs_of(modules: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What modules give, by name."""
    found = dict[str, Any]()

    def keep(name: str) -> Any:
        return lambda _module, _args, output: found.update({name: output})

    hooks = [module.register_forward_hook(keep(name)) for name, module in modules.items()]
    yield found
    for hook in hooks:
        hook.remove()


def compared(folder: Path, ids: list[int], pixels: NDArray[np.uint8]) -> Any:
    """By hand: the cosine, what each layer, head and key adds to it, and the rest of its parts."""
    model = eager(folder)
    inputs = encoder("clip_vision_model").inputs(Image.fromarray(pixels))
    inputs["pixel_values"] = inputs["pixel_values"].double()
    vision = model.vision_model
    layers = vision.encoder.layers
    watched = {"embedding": vision.pre_layrnorm}
    for n, layer in enumerate(layers):
        watched |= {f"mlp {n}": layer.mlp, f"values {n}": layer.self_attn.v_proj}
    with torch.no_grad(), outputs_of(watched) as found:
        out = model(input_ids=torch.tensor([ids]), output_attentions=True, **inputs)
    cosine = float(out.logits_per_image / model.logit_scale.exp())
    x = out.vision_model_output.last_hidden_state[0, 0]
    norm, heads = vision.post_layernorm, model.config.vision_config.num_attention_heads
    sigma = (x.var(unbiased=False) + norm.eps).sqrt()
    length = model.visual_projection((x - x.mean()) / sigma * norm.weight + norm.bias).norm()

    def told(part: torch.Tensor) -> torch.Tensor:
        """How much of the cosine a summand of the class token's vector is, by frozen LayerNorm."""
        centred = (part - part.mean(dim=-1, keepdim=True)) / sigma * norm.weight
        return model.visual_projection(centred) @ out.text_embeds[0] / length

    adds, rest = [], told(found["embedding"][0, 0])
    rest = rest + model.visual_projection(norm.bias) @ out.text_embeds[0] / length
    for n, layer in enumerate(layers):
        rows = out.vision_model_output.attentions[n][0, :, 0]  # (h, keys)
        values = found[f"values {n}"][0].unflatten(-1, (heads, -1))  # (keys, h, d_v)
        by_head = layer.self_attn.out_proj.weight.unflatten(1, (heads, -1))  # (d, h, d_v)
        moved = torch.einsum("hk,khv,dhv->hkd", rows, values, by_head)
        adds.append(told(moved).numpy())
        rest = rest + told(found[f"mlp {n}"][0, 0]) + told(layer.self_attn.out_proj.bias)
    return cosine, adds, float(rest)


@pytest.mark.parametrize(("dtype", "near"), [("float64", 1e-6), ("float32", 1e-5)])
def test_patches_and_the_rest_sum_to_the_cosine_of_transformers(
    folder: Path, dtype: str, near: float
) -> None:
    pixels = noise(40, 36)
    model = load_model(Source(str(folder), placement=Placement(dtype=dtype), quiet=True))
    options = TextOptions(given=(RawImage("a.png", pixels),), matched=True)
    prepared = prepare(model, TEXT, options)
    captured = prepared.record(every_head(prepared.model.identity.heads_per_layer))
    ids = [
        token.id for token in model.tokenizer.encode(TEXT, bos=model.tokenizer.bos, special=False)
    ]
    cosine, adds, rest = compared(folder, ids, pixels)
    (told,) = captured.transforms
    assert isinstance(told, Additions)
    assert told.cosine == pytest.approx(cosine, abs=near)
    for layer, expected in zip(captured.layers, adds, strict=True):
        assert np.abs(layer.weights[:, 0] - expected).max() < near
    whole = sum(float(layer.weights.sum(dtype=np.float64)) for layer in captured.layers)
    assert whole + rest == pytest.approx(cosine, abs=near)
    assert abs(rest) > 1e-3


def test_heads_and_layers_restrict_what_is_added(folder: Path, image: str, tmp_path: Path) -> None:
    model = attnviz.load_model(folder)

    def added(**which: Any) -> dict[str, float]:
        return additions(model.show(TEXT, image=image, **which))

    every, first, second = added(), added(layers=0), added(layers=1)
    one = [added(heads=f"L1H{n}") for n in range(4)]
    assert len(every) == 17
    assert additions(model.show("red circle", image=image)) != pytest.approx(every, abs=1e-4)
    for key, value in every.items():
        assert value == pytest.approx(first[key] + second[key], abs=1e-7)
        assert second[key] == pytest.approx(sum(each[key] for each in one), abs=1e-7)
    model.capture(TEXT, image=image).save(tmp_path / "a.npz")
    again = attnviz.load(tmp_path / "a.npz").show(layers=1)
    assert additions(again) == pytest.approx(second)


def test_the_title_says_what_is_added_and_what_is_left(run: Run, folder: Path, image: str) -> None:
    shown = attnviz.load_model(folder).show(TEXT, image=image)
    added = sum(additions(shown).values())
    out = run("show", TEXT, "--image", image, "-m", str(folder), "--width", "300").out
    (told,) = shown.record.capture.transforms
    assert isinstance(told, Additions)
    left = told.cosine - added
    said = f"cosine of image and text {told.cosine:.3f}: all heads add {added:+.3f} directly"
    assert out.startswith(f"{said}, all else {left:+.3f}")
    row = json.loads(
        run("show", TEXT, "--image", image, "-m", str(folder), "-f", "jsonl").out.splitlines()[0]
    )
    assert row["layer"] == "sum"
    assert row["query_token"] == TEXT
    refused = run("show", TEXT, "--image", image, "-m", str(folder), "--view", "text")
    assert "--view text shows weights, and these are additions" in refused.err
    drawn = run("show", TEXT, "--image", image, "-m", str(folder), "--view", "image").out
    assert "patches add" in drawn
    assert "below 0: -" in drawn
    shades = drawn.split("to the cosine\n")[1].split("\n\n")[0]
    below = [value for key, value in additions(shown).items() if key != "[class]" and value < 0]
    assert ("-" in shades) == bool(below)


def test_a_picture_has_one_scale_for_both_signs(folder: Path, image: str) -> None:
    shown = attnviz.load_model(folder).show(TEXT, image=image)
    figure = drawn_as(shown.record, Look(view="image")).figure
    ends = [axes.get_ylim() for axes in figure.axes if axes.get_ylim()[0] < 0]
    patches = [abs(value) for key, value in additions(shown).items() if key != "[class]"]
    assert ends == [pytest.approx((-max(patches), max(patches)))]


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"words": True}, "is shown unchanged"),
        ({"rollout": True}, "is shown unchanged"),
        ({"scores": True}, "is shown unchanged"),
        ({"contribution": True}, "is shown unchanged"),
    ],
)
def test_what_has_no_meaning_for_additions_is_refused(
    folder: Path, image: str, options: dict[str, Any], wrong: str
) -> None:
    with pytest.raises((IdleOption, UsageError), match=wrong):
        attnviz.load_model(folder).show(TEXT, image=image, **options).figure()


def test_other_models_and_other_commands_refuse_it(
    folder: Path, image: str, tmp_path: Path
) -> None:
    model = attnviz.load_model(folder)
    with pytest.raises(UsageError, match="reads a text or an image, each by itself"):
        model.heads(TEXT, image=image)
    with pytest.raises(InputError, match="the model takes at most 64"):
        model.show("circle " * 80, image=image)
    siglip = attnviz.load_model(make_towers("siglip", tmp_path / "siglip"))
    with pytest.raises(UsageError, match="pools its patches"):
        siglip.show(TEXT, image=image)
