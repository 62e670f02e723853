"""Build the site: the documents of docs/, a page for each command, the gallery, a search; offline.

    python docs/make_site.py [FOLDER]     into build/site, or this folder; needs the extra docs

A folder that has anything but an earlier site is refused, and keeps its place until all is made.
MkDocs calls what begins with `on_` (`docs/site/mkdocs.yml`). Links that lead out of docs/ lead to
pages of the site: README.md and CHANGELOG.md have one, and every other file is shown as it is.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

import make_gallery
from command_pages import command_pages

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).resolve().parents[1]
GALLERY, SOURCE = ROOT / "build/gallery", "source"
PAGES = {
    "docs/site/home.md": "index.md",
    "README.md": "overview.md",
    "CHANGELOG.md": "changelog.md",
}
"""Documents outside of docs/, and their pages."""
MOVED = {
    **PAGES,
    "docs/README.md": "index.md",
    "docs/cli.md": "reference/index.md",
    "docs/make_gallery.py": "gallery.md",
}
WIDE = f"---\nhide: [navigation, toc]\n---\n\n# Gallery\n\n{make_gallery.LEAD}\n\n"
LINK = re.compile(
    r"^```.*?^```$|\[(?P<text>[^\[\]]*)\]\((?P<path>[^):#\s]+)(?P<anchor>#[^)\s]*)?\)"
    r'|<img src="(?P<image>[^":]+)"',
    re.M | re.S,
)


def on_config(config: "MkDocsConfig") -> None:
    """List the commands where the navigation has their place."""
    (reference,) = (each["Reference"] for each in config.nav or () if "Reference" in each)
    (commands,) = (each for each in reference if "Commands" in each)
    commands["Commands"] = [*command_pages()]


def on_files(files: "Files", *, config: "MkDocsConfig") -> "Files":
    """Put the pages that are made among the documents, whose links lead to pages of the site."""
    from mkdocs.structure.files import File

    documents = {ROOT / "docs" / each.src_uri: each.src_uri for each in files.documentation_pages()}
    documents |= {ROOT / name: uri for name, uri in PAGES.items()}
    texts = {uri: linked(document, uri) for document, uri in documents.items()}
    texts |= {page: source(file) for file, page in sources(documents).items()}
    texts |= command_pages()
    texts["gallery.md"] = WIDE + make_gallery.cards(GALLERY, place="gallery/")
    for uri, text in texts.items():
        if old := files.get_file_from_path(uri):
            files.remove(old)
        files.append(File.generated(config, uri, content=text))
    for file in GALLERY.iterdir():
        files.append(File.generated(config, f"gallery/{file.name}", abs_src_path=str(file)))
    return files


def linked(document: Path, uri: str) -> str:
    """The text of a document for its page: links lead to pages, and none to a folder."""

    def link(found: re.Match[str]) -> str:
        if not (target := found["path"] or found["image"]):
            return found[0]
        page = page_of(document.parent / target)
        path = os.path.relpath(page, Path(uri).parent) if page else ""
        if found["image"]:
            return f'<img src="{path}"'
        return f"[{found['text']}]({path}{found['anchor'] or ''})" if path else found["text"]

    return LINK.sub(link, document.read_text(encoding="utf-8"))


def page_of(target: Path) -> str:
    """The page, or the file of the site, that shows a file; nothing for a folder."""
    name = target.resolve().relative_to(ROOT).as_posix()
    inside = name.startswith("docs/") and not name.endswith(".py")
    if target.is_dir():
        return ""
    return MOVED.get(name) or (name.removeprefix("docs/") if inside else f"{SOURCE}/{name}.md")


def sources(documents: Iterable[Path]) -> dict[Path, str]:
    """The files outside of docs/ to which documents link, and their pages."""
    found = (
        document.parent / link["path"]
        for document in documents
        for link in LINK.finditer(document.read_text(encoding="utf-8"))
        if link["path"]
    )
    pages = {file.resolve(): page_of(file) for file in found}
    return {file: page for file, page in pages.items() if page.startswith(f"{SOURCE}/")}


def source(file: Path) -> str:
    """A page that shows a file as it is; the search leaves it out."""
    language = "python" if file.suffix == ".py" else "text"
    text = file.read_text(encoding="utf-8").rstrip()
    head = f"---\nsearch: {{ exclude: true }}\n---\n\n# {file.relative_to(ROOT).as_posix()}"
    return f"{head}\n\n`````{language}\n{text}\n`````\n"


def main(folder: Path) -> None:
    """Make the gallery and the site."""
    config = str(ROOT / "docs/site/mkdocs.yml")
    # not with -q, which counts no warnings: --strict would find nothing
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    with make_gallery.replaced(folder, "gallery/index.html") as made:
        make_gallery.make(GALLERY)
        if code := subprocess.run([*command, "-d", str(made)], env=environment).returncode:
            sys.exit(code)
    print(f"the site: {folder / 'index.html'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/site").absolute())
