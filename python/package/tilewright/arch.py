"""Threads, blocks, barriers and asynchronous copies, as CuTe DSL's ``cute.arch`` names them."""

from __future__ import annotations

from typing import Any

from . import _native
from ._native import barrier as sync_threads
from ._native import commit_async as cp_async_commit_group
from ._native import wait_async as cp_async_wait_group
from ._native import warp_barrier as sync_warp

_LANES = 32


def block_idx() -> tuple[Any, Any, Any]:
    """The numbers of this block along the axes of the grid. The tensors that are cut at them say
    how many blocks there are; an axis whose number no statement uses has one block.
    """
    x, y, z = _native.block("(x,y,z)")
    return x, y, z


def thread_idx() -> tuple[Any, int, int]:
    """The number of this thread. Blocks have one axis of threads: ``@tw.jit(threads=256)``."""
    return _native.thread(), 0, 0


def grid_dim() -> tuple[Any, Any, Any]:
    """How many blocks the grid has along its axes. Where `tw.grid` has said a number before, it is
    that number; else the launch tells it.
    """
    return _native.grid_dim("x"), _native.grid_dim("y"), _native.grid_dim("z")


def block_dim() -> tuple[int, int, int]:
    """How many threads a block has. Blocks have one axis of threads: ``@tw.jit(threads=256)``."""
    return _native.block_dim(), 1, 1


def lane_idx() -> Any:
    """The number of this thread in its warp."""
    return _native.thread() % _LANES


def warp_idx() -> Any:
    """The number of the warp of this thread."""
    return _native.thread() // _LANES


def barrier() -> None:
    """All threads of the block, or of the role, wait here for each other."""
    sync_threads()


__all__ = [
    "barrier", "block_dim", "block_idx", "cp_async_commit_group", "cp_async_wait_group", "grid_dim", "lane_idx", "sync_threads",
    "sync_warp", "thread_idx", "warp_idx",
]  # fmt: skip
