"""Prompts from lines of JSON: `{"text": …, "answer": …, "versus": …, "source": …}`."""

import json
from dataclasses import dataclass

from attnviz.errors import InputError

HINT = 'give {"text": "…", "answer": "…", "versus": "…", "source": "…"}, of which text is needed'
FIELDS = "text", "answer", "versus", "source"


@dataclass(frozen=True)
class Prompt:
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


def read_prompt(line: str) -> Prompt:
    """The prompt of one line.

    Raises:
        InputError: it is no such object.
    """
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"it is not JSON ({error})", HINT) from None
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        raise InputError("there is no text", HINT)
    wrong = [name for name in FIELDS if not isinstance(content.get(name), str | None)]
    if wrong:
        raise InputError(f"{wrong[0]} is no text", HINT)
    return Prompt(content["text"], *(content.get(name) for name in FIELDS[1:]))
