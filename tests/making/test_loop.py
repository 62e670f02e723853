"""The loop and its steps: an interrupted run ends with the weights of an uninterrupted one."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from attnviz.commands.train.loop import IGNORED, fresh_model, train
from attnviz.commands.train.plan import Recipe, TrainingProgress
from attnviz.models.attention import attached
from attnviz.models.folder.config import GPTConfig
from attnviz.models.scratch.gpt import GPT
from making import tokenizer as tokenizers
from making.asking import (
    GAIN,
    HEADS,
    LAYER,
    N_ASKED,
    Around,
    Asking,
    AskingBatch,
    AskingLoss,
    fresh_asking,
)
from making.data import Packing, WorldBatches
from making.kept import Keeper, Streams, keeper, mixed
from making.muon import Muon, muon_and_adamw, orthogonal
from making.objective import Objective
from making.recipe import BuiltinRecipe
from making.sampled import cross_entropy
from tests.conftest import slow

TINY = GPTConfig(tokenizers.VOCABULARY, n_positions=256, n_embd=8, n_layer=LAYER + 1, n_head=4)
RECIPE = BuiltinRecipe(steps=4, shard=2)


class Interrupted(Exception):
    """Raised by a test in the middle of a run."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As the command has it, so that sums are always made in the same order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def source(world_tokenizer: Tokenizer) -> WorldBatches:
    packing = Packing(TINY.n_positions, shapes=((4, 64), (2, 128)), natural=0.0)
    return WorldBatches(world_tokenizer.to_str(), packing)


def run(
    source: WorldBatches, state: Path, recipe: BuiltinRecipe, *, stop_at: int | None = None
) -> Asking:
    def report(progress: TrainingProgress) -> None:
        assert math.isfinite(progress.loss)
        if progress.step == stop_at:
            raise Interrupted

    model = fresh_asking(TINY, recipe.seed)
    goal = Objective(recipe, kept_of(fresh_model(TINY, 1), source))
    train(model, source, recipe, report, state, loss=goal, optimizers=muon_and_adamw)
    return model


def kept_of(model: GPT, source: WorldBatches) -> Keeper:
    return keeper(model, Tokenizer.from_str(source.tokenizer))


@pytest.mark.parametrize("workers", [slow(1), 2])
def test_an_interrupted_run_resumes_to_the_same_weights(
    source: WorldBatches, tmp_path: Path, quick_workers: None, workers: int
) -> None:
    recipe = replace(RECIPE, workers=workers)
    whole = run(source, tmp_path / "whole.pt", recipe)
    with pytest.raises(Interrupted):
        run(source, tmp_path / "parts.pt", recipe, stop_at=2)
    resumed = run(source, tmp_path / "parts.pt", recipe)
    for name, parameter in whole.named_parameters():
        assert torch.equal(parameter, dict(resumed.named_parameters())[name]), name


@pytest.mark.slow
def test_two_workers_take_one_step_along_the_mean_of_their_gradients(
    source: WorldBatches, tmp_path: Path
) -> None:
    plain = BuiltinRecipe(
        steps=1,
        workers=2,
        weight_decay=0.0,
        penalty=0.0,
        clip=math.inf,
        sampled=None,
        asking=0,
        hiding=0,
        idle=0,
        kept=0,
    )
    found = run(source, tmp_path / "state.pt", plain)
    model = fresh_model(TINY, plain.seed).requires_grad_(True)
    for rank in range(2):
        (batch,) = source(f"0 0 {rank}", 1, 0.0)
        logits = model(batch.ids, mask=batch.mask(), positions=batch.positions)
        targets = batch.targets.flatten()
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets, ignore_index=-1)
        (loss / 2).backward()
    before = fresh_model(TINY, plain.seed).wte.weight
    moved = found.wte.weight - before
    # the first step of Adam is the sign of the gradient; where it is tiny, bfloat16 decides
    gradient = model.wte.weight.grad
    assert gradient is not None
    clear = gradient.abs() > gradient.abs().quantile(0.9)
    assert torch.equal(moved[clear].sign(), -gradient[clear].sign())


def test_a_state_of_another_recipe_is_not_resumed(source: WorldBatches, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        run(source, tmp_path / "state.pt", RECIPE, stop_at=2)
    other = replace(RECIPE, learning_rate=1.0)
    with pytest.raises(ValueError, match="another recipe"):
        run(source, tmp_path / "state.pt", other)


def test_the_learning_rate_runs_in_straight_lines_through_its_points() -> None:
    recipe = Recipe(steps=1000, learning_rate=2.0, rates=((0, 0.0), (0.1, 1.0), (0.5, 1.0), (1, 0)))
    assert recipe.rate(0) == 0
    assert recipe.rate(50) == pytest.approx(1.0)
    assert recipe.rate(100) == recipe.rate(500) == 2.0
    assert recipe.rate(750) == pytest.approx(1.0)


def test_a_sample_of_the_vocabulary_gives_the_loss_and_gradients_of_all_of_it() -> None:
    torch.manual_seed(0)
    hidden = (0.25 * torch.randn(60, 16)).requires_grad_()
    embedding = torch.randn(500, 16, requires_grad=True)
    targets = torch.randint(0, 40, (60,))

    def loss_and_grads(sampled: int | None) -> tuple[float, list[torch.Tensor]]:
        loss = cross_entropy(hidden, embedding, targets, sampled)
        return loss.item(), list(torch.autograd.grad(loss, (hidden, embedding)))

    wanted, wanted_grads = loss_and_grads(None)
    by_hand = (hidden @ embedding.t()).double().log_softmax(-1)
    assert wanted == pytest.approx(-by_hand[range(60), targets].mean().item())
    draws = [loss_and_grads(200) for _ in range(200)]
    assert sum(loss for loss, _ in draws) / 200 == pytest.approx(wanted, rel=0.01)
    for grads, expected in zip(zip(*(g for _, g in draws), strict=True), wanted_grads, strict=True):
        assert (sum(grads) / 200 - expected).norm() < 0.05 * expected.norm()


@pytest.mark.parametrize("shape", [(8, 8), (8, 24), (24, 8)])
def test_an_orthogonal_step_has_singular_values_near_one(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    values = torch.linalg.svdvals(orthogonal(torch.randn(3, *shape)))
    assert values.min() > 0.6
    assert values.max() < 1.3


def test_a_step_keeps_the_directions_of_the_gradient() -> None:
    torch.manual_seed(0)
    gradient = torch.randn(1, 6, 6)
    u, _, v = torch.linalg.svd(gradient)
    inner = u.mT @ orthogonal(gradient) @ v.mT  # diagonal, if the singular vectors are the same
    assert torch.allclose(inner, torch.diag_embed(inner.diagonal(dim1=-2, dim2=-1)), atol=1e-4)


def test_matrices_of_one_shape_step_as_they_would_alone() -> None:
    torch.manual_seed(0)
    start, gradients = torch.randn(2, 4, 12), torch.randn(2, 4, 12)
    together = [start[i].clone().requires_grad_() for i in range(2)]
    alone = [start[i].clone().requires_grad_() for i in range(2)]
    optimizers = [Muon(together, 0.1, 0.01), *(Muon([p], 0.1, 0.01) for p in alone)]
    for _ in range(3):
        for parameters in (together, alone):
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient.clone()
        for optimizer in optimizers:
            optimizer.step()
    for one, other in zip(together, alone, strict=True):
        assert torch.allclose(one, other, atol=1e-6)
        assert not torch.equal(one, start[0])


@pytest.fixture
def model() -> Asking:
    return fresh_asking(GPTConfig(50, n_positions=8, n_embd=12, n_layer=LAYER + 1, n_head=3), 0)


def batch_of(ids: list[list[int]], asked: dict[tuple[int, int, int], int]) -> AskingBatch:
    """A batch of one document a row; `asked`: by row, place of the head, and token."""
    texts, named = torch.tensor(ids), torch.full((len(ids), N_ASKED, len(ids[0])), IGNORED)
    for at, word in asked.items():
        named[at] = word
    zeros = torch.zeros_like(texts)
    positions, kept = torch.arange(len(ids[0])).expand_as(texts), torch.ones_like(texts).bool()
    return AskingBatch(texts, positions, zeros, zeros, named, kept)


def asking_loss(model: Asking, batch: AskingBatch, hiding: float = 0.0) -> AskingLoss:
    around = Around()
    with attached(model, around.hooks()):
        model.hidden(batch.ids, mask=batch.mask())
    return model.loss(around, batch, hiding, None)


def test_an_answer_is_read_from_what_the_asked_head_adds(model: Asking) -> None:
    batch = batch_of([[9, 1, 2, 3], [9, 4, 5, 6]], {(0, 0, 2): 7, (1, 1, 3): 49})
    found = asking_loss(model, batch)
    with torch.inference_mode():
        stream = model.hidden(batch.ids, n_layer=LAYER)  # (B, n, d)
        attn, costs = model.h[LAYER].attn, []
        for text, place, query, word in ((0, 0, 2, 7), (1, 1, 3, 49)):
            head, x = HEADS[place], model.h[LAYER].ln_1(stream[text, : query + 1])
            own = slice(4 * head, 4 * head + 4)
            q, k, v = (w(x)[:, own] for w in (attn.w_q, attn.w_k, attn.w_v))
            z = torch.softmax(q[-1] @ k.t() / 2, -1) @ v
            added = z @ attn.w_o.weight[own]
            read = torch.nn.functional.layer_norm(added, (12,)) @ model.answer.weight.t()
            costs.append(-(read @ model.wte.weight.t()).log_softmax(-1)[word])
    assert found.answer.item() == pytest.approx(torch.stack(costs).mean().item(), rel=1e-5)


def test_while_the_matrices_learn_to_read_no_stream_has_a_gradient_from_them(model: Asking) -> None:
    batch, around = batch_of([[9, 1, 2, 3]], {(0, 0, 2): 7}), Around()
    with attached(model, around.hooks()):
        model.hidden(batch.ids, mask=batch.mask())
    found = model.loss(around, batch, 1.0, None, reads=True)
    (found.answer + found.guess).backward()
    assert model.answer.weight.grad.any()
    assert model.h[0].attn.w_v.weight.grad is None


def test_a_kept_text_costs_its_distance_and_a_contraction_is_its_long_form(model: Asking) -> None:
    before = fresh_model(model.config, 1)
    long = torch.arange(50)
    long[7] = 3  # token 7 is short for token 3
    batch = batch_of([[9, 1, 7, 2]], {})
    streams = Streams()
    with attached(model, streams.hooks(LAYER + 1)):
        model.hidden(batch.ids, mask=batch.mask())
    costs = []
    with torch.no_grad():
        for n in range(1, LAYER + 2):
            now = model.hidden(torch.tensor([[9, 1, 7, 2]]), n_layer=n)[0]
            then = before.hidden(torch.tensor([[9, 1, 3, 2]]), n_layer=n)[0]
            costs.append(((now - then) ** 2).sum() / (then**2).sum())
    found = Keeper(before, long).loss(streams, batch)
    assert found.item() == pytest.approx(torch.stack(costs).mean().item(), rel=0.02)  # bfloat16
    same = Streams()
    with attached(before, same.hooks(LAYER + 1)):
        before.hidden(long[batch.ids], mask=batch.mask(), positions=batch.positions)
    assert Keeper(before, long).loss(same, batch).item() == pytest.approx(0, abs=1e-4)


def test_two_models_are_mixed_by_the_layers_of_the_asked_heads(model: Asking) -> None:
    before, after = fresh_model(model.config, 1), model.finished()
    found = dict(mixed(before, after, 0.75, 0.5).named_parameters())
    for name, share in (("h.0.attn.w_q.weight", 0.75), ("wte.weight", 0.5)):
        first, second = (dict(each.named_parameters())[name] for each in (before, after))
        assert torch.allclose(found[name], first + share * (second - first), atol=1e-6), name


def test_rows_that_are_asked_pay_for_their_weight_on_bos_and_themselves(model: Asking) -> None:
    batch = batch_of([[9, 1, 2, 3]], {(0, 0, 2): 7})
    seen = Around()
    with attached(model, seen.hooks()):
        model.hidden(batch.ids, mask=batch.mask())
    row = seen.seen["attn.pattern"][0, HEADS[0], 2]
    assert asking_loss(model, batch).rest.item() == pytest.approx((row[0] + row[2]).item())


def test_where_nothing_is_asked_the_loss_is_0_and_every_matrix_has_a_gradient(
    model: Asking,
) -> None:
    found = asking_loss(model, batch_of([[9, 1, 2, 3]], {}))
    total = found.answer + found.guess + found.rest
    total.backward()
    assert total.item() == 0
    assert model.answer.weight.grad is not None
    assert model.guess.weight.grad is not None


def test_the_stream_before_unlearns_what_its_matrix_guesses(model: Asking) -> None:
    batch = batch_of([[9, 1, 2, 3]], {(0, 0, 2): 7})
    gradients = []
    for hiding in (0.0, 0.5, 1.0):
        model.zero_grad()
        asking_loss(model, batch, hiding).guess.backward()
        first = model.h[0].attn.w_v.weight.grad
        gradients.append(None if first is None else first.clone())
    assert gradients[0] is None or not gradients[0].any()
    assert gradients[1] is not None
    assert gradients[2] is not None
    assert torch.allclose(2 * gradients[1], gradients[2], atol=1e-6)
    x = model.hidden(batch.ids, n_layer=LAYER)[0, 2]
    model.zero_grad()
    read = GAIN * torch.nn.functional.layer_norm(x, (12,)) @ model.guess.weight.t()
    (-(read @ model.wte.weight.t()).log_softmax(-1)[7]).backward()
    assert torch.allclose(model.h[0].attn.w_v.weight.grad, -GAIN * gradients[2], atol=1e-5)


def test_the_finished_model_predicts_the_same_and_has_no_matrix_of_answers(model: Asking) -> None:
    ids = torch.tensor([[1, 2, 3]])
    finished = model.finished()
    assert torch.equal(finished(ids), model(ids))
    gone = set(model.state_dict()) - set(finished.state_dict())
    assert gone == {"answer.weight", "guess.weight"}
