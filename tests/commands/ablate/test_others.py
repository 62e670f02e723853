"""`attnviz ablate` with activations of other texts: their mean, or one text after the other."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import attnviz
from attnviz.errors import ExitStatus, InputError, UsageError
from tests.conftest import Run
from tests.hooked import Hooked
from tests.reading import on_one_line, rows_in

TEXT = "a blue bird slept . the bird was"
OTHERS = ["a red fox ran . the fox was", "the old house stood there"]
SAME = ["a red fox ran . the fox was", "a green dog slept . the dog was"]


HEADS = [(0, 3), (2, 0), (4, 0)]


def changes(**options: Any) -> dict[tuple[int, int], float]:
    rows = attnviz.ablate(TEXT, heads=HEADS, **options).rows
    return {(row["layer"], row["head"]): row["change"] for row in rows}


def test_a_mean_counts_every_position_of_every_text_alike() -> None:
    hooked = Hooked()
    found = changes(replacement="mean", mean_from=OTHERS)
    for head in HEADS:
        every = torch.cat([hooked.z(text, *head) for text in OTHERS])
        assert found[head] == pytest.approx(
            hooked.changed(TEXT, *head, every.mean(dim=0)).mean().item(), abs=1e-4
        )


def test_a_mean_by_position_has_one_vector_for_each() -> None:
    hooked = Hooked()
    found = changes(replacement="mean", mean_from=SAME, mean_by="position")
    for head in HEADS:
        each = torch.stack([hooked.z(text, *head) for text in SAME]).mean(dim=0)
        assert found[head] == pytest.approx(
            hooked.changed(TEXT, *head, each).mean().item(), abs=1e-4
        )


def test_resampled_outputs_are_those_of_each_text_and_the_effect_their_mean() -> None:
    hooked = Hooked()
    longer = [*SAME, "the old house stood there and nobody lived in it"]
    found = changes(replacement="resample", resample_from=longer)
    n = len(hooked.ids(TEXT))
    for head in HEADS:
        each = [
            hooked.changed(TEXT, *head, hooked.z(text, *head)[:n]).mean().item() for text in longer
        ]
        assert found[head] == pytest.approx(np.mean(each), abs=1e-4)
        assert np.ptp(each) > 0


def test_next_tokens_are_those_of_the_mean_probability_over_the_draws() -> None:
    hooked = Hooked()
    drawn = {"replacement": "resample", "resample_from": SAME, "heads": "L4H0", "together": True}
    both = attnviz.ablate(TEXT, **drawn, top=5).record
    each = [
        hooked.logits_with(TEXT, 4, 0, hooked.z(text, 4, 0))[-1].softmax(dim=-1) for text in SAME
    ]
    assert both.before.candidates[0].label == "blue"
    for candidate in both.after.candidates:
        wanted = float(sum(each)[candidate.id] / 2)
        assert candidate.probability == pytest.approx(wanted, abs=1e-5)


def test_draws_are_seeded_leave_out_the_text_itself_and_shorter_ones() -> None:
    texts = [TEXT, "too short", *SAME, "a black cat ran . the cat was"]
    draw = {"replacement": "resample", "resample_from": texts, "draws": 1}
    several = [changes(**draw, seed=seed) for seed in range(8)]
    assert several[0] == changes(**draw, seed=0)
    each = [changes(replacement="resample", resample_from=[text]) for text in texts[2:]]
    assert all(found in each for found in several)
    assert len({found[4, 0] for found in several}) > 1
    (row, *_) = attnviz.ablate(TEXT, **{**draw, "draws": 9}).rows
    assert (row["other_texts"], row["draws"]) == (5, 3)
    told = "mean of {} that are long enough"
    for draws, words in ((9, "all 3 of 5 texts"), (2, "2 drawn from the 3 of 5 texts")):
        found = on_one_line(str(attnviz.ablate(TEXT, **{**draw, "draws": draws}, heads="L4H0")))
        assert told.format(words) in found
    with pytest.raises(InputError, match="the 2 texts have no other text of 9 tokens or more"):
        changes(replacement="resample", resample_from=texts[:2])


def test_several_draws_have_an_error_and_many_lines_count_all_of_theirs() -> None:
    given = {"replacement": "resample", "heads": "L4H0", "answer": "blue"}
    each = [attnviz.ablate(TEXT, **given, resample_from=[text]).rows[0]["change"] for text in SAME]
    found = attnviz.ablate(TEXT, **given, resample_from=SAME)
    assert found.rows[0]["error"] == pytest.approx(abs(each[0] - each[1]) / 2, rel=1e-3)
    assert "standard error over these draws" in on_one_line(str(found))
    assert attnviz.ablate(TEXT, **given, resample_from=SAME[:1]).rows[0]["error"] is None
    means = attnviz.ablate([TEXT, "the cat"], **given, resample_from=[*SAME, "a b"], draws=3)
    assert [row["draws"] for row in means.rows] == [2, 3, 5]
    assert "mean of all 2 to 3 of 3 texts that are long enough" in on_one_line(str(means))


def test_a_file_gives_what_a_list_does_and_is_named(run: Run, tmp_path: Path) -> None:
    plain, objects = tmp_path / "plain.txt", tmp_path / "objects.jsonl"
    plain.write_text("\n".join(OTHERS) + "\n\n")
    objects.write_text("\n".join(f'{{"text": "{text}", "answer": "x"}}' for text in OTHERS))
    wanted = changes(replacement="mean", mean_from=OTHERS)
    for file in (plain, objects):
        given = "--with", "mean", "--mean-from", str(file), "--head", "L0H3,L2H0,L4H0"
        rows = rows_in(run("ablate", TEXT, *given, "-f", "jsonl").out)
        assert {(row["layer"], row["head"]): row["change"] for row in rows} == wanted
        assert changes(replacement="mean", mean_from=file) == wanted
        out = on_one_line(run("ablate", TEXT, *given).out)
        assert f"a head's output replaced by its mean over 2 texts of {file.name}" in out
    given = "--with", "resample", "--resample-from", str(plain), "--head", "L4H0", "--together"
    out = on_one_line(run("ablate", "a blue bird", *given).out)
    assert "the same position of another text: mean of all 2 texts of plain.txt" in out


def test_many_prompts_read_and_run_the_texts_once(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, pairs = tmp_path / "others.txt", tmp_path / "pairs.jsonl"
    file.write_text("\n".join(OTHERS))
    pairs.write_text("\n".join(f'{{"text": "{text}"}}' for text in (TEXT, *SAME)))
    native, runs = type(attnviz.load_model()._loaded), list[int]()
    plain = native.site_vectors
    monkeypatch.setattr(
        native, "site_vectors", lambda self, ids, sites: runs.append(1) or plain(self, ids, sites)
    )
    given = "--with", "mean", "--mean-from", str(file), "--head", "L4H0", "-f", "jsonl"
    rows = rows_in(run("ablate", "--pairs", str(pairs), *given).out)
    assert len(rows) == 4
    assert len(runs) == len(OTHERS)


def test_what_does_not_fit_is_said_once(run: Run, tmp_path: Path) -> None:
    file, pairs = tmp_path / "others.jsonl", tmp_path / "pairs.jsonl"
    file.write_text('{"text": "the cat"}\n{"texts": 3}\n')
    pairs.write_text("\n".join(f'{{"text": "{text}"}}' for text in SAME))
    given = "ablate", "--pairs", str(pairs), "--with", "mean", "--mean-from", str(file)
    ended = run(*given)
    assert ended.status == ExitStatus.INPUT
    assert ended.err.count("\n") == 1
    assert "line 2 of " in ended.err
    file.write_text("the cat\nthe black cat\n")
    ended = run(*given, "--mean-by", "position")
    assert ended.status == ExitStatus.USAGE
    assert ended.err.count("\n") == 1
    assert "the 2 texts of others.jsonl have 3 to 4 tokens" in ended.err
    with pytest.raises(UsageError, match="text 2: the text has"):
        changes(replacement="mean", mean_from=["a", "the cat " * 500])
