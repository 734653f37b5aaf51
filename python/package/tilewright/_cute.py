"""The spellings of CuTe DSL for copies, products, registers and predicates.

Law: each name means what it means in CuTe DSL, for kernels that are traced here.
"""

from __future__ import annotations

import builtins
from typing import Any

from . import _native
from ._native import CopyAtom, Fragment, Layout, Predicates, TiledCopy, TiledMma, View


class ElementType(str):
    """A type of elements: its name here, and how many bits an element has.

    >>> Float32, Float32.width
    ('f32', 32)
    """

    __slots__ = ("width",)
    width: int

    def __new__(cls, name: str, width: int) -> ElementType:
        own = super().__new__(cls, name)
        own.width = width
        return own


Float64, Float32, Float16, BFloat16 = (ElementType(*of) for of in (("f64", 64), ("f32", 32), ("f16", 16), ("bf16", 16)))
Float8E4M3FN, Float8E5M2 = ElementType("e4m3", 8), ElementType("e5m2", 8)
Int64, Int32, Int16, Int8 = (ElementType(f"i{bits}", bits) for bits in (64, 32, 16, 8))
Uint64, Uint32, Uint16, Uint8 = (ElementType(f"u{bits}", bits) for bits in (64, 32, 16, 8))
#: Of predicates: ``make_rmem_tensor(layout, Boolean)``.
Boolean = ElementType("bool", 8)

_TYPES = {
    str(of): of
    for of in (Float64, Float32, Float16, BFloat16, Float8E4M3FN, Float8E5M2, Int64, Int32, Int16, Int8, Uint64, Uint32, Uint16, Uint8)
}

#: Python's own ``range``, which unrolls a loop: the index is known in each iteration.
range_constexpr = builtins.range


def _element_type(self: Any) -> ElementType:
    """The type of the elements, with its width."""
    return _TYPES[self.element]


for _class in (View, Fragment):
    setattr(_class, "element_type", property(_element_type))
del _class


def _instruction(op: Any, *arguments: Any) -> str:
    """The name of the instruction that an operation of `nvgpu` is, or that is given."""
    if isinstance(op, str):
        return op
    named = getattr(op, "instruction", None)
    if named is None:
        raise TypeError(f"expected an operation of nvgpu, such as nvgpu.CopyUniversalOp(), or the name of an instruction, not {type(op).__name__}")
    return str(named(*arguments) if callable(named) else named)


def make_copy_atom(op: Any, copy_internal_type: Any, *, num_bits_per_copy: int | None = None) -> CopyAtom:
    """An instruction that copies ``num_bits_per_copy`` bits of elements of a type, or one element.

    >>> from tilewright import nvgpu
    >>> make_copy_atom(nvgpu.CopyUniversalOp(), Float32, num_bits_per_copy=128)
    <copy atom UniversalCopy<uint128_t>>
    """
    return CopyAtom(_instruction(op, copy_internal_type, num_bits_per_copy), copy_internal_type)


def make_tiled_copy_tv(atom: Any, *arguments: Any, **named: Any) -> TiledCopy:
    """A copy atom repeated over a layout of threads and one of the values of each.

    ``make_tiled_copy_tv(atom, thr_layout, val_layout)`` for a copy atom;
    ``make_tiled_copy_tv(name, bits, thr_layout, val_layout)`` for the name of an instruction.
    """
    bits = None if isinstance(atom, CopyAtom) else _argument("bits", arguments, named, 0)
    behind = arguments if isinstance(atom, CopyAtom) else arguments[1:]
    threads, values = (_argument(name, behind, named, at) for at, name in enumerate(("thr_layout", "val_layout")))
    if len(behind) > 2 or named:
        raise TypeError("make_tiled_copy_tv(atom, thr_layout, val_layout), or (name, bits, thr_layout, val_layout)")
    return TiledCopy(atom, bits, threads, values)


def _argument(name: str, arguments: tuple[Any, ...], named: dict[str, Any], at: int) -> Any:
    if at < len(arguments):
        return arguments[at]
    if name not in named:
        raise TypeError(f"make_tiled_copy_tv misses its argument '{name}'")
    return named.pop(name)


def make_tiled_copy_A(atom: Any, tiled_mma: TiledMma) -> TiledCopy:
    """The copy of operand A in which each thread holds the values that it multiplies."""
    return TiledCopy.of_operand(atom, tiled_mma, "A")


def make_tiled_copy_B(atom: Any, tiled_mma: TiledMma) -> TiledCopy:
    """The copy of operand B in which each thread holds the values that it multiplies."""
    return TiledCopy.of_operand(atom, tiled_mma, "B")


def make_tiled_copy_C(atom: Any, tiled_mma: TiledMma) -> TiledCopy:
    """The copy of the result in which each thread holds its accumulators."""
    return TiledCopy.of_operand(atom, tiled_mma, "C")


def make_tiled_mma(atom: Any, atom_layout_mnk: Any = None, permutation_mnk: Any = None) -> TiledMma:
    """An operation of ``nvgpu``, or an instruction by its name, over a layout of atoms (M,N,K)."""
    return TiledMma(_instruction(atom), *_left_out(atom_layout_mnk, permutation_mnk))


def _left_out(layout: Any, permutation: Any) -> tuple[Any, ...]:
    if permutation is not None:
        return (1, 1, 1) if layout is None else layout, permutation
    return () if layout is None else (layout,)


def make_rmem_tensor(layout_or_shape: Any, dtype: Any) -> Fragment | Predicates:
    """Registers under a layout, without values yet; conditions, where the type is ``Boolean``."""
    layout = Layout(layout_or_shape)
    if dtype is bool or (isinstance(dtype, ElementType) and dtype == Boolean):
        return _native.predicates(layout)
    made = _native.fragment(dtype, layout.cosize())
    return made.with_layout(layout)


def make_rmem_tensor_like(tensor: View | Fragment, dtype: Any = None) -> Fragment | Predicates:
    """Registers for a part, or under the layout of a fragment, of its type or of another."""
    if isinstance(tensor, View) and dtype is not Boolean and dtype is not bool:
        return tensor.fragment(dtype)
    layout = tensor.fragment().layout if isinstance(tensor, View) else tensor.layout
    return make_rmem_tensor(layout, tensor.element if dtype is None else dtype)


def make_identity_tensor(shape: Any) -> Any:
    """The tensor whose element at a coordinate is that coordinate. In a kernel it is cut and
    partitioned as a tensor is; outside it is the layout ``make_identity_layout(shape)``.
    """
    if _native.is_tracing():
        return _native.coordinates(shape)
    from ._more import _functions

    return _functions["make_identity_layout"](shape)


def elem_less(a: Any, b: Any) -> Any:
    """Whether each number of a coordinate is less than that of another: in a kernel a condition."""
    if _native.is_tracing():
        return _native.elem_less(a, b)
    from ._more import _functions

    return _functions["elem_less"](a, b)


__all__ = [
    "BFloat16", "Boolean", "ElementType", "Float16", "Float32", "Float64", "Float8E4M3FN", "Float8E5M2", "Int16", "Int32",
    "Int64", "Int8", "Uint16", "Uint32", "Uint64", "Uint8", "elem_less", "make_copy_atom", "make_identity_tensor",
    "make_rmem_tensor", "make_rmem_tensor_like", "make_tiled_copy_A", "make_tiled_copy_B", "make_tiled_copy_C",
    "make_tiled_copy_tv", "make_tiled_mma", "range_constexpr",
]  # fmt: skip
