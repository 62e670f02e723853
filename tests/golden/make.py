"""Write the golden files again; read the difference.

python -m tests.golden.make              all of them, which takes minutes
python -m tests.golden.make heads atlas  those of these commands, and the names of all
"""

import sys

from tests.golden.surface import surfaces
from tests.golden.transcript import EXPECTED, same, transcript, transcripts, workplace

if __name__ == "__main__":
    with workplace():
        for path in transcripts():
            if sys.argv[1:] and path.parent.name not in sys.argv:
                continue
            old = path.read_text()
            new = transcript(old.splitlines()[0])
            if not same(old, new):
                path.write_text(new)
    for name, text in surfaces().items():
        (EXPECTED / "surface" / f"{name}.txt").write_text(text)
