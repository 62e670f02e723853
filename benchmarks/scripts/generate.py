"""attnviz's answer and the segments that it looked at: seconds, and bytes above the loaded model.

python generate.py FOLDER TEXT.txt NEW native|transformers
"""

import sys
from pathlib import Path

from inside import report

from attnviz.commands.generate.run import Writing, answering
from attnviz.inputs.prompts import Document, with_documents
from attnviz.kit.prepare import HeadOptions, TextOptions
from attnviz.models.catalog import Source, load
from attnviz.records.tokens import Sampling

folder, text, new, engine = sys.argv[1:]
model = load(Source(folder, engine=engine))  # type: ignore[arg-type]
words = Path(text).read_text().split()
QUARTERS = 4


def generate(n: int) -> None:
    parts = [words[i * n // QUARTERS : (i + 1) * n // QUARTERS] for i in range(QUARTERS)]
    *read, question = (" ".join(part) for part in parts)
    prompt = with_documents(question, [Document(str(i), text) for i, text in enumerate(read)])
    writing = Writing(Sampling(most=int(new)))
    every_head = HeadOptions(heads="all")
    asked = answering(model, prompt, TextOptions(bos=False), writing, every_head)
    answer = asked.answer(asked.tokens_with_rows())
    assert len(answer.weights) == int(new)
    answer.shares("sentence")


report(generate, len(words))
