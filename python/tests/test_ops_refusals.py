"""What operators refuse, in place results, and random shapes beside formulas of PyTorch in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from operator_calls import CALLS, NARROW, Call, results

torch: Any = pytest.importorskip("torch")

from tilewright import ops  # noqa: E402

ALL = {**CALLS, **NARROW}
_source = np.random.default_rng(5)


def _floats(call: Call, kind: Any) -> list[Any]:
    tensors = [torch.from_numpy(own.copy()) for own in call.arrays]
    return [own.to(kind) if own.is_floating_point() else own for own in tensors]


@pytest.mark.parametrize("name", [name for name in ALL if name != "expert_places"])
def test_numbers_with_which_no_operator_computes_are_refused(name: str) -> None:
    for kind in (torch.complex64, torch.int64, torch.bool):
        with pytest.raises(ValueError, match="real numbers|integers|type"):
            ALL[name].of(*_floats(ALL[name], kind))


@pytest.mark.parametrize("name", ALL)
def test_arrays_of_two_packages_or_without_contents_are_refused(name: str) -> None:
    tensors = [torch.from_numpy(own.copy()) for own in ALL[name].arrays]
    if len(tensors) == 1 or name in ("int4_linear", "scaled_linear"):
        return
    with pytest.raises(TypeError, match="one package"):
        ALL[name].of(tensors[0], *(own.numpy() for own in tensors[1:]))
    if name not in ("adamw", "append_to_cache"):
        with pytest.raises(ValueError, match="meta"):
            ALL[name].of(tensors[0].to("meta"), *tensors[1:])


@pytest.mark.parametrize("name", CALLS)
def test_types_of_16_bits_are_computed_in_float32(name: str) -> None:
    exact = results(CALLS[name].of(*_floats(CALLS[name], torch.float32)))
    for kind, tolerance in ((torch.float16, 2e-2), (torch.bfloat16, 1e-1)):
        for one, other in zip(results(CALLS[name].of(*_floats(CALLS[name], kind))), exact, strict=True):
            if one is not None:
                size = float(other.double().nan_to_num(posinf=0.0, neginf=0.0).abs().max())
                torch.testing.assert_close(one.double(), other.double(), rtol=tolerance, atol=tolerance * max(1.0, size))


@pytest.mark.parametrize("name", CALLS)
def test_strides_change_nothing(name: str) -> None:
    call = CALLS[name]
    exact = results(call.of(*(own.copy() for own in call.arrays)))
    backwards = [np.ascontiguousarray(own[::-1])[::-1] for own in call.arrays]
    apart = [torch.from_numpy(np.repeat(own[..., None], 2, -1))[..., 0] for own in call.arrays]
    for found in (call.of(*backwards), call.of(*apart)):
        for one, other in zip(results(found), exact, strict=True):
            if one is not None:
                np.testing.assert_allclose(np.asarray(one), other, rtol=1e-4, atol=1e-4)


def test_results_go_over_the_arguments() -> None:
    functions: list[Any] = [ops.softmax, ops.log_softmax, ops.silu, ops.rms_norm, ops.layer_norm]
    functions.append(lambda x, **named: ops.dropout(x, 0.5, 3, **named))
    numbers = _source.standard_normal((3, 8)).astype("f4")
    for function in functions:
        exact = function(numbers)
        for on in (None, "interpreter"):
            for make in (np.copy, lambda own: torch.from_numpy(own.copy())):
                x = make(numbers)
                assert function(x, out=x, on=on) is x
                np.testing.assert_allclose(x, exact, rtol=1e-4, atol=1e-5)
        # A part of the memory is the same.
        room = np.zeros(32, "f4")
        x = room[:24].reshape(3, 8)
        x[...] = numbers
        out = room[8:].reshape(3, 8)
        np.testing.assert_allclose(function(x, out=out, on="interpreter"), exact, rtol=1e-4, atol=1e-5)
    square = _source.standard_normal((8, 8)).astype("f2")
    x = square.copy()
    exact = ops.linear(x, x)
    assert np.allclose(ops.linear(x, x, out=x, on="interpreter"), exact, atol=2e-2)


def test_results_that_do_not_fit_are_refused() -> None:
    x = np.ones((3, 8), "f4")
    given, heads = torch.ones(3, 8), np.ones((1, 2, 2, 16), "f4")
    refused: list[tuple[Any, type[Exception], str]] = [
        (lambda: ops.softmax(x, out=np.zeros((3, 8))), ValueError, "float64"),
        (lambda: ops.silu(x, out=np.zeros((8, 3), "f4")), ValueError, r"\(8, 3\)"),
        (lambda: ops.rms_norm(x, out=np.zeros((3, 8), "f2")), ValueError, "float16"),
        (lambda: ops.linear(x, x, out=np.zeros((3, 3))), ValueError, "float64"),
        (lambda: ops.softmax(x, out=given), TypeError, "one package"),
        (lambda: ops.softmax(given.requires_grad_(), out=torch.ones(3, 8)), RuntimeError, "detach"),
        (lambda: ops.softmax(given, on="interpreter"), RuntimeError, "detach"),
        (lambda: ops.linear(given, given, function="x"), RuntimeError, "apply it to the result"),
        (lambda: ops.softmax(torch.ones(3, 8).to_sparse()), TypeError, "strides"),
        (lambda: ops.softmax([1.0]), TypeError, "not list"),
        (lambda: ops.softmax(x.astype(np.longdouble)), ValueError, "real numbers"),
        (lambda: ops.linear(x, x.astype("f2")), ValueError, "float16"),
        (lambda: ops.attention(heads, heads, heads, sinks=np.ones(3, "f4")), ValueError, "one for each head"),
        (lambda: ops.attention_decode(heads, heads, heads, np.ones(1, "i4"), splits=0), ValueError, "parts"),
        (lambda: ops.cross_entropy(np.ones((2, 0), "f4"), np.zeros(2, "i4")), ValueError, "classes"),
    ]
    for wrong, error, text in refused:
        with pytest.raises(error, match=text):
            wrong()


def test_arrays_without_elements_and_of_no_axes() -> None:
    assert ops.softmax(np.zeros((3, 0), "f4")).shape == (3, 0)
    assert ops.rms_norm(np.array(2.0, "f4"), epsilon=0.0) == 1
    q, k = np.ones((1, 2, 3, 16), "f2"), np.ones((1, 2, 0, 16), "f2")
    for on in (None, "interpreter"):
        o, lse = ops.attention(q, k, k, return_lse=True, on=on)
        assert not o.any() and np.isneginf(lse).all()
    assert np.isnan(ops.embedding(np.zeros(2, "i4"), np.zeros((0, 8), "f4"))).all()
    assert torch.equal(ops.embedding(torch.tensor([2, 0], dtype=torch.uint8), torch.eye(3)), torch.eye(3)[[2, 0]])
    weight = torch.zeros((4, 8, 8))
    assert ops.experts(torch.zeros((0, 8)), torch.zeros((0, 4)), weight, weight, weight, 2).shape == (0, 8)
    loss = ops.linear_cross_entropy(torch.zeros((0, 5), requires_grad=True), torch.ones(3, 5, requires_grad=True), torch.zeros(0).long())
    loss.backward()
    assert loss == 0


def _random(*shape: int, kind: str = "f4") -> Any:
    return _source.standard_normal(shape).astype(kind)


@pytest.mark.parametrize("seed", range(6))
def test_kernels_of_random_shapes_are_formulas_of_pytorch_in_float64(seed: int) -> None:
    functional = torch.nn.functional
    rows, length = int(_source.integers(1, 9)), int(_source.integers(1, 150))
    kind, tolerance = [("f4", 1e-4), ("f2", 1e-2)][seed % 2]
    x, up, w, b = _random(rows, length, kind=kind), _random(rows, length, kind=kind), _random(length), _random(length)
    a, g, v, c = (torch.from_numpy(own).double() for own in (x, up, w, b))
    on: Any = {"on": "interpreter"}
    pairs: list[tuple[Any, Any]] = [
        (ops.softmax(x, **on), a.softmax(-1)),
        (ops.log_softmax(x, axis=0, **on), a.log_softmax(0)),
        (ops.rms_norm(x, w, **on), functional.rms_norm(a, (length,), v, 1e-5)),
        (ops.layer_norm(x, w, b, **on), functional.layer_norm(a, (length,), v, c)),
        (ops.swiglu(x, up, **on), functional.silu(a) * g),
        (ops.gelu(x, **on), functional.gelu(a)),
    ]
    d = _random(rows, length, kind=kind)
    a.requires_grad_()
    (slope,) = torch.autograd.grad(a.softmax(-1), a, torch.from_numpy(d).double())
    pairs.append((ops.softmax_backward(x, d, **on), slope))
    classes = _source.integers(0, length, rows)
    loss = functional.cross_entropy(a.detach(), torch.from_numpy(classes), reduction="none")
    pairs.append((ops.cross_entropy_rows(x, classes, **on)[0], loss))
    heads, steps, keys = 2 * int(_source.integers(1, 3)), int(_source.integers(1, 40)), int(_source.integers(40, 70))
    q, k, values = (_random(1, count, each, 24, kind="f2") for count, each in ((heads, steps), (2, keys), (2, keys)))
    wide = [torch.from_numpy(own).double() for own in (q, k, values)]
    exact = functional.scaled_dot_product_attention(*wide, enable_gqa=True)
    np.testing.assert_allclose(np.asarray(ops.attention(q, k, values, **on), "f8"), exact, rtol=1e-2, atol=1e-2)
    for found, formula in pairs:
        np.testing.assert_allclose(np.asarray(found, "f8"), formula.detach(), rtol=tolerance, atol=tolerance)
