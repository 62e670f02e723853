"""The site has a place for every document, link and option, and opens without an error."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from attnviz.cli import COMMANDS, command
from tests.browsing import Open

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import make_gallery  # noqa: E402
import make_site  # noqa: E402
from command_pages import command_pages  # noqa: E402
from make_outputs import DOCUMENTS  # noqa: E402

MOST_BYTES = 60e6


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site in the folder ATTNVIZ_SITE, which CI has made; else it is made here."""
    if made := os.environ.get("ATTNVIZ_SITE"):
        return Path(made).absolute()
    folder = tmp_path_factory.mktemp("site")
    maker = ROOT / "docs/make_site.py"  # in a process of its own: it has a browser, too
    subprocess.run([sys.executable, str(maker), str(folder)], check=True)
    return folder


OF_EACH_KIND = "index.html", "overview.html", "tutorials/learn.html", "reference/show.html"
"""The other pages are of the same templates; all 76 take half a minute."""


@pytest.mark.slow
def test_the_gallery_has_every_page_and_picture_and_no_more_than_its_bytes(site: Path) -> None:
    files = {file.name: file.stat().st_size for file in (site / "gallery").iterdir()}
    pages = {each.file for each in make_gallery.ENTRIES}
    pictures = {each.picture for each in make_gallery.ENTRIES}
    assert files.keys() == {"index.html"} | pages | pictures
    assert sum(files.values()) <= MOST_BYTES


@pytest.mark.slow
def test_the_gallery_and_a_page_of_each_kind_open_without_an_error(
    site: Path, opened: Open
) -> None:
    page = opened(site / "index.html", ready="article")
    for file in [*site.glob("gallery/*.html"), *(site / name for name in OF_EACH_KIND)]:
        page.goto(file.as_uri())
        in_gallery = file.parent.name == "gallery"
        page.wait_for_selector(make_gallery.READY if in_gallery else "article")


@pytest.mark.slow
def test_the_search_finds_an_option_in_the_page_of_its_command(site: Path, opened: Open) -> None:
    page = opened(site / "why.html", ready="article")
    page.click(".md-search__input")
    page.keyboard.type("drop-sink")
    page.locator(".md-search-result__link[href*='reference/show.html?h=drop+sink#']").wait_for()


@pytest.mark.slow
def test_the_lesson_in_its_frame_is_dark_when_the_site_is(site: Path, opened: Open) -> None:
    page = opened(site / "index.html", ready="article")
    lesson = page.frame_locator("iframe.lesson")
    lesson.locator("html[data-theme=light] body[data-ready]").wait_for()
    for _ in range(2):  # from the system's to light, and to dark
        page.locator(".md-header__option label:visible").click()
    lesson.locator("html[data-theme=dark] body[data-ready]").wait_for()


CASES = {
    # document, its page, what it has, what its page has
    "beside": ("docs/tour.md", "tour.md", "[a](why.md#b)", "[a](why.md#b)"),
    "deeper": ("docs/tutorials/x.md", "tutorials/x.md", "[a](../why.md)", "[a](../why.md)"),
    "moved": ("docs/site/home.md", "index.md", "[a](../tour.md)", "[a](tour.md)"),
    "the README": ("docs/tour.md", "tour.md", "[a](../README.md#b)", "[a](overview.md#b)"),
    "of the README": ("README.md", "overview.md", "![a](docs/a.png)", "![a](a.png)"),
    "sized": ("README.md", "overview.md", '<img src="docs/a.png" alt>', '<img src="a.png" alt>'),
    "generated": ("docs/shell.md", "shell.md", "[a](cli.md)", "[a](reference/index.md)"),
    "code": ("docs/x.md", "x.md", "[a](make_cli.py)", "[a](source/docs/make_cli.py.md)"),
    "a folder": ("docs/x.md", "x.md", "see [`tests`](../tests).", "see `tests`."),
    "elsewhere": ("docs/x.md", "x.md", "[a](https://b.org/c)", "[a](https://b.org/c)"),
    "this page": ("docs/x.md", "x.md", "[a](#b)", "[a](#b)"),
    "printed": ("docs/x.md", "x.md", "```text\n[a](../b)\n```", "```text\n[a](../b)\n```"),
}


@pytest.mark.parametrize(("name", "page", "text", "expected"), CASES.values(), ids=CASES)
def test_a_link_of_a_document_leads_to_a_page(
    name: str, page: str, text: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: text)
    assert make_site.linked(ROOT / name, page) == expected


def test_a_file_to_which_a_document_links_is_shown_as_it_is(tmp_path: Path) -> None:
    found = make_site.sources([ROOT / "docs/architecture.md"])
    name = "docs/example/attnviz_example/sinks.py"
    assert found == {ROOT / name: f"source/{name}.md"}
    text = (ROOT / name).read_text(encoding="utf-8").rstrip()
    assert f"`````python\n{text}\n`````" in make_site.source(ROOT / name)


def test_every_document_has_a_place_in_the_navigation() -> None:
    class Loader(yaml.SafeLoader):
        """Knows no Python."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
    text = (ROOT / "docs/site/mkdocs.yml").read_text(encoding="utf-8")
    config = yaml.load(text, Loader)
    for document in DOCUMENTS:
        page = make_site.page_of(document)
        assert page in str(config["nav"]) or page.startswith("reference/")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_a_command_has_an_anchor_for_each_option(name: str) -> None:
    anchors = re.findall(r"\{ #(\S+) \}$", command_pages()[f"reference/{name}.md"], re.MULTILINE)
    flags = (flag for option in command(name).params for flag in option.opts if not option.hidden)
    assert {flag[2:] for flag in flags if flag.startswith("--")} <= {*anchors}
    assert len({*anchors}) == len(anchors)
