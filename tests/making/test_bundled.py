"""What made the built-in model: a short run of it, and the settings that its folder keeps."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from attnviz.errors import ExitStatus
from attnviz.models.folder.files import bundled_folder
from attnviz.models.scratch.native import load_checkpoint
from making import builtin
from making import tokenizer as tokenizers
from making.recipe import BuiltinRecipe
from tests.conftest import Run

SENTENCES = Path(__file__).parents[1] / "sentences"


def test_a_short_run_makes_a_model_with_a_card_that_show_takes(
    run: Run,
    tmp_path: Path,
    folder: Path,
    world_tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
    quick_workers: None,
) -> None:
    narrow = replace(builtin.CONFIG, n_layer=1, n_embd=8, n_inner=8)
    monkeypatch.setattr(builtin, "CONFIG", narrow)
    monkeypatch.setattr(tokenizers, "build", lambda: world_tokenizer)
    made, sentences = tmp_path / "made", some_sentences(tmp_path / "sentences")
    builtin.main(made, seed=3, steps=3, sentences=sentences, texts=24, wordnet=folder)
    names = {path.name for path in made.iterdir()}
    assert names == {path.name for path in bundled_folder("builtin").iterdir()} | {builtin.LOG}
    steps = [json.loads(line) for line in (made / builtin.LOG).read_text().splitlines()]
    assert [step["step"] for step in steps] == [3]
    card, bundled = card_of(made), card_of(bundled_folder("builtin"))
    assert card["description"] == bundled["description"]
    assert (card["training"]["seed"], card["training"]["steps"]) == (3, 3)
    assert card["training"]["tokens"] == steps[-1]["tokens"] > 0
    measured, expected = (
        [(figure["behaviour"], figure["measure"], figure["bar"]) for figure in each["figures"]]
        for each in (card, bundled)
    )
    assert measured == expected
    shown = run("show", "a fluffy blue creature", "-m", str(made), "-f", "json")
    assert shown.status is ExitStatus.OK, shown.err
    assert len(json.loads(shown.out)["patterns"]) == 1


def test_the_recipe_and_the_sizes_are_those_of_the_built_in_model() -> None:
    training = card_of(bundled_folder("builtin"))["training"]
    recipe = json.loads(json.dumps(asdict(BuiltinRecipe())))
    assert {name: training[name] for name in recipe} == recipe
    assert load_checkpoint(bundled_folder("builtin")).config == builtin.CONFIG
    settings = (bundled_folder("builtin") / "tokenizer_config.json").read_text(encoding="utf-8")
    assert json.loads(settings) == builtin.TOKENIZER_CONFIG


def some_sentences(folder: Path) -> Path:
    """A few of the annotated sentences of each kind."""
    for file in SENTENCES.rglob("*.jsonl"):
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        some = folder / file.relative_to(SENTENCES)
        some.parent.mkdir(parents=True, exist_ok=True)
        some.write_text("".join(lines[::6]), encoding="utf-8")
    return folder


def card_of(folder: Path) -> dict:
    return json.loads((folder / "card.json").read_text(encoding="utf-8"))
