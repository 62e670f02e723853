"""The translator says which words it was not trained on, wherever notes are said."""

import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import attnviz
from attnviz.errors import ExitStatus, ModelError
from attnviz.kit.prepare import TextOptions, prepare
from attnviz.models.catalog import Source, load
from attnviz.models.folder.files import WORDS, bundled_folder
from attnviz.models.scratch.translator import NativeTranslator, load_translator
from making.translation.grammar import pairs
from making.translator import english_words
from tests.conftest import Run

NOTE = "note: the model was not trained on these words and cannot translate them: "
KNOWN = "a fluffy blue creature roamed the verdant forest"
STRANGE = "the platypus eats a samovar and Zorblat"


@pytest.fixture(scope="module")
def translator() -> NativeTranslator:
    model = load(Source("translator"))
    assert isinstance(model, NativeTranslator)
    return model


@pytest.mark.parametrize("held_out", [False, True])
def test_in_sentences_of_its_own_only_words_to_be_copied_are_unknown(
    translator: NativeTranslator, held_out: bool
) -> None:
    for phrase in itertools.islice(pairs("words", held_out=held_out), 2000):
        english = " ".join(phrase.english)
        french = " ".join(word.word for word in phrase.french)
        for word in translator.unknown_words(english, french):
            assert word.lower() in french.lower(), english


def test_what_it_writes_itself_for_its_own_words_has_none_either(
    translator: NativeTranslator,
) -> None:
    """Made-up names count as known only where it really copies them."""
    phrases = itertools.islice(pairs("written"), 100)
    texts = [" ".join(p.english) for p in phrases]
    known = [t for t in texts if not translator.unknown_words(t, t)]
    assert len(known) >= 90
    noted = [t for t in known if prepare(translator, t, TextOptions()).empty.unknown_words]
    assert len(noted) <= 3, noted


@pytest.mark.parametrize(
    ("text", "target", "unknown"),
    [
        ("the cat found a hat", "le chat a trouvé un chapeau", ()),
        # each once, in order, cut as the tokenizer cuts
        ("a platypus sees 37 platypus", "", ("platypus", "37")),
        # a French word, one token of the vocabulary, that English never had
        ("the oiseau found a livre", "l'oiseau", ("oiseau", "livre")),
        # a single token that is a piece of words
        ("pl was here", "", ("pl",)),
        ("the samovar's hat?!", "", ("samovar",)),
        # a capital letter makes no word unknown, but a whole word of them does
        ("Cat", "chat", ()),
        ("THE cat", "le chat", ("THE",)),
        # a name that it copies is translated
        ("Zorblat found a hat", "Zorblat a trouvé un chapeau", ()),
        ("Zorblat found a hat", "Zor a trouvé un chapeau", ("Zorblat",)),
        ("Zorblat found a hat", "", ()),  # nothing is written: the encoder
        ("楚留香 found a hat", "un chapeau", ("楚留香",)),
    ],
)
def test_unknown_words_are_those_that_english_never_had(
    translator: NativeTranslator, text: str, target: str, unknown: tuple[str, ...]
) -> None:
    assert translator.unknown_words(text, target) == unknown


@pytest.mark.slow
def test_its_words_are_those_of_the_training() -> None:
    saved = (bundled_folder("translator") / WORDS).read_text(encoding="utf-8").split()
    assert saved == sorted(english_words())


@pytest.mark.parametrize(
    "command", [("show",), ("explain", "--only", "3"), ("show", "--kind", "encoder")]
)
def test_one_line_on_stderr_names_them(run: Run, command: tuple[str, ...]) -> None:
    ended = run(*command, STRANGE, "-m", "translator")
    assert ended.status is ExitStatus.OK
    assert ended.err.startswith(NOTE + "“platypus”, “samovar”")
    assert "; attnviz/builtin/translator/words.txt lists those that it knows" in ended.err
    assert ended.err.count("\n") == 1
    assert run(*command, STRANGE, "-m", "translator", "--quiet").err == ""
    assert run(*command, KNOWN, "-m", "translator").err == ""


def test_many_of_them_are_counted(run: Run) -> None:
    text = "aardvark samovar bivouac oryx gnu ocelot samizdat quokka abacus tantalum"
    said = run("show", text, "-m", "translator").err
    assert said.startswith(NOTE)
    assert said.count("“") == 8
    assert " and 2 more; " in said


def test_a_letter_that_commands_the_terminal_is_escaped(run: Run) -> None:
    said = run("show", "the cat\u202e3 found a hat", "-m", "translator").err
    assert "\u202e" not in said


def test_the_json_of_show_and_explain_lists_them(run: Run) -> None:
    for command in ("show", "explain"):
        said = json.loads(run(command, STRANGE, "-m", "translator", "-f", "json").out)
        assert said["unknown_words"][:2] == ["platypus", "samovar"]
        assert "unknown_words" not in run(command, KNOWN, "-m", "translator", "-f", "json").out


def test_a_saved_capture_still_says_them(run: Run, tmp_path: Path) -> None:
    saved = str(tmp_path / "c.npz")
    run("show", STRANGE, "-m", "translator", "-o", saved)
    assert run("show", saved).err.startswith(NOTE + "“platypus”")
    with np.load(saved) as archive:
        assert json.loads(str(archive["meta"]))["unknown_words"][0] == "platypus"
    run("show", KNOWN, "-m", "translator", "-o", saved)
    assert run("show", saved).err == ""


def test_a_page_says_them(run: Run) -> None:
    said = "cannot translate them: \\u201cplatypus\\u201d"
    assert said in run("show", STRANGE, "-m", "translator", "-f", "html").out
    assert "cannot translate" not in run("show", KNOWN, "-m", "translator", "-f", "html").out


def test_only_the_part_that_is_read_counts(translator: NativeTranslator) -> None:
    text = "the cat found a hat . " * 20 + "the platypus"
    cut = prepare(translator, text, TextOptions(truncate="right")).empty
    assert cut.left_out[1] > 0
    assert cut.unknown_words == ()


def test_the_first_line_claims_nothing_of_words_that_the_model_does_not_know(run: Run) -> None:
    claim = "known for: each French word attends to the English word it translates"
    assert claim in " ".join(run("show", KNOWN, "-m", "translator").out.split())
    assert claim not in " ".join(run("show", "samovar samovar", "-m", "translator").out.split())


def test_other_models_say_nothing(run: Run) -> None:
    assert "platypus" not in run("show", STRANGE).err
    assert attnviz.capture(STRANGE).record.unknown_words == ()


def test_a_folder_without_words_says_nothing_and_one_with_damaged_ones_is_refused(
    tmp_path: Path,
) -> None:
    folder = shutil.copytree(bundled_folder("translator"), tmp_path / "copy")
    (folder / WORDS).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match=r"words\.txt' cannot be read"):
        load_translator(folder, "copy", None)
    (folder / WORDS).unlink()
    assert load_translator(folder, "copy", None).unknown_words("a samovar", "") == ()
