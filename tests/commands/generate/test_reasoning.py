"""An answer after a chain of thought: its sections, hops back to the prompt, and the chain."""

from collections.abc import Collection
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import decoders
from transformers import LlamaConfig, LlamaForCausalLM

import attnviz
from attnviz.errors import ExitStatus, UsageError
from attnviz.records.capture import FloatArray
from attnviz.records.heads import Head
from attnviz.records.reasoning import Chain, ChainLink
from tests.conftest import Run, bytes_tokenizer
from tests.reading import on_one_line, rows_in

PROMPT = "Tom was stabbed by Leo . Anna cleaned the floor . the murderer was"
THOUGHT = "<think> the count was stabbed by Leo . </think> Leo ."
GIVEN = ("--target", THOUGHT, "--rows", "section")


def shares_in(out: str) -> dict[tuple[object, str], float]:
    """Each share, by the section and the segment."""
    rows = rows_in(out)
    return {(row["section"], str(row["segment"])): float(str(row["share"])) for row in rows}


def test_rows_are_sections_and_the_answers_own_share_is_cut_into_them(run: Run) -> None:
    shares = shares_in(run("generate", PROMPT, *GIVEN, "-f", "jsonl").out)
    columns = ["sink", "1", "2", "3", "thinking", "answer"]
    assert list(shares) == [(row, name) for row in ("thinking", "answer") for name in columns]
    assert shares["answer", "thinking"] > 0.5 > shares["answer", "1"]
    assert shares["thinking", "answer"] == 0
    for row in ("thinking", "answer"):
        assert sum(shares[row, name] for name in columns) == pytest.approx(1, abs=1e-5)


def test_hops_carry_the_thinking_back_to_the_prompt_and_nothing_is_lost(run: Run) -> None:
    before = shares_in(run("generate", PROMPT, *GIVEN, "-f", "jsonl").out)
    out = run("generate", PROMPT, *GIVEN, "--hops", "50", "-f", "jsonl").out
    after = shares_in(out)
    assert {row["hops"] for row in rows_in(out)} == {50}
    assert after["answer", "thinking"] == 0
    assert all(after["answer", name] > before["answer", name] for name in ("sink", "1", "2"))
    prompt = [after["answer", name] for name in ("sink", "1", "2", "3")]
    assert sum(prompt) == pytest.approx(1, abs=1e-5)
    # what came through written tokens is what the hops added
    through = {(row["section"], str(row["segment"])): row["through"] for row in rows_in(out)}
    for place, share in after.items():
        assert through[place] == pytest.approx(share - before[place], abs=1e-5)


def test_terminal_and_page_say_how_often_shares_were_carried_and_a_capture_has_each_head(
    run: Run, tmp_path: Path
) -> None:
    said = on_one_line(run("generate", PROMPT, *GIVEN, "--hops", "2", columns=60).out)
    assert "16 new, 2 hops back" in said
    assert "answer, through the words before it: 0." in said
    assert " from 1, " in said.partition("before it: ")[2]
    written = tmp_path / "x.html"
    assert (
        run("generate", PROMPT, *GIVEN[:2], "--hops", "2", "--check", "-o", str(written)).status
        is ExitStatus.OK
    )
    assert "2 hops back" in written.read_text("utf-8")
    ended = run("generate", PROMPT, "--hops", "2", "-o", str(tmp_path / "x.npz"))
    assert ended.status is ExitStatus.USAGE


def test_without_marks_the_answer_is_one_section_and_a_user_can_name_others(run: Run) -> None:
    plain = rows_in(run("generate", PROMPT, "--target", "Leo", *GIVEN[2:], "-f", "jsonl").out)
    assert {row["section"] for row in plain} == {"answer"}
    named = ("--section", "why=/the.*?Leo ./", "-f", "jsonl")
    rows = rows_in(run("generate", PROMPT, "--target", "the end Leo . Tom", *GIVEN[2:], *named).out)
    assert [row["section"] for row in rows if row["segment"] == "1"] == ["why", "answer"]


@pytest.mark.slow
def test_python_has_the_same(run: Run) -> None:
    answer = attnviz.generate(PROMPT, target=THOUGHT, hops=2)
    rows = answer.shares("section")
    printed = rows_in(run("generate", PROMPT, *GIVEN, "--hops", "2", "-f", "jsonl").out)
    assert [row["segment"] for row in rows] == [row["segment"] for row in printed]
    np.testing.assert_allclose([r["share"] for r in rows], [r["share"] for r in printed], atol=1e-6)
    with pytest.raises(UsageError, match="hops"):
        answer.shares("head")
    chain = answer.check().chain
    assert chain is not None
    assert chain.links[0].part == "answer"
    assert attnviz.generate(PROMPT, target=THOUGHT).check().chain is None


@torch.no_grad()
def masked_logs(
    model: LlamaForCausalLM, ids: list[int], queries: Collection[int], keys: Collection[int]
) -> torch.Tensor:
    """Log-probabilities (n, V), where some queries do not see some keys in any layer."""
    n = len(ids)
    hidden = torch.full((n, n), 0.0).masked_fill(torch.ones(n, n).triu(1).bool(), -1e9)
    for query in queries:
        hidden[query, [key for key in keys if key <= query]] = -1e9
    logits = model(torch.tensor([ids]), attention_mask=hidden[None, None]).logits[0]
    return logits.double().log_softmax(dim=-1)


def masked_log_probabilities(
    model: LlamaForCausalLM, ids: list[int], queries: Collection[int], keys: Collection[int]
) -> FloatArray:
    """Those of the tokens that follow."""
    followed = torch.tensor(ids[1:])[:, None]
    return masked_logs(model, ids, queries, keys)[:-1].gather(1, followed)[:, 0].numpy()


@pytest.fixture
def llama() -> LlamaForCausalLM:
    torch.manual_seed(5)
    sizes = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 257}
    return LlamaForCausalLM(LlamaConfig(**sizes, **heads, initializer_range=0.5)).eval()


@pytest.fixture
def model(llama: LlamaForCausalLM, tmp_path: Path) -> attnviz.Model:
    """The same, as attnviz loads it."""
    llama.save_pretrained(tmp_path)
    tokenizer = bytes_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return attnviz.load_model(str(tmp_path))


def test_a_cut_is_what_a_mask_in_every_layer_does(
    llama: LlamaForCausalLM, model: attnviz.Model
) -> None:
    answer = attnviz.generate("Ab. Cd. Ef", model, target=" g. h", hops=1, bos=False)
    chain = answer.check().chain
    assert chain is not None
    capture = answer.capture.record
    ids = [*(t.id for t in capture.key_tokens[:10]), *(t.id for t in capture.query_tokens)]
    spans = {"g.": range(10, 13), "1": range(1, 4), "2": range(4, 8), "3": range(8, 10)}
    whole = masked_log_probabilities(llama, ids, [], [])
    parts = {"h": (3, 5), "g.": (0, 3)}
    for link in chain.links:
        first, after = parts[link.part]
        queries = range(9 + first, 9 + after)
        changes = {
            name: float(
                (masked_log_probabilities(llama, ids, queries, keys) - whole)[
                    queries.start : queries.stop
                ].sum()
            )
            for name, keys in spans.items()
            if name != link.part and (name != "g." or link is chain.links[0])
        }
        assert link.change == pytest.approx(changes.pop(link.source), abs=1e-3)
        assert link.other == pytest.approx(min(changes.values()), abs=1e-3)
        assert link.other_source == min(changes, key=lambda name: changes[name])


def test_a_chain_holds_where_every_cut_costs_most() -> None:
    good = ChainLink("answer", "a thought", 0.6, -3.0, -0.5)
    last = ChainLink("a thought", "letter", 0.7, -2.0, None)
    assert Chain((good, last), -4.0, -0.2).holds
    assert Chain((good, last), None, None).holds
    assert not Chain((good, last), -4.0, -5.0).holds  # another segment matters more
    assert not Chain((good, last), -0.05, 0.0).holds
    assert not Chain((ChainLink("answer", "a", 0.6, -3.0, -3.5), last), -4.0, -0.2).holds


def test_rows_of_a_chain_are_its_cuts_and_the_deletion_of_its_source(
    run: Run, tmp_path: Path
) -> None:
    asked = ("generate", PROMPT, "--target", THOUGHT, "--hops", "2", "--check-method")
    rows = rows_in(run(*asked, "chain", "-f", "jsonl").out)
    assert [row["test"] for row in rows] == ["cut", "cut", "deletion"]
    # each part is the source of the one before, and the last source is a segment
    assert [row["part"] for row in rows] == ["answer", rows[0]["source"], rows[0]["source"]]
    assert {row["source"] for row in rows[1:]} == {"1"}
    answer = attnviz.generate(PROMPT, target=THOUGHT, hops=2)
    chain = answer.check("chain").chain
    assert chain is not None
    assert [row["change"] for row in rows] == pytest.approx(
        [*(link.change for link in chain.links), chain.deleted], abs=1e-4
    )
    assert [row["other"] for row in rows[:2]] == pytest.approx(
        [link.other for link in chain.links], abs=1e-4
    )
    assert all(row["holds"] for row in rows) is chain.holds
    answer.save(tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().startswith("line,row,part,source,share,test,change")
    # what is in the way of the chain is named, in rows and in the sentence
    assert [row["other_source"] for row in rows] == ["< / think >", "2", "2"]
    said = on_one_line(run(*asked, "chain").out)
    assert "the chain does not hold" in said
    assert "“answer” loses more when “< / think >” is cut (-" in said
    assert "when “2” is cut" not in said
    assert "nats, without 2, the worst other segment, by" in said
    assert "subsets does not follow the hops" in on_one_line(run(*asked, "subsets").out)


# Sentence by sentence.

SAID = " a. bb. ccc. d. e. ff. g. h. ii"


def spans_of(answer: attnviz.AttentionAnswer) -> list[range]:
    """The tokens of each sentence of the answer, which are its letters."""
    ends = [i + 1 for i, letter in enumerate(SAID) if letter == "."]
    assert answer.text == SAID
    return [range(a, b) for a, b in zip([0, *ends], [*ends, len(SAID)], strict=True)]


def test_a_square_is_what_sentences_attended_to_and_what_they_receive(model: attnviz.Model) -> None:
    answer = attnviz.generate("Ab. Ef", model, target=SAID, bos=False, heads="L1H2")
    rows = {(row["row"], row["source"]): row for row in answer.square().rows}
    spans, weights = spans_of(answer), answer.capture.record.weights(Head(1, 2))
    assert len(rows) == 9 * 8 / 2
    n = len("Ab. Ef")
    for (q, k), row in rows.items():
        of_keys = weights[:, n + spans[k - 1].start : n + spans[k - 1].stop]
        block = of_keys[spans[q - 1].start : spans[q - 1].stop]
        assert row["share"] == pytest.approx(block.sum(axis=1).mean(), abs=1e-6)
        assert row["kl"] is None
    for k in range(1, 6):
        of_keys = weights[:, n + spans[k - 1].start : n + spans[k - 1].stop]
        later = [of_keys[s.start : s.stop].mean() for s in spans[k + 3 :]]
        assert rows[9, k]["received"] == pytest.approx(np.mean(later), abs=1e-6)
    assert rows[9, 6]["received"] is None


def test_suppression_is_the_divergence_from_a_masked_run(
    llama: LlamaForCausalLM, model: attnviz.Model
) -> None:
    answer = attnviz.generate("Ab. Ef", model, target=SAID, bos=False)
    rows = {(row["row"], row["source"]): row["kl"] for row in answer.square(check=True).rows}
    spans, capture, n = spans_of(answer), answer.capture.record, len("Ab. Ef")
    ids = [*(t.id for t in capture.key_tokens[:n]), *(t.id for t in capture.query_tokens)]
    base = masked_logs(llama, ids, [], [])
    for k in (1, 4, 8):
        own = range(n + spans[k - 1].start, n + spans[k - 1].stop)
        changed = masked_logs(llama, ids, range(own.stop - 1, len(ids) - 1), own)
        divergence = (base.exp() * (base - changed)).sum(dim=1).numpy()
        for q in range(k + 1, 10):
            before = slice(n + spans[q - 1].start - 1, n + spans[q - 1].stop - 1)
            assert rows[q, k] == pytest.approx(divergence[before].mean(), rel=1e-3, abs=1e-5)


def test_the_command_line_shows_the_square_and_refuses_what_it_does_not_show(run: Run) -> None:
    given = ("generate", PROMPT, "--target", "Leo ran . Tom slept . Anna ran .", "--square")
    out = run(*given, "--check", "--width", "60").out
    assert "KL of what follows" in out
    assert "1  Leo ran ." in out
    assert max(map(len, out.splitlines())) <= 60
    assert len(rows_in(run(*given, "-f", "jsonl").out)) == 3
    assert run(*given, "--hops", "1").status is ExitStatus.USAGE
    assert run("generate", PROMPT, "--target", "Leo", "--square").status is ExitStatus.INPUT


def test_a_sentence_that_all_later_ones_attend_to_is_found_by_receiver_heads(
    model: attnviz.Model, run: Run
) -> None:
    text = "Ab. Cd. Efg. Hi. Jk. Ll. Mno. Pq. Rr. Ss. Uv"
    found = model.heads(text, receiver=True, bos=False)
    weights = model.capture(text, bos=False).record
    starts = [0, *(i + 2 for i, letter in enumerate(text) if letter == "."), len(text)]
    spans = [slice(a, b) for a, b in pairwise(starts)]  # a blank is with what stands before it
    for row in found.rows:
        own = weights.weights(Head(row["layer"], row["head"])).astype(np.float64)
        square = np.array([[own[q, k].mean() for k in spans] for q in spans])
        vertical = np.array([square[k + 4 :, k].mean() for k in range(7)])
        away = vertical - vertical.mean()
        expected = np.mean(away**4) / np.mean(away**2) ** 2 - 3
        assert row["kurtosis"] == pytest.approx(expected, abs=1e-3)
        assert row["sentence"] == vertical.argmax() + 1
    assert [row["kurtosis"] for row in found.rows] == sorted(
        (row["kurtosis"] for row in found.rows), reverse=True
    )
    assert run("heads", "a b .", "--receiver").status is ExitStatus.INPUT
