"""Write docs/glossary.md from the terms of attnviz, or (`--check`) say that it has drifted."""

import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from drift import write_or_compare

from attnviz.draw.glossary import Entry, terms

TARGET = Path(__file__).with_name("glossary.md")
HEADER = """# Glossary

The terms of `attnviz`, in the order in which a newcomer reads them. `attnviz help TERM` (such as
`attnviz help query`) shows the same sentences, and so does the page of a lesson.
Made by `python docs/make_glossary.py`.
"""


def lines() -> Iterator[str]:
    """A section for each subject, and a heading for each term."""
    for subject, each in groupby(terms(), lambda term: term.subject):
        yield f"## {subject}\n"
        for term in each:
            yield f"### {term.name}\n"
            yield f"{_linked(term)}\n"
            if term.synonyms:
                yield f"Also: {', '.join(term.synonyms)}.\n"


def _linked(term: Entry) -> str:
    """The definition, in which each term that it builds on is a link."""

    def link(written: re.Match[str]) -> str:
        return f"[{written[1]}](#{term.links[written[1]].name.lower().replace(' ', '-')})"

    return re.sub(r"\[([^\]]+)\]", link, term.marked)


def main() -> int:
    """Write or compare; the exit code."""
    text = "\n".join([HEADER, *lines()])
    return write_or_compare(TARGET, text)


if __name__ == "__main__":
    sys.exit(main())
