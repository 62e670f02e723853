"""Draw the pictures of docs/images.md and of the README with the bundled models of shapes.

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
    "words.png": ("show", ASKED, "--head", "L1H0", "--dpi", "80"),
    "answer.png": ("generate", "describe it", "--head", "L3H0", "--dpi", "80"),
    "encoder.png": ("show", "-m", "shapes-vit", "--head", "L2H2", "--query", "cls", "--dpi", "80"),
}


def main() -> None:
    """Draw each picture."""
    for name, arguments in PICTURES.items():
        alone = "shapes-vit" in arguments
        image = str(IMAGES / ("patterned.png" if alone else "shapes-1.png"))
        given = ("--image", image) if alone else ("-m", "shapes", "--image", image)
        command = [sys.executable, "-m", "attnviz", *arguments, *given, "-q"]
        subprocess.run([*command, "-o", str(IMAGES / name)], check=True)


if __name__ == "__main__":
    main()
