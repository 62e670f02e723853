"""A head that looks at what is copied is found, and remembered."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from attnviz.commands.generate.run import NewToken, Tell, Writing, answering, streamed
from attnviz.commands.heads.retrieval import (
    KEPT,
    Needles,
    haystacks,
    heads_for_answers,
    keep,
    known,
    measure_retrieval,
)
from attnviz.errors import ModelError
from attnviz.inputs.prompts import cut_prompt
from attnviz.kit.cache import kept_in
from attnviz.kit.prepare import HeadOptions, TextOptions
from attnviz.models.catalog import Source, load
from attnviz.models.folder.config import GPTConfig
from attnviz.models.scratch.gpt import GPT
from attnviz.models.scratch.native import save_checkpoint
from attnviz.records.heads import Head
from tests.conftest import Run, bytes_tokenizer, tiny_model
from tests.reading import on_one_line

if TYPE_CHECKING:
    pass

WORDS, PLACES = 257, 64
NO_RESTS = np.zeros(0, np.float32)


def planted(*, matching: bool = True) -> GPT:
    """A model that copies, with weights set by hand; one head in each of two layers.

    The stream has a place for each token, each position, and each token before. The first head
    attends to the position before, and writes its token into the third part; the second looks
    for a key whose token before is the query's own.
    """
    width = 2 * WORDS + PLACES
    token, place = slice(0, WORDS), slice(WORDS, WORDS + PLACES)
    before = slice(WORDS + PLACES, width)
    model = GPT(GPTConfig(WORDS, PLACES, width, n_layer=2, n_head=1, n_inner=1))
    sharp = 40.0
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.wte.weight[:, token] = torch.eye(WORDS)
        model.wpe.weight[:, place] = torch.eye(PLACES)
        for block in model.h:
            block.ln_1.weight.fill_(1.0)
            block.ln_2.weight.fill_(1.0)
        model.ln_f.weight.fill_(1.0)
        first, second = model.h[0].attn, model.h[1].attn
        first.w_q.weight[place, place] = sharp * torch.eye(PLACES).roll(-1, 1)
        first.w_k.weight[place, place] = sharp * torch.eye(PLACES)
        first.w_v.weight[token, token] = torch.eye(WORDS)
        first.w_o.weight[token, before] = torch.eye(WORDS)
        if matching:
            second.w_q.weight[token, token] = sharp * torch.eye(WORDS)
            second.w_k.weight[before, token] = sharp * torch.eye(WORDS)
    return model.eval()


def saved(folder: Path, model: GPT) -> str:
    save_checkpoint(folder, model, bytes_tokenizer())
    return str(folder)


def test_a_planted_head_has_the_score_1_and_a_head_that_does_not_match_none(tmp_path: Path) -> None:
    needles = Needles(samples=2)
    copying = load(Source(saved(tmp_path / "copies", planted())))
    found = measure_retrieval(copying, needles, TextOptions())
    assert dict(found.scores) == {Head(0, 0): 0.0, Head(1, 0): 1.0}
    assert found.heads == [Head(1, 0)]
    other = load(Source(saved(tmp_path / "does-not", planted(matching=False))))
    assert measure_retrieval(other, needles, TextOptions()).heads == []


def writing() -> GPT:
    """The planted model, whose second head also writes what it looks at, as what it is."""
    model, token = planted(), slice(0, WORDS)
    with torch.no_grad():
        second = model.h[1].attn
        second.w_v.weight[token, token] = torch.eye(WORDS)
        second.w_o.weight[token, token] = torch.eye(WORDS)
    return model


def test_the_head_that_writes_the_copied_token_is_found_and_one_that_only_looks_is_not(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    needles = Needles(samples=1)
    looks = load(Source(saved(tmp_path / "looks", planted())))
    assert measure_retrieval(looks, needles, TextOptions(), "writes").heads == []
    name = saved(tmp_path / "writes", writing())
    found = measure_retrieval(load(Source(name)), needles, TextOptions(), "writes")
    assert found.heads == [Head(1, 0)]
    rows = run("heads", "--retrieval", "--retrieval-score", "writes", "-m", name, "-f", "jsonl").out
    row = json.loads(rows.splitlines()[0])
    assert (row["layer"], "retrieval" in row) == (1, False)
    measured = known(load(Source(name)))
    assert measured is not None
    assert (measured.score, measured.heads) == ("writes", [Head(1, 0)])


def test_the_score_of_writes_is_that_of_the_published_formula(tmp_path: Path) -> None:
    """Needle minus as many tokens of the filler, by hand in float64: layer norms held fixed."""
    model = tiny_model(seed=3, n_positions=64)
    loaded, needles = load(Source(saved(tmp_path, model))), Needles(samples=1, depths=(0.5,))
    found = dict(measure_retrieval(loaded, needles, TextOptions(), "writes").scores)
    (stack,) = haystacks(loaded, needles)
    assert sorted([*stack.needle, *stack.elsewhere]) == list(range(len(stack.ids) - 9))
    exact = model.double()
    with torch.no_grad():
        stream = exact.embed(torch.tensor([stack.ids]))
        for layer, block in enumerate(exact.h):
            attn, read = block.attn, block.ln_1(stream)[0]
            last = exact.hidden(torch.tensor([stack.ids]))[0]  # (n, d), of the whole model
            size = read.size(1) // attn.n_head
            for head in range(attn.n_head):
                own = slice(head * size, (head + 1) * size)
                q, k, v = (
                    read @ w.weight[:, own] + w.bias[own] for w in (attn.w_q, attn.w_k, attn.w_v)
                )
                scores = (q @ k.T) / size**0.5
                hidden = torch.ones_like(scores).triu(1).bool()
                pattern = scores.masked_fill(hidden, -torch.inf).softmax(dim=1)
                steps = []
                for query, key in stack.copied.items():
                    row = pattern[query][:, None] * (v @ attn.w_o.weight[own])  # (n, d)
                    row = (row - row.mean(dim=1, keepdim=True)) / (
                        last[query].var(unbiased=False) + exact.ln_f.eps
                    ).sqrt()
                    phi = row @ (exact.ln_f.weight * exact.wte.weight[stack.ids[key]])
                    near, far = phi[list(stack.needle)], phi[list(stack.elsewhere)]
                    steps.append(float(near.sum() - len(near) / len(far) * far.sum()))
                assert found[Head(layer, head)] == pytest.approx(np.mean(steps), abs=2e-5)
            stream = exact.through(stream, range(layer, layer + 1))


def test_every_key_of_a_haystack_holds_the_token_that_its_query_predicts(tmp_path: Path) -> None:
    model = load(Source(saved(tmp_path, planted())))
    stacks = list(haystacks(model, Needles()))
    assert len(stacks) == 20
    for stack in stacks:
        assert len(stack.ids) <= PLACES
        for query, key in list(stack.copied.items())[:-1]:
            assert stack.ids[query + 1] == stack.ids[key]
            assert stack.ids.index(stack.ids[key]) == key


def test_scores_are_remembered_for_these_weights_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    name = saved(tmp_path / "model", planted())
    model = load(Source(name))
    assert known(model) is None
    found = measure_retrieval(model, Needles(samples=1), TextOptions())
    assert keep(model, found) == kept_in(model, KEPT)
    assert known(model) == found
    assert heads_for_answers(load(Source(name))) == (Head(1, 0),)
    saved(tmp_path / "model", planted(matching=False))
    assert known(load(Source(name))) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"scores": {"L0H0": 7, "L1H0": "x"}}'])
def test_a_damaged_memory_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model = load(Source(saved(tmp_path / "model", planted())))
    kept_in(model, KEPT).parent.mkdir(parents=True)
    kept_in(model, KEPT).write_text(content)
    assert known(model) is None


def test_the_command_lists_the_heads_and_generate_takes_them(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    name = saved(tmp_path / "model", planted())
    rows = run("heads", "--retrieval", "-m", name, "-f", "jsonl").out.splitlines()
    assert json.loads(rows[0]) == {"model": name, "layer": 1, "head": 0, "retrieval": 1.0}
    assert "retrieval heads (0.1 or more): L1H0" in run("heads", "--retrieval", "-m", name).out
    out = run("generate", "abcdab", "-m", name, "--max-new-tokens", "2").out
    assert "retrieval head L1H0" in on_one_line(out)


class Panic(BaseException):
    """As compiled libraries raise."""


@pytest.mark.parametrize("error", [Panic(), ValueError()])
def test_whatever_ends_the_writing_ends_the_waiting_for_it(error: BaseException) -> None:
    def write(tell: Tell) -> None:
        tell(NewToken(5, np.zeros((1, 2), np.float32), NO_RESTS))
        raise error

    new = streamed(write)
    assert next(new).id == 5
    with pytest.raises(type(error)):
        next(new)


def test_rows_that_are_not_numbers_are_told(tmp_path: Path) -> None:
    model = load(Source(saved(tmp_path, planted())))
    asked = answering(
        model, cut_prompt("ab", None, ()), TextOptions(), Writing(), HeadOptions(heads="L1H0")
    )
    with pytest.raises(ModelError, match="not a number"):
        asked.answer([NewToken(70, np.full((1, 2), np.nan, np.float32), NO_RESTS)])
