"""Renders a chat template in a process of its own, with limits on its time and memory.

A template is a program from a stranger. It runs in transformers' sandbox, which lets it reach
nothing, but does not end one that never ends. Each line of standard input is a JSON object:
`template`, `variables`, and `chats`, each with messages, and perhaps documents and tools. Each is
answered by a line, a JSON object: `texts`, or `why` there are none, and whether the template itself
refuses (`refused`).
"""

import json
import random
import sys
from contextlib import suppress
from datetime import datetime
from types import SimpleNamespace
from typing import Any

CPU_SECONDS, BYTES = 2, 1 << 29
"""The most that rendering may take; templates of real models take milliseconds."""
LONGEST = 1 << 23
"""The most characters of a text: more than the longest context has."""
QUOTED = 500


def _limit() -> None:
    """Bound this process; on a system without limits, its parent still has the time in hand."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + CPU_SECONDS
        most = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, most))
        with open("/proc/self/statm") as mapped:
            now = int(mapped.read().split()[0]) * resource.getpagesize()
        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (now + BYTES, most))


def _texts(request: dict[str, Any]) -> list[str]:
    """Every chat, rendered as `apply_chat_template` does; a later one that fails is empty."""
    from transformers.utils import chat_template_utils

    def render(chat: dict[str, Any]) -> str:
        random.seed(0)  # the second rendering has to be like the first
        messages = [{k: v for k, v in m.items() if v is not None} for m in chat.pop("messages")]
        text: str = chat_template_utils.render_jinja_template(
            [messages], chat_template=request["template"], **chat, **request["variables"]
        )[0][0]
        return text

    def tried(chat: dict[str, Any]) -> str:
        try:
            return render(chat)
        except Exception:  # the marks are not what the template expects there
            return ""

    first, *marked = request["chats"]
    return [render(first), *map(tried, marked)]


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The texts, or why there are none."""
    try:
        texts = _texts(request)
    except MemoryError:
        return {"why": "it needs too much memory"}
    except Exception as error:  # whatever a stranger's program raises
        refused = type(error).__name__ == "TemplateError"  # of its own raise_exception
        reason = str(error)[:QUOTED]
        return {
            "refused": refused,
            "why": reason if refused else f"{type(error).__name__}: {reason}",
        }
    length = max(map(len, texts))
    if length > LONGEST:
        return {"why": f"it makes {length:,} characters of it"}
    return {"texts": texts}


def _answered(line: str) -> str:
    """The answer to a line; all its chats are of the same moment, as a template may name it."""
    from transformers.utils import chat_template_utils

    request, moment = json.loads(line), datetime.now()
    chat_template_utils.datetime = SimpleNamespace(now=lambda: moment)
    _limit()
    return json.dumps(answer(request))


def main() -> None:
    """Answer each line of standard input."""
    for line in sys.stdin:
        sys.stdout.write(f"{_answered(line)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
