"""The overlays: the list of all keys, and the next tokens without a head."""

from typing import ClassVar

from rich.console import Group
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from attnviz.console import Display
from attnviz.data.ablate import BeforeAfter
from attnviz.renderers.terminal.ablate import render_together

HELP = """\
[b]Where you are[/b]
  tab, shift+tab   from pane to pane
  arrows, hjkl     heads: layers and heads; pattern: queries and keys;
                   text: tokens; links: from link to link
  enter            in the links: the chosen key becomes the query
  /                find a token: its text, its index, or /a pattern/
  n                the next one that was found
  mouse            click on a word, a head, a weight or a link

[b]What is done to the patterns[/b]
  w                pieces of words merged, or not
  s                the sink (the first token) left out, or not
  r                rollout: the layers multiplied, or not

[b]What comes of it[/b]
  e                edit the text, the patterns follow; esc: done
  a                ablate the head: what the model says without it
  p                save the pattern as a PNG, in this folder
  o                save all heads as a page, for any browser, offline
  q, ctrl+c        leave; what is being saved is finished first
  ctrl+z           put aside; the shell's fg brings it back

[b]What is shown[/b]
  heads            the key that the query looks at most, but itself, the
                   first and special tokens, which take what must go
                   somewhere; dark: this head has nothing to say of it
  pattern          a row for each query, a column for each key; the
                   chosen weight is reversed, or \\[]
  links            what the query looks at, and what looks at it; under
                   0.01 is left out
"""


class Overlay(ModalScreen[None]):
    """A text to read; each of its keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark,a", "dismiss", "Close"),
        Binding("ctrl+c", "app.quit", "Quit"),
    ]

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="overlay") as overlay:
            overlay.border_subtitle = "esc: close"
            yield Static(self.content(), id="said")

    def content(self) -> Group | str:
        raise NotImplementedError

    def on_click(self) -> None:
        self.dismiss()


class HelpScreen(Overlay):
    """All keys."""

    def content(self) -> str:
        return HELP


class AblationScreen(Overlay):
    """The next tokens with and without a head."""

    def __init__(self, effect: BeforeAfter, display: Display) -> None:
        super().__init__()
        self._effect, self._display = effect, display

    def content(self) -> Group:
        return Group(*render_together(self._effect, self._display))
