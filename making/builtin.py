"""Train the built-in model: `python -m making.builtin --begin FOLDER -o DIR`.

It goes on from other weights: for the bundled model those of git revision a1aca0a8. The training
takes about 5.2 million tokens, on one core. The folder then holds a checkpoint in Hugging Face's
GPT-2 layout and its card, with the figures measured on held-out texts. An interrupted run resumes
where it stopped. It needs Debian's `wordnet-base`, and the annotated sentences of a checkout.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console

from attnviz.commands.heads.retrieval import Needles, measure_retrieval
from attnviz.commands.train.loop import STEPS, train
from attnviz.commands.train.plan import TrainingProgress
from attnviz.kit.prepare import TextOptions
from attnviz.kit.session import process_session
from attnviz.models.catalog import Source, load
from attnviz.models.folder.config import GPTConfig
from attnviz.models.scratch.native import load_checkpoint, save_checkpoint
from attnviz.models.tokenizer import END
from making import tokenizer as tokenizers
from making.asking import fresh_asking
from making.card import Training, write_card
from making.data import Packing, WorldBatches
from making.evaluate import TEXTS, evaluate, tables
from making.kept import keeper, mixed
from making.loss_limit import chosen_limit
from making.muon import muon_and_adamw
from making.objective import Objective
from making.probe import WorldProbe
from making.readouts import table, write_readouts
from making.recipe import BuiltinRecipe
from making.sentences import DEVELOPMENT, HELD_OUT, SENTENCES
from making.wordnet import FOLDER

CONFIG = GPTConfig(
    vocab_size=tokenizers.VOCABULARY, n_positions=256, n_embd=128, n_layer=5, n_head=4, n_inner=384
)
STATE, LOG = "training.pt", "training.jsonl"
TOKENIZER_CONFIG = {
    # transformers would rebuild a GPT2Tokenizer with other cuts; this class keeps tokenizer.json
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": END,
    "eos_token": END,
    "model_max_length": CONFIG.n_positions,
    "clean_up_tokenization_spaces": False,
    "split_special_tokens": True,
}


def main(
    output: Annotated[Path, typer.Option("-o", "--output", help="folder to write")],
    begin: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="the checkpoint to go on from")
    ],
    seed: Annotated[int, typer.Option(help="of the texts and of the asked matrices")] = 0,
    steps: Annotated[int, typer.Option(help="about 1,700 tokens each")] = BuiltinRecipe.steps,
    checkpoint_every: Annotated[int, typer.Option(help="steps between checkpoints")] = 1000,
    sentences: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="annotated sentences, for the card")
    ] = SENTENCES,
    texts: Annotated[int, typer.Option(help="generated texts of each kind, for the card")] = TEXTS,
    wordnet: Annotated[Path, typer.Option(help="the folder of WordNet's database")] = FOLDER,
) -> None:
    """Train the built-in model; an interrupted run resumes where it stopped."""
    torch.set_num_threads(1)  # as in every worker, so that a run repeats bit for bit
    output.mkdir(parents=True, exist_ok=True)
    recipe = BuiltinRecipe(seed=seed, steps=steps)
    packing = Packing(CONFIG.n_positions, wordnet=wordnet)
    end = _train(output, recipe, checkpoint_every, packing, begin)
    finish(output, Training(recipe, end, begin), sentences, texts, wordnet)


def finish(output: Path, training: Training, sentences: Path, texts: int, wordnet: Path) -> None:
    """Measure a checkpoint, and write its card and its read-outs."""
    probe = WorldProbe.open(output)
    report = evaluate(probe, sentences, HELD_OUT, count=texts, database=wordnet)
    limit = chosen_limit(output, sentences / DEVELOPMENT).limit
    write_card(output, report, training, limit)  # which says that texts begin with BOS
    retrieval = measure_retrieval(load(Source(str(output))), Needles(), TextOptions())
    write_card(output, report, training, limit, retrieval.heads)
    read_out = write_readouts(output)
    (output / STATE).unlink(missing_ok=True)
    Console().print(*tables(report), table(read_out))


def _train(
    output: Path,
    recipe: BuiltinRecipe,
    checkpoint_every: int,
    packing: Packing,
    begin: Path,
) -> TrainingProgress:
    """Train with a progress bar on stderr; the checkpoint goes into the folder."""
    tokenizer = tokenizers.build()
    model = fresh_asking(CONFIG, recipe.seed)
    kept = keeper(load_checkpoint(begin), tokenizer)
    model.load_state_dict(kept.model.state_dict(), strict=False)
    with process_session().bar(STEPS, stays=True) as bar:
        task = bar.add_task("starting", total=recipe.steps)

        def report(now: TrainingProgress) -> None:
            said = f"loss {now.loss:.3f}, {now.tokens / now.seconds:,.0f} tokens/s"
            bar.update(task, completed=now.step, description=said)
            with (output / LOG).open("a", encoding="utf-8") as log:
                log.write(json.dumps(asdict(now)) + "\n")
            if now.step % checkpoint_every == 0:
                save_checkpoint(output, model.finished(), tokenizer)

        source = WorldBatches(tokenizer.to_str(), packing)
        goal = Objective(recipe, kept)
        state = output / STATE
        end = train(model, source, recipe, report, state, loss=goal, optimizers=muon_and_adamw)
    finished = mixed(kept.model, model.finished(), recipe.early, recipe.late)
    save_checkpoint(output, finished, tokenizer)
    settings = json.dumps(TOKENIZER_CONFIG, indent=2) + "\n"
    (output / "tokenizer_config.json").write_text(settings, encoding="utf-8")
    return end


if __name__ == "__main__":
    typer.run(main)
