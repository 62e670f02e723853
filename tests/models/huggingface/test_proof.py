"""Attention functions of a user's own: what is shown is what they did, or nothing is shown.

Each one also writes down, in float64 and by the formula alone, the weights that it used.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import (
    AttentionInterface,
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

import attnviz
from attnviz.errors import AttnvizError, ModelError
from attnviz.models.huggingface.call import AttentionCall, is_foreign
from attnviz.models.huggingface.capture import EXACT
from attnviz.models.loaded import HeadRows, RowReduction
from attnviz.records.capture import KeepEverything, Wanted
from attnviz.records.interventions import CutLink, Interventions
from tests.conftest import bytes_tokenizer

TEXT = "a fluffy blue creature roamed the forest"
NAMED = "the attention function 'mine'"
Change = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Is given scores (…, n_q, n_k) and the positions of queries (n_q, 1) and keys (n_k)."""


def hidden(scores: Tensor, where: Tensor) -> Tensor:
    return scores.masked_fill(where, -torch.inf)


def two_largest(scores: Tensor, i: Tensor, j: Tensor) -> Tensor:
    scores = hidden(scores, j > i)
    return hidden(scores, scores < scores.topk(min(2, len(j))).values[..., -1:])


SCORES: dict[str, Change] = {
    "a temperature": lambda s, i, j: 9 * s,
    "a small temperature": lambda s, i, j: 1.01 * s,
    "the largest alone": two_largest,
    "a soft cap": lambda s, i, j: 0.5 * torch.tanh(s / 0.5),
    "a window": lambda s, i, j: hidden(s, j < i - 2),
    "a linear bias": lambda s, i, j: s - 0.1 * (i - j),
    "a bias of its own": lambda s, i, j: s + torch.cos(j * 1.0),
    "no key but itself": lambda s, i, j: hidden(s, j != i),
    "odd queries alone": lambda s, i, j: s * (1 + i % 2),
    "the last query alone": lambda s, i, j: s * (1 + (i == len(j) - 1) * 1.0),
}
WEIGHTS: dict[str, Callable[[Tensor], Tensor]] = {
    "a sink": lambda s: torch.cat([s, torch.zeros_like(s[..., :1])], -1).softmax(-1)[..., :-1],
    "thirds": lambda s: (s.softmax(-1) - 0.3).relu() + 0.01 * (s > -torch.inf),
    "sigmoids": torch.sigmoid,
}


class Mine:
    """An attention function; `truth` are the weights (h, n_q, n_k) of its calls, in float64."""

    def __init__(
        self,
        change: Change = lambda s, i, j: s,
        weights: Callable[[Tensor], Tensor] = lambda s: s.softmax(-1),
        out: Callable[[Tensor], Tensor] = lambda o: o,
        returns: Callable[[Tensor], Tensor | None] = lambda w: None,
    ) -> None:
        self.change, self.weights, self.out, self.returns = change, weights, out, returns
        self.truth: list[Tensor] = []
        self.asked = torch.empty(0)

    @property
    def first_run(self) -> np.ndarray[Any, Any]:
        """Of both layers in the first run; a capture runs again for what comes next."""
        return torch.stack(self.truth[:2]).numpy()

    def __call__(
        self, module: Any, q: Tensor, k: Tensor, v: Tensor, mask: Any, **more: Any
    ) -> tuple[Tensor, Tensor | None]:
        group = q.size(1) // k.size(1)
        k, v = (each.repeat_interleave(group, 1) for each in (k, v))
        weights = self._of(q, k, more.get("scaling") or q.size(-1) ** -0.5)
        truth = self._of(q.double(), k.double(), q.size(-1) ** -0.5)[0]
        if not self.asked.equal(q):  # else it is called once more, on other values
            self.truth.append(truth)
        self.asked = q.clone()
        out = self.out(weights.to(v.dtype) @ v)  # (B, h, n_q, d_v)
        return out.transpose(1, 2).contiguous(), self.returns(weights.to(v.dtype))

    def _of(self, q: Tensor, k: Tensor, scaling: float) -> Tensor:
        scores = q @ k.transpose(2, 3) * scaling
        i = torch.arange(k.size(2) - q.size(2), k.size(2))[:, None]
        j = torch.arange(k.size(2))
        return self.weights(hidden(self.change(scores, i, j), j > i))


def all_of(weights: Tensor) -> Tensor:
    return weights


@pytest.fixture
def register() -> Iterator[Callable[[Any], None]]:
    """What registers an attention function as "mine" until the end of a test."""
    yield lambda function: AttentionInterface.register("mine", function)
    AttentionInterface._global_mapping.pop("mine", None)


def llama(dtype: torch.dtype = torch.float32, attention: str = "mine", **more: Any) -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=257, **sizes, **heads, **more)).eval()
    for parameter in model.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.3)
    model.set_attn_implementation(attention)
    return model.to(dtype)


def loaded(model: Any) -> attnviz.Model:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_tokenizer(), pad_token="!")
    return attnviz.load_model(model, tokenizer)


def shown(model: attnviz.Model, text: str = TEXT, **options: Any) -> np.ndarray[Any, Any]:
    return np.stack([layer.weights for layer in model.capture(text, **options).record.layers])


def kinds(**more: Any) -> dict[str, Mine]:
    of_scores = {name: Mine(change, **more) for name, change in SCORES.items()}
    return of_scores | {name: Mine(weights=each, **more) for name, each in WEIGHTS.items()}


@pytest.mark.parametrize("name", kinds())
def test_the_weights_that_a_function_returns_are_shown_where_they_give_its_output(
    register: Any, name: str
) -> None:
    function = kinds(returns=all_of)[name]
    register(function)
    model = loaded(llama())
    function.truth.clear()
    ours = shown(model)
    truth = function.first_run
    np.testing.assert_allclose(ours, truth, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", kinds())
def test_a_function_that_returns_no_weights_is_refused_unless_eager_ones_are_its_own(
    register: Any, name: str
) -> None:
    function = kinds()[name]
    register(function)
    with pytest.raises(ModelError, match=f"{NAMED}.* layer 0 .*none of its own"):
        loaded(llama()).capture(TEXT)


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "bert"])
def test_a_function_that_does_what_eager_attention_does_is_shown(
    register: Any, architecture: str
) -> None:
    function = Mine()
    register(function)
    torch.manual_seed(0)
    if architecture == "gpt2":
        model: Any = GPT2LMHeadModel(GPT2Config(vocab_size=257, n_embd=32, n_layer=2, n_head=4))
    elif architecture == "bert":
        function._of = lambda q, k, s: (q @ k.transpose(2, 3) * s).softmax(-1)  # type: ignore[method-assign]
        sizes = {"hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2}
        model = BertForMaskedLM(BertConfig(vocab_size=257, num_attention_heads=4, **sizes))
    else:
        model = llama()
    model.eval().set_attn_implementation("mine")
    ready = loaded(model)
    function.truth.clear()
    np.testing.assert_allclose(shown(ready), function.first_run, rtol=0, atol=1e-5)


def test_the_truth_is_shown_where_eager_attention_would_show_another_model(register: Any) -> None:
    function = Mine(SCORES["a temperature"], returns=all_of)
    register(function)
    sharp = shown(loaded(llama()))[0, :, -1].max(axis=-1)
    flat = shown(loaded(llama(attention="eager")))[0, :, -1].max(axis=-1)
    assert (sharp > 0.9).any()
    assert (sharp - flat > 0.1).any()


def test_returned_weights_that_do_not_fit_are_not_shown(register: Any) -> None:
    others: list[Callable[[Tensor], Any]] = [
        lambda w: w.roll(1, -1),
        lambda w: w[:, :1],  # one head's
        lambda w: w.transpose(2, 3),
        lambda w: w[..., :-1],
        lambda w: "weights",
        lambda w: torch.full_like(w, torch.nan),
    ]
    for returns in others:
        register(Mine(SCORES["a temperature"], returns=returns))
        with pytest.raises(ModelError, match=NAMED):
            loaded(llama()).capture(TEXT)


def test_returned_weights_that_do_not_fit_leave_those_that_do(register: Any) -> None:
    function = Mine(returns=lambda w: w.roll(1, -1))
    register(function)
    model = loaded(llama())
    function.truth.clear()
    ours = shown(model)
    np.testing.assert_allclose(ours, function.first_run, rtol=0, atol=1e-5)


def test_an_overridden_function_of_transformers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, "sdpa", Mine(SCORES["a temperature"]))
    with pytest.raises(ModelError, match=r"'sdpa' \(Mine\)"):
        loaded(llama(attention="sdpa")).capture(TEXT)


def test_capture_runs_the_function_and_changes_no_output(register: Any) -> None:
    function = Mine(SCORES["the largest alone"], returns=all_of)
    register(function)
    model = loaded(llama())
    inner, ids = model._loaded, model.capture(TEXT).tokens
    numbers = [token.id for token in ids]
    keep = KeepEverything((len(ids), len(ids)))
    with torch.inference_mode():
        without = inner.output(numbers)  # type: ignore[attr-defined]
        function.truth.clear()
        captured = inner.output(numbers, (), Wanted({0: (0,), 1: (0,)}), keep)  # type: ignore[attr-defined]
    assert captured.equal(without)
    assert len(function.truth) == 2  # once for each layer


def test_the_function_of_every_layer_is_asked(register: Any) -> None:
    class Second(Mine):
        def __call__(self, module: Any, *given: Any, **more: Any) -> Any:
            self.change = SCORES["a window"] if module.layer_idx == 1 else SCORES["none"]
            return super().__call__(module, *given, **more)

    SCORES["none"] = lambda s, i, j: s
    try:
        register(Second())
        model = loaded(llama())
        model.capture(TEXT, layers="0")
        with pytest.raises(ModelError, match=f"{NAMED}.* in layer 1"):
            model.capture(TEXT)
    finally:
        del SCORES["none"]


def test_a_head_that_a_function_drops_is_refused_and_the_others_are_shown(register: Any) -> None:
    kept = torch.tensor([1.0, 0.0, 1.0, 1.0])[:, None, None]
    register(Mine(out=lambda o: o * kept))
    model = loaded(llama())
    model.capture(TEXT, heads="L0H0,L1H2")
    with pytest.raises(ModelError, match=NAMED):
        model.capture(TEXT, heads="L0H0,L0H1")


def test_the_first_rows_are_not_proven_by_themselves(register: Any) -> None:
    """All functions give the first token to itself; later rows tell what the function does."""
    register(Mine(SCORES["a window"]))
    with pytest.raises(ModelError, match=NAMED):
        loaded(llama()).show(TEXT, query=0, heads="L0H0")


def test_values_that_are_all_alike_prove_nothing(register: Any) -> None:
    """Of one token repeated, any weights give the same output, unless positions are added."""
    register(Mine(SCORES["a temperature"]))
    with pytest.raises(ModelError, match=NAMED):
        loaded(llama()).capture("a" * 9)
    function = Mine()
    register(function)
    ours = shown(loaded(llama()), "a" * 9)
    np.testing.assert_allclose(ours.sum(axis=-1), 1, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_no_excuse_and_no_obstacle(register: Any, dtype: torch.dtype) -> None:
    for attention in ("sdpa", "eager"):
        loaded(llama(dtype, attention)).capture(TEXT)
    for name in ("a temperature", "a window", "the largest alone"):
        register(Mine(SCORES[name]))
        with pytest.raises(ModelError, match=NAMED):
            loaded(llama(dtype)).capture(TEXT)
    function = Mine(SCORES["a temperature"], returns=all_of)
    register(function)
    model = loaded(llama(dtype))
    function.truth.clear()
    ours = shown(model)
    rounded = 0.3  # of scores in the hundreds, in half precision
    np.testing.assert_allclose(ours, function.first_run, rtol=0, atol=rounded)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_scores_in_the_thousands_are_rounding_and_no_fault(attention: str) -> None:
    model = llama(attention=attention)
    for layer in model.model.layers:
        layer.self_attn.q_proj.weight.data *= 200
    loaded(model).capture(TEXT * 3)


def test_outputs_without_an_axis_of_heads_are_taken_as_the_module_takes_them(register: Any) -> None:
    function = Mine()
    flat = lambda *given, **more: (function(*given, **more)[0].flatten(2), None)  # noqa: E731
    register(flat)
    model = loaded(llama())
    function.truth.clear()
    ours = shown(model)
    np.testing.assert_allclose(ours, function.first_run, rtol=0, atol=1e-5)


def test_every_command_refuses_what_it_cannot_prove(register: Any) -> None:
    register(Mine(SCORES["a temperature"]))
    model = loaded(llama())
    calls: list[Callable[[], Any]] = [
        lambda: model.capture(TEXT),
        lambda: model.capture(TEXT, scores=True),
        lambda: model.show(TEXT),
        lambda: model.heads(TEXT),
        lambda: model.heads(probe=True),
        lambda: model.generate(TEXT, max_new_tokens=3),
        lambda: model.compare(TEXT, "a small blue house"),
        lambda: model.explain(TEXT),
        lambda: model.why(TEXT),
        lambda: model.predict(TEXT),
        lambda: model.verify(TEXT),
    ]
    for call in calls:
        with pytest.raises(AttnvizError) as refused:
            call()
        assert not isinstance(refused.value, NotImplementedError)


def test_steps_that_do_not_lead_to_returned_weights_are_not_explained(register: Any) -> None:
    register(Mine(SCORES["a temperature"], returns=all_of))
    model = loaded(llama())
    model.capture(TEXT)
    with pytest.raises(ModelError, match=NAMED):
        model.explain(TEXT)
    with pytest.raises(ModelError, match=NAMED):
        model.capture(TEXT, scores=True)


@dataclass
class Rows(RowReduction):
    """Keeps the rows as they come."""

    taken: list[HeadRows]

    def take(self, rows: HeadRows) -> None:
        self.taken.append(rows)


def test_a_scan_and_a_cut_link_are_proven_too(register: Any) -> None:
    for returns in (lambda w: None, all_of):
        function = Mine(SCORES["a temperature"], returns=returns)
        register(function)
        inner: Any = loaded(llama())._loaded
        ids = torch.tensor([[5, 9, 7, 8, 5, 3], [4, 9, 4, 8, 1, 3]])
        taken: list[Any] = []
        rows = Rows(taken)
        reduce = lambda: inner.reduce(ids, Wanted({0: (0, 1, 2, 3)}), rows)  # noqa: B023, E731
        if returns is all_of:
            function.truth.clear()
            reduce()
            assert len(taken) == 2
            expected = function.truth[0].numpy()
            np.testing.assert_allclose(taken[0].weights[0], expected, rtol=0, atol=1e-5)
        else:
            with pytest.raises(ModelError, match=NAMED):
                reduce()
        link = CutLink(attnviz.records.heads.Head(0, 1), 4, 2)  # type: ignore[attr-defined]
        cut = Interventions([(link,)], whole=True)
        with pytest.raises(ModelError, match=f"{NAMED}.*no link is cut"):
            inner.intervene([5, 9, 7, 8, 5, 3], cut, taken.append)


def test_each_step_of_an_answer_is_proven(register: Any) -> None:
    """It does as eager attention does until it is called with a cache, for one query."""
    register(Mine(lambda s, i, j: s * (9 if len(i) == 1 else 1)))
    model = loaded(llama())
    model.capture(TEXT)
    with pytest.raises(ModelError, match=NAMED):
        model.generate(TEXT, max_new_tokens=3)
    register(Mine())
    assert model.generate(TEXT, max_new_tokens=3).shares()


def test_verify_says_how_exact_each_layer_is(register: Any) -> None:
    found = loaded(llama(attention="sdpa")).verify(TEXT)
    assert found.exact
    assert found.output == 0
    assert sorted(found.by_layer) == sorted(found.products) == [0, 1]
    assert found.weights is not None
    assert found.weights == max(found.by_layer.values())
    assert max(found.products.values()) < EXACT
    register(Mine(SCORES["a window"], returns=all_of))
    found = loaded(llama()).verify(TEXT)
    assert found.exact
    assert found.weights is None  # eager attention is another model's
    assert not found.by_layer
    assert max(found.products.values()) < EXACT
    with pytest.raises(attnviz.AttnvizError, match="does not have translator"):
        attnviz.verify(TEXT, "translator")


def test_verify_reads_every_row(register: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a function that is taken for transformers' own, one row of many is missed by a draw."""
    text = "".join(chr(97 + n % 26) for n in range(400))
    odd = Mine(lambda s, i, j: torch.where(i == 123, 3 * s, s))
    monkeypatch.setattr(AttentionCall, "foreign", False)
    register(odd)
    model = loaded(llama(max_position_embeddings=512))
    model.capture(text, heads="L0H0")
    with pytest.raises(ModelError, match="in layer 0, after the weights that it returns"):
        model.verify(text)


@pytest.mark.parametrize("text", [TEXT, "a" * 20 + "bc" * 10], ids=["words", "repeated"])
@pytest.mark.parametrize("row", [5, 12, 31])
def test_every_row_of_a_function_of_ones_own_is_proven(register: Any, row: int, text: str) -> None:
    """One row attends to the first key alone; where values repeat, its output tells nothing."""
    register(Mine(lambda s, i, j: hidden(s, (i == row) & (j > 0))))
    model = loaded(llama())
    calls: list[Callable[[], Any]] = [
        lambda: model.capture(text),
        lambda: model.capture(text, scores=True),
        lambda: model.heads(text),
        lambda: model.explain(text, head="L0H0"),
    ]
    for call in calls:
        with pytest.raises(ModelError, match=NAMED):
            call()
    function = Mine(lambda s, i, j: hidden(s, (i == row) & (j > 0)), returns=all_of)
    register(function)
    model = loaded(llama())
    function.truth.clear()
    ours = shown(model, text)
    np.testing.assert_allclose(ours, function.first_run, rtol=0, atol=1e-5)
    assert (ours[:, :, row, 0] == 1).all()


def test_returned_rows_may_sum_to_less_than_1_on_long_texts_alone(register: Any) -> None:
    """On the few tokens of loading, the six largest are all."""

    def largest(scores: Tensor) -> Tensor:
        weights = scores.softmax(-1)
        least = weights.topk(min(6, weights.size(-1))).values[..., -1:]
        return weights * (weights >= least)

    function = Mine(weights=largest, returns=all_of)
    register(function)
    model = loaded(llama())
    function.truth.clear()
    ours = shown(model)
    np.testing.assert_allclose(ours, function.first_run, rtol=0, atol=1e-5)
    assert ours.sum(axis=-1).min() < 0.99
    model.generate(TEXT, max_new_tokens=2)


def test_the_states_of_a_training_loop_have_fingerprints_of_their_own() -> None:
    plain = llama(attention="sdpa")
    model = loaded(plain)
    before, first = model.fingerprint, model.capture(TEXT)
    with torch.no_grad():
        plain.model.layers[0].self_attn.q_proj.weight.add_(1.0)
    second = model.capture(TEXT)
    answer = model.generate(TEXT, max_new_tokens=2)
    assert first.record.model.fingerprint == before != model.fingerprint
    after = {each.record.model.fingerprint for each in (second, answer.capture)}
    assert after == {model.fingerprint}


def sharper(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that says that it is another."""

    @wraps(function)
    def attend(module: Any, q: Tensor, *more: Any, **options: Any) -> Any:
        return function(module, 9 * q, *more, **options)

    return attend


@pytest.mark.parametrize(
    "alter", [lambda f: f, partial, lambda f: partial(partial(f), dropout=0.0)]
)
def test_a_function_that_wraps_transformers_own_is_not_transformers_own(alter: Any) -> None:
    own = sdpa_attention_forward
    assert is_foreign(alter(sharper(own)))
    assert not is_foreign(alter(own))
    assert is_foreign(Mine())
    assert is_foreign(Mine().__call__)
