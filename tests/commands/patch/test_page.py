"""The page of a patched text."""

import re
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser

import attnviz
from attnviz.commands.patch.record import PatchEffect, PatchReport
from attnviz.commands.patch.shown import page, view
from attnviz.draw.picture.panes import draw_view
from attnviz.records.capture import Capture
from attnviz.records.interventions import Site, SiteKind
from attnviz.records.metrics import Estimate
from attnviz.records.predict import Candidate, Outcome, Question
from tests.factories import make_capture
from tests.reading import on_one_line

HOSTILE = '<script>alert("x")</script>'


def capture_of(words: Sequence[str]) -> Capture:
    """Equal words have equal ids."""
    made = make_capture(list(words))
    tokens = tuple(replace(token, id=sum(map(ord, token.text))) for token in made.query_tokens)
    return replace(made, query_tokens=tokens, key_tokens=tokens)


def report(
    kind: SiteKind = "residual", words: tuple[str, ...] = ("a", "blue", "bird")
) -> PatchReport:
    source = (words[0], "red", *words[2:])
    places = tuple(range(len(words)))
    effects = [
        PatchEffect(
            (Site(kind, layer, place if kind == "head" else None),),
            Estimate(20.0 * share, 0.5),
            Outcome(0.0, 0.0),
            position=None if kind == "head" else place,
            share=Estimate(share),
        )
        for layer in range(2)
        for place in places
        for share in [(layer - 0.5) * place]
    ]
    return PatchReport(
        capture_of(words),
        capture_of(source),
        kind,
        Question(Candidate(1, "red", 0.5), Candidate(2, "blue", 0.25)),
        Outcome(1.0, -1.0, 11.0, -2.0),
        Outcome(11.0, -1.0, 1.0, -2.0),
        places,
        places,
        effects,
    )


class Cells(HTMLParser):
    """The elements of a page, and the titles of its cells."""

    def __init__(self) -> None:
        super().__init__()
        self.names = set[str]()
        self.titles = list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.titles += [value or "" for name, value in attrs if name == "title"]


def read(made: PatchReport) -> tuple[str, Cells]:
    text = "".join(page(made))
    cells = Cells()
    cells.feed(text)
    return text, cells


def test_every_cell_says_its_numbers_and_where_it_is() -> None:
    _, cells = read(report())
    assert len(cells.titles) == 6
    assert (
        cells.titles[1] == "L0 residual stream at blue ← red: share -0.500, change -10.000 ± 0.500"
    )
    assert read(report("head"))[1].titles[-1].startswith("L1H2: share +1.000")


def test_both_texts_are_shown_with_the_tokens_in_which_they_differ() -> None:
    text, _ = read(report())
    assert re.findall(r"<mark><bdi>(.*?)</bdi></mark>", text) == ["blue", "red"]
    assert "logit(red) - logit(blue): -10.000 after the text, +10.000 after the source" in text


def test_a_page_refers_to_nothing_outside_and_runs_nothing() -> None:
    text, cells = read(report(words=("a", HOSTILE, '"><img src=x onerror=y>')))
    assert not cells.names & {"script", "img", "link", "iframe", "a"}
    assert "http" not in text.replace("http-equiv", "")
    assert "url(" not in text
    assert "alert(&quot;x&quot;)" in text


def test_a_picture_names_both_tokens_and_cuts_a_long_name() -> None:
    long = "x" * 60
    figure = draw_view(view(report(words=("a", "blue", long)))).figure
    (axes,) = (axes for axes in figure.axes if axes.get_title(loc="left"))
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == ["a", "blue ← red", "x" * 23 + "…"]
    written = " ".join(text.get_text() for each in figure.axes for text in each.texts)
    assert "source: “ared" in on_one_line(written)


def test_many_positions_keep_rows_that_can_be_seen() -> None:
    words = tuple(f"w{i}" for i in range(60))
    figure = draw_view(view(report(words=words))).figure
    (axes,) = (axes for axes in figure.axes if axes.get_title(loc="left"))
    box = axes.get_window_extent()
    dpi = figure.get_dpi()
    assert box.height / 2 / dpi >= 0.24
    assert box.width / 60 / dpi >= 0.12
    assert len(axes.get_xticklabels()) == 60


def test_the_page_of_paths_draws_the_strongest_as_a_graph() -> None:
    text = "".join(attnviz.patch(BLUE, RED, to=["logits", "L4H0.v"]).pieces("html"))
    (drawn,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', text)
    svg = b64decode(drawn).decode()
    assert "logits" in svg
    assert "L4H0" in svg
    assert "<img" not in "".join(attnviz.patch(BLUE, RED).pieces("html"))


BLUE, RED = (f"a {color} bird slept . the bird was" for color in ("blue", "red"))
