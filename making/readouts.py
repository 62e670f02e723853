"""Read out what a checkpoint's vectors carry: `python -m making.readouts CHECKPOINT`.

Which colour, which texture, which referent, which sense? For each question, a linear map is trained
on the model's vectors at words of generated texts: on the stream before a head, on what the head
adds, and on the sum. It is measured on held-out texts, beside chance. The maps are written into the
checkpoint's folder, and the figures on its card.
"""

import itertools
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import torch
import typer
from rich.console import Console
from rich.table import Table
from safetensors.numpy import save_file
from torch import Tensor

from attnviz.models.attention import kept
from attnviz.models.engine import chance_cosine
from attnviz.models.folder.config import CARD, MODEL_CARD, read_card
from attnviz.models.folder.readouts import READOUTS, map_name
from attnviz.records.heads import NONE, Head, ReadHead, ReadOut
from attnviz.records.meaning import MOMENTS, Maps, Moment
from making.probe import WorldProbe
from making.world.lexicon import article, groups, reserved
from making.world.senses import senses, topics
from making.world.text import Text
from making.world.texts import texts

COLOURS = tuple("blue red green yellow white black brown grey purple pink".split())
TEXTURES = tuple("fluffy furry soft hard smooth rough sticky wet dry dusty".split())
NAMES: Mapping[str, tuple[str, ...]] = {
    "female": tuple("Anna Mary Alice Emma Lucy Sarah Jane Kate Ruth Helen".split()),
    "male": tuple("Tom Paul John James Peter David Luke Adam Ben Sam".split()),
}
LEARNED, CHOSEN, MEASURED = 6_000, 300, 600
"""Words to train the maps on, to choose the heads by, and to measure them on."""
MOST_HEADS = 5
"""The most heads to keep maps of, beside the one that the card names for the behaviour."""
CARRIES = 0.3
"""The least accuracy of what a head adds."""
DECAY, STEPS = 1e-3, 60

Vectors: TypeAlias = dict[tuple[Head, Moment], Tensor]
"""Vectors at some words (words, d), by head and moment."""


@dataclass(frozen=True)
class Case:
    """A text, the word whose vector is read, and the class that the text gives it."""

    text: Text
    word: int
    says: str


def adjective_cases(own: Sequence[str], others: Sequence[str], held_out: bool) -> Iterator[Case]:
    """Nouns with one of these adjectives, or as often as with each of them, with none."""
    seed = f"read out {own[0]}"
    rng = random.Random(f"{seed} {held_out}")
    described = texts(seed, "described", held_out=held_out)
    said = silent = 0
    for text in _alternating(described, texts(seed, "adjectives", held_out=held_out)):
        dressed, found = _dressed(text, own, others, rng, held_out)
        for word, says in found:
            if says:
                said += 1
                yield Case(dressed, word, says)
            elif silent * len(own) < said:
                silent += 1
                yield Case(dressed, word, NONE)


def _alternating(*streams: Iterator[Text]) -> Iterator[Text]:
    return itertools.chain.from_iterable(zip(*streams, strict=True))


def _dressed(
    text: Text, own: Sequence[str], others: Sequence[str], rng: random.Random, held_out: bool
) -> tuple[Text, list[tuple[int, str]]]:
    """A text in which nouns have such adjectives; each noun, and its one among `own`, or ""."""
    words, found = list(text.words), []
    for link in text.links:
        if link.behaviour != "adjectives":
            continue
        slots = rng.sample(sorted(link.keys), len(link.keys))
        says = ""
        for kind in (own, others):
            noun = text.words[link.query]
            fitting = [word for word in kind if reserved(word, noun) == held_out]
            if slots and fitting and rng.random() < 0.8:
                drawn = rng.choice(fitting)
                _put(words, slots.pop(), drawn)
                says = drawn if kind is own else says
        if not any(words[at].lower() in own for at in slots):  # another one by accident
            found.append((link.query, says))
    return replace(text, words=tuple(words)), found


def _put(words: list[str], at: int, new: str) -> None:
    """Replace an adjective, with its capital, and fit the article before it."""
    words[at] = new.capitalize() if words[at][0].isupper() else new
    if at and words[at - 1].lower() in ("a", "an"):
        fitting = article(new)
        words[at - 1] = fitting.capitalize() if words[at - 1][0].isupper() else fitting


def referent_cases(held_out: bool) -> Iterator[Case]:
    """Pronouns for somebody with one of `NAMES`, which the others in the text have, too."""
    seed = "read out a referent"
    rng = random.Random(f"{seed} {held_out}")
    kinds = {name: kind for kind in NAMES for name in groups("names")[kind]}
    pairs = texts(seed, "pairs", held_out=held_out)
    for text in _alternating(texts(seed, "pronouns", held_out=held_out), pairs):
        free = {kind: rng.sample(names, len(names)) for kind, names in NAMES.items()}
        named = [name for name in dict.fromkeys(text.words) if name in kinds]
        new = {name: free[kinds[name]].pop() for name in named if free[kinds[name]]}
        renamed = replace(text, words=tuple(new.get(word, word) for word in text.words))
        for link in text.links:
            meant = [new[text.words[key]] for key in link.keys if text.words[key] in new]
            asks = link.behaviour.startswith("pronouns") and text.words[link.query] != "who"
            if asks and len(meant) == 1:
                yield Case(renamed, link.query, meant[0])


def sense_cases(held_out: bool) -> Iterator[Case]:
    """Ambiguous words with clues that tell one of their senses."""
    for text in texts("read out a sense", "senses", held_out=held_out):
        for link in text.links:
            among = senses().get(text.words[link.query].lower(), ())
            clues = {text.words[key].lower() for key in link.keys}
            meant = [s for s in among if clues <= set(map(str.lower, topics()[s][1]))]
            if link.behaviour == "senses" and len(among) > 1 and len(meant) == 1:
                yield Case(text, link.query, meant[0])


@dataclass(frozen=True)
class Question:
    """What is read out, at the queries of a behaviour; `cases`: of texts held out, or not."""

    name: str
    behaviour: str
    cases: Callable[[bool], Iterator[Case]]


QUESTIONS = (
    Question("colour", "adjectives", lambda held: adjective_cases(COLOURS, TEXTURES, held)),
    Question("texture", "adjectives", lambda held: adjective_cases(TEXTURES, COLOURS, held)),
    Question("referent", "pronouns", referent_cases),
    Question("sense", "senses", sense_cases),
)


# Text ─► vectors ─► maps ─► accuracies.


def measure_readouts(probe: WorldProbe, named: Mapping[str, Head]) -> tuple[list[ReadOut], Maps]:
    """The read-outs of a model, and their maps; `named`: the head of each behaviour."""
    maps: dict[tuple[str, Head], np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = {}
    readouts = []
    for question in QUESTIONS:
        learned, chosen, measured = _examples(probe, question)
        heads = _carriers(learned, chosen, named.get(question.behaviour))
        around = []
        for head in heads:
            fitted = {moment: learned.fit(head, moment) for moment in MOMENTS}
            shares = {m: measured.right(head, m, each) for m, each in fitted.items()}
            around.append(ReadHead(head, **shares))
            maps[question.name, head] = torch.stack([*fitted.values()]).half().float().numpy()
        token = Head(0, 0), MOMENTS[0]  # before the first layer
        readouts.append(
            ReadOut(
                name=question.name,
                behaviour=question.behaviour,
                classes=learned.classes,
                n=len(measured.cases),
                chance=learned.chance(measured),
                token=measured.right(*token, learned.fit(*token)),
                heads=tuple(around),
            )
        )
    return readouts, maps


@dataclass(frozen=True)
class Examples:
    """Words with their vectors; `says`: the class of each as a number, (words)."""

    cases: Sequence[Case]
    classes: tuple[str, ...]
    says: Tensor
    vectors: Vectors

    def fit(self, head: Head, moment: Moment) -> Tensor:
        """The map from these vectors to the classes (d + 1, classes): a logistic regression."""
        return _fitted(self.vectors[head, moment], self.says, len(self.classes))

    def right(self, head: Head, moment: Moment, weight: Tensor) -> float:
        """How often the likeliest class of a map is that of the text."""
        read = self.vectors[head, moment] @ weight[:-1] + weight[-1]
        return round(float((read.argmax(-1) == self.says).double().mean()), 4)

    def chance(self, others: "Examples") -> float:
        """How often it would be right for others to guess by the word alone: its commonest class.

        At least as often as with a die that has a side for each class.
        """
        by_word: dict[str, Counter[str]] = defaultdict(Counter)
        for case in self.cases:
            by_word[_word(case)][case.says] += 1
        guessed = [_most(by_word[_word(case)]) == case.says for case in others.cases]
        return round(max(1 / len(self.classes), sum(guessed) / len(guessed)), 4)


def _most(counts: Counter[str]) -> str:
    return max(counts, key=counts.__getitem__, default="")


def _word(case: Case) -> str:
    return case.text.words[case.word].lower()


def _examples(probe: WorldProbe, question: Question) -> list[Examples]:
    """Words to train on, to choose by, and to measure on; the last two of held-out texts."""
    short = {
        held: (c for c in question.cases(held) if len(probe.encoder.text(c.text)[0]) <= 256)
        for held in (False, True)
    }
    learned = list(itertools.islice(short[False], LEARNED))
    classes = tuple(sorted({case.says for case in learned}))
    parts = [learned]
    known = (case for case in short[True] if case.says in classes)
    parts += [list(itertools.islice(known, count)) for count in (CHOSEN, MEASURED)]
    return [
        Examples(
            cases,
            classes,
            torch.tensor([classes.index(case.says) for case in cases]),
            _vectors(probe, cases),
        )
        for cases in parts
    ]


def _carriers(learned: Examples, chosen: Examples, named: Head | None) -> list[Head]:
    """The heads whose additions carry the class: those read best, and the one that is named."""
    shares = {
        head: chosen.right(head, moment, learned.fit(head, moment))
        for head, moment in learned.vectors
        if moment == "added"
    }
    best = sorted((head for head in shares if shares[head] >= CARRIES), key=lambda h: -shares[h])
    kept_heads = [*best[:MOST_HEADS], *([] if named is None else [named])]
    return sorted(set(kept_heads))


def _vectors(probe: WorldProbe, cases: Sequence[Case]) -> Vectors:
    """The vectors at the last token of each word, around every head."""
    rows = [_at_word(probe, case) for case in cases]
    return {key: torch.stack([row[key] for row in rows]) for key in rows[0]}


def _at_word(probe: WorldProbe, case: Case) -> dict[tuple[Head, Moment], Tensor]:
    """The vectors (d) of one word."""
    ids, positions = probe.encoder.text(case.text)
    at, model = positions[case.word][-1], probe.model
    layers = range(len(model.h))
    names = [f"h.{layer}.{point}" for layer in layers for point in ("resid_pre", "attn.z")]
    found: dict[tuple[Head, Moment], Tensor] = {}
    with torch.inference_mode(), kept(model, names, lambda x: x[0, ..., at, :]) as seen:
        model.hidden(torch.tensor([ids[: at + 1]]))
        for layer in layers:
            before, z = seen[f"h.{layer}.resid_pre"], seen[f"h.{layer}.attn.z"]  # (d), (h, d_v)
            block: Any = model.h[layer]
            w_o = block.attn.w_o.weight.unflatten(0, z.shape)  # (h, d_v, d)
            for head, added in enumerate((z[:, None] @ w_o).squeeze(1)):  # (h, d)
                of_head = zip(MOMENTS, (before, added, before + added), strict=True)
                found |= {(Head(layer, head), moment): vector for moment, vector in of_head}
    return found


def _fitted(vectors: Tensor, says: Tensor, classes: int) -> Tensor:
    """Multinomial logistic regression on standardised vectors, with weight decay."""
    mean, scale = vectors.mean(0), vectors.std(0).clamp_min(1e-6)
    x = (vectors - mean) / scale  # (words, d)
    weight = torch.zeros(x.size(1), classes, requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    search = torch.optim.LBFGS([weight, bias], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        search.zero_grad()
        cost = torch.nn.functional.cross_entropy(x @ weight + bias, says)
        cost = cost + DECAY * weight.square().sum()
        cost.backward()  # type: ignore[no-untyped-call]
        return cost

    search.step(loss)  # type: ignore[no-untyped-call]
    unscaled = weight.detach() / scale[:, None]
    return torch.cat((unscaled, (bias.detach() - mean @ unscaled)[None]))


# What is written.


def write_readouts(folder: Path) -> list[ReadOut]:
    """Make the read-outs of a checkpoint; write the maps beside it, and the figures on its card."""
    probe = WorldProbe.open(folder)
    card = read_card(folder, folder.name, probe.model.config.heads_per_layer)
    named = {each.behaviour: each.head for each in reversed(card.heads)}
    readouts, maps = measure_readouts(probe, named)
    tensors = {map_name(name, head): each.astype(np.float16) for (name, head), each in maps.items()}
    save_file(tensors, folder / READOUTS)
    chance = round(chance_cosine(probe.model.wte.weight), 4)
    written = json.loads((folder / CARD).read_text(encoding="utf-8"))
    written |= MODEL_CARD.row(replace(card, readouts=tuple(readouts), chance_cosine=chance))
    text = json.dumps(written, indent=2, ensure_ascii=False)
    (folder / CARD).write_text(text + "\n", encoding="utf-8")
    return readouts


def table(readouts: Sequence[ReadOut]) -> Table:
    """The accuracies, a row for each head."""
    columns = ("", "head", "before", "added", "after", "chance", "token alone", "held-out words")
    shown = Table(*columns, title="how often read-outs are right")
    for each in readouts:
        for head in each.heads:
            shares = (head.before, head.added, head.after, each.chance, each.token)
            shown.add_row(each.name, str(head.head), *(f"{s:.3f}" for s in shares), str(each.n))
    return shown


def main(checkpoint: Annotated[Path, typer.Argument(help="a model folder")]) -> None:
    """Train the read-outs of a checkpoint, and write them and their figures into its folder."""
    torch.set_num_threads(1)
    Console().print(table(write_readouts(checkpoint)))


if __name__ == "__main__":
    typer.run(main)
