"""The Python blocks of the documents run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "python" / "README.md"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_run(document: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", document.read_text(encoding="utf-8"), re.S | re.M)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(document), "exec"), names)


def test_the_blocks_of_the_chapter_on_models_run() -> None:
    for module in ("torch", "jax", "transformers"):
        pytest.importorskip(module)
    test_blocks_run(ROOT / "docs" / "book" / "src" / "models.md")


def test_the_blocks_of_the_chapter_on_the_sanitizer_run() -> None:
    import tilewright as tw

    try:
        tw.cuda.compile("")
    except ImportError:
        pytest.skip("NVRTC is not installed")
    test_blocks_run(ROOT / "docs" / "book" / "src" / "sanitize.md")


def test_doctests() -> None:
    import doctest

    import tilewright
    from tilewright import _collective, _more, _sanitize, _study, _tile, gpu, mesh
    from tilewright.ops import _attention, _elements, _embedding, _experts, _losses, _products, _rows

    operators = (_attention, _elements, _embedding, _experts, _losses, _products, _rows)
    for module in (tilewright, _collective, _more, _sanitize, _study, _tile, gpu, mesh, *operators):
        failed, tried = doctest.testmod(module)
        assert tried > 2 and not failed
