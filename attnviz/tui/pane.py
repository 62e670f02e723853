"""What all panes are: a border with a title, lines made when they are seen, one scene."""

from dataclasses import replace

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click
from textual.geometry import Region, Size, Spacing
from textual.scroll_view import ScrollView
from textual.strip import Strip

from attnviz.console import Display
from attnviz.tui.scene import Scene

MOVES: list[BindingType] = [
    Binding("up,k", "move(-1, 0)", "Up", show=False),
    Binding("down,j", "move(1, 0)", "Down", show=False),
    Binding("left,h", "move(0, -1)", "Left", show=False),
    Binding("right,l", "move(0, 1)", "Right", show=False),
]
"""The keys that move within a pane; `action_move` says what that is."""


class Pane(ScrollView, can_focus=True):
    """Shows one side of a scene; tells by `Chosen` where the user goes."""

    def __init__(self, id: str, display: Display) -> None:
        super().__init__(id=id, classes="pane")
        self._display = display
        self.scene: Scene | None = None

    @property
    def room(self) -> Size:
        """How much can be seen, between border and scrollbars."""
        return self.scrollable_content_region.size

    @property
    def display_here(self) -> Display:
        """What there is to draw with, in the width of this pane."""
        return replace(self._display, width=max(1, self.room.width))

    def show(self, scene: Scene | None) -> None:
        """Show another scene, or nothing yet."""
        self.scene = scene
        self._lay_out()

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        scene = self.scene
        self.border_title = Content(self.title_of(scene) if scene else str(self.id))
        self.virtual_size = self.lay_out(scene) if scene else Size(0, 0)
        if scene:
            self._go_to_place()
            self.call_after_refresh(self._go_to_place)  # once scrollbars have taken their room
        self.refresh()

    def _go_to_place(self) -> None:
        if self.scene:
            region, spacing = self.place_of(self.scene), Spacing(*self.covered)
            # by force: at first no scrollbar is there yet
            self.scroll_to_region(
                region, spacing=spacing, animate=False, immediate=True, force=True
            )

    covered = (0, 0, 0, 0)
    """Cells at the top, right, bottom and left that do not scroll, and cover what does."""

    def lay_out(self, scene: Scene) -> Size:
        """Make ready for this scene and size; the size of all that could be seen."""
        raise NotImplementedError

    def title_of(self, scene: Scene) -> str:
        """What stands in the border."""
        raise NotImplementedError

    def place_of(self, scene: Scene) -> Region:
        """What of it has to be in sight."""
        raise NotImplementedError

    def line(self, scene: Scene, y: int) -> Text:
        """The line at `y` of all that could be seen."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        if self.scene is None:
            return Strip.blank(self.room.width, self.rich_style)
        return self.strip(self.line(self.scene, y + self.scroll_offset.y), self.scroll_offset.x)

    def strip(self, text: Text, x: int = 0) -> Strip:
        """A line as it is seen from column `x` on."""
        width, style = self.room.width, self.rich_style
        segments = list(text.render(self.app.console, end=""))
        return Strip(segments).crop_extend(x, x + width, style).apply_style(style)

    def pointed(self, event: Click) -> tuple[int, int] | None:
        """The column and line of all that could be seen that was clicked; None on the border."""
        offset = event.get_content_offset(self)
        if offset is None:
            return None
        return offset.x + self.scroll_offset.x, offset.y + self.scroll_offset.y
