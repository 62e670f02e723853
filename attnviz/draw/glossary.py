"""The terms that attnviz uses: one definition of each, for the terminal, documents and pages."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_LINK = re.compile(r"\[([^\]]+)\]")


@dataclass(frozen=True)
class Entry:
    """A term and its definition.

    `marked`: the definition, in which other terms are in brackets, as they are written there:
    `[tokens]`. `subject`: the table of the file. `synonyms`: other names of the same thing.
    """

    name: str
    marked: str
    subject: str
    synonyms: tuple[str, ...]

    @property
    def definition(self) -> str:
        """One or two sentences."""
        return _LINK.sub(r"\1", self.marked)

    @property
    def links(self) -> Mapping[str, "Entry"]:
        """The terms that the definition uses, by their spelling in it."""
        return {written: _known(written) for written in _LINK.findall(self.marked)}


@cache
def terms() -> tuple[Entry, ...]:
    """All terms, in the order in which a newcomer reads them."""
    content = tomllib.loads(files("attnviz.draw").joinpath("glossary.toml").read_text("utf-8"))
    synonyms = content.pop("synonyms")
    return tuple(
        Entry(name, marked, subject, tuple(other for other in synonyms if synonyms[other] == name))
        for subject, table in content.items()
        for name, marked in table.items()
    )


def definitions() -> dict[str, str]:
    """The definition of each term, by its name; synonyms are left out."""
    return {term.name: term.definition for term in terms()}


def find_term(name: str) -> Entry | None:
    """A term by its name or a synonym, in any case, also in the plural."""
    folded = " ".join(name.split()).casefold()
    known = _names()
    return next((known[form] for form in _singulars(folded) if form in known), None)


def nearest_names(name: str, others: Iterable[str] = ()) -> list[str]:
    """The three names of terms, and of these others, that are spelled most like this one."""
    known = {each: term.name for each, term in _names().items()}
    known |= {other: other for other in others}
    close = difflib.get_close_matches(name.casefold(), known, n=len(known), cutoff=0)
    return [*dict.fromkeys(known[each] for each in close)][:3]


@cache
def _names() -> Mapping[str, Entry]:
    return {name.casefold(): term for term in terms() for name in (term.name, *term.synonyms)}


def _singulars(name: str) -> Iterator[str]:
    yield name
    for plural, singular in (("ces", "x"), ("ies", "y"), ("ches", "ch"), ("s", "")):
        if name.endswith(plural):
            yield name.removesuffix(plural) + singular


def _known(written: str) -> Entry:
    term = find_term(written)
    assert term is not None, written
    return term
