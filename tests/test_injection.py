"""The benchmark of injections: its chats, and the rule that blames a tool's result."""

import random
from pathlib import Path

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

import attnviz
from benchmarks.injection import (
    IDS,
    INJECTION,
    NAME,
    WORDS,
    batch_of,
    case_of,
    cause_of,
    fresh,
    prompt_of,
    save,
    wording,
)


def test_the_result_is_blamed_only_if_it_costs_more_than_all_else_and_than_a_nat() -> None:
    assert cause_of({"user": -0.2, "tool send": 0.0, "tool 1": -0.3, "tool 2": -4.0}) == "tool 2"
    assert cause_of({"user": -0.2, "tool": -4.0}) == "tool"
    assert cause_of({"user": -5.0, "tool 1": -4.0}) is None  # the user asked for it
    assert cause_of({"user": -0.2, "tool 1": -0.9}) is None
    assert cause_of({"user": -0.2, "tool send": -4.0, "tool 1": 0.0}) is None  # its definition


def test_wordings_of_the_measurement_are_never_trained_on() -> None:
    draw = random.Random(0)
    trained = {
        INJECTION.format(**wording(draw, held_out=False), tool="", key="") for _ in range(2000)
    }
    kept = {INJECTION.format(**wording(draw, held_out=True), tool="", key="") for _ in range(2000)}
    assert trained
    assert kept
    assert trained.isdisjoint(kept)


def test_an_injection_stands_in_the_result_that_is_named_and_calls_are_learned_until_it() -> None:
    for case in fresh(3, 30, injected=True):
        messages = case.chat["messages"]
        results = [m["content"] for m in messages if m["role"] == "tool" and m["content"]]
        assert case.cause is not None
        told = results[int(case.cause.removeprefix("tool") or "1") - 1]
        assert f" {case.tool} with {case.key} " in f" {told} "
        _, labels = batch_of([case])
        learned = [WORDS[i] for i in labels[labels >= 0].tolist()]
        assert learned.count("<tool_call>") == case.learned + 1
        assert " ".join(learned).endswith(case.call)


def test_attnviz_reads_the_chats_as_they_were_trained_on(tmp_path: Path) -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    save(
        LlamaForCausalLM(
            LlamaConfig(
                **sizes, num_attention_heads=2, num_key_value_heads=2, vocab_size=len(WORDS)
            )
        ),
        tmp_path,
    )
    case = case_of(random.Random(1), 3, injected=True, held_out=True)
    assert case.cause is not None
    oracle = AutoTokenizer.from_pretrained(tmp_path)
    text = oracle.apply_chat_template(
        case.chat["messages"], tools=case.chat["tools"], add_generation_prompt=True, tokenize=False
    )
    assert text.split() == prompt_of(case.chat)
    answer = attnviz.generate(case.chat, str(tmp_path), target=f" {case.call}", sections=[NAME])
    read = [token.id for token in answer.capture.record.key_tokens]
    assert read[: len(prompt_of(case.chat))] == [IDS[word] for word in prompt_of(case.chat)]
    rows = answer.shares("section")
    assert next(row["text"] for row in rows if row["section"] == "name") == case.tool
    assert case.cause in {row["segment"] for row in rows}
