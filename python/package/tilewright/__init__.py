"""A layout algebra that is exact or refuses.

A layout is a shape and strides of the same nesting, read as a function from coordinates to offsets:

>>> import tilewright as tw
>>> a = tw.Layout((6, 2), (8, 2))
>>> a(1, 1)
10
>>> a @ tw.Layout((4, 3), (3, 1))
Layout('((2,2),3):((24,2),8)')

Every function of the language of the command ``tilewright`` is here under its name, and a method of
the classes whose values its first argument may be; ``functions()`` lists them,
``help(tw.complement)`` describes one. Shapes, strides and coordinates are integers and nested
tuples, ``None`` is ``_``, and text is read as a program of the language.
"""

from __future__ import annotations

from . import _cute, _native, _traced  # noqa: F401
from ._errors import GpuError, KernelError, LayoutError
from ._jit import Array, InOut, Input, Kernel, Output, Scalar, dynamic, jit, spec, static
from ._kernel import copy, gemm
from ._more import E, Param, aliases, make_composed_layout, make_layout
from ._native import (
    BitMatrix, CopyAtom, Coordinates, Distribution, Expr, Flag, Fragment, Function, Layout, LinearLayout, Morphism, Number,
    Picture, Predicates, Program, Step, Swizzle, Tensor, Tile, TiledCopy, TiledMma, Tiler, Value, View, Xor, barrier, block,
    block_dim, commit_async, commit_bulk, evaluate, fence_async, fence_async_global, fmax, fmin, fragment, functions, grid,
    grid_dim, index_of, maximum, minimum, mma, number, otherwise, pipeline, range, read, resident, role, same, shared,
    shuffle_xor, single, store_bulk, thread, threads, wait_async, wait_bulk, wait_bulk_written, wait_mma, warp_barrier, when,
    where, write, zeros,
)  # fmt: skip
from ._notes import OutsideDomain, strict
from ._tensor import reduce, relayout, tensor_composition, transform
from ._tile import tile
from ._types import Argument, IntTuple, LayoutLike

__version__: str = _native.__version__

globals().update({function.__name__: function for function in functions() if function.__name__ != "make_layout"})
globals().update(aliases)
globals().update({name: getattr(_cute, name) for name in _cute.__all__})

# Only who asks for these pays for them: their dataclasses would take a good part of an import.
_late = dict.fromkeys(
    ("Access", "Advice", "Banks", "Claim", "Derivation", "Footprint", "Operation", "Suggestion", "access", "banks", "check",
     "derive", "draw", "explain", "footprint", "suggest"),
    "_study",
) | dict.fromkeys(("Tuned", "Tuning", "tune"), "_tune") | dict.fromkeys(
    ("Finding", "Sanitized", "SanitizedCosts", "SanitizedCounts", "SanitizerError", "StatementCosts", "TensorMap", "sanitize"),
    "_sanitize",
) | {"sanitizer": "_sanitizer"}  # fmt: skip

_modules = {"arch", "cuda", "gpu", "kernels", "mesh", "nvgpu", "ops", "triton"}

# What hides a builtin is asked for by name.
_builtins = {"filter", "max", "min", "range", "slice", "sum", "zip"}
__all__ = sorted(
    {name for name in globals() if not name.startswith("_") and name not in _builtins}
    - {"annotations", "aliases"}
    | set(_late)
)


def __getattr__(name: str) -> object:
    if name in _late or name in _modules:
        from importlib import import_module

        if name not in _late:
            return import_module(f"tilewright.{name}")
        found = getattr(import_module(f"tilewright.{_late[name]}"), name)
        globals()[name] = found
        return found
    from ._more import unknown

    raise AttributeError(unknown(name), name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_late, *_modules} - {"aliases", "annotations"})
