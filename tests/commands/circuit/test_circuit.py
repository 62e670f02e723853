"""`attnviz circuit`: beside plain hooks, a closed form, and what its definitions say."""

import json
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import attnviz
from attnviz.commands.circuit.record import (
    CircuitReport,
    CircuitTask,
    Found,
    Subset,
    WithoutSubset,
    runs_of_search,
    subsets_of,
)
from attnviz.records.metrics import Estimate
from attnviz.records.parts import Part
from tests.conftest import Run, slow, some
from tests.interventions import (
    ARCHITECTURES,
    HEADS,
    OTHER_WORDS,
    WORDS,
    Replaced,
    last_logits,
    with_words,
)
from tests.reading import on_one_line, rows_in

BLUE, RED = (f"a {color} bird slept . the bird was" for color in ("blue", "red"))
COLORS = "blue", "red"
ASKED = {"answer": "blue", "versus": "red"}
FOXES = BLUE.replace("bird", "fox"), RED.replace("bird", "fox")
EVERY: Replaced = {("mlp", layer): {0} for layer in (0, 1)}
EVERY |= {("head", layer): set(range(HEADS)) for layer in (0, 1)}
CIRCUIT: Replaced = {("head", 0): {1, 2}, ("head", 1): {3}, ("mlp", 1): {0}}


def less(ones: Replaced, others: Replaced) -> Replaced:
    return {at: heads - others.get(at, set()) for at, heads in ones.items()}


@pytest.mark.parametrize("by", ["source", slow("mean"), slow("zero")])
@pytest.mark.parametrize("name", some([*ARCHITECTURES]))
def test_f_of_circuits_and_of_subsets_is_that_of_plain_hooks(name: str, by: Any) -> None:
    architecture = ARCHITECTURES[name]
    model = architecture.model()
    found = attnviz.circuit(
        *(WORDS, OTHER_WORDS if by == "source" else None, with_words(model)),
        heads="L0H1,L0H2,L1H3",
        mlps=1,
        answer="w3",
        versus="w4",
        replacement=by,
        subsets=2,
    )

    def f(replaced: Replaced) -> float:
        logits = last_logits(architecture, model, replaced, OTHER_WORDS if by == "source" else by)
        return float(logits[3] - logits[4])

    outside = less(EVERY, CIRCUIT)
    whole, nothing = f({}), f(EVERY)
    assert [row["subset"] for row in found.rows] == ["none", *["part"] * 4, "circuit"] + (
        ["random"] * 2
    )
    for row in found.rows:
        removed: Replaced = {}
        for part in row["removed"]:
            removed.setdefault((part["kind"], part["layer"]), set()).add(part["head"] or 0)
        alone = f(less(EVERY, less(CIRCUIT, removed)))
        measured = row["whole"], row["nothing"], row["circuit_without"], row["model_without"]
        assert np.allclose(measured, [whole, nothing, alone, f(removed)], atol=1e-5)
        assert np.isclose(row["gap"], f(removed) - alone, atol=2e-5)
        loss = (f(outside) - alone) / (whole - nothing)
        assert np.isclose(row["loss"], loss, rtol=1e-3, atol=1e-3)


def test_everything_is_faithful_and_nothing_is_not() -> None:
    for mlps in None, "all":
        report = attnviz.circuit(BLUE, RED, heads="all", mlps=mlps, **ASKED).record
        assert report.itself.faithfulness.mean == pytest.approx(1, abs=1e-6)
        assert report.itself.gap.mean == pytest.approx(0, abs=1e-5)
        assert report.mean_gap == pytest.approx(0, abs=1e-5)
        (nothing,) = (each for each in report.without if each.subset.kind == "circuit")
        assert nothing.faithfulness.mean == pytest.approx(0, abs=1e-6)
        assert nothing.loss.mean == pytest.approx(1, abs=1e-6)


def test_with_every_head_and_mlp_replaced_the_source_speaks() -> None:
    report = attnviz.circuit(BLUE, RED, heads="L4H0", mlps="none", **ASKED).record
    (row,) = attnviz.predict(RED, **ASKED).rows
    source = row["answer_logit"] - row["versus_logit"]
    assert report.nothing.mean == pytest.approx(source, abs=1e-4)


def test_positions_that_nothing_stands_for_keep_their_own_outputs() -> None:
    longer = RED.replace("red", "little red")
    found = attnviz.circuit(BLUE, longer, heads="L4H0", align="bird=bird", **ASKED)
    assert "taken from the source but for 1 position;" in on_one_line(str(found))
    whole = attnviz.circuit(BLUE, longer, heads="L4H0", align="blue=red", **ASKED)
    assert "but for" not in str(whole)
    old = BLUE.replace("blue", "blue old")
    both = attnviz.circuit([BLUE, old], [RED, RED], heads="L4H0", align="blue=red", **ASKED)
    assert "taken from the source but for 0 to 1 positions;" in on_one_line(str(both))
    faithful = (each.record.itself.faithfulness.mean for each in (whole, found))
    assert next(faithful) < next(faithful)


# A model whose F is a sum over heads: one layer of heads, no MLP, no norm before the logits.


def additive() -> tuple[attnviz.Model, Tensor]:
    """The model, and what each of its heads adds to logit(blue) - logit(red) after `BLUE`."""
    model = attnviz.load_model()
    loaded: Any = model._loaded
    gpt, tokenizer = loaded.model, loaded.tokenizer
    silenced = [block.mlp.c_proj for block in gpt.h] + [block.attn.w_o for block in gpt.h[1:]]
    for module in silenced:
        nn.init.zeros_(module.weight)
        nn.init.zeros_(module.bias)
    gpt.ln_f = nn.Identity()
    z, w_o = list[Tensor](), gpt.h[0].attn.w_o.weight.detach()
    handle = gpt.h[0].attn.z.register_forward_hook(lambda *given: z.append(given[2][0, :, -1]))
    ids = [token.id for token in tokenizer.encode(BLUE, bos=True, special=False)]
    with torch.inference_mode():
        gpt(torch.tensor([ids]))
    handle.remove()
    answer, versus = (attnviz.predict(BLUE, answer=word).record.asked for word in ("blue", "red"))
    blue, red = (each.question.answer.id for each in (answer, versus))
    direction = (gpt.wte.weight[blue] - gpt.wte.weight[red]).detach()
    heads, width = z[0].shape
    return model, torch.einsum("hw,hwd,d->h", z[0], w_o.view(heads, width, -1), direction)


def test_in_an_additive_model_every_number_has_its_closed_form() -> None:
    model, adds = additive()
    whole = float(adds.sum())
    found = attnviz.circuit(
        BLUE, model=model, heads="L0H1,L0H3", replacement="zero", mlps="none", **ASKED
    ).record
    own = float(adds[1] + adds[3])
    assert found.itself.faithfulness.mean == pytest.approx(own / whole, rel=1e-4)
    assert found.itself.gap.mean == pytest.approx(whole - own, rel=1e-4)
    for each in found.without:  # what lies outside is missed alike without any subset
        assert each.gap.mean == pytest.approx(whole - own, rel=1e-4)
    for each in found.minimality:
        head = each.subset.removed[0].head
        assert each.loss.mean == pytest.approx(float(adds[head]) / whole, rel=1e-4)


def test_a_search_in_an_additive_model_adds_the_largest_part_first() -> None:
    model, adds = additive()
    adds = adds / adds.sum()
    found = attnviz.circuit(BLUE, model=model, find=4, replacement="zero", **ASKED).record
    order = adds.argsort(descending=True).tolist()
    # the heads of later layers add nothing, and stand before those that take away
    first = [head for head in order if adds[head] > 0]
    assert [(s.part.layer, s.part.head) for s in found.steps[: len(first)]] == [
        (0, head) for head in first
    ]
    sums = adds[first].cumsum(0).tolist()
    faithful = [step.faithfulness.mean for step in found.steps[: len(first)]]
    assert faithful == pytest.approx(sums, rel=1e-4)


def test_where_one_head_alone_matters_a_search_finds_it_first() -> None:
    model = attnviz.load_model()
    loaded: Any = model._loaded
    for layer, block in enumerate(loaded.model.h):
        rows = block.attn.w_o.weight.data.view(4, -1, block.attn.w_o.weight.shape[1])
        for head in range(4):
            if (layer, head) != (2, 1):
                rows[head] = 0
    found = attnviz.circuit(BLUE, model=model, find=2, replacement="zero", **ASKED).record
    assert found.steps[0].part == Part("head", 2, 1)
    assert found.steps[0].faithfulness.mean == pytest.approx(1, abs=1e-4)


# Several texts.


def test_the_mean_over_pairs_has_the_errors_of_its_formulas() -> None:
    texts, sources = (
        [pair[i] for pair in ((BLUE, RED), FOXES, [f"a {c} cat ran . the cat was" for c in COLORS])]
        for i in (0, 1)
    )
    both = zip(texts, sources, strict=True)
    each = [attnviz.circuit(a, b, heads="L4H0,L3H2", **ASKED) for a, b in both]
    found = attnviz.circuit(texts, sources, heads="L4H0,L3H2", **ASKED)
    assert [row for row in found.rows if row["line"] == 2] == [
        row | {"line": 2} for row in each[1].rows
    ]
    mean = found.record.itself
    reports = [one.record for one in each]
    gaps = [one.itself.gap.mean for one in reports]
    assert mean.gap.mean == pytest.approx(fmean(gaps))
    assert mean.gap.error == pytest.approx(stdev(gaps) / 3**0.5)
    sizes = [one.whole.mean - one.nothing.mean for one in reports]
    kept = [one.itself.circuit.mean - one.nothing.mean for one in reports]
    share = sum(kept) / sum(sizes)
    rest = [a - share * b for a, b in zip(kept, sizes, strict=True)]
    assert mean.faithfulness.mean == pytest.approx(share)
    assert mean.faithfulness.error == pytest.approx(stdev(rest) / 3**0.5 / fmean(sizes))


def test_a_search_chooses_on_one_half_and_measures_on_the_other() -> None:
    texts, sources = [BLUE, FOXES[0], BLUE], [RED, FOXES[1], RED]
    found = attnviz.circuit(texts, sources, find=2, **ASKED).record
    assert (found.chosen_on, found.measured_on) == (2, 1)
    alone = attnviz.circuit(BLUE, RED, find=2, **ASKED).record
    assert [step.part for step in found.steps] == [step.part for step in alone.steps]
    heads = [(step.part.layer, step.part.head) for step in found.steps]
    for n, step in enumerate(found.steps, start=1):
        fox = attnviz.circuit(*FOXES, heads=heads[:n], **ASKED).record.itself
        bird = attnviz.circuit(BLUE, RED, heads=heads[:n], **ASKED).record.itself
        assert step.faithfulness.mean == pytest.approx(fox.faithfulness.mean, abs=1e-5)
        assert step.chosen.mean == pytest.approx(bird.faithfulness.mean, abs=1e-5)
    best = max(
        attnviz.circuit(BLUE, RED, heads=[(layer, head)], **ASKED).record.itself.faithfulness.mean
        for layer in range(5)
        for head in range(4)
    )
    assert found.steps[0].chosen.mean == pytest.approx(best, abs=1e-5)


@pytest.mark.slow
def test_a_step_that_adds_less_than_two_errors_of_its_gain_is_marked() -> None:
    animals = "bird", "fox", "cat", "dog", "bear", "horse"
    texts, sources = (
        [f"a {color} {animal} slept . the {animal} was" for animal in animals] for color in COLORS
    )
    circuit = [Part("head", *head) for head in ((4, 0), (4, 1), (4, 3), (3, 1), (3, 2))]
    heads = [(part.layer, part.head) for part in circuit]
    found = attnviz.circuit(texts, sources, heads=heads, find=8, **ASKED)
    alone = []
    for added in (None, *(step.part for step in found.record.steps)):
        circuit += [added] if added else []
        heads = [(part.layer, part.head) for part in circuit]
        every = [
            attnviz.circuit(a, b, heads=heads, subsets=0, **ASKED).record
            for a, b in zip(texts[1::2], sources[1::2], strict=True)
        ]
        alone.append([each.itself.circuit.mean for each in every])
    sizes = [each.whole.mean - each.nothing.mean for each in every]
    for n, (step, row) in enumerate(zip(found.record.steps, found.rows, strict=True)):
        gains = [more - less for more, less in zip(alone[n + 1], alone[n], strict=True)]
        share = sum(gains) / sum(sizes)
        rest = [gain - share * size for gain, size in zip(gains, sizes, strict=True)]
        error = stdev(rest) / 3**0.5 / fmean(sizes)
        assert (row["gain"], row["gain_error"]) == pytest.approx((share, error), abs=1e-5)
        name = f"L{step.part.layer}H{step.part.head}"
        assert (f"{name} *" in str(found)) == (share < 2 * error)
    marked = [step.little for step in found.record.steps]
    assert any(marked)
    assert not all(marked)
    assert "*: adds less than two standard errors" in str(found)


def test_a_part_adds_little_below_two_standard_errors_of_its_gain() -> None:
    some = Estimate(0.5, 0.1)
    for gain, little in (
        (Estimate(1.9, 1.0), True),
        (Estimate(2.0, 1.0), False),
        (Estimate(-3.0, 1.0), True),
        (Estimate(0.0, None), False),  # of one text, nothing is known
    ):
        assert Found(Part("head", 0, 0), some, some, some, gain).little is little


def test_the_worst_gap_comes_first_whatever_its_sign() -> None:
    one = Estimate(1.0, None)
    gaps = 0.1, -0.9, 0.5, -0.2
    without = [
        WithoutSubset(Subset("random", ()), one, one, Estimate(gap, None), one, one)
        for gap in (7.0, *gaps)  # the first is the circuit's own
    ]
    report = CircuitReport(cast("CircuitTask", None), (), one, one, without)
    assert [each.gap.mean for each in report.completeness] == [-0.9, 0.5, -0.2, 0.1]
    assert report.mean_gap == pytest.approx(1.7 / 4)


def test_a_search_goes_on_from_the_parts_that_are_named_and_counts_its_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = attnviz.load_model()
    runs, intervene = [0], type(model._loaded).intervene

    def counted(self: Any, ids: Any, interventions: Any, consume: Any) -> None:
        runs[0] += len(interventions.each)
        intervene(self, ids, interventions, consume)

    monkeypatch.setattr(type(model._loaded), "intervene", counted)
    texts, sources = [BLUE, FOXES[0], BLUE], [RED, FOXES[1], RED]
    found = model.circuit(texts, sources, heads="L4H0", mlps="0,1", find=3, **ASKED).record
    assert runs[0] == found.runs == runs_of_search(3, 22, 3)
    assert Part("head", 4, 0) not in [step.part for step in found.steps]
    assert len(found.circuit) == 6


@pytest.mark.parametrize("mlps", [None, "none", "0,1"])
def test_the_circuit_that_was_found_is_named_as_options_take_it(
    run: Run, pairs: str, mlps: str | None
) -> None:
    more = [] if mlps is None else ["--mlp", mlps]
    shown = run("circuit", "--pairs", pairs, "--find", "2", *more, "--width", "200").out
    (line,) = (line for line in shown.splitlines() if line.startswith("the circuit: "))
    assert "without --find, these give completeness and minimality, over all texts" in shown
    given = line.removeprefix("the circuit: ").split()
    rows = rows_in(run("circuit", "--pairs", pairs, *given, "-f", "jsonl").out)
    texts: Any = [BLUE, FOXES[0]], [RED, FOXES[1]]
    found = attnviz.circuit(*texts, find=2, mlps=mlps, **ASKED).record
    measured = attnviz.circuit(*texts, **found.options, **ASKED)
    assert measured.record.circuit == found.circuit
    assert measured.rows == rows


def test_random_subsets_differ_and_are_neither_single_nor_all_parts() -> None:
    circuit = [Part("head", 0, head) for head in range(6)]
    drawn = [each for each in subsets_of(circuit, 20, 3) if each.kind == "random"]
    assert len({each.removed for each in drawn}) == 20
    assert all(1 < len(each.removed) < 6 for each in drawn)
    assert drawn == [each for each in subsets_of(circuit, 20, 3) if each.kind == "random"]
    assert drawn != [each for each in subsets_of(circuit, 20, 4) if each.kind == "random"]
    every = {each.removed for each in subsets_of(circuit[:3], 20, 0) if each.kind == "random"}
    assert every == set(combinations(circuit[:3], 2))


def test_means_over_other_texts_are_what_they_are_over_one(run: Run, tmp_path: Path) -> None:
    how: dict[str, Any] = {"heads": "L4H0,L3H2", "mlps": 4, "subsets": 2, **ASKED}
    mean = {"replacement": "mean"}

    def numbers(found: Any) -> list[list[float]]:
        names = "whole", "nothing", "circuit_without", "model_without", "gap", "loss"
        return [[row[name] for name in names] for row in found.rows]

    own = attnviz.circuit(BLUE, **mean, **how)
    of_itself = attnviz.circuit(BLUE, **mean, mean_from=[BLUE], **how)
    assert np.allclose(numbers(own), numbers(of_itself), atol=1e-4)
    source = attnviz.circuit(BLUE, RED, **how)
    of_one = attnviz.circuit(BLUE, **mean, mean_from=[RED], mean_by="position", **how)
    assert np.allclose(numbers(source), numbers(of_one), atol=1e-4)
    assert (of_one.rows[0]["other_texts"], own.rows[0]["other_texts"]) == (1, None)
    file = tmp_path / "texts.txt"
    file.write_text(f"{RED}\n{FOXES[0]}\n")
    many = attnviz.circuit(BLUE, **mean, mean_from=[RED, FOXES[0]], find=2, **ASKED)
    given = "circuit", BLUE, "--with", "mean", "--mean-from", str(file), "--find", "2"
    asked = "--answer", "blue", "--versus", "red"
    assert many.rows == rows_in(run(*given, *asked, "-f", "jsonl").out)
    shown = on_one_line(run(*given, *asked).out)
    assert "replaced by their means over 2 texts of texts.txt" in shown


# The command line.


@pytest.fixture
def pairs(tmp_path: Path) -> str:
    file = tmp_path / "pairs.jsonl"
    lines = [{"text": a, "source": b, **ASKED} for a, b in ((BLUE, RED), FOXES)]
    file.write_text("\n".join(map(json.dumps, lines)))
    return str(file)


def test_python_gives_the_rows_of_the_command(run: Run, pairs: str) -> None:
    given = [BLUE, FOXES[0]], [RED, FOXES[1]]
    found = attnviz.circuit(*given, heads=["L4H0", "L3H2"], mlps=[2], seed=1, subsets=1, **ASKED)
    flags = "--head", "L4H0,L3H2", "--mlp", "2", "--seed", "1", "--subsets", "1"
    assert found.rows == rows_in(run("circuit", "--pairs", pairs, *flags, "-f", "jsonl").out)
    search = attnviz.circuit(*given, find=2, **ASKED)
    ended = run("circuit", "--pairs", pairs, "--find", "2", "-f", "jsonl")
    assert search.rows == rows_in(ended.out)
    assert "searching 20 parts on 2 pairs: 46 runs" in ended.err
    assert search.record.runs == 46


def test_a_bad_line_is_told_and_left_out_of_a_search(run: Run, pairs: str) -> None:
    good = run("circuit", "--pairs", pairs, "--find", "1", "-f", "jsonl").out
    file = Path(pairs)
    first, second = file.read_text().splitlines()
    file.write_text("\n".join((first, '{"text": "a bird"}', second)))
    ended = run("circuit", "--pairs", pairs, "--find", "1", "-f", "jsonl")
    assert (ended.status, ended.out) == (3, good)
    assert "line 2: there is no source" in ended.err


def test_a_line_that_asks_for_something_else_is_left_out_of_a_search(run: Run, pairs: str) -> None:
    good = run("circuit", "--pairs", pairs, "--find", "1", "-f", "jsonl")
    file = Path(pairs)
    line = {"text": BLUE.replace("bird", "cat"), "source": RED.replace("bird", "cat")}
    file.write_text("\n".join((file.read_text(), json.dumps(line | {"answer": "blue"}))))
    ended = run("circuit", "--pairs", pairs, "--find", "1", "-f", "jsonl")
    assert (ended.status, ended.out) == (3, good.out)
    assert "line 3: this line asks for another measurement" in ended.err


def test_texts_with_one_likeliest_token_need_an_answer_as_for_patch(run: Run) -> None:
    texts = "a blue bird slept", "a red bird slept"
    ended = [
        run(*given, texts[0], "--from", texts[1])
        for given in (("circuit", "--head", "L4H0"), ("patch",))
    ]
    assert ended[0].status == ended[1].status == 3
    assert ended[0].err == ended[1].err
    assert "is the likeliest token after both texts" in ended[0].err
    with pytest.raises(attnviz.AttnvizError, match="likeliest token after both"):
        attnviz.circuit([BLUE, texts[0]], [RED, texts[1]], heads="L4H0")


def test_the_terminal_says_what_is_replaced_and_what_mlps_do(run: Run, pairs: str) -> None:
    shown = on_one_line(run("circuit", "--pairs", pairs, "--head", "L4H0").out)
    assert "heads outside of the circuit taken from the source; MLPs run as they are" in shown
    assert "with every part replaced F(∅) =" in shown
    shown = on_one_line(run("circuit", "--pairs", pairs, "--head", "L4H0", "--mlp", "none").out)
    assert "heads and MLPs outside of the circuit taken" in shown
    shown = on_one_line(run("circuit", BLUE, "--find", "1", "--with", "mean").out)
    assert "replaced by their means over the text's positions" in shown
    assert "chosen and measured on one text" in shown
    assert "completeness and minimality, over all" not in shown


def test_a_result_in_few_words_says_of_how_many_pairs_it_is_the_mean() -> None:
    given: Any = [BLUE, FOXES[0]], [RED, FOXES[1]]
    for found in (
        attnviz.circuit(*given, heads="L4H0", **ASKED),
        attnviz.circuit(*given, find=1, **ASKED),
    ):
        assert repr(found) == "<Result of circuit: builtin, mean of 2 pairs>"
    patched = attnviz.patch(*given, heads="L4H0", **ASKED)
    assert repr(patched) == "<Result of patch: builtin, mean of 2 pairs>"
    mean = attnviz.circuit(given[0], heads="L4H0", replacement="mean", **ASKED)
    assert repr(mean) == "<Result of circuit: builtin, mean of 2 texts>"
    with pytest.raises(attnviz.AttnvizError, match="1 text and 2 sources are given;"):
        attnviz.circuit([BLUE], given[1], heads="L4H0")


def test_pictures_say_what_their_axes_count(tmp_path: Path) -> None:
    for found, words in (
        (attnviz.circuit(BLUE, RED, heads="L4H0,L3H2"), "F(M∖K): the model without K (logits)"),
        (attnviz.circuit([BLUE, FOXES[0]], [RED, FOXES[1]], find=2, **ASKED), "faithfulness"),
    ):
        labels = [axes.get_xlabel() + axes.get_ylabel() for axes in found.figure().axes]
        assert any(words in label for label in labels)
        found.save(tmp_path / "circuit.png")
        assert (tmp_path / "circuit.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("width", [40, 60, 160])
def test_no_line_is_wider_than_the_terminal(run: Run, pairs: str, width: int) -> None:
    for flags in ("--head", "all"), ("--find", "2"):
        out = run("circuit", "--pairs", pairs, *flags, "--width", str(width)).out
        assert max(map(len, out.splitlines())) <= width
