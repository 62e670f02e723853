"""What is written, and each new token's row: as transformers' own `generate` has them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from attnviz.models import loaded
from attnviz.models.catalog import Source, load
from attnviz.models.huggingface.attention import recording
from attnviz.models.huggingface.call import AttentionCall
from attnviz.models.huggingface.model import CausalLM, PairDecoder
from attnviz.models.loaded import LoadedModel
from attnviz.records.capture import FloatArray, KeepEverything, PatternBlock, Wanted
from attnviz.records.tokens import Sampling
from tests.architectures import ARCHITECTURES, Architecture, engine_of, named

WRITERS = [a for a in ARCHITECTURES if a.causal and not a.image and a.kind == "self"]
WRITERS += [a for a in ARCHITECTURES if a.kind in ("cross", "decoder")]
NEW = 9
THEIRS = {"self": "attentions", "cross": "cross_attentions", "decoder": "decoder_attentions"}


def writer(architecture: Architecture, implementation: str | None = None) -> Any:
    """The model with an output layer, always with the same weights; it never ends by itself."""
    torch.manual_seed(3)
    of = (
        transformers.AutoModelForCausalLM
        if architecture.kind == "self"
        else transformers.AutoModelForSeq2SeqLM
    )
    if architecture.fallback and implementation is None:
        implementation = "eager"
    model = of.from_config(architecture.config(), attn_implementation=implementation)
    for parameter in model.parameters():  # so that attention is not nearly flat
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.3)
    model.generation_config.eos_token_id = None
    return model.eval()


def given(architecture: Architecture) -> dict[str, Any]:
    more = {} if architecture.kind == "self" else {"decoder_start_token_id": 0}
    return {"inputs": architecture.inputs()["input_ids"], **more}


def theirs(architecture: Architecture) -> tuple[list[int], list[list[FloatArray]]]:
    """The new tokens, and of each the row (h, n_keys) of every layer, in eager attention."""
    written = writer(architecture, "eager").generate(
        **given(architecture),
        do_sample=False,
        max_new_tokens=NEW,
        output_attentions=True,
        return_dict_in_generate=True,
    )
    steps = written[THEIRS[architecture.kind]]
    rows = [[layer[0, :, -1].numpy() for layer in step if layer is not None] for step in steps]
    return written.sequences[0, -NEW:].tolist(), rows


def ours(
    architecture: Architecture, heads: Mapping[int, tuple[int, ...]], sampling: Sampling
) -> tuple[list[int], list[dict[int, FloatArray]]]:
    ids, rows = list[int](), list[dict[int, FloatArray]]()

    def consume(block: PatternBlock) -> None:
        (query,) = block.queries.tolist()
        if query == len(rows):
            rows.append({})
        rows[query][block.layer] = block.weights[:, 0].copy()

    def go_on(id_: int) -> bool:
        ids.append(id_)
        return True

    model = engine_of(writer(architecture), architecture.kind)
    model._write(given(architecture), sampling, Wanted(heads), consume, go_on)
    return ids, rows


@pytest.mark.parametrize("architecture", WRITERS, ids=lambda a: a.name)
def test_tokens_and_rows_are_those_of_their_generate(architecture: Architecture) -> None:
    tokens, rows = theirs(architecture)
    every = tuple(range(len(rows[0][0])))
    written, found = ours(architecture, {0: every, 1: every}, Sampling(most=NEW))
    assert written == tokens
    assert len(found) == len(rows)
    for mine, expected in zip(found, rows, strict=True):
        # theirs leaves layers out that do not attend
        for own, row in zip(mine.values(), expected, strict=True):
            n = row.shape[1]  # where a window's cache forgot the first keys, theirs has the rest
            np.testing.assert_allclose(own[:, -n:], row, atol=1e-5)
            assert not own[:, :-n].any()


SAMPLINGS = (Sampling(most=12), Sampling(most=12, temperature=1.5, top_p=0.8, seed=4))


def by_model(model: LoadedModel, ids: Sequence[int], sampling: Sampling) -> tuple[Any, Any]:
    """The tokens that a loaded model writes, and the rows of its two layers' heads."""
    written, rows = list[int](), list[FloatArray]()
    wanted = Wanted({0: (0, 1, 2), 1: (0, 2)})
    model.generate(
        ids,
        sampling,
        wanted,
        lambda block: rows.append(block.weights.copy()),
        lambda id_: written.append(id_) or True,
    )
    return written, rows


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "drawn"])
def test_both_engines_write_the_same_with_the_same_rows(
    gpt2_folder: Path, sampling: Sampling
) -> None:
    native, theirs = (load(Source(str(gpt2_folder), engine=e)) for e in ("native", "transformers"))
    written, rows = by_model(native, [5, 9, 100, 3], sampling)
    expected, their_rows = by_model(theirs, [5, 9, 100, 3], sampling)
    assert written == expected
    assert len(set(written)) > 1
    for mine, other in zip(rows, their_rows, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-5)


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_a_run_over_the_answer_gives_the_rows_of_writing_it(gpt2_folder: Path, engine: Any) -> None:
    model = load(Source(str(gpt2_folder), engine=engine))
    prompt, rows = [5, 9, 100, 3], list[FloatArray]()
    written, found = by_model(model, prompt, Sampling(most=7))
    queries = tuple(range(3, 3 + len(written)))
    keep = KeepEverything((3 + len(written), 3 + len(written)))
    model.run([*prompt, *written[:-1]], Wanted({0: (0, 1, 2), 1: (0, 2)}, queries), keep)
    for query in queries:
        rows += [layer.weights[:, query : query + 1, : query + 1] for layer in keep.layers()]
    for mine, other in zip(found, rows, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-5)


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_an_answers_probability_is_that_of_a_plain_run(gpt2_folder: Path, engine: Any) -> None:
    model = load(Source(str(gpt2_folder), engine=engine))
    plain = transformers.GPT2LMHeadModel.from_pretrained(gpt2_folder).eval().requires_grad_(False)
    logits = plain(torch.tensor([[5, 9, 7, 8, 6]])).logits[0].double().log_softmax(-1)
    expected = [float(logits[1, 7]), float(logits[2, 8]), float(logits[3, 6])]
    found = model.log_probabilities([[5, 9]], [7, 8, 6])[0]
    np.testing.assert_allclose(found, expected, atol=1e-4)


PROMPTS = [5, 9], [1, 2, 3, 4, 5], [9, 5], [6, 7, 8, 9, 1], [2, 2, 2, 2, 2], [5, 9]


@pytest.mark.parametrize("architecture", WRITERS, ids=lambda a: a.name)
def test_a_prompt_has_its_own_probability_in_a_batch(architecture: Architecture) -> None:
    crossed = architecture.kind != "self"
    kind = PairDecoder if crossed else CausalLM
    hf = writer(architecture)
    if crossed:
        hf.config.decoder_start_token_id = 0
    model = engine_of(hf, architecture.kind, kind)
    for n in (2, 5):
        prompts = [ids for ids in PROMPTS if len(ids) == n]
        alone = torch.cat([model.answered([ids], [7, 8, 6]) for ids in prompts]).log_softmax(-1)
        together = model.answered(prompts, [7, 8, 6]).log_softmax(-1)
        np.testing.assert_allclose(together, alone, atol=2e-5)
        assert np.ptp(together[:, 1, 8].numpy()) > 1e-3


@pytest.mark.parametrize("name", ["builtin", "translator"])
def test_variants_of_a_prompt_that_was_read_are_those_of_plain_runs(name: str) -> None:
    model = load(Source(name, kind="cross" if name == "translator" else None))
    plain = model.log_probabilities(PROMPTS, [7, 8, 6])
    for read in PROMPTS[:4]:
        again = model.having_read(read).log_probabilities(PROMPTS, [7, 8, 6])
        np.testing.assert_allclose(again, plain, atol=1e-5)


@pytest.mark.parametrize("name", ["builtin", "translator"])
def test_prompts_of_one_length_run_together(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded, "TOGETHER", 2 * (5 + 3))
    model, sizes = load(Source(name, kind="cross" if name == "translator" else None)), list[int]()
    run = type(model).answered

    def counted(self: LoadedModel, some: Any, answer: Any) -> torch.Tensor:
        sizes.append(len(some))
        return run(self, some, answer)

    monkeypatch.setattr(type(model), "answered", counted)
    together = model.log_probabilities(PROMPTS, [7, 8, 6])
    assert sorted(sizes) == [1, 2, 3]
    alone = [model.log_probabilities([ids], [7, 8, 6])[0] for ids in PROMPTS]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert np.ptp(together[:, 1]) > 1e-3


def test_a_module_whose_softmax_is_not_plain_is_not_taken_for_one() -> None:
    plain = {}
    for name in ("llama", "gemma2", "gpt_oss", "mistral"):
        architecture = named(name)
        calls = list[AttentionCall]()
        model = architecture.model()
        with torch.inference_mode(), recording(model, calls.append):
            model(**architecture.inputs())
        plain[name] = {call.is_plain() for call in calls}
    assert plain == {"llama": {True}, "gemma2": {False}, "gpt_oss": {False}, "mistral": {True}}
