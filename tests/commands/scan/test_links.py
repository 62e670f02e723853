"""The links of what a scan shows: kept in its first pass, counted anew, or run again."""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attnviz
from attnviz.commands.scan import links as links_module
from attnviz.commands.scan.counting import Counter
from attnviz.commands.scan.executors import HowRun
from attnviz.commands.scan.links import (
    Keeping,
    Linked,
    Shortlist,
    WantedLinks,
    links_of_bytes,
    links_to_bytes,
    side_by_side,
)
from attnviz.commands.scan.plan import ScanPlan, make_plan
from attnviz.commands.scan.run import Watcher, run_scan
from attnviz.corpus.folder import Request, Store
from attnviz.corpus.places import CorpusText
from attnviz.corpus.record import archive, merged, opened_archive
from attnviz.models import linking, products, reducing
from attnviz.models.catalog import Source
from attnviz.models.huggingface.load import wrap_huggingface
from attnviz.models.linking import LEAST_LINK, MOST_LINKS, picked, strongest
from attnviz.models.loaded import LoadedModel
from attnviz.models.products import fast_products
from attnviz.records.heads import Head, every_head
from attnviz.records.metrics import HeadLinks
from tests.architectures import ARCHITECTURES
from tests.commands.scan.test_count import tokenizer
from tests.conftest import slow

TABLES = ("heads", "histograms", "tokens", "examples")


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return attnviz.load_model()._loaded


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = "the red fox saw a blue creature in the old house . Tom ran and Anna sat on it".split()
    draw = random.Random(0)
    lines = (" ".join(draw.choices(words, k=draw.randrange(1, 30))) for _ in range(45))
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    for name in ("heads", "histograms"):
        assert again[name] == tables(kept)[name], name
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


@pytest.mark.parametrize("damage", ["lost", slow("cut"), slow("of another scan")])
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


@pytest.mark.slow
def test_a_table_that_is_lost_later_is_made_again_to_the_same_bytes(
    corpus: Path, model: LoadedModel, kept: Path, tmp_path: Path
) -> None:
    whole = scanned(corpus, tmp_path / "out", model)
    (tmp_path / "out" / "examples.parquet").unlink()
    (tmp_path / "out" / "tokens.parquet").write_bytes(b"")
    assert scanned(corpus, tmp_path / "out", model) == whole == tables(kept)


@settings(max_examples=3)  # each counts up to seven shards
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


@pytest.fixture(scope="module")
def file_of_links(model: LoadedModel) -> tuple[bytes, list[Head]]:
    """The links of two windows, of the second shard of a scan."""
    heads = every_head(model.identity.heads_per_layer)[:2]
    keeper = WantedLinks({0: [0, 1], 1: [1]})
    counter = Counter(model, heads, 12, shard=1, keeper=keeper)
    for i, text in enumerate(("the red fox ran", "a blue creature sat")):
        counter.add(CorpusText("x", i, text))
    counter.finish()
    return links_to_bytes(keeper, "scan", 1), heads


def test_links_come_back_from_a_file_and_those_of_another_are_refused(
    file_of_links: tuple[bytes, list[Head]],
) -> None:
    data, heads = file_of_links
    linked = {pair: links for pair, _, links in read(data, heads, {0: [1], 1: [1]})}
    assert [(links.layer, links.head) for links in linked.values()] == [tuple(heads[1])] * 2
    assert all(len(links.weights) for links in linked.values())
    assert links_of_bytes(data, "scan", 1, heads, {1: [0]}) is None
    for scan, shard in (("another", 1), ("scan", 2)):
        with pytest.raises(ValueError, match="shard"):
            links_of_bytes(data, scan, shard, heads, {0: [1]})


def read(data: bytes, heads: Sequence[Head], wanted: dict[int, list[int]]) -> Linked:
    linked = links_of_bytes(data, "scan", 1, heads, wanted)
    assert linked is not None
    return linked


@pytest.mark.parametrize(
    ("name", "forged"),
    [
        ("counts", lambda counts: counts + 1),
        ("counts", lambda counts: counts * [-1, 1, 1]),
        ("counts", lambda counts: counts[:2]),
        ("largest", lambda largest: largest[:1]),
        ("queries", lambda queries: queries.astype(float)),
        ("keys", lambda keys: keys + np.uint16(1000)),
        ("pairs", lambda pairs: pairs + 7),
        ("weights", lambda weights: weights * np.float32(np.nan)),
    ],
)
def test_a_file_whose_links_do_not_belong_together_is_refused(
    file_of_links: tuple[bytes, list[Head]], name: str, forged: Callable[[Any], Any]
) -> None:
    data, heads = file_of_links
    with opened_archive(data) as (stored, rest):
        arrays = {each: stored[each] for each in stored.files if each != "rest"}
    broken = archive({**arrays, name: forged(arrays[name])}, rest)
    with pytest.raises(ValueError, match=r"."):
        links_of_bytes(broken, "scan", 1, heads, {0: [1]})


def test_what_may_be_kept_is_bounded_by_the_corpus_and_by_memory() -> None:
    assert Keeping.of(shards=1, heads=144, length=512) == Keeping(examples=True, sample=True)
    assert Keeping.of(shards=17, heads=144, length=512) == Keeping(examples=True, sample=False)
    assert Keeping.of(shards=1025, heads=144, length=512) == Keeping()
    assert Keeping.of(shards=1, heads=1024, length=2048) == Keeping()
    assert Keeping.of(shards=1, heads=270, length=512) == Keeping(examples=True, sample=False)
    assert Keeping.of(1, 270, 512, text=60_000) == Keeping(examples=True, sample=True)


@pytest.mark.parametrize("length", [5, 1 << 16, (1 << 16) + 1])
def test_the_links_of_a_head_whose_every_row_is_full_take_what_was_allowed_for(length: int) -> None:
    """Exactly that where places fit into two bytes; beyond, four bytes each are allowed for."""
    rows = np.repeat(np.arange(length), MOST_LINKS)
    full = HeadLinks(0, 0, 0, rows, rows, np.zeros(len(rows), np.float32), 0.0)
    found = sum(array.nbytes for array in side_by_side([full]).values())
    examples, sample = Keeping(examples=True), Keeping(examples=True, sample=True)
    shown, counted = 8 + 20 * 2, 64  # windows: the best, two drawn from each of 20 bins, a sample
    for keeping, windows in ((examples, shown), (sample, shown + counted)):
        allowed = keeping.most_bytes(3, length)
        assert found * windows * 3 <= allowed <= found * windows * 3 * 4 / 3
        if length <= 1 << 16:
            assert allowed == found * windows * 3


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


def test_many_rows_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.random.default_rng(0).uniform(0.1, 1, (20_000, 9)).astype(np.float32)
    rows, keys, kept = strongest(weights)
    assert rows.tolist() == np.repeat(np.arange(20_000), MOST_LINKS).tolist()
    np.testing.assert_array_equal(kept, weights[rows, keys])
    np.testing.assert_array_equal(kept.reshape(-1, 8), -np.sort(-weights, axis=1)[:, :8])
    np.testing.assert_array_equal(np.stack(picked(torch.tensor(weights))), [rows, keys, kept])
    monkeypatch.setattr(linking, "ROWS", 7)
    np.testing.assert_array_equal(np.stack(strongest(weights)), np.stack([rows, keys, kept]))


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
            lambda layer, windows, largest, apart: np.ones(largest.shape, np.bool_),
            taken.append,
        )
        places = [(layer, head) for layer, own in heads.items() for head in own]
        assert len(taken) == 2 * len(places)
        for links in taken:
            place = places.index((links.layer, links.head))
            assert links.largest == pytest.approx(sums.largest[links.window, place], abs=1e-6)


def wrapped() -> Iterator[LoadedModel]:
    """Models that run through transformers, the last by weights that its modules return."""
    for name in ("gpt2", "llama", "bert", "bloom"):
        architecture = next(a for a in ARCHITECTURES if a.name == name)
        yield wrap_huggingface(architecture.model(), tokenizer())


def test_scores_are_products_of_the_first_keys_and_few_shapes_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, keys, shapes = torch.randn(2, 128, 8), torch.randn(2, 5000, 8), set[int]()
    multiply = products._product()
    if multiply is None:
        pytest.skip("this PyTorch has no oneDNN")

    def noted(x: torch.Tensor, weight: torch.Tensor, *more: Any) -> torch.Tensor:
        shapes.add(len(weight))
        return multiply(x, weight, *more)

    monkeypatch.setattr(products, "_product", lambda: noted)
    for n in [1, 127, *range(200, 5001, 100)]:
        found = torch.empty(2, 128, n)
        products.scores_of(rows, keys, out=found)
        torch.testing.assert_close(found, rows @ keys[:, :n].transpose(1, 2), atol=1e-5, rtol=1e-5)
    assert 2 < len(shapes) <= 17


class Held:
    """A model in memory, as far as products see it."""

    def __init__(self) -> None:
        self.model = torch.nn.Linear(8, 4)


def others() -> dict[str, tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]]:
    """Products that oneDNN takes, and others that it would compute otherwise."""
    linear, addmm = torch.nn.functional.linear, torch.addmm
    x, w, b = torch.randn(3, 5, 8), torch.randn(4, 8), torch.randn(4)
    return {
        "plain": (linear, (x, w, b)),
        "without a bias": (linear, (x, w)),
        "turned": (linear, (x, torch.randn(8, 4).t(), b)),
        "a part of a larger matrix": (linear, (x, torch.randn(8, 12)[:, 2:6].t(), b)),
        "a vector": (linear, (x[0, 0], w, b)),
        "nothing": (linear, (x[:0], w, b)),
        "an input with gaps": (linear, (torch.randn(5, 16)[:, ::2], w, b)),
        "float64": (linear, (x.double(), w.double(), b.double())),
        "bfloat16": (linear, (x.bfloat16(), w.bfloat16(), b.bfloat16())),
        "a bias with gaps": (linear, (x, w, torch.randn(8)[::2])),
        "one bias": (linear, (x, w, torch.randn(1).expand(4))),
        "the other way round": (addmm, (b, x[0], w.t())),
        "a scalar": (addmm, (torch.tensor(2.0), x[0], w.t())),
        "a bias of one number": (addmm, (torch.randn(1), x[0], w.t())),
        "a bias for each row": (addmm, (torch.randn(5, 4), x[0], w.t())),
        "sparse": (addmm, (b.expand(5, 4), x[0].to_sparse(), w.t())),
    }


@pytest.mark.parametrize("name", others())
def test_products_of_a_scan_are_those_of_pytorch(name: str) -> None:
    product, arguments = others()[name]
    held = Held()
    before = held.model.weight.data_ptr()
    with torch.inference_mode():
        expected = product(*arguments)
        with fast_products(held):
            found = product(*arguments)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert held.model.weight.data_ptr() == before


def test_a_scan_leaves_the_model_as_it_was(model: LoadedModel) -> None:
    held = model.model
    strides = {name: (p.stride(), p.data_ptr()) for name, p in held.named_parameters()}
    reducing.sum_windows(model, [[5, 6, 7]], {0: (0,)})
    assert {name: (p.stride(), p.data_ptr()) for name, p in held.named_parameters()} == strides
