"""Make the gallery: offline pages that attnviz writes, each with the command that made it.

    python docs/make_gallery.py [FOLDER]     into build/gallery, or this folder

An entry is run as it stands here, and its index is `index.html`. With Playwright (extra `dev`) and
Debian's chromium the pictures of the index are those of the pages; without them, pictures that the
same commands draw.
"""

import contextlib
import html
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

from attnviz.cli import main as attnviz
from attnviz.console import Environment
from attnviz.inputs.text import Stdin
from attnviz.kit.session import Session

HERE = Path(__file__).resolve().parent
CHROMIUM = Path("/usr/bin/chromium")
STYLE = (HERE / "site/gallery.css").read_text(encoding="utf-8")
READY = "body[data-ready], html:not(:has(script)) body"
"""A page that is drawn: its script says so, if it has one."""
OPTION, UNBROKEN = re.compile(r"(?<= )--?\w[\w-]* \S+"), r"<span>\g<0></span>"
SCREEN = {"width": 1200, "height": 780}
LEAD = "Each page is one file, works offline, and was made by the command below it."
TITLE = "<title>attnviz: gallery</title>"
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
{title}
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 76rem; padding: 1rem; }}
{style}</style>
<body>
<main>
<h1>Gallery</h1>
<p>{lead}</p>
{cards}
</main>
"""


@dataclass(frozen=True)
class Entry:
    """A page of the gallery: the commands that make it, one per line, and a claim about it."""

    title: str
    claim: str
    commands: str
    code: int = 0
    """The highest exit code of the commands."""

    @property
    def file(self) -> str:
        """The page, which the last command writes."""
        return self.commands.rpartition(" -o ")[2]

    @property
    def picture(self) -> str:
        return f"{Path(self.file).stem}.png"


ENTRIES = (
    Entry(
        "A head, number by number",
        "Type a sentence, and follow query, key and value of any head up to the next word.",
        'attnviz explain "a fluffy blue creature roamed the verdant forest" -o lesson.html',
    ),
    Entry(
        "Which word attends to which",
        "Point at a word to see which words it attends to, and in which heads most.",
        'attnviz show "a fluffy blue creature roamed the verdant forest" -o words.html',
    ),
    Entry(
        "The sources of an answer",
        "The answer names Victor, as the letter does; without the letter, it would not.",
        'attnviz generate "therefore the murderer was" --doc sample:diary '
        "--doc sample:letter --doc sample:report --check -o answer.html",
    ),
    Entry(
        "Many answers, and how well they are grounded",
        "Each question opens; failed questions and the least grounded answers come first.",
        "attnviz generate --lines --file sample:questions --check -o results.jsonl --resume\n"
        "attnviz report results.jsonl -o report.html",
        code=3,  # one of the questions has no documents
    ),
    Entry(
        "A word in an image",
        "The word circle attends to the circle.",
        'attnviz show "what is left of the red circle?" -m shapes '
        "--image sample:shapes-1 --head L1H0 --query circle -o image.html",
    ),
    Entry(
        "Where the model keeps a colour",
        "One vector from a text on a red bird turns the answer from blue to red.",
        'attnviz patch "a blue bird slept . the bird was" '
        '--from "a red bird slept . the bird was" --part residual -o patch.html',
    ),
    Entry(
        "Every head over a corpus",
        "The behaviour of each head of the built-in model on 200 texts, with examples.",
        "attnviz scan sample:colors -o scanned\nattnviz atlas scanned -o atlas.html",
    ),
)


@contextlib.contextmanager
def replaced(folder: Path, index: str = "index.html") -> Iterator[Path]:
    """A new folder, which takes the place of this one once all is made in it.

    `index`: where it has the index of the gallery. A folder that has none, but files, is refused.
    """
    earlier = (folder / index).is_file() and TITLE in (folder / index).read_text(encoding="utf-8")
    if folder.exists() and not earlier and any(folder.iterdir()):
        raise SystemExit(f"{folder} has files that were not made by this; name another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        made = Path(temporary) / "made"
        made.mkdir()
        yield made
        if folder.exists():
            folder.rename(Path(temporary) / "earlier")
        made.rename(folder)


def make(folder: Path, entries: Sequence[Entry] = ENTRIES) -> None:
    """Make the pages of the entries, their pictures and their index."""
    with replaced(folder) as made, tempfile.TemporaryDirectory() as temporary:
        with contextlib.chdir(temporary), patch.dict(os.environ):
            os.environ.pop("ATTNVIZ_MODEL", None)
            for entry in entries:
                carry_out(entry)
                shutil.copy(entry.file, made)
            if CHROMIUM.exists() and find_spec("playwright"):
                photograph(made, entries)
            else:
                draw(made, entries)
        index = PAGE.format(title=TITLE, style=STYLE, lead=LEAD, cards=cards(made, entries))
        (made / "index.html").write_text(index, encoding="utf-8")


def carry_out(entry: Entry) -> None:
    """Run the commands of an entry; if they end in another way than it says, so does this."""
    codes, said = zip(*map(run, entry.commands.splitlines()), strict=True)
    if max(codes) != entry.code or not Path(entry.file).exists():
        raise RuntimeError("\n".join([entry.commands, *said]))


def run(command: str) -> tuple[int, str]:
    """Run a command in this process; its exit code, and what it says on standard error."""
    out, err = io.StringIO(), io.StringIO()
    stdin = Stdin(io.BytesIO(), is_terminal=True)
    session = Session(Environment(out, err, {"ATTNVIZ_CONFIG": ""}), stdin)
    return attnviz(shlex.split(command)[1:], session), err.getvalue()


def photograph(folder: Path, entries: Sequence[Entry]) -> None:
    """Take a picture of the first screen of each page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport=SCREEN, device_scale_factor=0.75, color_scheme="light")
        for entry in entries:
            page.goto((folder / entry.file).as_uri())
            page.wait_for_selector(READY)
            page.screenshot(path=folder / entry.picture)
        browser.close()


def draw(folder: Path, entries: Sequence[Entry]) -> None:
    """Draw what the commands of the entries draw; not every one draws something."""
    for entry in entries:
        run(f"{entry.commands.splitlines()[-1].rpartition(' -o ')[0]} -o {entry.picture}")
        with contextlib.suppress(FileNotFoundError):
            shutil.copy(entry.picture, folder)


def cards(folder: Path, entries: Sequence[Entry] = ENTRIES, place: str = "") -> str:
    """The entries as HTML; `place` is the folder of the pages, as the index has it."""
    parts = ['<div class="gallery">']
    for entry in entries:
        picture = f'<img src="{place}{entry.picture}" alt="" loading="lazy">'
        parts += [
            "<article>",
            f'<a href="{place}{entry.file}">',
            picture if (folder / entry.picture).exists() else "",
            f"<h2>{entry.title}</h2></a>",
            f"<p>{entry.claim}</p>",
            f"<pre><code>{OPTION.sub(UNBROKEN, html.escape(entry.commands))}</code></pre>",
            "</article>",
        ]
    return "\n".join(filter(None, [*parts, "</div>"]))


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parent / "build/gallery").absolute()
    make(target)
    size = sum(file.stat().st_size for file in target.iterdir()) / 1e6
    print(f"{len(ENTRIES)} pages, {size:.1f} MB: {target / 'index.html'}")
