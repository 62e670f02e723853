"""Draw the pictures of the README and of docs/images.md with the bundled models.

    python docs/make_images.py

They hold no date and no version, so that a picture changes where what it shows does.
"""

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
IMAGES = DOCS / "images"
CREATURE = ("show", "a fluffy blue creature roamed the verdant forest")
LINKS = "--view", "links", "--head", "L3H1,L3H2"
ASKED = "what is left of the red circle?"
PICTURES = {
    "overlay.png": ("show", ASKED, "--head", "L1H0", "--query", "circle"),
    "words.png": ("show", ASKED, "--head", "L1H0", "--dpi", "80"),
    "answer.png": ("generate", "describe it", "--head", "L3H0", "--dpi", "80"),
    "encoder.png": ("show", "-m", "shapes-vit", "--head", "L2H2", "--query", "cls", "--dpi", "80"),
}


def draw(path: Path, *arguments: str) -> None:
    """Write what the command draws."""
    command = [sys.executable, "-m", "attnviz", *arguments, "-q", "-o", str(path)]
    subprocess.run(command, check=True)


def main() -> None:
    """Draw each picture."""
    draw(DOCS / "creature.png", *CREATURE)
    draw(DOCS / "links.png", *CREATURE, *LINKS)
    for name, arguments in PICTURES.items():
        alone = "shapes-vit" in arguments
        image = str(IMAGES / ("patterned.png" if alone else "shapes-1.png"))
        given = ("--image", image) if alone else ("-m", "shapes", "--image", image)
        draw(IMAGES / name, *arguments, *given)


if __name__ == "__main__":
    main()
