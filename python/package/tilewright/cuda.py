"""CUDA C++ as PTX, by NVRTC: no GPU and no toolkit are needed, only the package ``nvidia-cuda-nvrtc``.

>>> import numpy as np, tilewright as tw                     # doctest: +SKIP
>>> ptx = tw.cuda.compile('''                               # doctest: +SKIP
... extern "C" __global__ void twice(float* x, int n) {
...     int i = blockIdx.x * blockDim.x + threadIdx.x;
...     if (i < n) x[i] *= 2;
... }''')
>>> x = np.ones(1000, np.float32)                            # doctest: +SKIP
>>> print(tw.sanitize(ptx, 8, 128, [x, 1000]))               # doctest: +SKIP
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["CompileError", "compile"]


class CompileError(RuntimeError):
    """NVRTC refuses a source; the text is its log."""


_lock = threading.Lock()
_library: Any = None


def compile(source: str, target: str = "sm_90a", *, name: str = "kernel.cu", options: Sequence[str] = ()) -> str:
    """The PTX of a text of CUDA C++ for a target, with the lines of the source. ``name`` is the name of
    the source in messages and findings; ``options`` are those of NVRTC, such as ``-I`` and ``-D``.

    Kernels are found by their mangled names, and those that are ``extern "C"`` by their own.

    Errors: ``CompileError`` with the log of the compiler; ``ImportError`` if NVRTC is not installed.
    """
    if not target.startswith("sm_"):
        raise ValueError(f'a target is named as "sm_80" or "sm_90a", not {target!r}')
    nvrtc = _opened()
    given = [f"--gpu-architecture=compute_{target[3:]}", "--generate-line-info", "--std=c++17", *options]
    arguments = (ctypes.c_char_p * len(given))(*(own.encode() for own in given))
    program = ctypes.c_void_p()
    _check(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None))
    try:
        made = nvrtc.nvrtcCompileProgram(program, len(given), arguments)
        if made:
            raise CompileError(_text(nvrtc, program, "ProgramLog") or _reason(nvrtc, made))
        return _text(nvrtc, program, "PTX")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(nvrtc: Any, program: Any, what: str) -> str:
    """A text of a program: its log or its PTX."""
    size = ctypes.c_size_t()
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    room = ctypes.create_string_buffer(size.value)
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, room))
    return room.value.decode(errors="replace").rstrip()


def _reason(nvrtc: Any, code: int) -> str:
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    return bytes(nvrtc.nvrtcGetErrorString(code)).decode()


def _check(nvrtc: Any, code: int) -> None:
    if code:
        raise CompileError(_reason(nvrtc, code))


def _opened() -> Any:
    """The library of NVRTC: that of its package, or that of the system."""
    global _library
    with _lock:
        if _library is None:
            _library = _found()
        return _library


def _found() -> Any:
    try:
        folders = [Path(own) for own in import_module("nvidia").__path__]
    except ImportError:
        folders = []
    candidates = sorted(str(own) for folder in folders for own in folder.glob("*/lib/libnvrtc.so.*"))
    # The newest first; those with other functions are beside it.
    own = [path for path in reversed(candidates) if ".alt." not in path and "builtins" not in path]
    for path in [*own, "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"]:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise ImportError("NVRTC is not here: install it with `pip install nvidia-cuda-nvrtc`")
