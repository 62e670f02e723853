"""Prompts from lines of JSON: `{"text": …, "answer": …, "versus": …, "source": …}`."""

import json
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from attnviz.errors import InputError

PROMPT_HINT = (
    'give {"text": "…", "answer": "…", "versus": "…", "source": "…"}, of which text is needed'
)
FIELDS = "text", "answer", "versus", "source"
LIKE = 0.82
"""How alike a name is to that of a field for which it was meant: `verses`, but not `source_id`."""


@dataclass(frozen=True)
class PromptLine:
    """A text, what is measured after it, and the text that vectors are taken from."""

    text: str
    answer: str | None = None
    versus: str | None = None
    source: str | None = None

    def asked(self, answer: str | None, versus: str | None) -> tuple[str | None, str | None]:
        """Its own answer, or else this one; and what that is told from, likewise."""
        return (
            answer if self.answer is None else self.answer,
            versus if self.versus is None else self.versus,
        )


def read_prompt(line: str) -> PromptLine:
    """The prompt of one line.

    Raises:
        InputError: it is no such object.
    """
    content = _content(line)
    if isinstance(content, list):
        raise InputError("it is a list", "write each of its objects on a line of its own")
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        raise InputError("there is no text", PROMPT_HINT)
    wrong = [name for name in FIELDS if not isinstance(content.get(name), str | None)]
    if wrong:
        raise InputError(f"{wrong[0]} is not a text", PROMPT_HINT)
    for name in content:  # others may stand beside them, but no misspelt one
        meant = [] if name in FIELDS else get_close_matches(name, FIELDS, 1, LIKE)
        if meant and meant[0] not in content:
            raise InputError(f"{name!r} is not a field", f"write {meant[0]!r}")
    return PromptLine(content["text"], *(content.get(name) for name in FIELDS[1:]))


def _content(line: str) -> Any:
    """What a line of JSON holds.

    Raises:
        InputError: it is none.
    """
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        why = f"{error.msg[0].lower()}{error.msg[1:]} at character {error.colno}"
    except RecursionError:
        why = "too deeply nested"
    except ValueError:  # Python reads no integer of thousands of digits
        why = "a number is too long"
    raise InputError(f"it is not JSON ({why})", PROMPT_HINT)
