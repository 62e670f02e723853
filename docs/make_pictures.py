"""Draw one picture of each kind that attnviz draws, and write docs/pictures.md, which shows them.

    python docs/make_pictures.py

The commands are run as they stand here, in a folder of their own; takes two minutes.
"""

import contextlib
import io
import os
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import speech_model
from PIL import Image

from attnviz.cli import main as attnviz
from attnviz.console import Environment
from attnviz.inputs.text import Stdin
from attnviz.kit.session import Session

DOCS = Path(__file__).resolve().parent
FOLDER = DOCS / "pictures"
HEADING = """# Pictures

One picture of each kind, with the command that draws it. Each is written as PNG, SVG or PDF by its
suffix; `--paper 8.5` draws it for a column of a paper, wide ones want `--paper 17.8`
([views.md](views.md#pictures)).
`python docs/make_pictures.py` makes this page, and before it the scans, the small training and the
files that some of the commands read.
"""
FIRST = (
    "attnviz scan sample:colors -o scanned",
    "attnviz train terms.txt -o trained --n-layer 2 --max-steps 60 --keep-every 20 --vocab 400",
    *(
        f"attnviz scan terms.txt --split line -m trained/step-{n:06} -o scans/step-{n:06}"
        for n in (0, 20, 40, 60)
    ),
)
"""What the pictures of scans need."""
LABELS = '{"text": "the furry red dog slept", "links": [["dog", ["furry", "red"]]]}\n'
COLORS, DPI = 128, "80"
CREATURE = '"a fluffy blue creature roamed the verdant forest"'
BIRD = '"a blue bird slept . the bird was" --from "a red bird slept . the bird was"'

FOUND, WHY = "circuit --pairs sample:colors --find 4", 'why "a fluffy blue creature" --depth 2'


@dataclass(frozen=True)
class Kind:
    """A kind of picture: what it shows, and a command that draws one; `-o NAME.png` is added."""

    name: str
    shows: str
    command: str


KINDS = {
    "Which token attends to which": (
        Kind("head", "one head: queries down, keys across", f"show {CREATURE}"),
        Kind("heads", "several heads, in one scale", f"show {CREATURE} --layer 3-4"),
        Kind(
            "links",
            "lines between tokens: the stronger, the more opaque",
            f"show {CREATURE} --view links --head L3H1,L3H2",
        ),
        Kind(
            "cross",
            "cross-attention: what is written, to what is read",
            'show "a blue creature roamed the forest" -m translator --head L1H0',
        ),
        Kind("long", "many tokens", "show --file sample:mystery"),
        Kind(
            "compare",
            "one head on two texts",
            'compare "a fluffy blue creature" "a fluffy red creature" --head L3H2',
        ),
        Kind(
            "compare-models",
            "how alike the heads of two models are",
            f"compare {CREATURE} --against trained",
        ),
    ),
    "Images and sounds": (
        Kind(
            "image",
            "an image, and what one word attends to in it",
            'show "what is left of the red circle?" -m shapes --image sample:shapes-1 '
            "--head L1H0 --query circle",
        ),
        Kind(
            "image-words",
            "the same of every word",
            'show "what is left of the red circle?" -m shapes --image sample:shapes-1 --head L1H0',
        ),
        Kind(
            "sound",
            "a sound, and when each word attends to it",
            'show speech.wav -m ./whisper --target "the cat sat" --head L1H1,L2H0',
        ),
    ),
    "Answers": (
        Kind(
            "answer",
            "which segment of the prompt each sentence attended to",
            'generate "therefore the murderer was" --doc sample:diary --doc sample:letter '
            "--doc sample:report",
        ),
    ),
    "Every head": (
        Kind("grid", "the attention of every head", f"show {CREATURE} --head all"),
        Kind("scores", "the scores of every head on one text", f"heads {CREATURE}"),
        Kind("labels", "how much goes to the keys that you say", "heads --labels labels.jsonl"),
        Kind("circuits", "copying and matching, from the weights alone", "heads --circuits"),
        Kind("atlas", "scores over a corpus", "atlas scanned"),
        Kind("scatter", "two scores of every head", "atlas scanned --plot previous,induction"),
        Kind("development", "scores over a training", "atlas scans/step-*"),
    ),
    "Does a head matter, and why": (
        Kind("ablate", "what the answer loses without a part", f"ablate {CREATURE} --mlp all"),
        Kind(
            "ablate-tokens",
            "where the loss of one head lies",
            f"ablate {CREATURE} --head L3H2,L4H0 --rows token",
        ),
        Kind("patch", "what a part carries from another text", f"patch {BIRD} --part residual"),
        Kind("paths", "which head one head reaches an answer by", f"patch {BIRD} --to L4H0"),
        Kind("circuit", "what a few heads do for each other", f"circuit {BIRD} --head L3H1,L4H0"),
        Kind(
            "found",
            "heads added one by one, and how much of an answer they keep",
            FOUND,
        ),
        Kind(
            "why",
            "what makes a score, back to the tokens",
            WHY,
        ),
        Kind("meaning", "how a vector gets its meaning", 'explain "a soft green table"'),
    ),
}


def run(command: str) -> None:
    """Run a command line of attnviz; its notes are dropped."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    arguments = [
        str(part)
        for word in shlex.split(command)
        for part in (sorted(Path().glob(word)) if "*" in word else [word])
    ]
    session = Session(Environment(out, io.TextIOWrapper(io.BytesIO(), "utf-8")), Stdin(None, True))
    if code := attnviz(arguments[1:], session):
        session.environment.stderr.seek(0)
        raise SystemExit(f"{command}: {code} {session.environment.stderr.read()}")


def draw(kind: Kind) -> None:
    """Draw a picture, with few colours, so that its file is small."""
    run(f"attnviz {kind.command} -q --dpi {DPI} -o picture.png")
    with Image.open("picture.png") as drawn:
        drawn.convert("RGB").quantize(COLORS, method=Image.Quantize.MAXCOVERAGE).save(
            FOLDER / f"{kind.name}.png", optimize=True
        )


def prepare(folder: Path) -> None:
    """Make the files that the commands read."""
    speech_model.main(folder / "whisper")
    shutil.copy(DOCS / "glossary.md", folder / "terms.txt")
    (folder / "labels.jsonl").write_text(LABELS, encoding="utf-8")
    for command in FIRST:
        run(command)


def page() -> str:
    """The page: of each kind its picture, what it shows, and its command."""
    lines = [HEADING]
    for title, kinds in KINDS.items():
        lines.append(f"## {title}\n")
        for kind in kinds:
            lines.append(f"**{kind.shows[0].upper()}{kind.shows[1:]}**\n")
            lines.append(f"```sh\nattnviz {kind.command} -o {kind.name}.png\n```\n")
            lines.append(f"![{kind.shows}](pictures/{kind.name}.png)\n")
    return "\n".join(lines)


def main() -> None:
    """Draw all of them, and write the page."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, contextlib.chdir(temporary):
        prepare(Path.cwd())
        for kinds in KINDS.values():
            for kind in kinds:
                draw(kind)
    (DOCS / "pictures.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    main()
