"""The line above every view: which heads these are and why, of which model, on how many tokens."""

from rich.text import Text

from attnviz.data.capture import Capture
from attnviz.data.exhibit import Exhibit, HeadMap
from attnviz.data.tokens import readable
from attnviz.renderers.labels import ascii_only


def heading(exhibit: Exhibit, *, unicode: bool = True) -> Text:
    """One line (wrapped where it is narrow) that says what this is."""
    line = Text(overflow="fold")
    if exhibit.about:
        about = readable(exhibit.about) + (" · " if unicode else " | ")
        line.append(about if unicode else ascii_only(about))
    what = facts(exhibit.capture)
    line.append(what if unicode else ascii_only(what), style="dim")
    return line


def facts(capture: Capture) -> str:
    """`builtin (untrained), 9 tokens with BOS`: what was run, on how much."""
    name = readable(capture.model.name)
    said = capture.model.trained or name == "untrained"
    model = name if said else f"{name} (untrained)"
    if capture.kind == "cross":
        size = f"{_count(len(capture.query_tokens), 'query token')} to "
        size += _count(len(capture.key_tokens), "key token")
    else:
        size = _count(len(capture.query_tokens), "token")
    parts = [model, f"{size} {'with' if capture.bos else 'without'} BOS"]
    parts += [readable(transform) for transform in capture.transforms]
    return ", ".join(parts)


def map_title(exhibit: Exhibit, head_map: HeadMap) -> str:
    """`L1H2: nouns look at their adjectives`; the label alone where the head has no name."""
    for named in exhibit.capture.named_heads:
        if (named.head.layer, named.head.head) == (head_map.layer, head_map.head):
            return f"{head_map.label}: {readable(named.title)}"
    return head_map.label


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"
