"""`attnviz explain` of an encoder-decoder: two texts, three attentions, every format."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

import attnviz
from attnviz.errors import ExitStatus
from tests.conftest import Run
from tests.reading import on_one_line

TEXT, FRENCH = "a blue creature roamed the forest", "une créature bleue a parcouru la forêt"
READ = ("BOS", *TEXT.split())


def explained(run: Run, *more: str) -> str:
    """The sheet on one line, with single spaces."""
    ended = run("explain", TEXT, "-m", "translator", *more)
    assert ended.status is ExitStatus.OK, ended.err
    assert ended.err == ""
    return on_one_line(ended.out)


def test_the_weights_of_cross_attention_are_those_of_show(run: Run) -> None:
    shown = explained(run, "--head", "L0H3", "--query", "bleue", "--only", "3", "--digits", "6")
    rows = json.loads(run("show", TEXT, "-m", "translator", "--head", "L0H3", "-f", "json").out)
    for label, weight in zip(READ, rows["patterns"][0][2], strict=True):
        row = re.search(rf" {label} (-?[\d.]+) (-?[\d.]+) ([\d.]+)", shown)
        assert row, label
        assert float(row[3]) == pytest.approx(weight, abs=2e-6)


def test_a_decoder_is_told_with_the_inputs_of_its_positions_and_its_mask(run: Run) -> None:
    shown = explained(run, "--kind", "decoder", "--head", "L0H1", "--query", "bleue")
    for said in (
        "L0H1 of the decoder computes what “bleue” takes from what was written before it",
        "inputs: 0:BOS 1:une 2:créature 3:bleue 4:a 5:parcouru 6:la",
        "written: 0:une 1:créature 2:bleue 3:a 4:parcouru 5:la 6:forêt",
        "The position that writes “bleue” has “créature” as its input.",
        "embedding(créat… [",
        "Sum of the row: 1.0000.",
        "cross x + cross-attention(LayerNorm(x), m) (7, 128)",
        "+ cross [",
    ):
        assert said in shown, said
    assert re.search(r" parcouru -?[\d.]+ -?[\d.]+ −∞ 0\.0000", shown)
    assert re.search(r" créature -?[\d.]+ (-?[\d.]+) \1 ", shown)


def test_the_first_word_has_the_beginning_token_as_its_input(run: Run) -> None:
    shown = explained(run, "--kind", "decoder", "--head", "L0H1", "--query", "une", "--only", "1")
    assert "The position that writes “une” has “BOS” as its input." in shown


def test_an_encoder_is_told_without_a_mask_and_says_who_reads_it(run: Run) -> None:
    shown = explained(run, "--kind", "encoder", "--head", "L2H2", "--query", "creature")
    assert "L2H2 of the encoder computes what “creature” takes from the tokens" in shown
    assert "There is no mask: a query attends to every token, before and after." in shown
    assert shown.endswith("The encoder's output is what the decoder's cross-attention reads.")
    row = re.search(r" forest -?[\d.]+ -?[\d.]+ (0\.\d+)", shown)
    assert row
    assert float(row[1]) > 0


def test_another_translation_can_be_given(run: Run) -> None:
    shown = explained(run, "--target", "le chien", "--query", "chien", "--only", "1,3")
    assert "written: “le chien”" in shown
    assert "(2, 32)·(32, 7) = (2, 7)" in shown


def test_json_and_npz_hold_both_texts_and_every_array(run: Run, tmp_path: Path) -> None:
    arguments = ("explain", TEXT, "-m", "translator", "--head", "L1H2")
    said = json.loads(run(*arguments, "-f", "json").out)
    assert (said["schema"], said["kind"], said["target"]) == ("attnviz/3", "cross", FRENCH)
    assert [token["label"] for token in said["query_tokens"]] == FRENCH.split()
    assert [token["label"] for token in said["key_tokens"]] == list(READ)
    assert "tokens" not in said
    arrays = {name: np.array(value, np.float64) for name, value in said["arrays"].items()}
    made = arrays["source"] @ arrays["w_k"] + arrays["b_k"]
    np.testing.assert_allclose(arrays["k"], made, atol=1e-4)
    captured = attnviz.load_model("translator").capture(TEXT, heads="L1H2")
    np.testing.assert_array_equal(np.float32(arrays["pattern"]), captured.pattern(1, 2))
    run(*arguments, "-o", str(tmp_path / "e.npz"))
    with np.load(tmp_path / "e.npz", allow_pickle=False) as saved:
        assert set(saved.files) == {"meta", *said["arrays"]}
        assert saved["products"].shape == (7, 7)


def test_the_object_of_one_text_has_one_list_of_tokens(run: Run) -> None:
    said = json.loads(run("explain", TEXT, "--head", "L0H1", "-f", "json").out)
    assert (said["kind"], len(said["tokens"])) == ("self", 7)
    assert not {"target", "query_tokens", "key_tokens", "unknown_words"} & set(said)
    assert not {"source", "cross_added"} & set(said["arrays"])


def test_the_look_up_asks_in_french_and_is_answered_in_english(run: Run) -> None:
    shown = explained(run, "--as-lookup", "--query", "bleue")
    assert "L1H2 as a look-up: “bleue” asks" in shown
    assert "q(bleue) [" in shown
    assert "v(blue) [" in shown
    assert "z(bleue) = 1.00·v(blue) + " in shown


def test_columns_and_another_similarity_keep_the_two_sides_apart(run: Run) -> None:
    shown = explained(run, "--columns", "--only", "2,3", "--similarity", "general")
    assert "kᵀ = W_Kᵀ·mᵀ + b_Kᵀ (32, 128)·(128, 7) = (32, 7)" in shown
    assert "qᵀ = W_Qᵀ·x̂ᵀ + b_Qᵀ (32, 128)·(128, 7) = (32, 7)" in shown
    assert "scoresᵀ = k·qᵀ / √32 (7, 32)·(32, 7) = (7, 7)" in shown
    assert "softmax(x̂·(W_Q·W_Kᵀ)·mᵀ)" in shown


@pytest.mark.parametrize("kind", ["cross", "decoder", "encoder"])
@pytest.mark.parametrize("width", [40, 80])
def test_no_line_is_wider_than_the_terminal(run: Run, kind: str, width: int) -> None:
    arguments = ("explain", TEXT, "-m", "translator", "--kind", kind, "--head", "L1H2")
    shown = run(*arguments, "--columns", "--width", str(width)).out
    assert max(map(cell_len, shown.splitlines())) <= width


def test_a_piece_of_a_letter_in_the_translation_is_called_one(run: Run) -> None:
    ended = run(
        "explain", TEXT, "-m", "translator", "--target", "楚", "--query", "1", "--only", "3"
    )
    assert "is a part of the character 楚" in ended.err
    assert ended.err.count("is a part") == 1
