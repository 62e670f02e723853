"""The program: `attnviz`, and `python -m attnviz`."""

import gc
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; Ctrl-C is told in one line from the first moment on."""
    # Imports make half a million objects that stay, over which Python's collector goes again
    # and again, and once more at the exit: together a fifth of a short command's time.
    gc.set_threshold(100_000, 50, 100)
    try:
        from attnviz.cli import run  # takes a moment, in which a key may be pressed

        run()
    except KeyboardInterrupt:
        sys.stderr.write("attnviz: interrupted\n")
        sys.exit(130)
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
