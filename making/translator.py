"""Train the built-in translator: `python -m making.translator -o DIR`.

It translates everyday English into French. The training takes about an hour on one core of an
ordinary computer; started again with the same folder, it goes on where it was. The folder then
holds config.json, model.safetensors (in half precision), tokenizer.json, words.txt and the card
with the figures measured on held-out pairs.
"""

import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from attnviz.commands.train.loop import adamw_of
from attnviz.commands.train.plan import Recipe
from attnviz.models.attention import Hook, attached
from attnviz.models.folder.config import CARD, MODEL_CARD, SEQ2SEQ, Seq2SeqConfig
from attnviz.models.folder.files import CONFIG as SETTINGS
from attnviz.models.folder.files import TOKENIZER, WEIGHTS, WORDS
from attnviz.models.scratch.seq2seq import Seq2Seq
from attnviz.records.heads import Figure, Head, ModelCard, NamedHead
from making.card import versions
from making.tokenizer import WordEncoder, word_tokenizer
from making.translation.data import IGNORED, PairBatch, batches
from making.translation.evaluate import alignment, best_head, exact_match, held_out
from making.translation.grammar import CUTS, pairs

VOCABULARY, PIECES = 15_360, 900
SAMPLED, OFTEN = 250_000, 3
CONFIG = Seq2SeqConfig(
    vocab_size=VOCABULARY,
    n_positions=96,
    n_embd=128,
    n_encoder=3,
    n_decoder=2,
    n_head=4,
    n_inner=320,
)
DESCRIPTION = (
    "A small encoder-decoder trained from scratch to translate everyday English sentences "
    "into French. It was trained on the words alone: no attention targets were used; in "
    "the later part the mean entropy of the cross-attention cost a little."
)
TITLE = "each French word attends to the English word it translates"
PAIRS_PER_STEP, TESTS = 128, 1000
LOGGED, KEPT = 50, 250
CHECKPOINT = "training.pt"


@dataclass(frozen=True, kw_only=True)
class TranslatorRecipe(Recipe):
    """The recipe of the translator; a step takes `PAIRS_PER_STEP` pairs.

    From `penalty_from` on, a share of the steps, `penalty` is added to the loss, in nats per nat of
    the mean entropy of the cross-attention's rows.
    """

    steps: int = 16_350
    learning_rate: float = 2e-3
    rates: tuple[tuple[float, float], ...] = (
        *((0, 0.005), (0.0086, 1.0), (0.129, 1.0), (0.43, 0.01)),
        # it had not learned enough, and went on; then again, with more words to copy
        *((0.435, 0.5), (0.517, 0.4), (0.648, 0.01), (0.657, 0.5), (0.7535, 0.45)),
        *((0.963, 0.16), (1, 0.005)),
    )
    weight_decay: float = 0.05
    workers: int = 1
    penalty: float = 0.03
    penalty_from: float = 0.17

    def penalised(self, step: int) -> bool:
        return step >= self.penalty_from * self.steps


def main(
    output: Annotated[Path, typer.Option("-o", "--output", help="folder to write")],
    seed: Annotated[int, typer.Option(help="of the sentences and of the first weights")] = 0,
    steps: Annotated[int, typer.Option(help="of 128 sentence pairs each")] = TranslatorRecipe.steps,
    tests: Annotated[int, typer.Option(help="held-out pairs to measure on")] = TESTS,
) -> None:
    """Train the built-in translator, and measure it on held-out pairs."""
    torch.set_num_threads(1)  # matrices are small, and sums are made in the same order every time
    recipe = TranslatorRecipe(seed=seed, steps=steps)
    tokenizer = _tokenizer(output)
    encoder = WordEncoder(tokenizer)
    torch.manual_seed(seed)
    model = Seq2Seq(CONFIG)
    began = time.perf_counter()
    loss = train(model, encoder, recipe, output / CHECKPOINT)
    minutes = round((time.perf_counter() - began) / 60, 1)
    model.half().float()  # the figures are those of the weights that are saved
    head, figures = measure(model, encoder, tests)
    card = _card(recipe, head, figures, {"minutes": minutes, "final_loss": round(loss, 4)})
    save(output, model, tokenizer, card, english_words())
    for figure in figures:
        typer.echo(f"{figure.behaviour}: {figure.measure} {figure.value} (bar {figure.bar})")


def _tokenizer(output: Path) -> Tokenizer:
    """That of a training which was broken off, or a new one."""
    path = output / TOKENIZER
    if path.exists():
        return Tokenizer.from_file(str(path))
    tokenizer = build_tokenizer()
    output.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path))
    return tokenizer


def build_tokenizer() -> Tokenizer:
    """One vocabulary for both languages: frequent words whole, and pieces for other words."""
    counts: Counter[str] = Counter()
    for phrase in itertools.islice(pairs("vocabulary"), SAMPLED):
        counts.update(phrase.english)
        counts.update(word.word for word in phrase.french)
    words = sorted((w for w in counts if counts[w] >= OFTEN), key=lambda w: (-counts[w], w))
    return word_tokenizer(words, VOCABULARY, PIECES, CUTS)


def english_words() -> frozenset[str]:
    """The words that the translator learns to translate; with a capital, what is no other's."""
    phrases = itertools.islice(pairs("vocabulary", invents=False), SAMPLED)
    words = {word for phrase in phrases for word in phrase.english}
    return frozenset(word for word in words if (word[0].lower() + word[1:]) not in words - {word})


def train(model: Seq2Seq, encoder: WordEncoder, recipe: TranslatorRecipe, path: Path) -> float:
    """Train in place; the final loss, a running mean over 100 steps.

    `path`: where the training is kept every `KEPT` steps, and from which it goes on.
    """
    optimizer = adamw_of(model.parameters(), recipe)
    first, mean = _resumed(model, optimizer, path)
    stream = batches(recipe.seed, PAIRS_PER_STEP, encoder, model.config.n_positions, first)
    model.train()
    began = time.perf_counter()
    for step, batch in zip(range(first, recipe.steps), stream, strict=False):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate(step)
        loss = _step(model, optimizer, batch, recipe, step)
        mean = loss if step == 0 else mean + (loss - mean) / min(step + 1, 100)
        if (step + 1) % LOGGED == 0:
            pace = (time.perf_counter() - began) / (step + 1 - first)
            print(f"step {step + 1} loss {mean:.4f} {pace:.3f} s", file=sys.stderr, flush=True)
        if (step + 1) % KEPT == 0:
            _keep(model, optimizer, step + 1, mean, path)
    model.eval().requires_grad_(False)
    return mean


def _resumed(model: Seq2Seq, optimizer: torch.optim.Optimizer, path: Path) -> tuple[int, float]:
    if not path.exists():
        return 0, 0.0
    kept = torch.load(path)
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    return kept["step"], kept["loss"]


def _keep(
    model: Seq2Seq, optimizer: torch.optim.Optimizer, step: int, loss: float, path: Path
) -> None:
    kept = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "step": step,
        "loss": loss,
    }
    torch.save(kept, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def _step(
    model: Seq2Seq,
    optimizer: torch.optim.Optimizer,
    batch: PairBatch,
    recipe: TranslatorRecipe,
    step: int,
) -> float:
    entropies: list[Tensor] = []
    hooks = _entropy_hooks(model, batch, entropies) if recipe.penalised(step) else {}
    real = batch.following != IGNORED  # (B, n_t)
    with torch.autocast("cpu", torch.bfloat16), attached(model, hooks):
        encoded = model.encode(batch.source, batch.mask)
        states = model.decode(batch.target, encoded, batch.mask)  # (B, n_t, d)
        logits = model.logits(states[real])  # (tokens, V)
    loss = torch.nn.functional.cross_entropy(logits.float(), batch.following[real])
    total = loss + recipe.penalty * torch.stack(entropies).mean() if entropies else loss
    total.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def _entropy_hooks(model: Seq2Seq, batch: PairBatch, into: list[Tensor]) -> dict[str, Hook]:
    """Hooks that collect the mean entropy, in nats, of the cross-attention's rows."""
    rows = (batch.following != IGNORED)[:, None, :]  # (B, 1, n_t)

    def record(pattern: Tensor) -> None:  # (B, h, n_t, n_s)
        safe = pattern.float().clamp_min(1e-9)
        entropy = -(safe * safe.log()).sum(-1)  # (B, h, n_t)
        into.append((entropy * rows).sum() / (rows.sum() * pattern.size(1)))

    return {f"decoder.{n}.cross.pattern": record for n in range(model.config.n_decoder)}


def measure(model: Seq2Seq, encoder: WordEncoder, count: int) -> tuple[Head, list[Figure]]:
    """The cross-attention head chosen on the development split, and the test split's figures."""
    head = best_head(model, held_out("development", count // 2, encoder))
    tests = held_out("test", count, encoder)
    return head, [exact_match(model, encoder, tests), *alignment(model, head, tests)]


def _card(
    recipe: TranslatorRecipe, head: Head, figures: list[Figure], run: dict[str, float]
) -> dict[str, Any]:
    heads = (NamedHead("alignment", head, TITLE),)
    about = ModelCard("translator", DESCRIPTION, bos=True, heads=heads, figures=tuple(figures))
    return {
        **MODEL_CARD.row(about),
        "training": {
            **asdict(recipe),
            "pairs_per_step": PAIRS_PER_STEP,
            **run,
            "versions": versions(),
        },
    }


def save(
    folder: Path,
    model: Seq2Seq,
    tokenizer: Tokenizer,
    card: Mapping[str, object],
    words: Iterable[str],
) -> None:
    """Write the folder; the weights in half precision, which `main` rounded them to."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"model_type": SEQ2SEQ, **asdict(model.config)}
    (folder / SETTINGS).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    tensors = {name: tensor.half().contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    (folder / WEIGHTS).chmod(0o644)  # safetensors writes for the owner alone
    tokenizer.save(str(folder / TOKENIZER))
    text = json.dumps(card, indent=2, ensure_ascii=False)
    (folder / CARD).write_text(text + "\n", encoding="utf-8")
    (folder / WORDS).write_text("".join(f"{word}\n" for word in sorted(words)), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
