"""The base of all panes: a border with a title, and lines made when they come into sight."""

from dataclasses import replace
from functools import partial

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click
from textual.geometry import Region, Size, Spacing
from textual.scroll_view import ScrollView
from textual.strip import Strip

from attnviz.console import Display
from attnviz.tui.messages import Chosen, Step
from attnviz.tui.scene import Scene

MOVES: list[BindingType] = [
    Binding("up,k", "move(-1, 0)", "Up", show=False),
    Binding("down,j", "move(1, 0)", "Down", show=False),
    Binding("left,h", "move(0, -1)", "Left", show=False),
    Binding("right,l", "move(0, 1)", "Right", show=False),
]
"""The keys that move within a pane, by its `step`."""


class ScenePane(ScrollView, can_focus=True):
    """Shows one side of a scene; posts `Chosen` when the user goes elsewhere."""

    def __init__(self, id: str, display: Display) -> None:
        super().__init__(id=id, classes="pane")
        self._display = display
        self.scene: Scene | None = None

    @property
    def room(self) -> Size:
        """The visible size, without border and scrollbars."""
        return self.scrollable_content_region.size

    @property
    def display_here(self) -> Display:
        """The display, with the width of this pane."""
        return replace(self._display, width=max(1, self.room.width))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        # Textual adds a line for a horizontal scrollbar whether there is one or not
        height = super().get_content_height(container, viewport, width)
        return height - self.styles.scrollbar_size_horizontal

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

    def action_move(self, down: int, across: int) -> None:
        """Go in a direction."""
        self.post_message(Step(partial(self.step, down, across)))

    covered = (0, 0, 0, 0)
    """Cells at the top, right, bottom and left that do not scroll, and cover cells that do."""

    def lay_out(self, scene: Scene) -> Size:
        """Prepare this scene for the pane's size; the size of the whole content."""
        raise NotImplementedError

    def title_of(self, scene: Scene) -> str:
        """The title in the border."""
        raise NotImplementedError

    def place_of(self, scene: Scene) -> Region:
        """The region that must be in sight."""
        raise NotImplementedError

    def line(self, scene: Scene, y: int) -> Text:
        """Line `y` of the whole content."""
        raise NotImplementedError

    def step(self, down: int, across: int) -> Chosen | None:
        """Where a step in this direction leads from the scene; None at the edge."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        if self.scene is None:
            return Strip.blank(self.room.width, self.rich_style)
        return self.strip(self.line(self.scene, y + self.scroll_offset.y), self.scroll_offset.x)

    def strip(self, text: Text, x: int = 0) -> Strip:
        """The visible part of a line, from column `x` on."""
        width, style = self.room.width, self.rich_style
        segments = list(text.render(self.app.console, end=""))
        return Strip(segments).crop_extend(x, x + width, style).apply_style(style)

    def pointed(self, event: Click) -> tuple[int, int] | None:
        """The clicked column and line of the whole content; None on the border."""
        offset = event.get_content_offset(self)
        if offset is None:
            return None
        return offset.x + self.scroll_offset.x, offset.y + self.scroll_offset.y
