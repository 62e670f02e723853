"""The fingerprint of a model's weights, and the record of how a result was made."""

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import attnviz
from attnviz.errors import ExitStatus, UsageError
from attnviz.models.weights import SAMPLES, fingerprint, weights_in
from tests.architectures import gpt2_in_memory
from tests.conftest import Run

TEXT = "a fluffy blue creature"


def tensors() -> dict[str, Tensor]:
    torch.manual_seed(0)
    return {f"layer.{i}.weight": torch.randn(64, 50) for i in range(3)}


def test_the_same_numbers_give_the_same_fingerprint_whatever_their_order_and_strides() -> None:
    one = tensors()
    other = {name: one[name].t().contiguous().t() for name in reversed(one)}
    assert not other["layer.0.weight"].is_contiguous()
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(one, whole=True) == fingerprint(other, whole=True)


@pytest.mark.parametrize("change", ["weights", "name", "shape", "dtype", "more"])
def test_whatever_changes_changes_the_fingerprint(change: str) -> None:
    before, after = tensors(), tensors()
    last = "layer.2.weight"
    if change == "weights":
        after[last] = after[last] * 1.0001
    elif change == "name":
        after["another"] = after.pop(last)
    elif change == "shape":
        after[last] = after[last].reshape(50, 64)
    elif change == "dtype":
        after[last] = after[last].bfloat16()
    more = "adapter off" if change == "more" else ""
    assert fingerprint(before) != fingerprint(after, more)


def test_one_number_of_many_shows_where_all_bytes_are_looked_at() -> None:
    before, after = {"w": torch.zeros(SAMPLES * 9)}, {"w": torch.zeros(SAMPLES * 9)}
    after["w"][SAMPLES + 5] = 1
    assert fingerprint(before, whole=True) != fingerprint(after, whole=True)


def test_a_module_may_have_a_state_that_is_no_tensor() -> None:
    class Counting(nn.Linear):
        def get_extra_state(self) -> dict[str, int]:
            return {"steps": 3}

    tensors, _ = weights_in(nn.Sequential(Counting(2, 2), nn.Linear(2, 2)))
    assert sorted(tensors) == ["0.bias", "0.weight", "1.bias", "1.weight"]


def test_both_engines_give_one_checkpoint_one_fingerprint() -> None:
    native, other = (attnviz.load_model(engine=engine) for engine in ("native", "transformers"))
    assert native.fingerprint == other.fingerprint


def test_of_documents_a_result_names_the_lengths_and_not_the_texts() -> None:
    answer = attnviz.generate("who was it ?", docs={"a": "blue . " * 9, "b": "red"}, target="blue")
    assert answer.capture.record.asked.options["docs"] == {"a": 63, "b": 3}


def test_a_saved_capture_keeps_how_it_was_made(tmp_path: Path) -> None:
    captured = attnviz.capture(TEXT, heads="L1H2", bos=False)
    captured.save(tmp_path / "a.npz")
    kept = attnviz.load(tmp_path / "a.npz").record
    assert kept.asked.options == {"heads": "L1H2", "bos": False}
    assert kept.model == captured.record.model
    attnviz.show(attnviz.load(tmp_path / "a.npz")).save(tmp_path / "a.json")
    made = json.loads((tmp_path / "a.json").read_text())["made"]
    assert made["options"] == {"heads": "L1H2", "bos": False}


def in_memory(name: str | None = None, seed: int = 0) -> attnviz.Model:
    return attnviz.load_model(*gpt2_in_memory(seed), name=name)


def test_two_models_in_memory_are_told_apart_by_a_name_and_by_their_weights() -> None:
    one, other = in_memory("before"), in_memory("after", seed=1)
    assert (one.name, other.name, in_memory().name) == ("before", "after", "GPT2LMHeadModel")
    assert one.fingerprint == in_memory().fingerprint != other.fingerprint
    made = attnviz.compare(TEXT, model=one, against=other).made
    assert [model["name"] for model in made["models"]] == ["before", "after"]  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="name cannot rename builtin"):
        attnviz.load_model("builtin", name="mine")


def test_a_verification_names_the_weights_by_all_their_bytes(run: Run) -> None:
    model = attnviz.load_model()
    found = model.verify(TEXT)
    assert found.fingerprint is not None
    sampled, _, of_all = found.fingerprint.partition("-")
    assert sampled == model.fingerprint
    assert of_all
    assert attnviz.verify(TEXT).fingerprint == found.fingerprint
    shown = run("show", TEXT, "--verify", "-f", "json")
    assert shown.status is ExitStatus.OK
    assert json.loads(shown.out)["made"]["models"][0]["fingerprint"] == found.fingerprint
