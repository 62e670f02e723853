"""The live page in a notebook's cell: the kernel answers it, and hears what is picked."""

import base64
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

import attnviz
from attnviz.draw.page import source
from tests.browsing import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TYPED = "Bark is very cute and he is a dog"
CELL = """
import attnviz
attnviz.live()
"""
STAND_IN = """
(async () => {
  const blob = new Blob([window.esm], { type: "text/javascript" });
  const { default: widget } = await import(URL.createObjectURL(blob));
  const heard = [], held = { _page: window.page };
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  window.tell = (message, text) => {
    const buffers = text === null ? [] : [new DataView(bytes(text).buffer)];
    for (const hear of heard) hear(message, buffers);
  };
  const model = {
    get: (name) => held[name],
    set: (name, value) => window.picked(name, value),
    save_changes() {},
    send: (message) => window.ask(JSON.stringify(message)),
    on: (_, hear) => heard.push(hear),
    off() {},
  };
  widget.render({ el: document.body, model });
})()
"""
"""What a notebook's front end does for a widget."""


@pytest.fixture
def cell(browser: "Browser") -> Iterator[tuple["Page", Any]]:
    """A page with the widget in it, whose messages go to a widget in this process."""
    live, told = attnviz.live(), list[tuple[Any, Any]]()
    live.send = lambda message, buffers=(): told.append((message, buffers))
    page = browser.new_page()
    page.expose_function("ask", lambda message: live._heard(live, json.loads(message), []))
    page.expose_function("picked", lambda name, value: setattr(live, name, value))
    page.evaluate("([esm, page]) => Object.assign(window, { esm, page })", [live._esm, live._page])
    page.evaluate(STAND_IN)

    def passed_on(expression: str) -> None:
        """Pass messages on until an expression holds in the frame."""
        for _ in range(300):
            while told:
                message, buffers = told.pop(0)
                sent = base64.b64encode(buffers[0]).decode() if buffers else None
                page.evaluate("([message, sent]) => tell(message, sent)", [message, sent])
            if len(page.frames) > 1 and page.frames[1].evaluate(expression):
                return
            page.wait_for_timeout(20)
        raise AssertionError(expression)

    yield page, (live, passed_on)
    page.close()


def test_a_cell_shows_what_is_typed_and_tells_what_is_picked(cell: tuple["Page", Any]) -> None:
    page, (live, passed_on) = cell
    passed_on("document.body.dataset.ready")
    frame = page.frames[1]
    frame.fill("#text", TYPED)
    passed_on(f"headlines[0].text === {TYPED!r} && isWhole()")
    assert frame.inner_text("#claim").startswith("L3H2: he → Bark .96")
    until(page, "true")
    assert (live.head, live.query, live.text) == ("L3H2", 6, TYPED)
    assert (live.capture.pattern(3, 2) == attnviz.capture(TYPED).pattern(3, 2)).all()
    frame.click("#ask-why")
    passed_on("byId('why').textContent.length > 5")
    assert frame.inner_text("#why").startswith("L3H2: “he” attends to “Bark”")


def test_the_frame_can_reach_nothing() -> None:
    live = attnviz.live()
    assert "connect-src 'none'" in live._page
    assert 'frame.sandbox = "allow-scripts allow-downloads"' in source(
        "commands/serve/page/widget.js"
    )


def test_nbconvert_leaves_a_picture() -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    NotebookClient(notebook, kernel_name="python3", store_widget_state=False).execute()
    (output,) = notebook.cells[0].outputs
    assert "application/vnd.jupyter.widget-view+json" in output.data
    html, _ = HTMLExporter(embed_images=True).from_notebook_node(notebook)
    assert f"data:image/png;base64,{output.data['image/png'].strip()[:100]}" in html
