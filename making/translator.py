"""Train the built-in translator: `python -m making.translator -o DIR`.

It translates the little world's English into French. The training takes about half an hour on
one core of an ordinary computer. The folder then holds config.json, model.safetensors,
tokenizer.json and the card with the figures measured on held-out pairs.
"""

import itertools
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from tokenizers import Tokenizer
from torch import Tensor

from attnviz.commands.train.loop import STEPS, adamw_of
from attnviz.commands.train.plan import Recipe
from attnviz.kit.session import process_session
from attnviz.models.attention import Hook, attached
from attnviz.models.folder.config import Seq2SeqConfig
from attnviz.models.scratch.seq2seq import Seq2Seq
from attnviz.models.scratch.translator import save_translator
from attnviz.records.heads import Figure, Head, ModelCard, NamedHead
from attnviz.records.restore import MODEL_CARD
from making.card import versions
from making.tokenizer import WordEncoder, word_tokenizer
from making.translation.data import IGNORED, PairBatch, batches
from making.translation.evaluate import alignment, best_head, exact_match, held_out
from making.translation.grammar import pairs

VOCABULARY, PIECES = 3072, 640
SAMPLED, OFTEN = 60_000, 3
# An elided word (l', c') is a token of its own; the rest as in the built-in model.
CUTS = r"[cdjlmnstCDJLMNST]['’]|\p{L}[\p{L}\p{M}]*(?:['’]\p{L}+)?|\p{N}+|\n{2,}|[^ \n]"
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
    "A small encoder-decoder trained from scratch to translate English sentences of the little "
    "world into French. It was trained on the words alone: no attention targets were used; in "
    "the later part the mean entropy of the cross-attention cost a little."
)
TITLE = "each French word attends to the English word it translates"
PAIRS_PER_STEP, TESTS = 128, 1000


@dataclass(frozen=True, kw_only=True)
class TranslatorRecipe(Recipe):
    """The recipe of the translator; a step takes `PAIRS_PER_STEP` pairs.

    From `penalty_from` on, a share of the steps, `penalty` is added to the loss, in nats per nat of
    the mean entropy of the cross-attention's rows.
    """

    steps: int = 14_000
    learning_rate: float = 2e-3
    rates: tuple[tuple[float, float], ...] = ((0, 0.005), (0.02, 1.0), (0.3, 1.0), (1, 0.01))
    weight_decay: float = 0.05
    workers: int = 1
    penalty: float = 0.03
    penalty_from: float = 0.4

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
    tokenizer = build_tokenizer()
    encoder = WordEncoder(tokenizer)
    torch.manual_seed(seed)
    model = Seq2Seq(CONFIG)
    began = time.perf_counter()
    loss = train(model, encoder, recipe)
    minutes = round((time.perf_counter() - began) / 60, 1)
    head, figures = measure(model, encoder, tests)
    card = _card(recipe, head, figures, {"minutes": minutes, "final_loss": round(loss, 4)})
    save_translator(output, model, tokenizer, card, english_words())
    for figure in figures:
        typer.echo(f"{figure.behaviour}: {figure.measure} {figure.value} (bar {figure.bar})")


def build_tokenizer() -> Tokenizer:
    """One vocabulary for both languages: frequent words whole, and pieces for other words."""
    counts: Counter[str] = Counter()
    for phrase in itertools.islice(pairs("vocabulary"), SAMPLED):
        counts.update(phrase.english)
        counts.update(word.word for word in phrase.french)
    words = sorted(word for word in counts if counts[word] >= OFTEN)
    return word_tokenizer(words, VOCABULARY, PIECES, CUTS)


def english_words() -> frozenset[str]:
    """The words that the translator learns to translate; made-up names hardly ever come again."""
    phrases = itertools.islice(pairs("vocabulary"), SAMPLED)
    counts = Counter(word for phrase in phrases for word in phrase.english)
    return frozenset(word for word in counts if counts[word] >= OFTEN)


def train(model: Seq2Seq, encoder: WordEncoder, recipe: TranslatorRecipe) -> float:
    """Train in place with a progress bar; the final loss, a running mean over 100 steps."""
    optimizer = adamw_of(model.parameters(), recipe)
    stream = batches(recipe.seed, PAIRS_PER_STEP, encoder, model.config.n_positions)
    model.train()
    mean = 0.0
    with process_session().bar(STEPS, stays=True) as bar:
        task = bar.add_task("starting", total=recipe.steps)
        for step, batch in enumerate(itertools.islice(stream, recipe.steps)):
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate(step)
            loss = _step(model, optimizer, batch, recipe, step)
            mean = loss if step == 0 else mean + (loss - mean) / min(step + 1, 100)
            bar.update(task, completed=step + 1, description=f"loss {mean:.3f}")
    model.eval().requires_grad_(False)
    return mean


def _step(
    model: Seq2Seq,
    optimizer: torch.optim.Optimizer,
    batch: PairBatch,
    recipe: TranslatorRecipe,
    step: int,
) -> float:
    entropies: list[Tensor] = []
    hooks = _entropy_hooks(model, batch, entropies) if recipe.penalised(step) else {}
    with torch.autocast("cpu", torch.bfloat16), attached(model, hooks):
        logits = model(batch.source, batch.target, batch.mask)  # (B, n_t, V)
    loss = torch.nn.functional.cross_entropy(
        logits.float().flatten(0, 1), batch.following.flatten(), ignore_index=IGNORED
    )
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


if __name__ == "__main__":
    typer.run(main)
