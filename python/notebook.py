"""Runs the gallery as a notebook does, and checks what it shows.

    python notebook.py            runs it
    python notebook.py FILE       and writes the notebook with its outputs

Every cell whose last line is a value shows a picture. As a page holds them all, no two have elements of one name, and what their
styles say of a class or a colour is the same in all.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
MEDIA = re.compile(r"(@media[^{]*)\{((?:[^{}]*\{[^{}]*\})*)\s*\}")


def main() -> None:
    notebook = nbformat.read(HERE / "gallery.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "gallery.ipynb is kept without outputs"
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    pictures = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        found = [output.data["image/svg+xml"] for output in cell.outputs if "image/svg+xml" in output.get("data", {})]
        last = cell.source.splitlines()[-1]
        assert found or not last.startswith("tw."), f"no picture of: {last}"
        pictures += found
    said: dict[tuple[str, str], str] = {}
    for svg in pictures:
        style = "".join(re.findall(r"<style>(.*?)</style>", svg, re.S))
        for media, rules in [("", MEDIA.sub("", style)), *MEDIA.findall(style)]:
            for selector, declarations in re.findall(r"([^{}]+)\{([^{}]*)\}", rules):
                # Of two for one property the last counts.
                last = dict(declaration.split(":", 1) for declaration in declarations.split(";") if declaration)
                for name, value in last.items():
                    of = (f"{media} {selector.strip()}", name.strip())
                    assert said.setdefault(of, value) == value, f"two pictures differ in {of}: {value} and {said[of]}"
    names = [set(re.findall(r'id="([^"]+)"', svg)) for svg in pictures]
    shared = set.intersection(*names) if len(names) > 1 else set()
    for first in range(len(names)):
        for second in range(first):
            shared |= names[first] & names[second]
    assert not shared, f"several pictures have elements called {sorted(shared)}"
    print(f"{len(pictures)} pictures in {len(notebook.cells)} cells")
    if len(sys.argv) > 1:
        nbformat.write(notebook, sys.argv[1])


if __name__ == "__main__":
    main()
