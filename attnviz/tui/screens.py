"""The overlays: the list of all keys, and the next tokens without a head."""

from typing import ClassVar

from rich.console import Group
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from attnviz.commands.ablate.record import BeforeAfter
from attnviz.commands.ablate.terminal import render_together
from attnviz.console import Display

HELP = """\
[b]Navigation[/b]
  tab, shift+tab   go to the next or the previous pane
  arrows, hjkl     heads: layers and heads; pattern: queries and keys;
                   text: tokens; links: from link to link
  enter            in the links: make the chosen key the query
  /                find a token: its text, its index, or /a pattern/
  n                go to the next match
  mouse            click a word, a head, a weight or a link

[b]Transforms[/b]
  w                merge the pieces of words (on or off)
  s                remove the sink, the first token (on or off)
  r                rollout: multiply the layers (on or off)

[b]Actions[/b]
  g                heads as miniatures, where there is room, or as a list
  e                edit the text; the patterns follow; esc: done
  a                ablate the head: predictions with and without it
  p                save the pattern as a PNG in this folder
  o                save all heads as a web page in this folder
  q, ctrl+c        quit, after files being saved are finished
  ctrl+z           suspend; the shell's fg resumes

[b]Panes[/b]
  heads            the key that the query attends to most; the query
                   itself, the first token and special tokens do not
                   count. A dark cell: no other key stands out
  pattern          a row per query, a column per key; the chosen weight
                   is reversed, or \\[]
  links            what the query attends to, and what attends to it;
                   weights under 0.01 are hidden
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
