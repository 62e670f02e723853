"""The program: `attnviz`, and `python -m attnviz`."""

import gc
import os
import signal
import sys
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


def main() -> NoReturn:
    """Run the command line; Ctrl-C is told in one line from the first moment on.

    A process that a signal ends cleans up, and ends by that signal.
    """
    for name in ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores one
            signal.signal(number, _end)
    # Imports make half a million objects that stay, over which Python's collector goes again
    # and again, and once more at the exit: together a fifth of a short command's time.
    gc.set_threshold(100_000, 50, 100)
    try:
        from attnviz.cli import run  # takes a moment, in which a key may be pressed

        run()
    except KeyboardInterrupt:
        sys.stderr.write("attnviz: interrupted\n")
        sys.exit(130)
    except Ended as ended:
        signal.signal(ended.number, signal.SIG_DFL)
        os.kill(os.getpid(), ended.number)
        raise
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
