"""Write the golden files again: `python -m tests.golden.make`; read the difference."""

from tests.golden.surface import surfaces
from tests.golden.transcript import EXPECTED, same, transcript, transcripts, workplace

if __name__ == "__main__":
    with workplace():
        for path in transcripts():
            old = path.read_text()
            new = transcript(old.splitlines()[0])
            if not same(old, new):
                path.write_text(new)
    for name, text in surfaces().items():
        (EXPECTED / "surface" / f"{name}.txt").write_text(text)
