"""Instructions as operations, as CuTe DSL's ``cute.nvgpu`` names them.

Each knows the name of the instruction that it is here: ``tw.CopyAtom(name, element)`` and
``tw.TiledMma(name, atoms)`` take those names as well.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from ._cute import _TYPES, ElementType
from ._native import element_name


def _element(of: Any) -> ElementType:
    return _TYPES[element_name(of)]


def _width(element: Any, bits: int | None, widths: tuple[int, ...], what: str) -> int:
    asked = _element(element).width if bits is None else bits
    if asked not in widths:
        known = ", ".join(map(str, widths))
        raise ValueError(f"{what} copies {known} bits, not {asked}: say num_bits_per_copy=..")
    return asked


@dataclass(frozen=True)
class CopyUniversalOp:
    """Loads and stores of up to a number of bits, or of one element."""

    def instruction(self, element: Any, bits: int | None = None) -> str:
        return f"UniversalCopy<uint{_width(element, bits, (8, 16, 32, 64, 128), 'CopyUniversalOp')}_t>"


@dataclass(frozen=True)
class MmaUniversalOp:
    """One multiplication and addition of a thread."""

    abacc_dtype: Any

    @property
    def instruction(self) -> str:
        name = _element(self.abacc_dtype).upper()
        return f"UniversalFMA<{name},{name},{name},{name}>"


class LoadCacheMode(enum.Enum):
    """The caches that keep the data of ``cp.async``."""

    ALWAYS = "ALWAYS"
    GLOBAL = "GLOBAL"


class cpasync:
    """Asynchronous copies from global to shared memory."""

    LoadCacheMode = LoadCacheMode

    @dataclass(frozen=True)
    class CopyG2SOp:
        """``cp.async`` of 4, 8 or 16 bytes; of 16 where only the L2 cache keeps them."""

        cache_mode: LoadCacheMode = LoadCacheMode.ALWAYS

        def instruction(self, element: Any, bits: int | None = None) -> str:
            widths = (128,) if self.cache_mode is LoadCacheMode.GLOBAL else (32, 64, 128)
            return f"SM80_CP_ASYNC_CACHE{self.cache_mode.value}<uint{_width(element, bits, widths, 'CopyG2SOp')}_t>"


class warp:
    """Instructions of a warp."""

    @dataclass(frozen=True)
    class MmaF16BF16Op:
        """``mma.sync`` of f16 or bf16, accumulated in f32 or f16."""

        ab_dtype: Any
        acc_dtype: Any
        shape_mnk: tuple[int, int, int] = (16, 8, 16)

        @property
        def instruction(self) -> str:
            m, n, k = self.shape_mnk
            factors, sums = (_element(of).upper() for of in (self.ab_dtype, self.acc_dtype))
            return f"SM80_{m}x{n}x{k}_{sums}{factors}{factors}{sums}_TN"

    @dataclass(frozen=True)
    class LdMatrix8x8x16bOp:
        """``ldmatrix`` of 1, 2 or 4 matrices."""

        transpose: bool = False
        num_matrices: int = 1

        def instruction(self, element: Any, bits: int | None = None) -> str:
            count = self.num_matrices
            return f"SM75_U16x{2 * count}_LDSM_T" if self.transpose else f"SM75_U32x{count}_LDSM_N"

    @dataclass(frozen=True)
    class StMatrix8x8x16bOp:
        """``stmatrix`` of 1, 2 or 4 matrices."""

        transpose: bool = False
        num_matrices: int = 1

        def instruction(self, element: Any, bits: int | None = None) -> str:
            count = self.num_matrices
            return f"SM90_U16x{2 * count}_STSM_T" if self.transpose else f"SM90_U32x{count}_STSM_N"


__all__ = ["CopyUniversalOp", "LoadCacheMode", "MmaUniversalOp", "cpasync", "warp"]
