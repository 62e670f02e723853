"""The program: `attnviz`, and `python -m attnviz`."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; Ctrl-C is told in one line from the first moment on."""
    try:
        from attnviz.cli import run  # takes a moment, in which a key may be pressed

        run()
    except KeyboardInterrupt:
        sys.stderr.write("attnviz: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
