"""What a scan counts is what whole matrices in float64 say, in every architecture."""

import json
import random
from collections.abc import Mapping, Sequence
from math import isnan, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers

import attnviz
from attnviz.commands.scan.counting import Counter, batches
from attnviz.commands.scan.links import run_again
from attnviz.commands.scan.worker import PairMass
from attnviz.corpus.documents import Window, WindowCutter
from attnviz.corpus.places import CorpusText, Skipped
from attnviz.corpus.record import (
    NONE,
    SCORES,
    TOP,
    Origin,
    Record,
    bin_of,
    empty_record,
    estimate,
    least,
    means_over_tokens,
    merged,
    moments,
    record_of_bytes,
    record_to_bytes,
    skipped_of_bytes,
)
from attnviz.errors import ExitStatus
from attnviz.models.huggingface.load import wrap_huggingface
from attnviz.models.loaded import LoadedModel
from attnviz.models.reducing import _entropies
from attnviz.records.heads import Head, every_head
from attnviz.records.metrics import EDGES, METRICS, HeadLinks
from tests.architectures import ARCHITECTURES, Architecture
from tests.commands.scan.oracle import (
    Matrix,
    apart,
    histogram,
    largest,
    metrics_of,
    over_tokens,
    strongest,
)
from tests.conftest import Run, some
from tests.reading import head_of, rows_of

READERS = [a for a in ARCHITECTURES if a.kind == "self" and not a.image]
LENGTH = 14


def tokenizer() -> transformers.PreTrainedTokenizerFast:
    """A word is a token: w3 to w60."""
    made = Tokenizer(models.WordLevel({f"w{i}": i for i in range(61)}, unk_token="w0"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made)


def documents(sizes: Sequence[int]) -> list[CorpusText]:
    """Documents of so many words, few of them different, so that there are copies."""
    draw = random.Random(7)
    texts = (" ".join(f"w{draw.randrange(3, 12)}" for _ in range(size)) for size in sizes)
    return [CorpusText("texts", i, text) for i, text in enumerate(texts)]


def counted(model: LoadedModel, texts: Sequence[CorpusText | Skipped]) -> Record:
    counter = Counter(model, every_head(model.identity.heads_per_layer), LENGTH)
    for text in texts:
        counter.add(text)
    return counter.finish()


def matrices(model: Any, ids: Sequence[int]) -> dict[Head, Matrix]:
    """Every head's matrix by transformers' eager attention."""
    with torch.inference_mode():
        found = model(torch.tensor([list(ids)]), output_attentions=True).attentions
    layers = [layer[0] for layer in found if layer is not None]
    of = enumerate(layers)
    return {Head(i, h): w.double().numpy() for i, layer in of for h, w in enumerate(layer)}


@pytest.mark.parametrize("architecture", some(READERS), ids=lambda a: a.name)
def test_every_count_is_that_of_whole_matrices(architecture: Architecture) -> None:
    theirs = architecture.model("eager")
    model = wrap_huggingface(architecture.model(), tokenizer())
    texts = documents((LENGTH, 5, 2 * LENGTH + 3, LENGTH, 1))
    record = counted(model, texts)
    cut = WindowCutter(model.tokenizer, LENGTH, 0)
    windows = [[w.ids for w in cut.of(text)] for text in texts]
    assert record.documents == len(texts)
    assert record.windows == sum(map(len, windows))
    assert record.tokens == sum(len(ids) for own in windows for ids in own)
    found = [[matrices(theirs, ids) for ids in own] for own in windows]
    # a hybrid model's layers without attention are not among the outputs
    layers = [layer for layer, heads in enumerate(model.identity.heads_per_layer) if heads]
    for place, name in enumerate(record.heads):
        head = Head(*map(int, name[1:].split("H")))
        own = Head(layers.index(head.layer), head.head)
        check(record, place, windows, [[m[own] for m in per] for per in found], architecture)


def check(
    record: Record,
    place: int,
    windows: Sequence[Sequence[Sequence[int]]],
    weights: Sequence[Sequence[Matrix]],
    architecture: Architecture,
) -> None:
    """A head's counts against those of its matrices."""
    pairs = [list(zip(w, ids, strict=True)) for w, ids in zip(weights, windows, strict=True)]
    metrics = [metrics_of(own, causal=architecture.causal) for own in pairs]
    for metric, name in enumerate(SCORES):
        values = [m[name] for m in metrics if not isnan(m[name])]
        found = estimate(record, place, metric)
        assert record.counts[place, metric] == len(values), name
        if values:
            assert found.mean == pytest.approx(fmean(values), abs=2e-5), name
        if len(values) > 1:
            error = stdev(values) / sqrt(len(values))
            assert found.error == pytest.approx(error, abs=2e-5), name
    distances, positions, bins = np.zeros(len(EDGES) + 1), np.zeros(len(EDGES) + 1), [0] * 50
    for own in pairs:
        queries = sum(len(ids) for _, ids in own)
        for w, ids in own:
            n = np.arange(len(ids))
            distances += histogram(w, np.abs(np.subtract.outer(n, n)), EDGES) / queries
            positions += histogram(w, np.broadcast_to(n, w.shape), EDGES) / queries
            if len(ids) > 1:  # a window of one token shows nothing of attention
                bins[min(49, int(largest(w) * 50))] += 1
    np.testing.assert_allclose(record.distances[place], distances, atol=1e-5)
    np.testing.assert_allclose(record.positions[place], positions, atol=1e-5)
    assert record.largest[place].tolist() == bins
    flat = [pair for own in pairs for pair in own]
    found_over = means_over_tokens(record, place)
    for name, expected in over_tokens(flat).items():
        assert found_over[name][0] == pytest.approx(expected, abs=2e-5), name
    own_largest = [largest(w) for w, ids in flat if len(ids) > 1]
    assert found_over["largest"][0] == pytest.approx(fmean(own_largest), abs=1e-5)
    best = sorted((apart(w) for own in weights for w in own), reverse=True)[:TOP]
    kept = [-v / 2**30 for v, *_ in record.best[place].tolist() if v != NONE]
    np.testing.assert_allclose(kept, best, atol=1e-5)


@pytest.mark.parametrize("architecture", READERS[::4], ids=lambda a: a.name)
def test_links_are_the_strongest_of_whole_matrices(architecture: Architecture) -> None:
    theirs = architecture.model("eager")
    model = wrap_huggingface(architecture.model(), tokenizer())
    cut = WindowCutter(model.tokenizer, LENGTH, 0)
    windows = [w for text in documents((LENGTH, LENGTH, 6)) for w in cut.of(text)]
    heads = [h for h in every_head(model.identity.heads_per_layer) if h.head != 1]
    seen: dict[tuple[int, Head], HeadLinks] = {}
    wanted = {w.ordinal: heads[w.ordinal :] for w in windows}
    for window, links in run_again(model, windows, wanted):
        seen[window.ordinal, Head(links.layer, links.head)] = links
    for window in windows:
        found = matrices(theirs, window.ids)
        for head in heads[window.ordinal :]:
            links = seen.pop((window.ordinal, head))
            expected = strongest(found[head])
            pairs = list(zip(links.queries.tolist(), links.keys.tolist(), strict=True))
            ours = dict(zip(pairs, links.weights.tolist(), strict=True))
            near = {(q, k): w for q, k, w in expected}
            assert len(ours) == len(near)
            assert sum(ours.values()) == pytest.approx(sum(near.values()), abs=1e-4)
            assert links.largest == pytest.approx(largest(found[head]), abs=1e-5)
            np.testing.assert_allclose(
                [found[head][pair] for pair in ours], list(ours.values()), atol=1e-5
            )
    assert not seen


def test_scores_are_those_of_heads_averaged_by_hand(run: Run) -> None:
    texts = ["the red fox saw the red fox near the red fox", "a fluffy blue creature", "Tom ran ."]
    loaded = attnviz.load_model()._loaded
    record = counted(loaded, [CorpusText("x", 0, " ".join(text.split()[:13])) for text in texts])
    by_text = []
    for text in texts:
        out = run("heads", text, "-f", "jsonl").out
        by_text.append({head_of(row): row for row in map(json.loads, out.splitlines())})
    for place, head in enumerate(record.heads):
        for metric, name in enumerate(METRICS):
            values = [t[head][name] for t in by_text if t[head][name] is not None]
            assert record.counts[place, metric] == len(values)
            mean = estimate(record, place, metric).mean
            assert mean == pytest.approx(fmean(values), abs=1e-6) if values else isnan(mean)


def test_documents_longer_than_a_group_are_counted_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = attnviz.load_model()._loaded
    texts = [CorpusText("x", i, "the cat sat on the red mat . " * (3 + 9 * i)) for i in range(4)]
    whole = counted(model, texts)
    monkeypatch.setattr("attnviz.commands.scan.counting.GROUP_TOKENS", 40)
    parts = counted(model, texts)
    for name in ("counts", "largest", "rows"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    for place in range(len(whole.heads)):
        found, expected = (means_over_tokens(record, place) for record in (parts, whole))
        for name, (mean, queries) in expected.items():
            assert found[name] == (pytest.approx(mean, abs=1e-5), queries), name
    np.testing.assert_allclose(parts.totals, whole.totals, rtol=1e-5, atol=4e-6)
    assert (parts.documents, parts.windows, parts.tokens) == (4, whole.windows, whole.tokens)


def test_a_document_whose_attention_is_no_number_is_skipped_and_the_others_counted() -> None:
    architecture = next(a for a in READERS if a.name == "llama")
    broken = architecture.model()
    broken.embed_tokens.weight.data[5] = float("nan")
    model = wrap_huggingface(broken, tokenizer())
    good, bad = CorpusText("good", 0, "w3 w4 w6"), CorpusText("bad", 7, "w3 w5 w6")
    counter = Counter(model, every_head(model.identity.heads_per_layer), LENGTH)
    for document in (good, bad, Skipped("worse", 1, "no text")):
        counter.add(document)
    record = counter.finish()
    assert (record.documents, record.windows, record.bad) == (1, 1, 2)
    assert {s.path: s.why for s in counter.skipped} == {
        "bad": "its attention is not a number (NaN or infinite)",
        "worse": "no text",
    }
    alone = counted(wrap_huggingface(architecture.model(), tokenizer()), [good])
    np.testing.assert_array_equal(record.counts, alone.counts)
    np.testing.assert_allclose(record.totals, alone.totals, rtol=1e-5, atol=1e-6)


def test_batches_hold_windows_of_one_length_and_leave_out_none() -> None:
    draw = random.Random(1)
    windows = [Window(i, i, 0, (1,) * draw.randrange(1, 2000), i) for i in range(300)]
    found = list(batches(windows))
    assert sorted(w.ordinal for batch in found for w in batch) == list(range(300))
    for batch in found:
        assert len({len(w.ids) for w in batch}) == 1
        assert len(batch) == 1 or sum(len(w.ids) for w in batch) <= 4096
    draw.shuffle(windows)
    assert list(batches(windows)) == found


def test_a_window_begins_as_the_model_was_trained() -> None:
    read = attnviz.load_model()._loaded.tokenizer
    text = "the cat sat on the mat . " * 20
    inner = read.ids(text)
    made = WindowCutter(read, 16, 0).of(CorpusText("x", 0, text))
    assert [id_ for w in made for id_ in w.ids[1:]] == inner
    assert {w.ids[0] for w in made} == {read.bos_id}
    assert [len(w.ids) for w in made[:-1]] == [16] * (len(made) - 1)


# ---- records are added in order ----


def record_of(values: NDArray[np.float64], windows: Sequence[tuple[int, int, int]]) -> Record:
    """A record of one head: documents' values of the first metric, and windows by number."""
    whole = np.full((len(values), 1, len(SCORES)), np.nan)
    whole[:, 0, 0] = values
    totals, squares, counts = moments(whole)
    named = np.array(windows, np.int64).reshape(-1, 3)
    made: Mapping[str, Any] = {
        **vars(empty_record(["L0H0"])),
        "totals": totals,
        "squares": squares,
        "counts": counts,
        "best": least(named[None], TOP),
        "documents": len(values),
    }
    return Record(**made)


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.floats(0, 1), max_size=5), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
def test_records_added_in_order_give_the_same_bytes_and_the_errors_of_all_values(
    shards: list[list[float]], order: random.Random
) -> None:
    names = iter((order.randrange(4), shard, i) for shard in range(99) for i in range(9))
    records = [
        record_of(np.array(own), [next(names) for _ in range(order.randrange(9))]) for own in shards
    ]
    whole = merged(records)
    while len(records) > 1:
        taken = order.randrange(1, len(records) + 1)
        records = [merged(records[:taken]), *records[taken:]]
    assert record_to_bytes(merged(records)) == record_to_bytes(whole)
    values = [value for own in shards for value in own]
    if len(values) > 1:
        error = stdev(values) / sqrt(len(values))
        assert estimate(whole, 0, 0).error == pytest.approx(error, abs=1e-9)


def test_bins_of_the_largest_weight_are_those_of_float32() -> None:
    near = torch.linspace(0, 1, 51).repeat(3, 1)
    near[1], near[2] = near[1].nextafter(torch.tensor(2.0)), near[2].nextafter(torch.tensor(-1.0))
    expected = (near.clamp(0, 1) * 50).int().clamp(0, 49)
    np.testing.assert_array_equal(bin_of(near.clamp(0, 1).double().numpy()), expected.numpy())


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_the_standard_error_is_that_of_the_values(values: list[float]) -> None:
    found = estimate(record_of(np.array(values), []), 0, 0)
    assert found.mean == pytest.approx(fmean(values), abs=1e-9)
    assert found.error == pytest.approx(stdev(values) / sqrt(len(values)), abs=1e-8)


def test_a_record_is_the_same_after_a_file_and_another_file_is_refused() -> None:
    record = counted(attnviz.load_model()._loaded, [CorpusText("x", 0, "a red fox")])
    data = record_to_bytes(record, [Skipped("y", 7, "no")])
    assert record_to_bytes(record_of_bytes(data, 0), skipped_of_bytes(data)) == data
    with pytest.raises(ValueError, match="shard"):
        record_of_bytes(data, 1)
    for damaged in (b"", b"PK", data[:-40], data[:200], b"{}" * 50):
        with pytest.raises(ValueError, match=r"."):
            record_of_bytes(damaged)
    draw = random.Random(0)
    for _ in range(200):  # a bit is another one
        place = draw.randrange(len(data))
        flipped = bytes([data[place] ^ 1 << draw.randrange(8)])
        with pytest.raises(ValueError, match=r"digest"):
            record_of_bytes(data[:place] + flipped + data[place + 1 :])


def test_records_of_another_device_are_not_merged() -> None:
    here = empty_record(["L0H0"], Origin("a", "cpu", 512))
    there = empty_record(["L0H0"], Origin("a", "cuda", 512))
    with pytest.raises(ValueError, match="another kind of device"):
        merged([here, there])


def test_a_document_that_turns_bad_late_is_not_counted_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    architecture = next(a for a in READERS if a.name == "llama")
    broken = architecture.model()
    broken.embed_tokens.weight.data[5] = float("nan")
    model = wrap_huggingface(broken, tokenizer())
    words = ["w3 w4 w6"] * 40
    late = CorpusText("late", 0, " ".join([*words, "w5"]))
    good = [CorpusText("good", i, "w3 w4 w6 w7") for i in range(3)]
    alone = counted(model, good)
    monkeypatch.setattr("attnviz.commands.scan.counting.GROUP_TOKENS", 30)
    together = counted(model, [good[0], late, *good[1:]])
    assert (together.documents, together.windows, together.bad) == (3, 3, 1)
    for name in ("counts", "largest", "rows"):
        np.testing.assert_array_equal(getattr(together, name), getattr(alone, name))


@pytest.mark.slow
def test_distances_are_told_in_tokens_where_the_context_is_smaller_than_the_length(
    run: Run, tmp_path: Path
) -> None:
    text = "the red fox saw the red fox near the old house . " * 40
    (tmp_path / "a.txt").write_text(text)
    rows = []
    for length in ("256", "512"):  # the built-in model's context is 256
        out = str(tmp_path / length)
        given = ("--length", length, "--head", "L1H1", "--workers", "1")
        assert run("scan", str(tmp_path / "a.txt"), "-o", out, *given).status is ExitStatus.OK
        rows += rows_of(run("atlas", out, "-f", "json").out)
    assert rows[0]["distance"] == pytest.approx(rows[1]["distance"], abs=1e-4)
    assert rows[0]["distance_variance"] == pytest.approx(rows[1]["distance_variance"], rel=1e-4)


def test_copies_of_one_text_are_drawn_apart() -> None:
    cut = WindowCutter(attnviz.load_model()._loaded.tokenizer, 64, 0)
    chances = {w.chance for i in range(50) for w in cut.of(CorpusText("x", i, "a red fox"))}
    assert len(chances) == 50


def test_tokens_are_counted_by_the_mass_of_their_links_to_other_tokens() -> None:
    mass = PairMass(100)
    links = HeadLinks(
        0,
        *(0, 0),
        queries=np.array([0, 1, 2, 2, 2, 3]),
        keys=np.array([0, 1, 0, 1, 2, 2]),
        weights=np.array([1, 0.5, 0.25, 0.5, 0.25, 0.5], np.float32),
        largest=0.5,
    )
    mass.add(np.array([9, 7, 7, 8]), links)
    told = [(r["side"], r["query"], r["key"], r["mass"]) for r in mass.rows(str)]
    assert told == [
        ("query", "7", None, 0.5),
        ("query", "8", None, 0.5),
        ("key", None, "7", 1.0),
        ("pair", "7", "7", 0.5),
        ("pair", "8", "7", 0.5),
    ]


@pytest.mark.parametrize("size", [1.0, 8.0, 31.0, 33.0, 300.0])
@pytest.mark.parametrize("offset", [0.0, -500.0])
def test_entropies_from_scores_are_those_of_float64(size: float, offset: float) -> None:
    scores = size * torch.randn(2, 3, 8, 400, generator=torch.Generator().manual_seed(0)) / 4
    scores = (scores + offset).masked_fill(torch.ones(8, 400).triu(300).bool(), -3e38)
    weights = scores.softmax(dim=-1)
    exact = weights.double()
    expected = -(exact * exact.clamp_min(1e-300).log()).sum(dim=-1)
    found = _entropies(weights, weights.amax(dim=-1), scores.clone())
    torch.testing.assert_close(found.double(), expected, atol=2e-5, rtol=2e-5)
