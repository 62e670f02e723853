"""What a head's addition means: nothing is told that chance reaches, too."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import attnviz
from attnviz.commands.explain.meaning import KEPT, addition, chance_of, said_by
from attnviz.errors import ExitStatus, ModelError
from attnviz.kit.cache import kept_in
from attnviz.models.catalog import Source, load
from attnviz.models.folder.readouts import READOUTS, read_maps
from attnviz.records.heads import Head, ReadHead, ReadOut
from attnviz.records.meaning import MOMENTS, Read, Reading, neighbours, reading
from attnviz.records.tokens import Token
from tests.conftest import Run
from tests.reading import on_one_line

TEXT = "a fluffy blue creature"
HERE = Head(1, 0)


def found(run: Run, *more: str) -> Any:
    return json.loads(run("explain", *more, "-f", "json").out)


# The nearest tokens.


@pytest.mark.parametrize("head", ["L0H1", "L3H2", "L4H0"])
def test_no_token_is_told_that_is_no_nearer_than_chance(run: Run, head: str) -> None:
    said = found(run, TEXT, "--head", head)
    assert 0.2 < said["nearest_chance"] < 0.6
    assert all(token["cosine"] > said["nearest_chance"] for token in said["nearest"])
    shown = on_one_line(run("explain", TEXT, "--head", head, "--only", "5").out)
    assert re.search(rf"\((chance )?{said['nearest_chance']:.2f}\)\.", shown)


def test_a_token_that_is_nearer_is_told_beside_chance(
    run: Run, gpt2_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnviz.models.engine.chance_cosine", lambda _: 0.01)
    said = found(run, TEXT, "-m", str(gpt2_copy), "--head", "L0H1")
    assert len(said["nearest"]) == 5
    shown = on_one_line(run("explain", TEXT, "-m", str(gpt2_copy), "--head", "L0H1").out)
    assert f"{said['nearest'][0]['cosine']:.2f}" in shown
    assert "(chance 0.01)." in shown


def test_chance_is_measured_once_and_remembered_for_these_weights(
    gpt2_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model = load(Source(str(gpt2_copy)))
    level = chance_of(model)
    assert json.loads(kept_in(model, KEPT).read_text())["cosine"] == pytest.approx(level)
    monkeypatch.setattr("attnviz.models.engine.chance_cosine", lambda _: 0.5)
    assert chance_of(load(Source(str(gpt2_copy)))) == pytest.approx(level)
    for damaged in ("", "[]", "{}", '{"schema": "attnviz-chance/1", "cosine": 7.0}'):
        kept_in(model, KEPT).write_text(damaged)
        assert chance_of(model) == 0.5


def test_the_level_of_a_card_is_taken(gpt2_copy: Path) -> None:
    card = {"schema": 1, "name": "a", "description": "b", "bos": True, "heads": [], "figures": []}
    (gpt2_copy / "card.json").write_text(json.dumps({**card, "chance_cosine": 0.25}))
    assert chance_of(load(Source(str(gpt2_copy)))) == 0.25


# Read-outs.


def readout(**parts: Any) -> ReadOut:
    whole: dict[str, Any] = {
        "name": "colour",
        "behaviour": "adjectives",
        "classes": ("red", "blue", "none"),
        "n": 200,
        "chance": 0.33,
        "token": 0.33,
        "heads": (ReadHead(HERE, before=0.35, added=0.9, after=0.95),),
    }
    return ReadOut(**{**whole, **parts})


def test_a_read_out_tells_the_likeliest_class_and_nothing_where_it_is_right_by_chance() -> None:
    rng = np.random.default_rng(0)
    maps = rng.normal(size=(3, 6, 3)).astype(np.float32)
    vectors = {moment: rng.normal(size=5).astype(np.float32) for moment in MOMENTS}
    before, *others = reading(readout(), HERE, {("colour", HERE): maps}, vectors).reads
    assert before.found is None
    for row, read in enumerate(others, start=1):
        logits = np.array([*vectors[read.moment], 1.0]) @ maps[row].astype(np.float64)
        chances = np.exp(logits) / np.exp(logits).sum()
        assert read.found is not None
        assert read.found[0] == readout().classes[int(chances.argmax())]
        assert read.found[1] == pytest.approx(chances.max())
    assert [read.accuracy for read in others] == [0.9, 0.95]


def test_the_built_in_model_reads_out_what_the_text_says(run: Run) -> None:
    said = {each["name"]: each for each in found(run, TEXT)["readings"]}
    added = {name: each["reads"][-2] for name, each in said.items()}
    assert {name: read["read"] for name, read in added.items()} == {
        "colour": "blue",
        "texture": "fluffy",
    }
    for name, each in said.items():
        assert each["token"] == pytest.approx(each["chance"], abs=0.05), name
        assert added[name]["accuracy"] >= 0.9, name
    shown = on_one_line(run("explain", TEXT, "--only", "5").out)
    assert re.search(
        r"Right of 600 held-out words: token alone 0\.0\d, before .* chance 0.09", shown
    )
    assert "(0." not in shown.split("colour:")[1].split("Right of")[0]  # a share is no confidence


@pytest.mark.parametrize(
    ("before", "added", "after", "says"),
    [
        (0.1, 0.9, 0.9, "L1H0 adds red."),
        (0.9, 0.9, 0.9, "L1H0 adds red, which could be read before it, too."),
        (0.1, 0.9, 0.4, "What L1H0 adds reads as red; after it, the stream does not."),
        (0.1, 0.4, 0.9, "From only what L1H0 adds: unsure."),
        (0.1, None, 0.9, "From only what L1H0 adds: cannot be told (right 0.34, chance 0.33)."),
    ],
)
def test_an_addition_is_said_to_add_only_what_is_taken_up(
    before: float, added: float | None, after: float, says: str
) -> None:
    odds = dict(zip(MOMENTS, (before, added, after), strict=True))
    reads = tuple(
        Read(moment, 0.34 if sure is None else 0.9, None if sure is None else ("red", sure))
        for moment, sure in odds.items()
    )
    each = Reading(readout(), HERE, reads)
    said = [said_by(each, read) for read in reads]
    told = addition(each, said[1], taken_up=said[1] == said[2], known=said[1] == said[0])
    assert told == says


def test_other_heads_are_named_only_where_what_they_add_is_right_above_chance(run: Run) -> None:
    sense = next(each for each in load(Source("builtin")).card.readouts if each.name == "sense")
    shown = on_one_line(
        run("explain", "She sat on the river bank", "--head", "L3H0", "--query", "bank").out
    )
    (named,) = re.findall(r"Other heads whose addition it is read from: ([^.]*\.[\d., LH]*)", shown)
    for each in sense.heads:
        above = each.added > sense.chance + 0.05 and each.head != Head(3, 0)
        assert (str(each.head) in named) == above


def test_a_word_that_falls_into_pieces_is_told(run: Run) -> None:
    shown = on_one_line(run("explain", "the creature was zorbly", "--only", "1").out)
    assert "“zorbly” is not a token of the vocabulary; it falls into ␣ z or b ly." in shown
    assert "“creature” is no token" not in shown


def test_a_word_that_no_read_out_is_for_has_none(run: Run) -> None:
    assert found(run, TEXT, "--query", "a")["readings"] == []
    # its adjective is no class of any read-out
    hungry = found(run, "the hungry dog found an old bone", "--head", "L3H2", "--query", "dog")
    assert hungry["readings"] == []


def saved(folder: Path, **tensors: Any) -> Path:
    save_file(tensors, folder / READOUTS)
    return folder


def test_maps_are_read_as_they_were_written(tmp_path: Path) -> None:
    maps = np.random.default_rng(0).normal(size=(3, 6, 3)).astype(np.float16)
    saved(tmp_path, **{"colour.L1H0": maps})
    read = read_maps(tmp_path, [readout()], 5)
    np.testing.assert_array_equal(read["colour", HERE], maps.astype(np.float32))


@pytest.mark.parametrize(
    "tensors",
    [
        {},
        {"colour.L1H0": np.zeros((3, 6, 4), np.float16)},  # a class too many
        {"colour.L1H0": np.zeros((3, 5, 3), np.float16)},  # no bias
        {"colour.L1H0": np.full((3, 6, 3), np.nan, np.float16)},
        {"colour.L1H1": np.zeros((3, 6, 3), np.float16)},
    ],
)
def test_maps_that_do_not_fit_the_card_are_refused(tmp_path: Path, tensors: dict[str, Any]) -> None:
    saved(tmp_path, **tensors)
    with pytest.raises(ModelError, match="damaged"):
        read_maps(tmp_path, [readout()], 5)


@pytest.mark.parametrize("content", [b"", b"x" * 100, bytes(1 << 25)])
def test_a_damaged_or_huge_file_of_maps_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / READOUTS).write_bytes(content)
    with pytest.raises(ModelError):
        read_maps(tmp_path, [readout()], 5)


def test_a_folder_without_maps_has_none(tmp_path: Path) -> None:
    assert read_maps(tmp_path, [readout()], 5) == {}
    assert read_maps(None, [readout()], 5) == {}


def test_every_read_out_of_the_built_in_model_has_its_maps() -> None:
    model = load(Source("builtin"))
    maps = read_maps(model.tokenizer.folder, model.card.readouts, 128)
    assert {name for name, _ in maps} == {"colour", "texture", "referent", "sense"}
    assert model.tokenizer.folder is not None
    assert len(load_file(model.tokenizer.folder / READOUTS)) == len(maps)


# Contexts.


def places(count: int) -> list[tuple[str, int, Token]]:
    return [("a", number, Token(0, 0, "a", 0, 1)) for number in range(count)]


def test_neighbours_are_the_nearest_and_those_that_chance_reaches_are_left_out() -> None:
    rng = np.random.default_rng(3)
    others = (rng.normal(size=(60, 20)) + 4).astype(np.float32)
    vector = others[17] + 0.1 * rng.normal(size=20).astype(np.float32)
    nearest = neighbours("after", vector, others, places(60))
    centred = others - others.mean(axis=0)
    own = vector - others.mean(axis=0)
    cosine = centred[17] @ own / np.linalg.norm(centred[17]) / np.linalg.norm(own)
    assert nearest.nearest[0].line == 17
    assert nearest.nearest[0].cosine == pytest.approx(cosine, abs=1e-5)
    assert all(context.cosine > nearest.chance for context in nearest.nearest)
    assert len(nearest.nearest) < 3  # the next ones are no nearer than chance
    strange = rng.normal(size=20).astype(np.float32) + 4
    assert neighbours("after", strange, others, places(60)).nearest == ()


def test_the_same_words_are_the_nearest_context_of_a_query(run: Run, tmp_path: Path) -> None:
    lines = ["the old man slept", "", TEXT, "a small dog", "she saw a red car near the house"]
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(lines))
    contexts = found(run, TEXT, "--among", str(file))["contexts"]
    assert contexts["texts"] == 4
    assert [each["moment"] for each in contexts["neighbours"]] == ["before", "added", "after"]
    for each in contexts["neighbours"]:
        first = each["nearest"][0]
        assert (first["line"], first["token"]) == (3, "creature")
        assert first["cosine"] == pytest.approx(1, abs=1e-5)
        assert first["cosine"] > each["chance"]
    shown = run("explain", TEXT, "--among", str(file), "--only", "5").out
    assert "1.00 line 3: a fluffy blue [creature]" in shown


def test_contexts_of_any_model_are_found(gpt2_copy: Path, tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text(f"another text\n{TEXT}\n")
    model = attnviz.load_model(gpt2_copy, engine="transformers")
    contexts = attnviz.explain(TEXT, model, head="L1H0", among=file).record.meaning.contexts
    assert [each.moment for each in contexts.neighbours] == ["before", "added", "after"]
    assert contexts.neighbours[0].nearest[0].line == 2


def test_a_file_without_texts_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n\n")
    ended = run("explain", TEXT, "--among", str(tmp_path / "texts.txt"))
    assert ended.status is ExitStatus.INPUT
    assert "has 0 texts" in ended.err


def test_a_text_that_does_not_fit_is_named_by_its_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text(f"{TEXT}\n{'a ' * 300}\n")
    ended = run("explain", TEXT, "--among", str(tmp_path / "texts.txt"))
    assert ended.status is ExitStatus.INPUT
    assert "line 2 of" in ended.err


def test_the_meaning_is_in_the_record_of_python() -> None:
    explained = attnviz.explain(TEXT, head="L3H2")
    meaning = explained.record.meaning
    assert meaning.chance == explained.facts["nearest_chance"]
    assert explained.record.trace.nearest == meaning.nearest
