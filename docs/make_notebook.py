"""Write docs/notebook.ipynb: the cells below, run in a real kernel, with what they showed.

`--check` runs the cells of the written notebook again, and compares all of their text.
"""

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

TARGET = Path(__file__).with_name("notebook.ipynb")
CELLS = (
    """# attnviz in a notebook

A capture is shown as a page. Point at a word to see which words it attends to; click to pin it.""",
    """>import attnviz

capture = attnviz.capture("a fluffy blue creature roamed the verdant forest")
capture""",
    "The links of a head as a data frame, and a picture of it.",
    """>import pandas

links = pandas.DataFrame(capture.to_columns(heads="L3H2", top=1))
links[["query_token", "key_token", "weight"]]""",
    """>capture.figure("heatmap", heads="L3H2")""",
    "The heads that attend to the token after an earlier occurrence, on the standard probe.",
    """>print(attnviz.heads(sort="induction", top=3))""",
    "The model's loss without each head of a layer, over one text.",
    """>text = "a fluffy blue creature roamed the forest . the creature was"
effects = attnviz.ablate(text, answer="blue", layers="2")
pandas.DataFrame(effects.to_columns())[["layer", "head", "before", "after", "change"]]""",
    "Weights that another program computed.",
    """>import numpy

uniform = numpy.tril(numpy.ones((4, 4)))
uniform /= uniform.sum(axis=1, keepdims=True)
print(attnviz.from_attention(uniform, ["the", "Ġcat", "Ġsat", "Ġdown"]).show())""",
)
"""Text, and code behind a `>`."""


def made() -> NotebookNode:
    """The notebook, not yet run."""
    cells = [
        new_code_cell(cell[1:], id=f"cell-{number}")
        if cell.startswith(">")
        else new_markdown_cell(cell, id=f"cell-{number}")
        for number, cell in enumerate(CELLS)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def run(notebook: NotebookNode) -> NotebookNode:
    """The notebook as a kernel leaves it, without times."""
    NotebookClient(notebook, timeout=300, record_timing=False).execute()
    notebook.metadata.pop("language_info", None)
    return notebook


def shown(notebook: NotebookNode) -> list[Any]:
    """What its cells showed, but for pictures and pages."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    return [o.get("text", o.get("data", {}).get("text/plain")) for o in outputs]


def main() -> int:
    """Write or compare; the exit code."""
    if "--check" not in sys.argv:
        nbformat.write(run(made()), TARGET)
        return 0
    written = nbformat.read(TARGET, as_version=4)
    before = shown(written)
    if before != shown(run(written)):
        print("docs/notebook.ipynb has drifted: run python docs/make_notebook.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
