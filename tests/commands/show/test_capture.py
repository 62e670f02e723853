"""The public Python API."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnviz
from tests.factories import make_capture

TEXT = "a word"


def test_a_capture_holds_every_head_unless_some_are_chosen(gpt2_folder: Path) -> None:
    capture = attnviz.capture(TEXT, model=str(gpt2_folder))
    assert [str(head) for head in capture.heads] == ["L0H0", "L0H1", "L0H2", "L1H0", "L1H1", "L1H2"]
    chosen = attnviz.capture(TEXT, model=str(gpt2_folder), heads="L1H2,0.1")
    assert [str(head) for head in chosen.heads] == ["L0H1", "L1H2"]
    np.testing.assert_array_equal(chosen.pattern(1, 2), capture.pattern(1, 2))


def test_a_pattern_is_a_row_per_query_that_sums_to_one(gpt2_folder: Path) -> None:
    capture = attnviz.capture(TEXT, model=str(gpt2_folder), bos=True)
    pattern = capture.pattern(0, 1)
    assert pattern.dtype == np.float32
    assert pattern.shape == (len(TEXT) + 1, len(TEXT) + 1)
    np.testing.assert_allclose(pattern.sum(axis=1), 1, atol=1e-5)
    assert (np.triu(pattern, 1) == 0).all()


def test_a_loaded_model_captures_many_texts(gpt2_folder: Path) -> None:
    model = attnviz.load_model(str(gpt2_folder))
    assert model.heads_per_layer == (3, 3)
    for text in ("one", "two"):
        from_name = attnviz.capture(text, model=str(gpt2_folder))
        np.testing.assert_array_equal(model.capture(text).pattern(1, 1), from_name.pattern(1, 1))
        assert attnviz.capture(text, model=model).text == text


def test_links_are_the_strongest_keys_of_each_query() -> None:
    capture = attnviz.AttentionCapture(make_capture())
    links = capture.links(top=2, heads="L1H0")
    pattern = capture.pattern(1, 0)
    assert len(links) == 2 * len(capture.tokens) - 1
    for query in range(1, len(capture.tokens)):
        found = [link for link in links if link.query.index == query]
        keys = sorted(range(query + 1), key=lambda key: -pattern[query, key])[:2]
        assert [link.key.index for link in found] == keys
        assert [link.weight for link in found] == [pattern[query, key] for key in keys]


def test_links_never_name_a_pair_that_the_mask_forbids() -> None:
    links = attnviz.AttentionCapture(make_capture()).links()
    assert all(link.key.index <= link.query.index for link in links)


def test_a_saved_capture_is_loaded_bit_for_bit(tmp_path: Path) -> None:
    capture = attnviz.AttentionCapture(make_capture(bos=True))
    capture.save(tmp_path / "c.npz")
    again = attnviz.load(tmp_path / "c.npz")
    assert again.tokens == capture.tokens
    assert again.record.model == capture.record.model
    for head in capture.heads:
        np.testing.assert_array_equal(again.pattern(*head), capture.pattern(*head))


def test_nobody_can_change_what_was_recorded(gpt2_folder: Path, tmp_path: Path) -> None:
    capture = attnviz.capture(TEXT, model=str(gpt2_folder))
    capture.save(tmp_path / "c.npz")
    for one in (capture, attnviz.load(tmp_path / "c.npz")):
        with pytest.raises(ValueError, match="read-only"):
            one.pattern(0, 0)[0, 0] = 42
        assert one.pattern(0, 0)[0, 0] == 1
    assert capture == capture
    assert len({capture, capture}) == 1


def test_what_cannot_be_a_text_or_an_option_is_said_in_a_sentence(gpt2_folder: Path) -> None:
    model = attnviz.load_model(str(gpt2_folder))
    with pytest.raises(attnviz.AttnvizError, match="half a character"):
        model.capture("a\ud800")
    with pytest.raises(attnviz.AttnvizError, match="give one of 'left', 'right'"):
        model.capture("a", truncate="middle")  # type: ignore[arg-type]
    with pytest.raises(attnviz.AttnvizError, match="top=0"):
        model.capture("a").links(top=0)


def test_what_was_not_recorded_is_said_in_a_sentence(tmp_path: Path) -> None:
    capture = attnviz.AttentionCapture(make_capture())
    with pytest.raises(attnviz.AttnvizError, match="does not hold L7H0"):
        capture.pattern(7, 0)
    with pytest.raises(attnviz.AttnvizError, match=r"does not end in \.npz"):
        capture.save(tmp_path / "c.json")
    with pytest.raises(attnviz.AttnvizError, match="text is blank"):
        attnviz.capture(" ")


def test_the_package_offers_what_it_documents() -> None:
    assert set(attnviz.__all__) == set(dir(attnviz))
    for name in attnviz.__all__:
        assert getattr(attnviz, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        attnviz.nothing  # noqa: B018


def test_a_model_runs_on_the_engine_that_is_asked_for() -> None:
    native, other = (attnviz.load_model(engine=engine) for engine in ("native", "transformers"))
    text = "a fluffy blue creature"
    ours, theirs = (model.capture(text, heads="L1H2") for model in (native, other))
    assert (ours.record.model.engine, theirs.record.model.engine) == ("native", "transformers")
    np.testing.assert_allclose(ours.pattern(1, 2), theirs.pattern(1, 2), atol=1e-5)


class Wrapped:
    """As PEFT wraps a model."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def get_base_model(self) -> Any:
        return self.model


@pytest.mark.parametrize("wrap", [lambda model: model, Wrapped])
def test_a_model_in_memory_gives_what_its_folder_gives(
    wrap: Callable[[Any], Any], gpt2_folder: Path
) -> None:
    from transformers import GPT2LMHeadModel

    held = GPT2LMHeadModel.from_pretrained(gpt2_folder).eval()
    before = {name: value.clone() for name, value in held.state_dict().items()}
    tokenizer = fast_tokenizer(gpt2_folder)
    model = attnviz.load_model(wrap(held), tokenizer)
    by_name = attnviz.load_model(str(gpt2_folder), engine="transformers")
    theirs, ours = by_name.capture(TEXT), model.capture(TEXT)
    assert [token.label for token in ours.tokens] == [token.label for token in theirs.tokens]
    for head in theirs.heads:
        np.testing.assert_array_equal(ours.pattern(*head), theirs.pattern(*head))
    answers = [each.generate(TEXT, max_new_tokens=4) for each in (model, by_name)]
    assert answers[0].shares("token") == answers[1].shares("token")
    assert all(before[name].equal(value) for name, value in held.state_dict().items())


def fast_tokenizer(folder: Path) -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))


@pytest.mark.parametrize("name", ["capture", "heads", "predict", "ablate", "generate"])
def test_a_model_that_trains_again_is_told_to_be_evaluated_first(
    gpt2_folder: Path, name: str
) -> None:
    from transformers import GPT2LMHeadModel

    held = GPT2LMHeadModel.from_pretrained(gpt2_folder).eval()
    model = attnviz.load_model(held, fast_tokenizer(gpt2_folder))
    held.train()
    with pytest.raises(attnviz.AttnvizError, match=r"in training mode; call its eval\(\) first"):
        getattr(model, name)(TEXT)
    held.eval()
    getattr(model, name)(TEXT)


def test_what_cannot_be_taken_from_memory_is_refused(gpt2_folder: Path) -> None:
    from transformers import GPT2LMHeadModel

    held, tokenizer = GPT2LMHeadModel.from_pretrained(gpt2_folder), fast_tokenizer(gpt2_folder)
    with pytest.raises(attnviz.AttnvizError, match="in training mode"):
        attnviz.load_model(held.train(), tokenizer)
    held.eval()
    with pytest.raises(attnviz.AttnvizError, match="no tokenizer was given; give the one"):
        attnviz.load_model(held)
    with pytest.raises(attnviz.AttnvizError, match="is not a transformers model"):
        attnviz.load_model(3, tokenizer)  # type: ignore[arg-type]
    with pytest.raises(attnviz.AttnvizError, match="cannot change a model in memory"):
        attnviz.load_model(held, tokenizer, dtype="bfloat16")
    with pytest.raises(attnviz.AttnvizError, match="has a tokenizer"):
        attnviz.load_model("builtin", tokenizer)


def test_a_capture_is_shown_without_options_that_need_its_text() -> None:
    capture = attnviz.AttentionCapture(make_capture())
    options: Any = {"bos": True}
    with pytest.raises(TypeError, match="no option 'bos'"):
        capture.show(**options)
