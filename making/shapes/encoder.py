"""Train the encoder of images: `python -m making.shapes.encoder -o DIR`.

It names the colour and the form of one shape in a patterned picture; nothing says where to attend.
The training takes about 25 minutes on one core; an interrupted one goes on where it was. The heads
that the card names are chosen on other pictures than those on which they are measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
import typer
from torch import Tensor
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessorPil

from attnviz.commands.train.loop import Batch, StepLoss
from attnviz.commands.train.plan import Recipe
from attnviz.records.heads import Figure, Head, ModelCard, NamedHead
from making.shapes.__main__ import save, trained, write_card
from making.shapes.data import BATCH, share_in_box
from making.shapes.draw import COLOURS, OUTLINES, draw_patterned, lone
from making.shapes.model import HEADS, LAYERS, WIDTH, waves

SIDE, PATCH, INNER, TESTS = 12, 8, 144, 200  # patches of a row, pixels of a patch
PATCHES, PIXELS = SIDE * SIDE, SIDE * PATCH
LABELS = [f"{colour} {form}" for colour in COLOURS for form in OUTLINES]
FINDS = NamedHead("finds", Head(2, 2), "the class token attends most to a patch of the shape")
COVERS = NamedHead("covers", Head(1, 1), "most of the class token's attention is on the shape")
HIT, MASS = "pictures whose most-attended patch is the shape's", "mass on the shape's box"
DESCRIPTION = (
    "A small image encoder (ViT) trained from scratch on drawn pictures of one coloured shape "
    "among lines on a pattern, to name the shape's colour and form. No attention targets were "
    "used: nothing says where a head should attend. The named heads were chosen among all on 200 "
    "other pictures: the one that finds the shape most often, and the one with the most mass on it."
)


@dataclass(frozen=True, kw_only=True)
class EncoderRecipe(Recipe):
    """The training on the names of shapes."""

    steps: int = 4_000
    learning_rate: float = 4e-3
    rates: tuple[tuple[float, float], ...] = ((0, 0.01), (0.02, 1.0), (0.4, 1.0), (1, 0.005))
    weight_decay: float = 0.05
    workers: int = 1


@dataclass(frozen=True)
class Pictures(Batch):
    """`pixels`: (B, 3, h, w). An id stands for each token (B, 1 + patches); targets are (B)."""

    pixels: Tensor


class PicturesSource:
    """Batches of the training; the same ones for the same seed."""

    def __call__(self, seed: str, count: int, begun: float) -> list[Pictures]:
        return [batch([f"{seed} {n} {i}" for i in range(BATCH)]) for n in range(count)]


def processor() -> ViTImageProcessorPil:
    return ViTImageProcessorPil(size={"height": PIXELS, "width": PIXELS})


def batch(seeds: Sequence[str]) -> Pictures:
    drawn = [draw_patterned(seed, PIXELS) for seed in seeds]
    pixels = processor()(drawn, return_tensors="pt")["pixel_values"]
    blank = torch.zeros(len(seeds), 1 + PATCHES, dtype=torch.long)
    labels = torch.tensor([LABELS.index(lone(seed).name) for seed in seeds])
    return Pictures(blank, blank, blank, labels, pixels)


def fresh_encoder(seed: int) -> ViTForImageClassification:
    """A model with random weights; positions begin as waves along rows and columns."""
    torch.manual_seed(seed)
    config = ViTConfig(
        hidden_size=WIDTH,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        image_size=PIXELS,
        patch_size=PATCH,
        id2label=dict(enumerate(LABELS)),
        label2id={label: n for n, label in enumerate(LABELS)},
        initializer_range=0.08,
    )
    config._attn_implementation = "eager"
    model = ViTForImageClassification(config)
    with torch.no_grad():
        model.vit.embeddings.position_embeddings[0, 1:] = waves(SIDE, WIDTH)
    return model


def label_loss(model: Any, batch: Pictures, step: int) -> StepLoss:
    """The cross-entropy of the names."""
    fast = torch.cpu._is_avx512_bf16_supported()
    with torch.autocast("cpu", torch.bfloat16, enabled=fast):
        logits = model(batch.pixels).logits
    loss = torch.nn.functional.cross_entropy(logits.float(), batch.targets)
    return StepLoss(loss, loss.item())


def main(
    output: Annotated[Path, typer.Option("-o", "--output", help="folder to write")],
    seed: Annotated[int, typer.Option(help="of the pictures and of the first weights")] = 0,
    steps: Annotated[int, typer.Option(help="of 32 pictures each")] = EncoderRecipe.steps,
    tests: Annotated[int, typer.Option(help="held-out pictures to measure on")] = TESTS,
) -> None:
    """Train the encoder of images, and measure it on held-out pictures."""
    recipe, model = EncoderRecipe(seed=seed, steps=steps), fresh_encoder(seed)
    facts = trained(model, PicturesSource(), recipe, label_loss, output)
    save(model, processor(), output)
    chosen, held_out = (looks(output, [f"{kind} {n}" for n in range(tests)]) for kind in KINDS)
    named = [
        replace(each, head=Head(*divmod(int(by.argmax()), HEADS)))
        for each, by in ((FINDS, chosen.hits), (COVERS, chosen.masses))
    ]
    told = [(kind, "right names", share, 0.9) for kind, share in held_out.right.items()] + [
        (each.behaviour, measure, float(values[each.head]), bar)
        for each in named
        for measure, values, bar in ((HIT, held_out.hits, 0.8), (MASS, held_out.masses, None))
    ]
    texts = f"{tests} held-out pictures"
    figures = [Figure(kind, what, round(v, 4), bar, tests, texts) for kind, what, v, bar in told]
    about = ModelCard(
        "shapes-vit", DESCRIPTION, bos=False, heads=tuple(named), figures=tuple(figures)
    )
    tables = {"hits": held_out.hits.round(4).tolist(), "masses": held_out.masses.round(4).tolist()}
    write_card(output, about, {**tables, "chance": held_out.chance, "training": facts})


KINDS = ("choice", "test")


class Looks(NamedTuple):
    """How often names are right; (layers, heads) of the class token: in how many pictures the patch
    to which it attends most lies half or more in the shape's box, and the mass in the box.

    `chance`: both for a patch at random, and for uniform attention.
    """

    right: dict[str, float]
    hits: np.ndarray
    masses: np.ndarray
    chance: tuple[float, float]


def looks(folder: Path, seeds: Sequence[str]) -> Looks:
    """What a saved model answers for pictures as users have them, and where it attends."""
    model = ViTForImageClassification.from_pretrained(folder, attn_implementation="eager").eval()
    reader, each = ViTImageProcessorPil.from_pretrained(folder), list[Looks]()
    for seed in seeds:
        shape, share = lone(seed), share_in_box(lone(seed), SIDE)
        with torch.inference_mode():
            pixels = reader(draw_patterned(seed), return_tensors="pt")["pixel_values"]
            out = model(pixels, output_attentions=True)
        rows = torch.stack(out.attentions)[:, 0, :, 0, 1:].numpy()  # (layers, heads, patches)
        name = model.config.id2label[int(out.logits.argmax())]
        right = [a == b for a, b in zip(name.split(), shape.name.split(), strict=True)]
        half = share >= 0.5
        told = {"colour": right[0], "shape": right[1], "colour and shape": all(right)}
        chance = half.mean(), share.mean()
        each.append(Looks(told, half[rows.argmax(-1)], rows @ share, chance))
    right, hits, masses, chance = zip(*each, strict=True)
    names = {kind: float(np.mean([told[kind] for told in right])) for kind in right[0]}
    means = np.mean(chance, axis=0)
    return Looks(names, np.mean(hits, 0), np.mean(masses, 0), tuple(means.round(4).tolist()))


if __name__ == "__main__":
    typer.run(main)
