"""Write the pictures of docs/: python -m tools.pictures."""

from pathlib import Path

from tools.pictures.drawings import DRAWINGS

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"

if __name__ == "__main__":
    for name, drawing in DRAWINGS.items():
        (FOLDER / f"{name}.svg").write_text(drawing())
