"""Every result says how it was made, whichever command it is of."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz.errors import ExitStatus
from attnviz.records.rows import versions_now
from tests.conftest import Run

TEXT = "a fluffy blue creature roamed . the creature was"
RED = "a fluffy red creature roamed . the creature was"
LABELS = '{"text": "a fluffy blue creature", "links": [["creature", ["fluffy"]]]}'
MODELS = {"builtin": "gpt2", "translator": "attnviz-seq2seq", "embeddings": "embeddings"}
Options = dict[str, Any]

# command; the texts that were run; the options as given; the seed, of a command that takes one
RUN: tuple[tuple[tuple[str, ...], list[str], Options, int | None], ...] = (
    (("show", TEXT, "--no-bos"), [TEXT], {"bos": False}, None),
    (("show", "the dog", "-m", "translator"), ["the dog"], {}, None),
    (("show", "-", "--lines", "--top", "1"), ["the cat", "a dog"], {"lines": True, "top": 1}, None),
    (("heads",), [""], {}, 0),
    (("heads", "--seed", "3"), [""], {"seed": 3}, 3),
    (("heads", TEXT, "--words"), [TEXT], {"words": True}, 0),
    (("heads", "--retrieval"), [], {"retrieval": True}, 0),
    (("heads", "--circuits"), [], {"circuits": True}, 0),
    (("heads", "--labels", "LABELS"), [TEXT[:22]], {"labels": "LABELS"}, 0),
    (("predict", TEXT, "--answer", "blue"), [TEXT], {"answer": "blue"}, None),
    (("predict", "-", "--lines"), ["the cat", "a dog"], {"lines": True}, None),
    (("explain", TEXT, "--query", "blue"), [TEXT], {"query": "blue"}, 0),
    (("explain", TEXT, "-m", "embeddings", "--causal"), [TEXT], {"causal": True}, 0),
    (("why", TEXT, "--depth", "2"), [TEXT], {"depth": 2}, None),
    (("why", TEXT, "--head", "L2H1", "--writes"), [TEXT], {"head": "L2H1", "writes": True}, None),
    (("ablate", TEXT, "--head", "L1H1", "--with", "mean"), [TEXT], {"head": "L1H1", "with": "mean"},
     0),
    (("patch", TEXT, "--from", RED, "--answer", "blue"), [TEXT, RED],
     {"from": RED, "answer": "blue"}, None),
    (("circuit", TEXT, "--from", RED, "--find", "1", "--answer", "blue"), [TEXT, RED],
     {"from": RED, "find": 1, "answer": "blue"}, 0),
    (("compare", "the cat sat", "a dog sat"), ["the cat sat", "a dog sat"], {}, None),
    (("compare", TEXT, "--against", "builtin"), [TEXT, TEXT], {"against": "builtin"}, None),
    (("tokens", TEXT, "--no-bos"), [TEXT], {"bos": False}, None),
)  # fmt: skip
BARE = (
    (("tokens", "the dog", "-m", "translator"), "translator"),
    (("tokens", "the dog", "-m", "embeddings"), "embeddings"),
    (("params",), "builtin"),
    (("params", "gpt3"), "gpt3"),
    (("models", "translator"), "translator"),
    (("models", "embeddings"), "embeddings"),
    (("models",), "builtin"),
)
"""Commands that run no model, and the first model that they tell of."""
ARCHIVES = (
    (("explain", TEXT), 1),
    (("explain", TEXT, "-m", "embeddings"), 1),
    (("compare", TEXT, "--against", "builtin"), 2),
)
"""Commands that write an npz with `made` in its `meta`, and how many runs they take."""


def check_model(told: Any, *, ran: bool = True) -> None:
    """Every fact of a model; its weights' fingerprint only where it was run."""
    assert told["architecture"] == MODELS.get(told["name"], "gpt2")
    assert set(told) >= {"revision", "parameters", "heads_per_layer"}
    assert told["heads_per_layer"]
    run_as = (told["engine"], told["dtype"], told["fingerprint"] is not None)
    assert run_as == (("native", "float32", True) if ran else ("none", "none", False))


def made_by(run: Run, command: tuple[str, ...], folder: Path) -> Any:
    labels = folder / "labels.jsonl"
    labels.write_text(LABELS)
    given = [str(labels) if each == "LABELS" else each for each in command]
    ended = run(*given, "-f", "json", stdin=b"the cat\na dog\n" if "-" in given else b"")
    assert ended.status is ExitStatus.OK, ended.err
    documents = [json.loads(line) for line in ended.out.splitlines()] if "--lines" in given and (
        given[0] == "show") else [json.loads(ended.out)]  # fmt: skip
    made: Any = documents[0]["made"]
    for more in documents[1:]:
        made["runs"] += more["made"]["runs"]
    made["options"] = {
        name: "LABELS" if value == str(labels) else value for name, value in made["options"].items()
    }
    return made


@pytest.mark.parametrize(
    ("command", "texts", "options", "seed"), RUN, ids=[" ".join(each[0]) for each in RUN]
)
def test_every_command_says_how_its_result_was_made(
    run: Run, tmp_path: Path, command: tuple[str, ...], texts: list[str], options: Options,
    seed: int | None,
) -> None:  # fmt: skip
    made = made_by(run, command, tmp_path)
    assert made["models"]
    for model in made["models"]:
        check_model(model, ran=command[0] != "tokens")
    assert [each["text"] for each in made["runs"]] == texts
    without = "--no-bos" in command or "embeddings" in command
    assert all(each["bos"] is not without for each in made["runs"])
    assert {each["model"] for each in made["runs"]} <= set(range(len(made["models"])))
    assert set(versions_now()) <= set(made["versions"])
    assert (made["options"], made["seed"]) == (options, seed)


def test_an_answer_says_how_it_was_made(run: Run, tmp_path: Path) -> None:
    drawn = ("--max-new-tokens", "2", "--temperature", "1", "--seed", "3")
    made = made_by(run, ("generate", "the dog", *drawn), tmp_path)
    check_model(*made["models"])
    (told,) = made["runs"]
    assert told["text"].startswith("the dog")
    assert told["bos"]
    assert made["options"] == {"max_new_tokens": 2, "temperature": 1.0, "seed": 3}
    assert made["seed"] == 3


@pytest.mark.parametrize(("command", "name"), BARE, ids=[" ".join(each[0]) for each in BARE])
def test_a_command_that_runs_no_model_says_which_one_it_tells_of(
    run: Run, tmp_path: Path, command: tuple[str, ...], name: str
) -> None:
    made = made_by(run, command, tmp_path)
    first = made["models"][0]
    check_model(first, ran=False)
    assert first["name"] == name
    assert bool(first["parameters"]) is (command[0] != "tokens")


@pytest.mark.parametrize(("command", "runs"), ARCHIVES, ids=[" ".join(c) for c, _ in ARCHIVES])
def test_an_archive_says_how_it_was_made(
    run: Run, tmp_path: Path, command: tuple[str, ...], runs: int
) -> None:
    path = tmp_path / "found.npz"
    assert run(*command, "-o", str(path)).status is ExitStatus.OK
    with np.load(path, allow_pickle=False) as found:
        made = json.loads(str(found["meta"]))["made"]
    check_model(made["models"][0])
    assert len(made["runs"]) == runs
    assert made["versions"]["attnviz"] == versions_now()["attnviz"]


def test_a_scan_says_how_it_was_made_in_every_file(run: Run, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    corpus, out = tmp_path / "texts.txt", tmp_path / "scanned"
    corpus.write_text(f"{TEXT}\n")
    given = ("--head", "L1H2,L3H1", "--seed", "3", "--max-docs", "1", "--workers", "1")
    assert run("scan", str(corpus), "-o", str(out), *given).status is ExitStatus.OK
    made = attnviz.atlas(out).made
    check_model(*made["models"])
    assert made["models"][0]["fingerprint"] == attnviz.load_model().fingerprint
    asked = {"corpus": [str(corpus)], "heads": "L1H2,L3H1", "max_docs": 1, "bos": True}
    assert asked.items() <= made["options"].items()
    assert (made["seed"], made["versions"]["attnviz"]) == (3, versions_now()["attnviz"])
    for table in ("heads", "histograms", "tokens", "examples"):
        kept = pq.read_schema(out / f"{table}.parquet").metadata
        assert json.loads(kept[b"attnviz"]) == made
    for view in ((), ("--head", "L1H2"), ("--plot", "first,induction")):
        told = made_by(run, ("atlas", str(out), *view), tmp_path)
        assert told["models"] == made["models"]
        assert made["options"].items() <= {**told["options"], "heads": "L1H2,L3H1"}.items()
    both = made_by(run, ("atlas", str(out), str(out)), tmp_path)
    assert both["models"] == made["models"]
    assert both["options"]["scans"] == [made, made]
