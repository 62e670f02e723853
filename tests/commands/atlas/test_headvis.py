"""A scan becomes the data tree that HeadVis and Neuronpedia's loaders read."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.commands.atlas.headvis import (
    boundaries,
    corpus_of,
    file_name,
    head_object,
    model_of,
    sequence_object,
    write_headvis,
)
from attnviz.corpus.record import SCORES
from attnviz.corpus.result import read_atlas, read_heads
from attnviz.corpus.tables import Atlas, Bin
from attnviz.errors import ExitStatus, OutputError
from tests.commands.atlas.atlases import HEADS, LINKS, TOKENS, made_scan
from tests.conftest import Run

REQUIRED = ("model_name", "dataset_name", "n_sequences", "seq_len", "dtype", "attn_implementation")
METRICS = (
    *("self_attention_score", "prev_token_score", "pattern_entropy"),
    *("qk_distance", "qk_distance_variance", "induction_score"),
)


@pytest.fixture
def tree(run: Run, tmp_path: Path) -> Path:
    """The folder of an exported scan."""
    scan = made_scan(tmp_path / "scan")
    ended = run("atlas", str(scan), "--export", "headvis", "-o", str(tmp_path / "tree"))
    assert ended.err.startswith("note: 6 heads for HeadVis in '")
    assert ended.status is ExitStatus.OK
    return tmp_path / "tree" / "org-tiny" / "headvis" / "my-texts"


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="ascii"))


def test_the_tree_has_every_file_where_the_loaders_look_for_it(tree: Path) -> None:
    files = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}
    assert files == {
        *("config.json", "scatter_data.json", "server_config.json", "attributions/manifest.json"),
        *(f"heads/L{layer}H{head}.json" for layer, head in HEADS),
    }
    assert all(re.fullmatch(r"L(\d+)H(\d+)\.json", p.name) for p in (tree / "heads").iterdir())
    assert read(tree / "server_config.json") == read(tree / "attributions" / "manifest.json") == {}


def test_the_configuration_has_every_key_that_the_loaders_require(tree: Path) -> None:
    config = read(tree / "config.json")
    merged = {**config, **config["pipeline_config"]}
    assert all(merged[key] is not None for key in REQUIRED)
    assert (int(merged["n_sequences"]), int(merged["seq_len"])) == (5, 32)
    assert (merged["model_name"], merged["dataset_name"]) == ("org/tiny", "my texts")
    assert merged["dtype"] == "float32"
    # without this key the loaders take the folder's name, so that renaming it is enough
    assert "np_model_id" not in merged
    assert config["heads"] == [list(head) for head in HEADS]
    assert (config["n_layers"], config["n_heads"]) == (4, 3)
    assert set(config["metrics"]) == set(config["metric_descriptions"]) >= set(METRICS)
    shown = [each["key"] for each in (*config["custom_plots"], *config["custom_tables"])]
    assert set(shown) <= set(read(tree / "heads" / "L2H0.json"))


def test_the_scatter_has_a_row_of_numbers_for_each_head(tree: Path, tmp_path: Path) -> None:
    scatter = read(tree / "scatter_data.json")
    assert [(row["layer"], row["head"]) for row in scatter] == list(HEADS)
    atlas = read_atlas(tmp_path / "scan")
    columns = {
        "qk_distance": "distance_over_tokens",
        "qk_distance_variance": "distance_variance_over_tokens",
        "prev_token_score": "previous_over_tokens",
        "self_attention_score": "self_over_tokens",
        "pattern_entropy": "entropy_over_tokens",
        "induction_score": "strong_induction_over_tokens",
        # what HeadVis has not
        **{f"{name}_over_documents": name for name in SCORES},
        **{f"{n}_over_tokens": f"{n}_over_tokens" for n in ("normalised", "first", "duplicate")},
        "induction_over_tokens": "induction_over_tokens",
    }
    for found, row in zip(scatter, atlas.rows, strict=True):
        assert {n: v for n, v in found.items() if n not in ("layer", "head")} == {
            name: round(row[column], 4) for name, column in columns.items()
        }


def test_a_score_that_was_not_measured_is_null(tmp_path: Path) -> None:
    scan = made_scan(tmp_path / "scan", lambda _l, _h, name: None if "induction" in name else 0.5)
    folder = exported(scan, tmp_path / "tree")
    assert [row["induction_score"] for row in read(folder / "scatter_data.json")] == [None] * 6


def exported(scan: Path, to: Path) -> Path:
    atlas = read_atlas(scan)
    return write_headvis(to, atlas, read_heads(atlas))


def test_sequences_obey_the_rules_of_the_loaders(tree: Path) -> None:
    config = read(tree / "config.json")
    for path in (tree / "heads").iterdir():
        for each in read(path)["sequences"]:
            n = len(each["tokens"])
            assert each["seq_len"] == n
            assert all(isinstance(token, str) and token for token in each["tokens"])
            assert len(each["attention_indices"]) == len(each["attention_values"])
            assert all(type(index) is int for index in each["attention_indices"])
            assert all(0 <= index < n * n for index in each["attention_indices"])
            assert each["attention_indices"] == sorted(set(each["attention_indices"]))
            assert all(0 <= value <= 1 for value in each["attention_values"])
            assert type(each["interval"]) is int
            assert 1 <= each["interval"] <= config["n_intervals"]
            assert 0 <= each["max_activation"] <= 1


def test_an_index_is_the_query_times_the_number_of_tokens_plus_the_key(tree: Path) -> None:
    *_, top = read(tree / "heads" / "L3H1.json")["sequences"]
    expected = {query * len(TOKENS) + key: weight for query, key, weight in LINKS}
    found = zip(top["attention_indices"], top["attention_values"], strict=True)
    assert dict(found) == pytest.approx(expected, abs=1e-4)
    assert top["tokens"] == list(TOKENS)


def test_each_window_is_there_once(tree: Path) -> None:
    low, top = read(tree / "heads" / "L2H2.json")["sequences"]
    assert low["sequence_id"] != top["sequence_id"]
    others = read(tree / "heads" / "L3H0.json")["sequences"]
    assert [each["sequence_id"] for each in others] == [low["sequence_id"], top["sequence_id"]]


@given(st.lists(st.integers(0, 49), min_size=1, max_size=60))
def test_intervals_begin_where_the_windows_of_headvis_begin(bins: list[int]) -> None:
    histogram = [Bin(i / 50, (i + 1) / 50, bins.count(i)) for i in range(50)]
    n, ordered = len(bins), sorted(bins)
    theirs = [ordered[min(round(i * n / 5), n - 1)] for i in range(1, 5)]
    assert boundaries(histogram) == theirs


def test_an_interval_is_that_of_the_largest_weight(tmp_path: Path) -> None:
    example = next(iter(read_heads(read_atlas(made_scan(tmp_path / "scan"))))).examples[0]
    for largest, interval in ((0.0, 1), (0.199, 1), (0.201, 2), (0.5, 3), (1.0, 4)):
        made = sequence_object(replace(example, largest=largest), [10, 20, 30, 50])
        assert made["interval"] == interval, largest


def test_histograms_have_an_edge_more_than_values(tree: Path) -> None:
    head = read(tree / "heads" / "L2H0.json")
    for name in ("qk_distance_histogram", "histogram", "mean_weight_by_distance"):
        edges, values = head[name]["bin_edges"], head[name]["bin_values"]
        assert len(edges) == len(values) + 1
        assert edges == sorted(set(edges))
    assert head["mean_weight_by_distance"]["bin_edges"] == [0, 1, 2, 4, 8, 16, 32]  # of 32 tokens
    assert head["mean_weight_by_distance"]["bin_values"] == [0.25, 0.75, 0, 0, 0, 0]
    assert len(head["histogram"]["bin_values"]) == 50
    assert sum(head["histogram"]["bin_values"]) == 5
    assert all(type(value) is int for value in head["histogram"]["bin_values"])
    assert head["statistics"]["n_samples"] == len(head["sequences"]) == 2
    assert head["statistics"]["mean_max_activation"] == 0.7654


def test_tokens_come_with_their_weights_the_largest_first(tree: Path) -> None:
    head = read(tree / "heads" / "L2H0.json")
    assert head["sample_query_tokens"] == [
        {"token": " creature", "weight": 3.5},
        {"token": " ran", "weight": 1.0},
    ]
    assert [each["token"] for each in head["sample_key_tokens"]] == [" fluffy", "fluffy"]


def test_tokens_and_distances_are_sums_over_the_sequences_of_the_file(tree: Path) -> None:
    head = read(tree / "heads" / "L2H0.json")
    found = recomputed(head)
    for name in ("top_query_tokens", "top_key_tokens"):
        assert {each["token"]: each["weight"] for each in head[name]} == found[name]
        weights = [each["weight"] for each in head[name]]
        assert weights == sorted(weights, reverse=True)
    assert head["qk_distance_histogram"] == {
        "bin_edges": [0, *(2**i for i in range(13))],
        "bin_values": found["distances"],
    }


def test_links_beyond_the_last_edge_are_in_no_bin_of_distances(tmp_path: Path) -> None:
    atlas = read_atlas(made_scan(tmp_path / "scan"))
    head = next(iter(read_heads(atlas)))
    links = {"queries": np.array([4500, 4500]), "keys": np.array([404, 405])}
    weights = np.array([0.25, 0.5], np.float32)
    far = replace(head.examples[0], tokens=("a",) * 5000, weights=weights, **links)
    found = head_object(replace(head, examples=[far]), atlas)
    assert found["qk_distance_histogram"]["bin_values"] == [0.0] * 12 + [0.5]
    assert found["top_key_tokens"] == [{"token": "a", "weight": 0.75}]


def recomputed(head: Any) -> dict[str, Any]:
    """The sums over the sequences of a head's file; at most 50 of each side are kept."""
    query, key, by_distance = Counter[str](), Counter[str](), [0.0] * 13
    for each in head["sequences"]:
        n, tokens = each["seq_len"], each["tokens"]
        for index, value in zip(each["attention_indices"], each["attention_values"], strict=True):
            q, k = index // n, index % n
            query[tokens[q]] += value
            key[tokens[k]] += value
            by_distance[abs(q - k).bit_length()] += value
    sides = {"top_query_tokens": query, "top_key_tokens": key}
    heaviest = {
        name: {token: round(w, 4) for token, w in side.most_common(50)}
        for name, side in sides.items()
    }
    return {**heaviest, "distances": [round(value, 4) for value in by_distance]}


def test_an_open_bin_that_windows_reach_gets_an_end(tmp_path: Path) -> None:
    scan = made_scan(tmp_path / "scan", length=500)
    atlas = read_atlas(scan)
    head = next(iter(read_heads(atlas)))
    assert head_object(head, atlas)["mean_weight_by_distance"]["bin_edges"][-2:] == [64, 128]


def test_what_postgres_cannot_hold_is_written_otherwise(tmp_path: Path) -> None:
    scan = made_scan(tmp_path / "scan")
    example = next(iter(read_heads(read_atlas(scan)))).examples[0]
    strange = replace(example, tokens=("", "\0a", *TOKENS[2:]))
    assert sequence_object(strange, [])["tokens"][:2] == ["BOS", "␀a"]


def test_names_of_folders_stay_in_the_tree() -> None:
    for name in ("../../etc", "/", "..", "a/b\\c", "-x", ".hidden", "\x1b[2J", ""):
        made = file_name(name, "model")
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", made), (name, made)
    rows = [{"documents": 1, "tokens": 1}]
    for model, expected in (("gpt2", "gpt2"), ("a/b", "a/b"), ("/home/me/step-4", "step-4")):
        assert model_of(Atlas(model, rows)) == expected
    corpus = [["x/y/a.txt", 1, 1], ["x/y/z/b.txt", 1, 1]]
    assert corpus_of(Atlas("m", rows, {"corpus": corpus})) == "y"
    assert corpus_of(Atlas("m", rows, {"paths": ["a/reviews.jsonl"]})) == "reviews"
    assert corpus_of(Atlas("m", rows)) == "corpus"


def test_what_is_published_names_no_file_of_the_user(tree: Path) -> None:
    text = "".join(path.read_text() for path in tree.rglob("*.json"))
    assert "a.txt" not in text


def test_a_second_export_replaces_the_first_and_nothing_of_the_users(
    tmp_path: Path, tree: Path
) -> None:
    before = {p.name: p.read_bytes() for p in tree.rglob("*.json")}
    fewer = made_scan(tmp_path / "fewer", heads=HEADS[:1])
    assert exported(fewer, tmp_path / "tree") == tree
    assert [path.name for path in (tree / "heads").iterdir()] == ["L2H0.json"]
    (tree / "heads" / "mine.txt").write_text("x")
    with pytest.raises(OutputError, match=r"holds other files, such as 'mine\.txt'"):
        exported(tmp_path / "scan", tmp_path / "tree")
    (tree / "heads" / "mine.txt").unlink()
    exported(tmp_path / "scan", tmp_path / "tree")
    assert {p.name: p.read_bytes() for p in tree.rglob("*.json")} == before


def test_an_export_that_fails_leaves_nothing(tmp_path: Path) -> None:
    scan = made_scan(tmp_path / "scan")
    atlas = read_atlas(scan)

    def heads() -> Any:
        yield from list(read_heads(atlas))[:2]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_headvis(tmp_path / "tree", atlas, heads())
    assert [p for p in (tmp_path / "tree").rglob("*") if p.is_file()] == []


def test_heads_are_taken_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = made_scan(tmp_path / "scan")
    atlas = read_atlas(scan)
    events: list[str] = []

    def heads() -> Any:
        for head in list(read_heads(atlas)):
            events.append(f"read {head.head}")
            yield head

    import attnviz.commands.atlas.headvis as writer

    monkeypatch.setattr(writer, "_write", lambda path, _: events.append(f"wrote {path.stem}"))
    write_headvis(tmp_path / "tree", atlas, heads())
    names = list(map(str, atlas.heads))
    assert events[:12] == [f"{did} {name}" for name in names for did in ("read", "wrote")]


def test_an_export_needs_a_folder_and_takes_no_other_option(run: Run, tmp_path: Path) -> None:
    scan = str(made_scan(tmp_path / "scan"))
    missing = run("atlas", scan, "--export", "headvis")
    assert missing.status is ExitStatus.USAGE
    assert "name their folder: -o TREE" in missing.err
    for option in (("--top", "3"), ("--head", "2.1"), ("-f", "json"), ("--sort", "first")):
        out = str(tmp_path / "tree")
        refused = run("atlas", scan, "--export", "headvis", "-o", out, *option)
        assert refused.status is ExitStatus.USAGE
        assert f"{option[0]} does nothing for --export headvis" in refused.err
