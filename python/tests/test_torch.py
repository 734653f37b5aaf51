# mypy: ignore-errors
"""PyTorch's own rules for tensors that kernels read and write. A stand-in for it, without PyTorch, is in test_devices.py."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")
HERE = {"on": "interpreter"}


@tw.jit(x=tw.Input("f32", "N{div=64}:1"), y=tw.Output("f32", "N:1"), threads=64)
def doubled(x, y):
    x, y = (t.local_tile(64, tw.block("x"))[tw.thread,] for t in (x, y))
    y.store(2.0 * x.load())


@tw.tile(x=tw.Input("f32", "N:1"), y=tw.Output("f32", "N:1"), grid="ceil(N/64)")
def tripled(x, y):
    at = (tw.tile.block.x,)
    y.store(at, 3.0 * x.load((64,), at))


def calls(x, y, weight):
    """Calls that read x and write y, both (2,64)."""
    flat = x.view(-1), y.view(-1)
    return {
        "softmax": lambda: tw.gpu.softmax(x, out=y, **HERE),
        "rms_norm": lambda: tw.gpu.rms_norm(x, weight, out=y, **HERE),
        "layer_norm": lambda: tw.gpu.layer_norm(x, weight, weight, out=y, **HERE),
        "relayout": lambda: tw.gpu.relayout(x, y, **HERE),
        "reduce": lambda: tw.gpu.reduce(x, axis=(), out=y, **HERE),
        "gemm": lambda: tw.gpu.gemm(x, weight.expand(64, 64), out=y, **HERE),
        "jit": lambda: doubled(*flat),
        "tile": lambda: tripled(*flat),
    }


NAMES = list(calls(torch.zeros(2, 64), torch.zeros(2, 64), torch.ones(64)))


@pytest.mark.parametrize("name", NAMES)
def test_gradients_do_not_vanish(name):
    for part in range(2):
        tensors = [torch.zeros(2, 64), torch.zeros(2, 64)]
        tensors[part].requires_grad_()
        work = calls(*tensors, torch.ones(64))[name]
        with pytest.raises(RuntimeError, match=r"requires grad.*torch.no_grad\(\)"):
            work()
        for mode in (torch.no_grad(), torch.inference_mode()):
            with mode:
                before = tensors[1]._version
                calls(*tensors, torch.ones(64))[name]()
                assert tensors[1]._version > before


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_marked(name):
    x, y = torch.ones(2, 64), torch.ones(2, 64)
    scale = torch.ones(2, 64, requires_grad=True)
    saved = (scale * y).sum()
    before = x._version, y._version
    calls(x, y, torch.ones(64))[name]()
    assert x._version == before[0] and y._version > before[1]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.backward()


def test_results_of_no_gradient():
    x = torch.randn(3, 64, requires_grad=True)
    for refused in (
        lambda: tw.gpu.softmax(x, **HERE),
        lambda: tw.gpu.rms_norm(torch.zeros(2, 64), x[0], **HERE),
        lambda: tw.gpu.reduce(x, **HERE),
        lambda: tw.gpu.gemm(x.detach(), x, **HERE),
        lambda: tw.gpu.gemm(x.detach(), x.detach(), function="x + bias", bias=x[0, :3], **HERE),
        lambda: tw.gpu.softmax(x[:0], **HERE),
    ):
        with pytest.raises(RuntimeError, match="requires grad"):
            refused()
    assert torch.allclose(tw.gpu.softmax(x.detach(), **HERE), torch.softmax(x.detach(), 1))
    with torch.no_grad():
        y = tw.gpu.softmax(x, **HERE)
    assert not y.requires_grad and torch.allclose(y, torch.softmax(x, 1))
    # What is made of a parameter is no parameter.
    with torch.no_grad():
        assert type(tw.gpu.softmax(torch.nn.Parameter(x), **HERE)) is torch.Tensor


def test_views_of_tensors_that_require_gradients():
    leaf = torch.zeros(2, 64, requires_grad=True)
    with torch.no_grad():
        view = leaf.view(2, 64)
    with pytest.raises(RuntimeError, match="requires grad"):
        tw.gpu.softmax(torch.zeros(2, 64), out=view, **HERE)
    with torch.no_grad():
        tw.gpu.softmax(torch.zeros(2, 64), out=view, **HERE)
    assert leaf._version == 1


def test_tensors_of_inference_mode():
    with torch.inference_mode():
        x, y = torch.zeros(2, 64), torch.zeros(2, 64)
        tw.gpu.softmax(x, out=y, **HERE)
    assert torch.allclose(tw.gpu.softmax(y, **HERE), torch.full((2, 64), 1 / 64))
    for name, work in calls(x, y, torch.ones(64)).items():
        with pytest.raises(RuntimeError, match="inference"):
            work()


def test_tensors_of_the_package_on_those_of_pytorch():
    x = torch.ones(4, 6)
    scale = torch.ones(4, 6, requires_grad=True)
    ones = tw.Tensor(np.ones((4, 6), np.float32))
    works = [
        lambda t: t.fill(2),
        lambda t: tw.copy(ones, t),
        lambda t: t.__setitem__((1, 2), 5.0),
        lambda t: t.__setitem__((slice(1, 3), slice(None)), 5.0),
        lambda t: tw.transform(lambda a: a + 1, ones, out=t),
        lambda t: tw.gemm(tw.Tensor(np.ones((4, 3), np.float32)), tw.Tensor(np.ones((6, 3), np.float32)), t),
        lambda t: tw.gpu.relayout(ones, t, **HERE),
    ]
    for work in works:
        saved = (scale * x).sum()
        t = tw.Tensor(x)
        t.sum(), t[1, 2], t.numpy(), tw.transform(lambda a: a, t)
        before = x._version
        work(t)
        assert x._version > before
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            saved.backward()
    with torch.inference_mode():
        t = tw.Tensor(torch.zeros(4, 6))
    for work in works:
        with pytest.raises(RuntimeError, match="inference"):
            work(t)


def test_tensors_that_are_negated_later():
    x = torch.complex(torch.ones(4, 16), torch.ones(4, 16)).conj().imag
    assert x.is_neg()
    for work in (lambda: tw.Tensor(x), lambda: tw.gpu.relayout(x, torch.zeros(4, 16), **HERE), lambda: doubled(x.reshape(-1), torch.zeros(64))):
        with pytest.raises(RuntimeError, match="resolve_neg"):
            work()
    assert tw.Tensor(x.resolve_neg())[0, 0] == -1


def test_mesh():
    alone, mesh = lambda: tw.mesh.Processes(0, 1, "127.0.0.1", 29500), tw.mesh.Mesh("tp=1")
    rows, columns = mesh.layout("(2,3):(3,1)"), mesh.layout("(2,3):(1,2)")
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    with pytest.raises(tw.LayoutError, match="requires grad"):
        tw.mesh.reshard(x, rows, columns, alone())
    assert torch.equal(tw.mesh.reshard(x.detach(), rows, columns, alone()), x.detach())


def test_empty_tensors_and_strides():
    x = torch.zeros(0, 3)
    assert torch.from_dlpack(tw.Tensor(x)).shape == (0, 3) and tw.gpu.softmax(x, **HERE).shape == (0, 3)
    t = torch.from_dlpack(tw.Tensor(np.zeros((1, 3, 1, 4, 1), np.float32)))
    assert t.stride() == (12, 4, 4, 1, 1)
    odd = torch.arange(64.0).as_strided((1, 64), (999, 1))
    assert torch.allclose(tw.gpu.softmax(odd, **HERE), torch.softmax(odd, 1))
    assert tw.Tensor(odd).stride == (64, 1)


def test_nan_is_as_in_pytorch():
    source = np.random.default_rng(3)
    x = torch.from_numpy(source.standard_normal((6, 5, 40), dtype=np.float32))
    x[1, 2, 7] = x[1, 2, 30] = x[3, :, 4] = x[5] = torch.nan
    x[0, 1] = -torch.inf
    x[0, 2, 3] = torch.inf
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        y = x.to(dtype)
        for axis in (0, 1, 2):
            assert torch.equal(tw.gpu.reduce(y, "argmax", axis=axis, **HERE), y.argmax(axis).int())
            assert torch.allclose(tw.gpu.reduce(y, "max", axis=axis, **HERE), y.amax(axis), equal_nan=True)
        assert tw.gpu.reduce(y, "argmax", axis=None, **HERE) == y.argmax()
        assert torch.allclose(tw.gpu.softmax(y, **HERE), torch.softmax(y, 2), equal_nan=True, rtol=1e-2)
