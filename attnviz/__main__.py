"""The program: `attnviz`, and `python -m attnviz`."""

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

ENDING = ("SIGTERM", "SIGHUP")
"""The signals that end a process from outside; Windows lacks some of them."""


class Ended(BaseException):
    """A signal asked for the end; on its way up everything is cleaned up."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _end(number: int, _frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # once is enough, and cleaning up is not interrupted
    raise Ended(number)


_STATUS = [1]
"""The exit code; that of a bug until it is known."""


def _leave() -> NoReturn:
    """End the process at once: threads of libraries abort one that ends by itself."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(_STATUS[0])


def main() -> NoReturn:
    """Run the command line; Ctrl-C is told in one line from the first moment on.

    A process that a signal ends cleans up, and ends by that signal.
    """
    atexit.register(_leave)  # the first to be registered is the last to be called
    for name in ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores one
            signal.signal(number, _end)
    # Imports make half a million objects that stay, over which Python's collector goes again
    # and again: a fifth of a short command's time.
    gc.set_threshold(100_000, 50, 100)
    try:
        from attnviz.cli import run  # takes a moment, in which a key may be pressed

        run()
    except KeyboardInterrupt:
        sys.stderr.write("attnviz: interrupted\n")
        _STATUS[0] = 130
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        _STATUS[0] = int(end.code or 0) if isinstance(end.code, int | None) else 1
    except Ended as ended:
        signal.signal(ended.number, signal.SIG_DFL)
        os.kill(os.getpid(), ended.number)
        raise
    sys.exit(_STATUS[0])


if __name__ == "__main__":
    main()
