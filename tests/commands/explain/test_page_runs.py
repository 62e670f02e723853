"""The model in a lesson page is the model in Python, token by token and number by number."""

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import attnviz
from attnviz.commands.train.folder import learn_tokenizer
from attnviz.errors import ExitStatus, UsageError
from attnviz.models.scratch.native import save_checkpoint
from tests.browsing import Open, until
from tests.commands.explain.texts import TEXTS
from tests.conftest import Run, slow, tiny_model
from tests.fuzzing import random_text
from tests.lessons import OPEN, Differences, compared, runs_in_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TEXT = "a fluffy blue creature roamed the forest . the creature was"
Lesson = Callable[..., "Page"]
WEIGHT, PROBABILITY = 1e-4, 1e-3


@pytest.fixture(scope="module")
def lesson(browser: "Browser", tmp_path_factory: pytest.TempPathFactory) -> Lesson:
    """Opens the lesson page of a model, once for all tests."""
    pages: dict[str, Page] = {}

    def lesson(model: str = "builtin", text: str = TEXT, **options: str) -> "Page":
        named = repr((model, options))
        if named not in pages:
            file = tmp_path_factory.mktemp("lesson") / "lesson.html"
            loaded = attnviz.load_model(model, **options)
            attnviz.explain(text, loaded).save(file)
            pages[named] = browser.new_page()
            pages[named].goto(file.as_uri())
        return pages[named]

    return lesson


def agree(found: Differences) -> None:
    assert found.weight <= WEIGHT
    assert found.probability <= PROBABILITY


def test_tokens_weights_and_predictions_of_any_text_are_those_of_python(lesson: Lesson) -> None:
    rng = random.Random(3)
    short = (text for text in TEXTS[::4] if len(text) < 500)
    texts = [*short, TEXTS[-4], *(random_text(rng) for _ in range(4))]
    found = compared(attnviz.load_model()._loaded, lesson(), texts)
    agree(found)
    assert 3 < found.refused < len(texts) / 2  # the test itself compares enough


def test_a_model_that_train_made_runs_in_the_page(lesson: Lesson, tmp_path: Path) -> None:
    tokenizer = learn_tokenizer(" ".join(TEXTS[:10] + (TEXT,) * 9), 300)
    folder = tmp_path / "own"
    save_checkpoint(folder, tiny_model(vocab_size=tokenizer.get_vocab_size()), tokenizer)
    texts = [text for text in TEXTS if len(text) < 300]
    found = compared(attnviz.load_model(str(folder))._loaded, lesson(str(folder)), texts)
    agree(found)
    assert found.refused < len(texts) / 2


@pytest.mark.parametrize("kind", ["cross", slow("decoder"), slow("encoder")])
def test_the_translator_writes_and_attends_in_the_page_as_in_python(
    lesson: Lesson, kind: str
) -> None:
    texts = ("the cat sees a small bird .", "I don't know it", "2 l'été 👍 unbelievable", "", "a")
    texts += ("Where are the toilets?", "mother-in-law", "donne-le-moi")  # -le-moi are pronouns
    model = attnviz.load_model("translator", kind=kind)
    agree(compared(model._loaded, lesson("translator", texts[0], kind=kind), texts))


@pytest.mark.slow
def test_words_that_the_translator_was_not_trained_on_are_those_of_python(lesson: Lesson) -> None:
    page = lesson("translator", "the cat sees a small bird .", kind="cross")
    model = attnviz.load_model("translator")._loaded
    texts = [
        *TEXTS[12:24],
        "Cat THE 37 Zorblat's pl, the Oiseau ǅ ⅷ",
        "ªm Élan 楚留香 don't the samovar?!",
    ]
    seen = 0
    for text in texts:
        found = page.evaluate(
            f"async (text) => {{ {OPEN}"
            "return tested.run(text).then((run) => [run.target, run.unknown], () => null); }",
            text,
        )
        if found:
            target, unknown = found
            expected = model.unknown_words(text, target)
            assert tuple(unknown) == expected, text
            seen += bool(expected)
    assert seen > 5


def test_every_step_of_every_head_is_that_of_explain(lesson: Lesson) -> None:
    page, query, names = lesson(), 4, "x normed q k v scores pattern z attention mlp after".split()
    (run,) = runs_in_page(page, [TEXT], names=names)
    n, model = len(run["keys"]), attnviz.load_model()
    for layer, head in ((0, 0), (2, 3), (4, 1)):
        trace = attnviz.explain(TEXT, model, head=f"L{layer}H{head}", query=str(query)).record.trace
        arrays = {name: array.reshape(n, -1) for name, array in run["layers"][layer].items()}
        per_head = {name: run["layers"][layer][name].reshape(4, n, -1) for name in "qkvz"}
        for name in ("x", "normed"):
            assert arrays[name] == pytest.approx(getattr(trace, name), abs=1e-4)
        for name, array in per_head.items():
            assert array[head] == pytest.approx(getattr(trace, name), abs=1e-4)
        for name in ("scores", "pattern"):
            theirs = run["layers"][layer][name].reshape(4, n, n)[head]
            assert theirs == pytest.approx(getattr(trace, name), abs=1e-4)
        of_query = {"attention": "attention_added", "mlp": "mlp_out", "after": "x_after"}
        for name, ours in of_query.items():
            assert arrays[name][query] == pytest.approx(getattr(trace, ours), abs=2e-4)
        made = page.evaluate(
            """async ([text, layer, head, query]) => {
              const run = await tested.run(text), of = [run, layer, head, query];
              const bias = tested.outputBias(run, layer);
              return [tested.contributions(...of), tested.added(...of), bias]
                .map((array) => [...array]);
            }""",
            [TEXT, layer, head, query],
        )
        for theirs, ours in zip(
            made, (trace.contributions.ravel(), trace.added, trace.output_bias), strict=True
        ):
            assert theirs == pytest.approx(ours, abs=1e-4)


def test_what_comes_next_without_some_heads_is_what_ablate_shows(lesson: Lesson) -> None:
    for heads in ("L2H0", "L4H0,L1H1", "L0H0,L0H1,L0H2,L0H3"):
        both = attnviz.ablate(TEXT, heads=heads, together=True, top=10).record
        removed = [(int(name[1]), int(name[3])) for name in heads.split(",")]
        shown = lesson().evaluate(
            f"async ([text, removed]) => {{ {OPEN}"
            """
              return (await tested.run(text, { removed })).next.top(1, 10);
            }""",
            [TEXT, removed],
        )
        assert both.after.candidates != both.before.candidates
        assert [(each["id"], each["label"], each["text"]) for each in shown] == [
            (each.id, each.label, each.exact) for each in both.after.candidates
        ]
        assert [each["probability"] for each in shown] == pytest.approx(
            [each.probability for each in both.after.candidates], abs=1e-4
        )


def test_the_next_token_is_written_behind_the_text(lesson: Lesson) -> None:
    runs_in_page(lesson(), [TEXT])
    longer, tokens = lesson().evaluate(
        """async (text) => {
          const run = await tested.run(text), longer = tested.append(run, run.next.top(1, 1)[0].id);
          return [longer, (await tested.run(longer)).queries.length - run.queries.length];
        }""",
        TEXT,
    )
    assert longer == TEXT + attnviz.predict(TEXT, top=1).rows[-1]["exact"]
    assert tokens == 1


def test_of_many_runs_that_are_wanted_at_once_the_last_is_given(lesson: Lesson) -> None:
    runs_in_page(lesson(), [TEXT])
    told = lesson().evaluate(
        """async () => {
          const asked = ["one", "two", "three", "four"].map((text) => tested.run(text));
          return (await Promise.all(asked)).map((run) => run && run.text);
        }"""
    )
    assert told == [None, None, None, "four"]
    (wrong,) = runs_in_page(lesson(), [" "])  # a text that is refused holds nothing up
    (right,) = runs_in_page(lesson(), ["a cat"])
    assert "wrong" in wrong
    assert "wrong" not in right


@pytest.mark.parametrize("change", ["cut", slow("flipped"), slow("emptied")])
def test_a_damaged_page_says_so_in_one_sentence(
    browser: "Browser", tmp_path: Path, change: str
) -> None:
    written = (tmp_path / "lesson.html", tmp_path / "damaged.html")
    attnviz.explain(TEXT).save(written[0])
    whole = written[0].read_text(encoding="utf-8")
    start, end = re.search(r'id="packed">([^<]*)<', whole).span(1)  # type: ignore[union-attr]
    packed, middle = whole[start:end], (end - start) // 2
    other = "A" if packed[middle] != "A" else "B"
    damaged = {
        "cut": packed[:middle],
        "flipped": packed[:middle] + other + packed[middle + 1 :],
        "emptied": "",
    }
    written[1].write_text(whole[:start] + damaged[change] + whole[end:], encoding="utf-8")
    page = browser.new_page()
    page.goto(written[1].as_uri())
    told = page.evaluate(
        """() => openEngine(JSON.parse(document.getElementById("data").textContent))
          .then(() => "", (error) => error.message)"""
    )
    assert (
        told == "This page is damaged: its numbers are not those that were written. Make it again."
    )
    page.close()


@pytest.mark.slow
def test_weights_of_a_page_that_would_be_too_large_have_two_bytes(
    browser: "Browser", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnviz.commands.explain.page.LARGEST", 10_000_000)
    file, model = tmp_path / "half.html", attnviz.load_model()
    attnviz.explain(TEXT, model).save(file)
    assert file.stat().st_size < 8_000_000
    page = browser.new_page()
    page.goto(file.as_uri())
    found = compared(model._loaded, page, [TEXT])
    error = page.evaluate("() => tested.about.error")
    assert found.weight == pytest.approx(error["weight"], rel=0.05)
    assert found.probability == pytest.approx(error["probability"], rel=0.05)
    assert 1e-5 < found.weight < 0.01
    page.close()


def test_the_page_asks_for_nothing_and_lets_only_a_worker_of_its_own_be(
    opened: Open, tmp_path: Path
) -> None:
    file = tmp_path / "lesson.html"
    attnviz.explain(TEXT).save(file)
    policy = re.search(r'Security-Policy" content="([^"]*)"', file.read_text(encoding="utf-8"))
    assert policy
    told = {rule.split()[0]: rule.split()[1:] for rule in policy[1].split("; ")}
    assert told["default-src"] == told["connect-src"] == ["'none'"]
    assert told["worker-src"] == ["blob:"]
    assert "unsafe" not in policy[1]
    opened(file)  # no request, no error


@pytest.mark.slow
def test_in_a_notebook_the_page_runs_the_model_in_its_frame(
    browser: "Browser", tmp_path: Path
) -> None:
    file, page = tmp_path / "notebook.html", browser.new_page()
    shown = attnviz.explain(TEXT)._repr_html_()
    file.write_text(f"<!doctype html><meta charset=utf-8>{shown}", encoding="utf-8")
    page.goto(file.as_uri())
    page.wait_for_selector("iframe")
    (frame,) = (each for each in page.frames if each.parent_frame)
    until(frame, "document.body?.dataset.ready !== undefined && innerHeight !== 768")
    (run,) = runs_in_page(frame, ["a cat"])
    assert [label for _, label, _, _ in run["queries"]] == ["BOS", "a", "cat"]
    page.close()
    assert attnviz.explain(example="three-inputs")._repr_html_().startswith("<pre>")


def test_the_page_is_written_from_the_shell_and_refuses_what_it_cannot_show(
    run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "x.html"
    assert run("explain", TEXT, "-o", str(out)).status is ExitStatus.OK
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    for option in (["--similarity", "dot"], ["--special"], ["--only", "3"], ["--as-lookup"]):
        assert run("explain", TEXT, "-f", "html", *option).status is ExitStatus.USAGE
    ended = run("explain", "--example", "three-inputs", "-f", "html")
    assert ended.status is ExitStatus.USAGE
    assert "this result of explain makes no page" in ended.err
    with pytest.raises(UsageError, match="special"):
        attnviz.explain(TEXT, special=True).save(out)
