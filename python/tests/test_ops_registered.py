"""Every function of `tilewright.ops` is operators of PyTorch and of JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from operator_calls import CALLS, NARROW, Call, exact, is_every_function_called, results

torch: Any = pytest.importorskip("torch")

import tilewright.torch  # noqa: E402
from tilewright import ops  # noqa: E402

ALL = {**CALLS, **NARROW}


def test_every_function_has_a_call_or_a_reason() -> None:
    assert is_every_function_called()


def _tensors(call: Call, dtype: Any = None, requires_grad: bool = False) -> list[Any]:
    made = [torch.from_numpy(own.copy()) for own in call.arrays]
    if dtype is not None:
        made = [own.to(dtype) if own.is_floating_point() else own for own in made]
    return [own.requires_grad_(requires_grad and at in call.by) for at, own in enumerate(made)]


def _close(found: Any, correct: Any, tolerance: float = 1e-4) -> None:
    for one, other in zip(results(found), results(correct), strict=True):
        if one is None:
            assert other is None
            continue
        one, other = (np.asarray(own.detach().double() if isinstance(own, torch.Tensor) else own, "f8") for own in (one, other))
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ALL)
def test_pytorch_compiles_a_call_to_registered_operators(name: str) -> None:
    call = ALL[name]
    found: set[str] = set()

    def backend(graph: Any, inputs: Any) -> Any:
        found.update(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
        return graph

    tensors = _tensors(call)
    compiled = torch.compile(call.of, fullgraph=True, backend=backend)(*tensors)
    assert any(own.startswith("tilewright.") for own in found), found
    eager = call.of(*tensors)
    _close(compiled, eager, 0)
    if name in CALLS:
        _close(eager, exact(call))
    # Tensors without contents have results of the same shapes and types.
    for one, other in zip(results(call.of(*(own.to("meta") for own in tensors))), results(eager), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.is_meta and (one.shape, one.dtype) == (other.shape, other.dtype)


@pytest.mark.parametrize("name", [name for name, call in ALL.items() if call.by])
def test_pytorch_has_the_derivatives_of_the_definitions(name: str) -> None:
    call = ALL[name]
    tensors = _tensors(call, torch.float64, True)
    weights = [_numbers(own) for own in results(call.of(*tensors))]

    def total(of: Any, *arrays: Any) -> Any:
        return sum((own.double() * weight).sum() for own, weight in zip(results(of(*arrays)), weights))

    by = [tensors[at] for at in call.by]
    total(call.of, *tensors).backward()
    for own in by:
        step, at = 1e-6, tuple(extent // 2 for extent in own.shape)
        with torch.no_grad():
            own[at] += step
            above = total(call.of, *tensors)
            own[at] -= 2 * step
            below = total(call.of, *tensors)
            own[at] += step
        assert abs((above - below) / (2 * step) - own.grad[at]) < 1e-4 * max(1, abs(float(own.grad[at])))


def _numbers(own: Any) -> Any:
    return torch.linspace(0.5, 1.5, own.numel(), dtype=torch.float64).view(own.shape)


def test_operators_without_contents_of_their_own_pass_the_checks_of_pytorch() -> None:
    q, k, v = (torch.randn(*shape) for shape in [(2, 4, 1, 16), (2, 2, 8, 16), (2, 2, 8, 16)])
    lengths, pages = torch.tensor([3, 8], dtype=torch.int32), torch.tensor([[1, 0], [2, 3]], dtype=torch.int32)
    own = torch.ops.tilewright
    for arguments in (
        (q, k, v, lengths, None, torch.randn(4), None, True, 3, 0.2, 0.0, None),
        (q, *(torch.randn(4, 4, 2, 16) for _ in range(2)), lengths, pages, None, torch.rand(4), True, -1, 0.2, 5.0, 2),
    ):
        torch.library.opcheck(own.attention_decode.default, arguments)
    torch.library.opcheck(own.expert_places.default, (torch.tensor([[0, 2], [-1, 5]], dtype=torch.int32), 3))
    x = torch.randn(130, 140)
    for square in (False, True):
        # The check of the schema compares results, and PyTorch compares no numbers of 8 bits.
        others: Any = {"test_utils": ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")}
        torch.library.opcheck(own.quantize.default, (x, square, True), **others)
        torch.library.opcheck(own.dequantize.default, (*own.quantize(x, square, False), square, "bf16"), **others)
    lists = [[torch.rand(3, 4), torch.rand(5)] for _ in range(4)]
    torch.library.opcheck(own.adamw.default, (*lists, 2, 0.1, 0.9, 0.99, 1e-8, 0.1))


def test_a_compiled_step_of_adamw_is_a_step() -> None:
    lists = [[torch.rand(3, 4), torch.rand(5)] for _ in range(4)]
    copied = [[own.clone() for own in each] for each in lists]

    def step(p: Any, g: Any, m: Any, v: Any, number: int) -> None:
        ops.adamw(p, g, m, v, step=number, lr=0.1)

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    for number in (1, 2, 3):
        step(lists[0], lists[1], lists[2], lists[3], number)
        compiled(*copied, number)
    for one, other in zip(lists, copied):
        torch.testing.assert_close(one, other)


def test_operators_without_derivatives_say_so() -> None:
    x = torch.rand(4, 128, requires_grad=True)
    with pytest.raises(RuntimeError, match="no derivatives of quantize"):
        ops.quantize(x)[1].sum().backward()
    with pytest.raises(RuntimeError, match="no derivatives of quantize"):
        torch.compile(lambda x: ops.quantize(x)[1].sum(), backend="aot_eager")(x).backward()
    q, k = torch.rand(1, 1, 1, 16, requires_grad=True), torch.rand(1, 1, 4, 16)
    with pytest.raises(RuntimeError, match="Train with `attention`"):
        ops.attention_decode(q, k, k, torch.tensor([3])).sum().backward()
    # An operator that is a derivative is differentiated no further.
    with pytest.raises(RuntimeError, match="differentiated no further"):
        ops.softmax_backward(x, torch.rand(4, 128)).sum().backward()


def test_vmap_of_operators_without_derivatives() -> None:
    q, k, lengths = torch.randn(3, 1, 2, 1, 16), torch.randn(3, 1, 2, 8, 16), torch.tensor([[3], [8], [1]])
    found = torch.vmap(lambda q, k, n: ops.attention_decode(q, k, k, n))(q, k, lengths)
    torch.testing.assert_close(found, torch.stack([ops.attention_decode(one, two, two, n) for one, two, n in zip(q, k, lengths)]))
    x = torch.randn(3, 4, 128)
    q8, scales = torch.vmap(ops.quantize)(x)
    torch.testing.assert_close(torch.vmap(ops.dequantize)(q8, scales), torch.stack([ops.dequantize(*ops.quantize(own)) for own in x]))


def test_registered_operators_have_no_defaults() -> None:
    for name, operator in vars(tilewright.torch.operators).items():
        arguments = operator.own._opoverload._schema.arguments
        assert not [own.name for own in arguments if own.has_default_value()], name
