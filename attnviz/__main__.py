"""`python -m attnviz`."""

from attnviz.cli import run

if __name__ == "__main__":
    run()
