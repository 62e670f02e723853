"""Neuronpedia's pipeline for a folder of HeadVis, as a plain script: the same work, in its order.

python head_metrics.py FOLDER TEXTS.jsonl OUT [--batch-size 4] [--length 512]

In float32 on one thread. Documents are padded to the longest one of their batch, every matrix is
kept, and each document is one sequence: its first tokens.
"""

import argparse
import heapq
import json
import math
import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

LEAST_INDUCTION = 0.01
LINKS, LEAST_LINK = 8, 0.005
"""The links of a row that are kept, and the least weight of a link."""
INTERVALS, SAMPLES, TOP_SAMPLES, SEED = 5, 3, 10, 0
"""Intervals of the largest weight, the sequences kept in each, and in the last one."""
BINS, TOKENS, DIGITS = 50, 50, 4
DISTANCES = [0, *(1 << i for i in range(13))]
SUMS = ("self", "previous", "entropy", "distance", "squared", "induction")


@dataclass(frozen=True)
class Sample:
    """The links of a sequence in a head; `places`: query * length + key."""

    sequence: int
    largest: float
    places: NDArray[np.int32]
    weights: NDArray[np.float32]
    length: int


class Interval:
    """Sequences whose largest weight is in an interval: the largest ones, or drawn ones."""

    def __init__(self, number: int, seed: int) -> None:
        self._is_top = number == INTERVALS - 1
        self._draw = random.Random(seed + number)
        self._best: list[tuple[float, int, int, Sample]] = []  # a heap
        self._drawn: list[Sample] = []  # a reservoir
        self._seen = 0

    def add(self, sample: Sample) -> None:
        self._seen += 1
        if self._is_top:
            entry = (sample.largest, -sample.sequence, self._seen, sample)
            if len(self._best) < TOP_SAMPLES:
                heapq.heappush(self._best, entry)
            elif entry > self._best[0]:
                heapq.heapreplace(self._best, entry)
        elif len(self._drawn) < SAMPLES:
            self._drawn.append(sample)
        elif (place := self._draw.randrange(self._seen)) < SAMPLES:
            self._drawn[place] = sample

    def samples(self) -> list[Sample]:
        if self._is_top:
            return [entry[-1] for entry in sorted(self._best, key=lambda e: -e[0])]
        return self._drawn


class Sampler:
    """The samples of a head, which are kept once the intervals' boundaries are known."""

    def __init__(self, layer: int, head: int) -> None:
        seed = SEED + 31 * (1000 * layer + 100 * head)
        self.intervals = [Interval(i, seed) for i in range(INTERVALS)]
        self.boundaries: list[float] = []

    def add(self, sample: Sample) -> None:
        self.intervals[bisect_right(self.boundaries, sample.largest)].add(sample)


class Found:
    """All that is found: sums, and the largest weights and samples of every head."""

    def __init__(self, layers: int, heads: int, sequences: int) -> None:
        self.sums = {name: torch.zeros(layers, heads) for name in SUMS}
        self.queries = self.neighbours = self.repeats = 0
        self.samplers = [[Sampler(i, j) for j in range(heads)] for i in range(layers)]
        self.counts = np.zeros((layers, heads, BINS), np.int64)
        self.largest = np.zeros((layers, heads), np.float64)
        self.sequences = 0
        self.tokens: dict[int, list[str]] = {}
        most = max(1, min(2000, max(50, sequences // 10)))
        self.first = np.zeros((most, layers, heads), np.float32)
        """The largest weights of the first sequences, from which the boundaries come."""
        self.is_first = True

    def set_boundaries(self) -> None:
        """The first sequences are seen: from now on, samples are kept."""
        n = len(self.first)
        for layer, samplers in enumerate(self.samplers):
            for head, sampler in enumerate(samplers):
                values = np.sort(self.first[:, layer, head])
                places = (min(round(i * n / INTERVALS), n - 1) for i in range(1, INTERVALS))
                sampler.boundaries = [float(values[place]) for place in places]
        self.is_first = False


@dataclass(frozen=True)
class Batch:
    """Sequences, padded to the longest one; `numbers` has -1 for those too short to count."""

    ids: Tensor  # (B, n)
    lengths: list[int]
    numbers: list[int]


@dataclass(frozen=True)
class Masks:
    """What counts in a batch, and how far queries and keys are apart."""

    queries: Tensor  # (B, n)
    neighbours: Tensor  # (B, n - 1): queries that have a token before them
    pairs: Tensor  # (B, n, n)
    inner: Tensor  # (B, n, n): pairs without the first query and the first key
    apart: Tensor  # (n, n)
    squared: Tensor  # (n, n)


def masks_of(lengths: Tensor, n: int) -> Masks:
    positions = torch.arange(n)
    queries = (positions[None, :] < lengths[:, None]) & (lengths >= 2)[:, None]
    pairs = queries[:, :, None] & queries[:, None, :]
    later = positions != 0
    apart = (positions[:, None] - positions[None, :]).abs().float()
    return Masks(
        queries,
        positions[1:][None, :] < lengths[:, None],
        pairs,
        pairs & later[None, :, None] & later[None, None, :],
        apart,
        apart.square(),
    )


def count(found: Found, model: Any, tokenizer: Any, batch: Batch, mask: Tensor) -> None:
    """Run a batch, and add what is in its matrices."""
    with torch.inference_mode():
        output = model(batch.ids, attention_mask=mask, output_attentions=True, use_cache=False)
    lengths = mask.sum(dim=1)
    masks = masks_of(lengths, batch.ids.size(1))
    counted = [length for length in batch.lengths if length >= 2]
    found.queries += sum(counted)
    found.neighbours += sum(counted) - len(counted)
    for layer, attention in enumerate(output.attentions):
        weights = attention.float()  # (B, heads, n, n)
        add_sums(found.sums, layer, weights, masks)
        inner = weights.masked_fill(~masks.inner[:, None, :, :], 0.0)
        largest = inner.amax(dim=(-2, -1)).numpy()  # (B, heads)
        del inner
        add_largest(found, layer, largest, batch)
        if not found.is_first:
            real = weights.masked_fill(~masks.queries[:, None, None, :], 0.0)
            best, keys = torch.topk(real, k=min(LINKS, real.size(-1)), dim=-1)
            add_samples(found.samplers[layer], best.numpy(), keys.numpy(), largest, batch)
            del real
    add_induction(found, output.attentions, batch)
    for i, (number, length) in enumerate(zip(batch.numbers, batch.lengths, strict=True)):
        if number >= 0:
            ids = batch.ids[i, :length].tolist()
            found.tokens[number] = [tokenizer.decode([token]) for token in ids]


def add_sums(sums: dict[str, Tensor], layer: int, weights: Tensor, masks: Masks) -> None:
    own = weights.diagonal(dim1=-2, dim2=-1).float()
    sums["self"][layer] += own.masked_fill(~masks.queries[:, None, :], 0.0).sum(dim=(0, 2))
    before = weights.diagonal(offset=-1, dim1=-2, dim2=-1).float()
    before = before.masked_fill(~masks.neighbours[:, None, :], 0.0)
    sums["previous"][layer] += before.sum(dim=(0, 2))
    sums["entropy"][layer] += (
        -(weights * torch.log(weights.clamp_min(torch.finfo(torch.float32).tiny)))
        .masked_fill(~masks.pairs[:, None, :, :], 0.0)
        .sum(dim=(0, 2, 3))
    )
    for name, apart in (("distance", masks.apart), ("squared", masks.squared)):
        real = weights.masked_fill(~masks.pairs[:, None, :, :], 0.0)
        sums[name][layer] += real.mul(apart).sum(dim=(0, 2, 3))
        del real


def add_largest(found: Found, layer: int, largest: NDArray[np.float32], batch: Batch) -> None:
    bins = np.clip((largest * BINS).astype(np.int64), 0, BINS - 1)
    for i, number in enumerate(batch.numbers):
        if number < 0:
            continue
        np.add.at(found.counts[layer], (np.arange(bins.shape[1]), bins[i]), 1)
        found.largest[layer] += largest[i].astype(np.float64)
        if found.is_first and number < len(found.first):
            found.first[number, layer, :] = largest[i, :]


def add_samples(
    samplers: Sequence[Sampler],
    best: NDArray[np.float32],
    keys: NDArray[np.int64],
    largest: NDArray[np.float32],
    batch: Batch,
) -> None:
    """The strongest links of every sequence in every head of a layer.

    `best`, `keys`: (B, heads, n, links); `largest`: (B, heads).
    """
    for i, (number, length) in enumerate(zip(batch.numbers, batch.lengths, strict=True)):
        if number < 0:
            continue
        for head, sampler in enumerate(samplers):
            row_weights, row_keys = best[i, head, :length, :], keys[i, head, :length, :]
            kept = (row_weights >= LEAST_LINK) & (row_keys < length)
            if not kept.any():
                continue
            rows = np.arange(length, dtype=np.int64)[:, None]
            to_query = np.broadcast_to(rows, row_weights.shape)[kept]
            to_key = row_keys[kept].astype(np.int64)
            weights = np.round(row_weights[kept].astype(np.float64), DIGITS)
            order = np.lexsort((to_key, to_query))
            places = (to_query[order] * length + to_key[order]).astype(np.int32)
            links = weights[order].astype(np.float32)
            sampler.add(Sample(number, float(largest[i, head]), places, links, length))


def add_induction(found: Found, attentions: Sequence[Tensor], batch: Batch) -> None:
    for i, (number, length) in enumerate(zip(batch.numbers, batch.lengths, strict=True)):
        if number < 0:
            continue
        queries, followers = followed(batch.ids[i, :length].tolist())
        found.repeats += len(set(queries))
        if not queries:
            continue
        rows, columns = torch.tensor(queries), torch.tensor(followers)
        for layer, attention in enumerate(attentions):
            there = attention[i, :, :length, :length][:, rows, columns]
            there = there.masked_fill(there < LEAST_INDUCTION, 0.0)
            found.sums["induction"][layer] += there.sum(dim=-1).float()


def followed(ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """Queries, and the keys that follow an earlier copy of their token."""
    seen: dict[int, list[int]] = defaultdict(list)
    queries, followers = [], []
    for query, token in enumerate(ids):
        for earlier in seen[token]:
            queries.append(query)
            followers.append(earlier + 1)
        seen[token].append(query)
    return queries, followers


# The folder.


def write(out: Path, found: Found, about: dict[str, Any]) -> None:
    layers, heads, _ = found.counts.shape
    (out / "heads").mkdir(parents=True, exist_ok=True)
    (out / "attributions").mkdir(exist_ok=True)
    of_query = {name: found.sums[name] / found.queries for name in SUMS[:-1]}
    scores = {
        "self_attention_score": of_query["self"],
        "prev_token_score": found.sums["previous"] / found.neighbours,
        "pattern_entropy": of_query["entropy"],
        "qk_distance": of_query["distance"],
        "qk_distance_variance": of_query["squared"] - of_query["distance"].square(),
        "induction_score": found.sums["induction"] / found.repeats,
    }
    rows = []
    for layer in range(layers):
        for head in range(heads):
            row = {name: rounded(float(score[layer, head])) for name, score in scores.items()}
            rows.append({"layer": layer, "head": head} | row)
    write_json(out / "scatter_data.json", rows)
    for layer in range(layers):
        for head in range(heads):
            write_json(out / "heads" / f"L{layer}H{head}.json", of_head(found, layer, head))
    write_json(out / "server_config.json", {})
    write_json(out / "attributions" / "manifest.json", {})
    names = [[layer, head] for layer in range(layers) for head in range(heads)]
    sizes = {"heads": names, "n_layers": layers, "n_heads": heads, "n_intervals": INTERVALS}
    write_json(out / "config.json", about | sizes | {"metrics": [*scores]}, indent=2)


def of_head(found: Found, layer: int, head: int) -> dict[str, Any]:
    sequences = [
        {
            "sequence_id": sample.sequence,
            "interval": number,
            "tokens": found.tokens[sample.sequence],
            "attention_indices": [int(place) for place in sample.places.tolist()],
            "attention_values": [float(weight) for weight in sample.weights.tolist()],
            "seq_len": sample.length,
            "max_activation": rounded(sample.largest),
        }
        for number, interval in enumerate(found.samplers[layer][head].intervals, 1)
        for sample in interval.samples()
    ]
    edges = [round(float(edge), DIGITS) for edge in np.linspace(0.0, 1.0, BINS + 1).tolist()]
    counts = [int(n) for n in found.counts[layer, head].tolist()]
    mean = float(found.largest[layer, head] / found.sequences)
    return {
        "sequences": sequences,
        "qk_distance_histogram": distances(sequences),
        "top_query_tokens": strongest(sequences, "query"),
        "top_key_tokens": strongest(sequences, "key"),
        "histogram": {"bin_edges": edges, "bin_values": counts},
        "statistics": {"n_samples": len(sequences), "mean_max_activation": rounded(mean)},
    }


def links(sequence: dict[str, Any]) -> Iterator[tuple[int, int, float]]:
    """Query, key and weight of each link."""
    length = sequence["seq_len"]
    places, weights = sequence["attention_indices"], sequence["attention_values"]
    for place, weight in zip(places, weights, strict=True):
        yield place // length, place % length, float(weight)


def distances(sequences: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    values = [0.0] * (len(DISTANCES) - 1)
    for sequence in sequences:
        for query, key, weight in links(sequence):
            place = bisect_right(DISTANCES, abs(query - key)) - 1
            if 0 <= place < len(values):
                values[place] += weight
    return {"bin_edges": DISTANCES, "bin_values": [round(v, DIGITS) for v in values]}


def strongest(sequences: Sequence[dict[str, Any]], side: str) -> list[dict[str, Any]]:
    masses: dict[str, float] = defaultdict(float)
    for sequence in sequences:
        tokens = sequence["tokens"]
        for query, key, weight in links(sequence):
            masses[tokens[query if side == "query" else key]] += weight
    ranked = sorted(masses.items(), key=lambda item: -item[1])[:TOKENS]
    return [{"token": token, "weight": round(mass, DIGITS)} for token, mass in ranked]


def rounded(value: float) -> float | None:
    return round(value, DIGITS) if math.isfinite(value) else None


def write_json(path: Path, value: object, indent: int | None = None) -> None:
    with path.open("w") as file:
        json.dump(value, file, indent=indent)
        file.write("\n")


def texts(path: str) -> Iterator[str]:
    with open(path, encoding="utf-8") as file:
        for line in file:
            text = json.loads(line)["text"]
            if text.strip():
                yield text


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("texts")
    parser.add_argument("out")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--length", type=int, default=512)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(asked.folder)
    model = AutoModelForCausalLM.from_pretrained(
        asked.folder, attn_implementation="eager", dtype=torch.float32
    ).eval()
    tokenizer.padding_side = "right"
    if tokenizer.pad_token is None:  # the checkpoints of the benchmarks have no ending token either
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
    config = model.config
    sequences = sum(1 for _ in texts(asked.texts))
    found = Found(config.num_hidden_layers, config.num_attention_heads, sequences)
    waiting = texts(asked.texts)
    while some := list(islice(waiting, asked.batch_size)):
        tokens = tokenizer(
            some, return_tensors="pt", padding=True, truncation=True, max_length=asked.length
        )
        lengths = tokens.attention_mask.sum(dim=1).tolist()
        numbers = []
        for length in lengths:
            numbers.append(found.sequences if length >= 2 else -1)
            found.sequences += length >= 2
        batch = Batch(tokens.input_ids, lengths, numbers)
        count(found, model, tokenizer, batch, tokens.attention_mask)
        if found.is_first and found.sequences >= len(found.first):
            found.set_boundaries()
    write(Path(asked.out), found, vars(asked))


if __name__ == "__main__":
    main()
