"""`attnviz why`: why a head attends where it does, and what it does with what it finds."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import attnviz
from attnviz.commands.why.shown import render, render_write
from attnviz.console import Display, plain_text
from attnviz.errors import ExitStatus
from attnviz.records.parts import Part, Shares
from attnviz.records.why import Lead
from tests.conftest import Run
from tests.reading import on_one_line, rows_in

TEXT = "a fluffy blue creature roamed . the creature was"
ASKED = (TEXT, "--head", "L4H0", "--query", "was", "--key", "fluffy")


def test_the_first_lines_state_the_contrast_and_that_it_is_what_the_weights_say(run: Run) -> None:
    out = run("why", *ASKED).out
    first, second = map(on_one_line, out.split("what the query")[0].split("\nscore "))
    last = on_one_line(out.split("the weights say")[1])
    weight = attnviz.capture(TEXT, heads="L4H0").pattern(4, 0)[9]
    assert first.startswith(f"L4H0: “was” attends to “fluffy” ({weight[2]:.2f}), ")
    said = np.log(weight[2]) - (weight[weight > 0] * np.log(weight[weight > 0])).sum()
    assert f"= {said:+.3f}, where " in second
    assert "ln A" not in second  # it stands where it is explained
    assert f"= {said:+.3f}, with the key's weight A and the row's entropy H, as a score" in last


@pytest.mark.parametrize("group", ["head", "part"])
@pytest.mark.parametrize("head", ["L2H1", "L3H2", "L4H0", "L4H3"])
def test_no_term_of_all_parts_is_stronger_than_those_that_are_named(head: str, group: str) -> None:
    def terms(top: int) -> list[tuple[object, object, float]]:
        found = attnviz.why(TEXT, head=head, query="was", group=group, top=top).record.pairs
        return [(each.query, each.key, each.value) for each in found if each.query and each.key]

    for few, whole in zip(terms(3)[:3], terms(1000), strict=False):
        assert few[:2] == whole[:2]
        assert few[2] == pytest.approx(whole[2], abs=1e-5)


DEGREES = (
    (0.5, "mostly from"),
    (0.2, "first of all from"),
    (0, "from many parts, the largest of them"),
)


@pytest.mark.parametrize(
    "asked",
    [
        ASKED,
        (*ASKED, "--versus", "creature#1"),
        (*ASKED[:-1], "BOS"),
        (TEXT, "--head", "L3H1", "--query", "blue"),
        ("Ann Bob Leo Ann", "--head", "L4H0", "--query", "-1", "--key", "Bob", "--versus", "Leo"),
    ],
)
def test_the_first_sentence_names_the_part_that_adds_most_on_each_side(
    run: Run, asked: tuple[str, ...]
) -> None:
    """The parts are summed up here from every part of the JSON object."""
    sentence = on_one_line(run("why", *asked).out.split("\nscore")[0])
    found = json.loads(run("why", *asked, "--group", "part", "-f", "json").out)
    sign = 1 if found["contrast"] > 0 else -1
    assert ("less than" in sentence) == (" below " in sentence) == (sign < 0)
    assert f" {abs(found['contrast']):.2f} " in sentence
    for side in ("key", "query"):
        sums: dict[tuple[object, ...], float] = {}
        for part in found[f"{side}_parts"]:
            name = part["kind"], part["layer"], part["head"]
            sums[name] = sums.get(name, 0.0) + sign * part["value"]
        (kind, layer, head), most = max(sums.items(), key=lambda item: item[1])
        share = most / sum(value for value in sums.values() if value > 0)
        degree = next(told for least, told in DEGREES if share >= least)
        made = {
            "head": f"what L{layer}H{head} ",
            "mlp": f"what the MLP of layer {layer} made of ",
            "biases": "the biases, whatever the token",
        }
        rest = found["contrast"] - sign * most
        assert f"{degree} {made[str(kind)]}" in sentence
        assert f"({sign * most:+.2f}, the rest {rest:+z.2f})" in sentence


def test_a_head_is_named_with_a_token_only_where_it_took_at_least_half_from_it() -> None:
    one, other = Part("head", 1, 2, 0), Part("head", 1, 2, 1)

    def lead(*values: float) -> Part:
        of_parts = np.array([values])
        parts = (one, other, Part("mlp", 0))[: len(values)]
        return Lead.of(Shares(parts, of_parts, of_parts.sum(axis=1))).part

    assert lead(0.5, 0.5) == one
    assert lead(-0.2, -0.3) == other
    assert lead(1.0, 0.9, 0.1) == one
    assert lead(0.0, 0.0) == one  # nothing is divided by
    three = (one, other, Part("head", 1, 2, 2))
    thirds = Shares(three, np.array([[1.0, 1.0, 1.0]]), np.array([3.0]))
    assert Lead.of(thirds) == Lead(Part("head", 1, 2), 3.0, 1.0)


def test_the_parts_of_each_side_add_up_to_the_contrast(run: Run) -> None:
    found = json.loads(run("why", *ASKED, "-f", "json").out)
    for side in ("query_parts", "key_parts"):
        total = sum(part["value"] for part in found[side])
        assert total == pytest.approx(found["contrast"], abs=1e-5)
    pairs = sum(pair["value"] for pair in found["pairs"])
    assert pairs == pytest.approx(found["contrast"], abs=1e-4)
    assert found["error"] < 1e-5


def test_versus_contrasts_two_keys(run: Run) -> None:
    out = on_one_line(run("why", *ASKED, "--versus", "blue").out)
    weight = attnviz.capture(TEXT, heads="L4H0").pattern(4, 0)[9]
    assert f"rather than to “blue” ({weight[3]:.2f})" in out
    assert f"the logarithm of their ratio is {np.log(weight[2] / weight[3]):+.3f}" in out
    assert "the parts at fluffy and blue" in out


def test_a_tree_has_the_options_that_ask_about_each_heads_own_score(run: Run) -> None:
    out = run("why", *ASKED, "--depth", "2").out
    line = next(line for line in out.splitlines() if "why --head" in line)
    asked = line.split("why ")[1].split()
    again = run("why", TEXT, *asked)
    assert again.status is ExitStatus.OK
    assert again.out.startswith(asked[1])


def test_the_check_computes_what_the_sum_predicts(run: Run) -> None:
    found = json.loads(run("why", *ASKED, "--check", "-f", "json").out)
    assert [each["side"] for each in found["without"]] == ["query", "key"]
    for each in found["without"]:
        assert each["fixed"] == pytest.approx(each["predicted"], abs=1e-4)
        assert each["part"]["kind"] != "biases"
    shown = on_one_line(run("why", *ASKED, "--check", columns=200).out)
    assert "with norms recomputed" in shown
    kept = "taken away only from what this head reads on that side: the other side, and what"
    assert f"{kept} earlier parts made of it, stay as they were" in shown
    assert kept not in on_one_line(run("why", *ASKED, columns=200).out)


def test_the_default_is_the_row_that_show_tells_of(run: Run) -> None:
    shown = run("show", "a fluffy blue creature roamed", columns=200).out
    asked = run("why", "a fluffy blue creature roamed").out
    assert asked.startswith(shown.split(":")[0])
    assert ": “creature” attends to" in asked


def test_rows_are_the_terms_of_the_table(run: Run) -> None:
    out = run("why", *ASKED, "--top", "3", "--group", "head", "-f", "jsonl").out
    rows = rows_in(out)
    assert len(rows) == 16  # three parts and all others on each side
    assert {row["query_part"] for row in rows} >= {"all others"}
    found = json.loads(run("why", *ASKED, "-f", "json").out)
    assert sum(row["value"] for row in rows) == pytest.approx(found["contrast"], abs=1e-4)


def test_what_a_head_writes_is_told_by_source_and_by_reader(run: Run) -> None:
    asked = (TEXT, "--head", "L2H1", "--query", "creature#2", "--writes")
    out = run("why", *asked).out
    assert out.startswith("L2H1 writes at “creature#2”, and most of it comes from “the” (weight 0.")
    for said in ("direct effect on the logits", "its query", "its keys", "its values"):
        assert said in out
    found = json.loads(run("why", *asked, "-f", "json").out)
    assert sum(found["weights"]) == pytest.approx(1, abs=1e-5)
    for moved in found["logits"]:
        assert sum(moved["by_source"]) == pytest.approx(moved["effect"], abs=1e-4)
    rows = rows_in(run("why", *asked, "-f", "jsonl").out)
    assert {row["through"] for row in rows} == {"query", "key", "value"}
    assert {row["reader_layer"] for row in rows} == {3, 4}


@pytest.mark.parametrize("more", [(), ("--depth", "2"), ("--group", "layer")])
def test_a_picture_is_written(run: Run, tmp_path: Path, more: tuple[str, ...]) -> None:
    out = tmp_path / "a.svg"
    assert run("why", *ASKED, *more, "-o", str(out)).status is ExitStatus.OK
    drawn = out.read_text()
    assert "<svg" in drawn
    said = " ".join(re.findall("<text[^>]*>([^<]*)<", drawn))
    assert said.count("builtin") == 1
    assert f"builtin, 10 tokens with BOS: “{ASKED[0]}”" in said


def test_a_narrow_terminal_loses_nothing(run: Run) -> None:
    out = run("why", *ASKED, "--depth", "2", "--check", "--width", "40").out
    assert all(len(line) <= 40 for line in out.splitlines())


def test_python_gives_the_same() -> None:
    result = attnviz.why(TEXT, head="L4H0", query="was", key="fluffy", group="head", check=True)
    found = result.record
    assert repr(result) == f"<Result of why: builtin, L4H0, was → fluffy, {found.full:+.3f}>"
    assert found.query_shares.values.sum() == pytest.approx(found.contrast, abs=1e-5)
    assert {part.kind for part in found.query_shares.parts} >= {"head", "mlp", "embedding"}
    assert len(found.removals) == 2
    written = attnviz.writes(TEXT, head="L4H0", query="was")
    assert repr(written) == "<Result of why: builtin, L4H0 at was>"
    assert written.record.lengths.shape == (10,)
    with pytest.raises(attnviz.AttnvizError):
        attnviz.why(TEXT, group="letters")  # no such group


NAMED = {
    "adjectives": ("a fluffy blue creature roamed the verdant forest", "creature", "fluffy", "a"),
    "pronouns": ("Bark is very cute and he is a dog", "he", "Bark", "is#1"),
    "mystery": (
        "the count was stabbed by Victor . Anna sat . the murderer was",
        "-1",
        "Victor",
        "Anna",
    ),
    "senses": ("American shrew mole", "mole", "American", "BOS"),
    "induction": ("Victor Clara Peter Anna Leo Bruno Victor Clara Peter", "-1", "Anna", "Leo"),
    "previous token": ("Victor Clara Peter Anna", "-1", "Peter", "Clara"),
}


@pytest.mark.parametrize("number", range(7))
def test_each_named_heads_score_is_taken_apart_exactly(number: int) -> None:
    model = attnviz.load_model()
    assert len(model.named_heads) == 7
    named = model.named_heads[number]
    text, query, key, versus = NAMED[named.behaviour]
    head = str(named.head)
    asked = {"head": head, "query": query, "key": key, "versus": versus, "check": True}
    found = model.why(text, **asked).record
    row = found.row
    ratio = np.log(row.weights[found.key] / row.weights[found.versus])
    assert found.full == pytest.approx(ratio, abs=1e-4)
    for removal in found.removals:
        assert removal.fixed == pytest.approx(removal.predicted, abs=1e-4)


def test_python_refuses_a_part_of_a_part() -> None:
    with pytest.raises(attnviz.AttnvizError, match="is not a whole number"):
        attnviz.why(TEXT, top=2.5)  # type: ignore[arg-type]


def test_python_takes_positions_as_numbers() -> None:
    assert attnviz.why(TEXT, head="L4H0", query=-1, key=2).record.query == 9


def test_without_letters_beyond_ascii_every_line_is_ascii() -> None:
    why = attnviz.why(TEXT, head="L4H0", depth=2, check=True).record
    shown = plain_text(render(why, Display(unicode=False), 5), 80)
    assert shown.isascii()
    written = attnviz.writes(TEXT, head="L2H0", query="was")
    assert plain_text(render_write(written.record, Display(unicode=False)), 80).isascii()


def test_what_was_cut_off_and_what_is_strange_is_noted(run: Run) -> None:
    long = "the cat sat on the mat . " * 60
    assert "are left out to fit" in run("why", long, "--truncate", "left").err
    strange = run("why", "\u6211\u559c\u6b22\u84dd\u8272\u7684\u732b", "--writes")
    assert "has not seen text like this" in strange.err
