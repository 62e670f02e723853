"""Measure the capture of architectures, and half precision, and write it into docs/models.md.

python docs/make_models.py          all of it
python docs/make_models.py half     half precision alone
python docs/make_models.py images   vision-language models alone
python docs/make_models.py encoders models that read an image alone
python docs/make_models.py speech   models that read speech alone
python docs/make_models.py every    every architecture that can be built tiny, alone
"""

import re
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from attnviz.commands.show.outputs import Show
from attnviz.commands.show.run import show_text
from attnviz.errors import ModelError
from attnviz.kit.prepare import HeadOptions, TextOptions, load_model, verify
from attnviz.models.catalog import Source
from attnviz.models.loaded import LoadedModel
from attnviz.models.placement import Placement
from tests.architectures import ARCHITECTURES, Architecture
from tests.exactness import exactness_of
from tests.frozen import EXPERTS, frozen, worst_sum

TARGET = Path(__file__).with_name("models.md")
ROOT = TARGET.parents[1]
TABLE = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- /table -->)", re.DOTALL)
HEAD = """| architecture | feature | captured from | weights | output | parts |
| --- | --- | --- | --- | --- | --- |
"""


ENCODERS = re.compile(r"(?<=<!-- encoders -->\n).*?(?=<!-- /encoders -->)", re.DOTALL)
SPEECH = re.compile(r"(?<=<!-- speech -->\n).*?(?=<!-- /speech -->)", re.DOTALL)
IMAGES = re.compile(r"(?<=<!-- images -->\n).*?(?=<!-- /images -->)", re.DOTALL)
EVERY = re.compile(r"(?<=<!-- every -->\n).*?(?=<!-- /every -->)", re.DOTALL)
HALF = re.compile(r"(?<=<!-- half -->\n).*?(?=<!-- /half -->)", re.DOTALL)
SENTENCES = """The cat sat on the mat.
Mary gave the book to John because he asked for it.
A fluffy blue creature roamed the verdant forest.
The nurse said that she would call the doctor after lunch.
Stir the flour into the warm milk until it is smooth.
Where did the children leave their shoes?
The bank raised its rates for the third time this year.
He sat on the bank of the river and watched the boats.
def add(a, b): return a + b
Please send me the report by Friday, if you can.
The old house on the hill was sold to a young family.
It rained all night, and the road was flooded.
Anna opened the door, but nobody was there.
The committee that met on Monday has not yet decided.
She sells sea shells by the sea shore.
In 1969 two men walked on the moon.
If the water is cold, the tea will not brew.
The quick brown fox jumps over the lazy dog.
We went to the market and bought apples, pears and plums.
The murderer was seen in the library with a candlestick.""".splitlines()


def half_precision() -> str:
    """How far bfloat16 weights are from `output_attentions=True` in bfloat16, over 27 texts."""
    source = Source("builtin", engine="transformers", placement=Placement(dtype="bfloat16"))
    model = load_model(source)
    files = sorted((ROOT / "sample_texts").glob("*.txt"))
    texts = [*SENTENCES, *(file.read_text(encoding="utf-8").strip() for file in files)]
    cut = TextOptions(truncate="right")
    found = [verify(model, source, text, cut).weights for text in texts]
    exact = load_model(replace(source, placement=Placement()))
    moved = [_moved(model, exact, text, cut) for text in texts]
    return (
        f"Measured on the built-in model in bfloat16 over {len(texts)} texts ({len(SENTENCES)} "
        "sentences and the sample\ntexts), as the largest difference of a weight in each text:\n\n"
        "| difference | median | maximum |\n| --- | --- | --- |\n"
        "| from `output_attentions=True` in bfloat16 "
        f"| {median(found):.3f} | {max(found):.3f} |\n"
        f"| from the same model in float32 | {median(moved):.3f} | {max(moved):.3f} |\n"
    )


def _moved(model: LoadedModel, exact: LoadedModel, text: str, cut: TextOptions) -> float:
    """The largest difference of a weight between two runs of a text."""
    every = Show(HeadOptions(heads="all"))
    one, other = (show_text(each, text, cut, every).capture for each in (model, exact))
    apart = zip(one.layers, other.layers, strict=True)
    return max(float(np.abs(a.weights - b.weights).max()) for a, b in apart)


def row(architecture: Architecture) -> str:
    """One architecture, measured."""
    exactness = exactness_of(architecture)
    how = "its modules' results" if architecture.fallback else "attention function"
    what = architecture.what + (
        "" if architecture.kind == "self" else f" ({architecture.kind}-attention)"
    )
    measured = f"{exactness.weights:.1e} | {exactness.output:.1e} | {parts(architecture)}"
    return f"| {architecture.name} | {what} | {how} | {measured} |\n"


def parts(architecture: Architecture) -> str:
    """How exactly the parts of the model add up to a score, in float32 and float64."""
    if architecture.image:
        return ""
    try:
        single = f"{worst_sum(frozen(architecture)):.0e}"
    except ModelError:
        return "refused"
    if architecture.name in EXPERTS:
        return single
    return f"{single}, {worst_sum(frozen(architecture, torch.float64)):.0e}"


def every() -> str:
    """The results for every text architecture of transformers: a list for each outcome."""
    from every_architecture import EXACT, Measured, measured, names

    asked = names()
    by_outcome: dict[str, list[Measured]] = {}
    for each in measured(asked):
        by_outcome.setdefault(each.outcome, []).append(each)
    lines = [
        f"Results for the {len(asked)} model types for which transformers "
        f"{transformers.__version__} has a language model:\n"
    ]
    for outcome, meaning in {
        "exact": f"exact, with weights within {EXACT:.0e} of transformers' eager attention (in "
        "deep models, where float32 itself strays further, within twice its distance from float64)",
        "wrong": "further apart than that, or with other layers",
        "refused": "refused by name",
        "no weights to compare": "captured, but transformers returns no weights to compare with",
        "fails in transformers": "not run by transformers itself with small sizes",
        "not tiny": "too large to try",
    }.items():
        found = [f"`{each.name}`" for each in by_outcome.get(outcome, ())]
        if found:
            lines += textwrap.wrap(
                f"- **{len(found)}** {meaning}: {', '.join(found)}",
                112,
                subsequent_indent="  ",
                break_on_hyphens=False,
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write what was measured into the document."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    text = TARGET.read_text(encoding="utf-8")
    asked = sys.argv[1:] or ["table", "images", "encoders", "speech", "half", "every"]
    if "half" in asked:
        half = half_precision()
        text = HALF.sub(lambda _: half, text)
    if "table" in asked:
        table = HEAD + "".join(row(architecture) for architecture in ARCHITECTURES)
        text = TABLE.sub(lambda _: table, text)
    if "images" in asked:
        from image_architectures import image_table

        images = image_table()
        text = IMAGES.sub(lambda _: images, text)
    if "encoders" in asked:
        from image_architectures import encoder_table

        encoders = encoder_table()
        text = ENCODERS.sub(lambda _: encoders, text)
    if "speech" in asked:
        from speech_architectures import speech_table

        speech = speech_table()
        text = SPEECH.sub(lambda _: speech, text)
    if "every" in asked:
        found = every()
        text = EVERY.sub(lambda _: found, text)
    TARGET.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
