"""Pictures, claims and costs: what the command says, in Python."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Callable

import pytest

import tilewright as tw


def offsets_of(svg: str) -> list[int]:
    """The numbers in the cells, in the order of the file."""
    return [int(text) for text in re.findall(r">(\d+)</t(?:ext|span)>", svg)]


def test_a_picture_shows_every_offset() -> None:
    layout = tw.Layout((3, 4), (4, 1))
    svg = layout._repr_svg_()
    assert svg is not None
    ET.fromstring(svg)
    shown = offsets_of(svg)
    for offset in layout.offsets():
        assert int(offset) in shown
    assert svg == tw.draw(layout).svg() == tw.draw("(3,4):(4,1)").svg()
    html = layout._repr_html_()
    assert html is not None and "base64" in html and "<svg" not in html


@pytest.mark.parametrize(
    "what",
    [
        ["(4,8):(8,1)"],
        [tw.Layout((4, 8)), tw.Layout((4, 8), (8, 1))],
        [(4, 8)],
        [tw.Swizzle(2, 0, 3)],
        ["S<3,0,3> o 0 o (8,8):(8,1)"],
        [tw.BitMatrix(2, (2, 3))],
        [tw.LinearLayout("lane=[(1,0),(2,0)] -> row:4 column:2")],
        [tw.Morphism("(4,5) -> (4,16,5) : (1,3)")],
        ["zipped_divide((4,6):(6,1), [2:1;3:1])"],
        ["blocked_product((2,2):(2,1), (2,3))"],
        ["complement(4:2, 24)"],
        ["(6,2):(8,2) o (4,3):(3,1)"],
        [tw.make_identity_layout((2, 3))],
        ["SM80_16x8x16_F32F16F16F32_TN"],
        ["SM75_U32x4_LDSM_N"],
    ],
    ids=str,
)
def test_every_kind_is_drawn(what: list[object], tmp_path: Path) -> None:
    picture = tw.draw(*what, title="A <title> & more")
    root = ET.fromstring(picture.svg())
    assert root.tag.endswith("svg") and "A <title> & more" in "".join(root.itertext())
    assert len(str(picture)) > 20 and "A <title>" in picture.text()
    for end, begins in {"svg": b"<svg", "html": b"<!", "png": b"\x89PNG", "pdf": b"%PDF", "tex": b"%", "txt": b""}.items():
        file = tmp_path / f"picture.{end}"
        picture.save(file)
        assert file.read_bytes().startswith(begins), end
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"picture.{end}" for end in ["svg", "html", "png", "pdf", "tex", "txt"])


def test_threads_and_values() -> None:
    tiler, tv = tw.make_layout_tv(tw.Layout((4, 8), (8, 1)), tw.Layout((2, 2)))
    assert "T31" in tw.draw(tv, tile=tiler).svg() or "31" in tw.draw(tv, tile=tiler).svg()
    assert tw.draw(tv, tv, kind="copy", tile=tiler).svg().startswith("<svg")


def test_refused_pictures(tmp_path: Path) -> None:
    wrong: list[tuple[type[Exception], Callable[[], object]]] = [
        (TypeError, lambda: tw.draw()),
        (TypeError, lambda: tw.draw("(M,4):(4,1)").svg()),
        (TypeError, lambda: tw.draw(tw.Tiler(2, 4)).svg()),
        (ValueError, lambda: tw.draw("4:1", kind="pie")),
        (ValueError, lambda: tw.draw("4:1", palette="none")),
        (ValueError, lambda: tw.draw("4:1", kind="mma").svg()),
        (ValueError, lambda: tw.draw("4:1", element_bits=0)),
        (tw.LayoutError, lambda: tw.draw("4:1").file("jpg")),
        (tw.LayoutError, lambda: tw.draw("4:1").file("png", scale=0.0)),
        (tw.LayoutError, lambda: tw.draw("4:")),
        (OSError, lambda: tw.draw("4:1", file=tmp_path / "no" / "x.svg")),
    ]
    for error, call in wrong:
        with pytest.raises(error):
            call()
    with pytest.raises(FileNotFoundError, match="No such file or directory: '.*x.svg'") as raised:
        tw.draw("4:1").save(tmp_path / "no" / "x.svg")
    assert raised.value.filename == str(tmp_path / "no" / "x.svg")
    assert not list(tmp_path.iterdir())


def test_claims() -> None:
    holds = tw.check("logical_divide((4,6):(1,4), (2,3))")
    assert holds and holds.holds is True and "at all 24 indices" in str(holds)
    fails = tw.check(tw.Layout((4, 2), (2, 1)), tw.Layout((2, 2, 2), (2, 5, 1)))
    assert not fails and fails.holds is False and fails.detail.startswith("at coordinate (2,0) (index 2)")
    open_ = tw.check("(M,4):(4,1)", "(M,2,2):(4,1,2)")
    assert open_.holds in (True, None)
    with pytest.raises(ValueError):
        tw.check("4:1")
    with pytest.raises(TypeError):
        tw.check(tw.Layout(4))
    with pytest.raises(tw.LayoutError):
        tw.check("complement((4,6):(1,6), 72)")


def test_explanations() -> None:
    assert "C = complement(T, N) = (2,3):(1,8)" in tw.explain("logical_divide((4,6):(1,4), 4:2)")
    with pytest.raises(tw.LayoutError):
        tw.explain("size(")


def conflicts(layout: tw.Layout, threads: list[list[int]], element: int) -> int:
    """Wavefronts by definition: in a phase each bank gives one word of 4 bytes after another."""
    total = 0
    for lanes in threads:
        words = {layout(index) * element // 4 for index in lanes}
        banks: dict[int, int] = {}
        for word in words:
            banks[word % 32] = banks.get(word % 32, 0) + 1
        total += max(banks.values())
    return total


@pytest.mark.parametrize("text", ["(32,32):(32,1)", "(32,32):(33,1)", "(32,32):(1,32)", "S<5,0,5> o 0 o (32,32):(32,1)", "(32,32):(2,64)"])
def test_banks(text: str) -> None:
    layout = tw.Layout(text)
    report = tw.banks(layout, "columns")
    columns = [[row + 32 * column for row in range(32)] for column in range(32)]
    assert report.wavefronts == conflicts(layout, columns, 4) == sum(report.phases)
    assert report.conflict_free == (report.wavefronts == 32)


def test_what_accesses_reach_is_drawn(tmp_path: Path) -> None:
    """Each lane of a column is in a row of its own; the counts below are the words of a bank."""
    banks = tw.banks("(32,32):(32,1)", "columns", phase=3)
    text = str(banks.picture)
    rows = [line for line in text.splitlines() if re.match(r" *\d+ │", line)]
    # Phase 3 is column 3: lane i takes the word 3 of line i, and bank 3 gives 32 words.
    assert "phase 3" in text and len(rows) == 33
    for lane, row in enumerate(rows[:32]):
        cells = row.split("│")[1].split()
        assert [at for at, cell in enumerate(cells) if cell != "·"] == [3] and cells[3] == str(lane)
    assert rows[32].split("│")[1].split() == ["32"]
    free = tw.banks("S<5,0,5> o 0 o (32,32):(32,1)", "columns")
    assert "no conflicts" in str(free) and "32-way" not in str(free.picture)
    assert banks._repr_svg_() == banks.picture.svg() == tw.draw(banks).svg()
    assert "base64" in banks._repr_html_()
    access = tw.access("(32,32):(32,1)", "columns", request=1)
    assert "request 1" in str(access.picture) and access.sectors == 1024
    tw.draw(access, file=tmp_path / "access.svg")
    assert (tmp_path / "access.svg").read_text() == access._repr_svg_()
    # Pictures are no part of what was found.
    assert tw.banks("(32,32):(32,1)", "columns") == banks and "picture" not in repr(banks)
    with pytest.raises(ValueError, match="there is no phase 32"):
        tw.banks("(32,32):(32,1)", "columns", phase=32)
    with pytest.raises(ValueError, match="there is no request 99"):
        tw.access("(32,32):(32,1)", request=99)


def test_derivations_are_drawn() -> None:
    derivation = tw.derive("logical_divide((4,6):(1,4), 4:2)")
    assert str(derivation) == tw.explain("logical_divide((4,6):(1,4), 4:2)")
    first = derivation.operations[0]
    assert first.formula.startswith("logical_divide(A, T)") and "R = A o D = (4,(2,3)):(2,(1,8))" in first.lines
    assert first.picture is not None and "<svg" in first.picture.svg()
    html = derivation._repr_html_()
    assert html.count("<img") == sum(operation.picture is not None for operation in derivation.operations) and "complement(T, N)" in html
    assert derivation == tw.derive("logical_divide((4,6):(1,4), 4:2)")
    with pytest.raises(tw.LayoutError):
        tw.derive("size(")


def test_suggestions_cost_what_they_say() -> None:
    advice = tw.suggest("(32,32):(32,1)", ["columns", "rows"])
    assert advice.wavefronts == 32 * 32 + 32 and advice.suggestions
    for suggestion in advice.suggestions:
        if suggestion.kind == "threads":
            continue
        each = [tw.banks(suggestion.layout, access).wavefronts for access in ("columns", "rows")]
        assert sum(each) == suggestion.wavefronts
    swizzle = next(s for s in advice.suggestions if s.kind == "swizzle")
    assert isinstance(swizzle.change, tw.Swizzle) and swizzle.wavefronts == advice.ideal


def test_access_and_footprint() -> None:
    rows = tw.access(tw.Layout((32, 32), (32, 1)), "rows", width=32)
    columns = tw.access(tw.Layout((32, 32), (32, 1)), "columns", width=32)
    assert (rows.sectors, rows.efficiency) == (128, 1.0) and columns.sectors == 1024
    found = tw.footprint(tw.Layout((3, 4), (1, 5)))
    taken = sorted({int(i) for i in tw.Layout((3, 4), (1, 5)).offsets()})
    assert (found.least, found.greatest, found.offsets) == (taken[0], taken[-1], len(taken))
    assert found.holes == taken[-1] + 1 - len(taken) and found.cycles is None
    assert sum(length for _, length in found.gaps) == found.holes
    with pytest.raises(tw.LayoutError):
        tw.banks("(32,32):(32,1)", "rows:3")
    with pytest.raises(tw.LayoutError):
        tw.banks("(32,32):(32,1)", "ring(4)")
