"""Draw the pictures of docs/images.md and of the README with the bundled model of shapes.

    python docs/make_images.py

They hold no date and no version, so that a picture changes where what it shows does.
"""

import subprocess
import sys
from pathlib import Path

IMAGES = Path(__file__).resolve().parent / "images"
ASKED = "what is left of the red circle?"
PICTURES = {
    "overlay.png": ("show", ASKED, "--head", "L1H0", "--query", "circle"),
    "words.png": ("show", ASKED, "--head", "L1H0", "--title", "", "--dpi", "80"),
    "answer.png": ("generate", "describe it", "--head", "L3H0", "--title", "", "--dpi", "80"),
}


def main() -> None:
    """Draw each picture."""
    for name, arguments in PICTURES.items():
        picture = ("-m", "shapes", "--image", str(IMAGES / "shapes-1.png"), "-q")
        command = [sys.executable, "-m", "attnviz", *arguments, *picture]
        subprocess.run([*command, "-o", str(IMAGES / name)], check=True)


if __name__ == "__main__":
    main()
