"""A whole scan by the built-in model of texts of its world; the folder of the result is made anew.

python scan_folder.py TEXTS.txt FOLDER WORKERS [RAY]
"""

import shutil
import sys
from itertools import islice
from pathlib import Path

from attnviz import scan
from making.world.texts import texts

DOCUMENTS = 8000

if __name__ == "__main__":
    corpus, out, workers, *ray = sys.argv[1:]
    if not Path(corpus).exists():
        lines = (" ".join(text.words) + "\n" for text in islice(texts("scan"), DOCUMENTS))
        Path(corpus).write_text("".join(lines))
    shutil.rmtree(out, ignore_errors=True)
    address = ray[0] if ray else None
    scan(corpus, output=out, split="line", workers=int(workers), ray=address)
