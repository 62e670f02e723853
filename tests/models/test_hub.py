"""Hub models: from the cache without a request, else a sentence that says how to fetch them.

All tests run with HF_HUB_OFFLINE=1, under which the hub's library raises at any request.
"""

import json
import logging
import shutil
from pathlib import Path

import huggingface_hub
import huggingface_hub.errors as hub_errors
import pytest
from huggingface_hub import constants

from attnviz.errors import ExitStatus, ModelError
from attnviz.models import catalog
from attnviz.models.catalog import Source, describe, load
from tests.conftest import Run

COMMITS = {"main": "a" * 40, "v1": "b" * 40}


@pytest.fixture
def cached(gpt2_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache as the hub's library lays it out, with `someone/tiny` in two revisions."""
    repository = tmp_path / "models--someone--tiny"
    (repository / "refs").mkdir(parents=True)
    for name, commit in COMMITS.items():
        (repository / "refs" / name).write_text(commit)
        shutil.copytree(gpt2_folder, repository / "snapshots" / commit)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    return repository


@pytest.mark.parametrize("offline", [False, True])
def test_a_cached_model_is_used_without_a_request(cached: Path, offline: bool) -> None:
    model = load(Source("someone/tiny", offline=offline))
    assert model.identity.name == "someone/tiny"
    assert model.identity.revision == COMMITS["main"]


def test_a_revision_chooses_among_the_cached_ones(cached: Path) -> None:
    assert load(Source("someone/tiny", "v1")).identity.revision == COMMITS["v1"]
    with pytest.raises(ModelError, match="not in the cache"):
        load(Source("someone/tiny", "v2", offline=True))


def test_a_cache_without_weights_counts_as_not_there(cached: Path) -> None:
    (cached / "snapshots" / COMMITS["main"] / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"not in the cache.*hf download someone/tiny"):
        load(Source("someone/tiny", offline=True))


def test_a_half_fetched_model_counts_as_not_there(cached: Path) -> None:
    snapshot = cached / "snapshots" / COMMITS["main"]
    (snapshot / "model.safetensors").rename(snapshot / "model-00001-of-00002.safetensors")
    weight_map = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    index = snapshot / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(ModelError, match="not in the cache"):
        load(Source("someone/tiny", offline=True))


def test_a_cached_models_facts_are_known_without_a_request(cached: Path) -> None:
    facts, _ = describe("someone/tiny")
    assert (facts.layers, facts.heads_per_layer, facts.where) == (2, 3, "in the cache")


@pytest.mark.parametrize("raised", [ValueError("no JSON"), RuntimeError("peer closed"), OSError()])
def test_whatever_a_network_library_raises_is_told_as_out_of_reach(
    monkeypatch: pytest.MonkeyPatch, raised: Exception
) -> None:
    def snapshot(*_: object, local_files_only: bool = False, **__: object) -> str:
        raise hub_errors.LocalEntryNotFoundError("not there") if local_files_only else raised

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    with pytest.raises(ModelError, match="could not be reached"):
        catalog.fetch("someone/tiny", None, offline=False, quiet=False)


def test_without_a_network_the_error_says_how_to_fetch_the_model_once(run: Run) -> None:
    ended = run("show", "a", "-m", "someone/other")
    assert ended.status is ExitStatus.MODEL
    assert "could not be reached" in ended.err
    assert "hf download someone/other" in ended.err
    assert ended.err.count("\n") == 1


def test_nothing_but_safetensors_is_ever_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def snapshot(*_: object, allow_patterns: list[str] | None = None, **__: object) -> str:
        if allow_patterns is None:  # the look into the cache
            raise hub_errors.LocalEntryNotFoundError("not there")
        asked.append(allow_patterns)
        return "/fetched"

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    assert catalog.fetch("someone/tiny", None, offline=False, quiet=False) == Path("/fetched")
    assert all(name.endswith((".json", ".safetensors", ".txt", ".jinja")) for name in asked[0])


def test_a_configuration_out_of_reach_is_asked_for_once_and_told_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, run: Run, logged: list[logging.LogRecord]
) -> None:
    asked: list[str] = []

    def out_of_reach(self: object, name: str, **_: object) -> None:
        asked.append(name)
        huggingface_hub.utils.logging.get_logger("huggingface_hub").warning("Retrying")
        raise OSError("no route")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", out_of_reach)
    ended = run("params", "gpt4")
    assert ended.status is ExitStatus.MODEL
    assert asked == ["gpt4"]
    assert "'gpt4' is not in the cache" in ended.err
    assert "; did you mean gpt2 or gpt3?" in ended.err
    assert "could not be reached" in ended.err
    assert ended.err.count("\n") == 1
    assert logged == []


def test_a_folder_of_the_name_of_a_hub_model_is_pointed_to(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gpt2").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "the folder gpt2 here is ./gpt2" in run("show", "a", "-m", "gpt2", "--offline").err
    (tmp_path / "gpt2").rmdir()
    assert "./gpt2" not in run("show", "a", "-m", "gpt2", "--offline").err
