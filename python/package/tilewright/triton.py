"""Kernels of Triton and Gluon on arrays of the host, without a GPU: compiled for a target, run and checked.

>>> import numpy as np, triton, triton.language as tl        # doctest: +SKIP
>>> import tilewright as tw                                  # doctest: +SKIP
>>> @triton.jit                                              # doctest: +SKIP
... def add(x, y, z, n, BLOCK: tl.constexpr):
...     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
...     tl.store(z + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)
>>> x, y, z = (np.ones(1000, np.float32) for _ in range(3))  # doctest: +SKIP
>>> print(tw.triton.run(add, (8,), x, y, z, 1000, BLOCK=128))  # doctest: +SKIP

What runs is the PTX that Triton writes for a GPU of the target, every instruction of every thread. The
modules of Triton are needed, and no driver.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from ._sanitize import Sanitized, sanitize

__all__ = ["compiled", "run"]

#: Multiples of this number are told to Triton, as its own launcher does.
_DIVISOR = 16
#: Options of a compilation that are no arguments of a kernel.
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "launch_cooperative_grid", "launch_pdl")
_TYPES = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64",
    "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5",
}  # fmt: skip


def run(fn: Any, grid: Any, *args: Any, target: str = "sm_90a", **named: Any) -> Sanitized:
    """Compiles a function of ``@triton.jit`` or ``@gluon.jit`` for a target, runs it on arrays of the host, which it writes
    in place, and checks every access.

    ``grid`` is a tuple of up to three numbers, or a function of the arguments by their names, as for
    Triton. Arrays are those of NumPy, or tensors of PyTorch on the CPU. Keywords are the kernel's
    arguments, ``num_warps``, ``num_stages``, ``num_ctas``, and those of ``tilewright.sanitize``:
    ``schedules``, ``seed``, ``limit``, ``check``, ``costs``.

    Of a function with ``@triton.autotune`` the first configuration is taken, and what
    ``@triton.heuristics`` says.

    Errors: ``SanitizerError`` if something is found; ``ValueError`` or ``TypeError`` if arguments do not
    match; errors of Triton's compiler.
    """
    options = {name: named.pop(name) for name in ("schedules", "seed", "limit", "check", "costs") if name in named}
    kernel, values, fixed, compiler = _bound(fn, args, named)
    made = _compile(kernel, values, fixed, target, compiler)
    if callable(grid):
        grid = grid({**values, **fixed})
    blocks = tuple(int(own) for own in (grid if isinstance(grid, (tuple, list)) else (grid,)))
    if not 1 <= len(blocks) <= 3 or any(own < 1 for own in blocks):
        raise ValueError(f"a grid has one to three numbers from 1, not {grid!r}")
    metadata = made.metadata
    if getattr(metadata, "tmem_size", 0):
        raise ValueError(f"{kernel.__name__} takes tensor memory, which a GPU of {target} has and this sanitizer does not")
    ctas = int(metadata.num_ctas)
    shape = (*blocks, 1, 1)[:3]
    # Behind its own arguments a kernel takes pointers to scratch memory, of which each block has a part.
    sizes = [int(getattr(metadata, f"{what}_scratch_size", 0) or 0) for what in ("global", "profile")]
    scratch = [_scratch(size * ctas * shape[0] * shape[1] * shape[2]) for size in sizes]
    given = [value for name, value in values.items() if name not in fixed]
    return sanitize(
        made.asm["ptx"],
        (shape[0] * ctas, *shape[1:]),
        (_threads(made), 1, 1),
        [*given, *scratch],
        entry=metadata.name,
        cluster=(ctas, 1, 1),
        shared=int(metadata.shared),
        names=[*(name for name in values if name not in fixed), "scratch of Triton", "profile of Triton"],
        **options,
    )


def _threads(made: Any) -> int:
    """The threads of a block: those that the kernel asks for, as warps with work of their own come on top."""
    found = re.search(r"\.reqntid (\d+)", made.asm["ptx"])
    return int(found[1]) if found else int(made.metadata.num_warps) * int(made.metadata.warp_size)


def _scratch(size: int) -> Any:
    """Scratch memory of Triton, which holds tensor maps; None where a kernel needs none."""
    return import_module("numpy").zeros(size, "uint8") if size else None


def compiled(fn: Any, *args: Any, target: str = "sm_90a", **named: Any) -> str:
    """The PTX of a function of ``@triton.jit`` for these arguments and a target."""
    kernel, values, fixed, compiler = _bound(fn, args, named)
    text: str = _compile(kernel, values, fixed, target, compiler).asm["ptx"]
    return text


def _bound(
    fn: Any, args: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[Any, dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The function of Triton, its arguments by name, those that are known to the compiler, and the
    options of the compilation.
    """
    heuristics: list[tuple[str, Callable[[Any], Any]]] = []
    own = dict(named)
    while not hasattr(fn, "params"):
        if hasattr(fn, "configs"):
            config = fn.configs[0]
            own = {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages, **own}
        elif hasattr(fn, "values") and hasattr(fn, "fn"):
            heuristics += fn.values.items()
        elif not hasattr(fn, "fn"):
            raise TypeError(f"run takes a function of @triton.jit, not {type(fn).__name__}")
        fn = fn.fn
    names = [parameter.name for parameter in fn.params]
    if len(args) > len(names):
        raise TypeError(f"{fn.__name__} takes {len(names)} arguments, not {len(args)}")
    values = dict(zip(names, args))
    for name, value in own.items():
        if name in values:
            raise TypeError(f"{fn.__name__} got `{name}` twice")
        if name in names:
            values[name] = value
        elif name not in _OPTIONS:
            raise TypeError(f"{fn.__name__} has no argument `{name}`; its arguments are {', '.join(names)}")
    for name, of in heuristics:
        values.setdefault(name, of({**values}))
    for parameter in fn.params:
        if parameter.name not in values:
            if not parameter.has_default:
                raise TypeError(f"{fn.__name__} needs `{parameter.name}`")
            values[parameter.name] = parameter.default
    values = {name: values[name] for name in names}
    fixed = {
        parameter.name: values[parameter.name]
        for parameter in fn.params
        # Triton compiles arguments that are None or 1 into the kernel.
        if parameter.is_constexpr
        or values[parameter.name] is None
        or (type(values[parameter.name]) is int and values[parameter.name] == 1 and not parameter.do_not_specialize)
    }
    return fn, values, fixed, {name: own[name] for name in _OPTIONS if name in own}


def _compile(kernel: Any, values: dict[str, Any], fixed: dict[str, Any], target: str, options: dict[str, Any]) -> Any:
    compiler = import_module("triton.compiler")
    gpu_target = import_module("triton.backends.compiler").GPUTarget

    digits = target.removeprefix("sm_").rstrip("af")
    if not target.startswith("sm_") or not digits.isdigit():
        raise ValueError(f'a target is named as "sm_80" or "sm_90a", not {target!r}')
    by_name = {parameter.name: parameter for parameter in kernel.params}
    signature: dict[str, str] = {}
    attributes: dict[tuple[int], list[list[Any]]] = {}
    for number, (name, value) in enumerate(values.items()):
        signature[name] = "constexpr" if name in fixed else _type_of(kernel.__name__, by_name[name], value)
        is_pointer = signature[name].startswith("*")
        aligned = is_pointer or (type(value) is int and value % _DIVISOR == 0)
        if name not in fixed and aligned and not getattr(by_name[name], "do_not_specialize_on_alignment", False):
            if is_pointer or not by_name[name].do_not_specialize:
                attributes[(number,)] = [["tt.divisibility", _DIVISOR]]
    sources = compiler.ASTSource
    if type(kernel).__name__ == "GluonJITFunction":
        sources = import_module("triton.experimental.gluon._runtime").GluonASTSource
    source = sources(kernel, signature, fixed, attributes)
    return compiler.compile(source, target=gpu_target("cuda", int(digits), 32), options=options)


def _type_of(kernel: str, parameter: Any, value: Any) -> str:
    """The type of an argument, as Triton writes it."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        name = str(value.dtype).removeprefix("torch.")
        if name not in _TYPES:
            raise TypeError(f"{kernel}: `{parameter.name}` is an array of {name}, which no argument of Triton is")
        return f"*{_TYPES[name]}"
    if parameter.annotation_type:
        return str(parameter.annotation_type)
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        if -(1 << 31) <= value < 1 << 31:
            return "i32"
        if -(1 << 63) <= value < 1 << 63:
            return "i64"
        if 0 <= value < 1 << 64:
            return "u64"
    if isinstance(value, float):
        return "fp32"
    raise TypeError(f"{kernel}: `{parameter.name}` is {type(value).__name__} {value!r}, and an argument is an array, an integer or a number")
