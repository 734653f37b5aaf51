"""Kernels of other compilers on arrays of the host: right ones give what NumPy gives, wrong ones are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as tw

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"

# y[i] = a * x[i] + y[i], for n elements.
SAXPY = (
    HEAD
    + """.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n) {
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %d<6>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3; ld.param.u32 %r5, [n];
  setp.ge.u32 %p1, %r4, %r5; @%p1 bra DONE;
  ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y]; mul.wide.u32 %d3, %r4, 4;
  add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;
  ld.param.f32 %f1, [a]; ld.global.f32 %f2, [%d4]; ld.global.f32 %f3, [%d5];
  fma.rn.f32 %f3, %f1, %f2, %f3; st.global.f32 [%d5], %f3;
DONE: ret;
}"""
)

# Each thread writes an element of shared memory, and reads that of another warp.
SHIFT = (
    HEAD
    + """.visible .entry shift(.param .u64 out) {
  .reg .b32 %r<3>; .reg .b64 %d<4>; .shared .align 4 .b8 s[256];
  mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 4; mov.u64 %d2, s; add.s64 %d2, %d2, %d1;
  st.shared.u32 [%d2], %r1; BARRIER xor.b64 %d2, %d2, 128; ld.shared.u32 %r2, [%d2];
  ld.param.u64 %d3, [out]; add.s64 %d3, %d3, %d1; st.global.u32 [%d3], %r2; ret;
}"""
)


@pytest.mark.parametrize("package", ["numpy", "torch"])
def test_a_right_kernel_computes_what_numpy_does(package: str) -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    wanted = 0.5 * x + y
    arrays: tuple[Any, Any] = (x, y)
    if package == "torch":
        torch = pytest.importorskip("torch")
        arrays = (torch.from_numpy(x), torch.from_numpy(y))
    report = tw.sanitize(SAXPY, 8, 128, [*arrays, 0.5, 1000], schedules=3)
    assert report.is_clean and report.schedules == 3 and report.thread_instructions > 3000
    np.testing.assert_array_equal(np.asarray(arrays[1]), wanted)


def test_an_access_out_of_bounds_is_found_with_its_thread() -> None:
    x, y = np.ones(1000, np.float32), np.ones(1000, np.float32)
    with pytest.raises(tw.SanitizerError, match="E1010") as caught:
        tw.sanitize(SAXPY, 8, 128, [x, y, 2.0, 1001])
    (first, *_) = caught.value.report.findings
    assert (first.block, first.warp, first.lane) == ((7, 0, 0), 3, 8)
    assert first.ptx_line is not None


def test_a_race_is_found_and_a_barrier_mends_it() -> None:
    out = np.zeros(64, np.int32)
    with pytest.raises(tw.SanitizerError, match="E1016"):
        tw.sanitize(SHIFT.replace("BARRIER", ""), 1, 64, [out])
    assert tw.sanitize(SHIFT.replace("BARRIER", "bar.sync 0;"), 1, 64, [out]).is_clean
    np.testing.assert_array_equal(out, np.arange(64) ^ 32)


def test_costs_are_counted_line_by_line() -> None:
    # Each thread of a block of 64 reads a column of rows of 32 words, and writes a row.
    text = SHIFT.replace("BARRIER", "bar.sync 0;").replace("mul.wide.u32 %d1, %r1, 4;", "mul.wide.u32 %d1, %r1, 128;")
    text = text.replace("s[256]", "s[8192]").replace("%d2, 128;", "%d2, 4096;")
    out = np.zeros(64 * 32, np.int32)
    assert tw.sanitize(text, 1, 64, [out]).costs is None
    costs = tw.sanitize(text, 1, 64, [out], costs=True).costs
    assert costs is not None
    total = costs.total
    assert (total.sectors, total.least_sectors, total.global_bytes) == (64, 8, 256)
    assert (total.wavefronts, total.least_wavefronts, total.shared_requests) == (128, 4, 4)
    assert costs.pipes["shared"] == 4 and costs.pipes["global"] == 2 and costs.pipes["barrier"] == 2
    assert (costs.read_bytes, costs.written_bytes, costs.in_flight_bytes) == (0, 64 * 32, 0)
    assert sum(own.counts.instructions for own in costs.statements) == total.instructions
    assert sum((own for own in costs.lines().values()), tw.SanitizedCounts()) == total
    (store,) = [own for own in costs.statements if own.instruction == "st.global.u32"]
    assert store.pipe == "global" and store.counts.threads == 64 and store.file is None
    assert "64 (8)" in str(costs) and "PTX line 8" in str(costs)


def test_an_array_that_may_not_be_written_is_an_input() -> None:
    x, y = np.ones(8, np.float32), np.ones(8, np.float32)
    y.flags.writeable = False
    with pytest.raises(tw.SanitizerError):
        tw.sanitize(SAXPY, 1, 32, [x, y, 2.0, 8])
    assert (y == 1).all()


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"args": 3}, ValueError, "4 parameters"),
        ({"entry": "other"}, ValueError, "no entry 'other'"),
        ({"grid": 0}, ValueError, "grid"),
        ({"block": (32, 32, 32)}, ValueError, "threads"),
        ({"number": 1 << 32}, ValueError, "32 bits"),
        ({"number": object()}, TypeError, "object"),
        ({"text": "nonsense"}, ValueError, "PTX"),
        ({"gaps": True}, ValueError, "contiguous"),
        ({"same": True}, ValueError, "share memory"),
        ({"limit": 100}, tw.SanitizerError, "100 instructions"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], error: type[Exception], text: str) -> None:
    x, y = np.ones(64, np.float32), np.ones(64, np.float32)
    if "gaps" in change:
        y = np.ones(128, np.float32)[::2]
    if "same" in change:
        y = x
    args = [x, y, 2.0, change.get("number", 64)][: change.get("args", 4)]
    named = {name: change[name] for name in ("entry", "limit") if name in change}
    with pytest.raises(error, match=text):
        tw.sanitize(change.get("text", SAXPY), change.get("grid", 2), change.get("block", 32), args, **named)


def test_what_a_compiler_gave_is_taken_by_its_ptx() -> None:
    class Compiled:
        """As CuTe DSL gives it: the text is there if it was kept."""

        __module__ = "cutlass.cutlass_dsl.executor"

        def __init__(self, text: str | None) -> None:
            self.__ptx__ = text

    class Stages:
        """As Triton gives it."""

        asm = {"ptx": SAXPY}

    x, y = np.ones(64, np.float32), np.ones(64, np.float32)
    assert tw.sanitize(Compiled(SAXPY), 2, 32, [x, y, 2.0, 64]).is_clean and (y == 3).all()
    assert tw.sanitize(Stages(), 2, 32, [x, y, 2.0, 64]).is_clean and (y == 5).all()
    with pytest.raises(ValueError, match="CUTE_DSL_KEEP_PTX=1"):
        tw.sanitize(Compiled(None), 2, 32, [x, y, 2.0, 64])
    with pytest.raises(TypeError, match="a compiled function of CuTe DSL or Triton, not int"):
        tw.sanitize(3, 2, 32, [])


def test_nvrtc_compiles_what_is_run() -> None:
    pytest.importorskip("nvidia.cuda_nvrtc" if _has("nvidia.cuda_nvrtc") else "nvidia")
    try:
        ptx = tw.cuda.compile('extern "C" __global__ void twice(float* x, int n) {\n int i = blockIdx.x * blockDim.x + threadIdx.x;\n if (i < n) x[i] *= 2;\n}', name="twice.cu")
    except ImportError:
        pytest.skip("NVRTC is not installed")
    x = np.arange(100, dtype=np.float32)
    assert tw.sanitize(ptx, 4, 32, [x, 100]).is_clean
    np.testing.assert_array_equal(x, 2 * np.arange(100))
    with pytest.raises(tw.SanitizerError, match=r"twice.cu:3"):
        tw.sanitize(ptx, 4, 32, [x, 101])
    with pytest.raises(tw.cuda.CompileError, match="undefined"):
        tw.cuda.compile("__global__ void f() { g(); }")


def _has(name: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
