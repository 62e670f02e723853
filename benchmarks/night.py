"""A night's run: questions over 5 documents, checked, beside its forward passes alone.

    python -m benchmarks.night FOLDER [RUNS [QUESTIONS]]

Theirs are the passes that the check asks for, one by one, on the same small Llama in plain
transformers: the answer after the whole prompt, after what deletions leave of it, and after
unrelated text. Ours adds the tokens, the attention, the search for a smallest set, and the file.
"""

import json
import pickle
import random
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.checkpoints import WORDS, make
from benchmarks.jobs import PYTHON
from benchmarks.measure import MIB, run

QUESTIONS, DOCUMENTS, WORDS_EACH, ASKS, ANSWERS = 500, 5, 40, 12, 24


def questions(number: int) -> str:
    """Questions with documents and answers, of random words, as JSON lines."""
    draw = random.Random(0)

    def words(number: int) -> str:
        return " ".join(draw.choices(WORDS, k=number))

    entries = (
        {
            "id": f"q{i}",
            "question": words(ASKS),
            "documents": [{"id": f"d{j}", "text": words(WORDS_EACH)} for j in range(DOCUMENTS)],
            "target": words(ANSWERS),
        }
        for i in range(number)
    )
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def with_beginning(folder: Path) -> None:
    """The small Llama with a beginning token, after which it can write unrelated text."""
    shutil.copytree(folder / "llama", folder / "night", dirs_exist_ok=True)
    for name, token in (("config.json", 0), ("tokenizer_config.json", "<unk>")):
        path = folder / "night" / name
        key = "bos_token_id" if token == 0 else "bos_token"
        path.write_text(json.dumps({**json.loads(path.read_text()), key: token}))


def record(folder: Path) -> None:
    """Write the prompts and answers of a check of all questions."""
    from attnviz.cli import run as attnviz
    from attnviz.models.loaded import LoadedModel

    passes, plain = list[tuple[Sequence[int], Sequence[int]]](), LoadedModel.choices

    def kept(
        self: LoadedModel, prompts: Sequence[Sequence[int]], answer: Sequence[int], ids: Any
    ) -> Any:
        passes.extend((prompt, answer) for prompt in prompts)
        return plain(self, prompts, answer, ids)

    LoadedModel.choices = kept  # type: ignore[method-assign]
    sys.argv = ["attnviz", *command(folder)[3:]]
    with suppress(SystemExit):
        attnviz()
    (folder / "passes").write_bytes(pickle.dumps(passes))


def replay(folder: Path) -> None:
    """Run these one by one with transformers alone."""
    import torch
    from transformers import AutoModelForCausalLM

    passes = pickle.loads((folder / "passes").read_bytes())
    model = AutoModelForCausalLM.from_pretrained(folder / "night").eval()
    with torch.inference_mode():
        for prompt, answer in passes:
            ids = torch.tensor([[*prompt, *answer[:-1]]])
            logits = model(ids, use_cache=False, logits_to_keep=len(answer)).logits
            logits.log_softmax(-1).gather(-1, torch.tensor(answer)[None, :, None])


def command(folder: Path, lines: str = "questions.jsonl") -> list[str]:
    """The run, into a file that is not there."""
    out = folder / "results.jsonl"
    out.unlink(missing_ok=True)
    asked = ["generate", "--lines", "--file", str(folder / lines), "--model", str(folder / "night")]
    return [PYTHON, "-m", "attnviz", *asked, "--check", "-o", str(out), "--resume", "-q"]


def main(folder: Path, runs: int = 3, number: int = QUESTIONS) -> None:
    """Measure both in turn, and the memory of a tenth of the questions."""
    make(folder)
    with_beginning(folder)
    lines = questions(number)
    (folder / "questions.jsonl").write_text(lines)
    (folder / "few.jsonl").write_text("".join(lines.splitlines(True)[: number // 10]))
    again = [PYTHON, "-m", "benchmarks.night", str(folder)]
    run([*again, "record"])
    few = run(command(folder, "few.jsonl"))
    ours, theirs = [], []
    for _ in range(runs):
        ours.append(run(command(folder)))
        theirs.append(run([*again, "replay"]))
    time = median(each.seconds for each in ours) / median(each.seconds for each in theirs)
    for name, some in (("attnviz", ours), ("plain", theirs), ("attnviz, a tenth", [few])):
        seconds, size = (median(getattr(s, what) for s in some) for what in ("seconds", "bytes"))
        print(f"{name}: {seconds:.1f} s, {size / MIB:,.0f} MiB")
    print(f"time {time:.2f} of theirs")


if __name__ == "__main__":
    where, *more = sys.argv[1:]
    if more in (["record"], ["replay"]):
        {"record": record, "replay": replay}[more[0]](Path(where))
    else:
        main(Path(where), *map(int, more))
