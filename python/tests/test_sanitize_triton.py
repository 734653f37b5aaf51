"""Kernels of Triton and Gluon on arrays of the host, without a GPU."""

# Functions of Triton have no types that mypy knows.
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as tw

pytest.importorskip("triton")
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def add_unmasked(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n))


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0.0)))


@triton.jit
def total_by_stores(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out, tl.load(out) + tl.sum(tl.load(x + i, mask=i < n, other=0.0)))


@triton.autotune(configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def tuned_add(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        left = tl.load(a + m[:, None] * K + (first + k)[None, :])
        right = tl.load(b + (first + k)[:, None] * N + n[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(c + m[:, None] * N + n[None, :], sums)


def arrays(n: int) -> Any:
    source = np.random.default_rng(1)
    return (*(source.standard_normal(n).astype(np.float32) for _ in range(2)), np.zeros(n, np.float32))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_a_right_kernel_computes_what_numpy_does(target: str) -> None:
    x, y, z = arrays(1000)
    report = tw.triton.run(add, (8,), x, y, z, 1000, BLOCK=128, target=target, schedules=2)
    assert report.is_clean
    np.testing.assert_array_equal(z, x + y)


def test_a_missing_mask_is_found_with_the_line() -> None:
    x, y, z = arrays(1000)
    with pytest.raises(tw.SanitizerError) as caught:
        tw.triton.run(add_unmasked, (8,), x, y, z, 1000, BLOCK=128)
    found = caught.value.report.findings
    assert {own.code for own in found} == {"E1010"}
    assert all("test_sanitize_triton.py" in str(own.source) for own in found)


def test_sums_of_blocks_need_atomics() -> None:
    x, _, _ = arrays(512)
    out = np.zeros(1, np.float32)
    assert tw.triton.run(total, (4,), x, out, 512, BLOCK=128).is_clean
    np.testing.assert_allclose(out, x.sum(), rtol=1e-4)
    with pytest.raises(tw.SanitizerError, match="E1017"):
        tw.triton.run(total_by_stores, (4,), x, np.zeros(1, np.float32), 512, BLOCK=128)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_a_product_by_tensor_cores(target: str) -> None:
    source = np.random.default_rng(2)
    a, b = (source.integers(-3, 4, (64, 64)).astype(np.float16) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    report = tw.triton.run(product, (2, 1), a, b, c, 64, 64, 64, BM=32, BN=64, BK=32, target=target)
    assert report.is_clean
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@triton.jit
def turned(x, y, N: tl.constexpr, B: tl.constexpr):
    of_x = tl.make_tensor_descriptor(x, [N, N], [N, 1], [B, B])
    of_y = tl.make_tensor_descriptor(y, [N, N], [N, 1], [B, B])
    row, column = tl.program_id(0) * B, tl.program_id(1) * B
    of_y.store([column, row], of_x.load([row, column]).T)


def test_descriptors_have_the_scratch_memory_in_which_kernels_make_them() -> None:
    x, y = np.arange(64 * 64, dtype=np.float32).reshape(64, 64), np.zeros((64, 64), np.float32)
    assert tw.triton.run(turned, (2, 2), x, y, N=64, B=32, target="sm_90a", schedules=2).is_clean
    assert (y == x.T).all()


def test_the_first_configuration_of_autotune_is_taken() -> None:
    x, y, z = arrays(256)
    tw.triton.run(tuned_add, lambda meta: (triton.cdiv(256, meta["BLOCK"]),), x, y, z, 256)
    np.testing.assert_array_equal(z, x + y)


def test_launches_in_the_context_run_here() -> None:
    x, y, z = arrays(256)
    with tw.sanitizer(schedules=2) as reports:
        add[(2,)](x, y, z, 256, BLOCK=128)
        tuned_add[lambda meta: (triton.cdiv(256, meta["BLOCK"]),)](x, y, z, 256)
        with pytest.raises(tw.SanitizerError):
            add_unmasked[(2,)](x, y, z[:200], 256, BLOCK=128)
    assert [own.is_clean for own in reports] == [True, True, False]
    np.testing.assert_array_equal(z, x + y)


@pytest.mark.tilewright(schedules=2)
def test_the_mark_of_pytest_runs_launches_here() -> None:
    x, y, z = arrays(256)
    add[(2,)](x, y, z, 256, BLOCK=128)
    np.testing.assert_array_equal(z, x + y)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tw.triton.run(add, (1,), *arrays(8), 8), TypeError, "BLOCK"),
        (lambda: tw.triton.run(add, (1,), *arrays(8), 8, BLOCK=8, other=1), TypeError, "other"),
        (lambda: tw.triton.run(add, (0,), *arrays(8), 8, BLOCK=8), ValueError, "grid"),
        (lambda: tw.triton.run(print, (1,)), TypeError, "triton.jit"),
        (lambda: tw.triton.run(add, (1,), *arrays(8), "8", BLOCK=8), TypeError, "str"),
        (lambda: tw.triton.run(add, (1,), *arrays(8), 8, BLOCK=8, target="H200"), ValueError, "sm_80"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@gluon.jit
def placed_copy(x, y, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(y + i, gl.load(x + i, mask=i < n), mask=i < n)


@gluon.jit
def fill(tiles, full):
    tiles.store(gl.full([128], 3, gl.int32, layout=gl.BlockedLayout([1], [32], [1], [0])))
    mbarrier.arrive(full, count=1)


@gluon.jit
def drain(y, tiles, full, WAITS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    if WAITS:
        mbarrier.wait(full, 0)
    gl.store(y + gl.arange(0, 128, layout=layout), tiles.load(layout))


@gluon.jit
def handed_over(y, WAITS: gl.constexpr):
    # One warp of its own writes what the four others read.
    tiles = gl.allocate_shared_memory(gl.int32, [128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    full = mbarrier.allocate_mbarrier()
    mbarrier.init(full, count=1)
    gl.warp_specialize([(drain, (y, tiles, full, WAITS)), (fill, (tiles, full))], [1], [24])


def test_kernels_of_gluon_run_with_all_their_warps() -> None:
    x, y, _ = arrays(1000)
    assert tw.triton.run(placed_copy, (4,), x, y, 1000, BLOCK=256).is_clean
    np.testing.assert_array_equal(x, y)
    out = np.zeros(128, np.int32)
    assert tw.triton.run(handed_over, (1,), out, WAITS=True, schedules=3).is_clean
    assert (out == 3).all()
    with pytest.raises(tw.SanitizerError):
        tw.triton.run(handed_over, (1,), np.zeros(128, np.int32), WAITS=False)
