"""A program as users write it: mypy and pyright have to see these types."""

from __future__ import annotations

from typing import Any

import tilewright as tw

layout: tw.Layout = tw.Layout((4, 8), (8, 1))
composed: tw.Layout = layout @ tw.Layout((2, 2), (1, 2))
tiles: tw.Layout = tw.zipped_divide(layout, (2, 4))
flat: tw.Layout = layout.coalesce().flatten()
mode: tw.Layout = layout[0]
extents: list[int] = [tw.size(mode) for mode in layout]
elements: int = tw.size(layout, mode=[0]) + layout.cosize()
injective: bool = layout.is_injective()
morphism: tw.Morphism = tw.morphism(layout)
swizzled: tw.Layout = tw.Layout("S<3,0,3> o 0 o (8,8):(8,1)")
tiler_mn, tv = tw.make_layout_tv(tw.Layout((4, 64), (64, 1)), tw.Layout((4, 4), (4, 1)))
threads: int = tw.size(tv, mode=[0])
rows = tw.Param("M", div=8)
launched: tw.Layout = tw.Layout((rows, 4), (4, 1))
shape: tw.IntTuple = layout.shape

try:
    tw.complement(layout, 3)
except tw.LayoutError as refused:
    code: str = refused.code
    witness: int | tuple[Any, ...] | None = refused.witness
