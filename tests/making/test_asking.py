"""The questions of the training, and the model that is left when it is over."""

import pytest
import torch

from attnviz.commands.train.loop import IGNORED
from attnviz.models.folder.config import GPTConfig
from making.asking import Asking, fresh_asking

TINY = GPTConfig(50, n_positions=8, n_embd=8, n_layer=1, n_head=2)


@pytest.fixture
def model() -> Asking:
    return fresh_asking(TINY, 0)


def test_the_loss_is_that_of_the_words_to_name_where_something_is_asked(model: Asking) -> None:
    hidden = torch.randn(2, 3, 8)
    asked = torch.tensor([[IGNORED, 7, IGNORED], [3, IGNORED, 49]])
    answers = model.ln_f(hidden) @ model.answer.weight.t() @ model.wte.weight.t()  # (2, 3, V)
    logs = answers.double().log_softmax(-1)
    expected = -(logs[0, 1, 7] + logs[1, 0, 3] + logs[1, 2, 49]) / 3
    assert model.loss(hidden, asked, None).item() == pytest.approx(expected.item())


def test_where_nothing_is_asked_the_loss_is_0_and_every_matrix_has_a_gradient(
    model: Asking,
) -> None:
    loss = model.loss(torch.randn(1, 4, 8), torch.full((1, 4), IGNORED), None)
    loss.backward()
    assert loss.item() == 0
    assert model.answer.weight.grad is not None


def test_the_finished_model_predicts_the_same_and_has_no_matrix_of_answers(model: Asking) -> None:
    ids = torch.tensor([[1, 2, 3]])
    finished = model.finished()
    assert torch.equal(finished(ids), model(ids))
    assert set(model.state_dict()) - set(finished.state_dict()) == {"answer.weight"}


def test_what_is_asked_reaches_the_heads(model: Asking) -> None:
    ids = torch.tensor([[1, 2, 3]])
    model.loss(model.hidden(ids), torch.tensor([[IGNORED, IGNORED, 1]]), None).backward()
    gradient = model.h[0].attn.w_q.weight.grad
    assert gradient is not None
    assert gradient.abs().sum() > 0
