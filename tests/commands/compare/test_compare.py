"""`attnviz compare`: a word in several texts, or a text in two models."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertModel,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

import attnviz
from attnviz.commands.compare.record import ModelComparison
from attnviz.commands.compare.shown import about_models
from attnviz.errors import ExitStatus
from attnviz.models.catalog import Source, load
from attnviz.records.heads import Head
from tests.builtin import FOLDER, HEADS, NAMED
from tests.conftest import Run, bytes_tokenizer, loaded_once
from tests.factories import make_capture
from tests.reading import head_of, on_one_line, rows_in

MOLES = ("American shrew mole", "one mole of carbon dioxide", "take a biopsy of the mole")
BLUE, GREEN = "a fluffy blue creature", "a fluffy green creature"


def test_heads_are_sorted_by_how_differently_the_word_attends(run: Run) -> None:
    found = rows_in(run("compare", *MOLES, "--query", "mole", "-f", "jsonl").out)
    assert len(found) == len(HEADS) * 3
    differences = [row["difference"] for row in found]
    assert differences == sorted(differences, reverse=True)
    assert {row["by"] for row in found} == {"shares"}  # the texts' tokens do not align
    for row in found:
        shares = [row[name] for name in ("self", "first", "previous", "others")]
        assert sum(shares) == pytest.approx(1, abs=1e-4)
    senses = [row for row in found if head_of(row) == NAMED["senses"]]
    clues = ({"American", "shrew"}, {"BOS", "one"}, {"take", "biopsy"})
    assert all(row["key_token"] in some for row, some in zip(senses, clues, strict=True))


def test_what_the_word_attends_to_is_what_show_says(run: Run) -> None:
    found = rows_in(run("compare", *MOLES, "--query", "mole", "--head", "L3H3", "-f", "jsonl").out)
    for text, row in zip(MOLES, found, strict=True):
        shown = rows_in(
            run("show", text, "--head", "L3H3", "--query", "mole", "--top", "1", "-f", "jsonl").out
        )
        assert (row["key"], row["weight"]) == (shown[0]["key"], pytest.approx(shown[0]["weight"]))


def test_where_tokens_align_whole_rows_are_compared(run: Run) -> None:
    found = rows_in(run("compare", BLUE, GREEN, "--query", "creature", "-f", "jsonl").out)
    assert {row["by"] for row in found} == {"rows"}
    every = rows_in(run("compare", BLUE, GREEN, "-f", "jsonl").out)
    assert len(every) == len(HEADS)
    assert all(0 <= row["difference"] < 0.05 for row in every)
    same = rows_in(run("compare", BLUE, BLUE, "-f", "jsonl").out)
    assert {row["difference"] for row in same} == {0}


ALIKE = "the texts are identical up to “{}”, and a causal model reads nothing behind it"


@pytest.mark.parametrize(
    ("texts", "word", "alike"),
    [
        (("the bank was steep", "the bank was closed"), "bank", True),
        (("the bank was steep", "the bank was closed"), "was", True),
        (("my cat", "my cat sleeps on the mat", "my cat is old"), "cat", True),
        (("the bank was steep", "a bank was closed"), "bank", False),
        (("the old bank", "the bank"), "bank", False),  # another place
        (("blue cat", "red cat"), "cat", False),
    ],
)
def test_where_a_causal_model_has_read_the_same_one_sentence_stands_in_place_of_zeros(
    run: Run, texts: tuple[str, ...], word: str, alike: bool
) -> None:
    shown = on_one_line(run("compare", *texts, "--query", word, columns=200).out)
    assert (ALIKE.format(word) in shown) is alike
    assert ("difference of each head" in shown) is not alike
    assert ("ask about a later word, or use --model translator --kind encoder" in shown) is alike
    rows = rows_in(run("compare", *texts, "--query", word, "-f", "jsonl").out)
    assert (max(row["difference"] for row in rows) < 1e-9) is alike


def test_where_the_word_comes_before_the_first_difference_two_lines_say_so(run: Run) -> None:
    shown = run("compare", "the bank was steep", "the bank was closed", "--query", "bank").out
    assert len(shown.splitlines()) <= 2


@pytest.mark.parametrize("more", [(), ("--query", "cat"), ("--head", "L3H2")])
@pytest.mark.parametrize("model", [(), ("--model", "translator", "--kind", "encoder")])
def test_identical_texts_get_one_line(
    run: Run, more: tuple[str, ...], model: tuple[str, ...]
) -> None:
    if model and more[:1] == ("--head",):
        more = ("--head", "L0H0")
    shown = run("compare", "the cat sat", "the cat sat", *more, *model).out
    assert shown == "the texts are identical, so every head attends to the same in all of them\n"


def test_without_a_word_a_line_says_up_to_where_texts_are_identical(run: Run) -> None:
    line = "the texts are identical up to “was”, and so are the rows of a causal model"
    same = on_one_line(run("compare", "the bank was steep", "the bank was old", columns=200).out)
    assert line in same
    assert "difference of each head" in same
    other = run("compare", "the cat sat", "a cat sat", columns=200).out
    assert "identical up to" not in other


def test_a_model_that_reads_in_both_directions_sees_what_comes_later(
    run: Run, bert_folder: Path
) -> None:
    shown = run("compare", "a cat", "a cat b", "--query", "cat", "--model", str(bert_folder)).out
    assert "identical up to" not in shown
    assert "difference of each head" in on_one_line(shown)


def test_the_words_vectors_are_those_of_transformers(run: Run) -> None:
    found = rows_in(run("compare", BLUE, GREEN, "--query", "creature", "-f", "jsonl").out)
    cosines = {head_of(row): row["cosine_after_layer"] for row in found}
    theirs = load(Source("builtin", engine="transformers")).model  # type: ignore[attr-defined]
    assert isinstance(theirs, GPT2LMHeadModel)
    tokenizer = load(Source("builtin")).tokenizer
    ids = [[t.id for t in tokenizer.encode(x, bos=True, special=False)] for x in (BLUE, GREEN)]
    with torch.no_grad():
        streams = theirs(torch.tensor(ids), output_hidden_states=True).hidden_states
    a, b = streams[2][:, -1].double()  # after layer 1
    assert cosines["L1H0"] == pytest.approx(float(a @ b / a.norm() / b.norm()), abs=1e-5)


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_both_engines_have_the_same_stream(gpt2_folder: Path, engine: str) -> None:
    model = load(Source(str(gpt2_folder), engine=engine))  # type: ignore[arg-type]
    found = model.vectors([5, 6, 7], 1)
    theirs = GPT2LMHeadModel.from_pretrained(gpt2_folder).eval()
    with torch.no_grad():
        streams = theirs.transformer(torch.tensor([[5, 6, 7]]), output_hidden_states=True)
    assert found.shape == (3, 21)
    for layer in (0, 1):  # transformers' last one has the final norm behind it
        np.testing.assert_allclose(found[layer], streams.hidden_states[layer][0, 1], atol=1e-5)


def test_two_models_are_matched_head_by_head(run: Run, gpt2_folder: Path) -> None:
    name = str(gpt2_folder)
    same = rows_in(run("compare", BLUE, "-m", name, "--against", name, "-f", "jsonl").out)
    assert all(head_of(row) == head_of(row, "against_") for row in same)
    assert all(row["similarity"] == pytest.approx(1) for row in same)
    assert {row["over"] for row in same} == {"tokens"}
    other = rows_in(run("compare", BLUE, "--against", name, "-f", "jsonl").out)
    assert {row["over"] for row in other} == {"words"}
    assert {row["pair"] for row in other} == {"best"}  # they have other heads
    assert all(0 <= row["similarity"] <= 1 for row in other)
    shown = run("compare", BLUE, "--against", name, "--head", "L2H3", "--width", "80").out
    assert "less" in shown
    assert "words, as their tokens differ" in shown.replace("\n", " ")
    assert "has no head" in run("compare", BLUE, "--against", name, "--pair", "same").err
    dots = run("compare", "a bird . the bird", "--against", name, "-f", "jsonl")
    assert rows_in(dots.out)  # a space before a full stop is a token in one of them


def test_transforms_come_first_and_are_named(run: Run) -> None:
    arguments = ("compare", BLUE, GREEN, "--query", "creature", "--drop-sink", "--words")
    found = rows_in(run(*arguments, "-f", "jsonl").out)
    kinds = [[each["kind"] for each in row["transforms"]] for row in found]
    assert kinds == [["merged", "keys-dropped"]] * len(found)
    assert "BOS" not in {row["key_token"] for row in found if row["weight"]}
    assert "pieces of words merged" in run(*arguments, "--width", "200").out


@pytest.mark.parametrize("arguments", [(*MOLES, "--query", "mole"), (BLUE, GREEN)])
def test_it_fits_a_narrow_terminal_and_a_picture(
    run: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    shown = run("compare", *arguments, "--width", "40").out.splitlines()
    assert max(map(len, shown)) <= 40
    out = tmp_path / "c.png"
    assert run("compare", *arguments, "-o", str(out)).status is ExitStatus.OK
    assert out.read_bytes()[:4] == b"\x89PNG"


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=257,
        hidden_size=24,
        intermediate_size=40,
        num_hidden_layers=2,
        num_attention_heads=4,
    )
    BertModel(config).save_pretrained(folder)
    bytes_tokenizer().save(str(folder / "tokenizer.json"))
    return loaded_once(folder)


def test_models_that_look_other_ways_are_not_compared(run: Run, bert_folder: Path) -> None:
    ended = run("compare", BLUE, "--against", str(bert_folder))
    assert ended.status is ExitStatus.USAGE
    assert "is causal and" in ended.err
    assert run("compare", "ab", "cb", "-m", str(bert_folder), "--query", "b").out


def test_a_word_that_no_later_word_can_reach_is_compared_as_a_row(run: Run) -> None:
    """A causal model does not see how the text goes on."""
    texts = ("the mole ran", "the mole ran away from the house")
    found = rows_in(run("compare", *texts, "--query", "mole", "-f", "jsonl").out)
    assert {row["by"] for row in found} == {"rows"}
    assert all(row["difference"] == pytest.approx(0, abs=1e-9) for row in found)


def test_a_model_without_a_stream_of_its_own_has_no_cosines(run: Run) -> None:
    arguments = ("compare", "a blue cat", "a green cat", "-m", "translator", "--kind", "encoder")
    found = rows_in(run(*arguments, "--query", "cat", "-f", "jsonl").out)
    assert {row["cosine_after_layer"] for row in found} == {None}
    assert "vectors" not in run(*arguments, "--query", "cat").out


def test_the_same_special_tokens_stay_and_others_are_left_out_with_their_share(
    run: Run, gpt2_folder: Path
) -> None:
    same = rows_in(run("compare", BLUE, "--against", "builtin", "-f", "jsonl").out)
    assert {str(row["transforms"]) for row in same} == {"[]"}
    assert all(row["similarity"] == pytest.approx(1) for row in same)
    other = run("compare", BLUE, "--against", str(gpt2_folder), "--width", "200").out
    assert "of the weight was on special tokens or blanks, which are left out" in other
    ended = run("compare", BLUE, "--against", str(gpt2_folder), "--drop-sink")
    assert "leave --drop-sink" in ended.err


def test_heads_that_attend_to_none_of_what_is_compared_are_named() -> None:
    nothing, both = np.empty((0, 0)), (make_capture(), make_capture())
    comparison = ModelComparison(both, False, "best", [], (), (), nothing, (Head(0, 1),))
    assert "heads with no weight on these: L0H1" in about_models(comparison)


def test_a_picture_says_what_it_is_of(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "c.svg"  # whose text is text
    run("compare", *MOLES[:2], "--query", "mole", "--head", "L3H3", "-o", str(out))
    drawn = out.read_text(encoding="utf-8")
    for said in (
        "L3H3 in 2 texts",
        "between the rows of “mole”",
        "1  American shrew mole",
        "builtin",
    ):
        assert said in drawn
    run("compare", BLUE, GREEN, "--weighted", "--head", "L2H3", "-o", str(out))
    drawn = out.read_text(encoding="utf-8")
    assert "norm-based" in drawn
    assert "weight × norm" in drawn
    assert "first minus second" in drawn


def test_a_file_that_is_given_as_a_text_is_pointed_out(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("the cat sat")
    ended = run("compare", "a.txt", "b.txt")
    assert ended.status is ExitStatus.OK
    assert "'a.txt' is read as the text, but is also a file" in ended.err
    assert 'did you mean "$(cat a.txt)"?' in ended.err  # there is no --file for one of several
    assert "'b.txt' is read as the text" in ended.err


def tuned(folder: Path) -> str:
    """The built-in model with other queries in L3H2."""
    shutil.copytree(FOLDER, folder)
    weights = load_file(folder / "model.safetensors")
    (name,) = (name for name in weights if name.endswith("h.3.attn.c_attn.weight"))
    width = weights[name].shape[0]
    head = slice(2 * width // 4, 3 * width // 4)
    noise = torch.randn(width, width // 4, generator=torch.Generator().manual_seed(0))
    weights[name][:, head] += 0.3 * noise
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return str(folder)


def test_a_changed_model_is_compared_head_by_head_the_largest_change_first(
    run: Run, tmp_path: Path
) -> None:
    other = tuned(tmp_path / "tuned")
    options = ("compare", BLUE, "--against", other)
    found = rows_in(run(*options, "-f", "jsonl").out)
    assert {row["pair"] for row in found} == {"same"}  # both have the same heads
    assert head_of(found[0]) == "L3H2"
    assert found[0]["similarity"] < 0.98
    assert all(head_of(row) == head_of(row, "against_") for row in found)
    assert [row["similarity"] for row in found] == sorted(row["similarity"] for row in found)
    earlier = [row["similarity"] for row in found if row["layer"] < 3]
    assert earlier == [pytest.approx(1)] * 12
    assert "largest change first" in run(*options, "--top", "2").out.replace("\n", " ")


def test_the_matrix_of_two_models_is_saved_and_drawn(run: Run, tmp_path: Path) -> None:
    other = tuned(tmp_path / "tuned")
    options = ("compare", BLUE, "--against", other)
    saved, drawn = tmp_path / "m.npz", tmp_path / "m.svg"
    assert run(*options, "-o", str(saved)).status is ExitStatus.OK
    with np.load(saved) as archive:
        meta, matrix = json.loads(archive["meta"].item()), archive["similarity"]
    heads = [(head["layer"], head["head"]) for head in meta["heads"]]
    assert heads == list(HEADS)
    assert matrix.shape == (len(HEADS), len(meta["against_heads"]))
    best = rows_in(run(*options, "-f", "jsonl").out)
    for row in best:
        at = heads.index((row["layer"], row["head"]))
        there = heads.index((row["against_layer"], row["against_head"]))
        assert row["similarity"] == pytest.approx(matrix[at, there])
        assert matrix[at].argmax() == there
    assert run(*options, "-o", str(drawn)).status is ExitStatus.OK
    svg = drawn.read_text()
    assert "Similarity of heads over tokens" in svg
    assert ">L3H2<" in svg


def test_a_panel_and_a_title_name_both_words(run: Run) -> None:
    out = run("compare", "the cat sat", "the dog sat", "--query", "2").out
    assert "“cat” and “dog” each attends only to itself" in on_one_line(out)


def test_a_text_without_quotes_is_told_to_take_them(run: Run) -> None:
    ended = run("compare", "a", "fluffy", "blue", "--query", "blue")
    assert ended.status is ExitStatus.USAGE
    assert "'blue' is not in the text; put each text in quotes" in ended.err
    assert "quotes" not in run("compare", BLUE, GREEN, "--query", "red").err


def test_heads_of_another_architecture_are_not_paired_by_name() -> None:
    sizes = {"vocab_size": 257, "hidden_size": 16, "intermediate_size": 8}
    sizes |= {"num_hidden_layers": 2, "num_attention_heads": 2}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_tokenizer())
    one, two = (
        attnviz.load_model(kind(config(**sizes)).eval(), tokenizer)
        for kind, config in (
            (GPTNeoXForCausalLM, GPTNeoXConfig),
            (LlamaForCausalLM, LlamaConfig),
        )
    )
    assert one._loaded.identity.heads_per_layer == two._loaded.identity.heads_per_layer
    assert attnviz.compare(BLUE, model=one, against=two).record.pair == "best"
    assert attnviz.compare(BLUE, model=one, against=one).record.pair == "same"
