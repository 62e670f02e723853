"""Sections of an answer: thinking, tool calls, tool results, and the answer itself."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from attnviz.errors import InputError, UsageError, option
from attnviz.records.positions import SECONDS, compiled, is_expression
from attnviz.records.tokens import Token

ANSWER = "answer"


def _between(*pairs: tuple[str, str]) -> str:
    """An expression for a section from a mark to another, or to the end of the text."""
    return "|".join(rf"{begin}.*?(?:{end}|\Z)" for begin, end in pairs)


def _tag(name: str) -> tuple[str, str]:
    """A tag and its end; tokenizers of words write it with spaces."""
    return rf"<\s?{name}\s?>", rf"<\s?/\s?{name}\s?>"


_HEADER = r"(?:<\|start\|>[^<]*)?<\|channel\|>"
"""Harmony, the format of gpt-oss: a message names its channel."""
_ENDED = r"<\|end\|>|(?=<\|start\|>|<\|channel\|>)"
MARKS: Mapping[str, "re.Pattern[str]"] = {
    name: re.compile(expression, re.DOTALL)
    for name, expression in (
        (
            "thinking",
            _between(
                _tag("think"),
                _tag("thinking"),
                (r"\[THINK\]", r"\[/THINK\]"),
                (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
                (r"<\|channel>thought", r"<channel\|>"),
                (rf"{_HEADER}analysis<\|message\|>", _ENDED),
            ),
        ),
        (
            "tool result",
            _between(
                _tag("tool_response"),
                (r"\[TOOL_RESULTS\]", r"\[/TOOL_RESULTS\]"),
                (r"<\|tool_response>", r"<tool_response\|>"),
                ("<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"),
                (r"<\|start\|>functions\.[^<]*<\|channel\|>commentary<\|message\|>", _ENDED),
            ),
        ),
        (
            "tool call",
            _between(
                _tag("tool_call"),
                (r"<\|tool_call>", r"<tool_call\|>"),
                (r"<\|tool_call_start\|>", r"<\|tool_call_end\|>"),
                ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
                (r"\[TOOL_CALLS\]", r"</s>|(?=\[TOOL_RESULTS\])"),
                (r"<\|python_tag\|>", r"<\|eom_id\|>|<\|eot_id\|>"),
                (rf"{_HEADER}commentary to=[^<]*.*?<\|message\|>", rf"<\|call\|>|{_ENDED}"),
            ),
        ),
    )
}
_CLOSED = re.compile(
    r"\A(?:(?!<\s?think(?:ing)?\s?>|\[THINK\]).)*?(?:<\s?/\s?think(?:ing)?\s?>|\[/THINK\])", re.S
)
"""Thinking that the template has begun in the prompt."""
BEGINS = ("<think>", "<thinking>", "[THINK]")
"""The end of a prompt whose template has begun the thinking."""


@dataclass(frozen=True)
class Section:
    """A section of an answer: its tokens from `first` up to, and without, `after`."""

    name: str
    first: int
    after: int


def sections_of(
    text: str, tokens: Sequence[Token], wanted: Sequence[str] = (), *, begun: bool = False
) -> list[Section]:
    """Find the sections of an answer in order; each token is in one, `answer` outside of marks.

    The marks belong to their section. Those of special tokens, which are not part of the text, are
    found by their names. `wanted`: sections that a user names, `NAME=/regular expression/`; they
    take precedence over marks. `begun`: the prompt has begun the thinking.

    Raises:
        UsageError: one of them cannot be read.
        InputError: it matches nothing in the answer.
    """
    marked, starts = _with_marks(text, tokens)
    names = [ANSWER] * len(marked)
    found = [(name, mark.span()) for name in MARKS for mark in MARKS[name].finditer(marked)]
    if closed := _CLOSED.match(marked):
        found.append(("thinking", closed.span()))
    elif begun:
        found.append(("thinking", (0, len(marked))))
    found += [(name, span) for each in wanted for name, span in _named(marked, each)]
    for name, (start, end) in found:
        names[start:end] = [name] * (end - start)
    of = _of_tokens(names, marked, starts)
    firsts = [i for i, name in enumerate(of) if i == 0 or name != of[i - 1]]
    runs = [of[i] for i in firsts]
    return [
        Section(f"{name} {runs[: n + 1].count(name)}" if runs.count(name) > 1 else name, *span)
        for n, (name, span) in enumerate(
            zip(runs, zip(firsts, [*firsts[1:], len(of)], strict=True), strict=True)
        )
    ]


def _with_marks(text: str, tokens: Sequence[Token]) -> tuple[str, list[int]]:
    """The text with the names of special tokens in it, and the start of each token there."""
    pieces, starts, read, length = list[str](), list[int](), 0, 0
    for token in tokens:
        starts.append(length + token.start - read)
        if token.special:
            pieces += [text[read : token.start], token.name]
            length, read = starts[-1] + len(token.name), token.start
    return "".join([*pieces, text[read:]]), starts


def _of_tokens(names: Sequence[str], marked: str, starts: Sequence[int]) -> list[str]:
    """The name of each token, that of its first visible letter; a blank has the name before it."""
    of = list[str]()
    for i, start in enumerate(starts):
        end = max(starts[i + 1] if i + 1 < len(starts) else len(marked), start + 1)
        visible = next((at for at in range(start, end) if marked[at : at + 1].strip()), None)
        if visible is not None:
            of.append(names[visible])
        else:
            of.append(of[-1] if of else names[min(start, len(names) - 1)])
    return of


def _named(marked: str, wanted: str) -> Iterator[tuple[str, tuple[int, int]]]:
    name, _, where = wanted.partition("=")
    if not name.strip() or not is_expression(where):
        raise UsageError(
            f"{option('sections', repr(wanted))} is not a name and an expression",
            "give NAME=/regular expression/",
        )
    try:
        matches = list(compiled(where, "sections").finditer(marked, timeout=SECONDS))
    except TimeoutError:
        raise UsageError(
            f"{option('sections', where)} takes too long to search for", "simplify it"
        ) from None
    spans = [match.span() for match in matches if match.end() > match.start()]
    if not spans:
        raise InputError(
            f"{option('sections', repr(wanted))} matches nothing in the answer",
            "the expression is searched in the answer with the names of its special tokens",
        )
    yield from ((name, span) for span in spans)
