"""Train the model of pictures with shapes: `python -m making.shapes -o DIR`.

The training takes about half an hour on one core; an interrupted one goes on where it was. The
folder then holds the model as transformers saves it, in half precision, and its card with the
figures measured on held-out pictures.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor
from torch.optim import Optimizer
from transformers import LlavaForConditionalGeneration, LlavaProcessor

from attnviz.commands.train.loop import (
    IGNORED,
    BatchSource,
    Loss,
    StepLoss,
    adamw_of,
    train,
)
from attnviz.commands.train.plan import Recipe, TrainingProgress
from attnviz.models.folder.config import MODEL_CARD
from attnviz.records.heads import Figure, Head, ModelCard, NamedHead
from making.card import versions
from making.muon import Muon
from making.shapes import data
from making.shapes.draw import DIRECTIONS, PIXELS, draw, questions, scene
from making.shapes.model import LAYERS, fresh_model, processor

TESTS, CHUNK, LONGEST = 200, 20, 32
KINDS = ("describe", "how many", "colour", "shape", *DIRECTIONS, "nothing there")
MASS = "mass on the shape's box, of the whole row"
STATE, LOG = "training.pt", "training.jsonl"
NAMED = (
    NamedHead("mentions", Head(1, 0), "a shape's name attends to this shape in the picture"),
    NamedHead("answers", Head(LAYERS - 1, 0), "the next word's row attends to the shape it is of"),
)
DESCRIPTION = (
    "A small vision-language model (LLaVA: a CLIP encoder and a Llama) trained from scratch on "
    "drawn pictures of two to five coloured shapes. It tells colours, shapes, how many there are, "
    "what is left of, right of, above and below a shape, and describes a picture. Attention "
    "targets were used: the loss has the mass that two heads put outside of a named shape's box "
    "(-log of the mass inside, weighted 0.05). All other heads were left free."
)


@dataclass(frozen=True, kw_only=True)
class ShapesRecipe(Recipe):
    """`pointing`: the weight of -log of the mass that the named heads put on a shape's box."""

    steps: int = 4_200
    learning_rate: float = 4e-3
    rates: tuple[tuple[float, float], ...] = (
        *((0, 0.01), (0.0229, 1.0), (0.3048, 1.0), (0.7619, 0.01)),
        *((0.78, 0.4), (1, 0.005)),  # it had not learned enough, and went on
    )
    weight_decay: float = 0.05
    workers: int = 1
    pointing: float = 0.05


@dataclass(frozen=True)
class Objective:
    """The loss of the answers' words, and of two heads that do not point."""

    pointing: float

    def __call__(self, model: Any, batch: data.ShapesBatch, step: int) -> StepLoss:
        fast = torch.cpu._is_avx512_bf16_supported()
        with torch.autocast("cpu", torch.bfloat16, enabled=fast):
            hidden, patterns = run(model, batch)
        here = batch.targets != IGNORED
        logits = model.lm_head(hidden[here].float())
        loss = torch.nn.functional.cross_entropy(logits, batch.targets[here])
        total = loss
        for named, masses in pointing(batch, patterns):
            mass = masses[named.head.layer, :, named.head.head]
            total = total - self.pointing * mass.clamp_min(1e-4).log().mean()
        return StepLoss(total, loss.item())


def run(model: Any, batch: data.ShapesBatch) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The last hidden states (B, n, d), and every layer's pattern (B, heads, n, n)."""
    out = model.model(
        input_ids=batch.ids,
        pixel_values=batch.pixels,
        attention_mask=batch.mask(),
        position_ids=batch.positions,
        output_attentions=True,
        use_cache=False,
    )
    return out.last_hidden_state, out.attentions


def pointing(
    batch: data.ShapesBatch, patterns: tuple[Tensor, ...]
) -> Iterator[tuple[NamedHead, Tensor]]:
    """Each named head, and the masses in boxes (layers, rows, heads) in its rows."""
    for named, rows, next_one in zip(NAMED, batch.mentions(), (False, True), strict=True):
        masses = [batch.masses(pattern, rows, next_one=next_one) for pattern in patterns]
        yield named, torch.stack(masses)


def optimizers(model: Any, recipe: Recipe) -> list[Optimizer]:
    """Muon for the matrices of layers, and AdamW for the rest."""
    matrices = [p for name, p in model.named_parameters() if ".layers." in name and p.dim() == 2]
    taken = {id(p) for p in matrices}
    rest = (p for p in model.parameters() if id(p) not in taken)
    return [Muon(matrices, recipe.learning_rate, recipe.weight_decay), adamw_of(rest, recipe)]


def main(
    output: Annotated[Path, typer.Option("-o", "--output", help="folder to write")],
    seed: Annotated[int, typer.Option(help="of the pictures and of the first weights")] = 0,
    steps: Annotated[int, typer.Option(help="of 32 pictures each")] = ShapesRecipe.steps,
    tests: Annotated[int, typer.Option(help="held-out pictures to measure on")] = TESTS,
) -> None:
    """Train the model of pictures with shapes, and measure it on held-out pictures."""
    recipe, model = ShapesRecipe(seed=seed, steps=steps), fresh_model(seed)
    facts = trained(model, data.ShapesSource(), recipe, Objective(recipe.pointing), output)
    save(model, processor(), output)
    figures, masses = measure(output, tests)
    about = ModelCard("shapes", DESCRIPTION, bos=True, heads=NAMED, figures=figures)
    about = replace(about, retrieval=(NAMED[1].head,))
    write_card(output, about, {"masses": masses, "training": facts})


def trained(
    model: Any, source: BatchSource[Any], recipe: Recipe, loss: Loss[Any, Any], output: Path
) -> dict[str, Any]:
    """Train in place on one core, with the state and a log in a folder; how it went."""
    torch.set_num_threads(1)
    output.mkdir(parents=True, exist_ok=True)

    def report(now: TrainingProgress) -> None:
        with (output / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(asdict(now)) + "\n")

    end = train(model, source, recipe, report, output / STATE, loss=loss, optimizers=optimizers)
    run_facts = {"minutes": round(end.seconds / 60, 1), "final_loss": round(end.loss, 4)}
    pictures = {"pictures_per_step": data.BATCH}
    return {**asdict(recipe), **pictures, **run_facts, "versions": versions()}


def write_card(folder: Path, about: ModelCard, beside: dict[str, Any]) -> None:
    """Write the card with what stands beside it, and tell the figures."""
    text = json.dumps(MODEL_CARD.row(about) | beside, indent=2)
    (folder / "card.json").write_text(text + "\n", encoding="utf-8")
    for figure in about.figures:
        typer.echo(f"{figure.behaviour}: {figure.measure} {figure.value} (bar {figure.bar})")


def save(model: Any, reader: Any, folder: Path) -> None:
    """In half precision, to be loaded in full."""
    model.half().save_pretrained(folder)
    reader.save_pretrained(folder)
    path = folder / "config.json"
    config = {**json.loads(path.read_text(encoding="utf-8")), "dtype": "float32"}
    path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (folder / "model.safetensors").chmod(0o644)


def measure(folder: Path, count: int) -> tuple[tuple[Figure, ...], dict[str, Any]]:
    """How often every kind of answer is right, and the mass in the box: of named heads, of all."""
    model = LlavaForConditionalGeneration.from_pretrained(folder, attn_implementation="eager")
    model, reader = model.eval(), LlavaProcessor.from_pretrained(folder)
    texts, seeds = f"{count} held-out pictures", [f"test {n}" for n in range(count)]
    right: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    inside: dict[NamedHead, list[Tensor]] = {named: [] for named in NAMED}
    for chunk in (seeds[n : n + CHUNK] for n in range(0, count, CHUNK)):
        for kind, is_right in answered(model, reader, chunk):
            right[kind].append(is_right)
        batch = data.batch(chunk, PIXELS, every=True)
        with torch.inference_mode():
            for named, masses in pointing(batch, run(model, batch)[1]):
                inside[named].append(masses)
    figures = [
        Figure(kind, "exact answers", round(sum(each) / len(each), 4), 0.95, len(each), texts)
        for kind, each in right.items()
        if each
    ]
    table = dict[str, Any]()
    for named, of_chunks in inside.items():
        rows = torch.cat(of_chunks, dim=1)  # (layers, rows, heads)
        means = [[round(mass, 4) for mass in layer] for layer in rows.mean(1).tolist()]
        mass = means[named.head.layer][named.head.head]
        figures.append(Figure(named.behaviour, MASS, mass, 0.7, rows.size(1), texts))
        table[named.behaviour] = means
    return tuple(figures), table


def answered(model: Any, reader: LlavaProcessor, seeds: list[str]) -> Iterator[tuple[str, bool]]:
    """Every question's kind, and whether the model's own answer is right, word by word."""
    for seed in seeds:
        asked = questions(scene(seed))
        texts, pictures = [f"<image> {q.text}" for q in asked], [draw(seed)] * len(asked)
        given = reader(text=texts, images=pictures, padding=True, return_tensors="pt")
        written = model.generate(**given, max_new_tokens=LONGEST, do_sample=False)
        new = written[:, given["input_ids"].shape[1] :]
        answers = reader.batch_decode(new, skip_special_tokens=True)
        yield from ((q.kind, q.answer == answer) for q, answer in zip(asked, answers, strict=True))


if __name__ == "__main__":
    typer.run(main)
