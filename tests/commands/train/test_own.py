"""A model from a user's own text: held-out loss, seeds, interruptions, damage."""

import itertools
import json
import math
import os
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from attnviz.commands.train import command as train_command
from attnviz.commands.train import folder as train_folder
from attnviz.commands.train import loop, own
from attnviz.commands.train import plan as train_plan
from attnviz.commands.train.plan import Plan, Point
from attnviz.errors import ExitStatus, InputError, OutputError, UsageError
from attnviz.models.catalog import Source, load
from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.native import load_checkpoint
from attnviz.records.capture import Wanted
from attnviz.records.heads import Head
from making.world.texts import texts
from tests.conftest import Run

TEXT = "\n".join(text.source for text in itertools.islice(texts(0), 100))
PLAN = Plan(n_layer=1, n_head=2, n_embd=16, context=16, vocab=400, max_steps=12, batch=4)


@pytest.fixture(autouse=True)
def one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_plan, "WORKERS", 1)
    monkeypatch.setattr(train_plan, "SHARD", 4)


def trained(folder: Path, plan: Plan = PLAN, *, resume: bool = False) -> dict[str, torch.Tensor]:
    training = own.begin(TEXT, plan, folder, resume=resume)
    own.train_model(training, lambda _: None)
    return load_file(folder / "model.safetensors")


def test_the_held_out_loss_counts_every_token_once() -> None:
    corpus = train_folder.prepare(TEXT, PLAN)
    flat = GPT(train_plan.sizes(PLAN, corpus.vocabulary))
    with torch.no_grad():
        flat.ln_f.weight.zero_()
        flat.ln_f.bias.zero_()  # all logits are 0: every token costs log2 V
    expected = (len(corpus.held_out) - 2) * math.log2(corpus.vocabulary) / corpus.held_out_bytes
    assert own.held_out_loss(flat, corpus) == pytest.approx(expected, rel=1e-6)


def test_what_is_held_out_is_the_end_of_the_text_and_not_trained_on() -> None:
    corpus = train_folder.prepare(TEXT, PLAN)
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
    training = own.begin(TEXT, PLAN, folder, resume=False)

    def stop(point: Point) -> None:
        if point.progress.step == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        own.train_model(training, stop)
    assert (folder / train_folder.STATE).is_file()
    resumed = trained(folder, resume=True)
    for name, tensor in whole.items():
        torch.testing.assert_close(resumed[name], tensor, atol=0, rtol=0)


def test_the_folder_holds_the_weights_that_did_best(tmp_path: Path) -> None:
    training = own.begin(TEXT, PLAN, tmp_path, resume=False)
    seen: list[float] = []
    outcome = own.train_model(training, lambda point: seen.append(point.held_out))
    assert outcome.held_out == pytest.approx(min(seen))


def test_training_lowers_the_held_out_loss(tmp_path: Path) -> None:
    plan = Plan(**{**PLAN.__dict__, "max_steps": 60, "n_embd": 32})
    training = own.begin(TEXT, plan, tmp_path, resume=False)
    outcome = own.train_model(training, lambda _: None)
    text = training.text
    untrained = math.log2(text.vocabulary) * text.predicted / text.held_out_bytes
    assert outcome.held_out < untrained - 0.5


def test_the_loss_curve_begins_before_the_first_step(tmp_path: Path) -> None:
    training = own.begin(TEXT, PLAN, tmp_path, resume=False)
    outcome = own.train_model(training, lambda _: None)
    assert [point.progress.step for point in outcome.points] == [0, 4, 8, 12]
    fresh = loop.fresh_model(train_plan.sizes(PLAN, training.text.vocabulary), PLAN.seed)
    assert outcome.points[0].held_out == pytest.approx(own.held_out_loss(fresh, training.text))


def test_another_text_is_no_text_to_go_on_with(tmp_path: Path) -> None:
    training = own.begin(TEXT, PLAN, tmp_path, resume=False)

    def stop(_: Point) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        own.train_model(training, stop)
    with pytest.raises(UsageError, match="had another text"):
        own.begin(TEXT + " more", PLAN, tmp_path, resume=True)


def test_too_little_text_is_told_with_what_is_enough() -> None:
    with pytest.raises(InputError, match=r"too little to train on; give some 680 or more"):
        train_folder.prepare("a few words", PLAN)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="is not a folder"):
        own.begin(TEXT, PLAN, tmp_path / "file" / "model", resume=False)


def kept_files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Each file of the model: which one it is on the disk, and what it holds."""
    names = ("config.json", "model.safetensors", "tokenizer.json")
    return {name: ((folder / name).stat().st_ino, (folder / name).read_bytes()) for name in names}


def test_a_full_disk_leaves_the_best_model_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = own.begin(TEXT, PLAN, tmp_path, resume=False)
    save, kept = train_folder.save_checkpoint, []

    def full(folder: Path, model: GPT, tokenizer: Tokenizer) -> None:
        save(folder, model, tokenizer)
        if len(kept) == 2:
            (folder / "model.safetensors").write_bytes(b"half")
            raise OSError(28, "No space left on device")
        kept.append(load_file(folder / "model.safetensors"))

    monkeypatch.setattr(train_folder, "save_checkpoint", full)
    with pytest.raises(OutputError, match="No space left"):
        own.train_model(training, lambda _: None)
    found = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(found[name], tensor) for name, tensor in kept[-1].items())
    assert math.isfinite(own.held_out_loss(load_checkpoint(tmp_path), training.text))
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".attnviz-")]


@pytest.mark.parametrize("fails", ["model.safetensors", train_folder.ABOUT])
def test_a_failure_between_two_renames_leaves_files_that_belong_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    training = own.begin(TEXT, PLAN, tmp_path, resume=False)
    rename, renamed, before = os.replace, [], {}

    def failing(source: Path, target: Path) -> None:
        if Path(target).name == fails and len(renamed) == 2:
            raise OSError(5, "Input/output error")
        rename(source, target)
        if Path(target).name == fails:
            renamed.append(fails)
            before.update(kept_files(tmp_path))

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OutputError, match="Input/output error"):
        own.train_model(training, lambda _: None)
    after = kept_files(tmp_path)
    for name in ("config.json", "tokenizer.json"):
        assert after[name] == before[name]
    if fails == "model.safetensors":
        assert after[fails] == before[fails]
    assert not list(tmp_path.glob("*.partial"))
    train_folder.check_folder(tmp_path, resume=True)
    assert math.isfinite(own.held_out_loss(load_checkpoint(tmp_path), training.text))


def test_two_workers_keep_the_promise_of_the_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_workers: None
) -> None:
    monkeypatch.setattr(train_plan, "WORKERS", 2)
    plan = Plan(**{**PLAN.__dict__, "max_steps": 4})
    first, again = trained(tmp_path / "a", plan), trained(tmp_path / "b", plan)
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_every_step_is_told_and_each_loss_once_a_shard(tmp_path: Path) -> None:
    training = own.begin(TEXT, PLAN, tmp_path, resume=False)
    steps: list[int] = []
    points: list[int] = []
    own.train_model(training, lambda p: points.append(p.progress.step), steps.append)
    assert (steps, points) == ([*range(1, 13)], [0, 4, 8, 12])


def points_of(*losses: float) -> list[Point]:
    """A training of 50 steps between two losses."""
    empty = train_plan.UNTRAINED
    return [Point(replace(empty, step=50 * n), loss) for n, loss in enumerate(losses)]


@pytest.mark.parametrize(
    ("losses", "says"),
    [
        (
            (5.0, 4.0, 3.5, 3.2, 3.0),
            r": 3.500 \(step 100\), 3.200 \(step 150\), 3.000 \(step 200\); -0.200 since step 150$",
        ),
        ((5.0, 3.0, 2.5, 2.6, 2.8), r"; \+0.200 since step 150; lowest at step 100: 2.500, which"),
        ((5.0, 4.0), r": 5.000 \(step 0\), 4.000 \(step 50\)$"),  # no earlier quarter
    ],
)
def test_the_last_losses_are_told_with_their_change_and_no_forecast(
    losses: tuple[float, ...], says: str
) -> None:
    told = train_plan.last_losses(points_of(*losses))
    assert re.search(says, told), told


def test_a_head_formed_at_the_first_kept_weights_from_which_on_it_had_its_role() -> None:
    head = train_plan.FormedHead("induction", Head(1, 0), 0.5, 40)
    has, lacks = (("L1H0", "induction"),), (("L1H0", "self"),)
    losses = (5.0, 4.0, 3.0, 2.0, 1.0, 1.5)
    roles = ((), has, lacks, has, has, ())
    points = [replace(p, roles=r) for p, r in zip(points_of(*losses), roles, strict=True)]
    assert train_plan.formed_at(points, head) == 150
    assert train_plan.formed_at(points, replace(head, role="sink")) is None


def test_each_loss_has_a_line_with_the_time_left_and_a_quiet_run_none(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    asked = ("train", str(tmp_path / "text.txt"), *SMALL)
    told = run(*asked, "-o", str(tmp_path / "a")).err.splitlines()
    loss = r"held-out loss \d\.\d{3} bits per byte"
    patterns = (
        rf"step 0 of 8: {loss} \(untrained\), 0 s",
        rf"step 4 of 8: {loss}, \d+ s, about \d+ seconds? left",
        rf"step 8 of 8: {loss}, \d+ s",
    )
    assert all(map(re.fullmatch, patterns, told)), told
    assert len(told) == 3
    assert run(*asked, "-o", str(tmp_path / "b"), "-q").err == ""


def test_heads_that_formed_are_named_by_the_metrics_of_the_held_out_text(tmp_path: Path) -> None:
    """Measured again window by window, from the patterns of a capture."""
    plan = replace(PLAN, max_steps=40)
    training = own.begin(TEXT, plan, tmp_path, resume=False)
    outcome = own.train_model(training, lambda _: None)
    formed = own.formed_heads(training)
    model = load(Source(str(tmp_path)))
    size, held_out = plan.context, training.text.held_out
    windows = [held_out[at : at + size] for at in range(0, len(held_out) - size + 1, size)][:64]
    block: list[np.ndarray] = []
    for window in windows:
        model.run(window.tolist(), Wanted({0: (0, 1)}), lambda rows: block.append(rows.weights))
    patterns = np.concatenate(block, axis=1).reshape(2, len(windows), size, size)
    diagonals = np.arange(1, size)
    expected = {
        "previous token": patterns[:, :, diagonals, diagonals - 1].mean(axis=(1, 2)),
        "self": np.einsum("hwii->hwi", patterns).mean(axis=(1, 2)),
        "sink": patterns[:, :, :, 0].mean(axis=(1, 2)),
    }
    for each in formed:
        if each.role in expected and each.role != "sink":
            assert each.value == pytest.approx(expected[each.role][each.head.head], abs=0.02)
    assert formed  # a small model attends to much alike: its heads are broad
    training.finish(outcome, ["text.txt"], formed)
    card = json.loads((tmp_path / "card.json").read_text())
    told = {figure["behaviour"] for figure in card["figures"]} - {"language"}
    assert told == {each.role for each in formed if each.formed}


def test_what_formed_is_told_by_role_and_what_did_not_is_counted() -> None:
    formed = [
        train_plan.FormedHead("induction", Head(1, 0), 0.512, 40),
        train_plan.FormedHead("previous token", Head(0, 1), 0.81, 60),
        train_plan.FormedHead("previous token", Head(0, 2), 0.45, 60),
        train_plan.FormedHead("broad", Head(0, 0), 0.9, 60),
    ]
    points = points_of(5.0, 4.0)
    points[-1] = replace(points[-1], roles=(("L0H1", "previous token"),))
    told = train_command.heads_told(formed, 6, points)
    assert told.endswith(
        "induction: L1H0 0.51; previous token: L0H1 0.81 (from step 50), L0H2 0.45; 1 head broad; "
        "2 heads without a role"
    )
    nearest = train_plan.FormedHead("induction", Head(1, 1), 0.21, 40, formed=False)
    assert train_command.heads_told([*formed[3:], nearest], 1, points).endswith(
        ": none; nearest to one is L1H1: mean weight on the tokens that followed earlier "
        "occurrences of the query's token 0.21 (induction: from 0.40); 1 head broad"
    )


# ---- the models of single steps ----


def test_models_of_single_steps_are_those_that_the_training_went_through(tmp_path: Path) -> None:
    plan = Plan(**{**PLAN.__dict__, "keep_every": 5})
    best = trained(tmp_path / "kept", plan)
    kept = sorted(path.name for path in (tmp_path / "kept").glob("step-*"))
    assert kept == ["step-000000", "step-000005", "step-000010", "step-000012"]
    weights = {name: load_checkpoint(tmp_path / "kept" / name).state_dict() for name in kept}
    corpus = train_folder.prepare(TEXT, plan)
    fresh = loop.fresh_model(train_plan.sizes(plan, corpus.vocabulary), plan.seed).state_dict()
    last = torch.load(tmp_path / "kept" / train_folder.STATE, weights_only=True)["model"]
    trained(tmp_path / "every", Plan(**{**PLAN.__dict__, "keep_every": 1}))
    again = load_checkpoint(tmp_path / "every" / "step-000005").state_dict()
    for name, expected in (("step-000000", fresh), ("step-000012", last), ("step-000005", again)):
        assert all(torch.equal(weights[name][key], tensor) for key, tensor in expected.items())
    plain = trained(tmp_path / "plain")  # keeping changes nothing
    assert all(torch.equal(best[name], plain[name]) for name in plain)


def test_a_training_that_goes_on_keeps_the_same_models(tmp_path: Path) -> None:
    plan = Plan(**{**PLAN.__dict__, "keep_every": 3})
    trained(tmp_path / "whole", plan)
    folder = tmp_path / "parts"
    training = own.begin(TEXT, plan, folder, resume=False)

    def stop(step: int) -> None:
        if step == 10:  # the state is that of step 8, and step 9 was kept
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        own.train_model(training, lambda _: None, stop)
    assert (folder / "step-000009").is_dir()
    trained(folder, PLAN, resume=True)  # the plan is that of the folder
    files = {path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole").rglob("step*/*")}
    assert len(files) == 5 * 4
    for file in files:
        assert (folder / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_a_full_disk_leaves_no_part_of_a_kept_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = own.begin(TEXT, Plan(**{**PLAN.__dict__, "keep_every": 3}), tmp_path, resume=False)
    save = train_folder.save_checkpoint

    def full(folder: Path, model: GPT, tokenizer: Tokenizer) -> None:
        save(folder, model, tokenizer)
        if folder.name == "step-000006":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(train_folder, "save_checkpoint", full)
    with pytest.raises(OutputError, match="No space left"):
        own.train_model(training, lambda _: None)
    kept = sorted(path.name for path in tmp_path.iterdir() if path.is_dir())
    assert kept == ["step-000000", "step-000003"]


def test_the_command_keeps_models_that_show_and_models_take(run: Run, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    folder = tmp_path / "model"
    ended = run("train", str(tmp_path / "text.txt"), "-o", str(folder), *SMALL, "--keep-every", "3")
    assert ended.status is ExitStatus.OK, ended.err
    kept = sorted(folder.glob("step-*"))
    assert [path.name for path in kept] == [f"step-{n:06}" for n in (0, 3, 6, 8)]
    patterns = []
    for each in kept:
        shown = run("show", "the creature was blue", "-m", str(each), "-f", "json")
        patterns.append(np.array(json.loads(shown.out)["patterns"]))
    assert not np.array_equal(patterns[0], patterns[-1])
    card = run("models", str(kept[1])).out
    assert "as of step 3 of 8" in card
    assert "bits per byte" in card


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
        *("card.json", "loss.png", "training.json", "training.pt"),
    }
    assert (folder / "loss.png").read_bytes().startswith(b"\x89PNG")
    shown = run("show", "the creature was blue", "-m", str(folder), "-f", "json")
    assert np.array(json.loads(shown.out)["patterns"]).shape[0] == 1
    card = run("models", str(folder)).out
    assert "bits per byte" in card
    assert "bar" not in card.split()
    corpus = train_folder.prepare(TEXT, Plan(context=16, vocab=400))
    assert f"{len(corpus.held_out) - 2:,}" in card


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["nowhere.txt", "-o", "m"], ExitStatus.INPUT, "no file 'nowhere.txt'"),
        (["t.txt", "-o", "."], ExitStatus.USAGE, "not an empty folder"),
        (["t.txt", "-o", "m", "--resume"], ExitStatus.USAGE, "there is no training in 'm'"),
        (["t.txt", "-o", "m", "--resume", "--seed", "1"], ExitStatus.USAGE, "there is no training"),
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
    training = own.begin(TEXT, PLAN, tmp_path, resume=False)
    training.keep(GPT(train_plan.sizes(PLAN, training.text.vocabulary)), [])
    train_folder.check_folder(tmp_path, resume=True)
    with pytest.raises(UsageError, match="or go on with resume"):
        train_folder.check_folder(tmp_path, resume=False)
    training = own.begin(TEXT, PLAN, tmp_path, resume=True)
    own.train_model(training, lambda _: None)


def test_a_damaged_state_is_told(tmp_path: Path) -> None:
    training = own.begin(TEXT, PLAN, tmp_path, resume=False)
    training.keep(GPT(train_plan.sizes(PLAN, training.text.vocabulary)), [])
    (tmp_path / train_folder.STATE).write_bytes(b"no state")
    with pytest.raises(UsageError, match="is damaged; begin anew"):
        own.begin(TEXT, PLAN, tmp_path, resume=True)


def test_a_training_that_diverges_ends_with_a_sentence(tmp_path: Path) -> None:
    plan = Plan(**{**PLAN.__dict__, "lr": 1e30, "keep_every": 3})
    training = own.begin(TEXT, plan, tmp_path, resume=False)
    with pytest.raises(UsageError, match="begin anew with a smaller lr"):
        own.train_model(training, lambda _: None)
    assert [path.name for path in tmp_path.glob("step-*")] == ["step-000000"]


@pytest.fixture
def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[str]]:
    """A training command that Ctrl-C ends at a step, and its arguments."""
    train_model = own.train_model

    def prepare(at: int) -> list[str]:
        (tmp_path / "t.txt").write_text(TEXT)

        def stopped(training, report, stepped):  # type: ignore[no-untyped-def]
            def stop(step: int) -> None:
                stepped(step)
                if step == at:
                    raise KeyboardInterrupt

            if not at:
                raise KeyboardInterrupt
            return train_model(training, report, stop)

        monkeypatch.setattr(own, "train_model", stopped)
        return ["train", str(tmp_path / "t.txt"), "-o", str(tmp_path / "m")]

    return prepare


@pytest.mark.parametrize(
    ("at", "says"),
    [
        (0, "nothing was trained yet"),
        (3, "interrupted at step 3, before any loss was measured"),
        (6, r"interrupted at step 6; .* keeps the model of step 4, held-out loss \d\.\d+ bits"),
    ],
)
def test_an_interruption_says_what_it_leaves(
    run: Run, tmp_path: Path, interrupted: Callable[[int], list[str]], at: int, says: str
) -> None:
    ended = run(*interrupted(at), *SMALL)
    assert ended.status is ExitStatus.INTERRUPTED
    assert re.search(says, ended.err)
    assert (tmp_path / "m" / "card.json").is_file() == (at == 6)


def test_an_interrupted_training_has_a_card_and_can_still_go_on(
    run: Run, tmp_path: Path, interrupted: Callable[[int], list[str]]
) -> None:
    arguments = interrupted(6)
    run(*arguments, *SMALL)
    assert "interrupted; as of step 4" in run("models", str(tmp_path / "m")).out
    interrupted(1000)
    assert run(*arguments, "--resume").status is ExitStatus.OK
    assert "as of step" not in run("models", str(tmp_path / "m")).out


def test_a_finished_training_goes_on_by_the_line_that_it_ends_with(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my text.txt").write_text(TEXT)
    first = run("train", "my text.txt", "-o", "m", *SMALL)
    (line,) = re.findall(r"to go on:\n  attnviz (.*)", first.out)
    assert line == "train 'my text.txt' -o m --resume --max-steps 16"
    further = run(*shlex.split(line))
    assert further.status is ExitStatus.OK, further.err
    steps = re.findall(r"^step (\d+) of 16: held-out", further.err, re.MULTILINE)
    assert steps == ["8", "12", "16"]
    for more in ([], ["--max-steps", "16"]):
        done = run("train", "my text.txt", "-o", "m", "--resume", *more)
        assert "has done its 16 steps; to go on, give more, such as --max-steps 32" in done.err


@pytest.mark.parametrize("more", [["--resume", "--max-steps", "100"], ["--resume"], []])
def test_a_training_without_its_state_says_so(run: Run, tmp_path: Path, more: list[str]) -> None:
    for name in (train_folder.ABOUT, train_folder.CARD):
        (tmp_path / name).write_text("{}")
    (tmp_path / "t.txt").write_text(TEXT)
    ended = run("train", str(tmp_path / "t.txt"), "-o", str(tmp_path), *more)
    assert ended.status is ExitStatus.USAGE
    assert "has lost its training.pt, so it cannot be continued; choose another" in ended.err


def test_what_was_settled_cannot_be_changed_on_the_way(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(TEXT)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / train_folder.ABOUT).write_text("{}")
    ended = run(
        "train", str(tmp_path / "t.txt"), "-o", str(tmp_path / "m"), "--resume", "--context", "32"
    )
    assert ended.status is ExitStatus.USAGE
    assert "--context was set when this training began" in ended.err
