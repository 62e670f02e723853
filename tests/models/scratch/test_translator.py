"""The bundled translator: what it writes, where it looks, and damaged folders."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from attnviz.errors import ExitStatus, InputError, ModelError, UsageError
from attnviz.kit.choose import plan_capture
from attnviz.kit.prepare import HeadOptions, TextOptions, prepare
from attnviz.models.catalog import Source, load
from attnviz.models.folder.files import bundled_folder
from attnviz.models.loaded import LoadedModel
from attnviz.models.scratch.translator import load_translator
from attnviz.records.capture import Capture, Kind
from attnviz.records.heads import Head
from making.tokenizer import WordEncoder
from making.translation.evaluate import ALIGNED, alignment, exact_match, held_out
from tests.conftest import Run
from tests.factories import recorded_heads
from tests.reading import rows_of

CREATURE = "a fluffy blue creature"
EXACT_MATCH = 0.7
"""What is reached of held-out pairs word by word; the bar of .95 is missed."""


@pytest.fixture(scope="module")
def translator() -> LoadedModel:
    return load(Source("translator"))


def captured(model: LoadedModel, text: str, target: str | None = None) -> Capture:
    heads = recorded_heads(model, HeadOptions(everything=True))
    return prepare(model, text, TextOptions(target=target)).record(heads)


@pytest.mark.parametrize(
    ("english", "french"),
    [
        (CREATURE, "une créature bleue et duveteuse"),
        (
            "a fluffy blue creature roamed the verdant forest",
            "une créature bleue et duveteuse a parcouru la forêt verdoyante",
        ),
        ("Bark is very cute and he is a dog", "Bark est très mignon et c'est un chien"),
        ("hello", "bonjour"),
        ("I love you.", "Je t'aime."),
        ("She sleeps.", "Elle dort."),
        ("The black cats are sleeping.", "Les chats noirs dorment."),
        ("I have many friends.", "J'ai beaucoup d'amis."),
        ("the platypus sees a spoon", "le platypus voit une cuillère"),
        ("Where is the station?", "Où est la gare ?"),
        ("The girl went to the school.", "La fille est allée à l'école."),
    ],
)
def test_it_translates(translator: LoadedModel, english: str, french: str) -> None:
    assert captured(translator, english).target == french


def test_the_named_head_looks_at_the_word_that_is_translated(translator: LoadedModel) -> None:
    found = captured(translator, "a fluffy blue creature roamed the verdant forest")
    (head,) = plan_capture(found, HeadOptions()).pick(found).heads
    pattern = found.weights(head)
    keys = {token.label: token.index for token in found.key_tokens}
    french = {"créature": "creature", "bleue": "blue", "duveteuse": "fluffy", "forêt": "forest"}
    for token in found.query_tokens:
        if token.label in french:
            assert int(pattern[token.index].argmax()) == keys[french[token.label]], token.label


def test_rows_sum_to_one_in_every_attention() -> None:
    for kind in ("cross", "encoder", "decoder"):
        found = captured(load(Source("translator", kind=kind)), CREATURE)
        for layer in found.layers:
            np.testing.assert_allclose(layer.weights.sum(axis=2), 1, atol=1e-5)
            assert np.triu(layer.weights, 1).any() == (kind != "decoder")


def test_what_it_never_learned_is_still_translated_somehow(translator: LoadedModel) -> None:
    for text in ("楚留香 😀 xyzzy", "\u200f‷    ‼‒⁋ . ‹\u206c \n ‖†⁃“⁄⁌"):
        found = captured(translator, text)
        assert 0 < len(found.query_tokens) <= translator.model.config.n_positions


def test_a_target_that_is_too_long_or_blank_is_refused(translator: LoadedModel) -> None:
    with pytest.raises(InputError, match="the model writes at most"):
        captured(translator, CREATURE, "un " * 200)
    with pytest.raises(InputError, match="the target"):
        captured(translator, CREATURE, " ")


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_other_attentions_have_no_named_head(kind: Kind) -> None:
    model = load(Source("translator", kind=kind))
    assert model.card.heads == ()
    assert len(recorded_heads(model, HeadOptions())) == sum(model.identity.heads_per_layer)


def test_the_encoder_takes_no_target() -> None:
    with pytest.raises(UsageError, match="target is the output"):
        captured(load(Source("translator", kind="encoder")), CREATURE, "une créature")


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("model.safetensors", None, "has no model.safetensors"),
        ("tokenizer.json", None, "has no tokenizer.json"),
        ("tokenizer.json", b"{", "cannot be read"),
        ("model.safetensors", b"\x00" * 40, "damaged or incomplete"),
    ],
)
def test_a_damaged_folder_is_told(
    tmp_path: Path, name: str, change: bytes | None, says: str
) -> None:
    folder = tmp_path / "translator"
    shutil.copytree(bundled_folder("translator"), folder)
    (folder / name).unlink()
    if change is not None:
        (folder / name).write_bytes(change)
    with pytest.raises(ModelError, match=says):
        load(Source(str(folder)))


def test_a_config_that_cannot_be_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "translator"
    shutil.copytree(bundled_folder("translator"), folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "n_head": 5}))
    with pytest.raises(ModelError, match="n_head is 5, but must be a divisor"):
        load(Source(str(folder)))


@pytest.mark.parametrize("view", ["table", "heatmap", "grid", "text"])
def test_every_view_shows_it(run: Run, view: str) -> None:
    ended = run("show", CREATURE, "-m", "translator", "--view", view)
    assert ended.status is ExitStatus.OK
    assert "creature" in ended.out or view == "grid"


def test_every_file_has_both_sequences(run: Run, tmp_path: Path) -> None:
    run("show", CREATURE, "-m", "translator", "-o", str(tmp_path / "c.npz"))
    again = run("show", str(tmp_path / "c.npz"))
    assert again.out == run("show", CREATURE, "-m", "translator").out
    for suffix in ("png", "svg", "pdf"):
        ended = run("show", CREATURE, "-m", "translator", "-o", str(tmp_path / f"c.{suffix}"))
        assert ended.status is ExitStatus.OK


def test_its_card_has_what_it_reached(run: Run) -> None:
    (card,) = rows_of(run("models", "translator", "-f", "json").out)
    figures = {figure["measure"]: figure for figure in card["figures"]}
    figure = figures["strongest word is the true one"]
    assert figure["value"] >= figure["bar"]
    assert figures["exact match"]["value"] >= EXACT_MATCH
    (named,) = card["named_heads"]
    assert Head(named["layer"], named["head"]) < Head(2, 0)


def test_it_translates_what_it_never_saw_as_well_as_its_card_says() -> None:
    translator = load_translator(bundled_folder("translator"), "translator", None)
    encoder = WordEncoder(translator.tokenizer.backend)
    tests = held_out("test", 50, encoder)
    assert exact_match(translator.model, encoder, tests).value >= EXACT_MATCH - 0.1
    (named,) = translator.card.heads
    strongest, _ = alignment(translator.model, named.head, tests)
    assert strongest.value >= ALIGNED


def test_its_weights_are_small(run: Run) -> None:
    assert (bundled_folder("translator") / "model.safetensors").stat().st_size <= 12_000_000
