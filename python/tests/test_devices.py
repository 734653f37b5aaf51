# mypy: ignore-errors
"""Launches on devices, by a driver that has none (driver.c) and keeps what it is given: which kernels, grids, streams and arguments."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs a C compiler, on Linux")
def test_launches(tmp_path):
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-o", str(library), str(HERE / "driver.c")], check=True)
    paths = [str(tmp_path), os.environ.get("LD_LIBRARY_PATH", "")]
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(path for path in paths if path), "XDG_CACHE_HOME": str(tmp_path)}
    told = subprocess.run([sys.executable, __file__, str(library)], env=environment, capture_output=True, text=True)
    assert told.returncode == 0, told.stdout + told.stderr


class Dtype:
    def __init__(self, name):
        self.name_in_torch = name

    def __str__(self):
        return f"torch.{self.name_in_torch}"


F32, F64, BF16 = Dtype("float32"), Dtype("float64"), Dtype("bfloat16")


class Tensor:
    """As much of a tensor of PyTorch as is looked at."""

    requires_grad, base, inference, version = False, None, False, 0

    def __init__(self, shape, dtype=F32, strides=None, address=1 << 20, device=0):
        steps = [1]
        for extent in reversed(shape[1:]):
            steps.insert(0, steps[0] * extent)
        self.device = f"cuda:{device}"
        self.shape, self.dtype, self.steps, self.address, self.device_number = shape, dtype, strides or tuple(steps[: len(shape)]), address, device

    def size(self):
        return self.shape

    def stride(self):
        return self.steps

    def data_ptr(self):
        return self.address

    def get_device(self):
        return self.device_number

    def is_neg(self):
        return False

    def is_inference(self):
        return self.inference

    def is_contiguous(self):
        return self.steps == Tensor(self.shape).steps

    @property
    def _base(self):
        return self.base


class Interface:
    """An array by the interface of CuPy and Numba."""

    def __init__(self, shape, address):
        data = {"shape": shape, "typestr": "<f4", "data": (address, False), "strides": None, "version": 3}
        self.__cuda_array_interface__ = data


def again(tw, Tensor, last, driver, stream):
    """A call that is made again launches the same on other addresses; one that differs in anything is planned anew."""
    MiB, half = 1 << 20, Dtype("float16")
    planned = []
    make = tw._native.plan_product
    tw._native.plan_product = lambda *key: planned.append(key) or make(*key)

    def launched(work):
        before = driver.all_launches()
        work()
        return driver.all_launches() - before

    def gemm(at=2, m=128, dtype=half, strides=None, **named):
        d = Tensor((m, 128), named.pop("to", dtype), address=7 * MiB)
        return tw.gpu.gemm(Tensor((m, 128), dtype, strides, address=MiB), Tensor((128, 128), dtype, address=at * MiB), out=d, **named)

    assert launched(gemm) == 1
    first = last(8)
    # Neither a plan nor the interpreter's answer is a launch, of a call that is known either.
    assert launched(lambda: tw.gpu.plan(gemm)) == 0 and len(planned) == 1
    stream.handle += 4096
    assert launched(lambda: gemm(at=3)) == 1 and len(planned) == 1
    second = last(8)
    assert second[:7] == first[:7] and second[7] == stream.handle != first[7]
    calls = tw.gpu._calls[tw.gpu.call_of_gemm(None, False)]
    known = [Tensor((128, 128), half, address=at * MiB) for at in (4, 5, 6)]
    launch = lambda arrays: calls.call(tuple(arrays[:2]), tuple(arrays[2:]))  # noqa: E731
    assert launched(lambda: launch(known)) == 1
    assert last(8)[:8] == second[:8] and last(64)[8:] != second[8:]
    for other in [
        [known[0], known[1], Tensor((128, 128), half, address=6 * MiB + 2)],
        [known[0], known[1], Tensor((128, 128), half, (1, 128), address=6 * MiB)],
        [known[0], known[1], Tensor((128, 128), half, address=6 * MiB, device=1)],
        [known[0], Tensor((64, 128), half, address=5 * MiB), known[2]],
        [known[0], Tensor((128, 128), BF16, address=5 * MiB), known[2]],
        [Tensor((128, 128), half, address=at * MiB, device=-1) for at in (4, 5, 6)],
        known[:2],
    ]:
        assert launched(lambda: launch(other)) == 0
    for count, named in enumerate([{"m": 256}, {"dtype": BF16}, {"function": "x * 2"}, {"fast": True}, {"pairs": None, "tf32": True}, {"to": F32}], 2):
        assert launched(lambda: gemm(**named)) == 1 and len(planned) == count, named
        assert launched(lambda: gemm(**named)) == 1 and len(planned) == count, named
    # Rows, whose number is no part of the plan.
    weight = Tensor((300,), address=6 * MiB)
    for rows in (5, 7, 5, 7):
        tw.gpu.rms_norm(Tensor((rows, 300)), weight, out=Tensor((rows, 300), address=5 * MiB))
        assert last(3)[8:11] == [MiB, 6 * MiB, 5 * MiB]
        tw.gpu.reduce(Tensor((rows, 300)), out=Tensor((rows,), address=8 * MiB))
        assert last(2)[8:10] == [MiB, 8 * MiB]
    tw._native.plan_product = make


def without_out(tw, torch, last, driver):
    """Results are made by PyTorch, and workspaces; a call that is made again asks for them alone."""
    MiB, half, made = 1 << 20, Dtype("float16"), []
    torch.float16 = half

    def empty(shape, dtype, device):
        assert str(device) == "cuda:0"
        made.append(Tensor(shape, dtype, address=(100 + len(made)) * MiB))
        return made[-1]

    before, torch.empty, torch.empty_like = torch.empty, empty, lambda like: empty(like.shape, like.dtype, like.device)
    x, weight = Tensor((5, 304)), Tensor((304,), address=2 * MiB)
    a, b = Tensor((128, 128), half), Tensor((64, 128), half, address=2 * MiB)
    deep = Tensor((64, 4096), half), Tensor((64, 4096), half, address=2 * MiB)
    for work, arrays, workspaces in [
        (lambda: tw.gpu.softmax(x), 2, 0),
        (lambda: tw.gpu.softmax(Tensor((2, 3, 304), address=MiB + 4)), 2, 0),
        (lambda: tw.gpu.softmax(Tensor((5, 100), strides=(304, 1))), 2, 0),
        (lambda: tw.gpu.rms_norm(x, weight), 3, 0),
        (lambda: tw.gpu.rms_norm(x), 2, 0),
        (lambda: tw.gpu.layer_norm(x, weight, weight), 4, 0),
        (lambda: tw.gpu.reduce(x, "max"), 2, 0),
        (lambda: tw.gpu.reduce(Tensor((3, 5, 304)), axis=(0, 2)), 2, 0),
        (lambda: tw.gpu.gemm(a, b), None, 0),
        (lambda: tw.gpu.gemm(a, b, function="x + weight", weight=Tensor((64,), half)), None, 0),
        (lambda: tw.gpu.gemm(*deep), None, 1),
    ]:
        results, launches = [], []
        for _ in range(3):
            del made[:]
            all_before, kept = driver.all_launches(), len(tw.gpu._kept)
            results.append(work())
            launches.append(driver.all_launches() - all_before)
            assert len(made) == 1 + workspaces and results[-1] is made[0]
            if arrays is not None:
                assert last(arrays)[8 + arrays - 1] == made[0].address
            if len(results) > 1:
                assert len(tw.gpu._kept) == kept
        assert len(set(launches)) == 1 and launches[0] >= 1
        assert len({(result.shape, result.dtype) for result in results}) == 1
    d, row = tw.gpu.gemm(a, b, keep="row sum"), tw.gpu.gemm(a, b, keep="row sum")
    assert d[0].shape == row[0].shape == (128, 64) and d[1].shape == row[1].shape == (128,)
    torch.empty = before


def without_dispatcher(tw, torch, last, driver):
    """Where PyTorch has the function of its compiler, results are made by it, on the current device alone."""
    MiB, made, current = 1 << 20, [], [0]
    torch.cuda = types.SimpleNamespace(device_count=lambda: 2)

    def note(how, shape, steps, dtype, device):
        assert type(shape) is type(steps) is tuple
        made.append((how, Tensor(shape, dtype, steps, address=(100 + len(made)) * MiB, device=device)))
        return made[-1][1]

    torch._C._cuda_getDevice = lambda: current[0]
    empty_strided = lambda shape, steps, dtype: note("quick", shape, steps, dtype, current[0])  # noqa: E731
    torch._C._dynamo = types.SimpleNamespace(guards=types.SimpleNamespace(_empty_strided_cuda=empty_strided))
    torch.empty_strided = lambda shape, steps, dtype, device: note("usual", shape, steps, dtype, int(str(device)[-1]))
    half, torch.int32 = torch.float16, Dtype("int32")
    for device in (0, 1):
        x = Tensor((6, 2, 304), device=device, address=MiB)
        factors = [Tensor((64, 8192), half, device=device, address=at * MiB) for at in (1, 2)]
        for work, wanted, workspaces in [
            (lambda: tw.gpu.softmax(x), ((6, 2, 304), (608, 304, 1), F32), 0),
            (lambda: tw.gpu.softmax(Tensor((6, 2, 304), strides=(304, 1824, 1), device=device)), ((6, 2, 304), (304, 1824, 1), F32), 0),
            (lambda: tw.gpu.reduce(x, "argmax"), ((6, 2), (2, 1), torch.int32), 0),
            (lambda: tw.gpu.reduce(x, axis=None), ((), (), F32), 0),
            (lambda: tw.gpu.gemm(*factors), ((64, 64), (64, 1), half), 1),
        ]:
            # The current device changes between calls that are made again.
            for current[0] in (0, 1, 0):
                del made[:]
                before = driver.all_launches()
                result = work()
                assert driver.all_launches() > before
                assert [how for how, _ in made] == ["quick" if current[0] == device else "usual"] * (1 + workspaces)
                assert result is made[0][1] and {tensor.device_number for _, tensor in made} == {device}
                assert (result.shape, result.steps, result.dtype) == wanted, (result.shape, result.steps, result.dtype)
    # The only device is the current one, and is not asked for.
    torch.cuda.device_count, torch._C._cuda_getDevice = (lambda: 1), None
    for _ in range(2):
        tw.gpu.softmax(Tensor((3, 304)))
        assert made[-1][0] == "quick"
    del torch._C._cuda_getDevice, torch._C._dynamo, torch.empty_strided, torch.cuda


def repeated(tw, torch, last, driver):
    """The quick way of operators: an equal call on ordinary tensors is launched and recorded; any other is left to the usual way."""
    MiB, half, made = 1 << 20, torch.float16, []

    def quick(shape, steps, dtype):
        made.append(Tensor(shape, dtype, steps, address=(100 + len(made)) * MiB))
        return made[-1]

    current = [0]
    torch.cuda = types.SimpleNamespace(device_count=lambda: 2)
    torch._C._cuda_getDevice = lambda: current[0]
    torch._C._dynamo = types.SimpleNamespace(guards=types.SimpleNamespace(_empty_strided_cuda=quick))
    torch.empty_strided = lambda shape, steps, dtype, device: quick(shape, steps, dtype)
    repeat = tw._native.repeat_call
    x, softmax, gemm = Tensor((6, 304)), ("softmax", -1), tw.gpu.call_of_gemm(None, False)
    tw.gpu.softmax(x)
    matrix, bias = Tensor((64, 128), half, address=2 * MiB), Tensor((64,), half, address=3 * MiB)
    tw.gpu.gemm(Tensor((6, 128), half), matrix)
    tw.gpu.gemm(Tensor((6, 128), half), matrix, function="x + bias", bias=bias)
    tw.gpu.gemm(Tensor((6, 128), half), matrix, function="x + bias", bias=Tensor((1,), half, address=3 * MiB))

    def launched(*call, **named):
        before = driver.all_launches()
        found = repeat(tw.gpu._calls, *call, **named)
        return found, driver.all_launches() - before

    found, count = launched(softmax, (Tensor((6, 304), address=5 * MiB), None), None, None)
    assert count == 1 and found is made[-1] and found.shape == (6, 304) and last(2)[8:10] == [5 * MiB, found.address]
    # Gradients are recorded by what is given for that, and by nothing else.
    x.requires_grad = True
    assert launched(softmax, (x,), None, None) == (None, 0)
    told = []
    found, count = launched(softmax, (x,), lambda *all: told.append(all) or "recorded", (x, -1))
    assert (found, count) == ("recorded", 1) and told == [((made[-1],), x, -1)]
    torch._C._are_functorch_transforms_active = lambda: True
    torch.state["grad"] = False
    assert launched(softmax, (x,), None, None)[1] == 1
    torch.state["grad"], x.requires_grad = True, False
    del torch._C._are_functorch_transforms_active
    # Other keys, layouts and devices, tensors of other kinds, and calls that are recorded to be shown.
    for call, arrays in [
        (("softmax", 0), (x,)),
        (softmax, (Tensor((7, 304)),)),
        (softmax, (Tensor((6, 304), address=MiB + 4),)),
        (softmax, (Tensor((6, 304), device=1),)),
        (softmax, (Tensor((6, 304), device=-1),)),
        (softmax, (type("Other", (Tensor,), {})((6, 304)),)),
        (softmax, (Interface((6, 304), MiB),)),
    ]:
        assert launched(call, arrays, None, None) == (None, 0)
    assert tw._record.record(lambda: launched(softmax, (x,), None, None), (), {})[0] == (None, 0)
    assert launched(softmax, (x,), None, None)[1] == 1
    # Products of rows: the leading axes are those of the result.
    for shape, strides, result in [
        ((2, 3, 128), None, ((2, 3, 64), (192, 64, 1))),
        ((1, 6, 128), (5, 128, 1), ((1, 6, 64), (384, 64, 1))),
        ((2, 3, 128), (384, 128, 1), ((2, 3, 64), (192, 64, 1))),
        ((2, 3, 128), (400, 128, 1), None),
        ((3, 2, 128), (128, 384, 1), None),
        ((128,), None, None),
        ((), (), None),
    ]:
        found, count = launched(gemm, (Tensor(shape, half, strides), matrix, None), None, None, by_rows=True)
        assert count == (result is not None) and (found is None or (found.shape, found.steps) == result), (shape, strides)
    with_bias = tw.gpu.call_of_gemm("x + bias", False, "bias")
    rows = Tensor((2, 3, 128), half)
    assert launched(with_bias, (rows, matrix, bias), None, None, by_rows=True)[0].shape == (2, 3, 64)
    assert launched(with_bias, (rows, matrix, Tensor((1,), half, address=3 * MiB)), None, None, by_rows=True) == (None, 0)
    # What is given is written, and marked, unless it shares memory with an array.
    tw.gpu.softmax(x, out=Tensor((6, 304), address=5 * MiB))
    bytes_of_x = 6 * 304 * 4
    for at, count in ((7 * MiB, 1), (MiB + bytes_of_x, 1), (MiB + bytes_of_x - 16, 0), (MiB, 0), (MiB - bytes_of_x, 1), (MiB - bytes_of_x + 16, 0)):
        out = Tensor((6, 304), address=at)
        assert launched(softmax, (x,), None, None, out=out) == (out if count else None, count) and out.version == count
        assert not count or last(2)[8:10] == [MiB, at]
    out = Tensor((6, 304), address=7 * MiB)
    for other in (Tensor((6, 304), BF16, address=7 * MiB), Tensor((6, 304), strides=(308, 1), address=7 * MiB), Tensor((6, 304), address=7 * MiB, device=1)):
        assert launched(softmax, (x,), None, None, out=other) == (None, 0) and other.version == 0
    for own in (x, out):
        own.requires_grad = True
        assert launched(softmax, (x,), lambda *all: None, (x, -1), out=out) == (None, 0)
        own.requires_grad = False
    for out.base, out.inference, what in ((Tensor((1,)), False, "view of a tensor"), (None, True, "inference")):
        if out.base is not None:
            out.base.requires_grad = True
        try:
            launched(softmax, (x,), None, None, out=out)
        except RuntimeError as error:
            assert what in str(error) and out.version == 0
        else:
            raise AssertionError("not refused")
    # A result of a product has the leading axes of its rows, and their type or f32.
    for of in (half, F32, BF16):
        tw.gpu.gemm(Tensor((6, 128), half), matrix, out=Tensor((6, 64), of, address=5 * MiB))
    for shape, of, wanted in [
        ((2, 3, 64), half, 1),
        ((2, 3, 64), F32, 1),
        ((2, 3, 64), BF16, 0),
        ((3, 2, 64), half, 0),
        ((6, 64), half, 0),
        ((2, 3, 32), half, 0),
    ]:
        out = Tensor(shape, of, address=5 * MiB)
        assert launched(gemm, (rows, matrix, None), None, None, out=out, by_rows=True) == (out if wanted else None, wanted), shape
    out = Tensor((6, 64), half, address=5 * MiB)
    assert launched(gemm, (Tensor((6, 128), half), matrix, None), None, None, out=out, by_rows=True) == (out, 1)
    # On another device than the current one the usual way allocates.
    current[0], viewed = 1, []
    Tensor.view = lambda tensor, *shape: viewed.append(shape) or tensor
    assert launched(gemm, (rows, matrix, None), None, None, by_rows=True) == (made[-1], 1) and viewed == [(2, 3, -1)]
    del Tensor.view, torch._C._cuda_getDevice, torch._C._dynamo, torch.empty_strided, torch.cuda


def gradients(tw, torch, kernel, driver):
    """The rules of PyTorch, by a stand-in of it: what requires grad is refused while gradients are recorded, and what is written is marked."""
    MiB, state = 1 << 20, torch.state
    x, y, weight = Tensor((5, 300)), Tensor((5, 300), address=5 * MiB), Tensor((300,), address=6 * MiB)
    a, b, c = (Tensor((50, 260), address=at * MiB) for at in (1, 2, 3))
    works = [
        (lambda: tw.gpu.softmax(x, out=y), [x], [y]),
        (lambda: tw.gpu.rms_norm(x, weight, out=y), [x, weight], [y]),
        (lambda: tw.gpu.relayout(x, y), [x], [y]),
        (lambda: kernel(a, b, c), [a, b], [c]),
    ]

    def refused(work, what):
        before = driver.all_launches()
        try:
            work()
        except RuntimeError as error:
            assert what in str(error), error
        else:
            raise AssertionError("not refused")
        assert driver.all_launches() == before

    for work, reads, writes in works:
        # Twice, for what is made again is known.
        for _ in range(2):
            before = [tensor.version for tensor in (*reads, *writes)]
            work()
            assert [tensor.version for tensor in reads] == before[: len(reads)]
            assert all(tensor.version > old for tensor, old in zip(writes, before[len(reads) :]))
        for tensor in (*reads, *writes):
            tensor.requires_grad = True
            refused(work, "requires grad")
            state["grad"] = False
            work()
            state["grad"], tensor.requires_grad = True, False
        for tensor in writes:
            tensor.base = Tensor((1,))
            tensor.base.requires_grad = True
            refused(work, "view of a tensor that requires grad")
            tensor.base, tensor.inference = None, True
            refused(work, "inference")
            state["inference"] = True
            work()
            state["inference"], tensor.inference = False, False
    # Arrays that do not change.
    immutable = type("ArrayImpl", (Interface,), {"__module__": "jaxlib._jax"})((5, 300), 5 * MiB)
    for work in (lambda: tw.gpu.softmax(x, out=immutable), lambda: tw.gpu.softmax(x, out=immutable)):
        try:
            work()
        except tw.KernelError as error:
            assert "may only be read" in str(error)
        else:
            raise AssertionError("an array of JAX was written")
    # Nothing is launched over nothing.
    before = driver.all_launches()
    tw.gpu.softmax(Tensor((0, 300)), out=Tensor((0, 300)))
    kernel(*(Tensor((0, 260)) for _ in range(3)))
    assert driver.all_launches() == before


def forked(tw, kernel, arrays):
    """The driver does not work in a process that is forked after it was opened; the parent goes on."""
    calls = [lambda: kernel(*arrays), tw.gpu.device_count, lambda: tw.kernels.named("softmax").bench(M=8)]
    child = os.fork()
    if child == 0:
        codes = []
        for call in calls:
            try:
                call()
            except tw.GpuError as error:
                codes.append((error.code, "spawn" in (error.help or "")))
            except BaseException as error:
                codes.append(error)
            else:
                codes.append(None)
        print([str(code) for code in codes], flush=True)
        os._exit(0 if codes == [("E0821", True)] * len(calls) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    kernel(*arrays)


def main(library):
    stream = threading.local()
    torch = types.ModuleType("torch")
    torch.Tensor = Tensor
    torch.float32 = F32
    # Workspaces.
    torch.empty = lambda shape, dtype, device: Tensor(shape, dtype, address=64 << 20)
    torch.state = {"grad": True, "inference": False}
    torch.is_grad_enabled = lambda: torch.state["grad"]
    torch.is_inference_mode_enabled = lambda: torch.state["inference"]

    def increment_version(tensor):
        tensor.version += 1

    torch.autograd = types.SimpleNamespace(graph=types.SimpleNamespace(increment_version=increment_version))
    torch._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: getattr(stream, "handle", 0) + device)
    sys.modules["torch"] = torch

    import tilewright as tw
    from page_kernels import tiled_add, tiled_gemm

    driver = ctypes.CDLL(library)
    driver.last_launch.restype = ctypes.POINTER(ctypes.c_uint64)
    driver.all_launches.restype = ctypes.c_uint64

    def last(count):
        numbers = driver.last_launch()
        return [numbers[at] for at in range(8 + count)]

    MiB = 1 << 20
    a, b, c = (Tensor((50, 260), address=at * MiB) for at in (1, 2, 3))
    stream.handle = 4096
    tiled_add(a, b, c)
    grid, block, at = (2, 4, 1), (256, 1, 1), [MiB, 2 * MiB, 3 * MiB]
    assert last(3) == [*grid, *block, 0, 4096, *at], last(3)
    # Another address and another stream, of the same shape; then another shape.
    stream.handle = 8192
    tiled_add(a, Tensor((50, 260), address=7 * MiB), c)
    assert last(3)[7:] == [8192, MiB, 7 * MiB, 3 * MiB]
    tiled_add(*(Tensor((1, 4), address=at * MiB) for at in (1, 2, 3)))
    assert last(0)[:3] == [1, 1, 1]
    tiled_add[2, 4](a, b, c)
    # By the interface of CuPy.
    tiled_add(*(Interface((50, 260), at * MiB) for at in (1, 2, 3)))
    assert last(3) == [*grid, *block, 0, 8192, *at]
    # Shared memory is asked for, and B is contiguous along N.
    tiled_gemm(Tensor((150, 37)), Tensor((140, 37), strides=(1, 140), address=8 * MiB), Tensor((150, 140), address=9 * MiB))
    assert last(0)[:7] == [2, 2, 1, 256, 1, 1, 8192]

    @tw.jit(x=tw.InOut("bf16", "N{div=64}:1"), factor=tw.Scalar("f32"), count=tw.Scalar("i32"), threads=64)
    def scaled(x, factor, count):
        part = x.local_tile(64, tw.block("x")).compose("(64,1):(1,0)")[tw.thread, None]
        part.store((part.load().to("f32") * factor * count.to("f32")).to("bf16"))

    x = Tensor((640,), BF16)
    for factor, bits in ((0.5, 0x3F000000), (-2.0, 0xC0000000)):
        scaled(x, factor, -3)
        given = set(last(3)[9:])
        assert {bits, 0xFFFFFFFD} <= given, given
    y = tw.gpu.softmax(Tensor((5, 300)), out=Tensor((5, 300), address=5 * MiB))
    assert y.address == 5 * MiB and last(2)[8:10] == [MiB, 5 * MiB]
    # Memory that begins anywhere: accesses are narrower, and of relayouts it is known from a
    # multiple of 16 bytes on.
    tw.gpu.softmax(Tensor((5, 300), address=MiB + 4), out=Tensor((5, 300), address=5 * MiB))
    assert last(2)[8:10] == [MiB + 4, 5 * MiB]
    tw.gpu.softmax(Tensor((5, 304), BF16), out=Tensor((5, 304), BF16, address=5 * MiB + 2))
    assert last(2)[8:10] == [MiB, 5 * MiB + 2]
    weight = Tensor((300,), address=6 * MiB + 8)
    tw.gpu.layer_norm(Tensor((5, 300)), weight, weight, out=Tensor((5, 300), address=5 * MiB))
    assert last(4)[8:12] == [MiB, 6 * MiB + 8, 6 * MiB + 8, 5 * MiB]
    for axis, results in ((0, 300), (1, 5)):
        tw.gpu.reduce(Tensor((5, 300), address=MiB + 12), axis=axis, out=Tensor((results,), address=5 * MiB + 4))
        assert last(2)[8:10] == [MiB + 12, 5 * MiB + 4]
    tw.gpu.relayout(Tensor((300, 40), strides=(1, 300), address=MiB + 4), Tensor((300, 40), address=5 * MiB + 8))
    assert last(2)[8:10] == [MiB, 5 * MiB]
    again(tw, Tensor, last, driver, stream)
    without_out(tw, torch, last, driver)
    without_dispatcher(tw, torch, last, driver)
    repeated(tw, torch, last, driver)
    gradients(tw, torch, tiled_add, driver)
    # Products with pairs, with what is kept, with scales.
    half, e4m3 = Dtype("float16"), Dtype("float8_e4m3fn")
    before = driver.all_launches()
    a, b = Tensor((64, 128), half), Tensor((48, 128), half, address=2 * MiB)
    tw.gpu.gemm(a, b, pairs="halves", function="silu(x) * y", out=Tensor((64, 24), half, address=3 * MiB))
    outs = Tensor((64, 48), half, address=3 * MiB), Tensor((64,), address=4 * MiB)
    kept = len(tw.gpu.plan(tw.gpu.gemm, a, b, keep="row max abs(d)", out=outs).launches)
    assert tw.gpu.gemm(a, b, keep="row max abs(d)", out=outs) == outs
    factors = Tensor((64, 256), e4m3), Tensor((128, 256), e4m3, address=2 * MiB)
    scales = Tensor((64, 2), address=4 * MiB + 4), Tensor((1, 2), address=5 * MiB)
    tw.gpu.gemm(*factors, scales=scales, out=Tensor((64, 128), BF16, address=3 * MiB))
    assert driver.all_launches() == before + kept + 2
    a, b, c = (Tensor((50, 260), address=at * MiB) for at in (1, 2, 3))
    assert tw.gpu.device_name(1) == "imitation 1"
    forked(tw, tiled_add, (a, b, c))

    before = driver.all_launches()
    for what, raised, told in [
        (lambda: tiled_add(a, b, Tensor((50, 260), device=1)), TypeError, "on device 1"),
        (lambda: tiled_add(a, b, Tensor((50, 260), device=-1)), TypeError, "on the host"),
        (lambda: tiled_add(a, b, Tensor((50, 260), F64)), tw.KernelError, "f64"),
        (lambda: tiled_add(a, b, Tensor((50, 260), strides=(1, 50))), tw.KernelError, "lies as"),
        (lambda: tiled_add(a, b, Tensor((50, 260), strides=(-260, 1))), tw.KernelError, "lies as"),
        (lambda: tiled_add(a, b, a), tw.GpuError, "E0815"),
        (lambda: tiled_add(a, b, Tensor((50, 260), address=3 * MiB + 4)), tw.GpuError, "E0813"),
        (lambda: tiled_add(*(Tensor((4, 6), address=at * MiB) for at in (1, 2, 3))), tw.KernelError, "N"),
        (lambda: tiled_add[2, 5](a, b, c), tw.KernelError, "asked for"),
        (lambda: tiled_add(a, b, None), TypeError, "expected an array"),
        (lambda: tiled_add(a, b, Tensor((50, 260), device=7)), TypeError, "device 7"),
        (lambda: tiled_add(*(Tensor((50, 260), device=7) for _ in range(3))), tw.GpuError, "E0803"),
        (lambda: scaled(x, 1.0, 1 << 40), ValueError, "no number of type i32"),
        (lambda: scaled(x, 1.0), TypeError, "misses its argument 'count'"),
        (lambda: tw.gpu.softmax(a, out=Tensor((260, 50))), ValueError, "out is (260, 50)"),
        (lambda: tw.gpu.rms_norm(a, Tensor((50,))), ValueError, "weight"),
        (lambda: tw.gpu.reduce(a, out=Tensor((260,))), ValueError, "out is"),
        (lambda: tw.gpu.softmax(Tensor((5, 300), device=-1), out=Tensor((5, 300), device=-1)), TypeError, "interpreter"),
    ]:
        try:
            what()
        except raised as error:
            assert told in str(error), error
        else:
            raise AssertionError(f"{told}: not refused")
    assert driver.all_launches() == before

    # Threads with streams and shapes of their own, at once.
    failures = []

    def work(number):
        try:
            stream.handle = 64 * (number + 1)
            for turn in range(200):
                shape = (16 * (1 + turn % 5), 4 * (number + 1))
                tiled_add(*(Tensor(shape, address=at * MiB) for at in (1, 2, 3)))
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == [] and driver.all_launches() == before + 800


if __name__ == "__main__":
    main(sys.argv[1])
