"""A sound is shown in seconds: tables, rows, pictures, pages, captures and options."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import attnviz
from attnviz.errors import AttnvizError, InputError, UsageError
from tests.conftest import Run
from tests.speech.zoo import RATE, as_wav, named, syllables

SAID = "the cat sat"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny Whisper and a sound of 1.5 s."""
    path = tmp_path_factory.mktemp("speech")
    named("whisper").make(path / "whisper")
    as_wav(path / "a.wav", syllables())
    return path


def asked(place: Path, *more: str) -> tuple[str, ...]:
    return ("show", str(place / "a.wav"), "-m", str(place / "whisper"), "--target", SAID, *more)


def test_the_first_line_tells_what_was_heard(run: Run, place: Path) -> None:
    as_wav(place / "b.wav", np.repeat(syllables(2.5), 3), 3 * RATE)
    ended = run(*asked(place, "--head", "L1H1"))
    told = " ".join(ended.out.split())
    assert "sound of 1.50 s at 16,000 Hz, a frame is 0.02 s, padded to 2 s" in told
    ended = run("show", str(place / "b.wav"), "-m", str(place / "whisper"), "--target", SAID)
    told = " ".join(ended.out.split())
    assert "sound of 0.00–2.00 s of 2.50 s at 16,000 Hz resampled from 48,000" in told
    assert "the model reads 2.00 s of 2.50 s; --start 2 continues from there" in ended.err


def test_tables_have_a_few_seconds_and_the_padding_as_one(run: Run, place: Path) -> None:
    ended = run(*asked(place, "--head", "L1H1", "--key", "[padding]", "--query", "sat"))
    assert ended.out.count("[padding]") == 3  # its tokens are letters
    assert "on 15 more" in ended.out


def test_times_are_never_cut_in_a_table(run: Run, place: Path) -> None:
    ended = run(*asked(place, "--head", "L1H1"), columns=60)
    table = ended.out.split("\n\n", 1)[1]
    assert "s 0." in table
    assert "…" not in "".join(line.split("→", 1)[1] for line in table.splitlines() if "→" in line)


def test_the_first_line_says_among_which_heads_was_chosen(place: Path) -> None:
    model = attnviz.load_model(place / "whisper")
    shown = attnviz.show(str(place / "a.wav"), model, target=SAID)
    assert "the best of the model's alignment heads" in " ".join(str(shown).split())


def test_rows_have_the_seconds_of_each_frame(run: Run, place: Path) -> None:
    ended = run(*asked(place, "--head", "L1H1", "--key", "0.5s:0.54s", "-f", "jsonl"))
    rows = [json.loads(line) for line in ended.out.splitlines()]
    assert {(row["start_seconds"], row["end_seconds"]) for row in rows} == {
        (0.5, 0.52),
        (0.52, 0.54),
    }
    assert {row["key_token"] for row in rows} == {"0.50s", "0.52s"}


@pytest.mark.parametrize(
    ("key", "frames"),
    [("0s", {0}), ("0.51s", {25}), ("0.02s:0.05s", {1, 2}), ("1.99s", {99}), ("[padding]", {15})],
)
def test_keys_are_named_by_seconds(place: Path, key: str, frames: set[int]) -> None:
    model = attnviz.load_model(place / "whisper")
    shown = attnviz.show(str(place / "a.wav"), model, target=SAID, heads="L1H1", key=key)
    assert set(shown.record.keys) == frames


def test_seconds_that_were_not_heard_are_refused(place: Path) -> None:
    model = attnviz.load_model(place / "whisper")
    for key in ("2.5s", "0.9s:0.5s"):
        with pytest.raises(UsageError, match=r"give seconds from 0\.00s to 2\.00s"):
            attnviz.show(str(place / "a.wav"), model, target=SAID, heads="L1H1", key=key)


def test_merged_frames_have_the_sum_of_their_weights(place: Path) -> None:
    model = attnviz.load_model(place / "whisper")
    run = attnviz.capture(str(place / "a.wav"), model, target=SAID, heads="L1H1")
    record = run.show("table", heads="L1H1").record
    whole, (merged,) = run.pattern(1, 1), record.maps
    tokens = record.capture.key_tokens
    assert [token.label for token in tokens][-2:] == ["1.4–1.5s", "[padding]"]
    assert len(run.to_columns()["key"]) == len(run.tokens) * 100  # rows have each frame
    for number, token in enumerate(tokens):
        own = [t.index for t in run.key_tokens if t.time[0] >= token.time[0] - 1e-6]
        own = [i for i in own if run.key_tokens[i].time[1] <= token.time[1] + 1e-6]
        assert np.allclose(merged.weights[:, number], whole[:, own].sum(axis=1), atol=1e-6)


def test_a_start_moves_the_seconds(place: Path) -> None:
    model = attnviz.load_model(place / "whisper")
    run = attnviz.capture(str(place / "a.wav"), model, target=SAID, start=0.5, heads="L1H1")
    assert run.key_tokens[0].time == (0.5, 0.52)
    assert sum(not token.silent for token in run.key_tokens) == 50
    again = (syllables()[RATE // 2 :], RATE)
    other = attnviz.capture(model=model, audio=again, target=SAID, heads="L1H1")
    assert np.abs(run.pattern(1, 1) - other.pattern(1, 1)).max() < 1e-4  # but for 16 bits


def test_a_picture_has_seconds_across_and_the_waveform_above(place: Path) -> None:
    model = attnviz.load_model(place / "whisper")
    run = attnviz.capture(str(place / "a.wav"), model, target=SAID)
    figure = run.figure(heads="L1H1,L2H0")
    *maps, wave = [axes for axes in figure.axes if axes.get_xlim() == (0.0, 1.5)]
    assert len(maps) == 2
    assert wave.collections
    assert [label.get_text() for label in maps[0].get_yticklabels()][-1] == "<|endoftext|>"
    assert maps[-1].get_xlabel().startswith("seconds (")
    image = maps[0].images[0].get_array()
    assert image.shape[:2] == (len(run.tokens), 75)  # without the padding


def test_a_picture_of_frames_has_seconds_on_both_sides_and_no_padding(place: Path) -> None:
    model = attnviz.load_model(place / "whisper", kind="encoder")
    run = attnviz.capture(str(place / "a.wav"), model, heads="L1H1")
    axes, wave = [each for each in run.figure().axes if each.get_xlim() == (0.0, 1.5)]
    assert axes.get_ylim() == (1.5, 0.0)
    assert wave.collections
    assert axes.images[0].get_array().shape[:2] == (75, 75)
    unheard = run.pattern(1, 1)[:75, 75:].sum(axis=1).mean()
    assert axes.get_xlabel().startswith(f"seconds ({unheard:.0%} of the weight")
    apart = run.figure(query=["0.5s", "1.2s"]).axes[0]  # rows that no axis of seconds has
    assert [each.get_text() for each in apart.get_yticklabels()] == ["0.50s", "1.20s"]


def test_a_page_holds_few_keys(place: Path) -> None:
    model = attnviz.load_model(place / "whisper")
    page = attnviz.show(str(place / "a.wav"), model, target=SAID)
    page.save(place / "a.html")
    assert re.search(r"1\.4(–|\\u2013)1\.5s", (place / "a.html").read_text())


def test_a_page_of_frames_has_a_few_seconds_however_many_weights_there_are(
    run: Run, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnviz.kit.prepare.SMALL", 0)
    given = (str(place / "a.wav"), "-m", str(place / "whisper"), "--kind", "encoder")
    page = run("show", *given, "-f", "html").out
    assert re.search(r"1\.4(–|\\u2013)1\.5s", page)
    assert "Which seconds attend to which" in page


def test_what_is_written_is_read_with_what_the_model_is_given(place: Path) -> None:
    model = attnviz.load_model(place / "whisper")
    run = attnviz.capture(str(place / "a.wav"), model, target=SAID, heads="L1H1")
    labels = [token.label for token in run.tokens]
    assert labels[:3] == ["<|en|>", "<|transcribe|>", "<|notimestamps|>"]
    assert labels[-1] == "<|endoftext|>"
    assert run.record.target == SAID
    assert attnviz.capture(str(place / "a.wav"), model, heads="L1H1").record.target


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
def test_captures_are_exact(place: Path, kind: str) -> None:
    model = attnviz.load_model(place / "whisper", kind=kind)
    target = None if kind == "encoder" else SAID
    assert attnviz.verify("", model, audio=str(place / "a.wav"), target=target).exact


@pytest.mark.parametrize(
    ("given", "options", "error", "said"),
    [
        ("a text", {}, UsageError, "reads only speech, and no text"),
        ("a.wav", {}, InputError, "'a.wav' does not exist"),
        ("a text", {}, UsageError, "give only a file"),
        ("a text", {"audio": "HERE"}, UsageError, "and no text; give the transcript as target"),
        ("a text", {"audio": "HERE", "target": "a"}, UsageError, "leave the text out"),
        ("HERE", {"audio": "HERE"}, UsageError, "reads one sound at a time.*leave audio out"),
        ("HERE", {"bos": True}, UsageError, "bos needs a text"),
        ("HERE", {"truncate": "left"}, UsageError, "cannot cut an image"),
        ("HERE", {"start": 9}, InputError, "ends after 1.50 s"),
        ("", {}, UsageError, "reads only speech"),
    ],
)
def test_what_makes_no_sense_is_refused(
    place: Path, given: str, options: dict[str, object], error: type[AttnvizError], said: str
) -> None:
    model, here = attnviz.load_model(place / "whisper"), str(place / "a.wav")
    options = {name: here if value == "HERE" else value for name, value in options.items()}
    with pytest.raises(error) as refused:
        attnviz.show(here if given == "HERE" else given, model, **options)
    assert re.search(said, str(refused.value))


def test_a_model_of_texts_hears_nothing(place: Path) -> None:
    with pytest.raises(UsageError, match="reads no sounds"):
        attnviz.show("a cat", audio=str(place / "a.wav"))
    with pytest.raises(UsageError, match="start applies only to sounds"):
        attnviz.show("a cat", start=1)


def test_commands_of_texts_say_which_take_a_sound(run: Run, place: Path) -> None:
    sound, model = str(place / "a.wav"), str(place / "whisper")
    for command in ("generate", "tokens"):
        ended = run(command, sound, "-m", model)
        assert ended.status == 2
        assert "is a recording, not a text; use show, heads or align" in ended.err
    for command in ("predict", "why", "ablate"):
        ended = run(command, sound, "-m", model)
        assert ended.status == 2
        assert "reads only sounds, but this is asked about a text" in ended.err


@pytest.mark.parametrize("kind", ["cross", "encoder"])
def test_two_sounds_are_not_called_the_same_text(place: Path, kind: str) -> None:
    model = attnviz.load_model(place / "whisper", kind=kind)
    as_wav(place / "c.wav", syllables()[::-1])
    with pytest.raises(UsageError, match="sounds are not compared with each other"):
        attnviz.compare(str(place / "a.wav"), str(place / "c.wav"), model=model)


def test_a_text_of_frames_is_written_in_seconds(run: Run, place: Path) -> None:
    shown = run(*asked(place, "--view", "text")).out
    assert "\n0.0–0.1s 0.1–0.2s 0.2–0.3s" in shown
    assert "[padding]" in shown
    assert "BOS" not in shown


def test_the_row_of_padding_is_the_mean_over_all_its_frames_in_every_view(
    run: Run, place: Path
) -> None:
    sound, model = str(place / "a.wav"), str(place / "whisper")
    encoder = ("show", sound, "-m", model, "--kind", "encoder", "--head", "L1H0")
    (text,) = re.findall(r"\[padding\] \(\^\) attends to (.*)", run(*encoder, "--view", "text").out)
    (row,) = re.findall(r"\[padding\] → (.*)", run(*encoder).out)
    first, weight = text.split(",")[0].rsplit(" ", 1)
    assert row.split()[:2] == [first, weight]
