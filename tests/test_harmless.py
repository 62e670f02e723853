"""Nothing from elsewhere reaches a terminal or a picture as more than letters, in any format."""

import json
import re
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import CharDelimiterSplit
from tokenizers.processors import TemplateProcessing

from attnviz.errors import LAYOUT, ExitStatus, harmless, readable
from attnviz.models.tokenizer import TextTokenizer
from tests.conftest import Run

EVIL = [
    "\x1b[31mred",
    "\x07",
    "\x9b2J",
    "\u202eright",
    "\x1b]0;title\x07",
    "\u2066b",
    "a\rb",
    "\x00",
]
WORDS = ["unk", "red", *EVIL]
TEXT = "~".join([EVIL[0], "red", EVIL[3], EVIL[4], "red"])
COMMANDS = {
    "show": ("show", TEXT),
    "every head": ("show", TEXT, "--head", "all"),
    **{view: ("show", TEXT, "--view", view) for view in ("heatmap", "grid", "text", "links")},
    "heads": ("heads", TEXT),
    "predict": ("predict", TEXT, "--each"),
    "ablate": ("ablate", TEXT),
    "tokens": ("tokens", TEXT),
    "special": ("show", TEXT, "--special"),
    "special tokens": ("tokens", TEXT, "--special"),
    "explain": ("explain", TEXT),
    "compare": ("compare", TEXT, TEXT, "--query", "red#1"),
}
FORMATS = ("txt", "json", "jsonl", "csv", "tsv", "svg", "html")


@pytest.fixture(scope="module")
def evil(gpt2_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model whose folder, card and every token would repaint a terminal."""
    folder = tmp_path_factory.mktemp("evil") / "\x1b[2J\u202efolder"
    folder.mkdir()
    for path in gpt2_folder.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="unk"))
    tokenizer.pre_tokenizer = CharDelimiterSplit("~")
    tokenizer.add_special_tokens([EVIL[4]])
    tokenizer.save(str(folder / "tokenizer.json"))
    head = {"behaviour": EVIL[0], "head": "L0H0", "title": EVIL[1]}
    figure = {"behaviour": EVIL[0], "measure": EVIL[2], "held_out": 1, "bar": None, "n": 1}
    card = {"schema": 1, "name": EVIL[0], "description": EVIL[3], "bos": False}
    (folder / "card.json").write_text(json.dumps({**card, "heads": [head], "figures": [figure]}))
    return str(folder)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("form", FORMATS)
def test_no_output_holds_a_character_that_a_terminal_obeys(
    run: Run, evil: str, name: str, form: str
) -> None:
    ended = run(*COMMANDS[name], "--model", evil, "-f", form)
    not_written = form != "txt" and ended.status is ExitStatus.USAGE  # by this command or view
    assert not_written or ended.status is ExitStatus.OK, ended.err
    check_harmless(ended.out.replace("\t", "") + ended.err)
    if form == "svg" and ended.out:
        ElementTree.fromstring(ended.out)
    if form == "json" and ended.out:
        json.loads(ended.out)


@pytest.mark.parametrize("form", ["txt", "json", "jsonl", "csv"])
@pytest.mark.parametrize("command", ["models", "params"])
def test_a_card_and_a_folders_name_are_harmless(
    run: Run, evil: str, command: str, form: str
) -> None:
    ended = run(command, evil, "-f", form)
    assert ended.status is ExitStatus.OK, ended.err
    assert ended.out
    check_harmless(ended.out + ended.err)


def test_the_name_of_a_token_around_a_text_is_harmless() -> None:
    tokenizer = Tokenizer(WordLevel({"red": 0, EVIL[0]: 1}, unk_token="red"))
    tokenizer.post_processor = TemplateProcessing(f"{EVIL[0]} $A", None, [(EVIL[0], 1)])
    wrapped = TextTokenizer(tokenizer, None, 2, 9, bos=True, adds_special=True)
    first, _ = wrapped.encode("red", bos=True, special=False)
    check_harmless(first.label)
    assert first.label == "\\x1b[31mred"


def check_harmless(output: str) -> None:
    bad = {c for c in output if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in LAYOUT}
    assert not {hex(ord(c)) for c in bad}


def test_a_layout_keeps_its_lines_and_a_foreign_text_does_not() -> None:
    assert harmless("a\nb\x1b[0m\u200e") == "a\nb\\x1b[0m\u200e"
    assert readable("a\nb\x1b[0m\u200e") == "a\\nb\\x1b[0m\\u200e"
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", harmless("".join(map(chr, range(256)))))


def test_no_document_brings_a_control_character_into_the_page_of_an_answer(
    run: Run, tmp_path: Path
) -> None:
    document, page = tmp_path / "a\x1b[2Jdocument.txt", tmp_path / "page.html"
    document.write_bytes(f"Leo has {''.join(EVIL)}\ta knife .\r\nAnna slept .\r\n".encode())
    asked = f"the {EVIL[0]}{EVIL[3]} murderer was"
    given = ("--doc", str(document), "--target", f" Leo {EVIL[4]} .")
    ended = run("generate", asked, *given, "--check", "-o", str(page))
    assert ended.status is ExitStatus.OK, ended.err
    text = page.read_bytes().decode()
    check_harmless(text.replace("\t", ""))
    assert "Leo has \\x1b[31mred\\x07" in text
    assert "\ta knife .\nAnna slept ." in text
