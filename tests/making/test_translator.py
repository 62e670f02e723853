"""What made the translator: a short run of it, and the settings that its folder keeps."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from attnviz.errors import ExitStatus
from attnviz.models.folder.config import seq2seq_config
from attnviz.models.folder.files import bundled_folder
from making import translator
from tests.conftest import Run

BUNDLED = bundled_folder("translator")


def test_a_short_run_makes_a_translator_with_a_card_that_show_takes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = replace(translator.CONFIG, n_encoder=1, n_decoder=1, n_embd=8, n_inner=8)
    monkeypatch.setattr(translator, "CONFIG", narrow)
    monkeypatch.setattr(translator, "SAMPLED", 6000)
    made = tmp_path / "made"
    translator.main(made, seed=3, steps=3, tests=8)
    assert {path.name for path in made.iterdir()} == {path.name for path in BUNDLED.iterdir()}
    card, bundled = (
        json.loads((folder / "card.json").read_text(encoding="utf-8")) for folder in (made, BUNDLED)
    )
    assert (card["training"]["seed"], card["training"]["steps"]) == (3, 3)
    assert set(card) == set(bundled)
    assert card["description"] == bundled["description"]
    measured, expected = (
        [(figure["behaviour"], figure["measure"], figure["bar"]) for figure in each["figures"]]
        for each in (card, bundled)
    )
    assert measured == expected
    shown = run("show", "the old tree", "--target", "le vieil arbre", "-m", str(made))
    assert shown.status is ExitStatus.OK, shown.err


def test_the_recipe_and_the_sizes_are_those_of_the_bundled_translator() -> None:
    training = json.loads((BUNDLED / "card.json").read_text(encoding="utf-8"))["training"]
    recipe = json.loads(json.dumps(asdict(translator.TranslatorRecipe())))
    for name in ("shard", "workers"):  # the loop of the translator has neither
        del recipe[name]
    assert {name: training[name] for name in recipe} == recipe
    assert seq2seq_config(BUNDLED) == translator.CONFIG
