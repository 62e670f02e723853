"""What made the bundled models: a short run of each, their folders' settings, and their heads."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tokenizers import Tokenizer

from attnviz.errors import ExitStatus
from attnviz.models.folder.config import read_card, seq2seq_config
from attnviz.models.folder.files import bundled_folder
from attnviz.models.scratch.native import load_checkpoint, save_checkpoint
from making import builtin, causal, readouts, translator
from making import tokenizer as tokenizers
from making.asking import fresh_asking
from making.ordinary import measured
from making.probe import WorldProbe
from making.recipe import BuiltinRecipe
from tests.conftest import Run, slow

SENTENCES = Path(__file__).parents[1] / "sentences"


@pytest.mark.slow
def test_a_short_run_makes_a_model_with_a_card_that_show_takes(
    run: Run,
    tmp_path: Path,
    folder: Path,
    world_tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
    quick_workers: None,
) -> None:
    narrow = replace(builtin.CONFIG, n_layer=4, n_embd=8, n_inner=8)
    monkeypatch.setattr(builtin, "CONFIG", narrow)
    monkeypatch.setattr(tokenizers, "build", lambda: world_tokenizer)
    for name, few in {"LEARNED": 400, "CHOSEN": 40, "MEASURED": 40}.items():
        monkeypatch.setattr(readouts, name, few)
    made, sentences = tmp_path / "made", some_sentences(tmp_path / "sentences")
    begin = tmp_path / "begin"
    begin.mkdir()
    save_checkpoint(begin, fresh_asking(narrow, 0).finished(), world_tokenizer)
    (begin / "card.json").write_text(json.dumps({"training": {"seed": 9}}))
    builtin.main(made, begin, seed=3, steps=3, sentences=sentences, texts=24, wordnet=folder)
    names = {path.name for path in made.iterdir()}
    assert names == {path.name for path in bundled_folder("builtin").iterdir()} | {builtin.LOG}
    steps = [json.loads(line) for line in (made / builtin.LOG).read_text().splitlines()]
    assert [step["step"] for step in steps] == [3]
    card, bundled = card_of(made), card_of(bundled_folder("builtin"))
    assert card["description"] == bundled["description"]
    assert (card["training"]["seed"], card["training"]["steps"]) == (3, 3)
    assert card["training"]["from"] == {"seed": 9}
    assert card["training"]["tokens"] == steps[-1]["tokens"] > 0
    assert bars_of(card) == bars_of(bundled)
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


ASKED = 3, 2
"""L3H2, the head of pronouns and adjectives."""


def test_contractions_read_as_their_long_forms_do() -> None:
    probe = WorldProbe.open(bundled_folder("builtin"))
    lines = (SENTENCES / "development" / "contractions.jsonl").read_text(encoding="utf-8")
    entries = [json.loads(line) for line in lines.splitlines()]
    short, full = (
        sum(is_right(probe, each, form) for each in entries) for form in ("text", "full")
    )
    assert short >= 0.85 * full > 0.85 * 25


def is_right(probe: WorldProbe, entry: dict, form: str) -> bool:
    """Whether the head attends most to the annotated word, in this form of the text."""
    with TemporaryDirectory() as folder:
        one = json.dumps({**entry, "text": entry[form]})
        (Path(folder) / "one.jsonl").write_text(one, encoding="utf-8")
        return bool(measured(probe, Path(folder), "one").top[0][ASKED])


def test_the_last_word_of_a_reason_attends_to_what_it_is_about() -> None:
    probe = WorldProbe.open(bundled_folder("builtin"))
    found = measured(probe, SENTENCES / "development", "reasons")
    assert found.top.mean(0)[ASKED] >= 0.85
    assert found.mass.mean(0)[ASKED] >= 0.4


def some_sentences(folder: Path) -> Path:
    """A few of the annotated sentences of each kind."""
    for file in SENTENCES.rglob("*.jsonl"):
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        some = folder / file.relative_to(SENTENCES)
        some.parent.mkdir(parents=True, exist_ok=True)
        some.write_text("".join(lines[::6]), encoding="utf-8")
    return folder


def bars_of(card: dict) -> list[tuple]:
    return [(each["behaviour"], each["measure"], each["bar"]) for each in card["figures"]]


def card_of(folder: Path) -> dict:
    return json.loads((folder / "card.json").read_text(encoding="utf-8"))


BUNDLED = bundled_folder("translator")


@pytest.mark.slow
def test_a_short_run_makes_a_translator_with_a_card_that_show_takes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = replace(translator.CONFIG, n_encoder=1, n_decoder=1, n_embd=8, n_inner=8)
    monkeypatch.setattr(translator, "CONFIG", narrow)
    monkeypatch.setattr(translator, "SAMPLED", 6000)
    made = tmp_path / "made"
    translator.main(made, seed=3, steps=3, tests=8)
    assert {path.name for path in made.iterdir()} == {path.name for path in BUNDLED.iterdir()}
    card, bundled = card_of(made), card_of(BUNDLED)
    assert (card["training"]["seed"], card["training"]["steps"]) == (3, 3)
    assert set(card) == set(bundled)
    assert card["description"] == bundled["description"]
    assert bars_of(card) == bars_of(bundled)
    shown = run("show", "the old tree", "--target", "le vieil arbre", "-m", str(made))
    assert shown.status is ExitStatus.OK, shown.err


def test_the_recipe_and_the_sizes_are_those_of_the_bundled_translator() -> None:
    training = card_of(BUNDLED)["training"]
    recipe = json.loads(json.dumps(asdict(translator.TranslatorRecipe())))
    for name in ("shard", "workers"):  # the loop of the translator has neither
        del recipe[name]
    assert {name: training[name] for name in recipe} == recipe
    assert seq2seq_config(BUNDLED) == translator.CONFIG


# several heads share adjectives, pronouns and senses, so that one of them can be missed
NEEDED = ("mystery", *causal.REPEATED)


@pytest.mark.parametrize(
    ("behaviours", "count", "least"),
    [
        # the fewest texts that tell the named head from all others but one or two
        (NEEDED[:1], 20, 2),
        slow(NEEDED[1:], 6, 3),
        pytest.param(NEEDED, 300, 3, marks=pytest.mark.slow),
    ],
)
def test_without_its_named_head_a_behaviour_loses_more_than_without_a_median_one(
    behaviours: tuple[str, ...], count: int, least: int
) -> None:
    probe = WorldProbe.open(bundled_folder("builtin"))
    card = read_card(bundled_folder("builtin"), "builtin", probe.model.config.heads_per_layer)
    named = {each.behaviour: each.head for each in card.heads}
    losses = list(causal.losses(probe, named, count, behaviours))
    assert [loss.behaviour for loss in losses] == list(behaviours)
    for loss in losses:
        assert loss.errors > least, loss
        assert loss.n == count
