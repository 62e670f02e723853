"""Renders a chat template in a process of its own, which may take only so much time and memory.

A template is a program from a stranger. It runs in transformers' sandbox, which lets it reach
nothing, but does not end one that never ends. Reads a JSON object from standard input: `template`,
`variables`, and `chats`, each with messages, and perhaps documents and tools; writes a JSON list of
texts.
"""

import json
import sys
from contextlib import suppress
from typing import Any

SECONDS, BYTES = 5, 1 << 30


def _limit() -> None:
    """Bound this process; on a system without limits, its parent still has the time in hand."""
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        with open("/proc/self/statm") as mapped:
            now = int(mapped.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + BYTES, now + BYTES))


def main() -> None:
    """Render every chat."""
    from transformers.utils.chat_template_utils import render_jinja_template

    asked = json.load(sys.stdin)

    def render(chat: dict[str, Any]) -> str:
        messages = [chat.pop("messages")]
        like = {"chat_template": asked["template"], "add_generation_prompt": True}
        text: str = render_jinja_template(messages, **like, **chat, **asked["variables"])[0][0]
        return text

    with suppress(OSError, ValueError):
        _limit()
    json.dump([render(chat) for chat in asked["chats"]], sys.stdout)


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
