"""The links of what a scan shows: kept in its first pass, counted anew, or run again."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attnviz
from attnviz.commands.atlas.folder import Request, Store
from attnviz.commands.atlas.record import CorpusText, merged
from attnviz.commands.scan import links as links_module
from attnviz.commands.scan.counting import Counter
from attnviz.commands.scan.executors import HowRun
from attnviz.commands.scan.links import (
    Exactly,
    Keeping,
    Shortlist,
    links_of_bytes,
    links_to_bytes,
)
from attnviz.commands.scan.plan import ScanPlan, make_plan
from attnviz.commands.scan.run import Watcher, run_scan
from attnviz.models import linking, reducing
from attnviz.models.catalog import Source
from attnviz.models.huggingface.load import wrap_huggingface
from attnviz.models.linking import LEAST_LINK, MOST_LINKS, strongest
from attnviz.models.loaded import LoadedModel
from attnviz.models.products import fast_products
from attnviz.records.heads import every_head
from tests.architectures import ARCHITECTURES
from tests.commands.scan.test_count import tokenizer

TABLES = ("heads", "histograms", "tokens", "examples")


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return attnviz.load_model()._loaded


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = "the red fox saw a blue creature in the old house . Tom ran and Anna sat on it".split()
    draw = random.Random(0)
    lines = (" ".join(draw.choices(words, k=draw.randrange(1, 30))) for _ in range(90))
    path = tmp_path_factory.mktemp("corpus") / "texts.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def planned(corpus: Path, out: Path, model: LoadedModel) -> ScanPlan:
    """A scan of many small shards, in this process."""
    request = Request((str(corpus),), split="line", shard=800, length=16)
    return make_plan(Store.at(str(out)), request, Source("builtin"), model)


def scanned(corpus: Path, out: Path, model: LoadedModel) -> dict[str, bytes]:
    run_scan(planned(corpus, out, model), HowRun(), Watcher())
    return tables(out)


def tables(out: Path) -> dict[str, bytes]:
    return {name: (out / f"{name}.parquet").read_bytes() for name in TABLES}


@pytest.fixture(scope="module")
def kept(corpus: Path, model: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a scan that keeps its links."""
    out = tmp_path_factory.mktemp("kept") / "out"
    scanned(corpus, out, model)
    return out


def test_a_small_corpus_runs_no_window_twice(
    corpus: Path, model: LoadedModel, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = list[tuple[int, ...]]()
    run = reducing.sum_windows

    def noted(model: LoadedModel, windows: Sequence[Sequence[int]], *more: Any) -> Any:
        runs.extend(map(tuple, windows))
        return run(model, windows, *more)

    monkeypatch.setattr(reducing, "sum_windows", noted)
    monkeypatch.setattr(linking, "link_windows", None)
    monkeypatch.setattr(Watcher, "expect", lambda *_: runs.clear())  # those that were tried
    assert scanned(corpus, tmp_path / "out", model) == tables(kept)
    assert len(runs) == pq.read_table(kept / "heads.parquet")["windows"][0].as_py()
    assert not (tmp_path / "out" / "links").exists()


@pytest.mark.parametrize("shards", [0, 3], ids=["none are kept", "the sample is not"])
def test_links_that_are_run_again_are_those_that_were_kept(
    shards: int,
    corpus: Path,
    model: LoadedModel,
    kept: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(links_module, "SAMPLED_SHARDS", shards)
    if not shards:
        monkeypatch.setattr(links_module, "KEPT_SHARDS", shards)
    again = scanned(corpus, tmp_path / "out", model)
    assert {again[name] == tables(kept)[name] for name in ("heads", "histograms")} == {True}
    for name in ("tokens", "examples"):
        ours, theirs = (pq.read_table(at / f"{name}.parquet") for at in (tmp_path / "out", kept))
        numbers = ("weights", "mass", "largest", "apart")
        same = [column for column in ours.column_names if column not in numbers]
        assert ours.select(same).equals(theirs.select(same))
        for column in set(numbers) & set(ours.column_names):
            pair = (flat(table[column]) for table in (ours, theirs))
            np.testing.assert_allclose(*pair, atol=1e-4 if column == "mass" else 1e-6)


def flat(column: Any) -> Any:
    whole = column.combine_chunks()
    return (whole.flatten() if hasattr(whole, "flatten") else whole).to_numpy()


@pytest.mark.parametrize("damage", ["lost", "cut", "of another scan"])
def test_links_that_are_lost_are_counted_anew_to_the_same_bytes(
    damage: str,
    corpus: Path,
    model: LoadedModel,
    kept: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = Store.write

    def damaged(store: Store, name: str, data: Any) -> None:
        if name.startswith("links/") and damage == "lost":
            return
        if name.startswith("links/"):
            data = data[: len(data) // 2] if damage == "cut" else other[name]
        write(store, name, data)

    other = dict[str, bytes]()
    if damage == "of another scan":
        monkeypatch.setattr(Store, "write", lambda s, n, d: (other.update({n: d}), write(s, n, d)))
        request = Request((str(corpus),), split="line", shard=800, length=16, seed=1)
        plan = make_plan(Store.at(str(tmp_path / "1")), request, Source("builtin"), model)
        run_scan(plan, HowRun(), Watcher())
    monkeypatch.setattr(Store, "write", damaged)
    assert scanned(corpus, tmp_path / "out", model) == tables(kept)


def test_a_table_that_is_lost_later_is_made_again_to_the_same_bytes(
    corpus: Path, model: LoadedModel, kept: Path, tmp_path: Path
) -> None:
    whole = scanned(corpus, tmp_path / "out", model)
    (tmp_path / "out" / "examples.parquet").unlink()
    (tmp_path / "out" / "tokens.parquet").write_bytes(b"")
    assert scanned(corpus, tmp_path / "out", model) == whole == tables(kept)


@given(st.randoms(use_true_random=False), st.integers(1, 6), st.booleans())
def test_the_windows_that_are_chosen_in_the_end_are_kept_in_whatever_order_shards_come(
    model: LoadedModel, draw: random.Random, shards: int, sample: bool
) -> None:
    heads = every_head(model.identity.heads_per_layer)[:3]
    names = tuple(map(str, heads))
    shortlist = Shortlist(names, Keeping(examples=True, sample=sample))
    kept, records = set[tuple[int, int, int]](), []
    order = [*range(shards), draw.randrange(shards)]  # one is counted twice
    draw.shuffle(order)
    for shard in order:
        shortlist.begin(shard)
        counter = Counter(model, heads, 12, shard=shard, keeper=shortlist)
        for i in range(9):
            words = random.Random(shard * 10 + i).choices(["the", "fox", "a", "red"], k=2 + i)
            counter.add(CorpusText("x", i, " ".join(words)))
        records.append((shard, counter.finish()))
        kept |= {(shard, *pair) for pair, *_ in shortlist.of_shard()}
    total = merged(list(dict(records).values()))
    for place in range(len(heads)):
        chosen = np.concatenate([total.best[place], total.drawn[place].reshape(-1, 3)])
        for _, shard, ordinal in chosen[chosen[:, 1] < shards].tolist():
            assert (shard, ordinal, place) in kept
        sampled = total.sample[total.sample[:, 1] < (shards if sample else 0)]
        for _, shard, ordinal in sampled.tolist():
            assert (shard, ordinal, place) in kept


def test_links_of_another_scan_are_refused() -> None:
    data = links_to_bytes(Exactly({}), "one")
    assert list(links_of_bytes(data, "one", {}) or ()) == []
    assert links_of_bytes(data, "one", {0: [0]}) is None
    with pytest.raises(ValueError, match="scan"):
        links_of_bytes(data, "another", {})


def test_what_may_be_kept_is_bounded_by_the_corpus_and_by_memory() -> None:
    assert Keeping.of(shards=1, heads=144, length=512) == Keeping(examples=True, sample=True)
    assert Keeping.of(shards=17, heads=144, length=512) == Keeping(examples=True, sample=False)
    assert Keeping.of(shards=1025, heads=144, length=512) == Keeping()
    assert Keeping.of(shards=1, heads=1024, length=2048) == Keeping()


@given(st.integers(1, 40), st.integers(1, 60), st.sampled_from([2, 30, 10**6]))
def test_the_strongest_links_are_those_of_each_row_in_order(
    rows: int, keys: int, steps: int
) -> None:
    draw = np.random.default_rng(rows * 100 + keys)
    weights = (draw.integers(0, steps, (rows, keys)) / steps).astype(np.float32)  # many are equal
    weights[draw.random((rows, keys)) < 0.5] **= 4
    expected = []
    for row in range(rows):
        ranked = sorted(range(keys), key=lambda key: (-weights[row, key], key))[:MOST_LINKS]
        expected += [
            (row, key, weights[row, key]) for key in ranked if weights[row, key] >= LEAST_LINK
        ]
    found = strongest(weights)
    assert list(zip(*(part.tolist() for part in found), strict=True)) == expected


def test_a_head_that_is_given_again_is_that_of_the_pattern(model: LoadedModel) -> None:
    for loaded in (model, *wrapped()):
        ids = torch.tensor([[5, 6, 5, 7, 6, 5], [7, 7, 7, 5, 6, 5]])
        taken = list[Any]()
        heads = {
            layer: tuple(range(count))
            for layer, count in enumerate(loaded.identity.heads_per_layer)
            if count
        }
        sums = reducing.sum_windows(
            loaded,
            ids.tolist(),
            heads,
            lambda layer, largest, apart: np.ones(largest.shape, np.bool_),
            taken.append,
        )
        places = [(layer, head) for layer, own in heads.items() for head in own]
        assert len(taken) == 2 * len(places)
        for links in taken:
            place = places.index((links.layer, links.head))
            assert links.largest == pytest.approx(sums.largest[links.window, place], abs=1e-6)


def wrapped() -> Iterator[LoadedModel]:
    """Models that run through transformers: two that give many windows at once, and an encoder."""
    for name in ("gpt2", "llama", "bert"):
        architecture = next(a for a in ARCHITECTURES if a.name == name)
        yield wrap_huggingface(architecture.model(), tokenizer())


def test_products_of_a_scan_are_those_of_pytorch() -> None:
    draw = torch.manual_seed(0)
    assert draw is not None
    joined = torch.nn.Linear(8, 12)
    linear = torch.nn.Linear(8, 4)
    with torch.no_grad():
        linear.weight = torch.nn.Parameter(joined.weight.t()[:, 2:6].t())  # a part of another
    held = type("Held", (), {"model": linear})
    x, half = torch.randn(3, 5, 8), torch.randn(5, 8, dtype=torch.float64)
    with torch.inference_mode():
        expected, conv = linear(x), torch.addmm(linear.bias, x[0], linear.weight.t())
        twice = torch.nn.functional.linear(half, linear.weight.double())
        with fast_products(held):
            np.testing.assert_allclose(linear(x), expected, atol=1e-5)
            np.testing.assert_allclose(
                torch.addmm(linear.bias, x[0], linear.weight.t()), conv, atol=1e-5
            )
            again = torch.nn.functional.linear(half, linear.weight.double())
            assert again.equal(twice)
            assert linear(x[:0]).shape == (0, 5, 4)
