"""The true source of an answer behind a chain of thought: attnviz beside FlashTrace's package.

    python -m benchmarks.reasoning train FOLDER      # a tiny Llama, one thread, at most 25 minutes
    python -m benchmarks.reasoning compare FOLDER    # needs the package `flashtrace`

A prompt has facts such as `Ben Fay .` and asks for a name; the written text thinks and answers:

- needle: `ask Ben` → `<think> Ben Fay . </think> Fay .` The source is the fact of Ben.
- two hops: the value is a name with a fact of its own, and the last one is the answer:
  `ask2 Ben` → `<think> Ben Fay . Fay Kim . </think> Kim .` Both facts are sources.
- distractor: as needle, but another name has the same value.

Recovered is the share of the true sources among the facts with the largest attribution, as many as
there are sources; `through`: the same with what the hops carried, without what was there before
them. It is counted where the model itself writes thought and answer rightly.
"""

import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import torch
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

NAMES = (
    "Ada Ben Cleo Dan Eva Fay Gil Hal Ida Jon Kim Leo Mia Ned Ola Pam Quin Ray Sue Tom Una Val Wim "
    "Xan Yan Zoe Abe Bea Cid Dot Eli Flo"
).split()
WORDS = ["<pad>", "<s>", ".", "ask", "ask2", "<think>", "</think>", *NAMES]
TEMPLATE = "<s> {% for each in documents %}{{ each.text }} {% endfor %}{{ messages[0].content }}"
"""A chat's documents are facts, and its message asks."""
FACTS = 8
TASKS = ("needle", "two hops", "distractor")
HOPS = (0, 1, 2)
RECITE = "recite"
"""Trained on, too: all facts in another order, so that looking up a name is learned soon."""
MINUTES, BATCH, CASES = 25, 32, 100


@dataclass(frozen=True)
class Case:
    """A prompt, the text to write after it, and the numbers of the facts that are its sources."""

    prompt: str
    written: str
    sources: tuple[int, ...]


def case_of(task: str, draw: random.Random) -> Case:
    """A case of a task; facts stand in random order, and all other names occur once."""
    names = draw.sample(NAMES, 2 * FACTS)
    facts = [(names[2 * i], names[2 * i + 1]) for i in range(FACTS)]
    name, value = facts[0]
    if task == "two hops":
        facts[1] = (value, facts[1][1])
    if task == "distractor":
        facts[1] = (facts[1][0], value)
    chain = facts[: {"two hops": 2, RECITE: FACTS}.get(task, 1)]
    order = draw.sample(range(FACTS), FACTS)
    told = " ".join(f"{facts[i][0]} {facts[i][1]} ." for i in order)
    thought = " ".join(f"{a} {b} ." for a, b in chain)
    ask = "ask2" if task == "two hops" else "ask"
    places = tuple(sorted(order.index(i) for i in range(len(chain))))
    return Case(f"<s> {told} {ask} {name}", f"<think> {thought} </think> {chain[-1][1]} .", places)


def ids_of(text: str) -> list[int]:
    """The ids of a text of words."""
    return [WORDS.index(word) for word in text.split()]


def train(folder: Path) -> None:
    """Train a tiny Llama on fresh cases until it answers all, or the time is over."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 3}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": len(WORDS)}
    model = LlamaForCausalLM(
        LlamaConfig(
            **sizes, **heads, max_position_embeddings=128, pad_token_id=0, eos_token_id=None
        )
    )
    rate = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    draw, begun, step = random.Random(0), time.monotonic(), 0
    while (spent := time.monotonic() - begun) < 60 * MINUTES:
        for group in rate.param_groups:
            group["lr"] = 1e-3 * min(1, (step + 1) / 200) * max(0.05, 1 - spent / (60 * MINUTES))
        cases = [case_of(draw.choice((*TASKS, *[RECITE] * 3)), draw) for _ in range(BATCH)]
        rows = [ids_of(f"{each.prompt} {each.written}") for each in cases]
        longest = max(map(len, rows))
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
        written = torch.arange(longest) >= len(ids_of(cases[0].prompt))
        loss = model(ids, labels=ids.masked_fill((ids == 0) | ~written, -100)).loss
        rate.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rate.step()
        step += 1
        if step % 500 == 0:
            right = {task: accuracy(model, task, 100) for task in TASKS}
            print(f"{spent / 60:.1f} min, step {step}, loss {loss.item():.3f}, {right}", flush=True)
            if min(right.values()) >= 0.99:
                break
    model.save_pretrained(folder)
    words = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)


@torch.no_grad()
def writes(model: LlamaForCausalLM, case: Case) -> bool:
    """Whether the model writes the thought and the answer itself, token by token."""
    wanted = ids_of(case.written)
    logits = model(torch.tensor([ids_of(case.prompt) + wanted])).logits[0]
    return logits[-len(wanted) - 1 : -1].argmax(-1).tolist() == wanted


def accuracy(model: LlamaForCausalLM, task: str, cases: int) -> float:
    """How many new cases of a task the model writes rightly."""
    draw = random.Random(1)
    return sum(writes(model, case_of(task, draw)) for _ in range(cases)) / cases


Attribute = Callable[[Case, int], tuple[Sequence[float], Sequence[float]]]
"""The attribution of each fact to the answer, for so many hops; and what these carried."""


def ours(folder: Path, heads: str | None, *, contribution: bool = False) -> Attribute:
    """`attnviz.generate`; without heads, with those that `attnviz heads --retrieval` finds."""
    import attnviz

    model = attnviz.load_model(str(folder))
    if heads is None:
        found = model.heads(retrieval=True).record.heads
        heads = ",".join(map(str, found)) or "all"
        print(f"retrieval heads: {heads}")

    def attribute(case: Case, hops: int) -> tuple[list[float], list[float]]:
        answer = attnviz.generate(
            case.prompt,
            model,
            target=f" {case.written}",
            sections=[r"end=/\.$/"],
            segments=[f"f{i}={start}:{end}" for i, (start, end) in enumerate(places(case))],
            hops=hops,
            heads=heads,
            contribution=contribution,
            bos=False,
        )
        rows = [row for row in answer.shares("section") if row["section"] == "answer"]
        found = {row["segment"]: row for row in rows}
        facts = [found[f"f{i}"] for i in range(FACTS)]
        return [float(each["share"]) for each in facts], [
            float(each.get("through", 0)) for each in facts
        ]

    return attribute


def places(case: Case) -> list[tuple[int, int]]:
    """The slice of each fact in the prompt."""
    ends = [i + 1 for i, letter in enumerate(case.prompt) if letter == "."]
    return list(zip([len("<s> "), *(end + 1 for end in ends)], ends, strict=False))


def theirs(folder: Path, *, paper: bool) -> Attribute:
    """The package's tracer, as its documentation calls it; its scores summed over each fact.

    `paper`: the recursion as the paper has it: the target is the answer, hops go through the
    thought. The tracer's own default takes thought and answer as one target, without stop words.
    """
    from flashtrace import FlashTrace
    from flashtrace.attribution import LLMIFRAttribution
    from transformers import AutoTokenizer

    model = LlamaForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tracer, engine = FlashTrace(model, tokenizer), LLMIFRAttribution(model, tokenizer)

    def attribute(case: Case, hops: int) -> tuple[list[float], list[float]]:
        last = len(case.written.split()) - 1
        answer, thought = (last - 1, last - 1), (0, last - 2)
        if paper:
            spans = {"sink_span": answer, "thinking_span": thought, "n_hops": hops}
            found = engine.calculate_ifr_multi_hop(case.prompt, target=case.written, **spans)
        else:
            spans = {"output_span": answer, "reasoning_span": thought, "hops": hops}
            found = tracer.trace(prompt=case.prompt, target=case.written, **spans)
        told = found.metadata["ifr"]["observation_projected"]
        both = told["sum"], told["sum"] - told["base"]
        whole, carried = (
            [float(scores[1 + 3 * i : 4 + 3 * i].sum()) for i in range(FACTS)] for scores in both
        )
        return whole, carried

    return attribute


def recovered(scores: Sequence[float], sources: Sequence[int]) -> float:
    """The share of the sources among as many facts with the largest attribution."""
    best = sorted(range(len(scores)), key=lambda i: -scores[i])[: len(sources)]
    return len(set(best) & set(sources)) / len(sources)


def compare(folder: Path) -> None:
    """Print how often each recovers the sources, and the CPU time of a case."""
    torch.set_num_threads(1)
    model = LlamaForCausalLM.from_pretrained(folder).eval()
    methods = {
        "attnviz, retrieval heads": ours(folder, None),
        "attnviz, all heads": ours(folder, "all"),
        "attnviz, contributions of all heads": ours(folder, "all", contribution=True),
        "flashtrace": theirs(folder, paper=False),
        "flashtrace, as in the paper": theirs(folder, paper=True),
    }
    for task in TASKS:
        draw = random.Random(2)
        cases = [case_of(task, draw) for _ in range(CASES)]
        right = [case for case in cases if writes(model, case)]
        print(f"{task}: {len(right)} of {CASES} written rightly")
        for name, method in methods.items():
            for hops in HOPS:
                method(right[0], hops)  # warm
                begun = time.process_time()
                found = [method(case, hops) for case in right]
                spent = (time.process_time() - begun) / len(right)
                row = {"task": task, "method": name, "hops": hops, "ms": round(1000 * spent, 1)}
                for i, kind in enumerate(("recovered", "through")):
                    both = zip(found, right, strict=True)
                    row[kind] = round(fmean(recovered(a[i], case.sources) for a, case in both), 3)
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    {"train": train, "compare": compare}[sys.argv[1]](Path(sys.argv[2]))
