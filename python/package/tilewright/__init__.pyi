from typing import Any, overload

from . import arch as arch
from . import cuda as cuda
from . import gpu as gpu
from . import kernels as kernels
from . import mesh as mesh
from . import nvgpu as nvgpu
from . import ops as ops
from . import triton as triton
from ._cute import BFloat16 as BFloat16
from ._cute import Boolean as Boolean
from ._cute import ElementType as ElementType
from ._cute import Float16 as Float16
from ._cute import Float32 as Float32
from ._cute import Float64 as Float64
from ._cute import Float8E4M3FN as Float8E4M3FN
from ._cute import Float8E5M2 as Float8E5M2
from ._cute import Int16 as Int16
from ._cute import Int32 as Int32
from ._cute import Int64 as Int64
from ._cute import Int8 as Int8
from ._cute import Uint16 as Uint16
from ._cute import Uint32 as Uint32
from ._cute import Uint64 as Uint64
from ._cute import Uint8 as Uint8
from ._cute import elem_less as elem_less
from ._cute import make_copy_atom as make_copy_atom
from ._cute import make_identity_tensor as make_identity_tensor
from ._cute import make_rmem_tensor as make_rmem_tensor
from ._cute import make_rmem_tensor_like as make_rmem_tensor_like
from ._cute import make_tiled_copy_A as make_tiled_copy_A
from ._cute import make_tiled_copy_B as make_tiled_copy_B
from ._cute import make_tiled_copy_C as make_tiled_copy_C
from ._cute import make_tiled_copy_tv as make_tiled_copy_tv
from ._cute import make_tiled_mma as make_tiled_mma
from ._cute import range_constexpr as range_constexpr
from ._errors import GpuError as GpuError
from ._errors import KernelError as KernelError
from ._errors import LayoutError as LayoutError
from ._jit import Array as Array
from ._jit import InOut as InOut
from ._jit import Input as Input
from ._jit import Kernel as Kernel
from ._jit import Output as Output
from ._jit import Scalar as Scalar
from ._jit import dynamic as dynamic
from ._jit import jit as jit
from ._jit import spec as spec
from ._jit import static as static
from ._kernel import copy as copy
from ._kernel import gemm as gemm
from ._more import E as E
from ._more import Param as Param
from ._more import make_composed_layout as make_composed_layout
from ._more import make_layout as make_layout
from ._native import BitMatrix as BitMatrix
from ._native import Coordinates as Coordinates
from ._native import CopyAtom as CopyAtom
from ._native import Distribution as Distribution
from ._native import Expr as Expr
from ._native import Flag as Flag
from ._native import Fragment as Fragment
from ._native import Function as Function
from ._native import Layout as Layout
from ._native import LinearLayout as LinearLayout
from ._native import Morphism as Morphism
from ._native import Number as Number
from ._native import Picture as Picture
from ._native import Predicates as Predicates
from ._native import Program as Program
from ._native import Step as Step
from ._native import Swizzle as Swizzle
from ._native import Tensor as Tensor
from ._native import Tile as Tile
from ._native import TiledCopy as TiledCopy
from ._native import TiledMma as TiledMma
from ._native import Tiler as Tiler
from ._native import Value as Value
from ._native import View as View
from ._native import Xor as Xor
from ._native import barrier as barrier
from ._native import block as block
from ._native import block_dim as block_dim
from ._native import commit_async as commit_async
from ._native import commit_bulk as commit_bulk
from ._native import evaluate as evaluate
from ._native import fence_async as fence_async
from ._native import fence_async_global as fence_async_global
from ._native import fragment as fragment
from ._native import functions as functions
from ._native import grid as grid
from ._native import grid_dim as grid_dim
from ._native import index_of as index_of
from ._native import fmax as fmax
from ._native import fmin as fmin
from ._native import maximum as maximum
from ._native import minimum as minimum
from ._native import mma as mma
from ._native import number as number
from ._native import otherwise as otherwise
from ._native import pipeline as pipeline
from ._native import range as range
from ._native import read as read
from ._native import resident as resident
from ._native import role as role
from ._native import same as same
from ._native import shared as shared
from ._native import shuffle_xor as shuffle_xor
from ._native import single as single
from ._native import store_bulk as store_bulk
from ._native import thread as thread
from ._native import threads as threads
from ._native import wait_async as wait_async
from ._native import wait_bulk as wait_bulk
from ._native import wait_bulk_written as wait_bulk_written
from ._native import wait_mma as wait_mma
from ._native import warp_barrier as warp_barrier
from ._native import when as when
from ._native import where as where
from ._native import write as write
from ._native import zeros as zeros
from ._notes import OutsideDomain as OutsideDomain
from ._notes import strict as strict
from ._sanitize import Finding as Finding
from ._sanitize import Sanitized as Sanitized
from ._sanitize import SanitizedCosts as SanitizedCosts
from ._sanitize import SanitizedCounts as SanitizedCounts
from ._sanitize import SanitizerError as SanitizerError
from ._sanitize import StatementCosts as StatementCosts
from ._sanitize import TensorMap as TensorMap
from ._sanitize import sanitize as sanitize
from ._sanitizer import sanitizer as sanitizer
from ._study import Access as Access
from ._study import Advice as Advice
from ._study import Banks as Banks
from ._study import Claim as Claim
from ._study import Derivation as Derivation
from ._study import Footprint as Footprint
from ._study import Operation as Operation
from ._study import Suggestion as Suggestion
from ._study import access as access
from ._study import banks as banks
from ._study import check as check
from ._study import derive as derive
from ._study import draw as draw
from ._study import explain as explain
from ._study import footprint as footprint
from ._study import suggest as suggest
from ._tensor import reduce as reduce
from ._tensor import relayout as relayout
from ._tensor import tensor_composition as tensor_composition
from ._tensor import transform as transform
from ._tile import tile as tile
from ._tune import Tuned as Tuned
from ._tune import Tuning as Tuning
from ._tune import tune as tune
from ._types import Argument as Argument
from ._types import IntTuple as IntTuple
from ._types import LayoutLike as LayoutLike

# exported, written by stubs.py:
__all__ = [
    "Access",
    "Advice",
    "Argument",
    "Array",
    "BFloat16",
    "Banks",
    "BitMatrix",
    "Boolean",
    "Claim",
    "Coordinates",
    "CopyAtom",
    "Derivation",
    "Distribution",
    "E",
    "ElementType",
    "Expr",
    "Finding",
    "Flag",
    "Float16",
    "Float32",
    "Float64",
    "Float8E4M3FN",
    "Float8E5M2",
    "Footprint",
    "Fragment",
    "Function",
    "GpuError",
    "InOut",
    "Input",
    "Int16",
    "Int32",
    "Int64",
    "Int8",
    "IntTuple",
    "Kernel",
    "KernelError",
    "Layout",
    "LayoutError",
    "LayoutLike",
    "LinearLayout",
    "Morphism",
    "Number",
    "Operation",
    "Output",
    "OutsideDomain",
    "Param",
    "Picture",
    "Predicates",
    "Program",
    "Sanitized",
    "SanitizedCosts",
    "SanitizedCounts",
    "SanitizerError",
    "Scalar",
    "StatementCosts",
    "Step",
    "Suggestion",
    "Swizzle",
    "Tensor",
    "TensorMap",
    "Tile",
    "TiledCopy",
    "TiledMma",
    "Tiler",
    "Tuned",
    "Tuning",
    "Uint16",
    "Uint32",
    "Uint64",
    "Uint8",
    "Value",
    "View",
    "Xor",
    "access",
    "append",
    "append_to_rank",
    "banks",
    "barrier",
    "bit_image",
    "bit_inverse",
    "bit_kernel",
    "bit_matrix",
    "bit_rank",
    "bit_xor",
    "block",
    "block_dim",
    "blocked_product",
    "cdiv",
    "ceil_div",
    "check",
    "coalesce",
    "coalesce_z",
    "codomain",
    "col_major",
    "colex_geq",
    "colex_gtr",
    "colex_leq",
    "colex_less",
    "commit_async",
    "commit_bulk",
    "common_coarsening",
    "common_refinement",
    "compact_order",
    "compatible",
    "complement",
    "compose",
    "composition",
    "composition_by_refinement",
    "composition_within",
    "concat",
    "congruent",
    "copy",
    "coshape",
    "cosize",
    "crd2crd",
    "crd2flat",
    "crd2idx",
    "depth",
    "derive",
    "dice",
    "dice_",
    "dice_modes",
    "divides",
    "domain",
    "domain_distribute",
    "domain_offset",
    "downcast",
    "draw",
    "dynamic",
    "elem_geq",
    "elem_gtr",
    "elem_leq",
    "elem_less",
    "elem_scale",
    "encoded",
    "equal",
    "equivalent",
    "evaluate",
    "evenly_divides",
    "explain",
    "factorisation",
    "factorise",
    "fence_async",
    "fence_async_global",
    "filter_zeros",
    "flat_divide",
    "flat_product",
    "flatten",
    "floor_div",
    "fmax",
    "fmin",
    "footprint",
    "fragment",
    "functionally_equal",
    "functions",
    "gcd",
    "gemm",
    "get",
    "get_slice",
    "graft",
    "greatest_common_domain",
    "grid",
    "grid_dim",
    "group",
    "group_modes",
    "hier_unzip",
    "identity",
    "identity_tensor",
    "idx2crd",
    "image",
    "inclusion",
    "increment_coord",
    "index_of",
    "inner_product",
    "inverse",
    "is_bijective",
    "is_coalesced",
    "is_compact",
    "is_compatible",
    "is_complementary",
    "is_congruent",
    "is_contiguous",
    "is_degenerate",
    "is_injective",
    "is_isomorphism",
    "is_ordered",
    "is_product_admissible",
    "is_sorted",
    "is_standard",
    "is_surjective",
    "is_tractable",
    "is_weakly_congruent",
    "jit",
    "layoutA_TV",
    "layoutB_TV",
    "layoutC_TV",
    "layoutD_TV",
    "layoutS_TV",
    "layout_add",
    "leaves",
    "left_divide",
    "left_inverse",
    "lex_geq",
    "lex_gtr",
    "lex_leq",
    "lex_less",
    "linear_layout",
    "linear_product",
    "linear_quotient",
    "local_tile",
    "logical_divide",
    "logical_product",
    "make_composed_layout",
    "make_copy_atom",
    "make_fragment_A",
    "make_fragment_B",
    "make_fragment_C",
    "make_fragment_like",
    "make_identity_layout",
    "make_identity_tensor",
    "make_layout",
    "make_layout_like",
    "make_layout_tv",
    "make_ordered_layout",
    "make_rmem_tensor",
    "make_rmem_tensor_like",
    "make_tiled_copy_A",
    "make_tiled_copy_B",
    "make_tiled_copy_C",
    "make_tiled_copy_tv",
    "make_tiled_mma",
    "max_alignment",
    "max_common_layout",
    "max_common_vector",
    "maximum",
    "minimum",
    "mma",
    "mod",
    "morphism",
    "mutual_refinement",
    "nullspace",
    "number",
    "otherwise",
    "partition_A",
    "partition_B",
    "partition_C",
    "partition_D",
    "partition_S",
    "pipeline",
    "prepend",
    "prepend_to_rank",
    "product",
    "product_each",
    "product_like",
    "pseudo_inverse",
    "pullback",
    "pushforward",
    "raked_product",
    "range_constexpr",
    "rank",
    "read",
    "recast_layout",
    "reduce",
    "refined_sizes",
    "refines",
    "relayout",
    "rem",
    "remove",
    "replace",
    "resident",
    "restrict",
    "retile_D",
    "retile_S",
    "reverse",
    "right_inverse",
    "role",
    "round_up",
    "row_major",
    "same",
    "sanitize",
    "sanitizer",
    "select",
    "select_modes",
    "shape",
    "shape_div",
    "shared",
    "shuffle_xor",
    "single",
    "size",
    "slice_",
    "slice_and_offset",
    "slice_modes",
    "sort",
    "span",
    "span_composition",
    "span_sum",
    "spec",
    "squeeze",
    "standard_form",
    "static",
    "store_bulk",
    "strict",
    "stride",
    "substitute",
    "suggest",
    "take",
    "take_modes",
    "tensor_composition",
    "tensor_zipped_divide",
    "thread",
    "threads",
    "tile",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "to_composed",
    "to_layout",
    "to_xor",
    "transform",
    "tune",
    "tuple_add",
    "tuple_max",
    "tuple_sub",
    "unflatten",
    "unzip",
    "upcast",
    "wait_async",
    "wait_bulk",
    "wait_bulk_written",
    "wait_mma",
    "warp_barrier",
    "weak_complement",
    "weak_composite",
    "weakly_congruent",
    "when",
    "where",
    "with_shape",
    "write",
    "zeros",
    "zipped_divide",
    "zipped_product",
]
# end

__version__: str

# functions, written by stubs.py:
@overload
def size(A: Tensor, /, *arguments: Argument, **named: Argument) -> int: ...
@overload
def size(A: View, /, *arguments: Argument, **named: Argument) -> Any: ...
@overload
def size(A: LayoutLike, /, *arguments: Argument, **named: Argument) -> int | Any: ...
@overload
def cosize(A: Tensor, /, *arguments: Argument, **named: Argument) -> int: ...
@overload
def cosize(A: View, /, *arguments: Argument, **named: Argument) -> Any: ...
@overload
def cosize(A: LayoutLike, /, *arguments: Argument, **named: Argument) -> int | Any: ...
@overload
def rank(A: Tensor, /, *arguments: Argument, **named: Argument) -> int: ...
@overload
def rank(A: View, /, *arguments: Argument, **named: Argument) -> int: ...
@overload
def rank(A: LayoutLike, /, *arguments: Argument, **named: Argument) -> int: ...
@overload
def depth(A: Tensor, /, *arguments: Argument, **named: Argument) -> int: ...
@overload
def depth(A: View, /, *arguments: Argument, **named: Argument) -> int: ...
@overload
def depth(A: LayoutLike, /, *arguments: Argument, **named: Argument) -> int: ...
@overload
def shape(A: Tensor, /, *arguments: Argument, **named: Argument) -> IntTuple | Any: ...
@overload
def shape(A: View, /, *arguments: Argument, **named: Argument) -> Any: ...
@overload
def shape(A: LayoutLike, /, *arguments: Argument, **named: Argument) -> IntTuple | Any: ...
@overload
def stride(A: View, /, *arguments: Argument, **named: Argument) -> Any: ...
@overload
def stride(A: LayoutLike, /, *arguments: Argument, **named: Argument) -> IntTuple | Any: ...
@overload
def get(A: Tensor, /, *arguments: Argument, **named: Argument) -> Tensor: ...
@overload
def get(A: View, /, *arguments: Argument, **named: Argument) -> Any: ...
@overload
def get(A: Layout | str, /, *arguments: Argument, **named: Argument) -> Layout: ...
@overload
def get(A: IntTuple, /, *arguments: Argument, **named: Argument) -> Any: ...
@overload
def flatten(A: Morphism) -> Morphism: ...
@overload
def flatten(A: Tensor) -> Tensor: ...
@overload
def flatten(A: Layout | str) -> Layout: ...
@overload
def flatten(A: IntTuple) -> Any: ...
@overload
def unflatten(A: Tensor, profile: Argument) -> Tensor: ...
@overload
def unflatten(A: Layout | str, profile: Argument) -> Layout: ...
@overload
def unflatten(A: IntTuple, profile: Argument) -> Any: ...
@overload
def group(A: Tensor, /, *arguments: Argument, **named: Argument) -> Tensor: ...
@overload
def group(A: View, /, *arguments: Argument, **named: Argument) -> View: ...
@overload
def group(A: Layout | str, /, *arguments: Argument, **named: Argument) -> Layout: ...
@overload
def group(A: IntTuple, /, *arguments: Argument, **named: Argument) -> Any: ...
@overload
def take(A: Tensor, begin: Argument, end: Argument) -> Tensor: ...
@overload
def take(A: Layout | str, begin: Argument, end: Argument) -> Layout: ...
@overload
def take(A: IntTuple, begin: Argument, end: Argument) -> Any: ...
@overload
def select(A: Tensor, /, *arguments: Argument, **named: Argument) -> Tensor: ...
@overload
def select(A: View, /, *arguments: Argument, **named: Argument) -> View: ...
@overload
def select(A: Layout | str, /, *arguments: Argument, **named: Argument) -> Layout: ...
@overload
def select(A: IntTuple, /, *arguments: Argument, **named: Argument) -> Any: ...
@overload
def append(A: Layout | str, B: Argument) -> Layout: ...
@overload
def append(A: IntTuple, B: Argument) -> Any: ...
@overload
def prepend(A: Layout | str, B: Argument) -> Layout: ...
@overload
def prepend(A: IntTuple, B: Argument) -> Any: ...
@overload
def append_to_rank(A: Tensor, rank: Argument, filler: Argument = None) -> Tensor: ...
@overload
def append_to_rank(A: Layout | str, rank: Argument, filler: Argument = None) -> Layout: ...
@overload
def append_to_rank(A: IntTuple, rank: Argument, filler: Argument = None) -> Any: ...
@overload
def prepend_to_rank(A: Tensor, rank: Argument, filler: Argument = None) -> Tensor: ...
@overload
def prepend_to_rank(A: Layout | str, rank: Argument, filler: Argument = None) -> Layout: ...
@overload
def prepend_to_rank(A: IntTuple, rank: Argument, filler: Argument = None) -> Any: ...
@overload
def replace(A: Layout | str, mode: Argument, B: Argument) -> Layout: ...
@overload
def replace(A: IntTuple, mode: Argument, B: Argument) -> Any: ...
@overload
def remove(A: Tensor, mode: Argument) -> Tensor: ...
@overload
def remove(A: Layout | str, mode: Argument) -> Layout: ...
@overload
def remove(A: IntTuple, mode: Argument) -> Any: ...
@overload
def reverse(A: Tensor) -> Tensor: ...
@overload
def reverse(A: Layout | str) -> Layout: ...
@overload
def reverse(A: IntTuple) -> Any: ...
@overload
def zip(A: Tensor, B: Argument = None) -> Tensor: ...
@overload
def zip(A: Layout | str, B: Argument = None) -> Layout: ...
@overload
def zip(A: IntTuple, B: Argument = None) -> Any: ...
@overload
def unzip(A: Tensor, guide: Argument) -> Tensor: ...
@overload
def unzip(A: Layout | str, guide: Argument) -> Layout: ...
@overload
def unzip(A: IntTuple, guide: Argument) -> Any: ...
def col_major(shape: Argument) -> Layout: ...
def row_major(shape: Argument) -> Layout: ...
def make_ordered_layout(shape: Argument, order: Argument) -> Layout: ...
def compact_order(shape: Argument, order: Argument) -> IntTuple | Any: ...
def make_layout_like(A: Argument) -> Layout: ...
@overload
def make_fragment_like(A: View) -> Fragment: ...
@overload
def make_fragment_like(A: LayoutLike) -> Layout: ...
def with_shape(A: Argument, shape: Argument) -> Layout: ...
def substitute(*arguments: Argument, **named: Argument) -> Any: ...
def make_identity_layout(shape: Argument) -> Layout: ...
def crd2idx(*arguments: Argument, **named: Argument) -> Any: ...
def idx2crd(i: Argument, shape: Argument) -> IntTuple | Any: ...
def crd2crd(c: Argument, from_: Argument, to: Argument) -> IntTuple | Any: ...
def increment_coord(c: Argument, shape: Argument) -> IntTuple | Any: ...
@overload
def slice(A: Layout | str, c: Argument) -> Layout: ...
@overload
def slice(A: IntTuple, c: Argument) -> Any: ...
@overload
def dice(A: Layout | str, c: Argument) -> Layout: ...
@overload
def dice(A: IntTuple, c: Argument) -> Any: ...
def slice_and_offset(A: Argument, c: Argument) -> tuple[Layout, int]: ...
def domain_offset(A: Argument, c: Argument) -> tuple[Layout, Any]: ...
@overload
def coalesce(A: Morphism, profile: Argument = None) -> Morphism: ...
@overload
def coalesce(A: Tensor, profile: Argument = None) -> Tensor: ...
@overload
def coalesce(A: LayoutLike, profile: Argument = None) -> Layout: ...
def coalesce_z(A: Argument) -> Layout: ...
@overload
def filter_zeros(A: Tensor, /, *arguments: Argument, **named: Argument) -> Tensor: ...
@overload
def filter_zeros(A: LayoutLike, /, *arguments: Argument, **named: Argument) -> Layout: ...
@overload
def filter(A: Tensor, profile: Argument = None) -> Tensor: ...
@overload
def filter(A: LayoutLike, profile: Argument = None) -> Layout: ...
@overload
def composition(A: Morphism, B: Argument) -> Morphism: ...
@overload
def composition(A: LinearLayout, B: Argument) -> LinearLayout: ...
@overload
def composition(A: Tensor, B: Argument) -> Tensor: ...
@overload
def composition(A: View, B: Argument) -> View: ...
@overload
def composition(A: LayoutLike, B: Argument) -> Layout: ...
@overload
def composition_within(A: Tensor, B: Argument) -> Tensor: ...
@overload
def composition_within(A: LayoutLike, B: Argument) -> Layout: ...
@overload
def complement(A: Morphism, target: Argument = None) -> Morphism: ...
@overload
def complement(A: LayoutLike, target: Argument = None) -> Layout: ...
def weak_complement(A: Argument, target: Argument = None) -> Layout: ...
@overload
def right_inverse(A: LinearLayout) -> LinearLayout: ...
@overload
def right_inverse(A: LayoutLike) -> Layout: ...
@overload
def left_inverse(A: LinearLayout) -> LinearLayout: ...
@overload
def left_inverse(A: LayoutLike) -> Layout: ...
def nullspace(A: Argument) -> Layout: ...
def layout_add(A: Argument, B: Argument) -> Layout: ...
def upcast(A: Argument, n: Argument) -> Layout: ...
def downcast(A: Argument, n: Argument) -> Layout: ...
def recast_layout(new_bits: Argument, old_bits: Argument, layout: Argument) -> Layout: ...
def max_alignment(A: Argument) -> int: ...
@overload
def logical_divide(A: Morphism, T: Argument) -> Morphism: ...
@overload
def logical_divide(A: Tensor, T: Argument) -> Tensor: ...
@overload
def logical_divide(A: LayoutLike, T: Argument) -> Layout: ...
@overload
def zipped_divide(A: Tensor, T: Argument) -> Tensor: ...
@overload
def zipped_divide(A: View, T: Argument) -> View: ...
@overload
def zipped_divide(A: LayoutLike, T: Argument) -> Layout: ...
@overload
def tiled_divide(A: Tensor, T: Argument) -> Tensor: ...
@overload
def tiled_divide(A: LayoutLike, T: Argument) -> Layout: ...
@overload
def flat_divide(A: Tensor, T: Argument) -> Tensor: ...
@overload
def flat_divide(A: LayoutLike, T: Argument) -> Layout: ...
@overload
def logical_product(A: Morphism, B: Argument) -> Morphism: ...
@overload
def logical_product(A: LayoutLike, B: Argument) -> Layout: ...
def zipped_product(A: Argument, B: Argument) -> Layout: ...
def tiled_product(A: Argument, B: Argument) -> Layout: ...
def flat_product(A: Argument, B: Argument) -> Layout: ...
def blocked_product(A: Argument, B: Argument) -> Layout: ...
def raked_product(A: Argument, B: Argument) -> Layout: ...
def tile_to_shape(A: Argument, shape: Argument, order: Argument = None) -> Layout: ...
def make_layout_tv(threads: Argument, values: Argument) -> tuple[IntTuple, Layout]: ...
def max_common_layout(A: Argument, B: Argument) -> Layout: ...
def max_common_vector(A: Argument, B: Argument) -> int: ...
def get_slice(tiled: Argument, thread: Argument) -> tuple[Any, ...]: ...
def layoutA_TV(mma: Argument) -> Layout: ...
def layoutB_TV(mma: Argument) -> Layout: ...
def layoutC_TV(mma: Argument) -> Layout: ...
def layoutS_TV(copy: Argument) -> Layout: ...
def layoutD_TV(copy: Argument) -> Layout: ...
@overload
def local_tile(A: Tensor, tiler: Argument, coord: Argument, proj: Argument = None) -> Tensor: ...
@overload
def local_tile(A: View, tiler: Argument, coord: Argument, proj: Argument = None) -> View: ...
@overload
def local_tile(A: LayoutLike, tiler: Argument, coord: Argument, proj: Argument = None) -> Layout: ...
def partition_A(tiled: Argument, A: Argument | Tensor) -> Any: ...
def partition_B(tiled: Argument, A: Argument | Tensor) -> Any: ...
def partition_C(tiled: Argument, A: Argument | Tensor) -> Any: ...
def partition_S(tiled: Argument, A: Argument | Tensor) -> Any: ...
def partition_D(tiled: Argument, A: Argument | Tensor) -> Any: ...
def make_fragment_A(tiled: Argument, A: Argument) -> Layout: ...
def make_fragment_B(tiled: Argument, A: Argument) -> Layout: ...
def make_fragment_C(tiled: Argument, A: Argument) -> Layout: ...
def retile_S(copy: Argument, fragment: Argument) -> Layout: ...
def retile_D(copy: Argument, fragment: Argument) -> Layout: ...
def bit_matrix(A: Argument) -> BitMatrix: ...
def bit_xor(bits: Argument, into: Argument, from_: Argument) -> BitMatrix: ...
def bit_rank(M: Argument) -> int: ...
def bit_kernel(M: Argument) -> tuple[int, ...]: ...
def bit_image(M: Argument) -> tuple[int, ...]: ...
@overload
def bit_inverse(M: LinearLayout) -> LinearLayout: ...
@overload
def bit_inverse(M: LayoutLike) -> BitMatrix: ...
@overload
def left_divide(M: LinearLayout, N: Argument) -> LinearLayout: ...
@overload
def left_divide(M: LayoutLike, N: Argument) -> BitMatrix: ...
def to_layout(*arguments: Argument, **named: Argument) -> Layout: ...
def to_composed(*arguments: Argument, **named: Argument) -> Layout: ...
def to_xor(A: Argument) -> Layout: ...
def linear_layout(A: Argument) -> LinearLayout: ...
def pseudo_inverse(F: Argument) -> LinearLayout: ...
def linear_product(F: Argument, G: Argument) -> LinearLayout: ...
def linear_quotient(F: Argument, tile: Argument) -> LinearLayout: ...
def product(t: Argument) -> int | Any: ...
def product_each(t: Argument) -> IntTuple | Any: ...
def product_like(t: Argument, guide: Argument) -> IntTuple | Any: ...
def inner_product(a: Argument, b: Argument) -> int | Any: ...
def elem_scale(a: Argument, b: Argument) -> IntTuple | Any: ...
def tuple_add(a: Argument, b: Argument) -> IntTuple | Any: ...
def tuple_sub(a: Argument, b: Argument) -> IntTuple | Any: ...
def ceil_div(a: Argument, b: Argument) -> IntTuple | Any: ...
def floor_div(a: Argument, b: Argument) -> IntTuple | Any: ...
def shape_div(a: Argument, b: Argument, rounding: Argument = None) -> IntTuple | Any: ...
def round_up(a: Argument, b: Argument) -> IntTuple | Any: ...
def max(*arguments: Argument, **named: Argument) -> int | Any: ...
def min(*arguments: Argument, **named: Argument) -> int | Any: ...
def mod(a: Argument, b: Argument) -> int | Any: ...
def rem(a: Argument, b: Argument) -> int | Any: ...
def gcd(*arguments: Argument, **named: Argument) -> int | Any: ...
@overload
def sum(A: Morphism, /, *arguments: Argument, **named: Argument) -> Morphism: ...
@overload
def sum(A: LayoutLike, /, *arguments: Argument, **named: Argument) -> int | Any: ...
def greatest_common_domain(a: Argument, b: Argument) -> Layout: ...
def common_refinement(a: Argument, b: Argument) -> IntTuple: ...
def common_coarsening(a: Argument, b: Argument) -> IntTuple: ...
def domain_distribute(a: Argument, b: Argument) -> Layout: ...
def equal(a: Argument, b: Argument) -> bool: ...
def equivalent(A: Argument, B: Argument) -> bool: ...
def congruent(a: Argument, b: Argument) -> bool: ...
def weakly_congruent(a: Argument, b: Argument) -> bool: ...
def compatible(a: Argument, b: Argument) -> bool: ...
def evenly_divides(a: Argument, tiler: Argument) -> bool: ...
def elem_leq(a: Argument, b: Argument) -> bool: ...
def elem_gtr(a: Argument, b: Argument) -> bool: ...
def elem_geq(a: Argument, b: Argument) -> bool: ...
def lex_less(a: Argument, b: Argument) -> bool: ...
def lex_leq(a: Argument, b: Argument) -> bool: ...
def lex_gtr(a: Argument, b: Argument) -> bool: ...
def lex_geq(a: Argument, b: Argument) -> bool: ...
def colex_less(a: Argument, b: Argument) -> bool: ...
def colex_leq(a: Argument, b: Argument) -> bool: ...
def colex_gtr(a: Argument, b: Argument) -> bool: ...
def colex_geq(a: Argument, b: Argument) -> bool: ...
def is_injective(A: Argument) -> bool: ...
def is_surjective(A: Argument) -> bool: ...
def is_bijective(A: Argument) -> bool: ...
def is_compact(A: Argument) -> bool: ...
def is_contiguous(A: Argument) -> bool: ...
def is_ordered(A: Argument) -> bool: ...
def is_tractable(A: Argument) -> bool: ...
def image(A: Argument) -> tuple[Any, ...]: ...
def coshape(A: Argument) -> IntTuple | Any: ...
def morphism(A: Argument) -> Morphism: ...
def encoded(f: Argument) -> Layout: ...
def standard_form(f: Argument) -> Morphism: ...
def mutual_refinement(S: Argument, T: Argument) -> tuple[IntTuple, IntTuple]: ...
def refines(S: Argument, T: Argument) -> bool: ...
def pullback(f: Argument, T: Argument) -> Morphism: ...
def pushforward(f: Argument, S: Argument) -> Morphism: ...
def weak_composite(g: Argument, f: Argument) -> Morphism: ...
def composition_by_refinement(A: Argument, B: Argument) -> Layout: ...
def concat(f: Argument, g: Argument) -> Morphism: ...
def restrict(*arguments: Argument, **named: Argument) -> Morphism: ...
def factorise(*arguments: Argument, **named: Argument) -> Morphism: ...
def domain(f: Argument) -> IntTuple: ...
def codomain(f: Argument) -> IntTuple: ...
def squeeze(f: Argument) -> Morphism: ...
def sort(f: Argument) -> Morphism: ...
def is_isomorphism(f: Argument) -> bool: ...
def inverse(f: Argument) -> Morphism: ...
def identity(S: Argument) -> Morphism: ...
def inclusion(S: Argument, T: Argument) -> Morphism: ...
def divides(g: Argument, f: Argument) -> bool: ...
def is_product_admissible(f: Argument, g: Argument) -> bool: ...
def is_standard(f: Argument) -> bool: ...
def is_degenerate(f: Argument) -> bool: ...
def is_sorted(f: Argument) -> bool: ...
def is_coalesced(f: Argument) -> bool: ...
def is_complementary(f: Argument, g: Argument) -> bool: ...
def graft(S: Argument, T: Argument) -> IntTuple: ...
def factorisation(S: Argument) -> IntTuple: ...
def refined_sizes(S: Argument) -> IntTuple: ...
def span(A: Argument) -> tuple[Any, ...]: ...
def span_composition(s: Argument, t: Argument) -> tuple[Any, ...]: ...
def span_sum(s: Argument, t: Argument) -> tuple[Any, ...]: ...
compose = composition
group_modes = group
select_modes = select
take_modes = take
is_congruent = congruent
is_weakly_congruent = weakly_congruent
is_compatible = compatible
slice_ = slice
slice_modes = slice
dice_ = dice
dice_modes = dice
functionally_equal = equivalent
tensor_zipped_divide = zipped_divide
identity_tensor = make_identity_layout
cdiv = ceil_div
leaves = flatten
crd2flat = crd2idx
hier_unzip = unzip
tuple_max = max
# end
