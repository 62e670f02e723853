"""A model from a user's own text: held-out loss, seeds, interruptions, damage."""

import itertools
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from attnviz.data.plan import Plan
from attnviz.errors import ExitStatus, InputError, OutputError, UsageError
from attnviz.models.gpt import GPT
from attnviz.training import own
from attnviz.training.own import Point
from attnviz.training.world.texts import texts
from tests.conftest import Run

TEXT = "\n".join(text.source for text in itertools.islice(texts(0), 400))
PLAN = Plan(n_layer=1, n_head=2, n_embd=16, context=16, vocab=400, max_steps=12, batch=4)


@pytest.fixture(autouse=True)
def one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "WORKERS", 1)
    monkeypatch.setattr(own, "SHARD", 4)


def trained(folder: Path, plan: Plan = PLAN, *, resume: bool = False) -> dict[str, torch.Tensor]:
    corpus, plan = own.begin(TEXT, plan, folder, resume=resume)
    own.train_model(corpus, plan, folder, lambda _: None)
    return load_file(folder / "model.safetensors")


def test_the_held_out_loss_counts_every_token_once() -> None:
    corpus = own.prepare(TEXT, PLAN)
    flat = GPT(own.sizes(PLAN, corpus.vocabulary))
    with torch.no_grad():
        flat.ln_f.weight.zero_()
        flat.ln_f.bias.zero_()  # all logits are 0: every token costs log2 V
    expected = (len(corpus.held_out) - 2) * math.log2(corpus.vocabulary) / corpus.held_out_bytes
    assert own.held_out_loss(flat, corpus) == pytest.approx(expected, rel=1e-6)


def test_what_is_held_out_is_the_end_of_the_text_and_not_trained_on() -> None:
    corpus = own.prepare(TEXT, PLAN)
    decode = corpus.tokenizer.decode
    assert decode(corpus.train.tolist()) + decode(corpus.held_out.tolist()) == TEXT
    assert corpus.held_out_bytes == len(decode(corpus.held_out.tolist()).encode())


def test_the_same_seed_gives_the_same_weights_and_another_does_not(tmp_path: Path) -> None:
    first, again = trained(tmp_path / "a"), trained(tmp_path / "b")
    other = trained(tmp_path / "c", Plan(**{**PLAN.__dict__, "seed": 1}))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_an_interrupted_training_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole")
    folder = tmp_path / "parts"
    corpus, plan = own.begin(TEXT, PLAN, folder, resume=False)

    def stop(point: Point) -> None:
        if point.progress.step == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        own.train_model(corpus, plan, folder, stop)
    assert (folder / own.STATE).is_file()
    resumed = trained(folder, resume=True)
    for name, tensor in whole.items():
        torch.testing.assert_close(resumed[name], tensor, atol=0, rtol=0)


def test_the_folder_holds_the_weights_that_did_best(tmp_path: Path) -> None:
    corpus, plan = own.begin(TEXT, PLAN, tmp_path, resume=False)
    seen: list[float] = []
    outcome = own.train_model(corpus, plan, tmp_path, lambda point: seen.append(point.held_out))
    assert outcome.held_out == pytest.approx(min(seen))


def test_training_lowers_the_held_out_loss(tmp_path: Path) -> None:
    plan = Plan(**{**PLAN.__dict__, "max_steps": 60, "n_embd": 32})
    corpus, plan = own.begin(TEXT, plan, tmp_path, resume=False)
    outcome = own.train_model(corpus, plan, tmp_path, lambda _: None)
    untrained = math.log2(corpus.vocabulary) * (len(corpus.held_out) - 2) / corpus.held_out_bytes
    assert outcome.held_out < untrained - 0.5


def test_another_text_is_no_text_to_go_on_with(tmp_path: Path) -> None:
    corpus, plan = own.begin(TEXT, PLAN, tmp_path, resume=False)

    def stop(_: Point) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        own.train_model(corpus, plan, tmp_path, stop)
    with pytest.raises(UsageError, match="had another text"):
        own.begin(TEXT + " more", PLAN, tmp_path, resume=True)


def test_too_little_text_is_told_with_what_is_enough() -> None:
    with pytest.raises(InputError, match=r"too little to train on; give some 680 or more"):
        own.prepare("a few words", PLAN)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    corpus, plan = own.begin(TEXT, PLAN, tmp_path / "file" / "model", resume=False)
    with pytest.raises(OutputError, match="cannot be written"):
        own.train_model(corpus, plan, tmp_path / "file" / "model", lambda _: None)


def test_a_full_disk_leaves_the_best_model_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, plan = own.begin(TEXT, PLAN, tmp_path, resume=False)
    keep, kept = own._keep, []

    def full(*arguments: object) -> None:
        if len(kept) == 2:
            raise OSError(28, "No space left on device")
        kept.append(keep(*arguments))  # type: ignore[arg-type]
        shutil.copy(tmp_path / "model.safetensors", tmp_path / "copy")

    monkeypatch.setattr(own, "_keep", full)
    with pytest.raises(OutputError, match="No space left"):
        own.train_model(corpus, plan, tmp_path, lambda _: None)
    assert (tmp_path / "model.safetensors").read_bytes() == (tmp_path / "copy").read_bytes()
    assert not list(tmp_path.glob(".attnviz-*"))


SMALL = ["--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--context", "16"]
SMALL += ["--vocab", "400", "--max-steps", "8", "--batch", "4"]


def test_the_command_makes_a_folder_that_show_takes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    folder = tmp_path / "model"
    ended = run("train", str(tmp_path / "text.txt"), "-o", str(folder), *SMALL)
    assert ended.status is ExitStatus.OK, ended.err
    assert "interpolated trigram model" in ended.out
    assert {path.name for path in folder.iterdir()} == {
        *("config.json", "model.safetensors", "tokenizer.json"),
        *("card.json", "loss.png", "training.json"),
    }
    assert (folder / "loss.png").read_bytes().startswith(b"\x89PNG")
    shown = run("show", "the creature was blue", "-m", str(folder), "-f", "json")
    assert np.array(json.loads(shown.out)["patterns"]).shape[0] == 1
    assert "bits per byte" in run("models", str(folder)).out


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["nowhere.txt", "-o", "m"], ExitStatus.INPUT, "no file 'nowhere.txt'"),
        (["t.txt", "-o", "."], ExitStatus.USAGE, "not an empty folder"),
        (["t.txt", "-o", "m", "--resume"], ExitStatus.USAGE, "no unfinished training"),
        (["t.txt", "-o", "m", "--n-head", "3"], ExitStatus.USAGE, "not divisible by 3 heads"),
        (["t.txt", "-o", "m"], ExitStatus.INPUT, "too little to train on"),
    ],
)
def test_each_error_is_one_sentence_and_nothing_is_written(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    status: ExitStatus,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text("a few words")
    ended = run("train", *arguments)
    assert ended.status is status
    assert says in ended.err
    assert ended.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["t.txt"]


def test_a_training_interrupted_before_its_first_state_can_go_on(tmp_path: Path) -> None:
    corpus, plan = own.begin(TEXT, PLAN, tmp_path, resume=False)
    own._keep(tmp_path, GPT(own.sizes(plan, corpus.vocabulary)), corpus, plan, [])
    own.check_folder(tmp_path, resume=True)
    with pytest.raises(UsageError, match="or go on with --resume"):
        own.check_folder(tmp_path, resume=False)
    corpus, plan = own.begin(TEXT, PLAN, tmp_path, resume=True)
    own.train_model(corpus, plan, tmp_path, lambda _: None)


def test_a_damaged_state_is_told(tmp_path: Path) -> None:
    corpus, plan = own.begin(TEXT, PLAN, tmp_path, resume=False)
    own._keep(tmp_path, GPT(own.sizes(plan, corpus.vocabulary)), corpus, plan, [])
    (tmp_path / own.STATE).write_bytes(b"no state")
    with pytest.raises(UsageError, match="is damaged; begin anew"):
        own.begin(TEXT, PLAN, tmp_path, resume=True)


def test_a_training_that_diverges_ends_with_a_sentence(tmp_path: Path) -> None:
    plan = Plan(**{**PLAN.__dict__, "lr": 1e30})
    corpus, plan = own.begin(TEXT, plan, tmp_path, resume=False)
    with pytest.raises(UsageError, match="begin anew with a smaller --lr"):
        own.train_model(corpus, plan, tmp_path, lambda _: None)


def test_what_was_settled_cannot_be_changed_on_the_way(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(TEXT)
    ended = run(
        "train", str(tmp_path / "t.txt"), "-o", str(tmp_path / "m"), "--resume", "--context", "32"
    )
    assert ended.status is ExitStatus.USAGE
    assert "--context was settled when this training began" in ended.err
