"""A lesson page of a model that only Python runs: its one run, every head of it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import attnviz
from attnviz.errors import InputError
from tests.architectures import BART_OVER_BYTES, OVER_BYTES, T5_SIZES, Tiny, folders_of
from tests.conftest import slow
from tests.lessons import Differences, compared, runs_in_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TEXT, TARGET = "a blue cat", "un chat"
SMALL = {
    "vocab_size": 257,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
MODELS: dict[str, Tiny] = {
    # rotated queries and keys behind norms of their own, in groups
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", SMALL | {"num_key_value_heads": 2, "head_dim": 8}),
    "bert": ("BertConfig", "BertForMaskedLM", SMALL),  # norms over the sums
    "t5": ("T5Config", "T5ForConditionalGeneration", {**T5_SIZES, **OVER_BYTES}),  # unscaled, bias
    "marian": ("MarianConfig", "MarianMTModel", BART_OVER_BYTES),
}


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    return folders_of(MODELS, tmp_path_factory.mktemp("models"))


def opened_in(browser: "Browser", file: Path) -> "Page":
    page = browser.new_page()
    page.goto(file.as_uri())
    return page


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("qwen3", None, "2 heads share their keys and values"),
        slow("bert", None, "A norm stands over the sum"),
        slow("t5", "cross", "only Python runs this model"),
        ("t5", "decoder", ""),
        slow("marian", "cross", ""),
    ],
)
def test_every_head_of_another_model_is_on_its_page(
    browser: "Browser",
    folder_of: Callable[[str], Path],
    tmp_path: Path,
    name: str,
    kind: str | None,
    said: str,
) -> None:
    file, target = tmp_path / "lesson.html", TARGET if kind else None
    model = attnviz.load_model(folder_of(name), **({"kind": kind} if kind else {}))
    attnviz.explain(TEXT, model, target=target).save(file)
    page, names = opened_in(browser, file), "x normed q k v scores pattern z written after".split()
    (run,) = runs_in_page(page, [TEXT], names=names)
    scales = page.evaluate(
        "async (text) => (await tested.run(text)).layers.map(({ scale }) => scale)", TEXT
    )
    heads, n_q, n_k = 4, len(run["queries"]), len(run["keys"])
    for layer, head in ((0, 1), (1, 2)):
        of = {"head": f"L{layer}H{head}", "query": 0}
        trace = attnviz.explain(TEXT, model, target=target, **of).record.trace
        theirs = run["layers"][layer]
        for array in ("q", "k", "v", "z", "scores", "pattern"):
            rows = n_k if array in "kv" else n_q
            ours = getattr(trace, array)
            assert theirs[array].reshape(heads, rows, -1)[head] == pytest.approx(ours, abs=1e-6)
        for array in ("x", "normed"):
            assert theirs[array].reshape(n_q, -1) == pytest.approx(getattr(trace, array), abs=1e-6)
        assert theirs["after"].reshape(n_q, -1)[0] == pytest.approx(trace.x_after, abs=1e-6)
        written = theirs["written"].reshape(heads, n_k, -1)[head]
        assert trace.pattern[0] @ written == pytest.approx(trace.added, abs=1e-5)
        assert scales[layer] == pytest.approx(trace.scale)
    why = page.evaluate('() => JSON.parse(document.getElementById("data").textContent).why')
    assert "No other can be typed" in why
    assert said in why
    (wrong,) = runs_in_page(page, ["another text"])
    assert wrong == {"wrong": "This page holds the runs of its own texts alone."}
    page.close()


@pytest.mark.slow
def test_numbers_of_a_long_run_have_two_bytes_and_the_page_says_what_that_changes(
    browser: "Browser", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnviz.commands.explain.page.MOST_WEIGHTS", 1_000_000)
    monkeypatch.setattr("attnviz.commands.explain.page.LARGEST", 200_000)
    file, model = tmp_path / "lesson.html", attnviz.load_model()
    attnviz.explain(TEXT, model).save(file)
    page = opened_in(browser, file)
    found: Differences = compared(model._loaded, page, [TEXT])
    error = page.evaluate("() => tested.about.error")
    assert found.weight == pytest.approx(error["weight"], rel=0.05)
    assert found.probability == pytest.approx(error["probability"], rel=0.05)
    assert 0 < found.weight < 1e-3
    why = page.evaluate('() => JSON.parse(document.getElementById("data").textContent).why')
    assert "this model has 11 MB of weights, but a page carries at most 1 MB" in why
    page.close()
    with pytest.raises(InputError, match=r"the page would have") as error:
        attnviz.explain(f"{TEXT} " * 20, model).save(file)
    assert np.isfinite(found.weight)
