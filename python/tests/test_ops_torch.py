"""Operators in PyTorch: registration, gradients, compilation, and `vmap`, on the host."""

from __future__ import annotations

from typing import Any

import pytest
from by_day import BACKEND

torch: Any = pytest.importorskip("torch")

import tilewright.torch  # noqa: E402
from tilewright import ops  # noqa: E402
from tilewright import _definitions as definitions  # noqa: E402


def _tensor(*shape: int, seed: int = 0, dtype: Any = None, requires_grad: bool = True) -> Any:
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed + len(shape)), dtype=dtype or torch.float64)
    return made.requires_grad_(requires_grad)


X, R, UP = (_tensor(3, 5, 8, seed=seed) for seed in (1, 2, 3))
W, B = _tensor(8, seed=4), _tensor(8, seed=5)
MATRIX = _tensor(4, 8, seed=6)
CLASSES = torch.arange(15).reshape(3, 5) % 8

#: A call of each operator that has derivatives, as its schema has the arguments.
CALLS: dict[str, tuple[Any, ...]] = {
    "softmax": (X, 1),
    "log_softmax": (X, -1),
    "rms_norm": (X, W, 1e-5, True),
    "rms_norm_residual": (X, W, R, 1e-5, False),
    "layer_norm": (X, W, B, 1e-5),
    "layer_norm_residual": (X, W, B, R, 1e-5),
    "activation": (X, UP, "silu"),
    "dropout": (X, 0.3, 5),
    "linear": (X, MATRIX, _tensor(4, seed=7), False),
    "cross_entropy": (_tensor(6, 9, seed=8), torch.tensor([0, 8, -100, 3, 3, 1]), -100, 0.1, 1e-3, 3.0),
    "linear_cross_entropy": (
        *(_tensor(6, 8, seed=8), _tensor(9, 8, seed=9), torch.tensor([0, 8, -100, 3, 3, 1])),
        *(-100, 0.1, 1e-3, 3.0, True, 4, True, False),
    ),
    "embedding": (torch.tensor([[0, 3], [3, 1]]), MATRIX, None),
    "rope": (_tensor(2, 3, 5, 8, seed=1), _tensor(5, 4).detach(), _tensor(5, 3, seed=1).detach()[:, :1].expand(5, 4), None, True, 1, False),
    "linears": (X, [MATRIX, _tensor(6, 8, seed=7)], False),
    "feed_forward": (X, _tensor(6, 8), _tensor(6, 8, seed=1), _tensor(8, 6), "silu", False),
    "gated_linear": (X, _tensor(6, 8), _tensor(6, seed=1), "silu", "neighbours", False),
    "int4_linear": (_tensor(3, 128), *(own.detach() for own in ops.quantize_int4(_tensor(4, 128, seed=2).detach())), _tensor(4), True),
    "attention": (
        *(_tensor(1, 4, 5, 8, seed=1), _tensor(1, 2, 6, 8, seed=2), _tensor(1, 2, 6, 4, seed=3)),
        *(_tensor(4, seed=4), _tensor(4, seed=5).detach().abs(), _tensor(1, 1, 5, 6, seed=6), None, None),
        *(True, 3, -1, 0.3, 2.0, 1, "", True),
    ),
    "matmul": (X, R.detach().transpose(1, 2).requires_grad_(), False),
}


#: Calls of products whose rows have the same bits for every number of rows.
INVARIANT: dict[str, tuple[Any, ...]] = {
    "linear": (*CALLS["linear"][:-1], True),
    "matmul": (*CALLS["matmul"][:-1], True),
    "linears": (*CALLS["linears"][:-1], True),
    "feed_forward": (*CALLS["feed_forward"][:-1], True),
    "linear_cross_entropy": (*CALLS["linear_cross_entropy"][:-1], True),
    "gated_linear": (*CALLS["gated_linear"][:-2], "halves", True),
}


@pytest.mark.parametrize("name", CALLS)
def test_operators_pass_the_checks_of_pytorch(name: str) -> None:
    torch.library.opcheck(getattr(torch.ops.tilewright, name).default, CALLS[name])
    if name in INVARIANT:
        torch.library.opcheck(getattr(torch.ops.tilewright, name).default, INVARIANT[name])


def _eight_bits(*shape: int, square: bool = False) -> Any:
    return ops.quantize(_tensor(*shape, dtype=torch.float32).detach(), square=square)


def test_a_layer_of_8_bits_passes_the_checks_of_pytorch() -> None:
    x, weight, bias = _eight_bits(5, 200), _eight_bits(6, 200, square=True), _tensor(6, dtype=torch.float32)
    for of_bias, element, invariant in ((None, "bf16", False), (bias.detach(), "f32", True), (bias, "f32", True)):
        given = (*x, *weight, of_bias, element, invariant)
        # The other checks compare inputs with copies of them, which PyTorch does not for 8 bits.
        checks = ("test_faketensor", "test_autograd_registration")
        torch.library.opcheck(torch.ops.tilewright.scaled_linear.default, given, test_utils=checks)
    exact = ops.dequantize(*x) @ ops.dequantize(*weight, square=True).T + bias
    y = ops.scaled_linear(x[0], x[1], weight[0], weight[1], bias, element="f32")
    torch.testing.assert_close(y, exact)
    (y * y.detach()).sum().backward()
    torch.testing.assert_close(bias.grad, exact.detach().sum(0))
    rows = ops.scaled_linear(x[0].reshape(5, 1, 200), x[1].reshape(5, 1, 2), *weight, element="f32")
    torch.testing.assert_close(rows[:, 0] + bias, exact)
    of_x = x[1]
    whole = torch.compile(lambda x: ops.scaled_linear(x, of_x, *weight, element="f32"), fullgraph=True, backend=BACKEND)(x[0])
    torch.testing.assert_close(whole + bias, exact)


def test_the_context_reaches_products_and_their_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    product = definitions.product

    def noted(a: Any, b: Any, by_rows: bool = False) -> Any:
        asked.append(by_rows)
        return product(a, b, by_rows)

    monkeypatch.setattr(definitions, "product", noted)
    wide, narrow = _tensor(6, 8), _tensor(8, 6)
    calls: list[Any] = [
        lambda: ops.linear(X, MATRIX),
        lambda: ops.matmul(X, MATRIX.T.expand(3, 8, 4)),
        lambda: ops.linears(X, [MATRIX, wide])[1],
        lambda: ops.feed_forward(X, wide, wide, narrow),
        lambda: ops.gated_linear(X, wide),
        lambda: ops.linear_cross_entropy(X.reshape(15, 8), MATRIX, torch.zeros(15, dtype=torch.int64)),
    ]
    for call in calls:
        with ops.invariant():
            y = call()
        assert asked and all(asked)
        # The derivative by x is that of the call; a derivative of a matrix by rows is not.
        asked.clear()
        y.sum().backward()
        assert not asked or any(asked)
        asked.clear()
        call()
        assert not any(asked)
        asked.clear()

    def compiled(x: Any) -> Any:
        return ops.linear(x, MATRIX)

    fast = torch.compile(compiled, fullgraph=True, backend=BACKEND)
    for invariant in (False, True, False):
        with ops.invariant(invariant):
            fast(X)
        assert asked and all(own == invariant for own in asked)
        asked.clear()


def test_weights_that_are_halves_of_one_matrix_are_found() -> None:
    from tilewright.ops._gated import as_one

    both = _tensor(6, 8).detach()
    gate, up = both.chunk(2)
    found = as_one(torch.nn.Parameter(gate), torch.nn.Parameter(up))
    assert torch.equal(found, both) and found.data_ptr() == both.data_ptr()
    for one, other in [(up, gate), (gate, up.clone()), (both[:3], both[2:5]), (gate, both[3:5]), (gate.T, up.T), (gate, up.float())]:
        assert as_one(one, other) is None


def test_rows_have_the_same_bits_on_the_host() -> None:
    x, weight = (_tensor(*shape, dtype=torch.float32).detach() for shape in [(300, 700), (50, 700)])
    whole = ops.linear(x, weight, invariant=True)
    for rows in (1, 2, 7, 64, 150):
        assert torch.equal(ops.linear(x[:rows], weight, invariant=True), whole[:rows])
        assert torch.equal(ops.linear(x[-rows:], weight, invariant=True), whole[-rows:])


@pytest.mark.parametrize("name", CALLS)
def test_derivatives_are_those_of_finite_differences(name: str) -> None:
    operator = getattr(torch.ops.tilewright, name)
    if name == "linears":
        x, weights = CALLS[name][:2]
        assert torch.autograd.gradcheck(lambda x, *weights: operator(x, list(weights), False), (x, *weights))
        return
    tensors = [own for own in CALLS[name] if isinstance(own, torch.Tensor)]

    def of(*given: Any) -> Any:
        rest = iter(given)
        is_given = [isinstance(own, torch.Tensor) and own.dtype == torch.float64 for own in CALLS[name]]
        made = operator(*[next(rest) if given else own for given, own in zip(is_given, CALLS[name])])
        # Further results are means for the first.
        return made[0] if "entropy" in name or name == "feed_forward" else made

    tensors = [own for own in tensors if own.dtype == torch.float64]
    assert torch.autograd.gradcheck(of, tensors)


def test_a_result_that_is_the_argument_is_a_copy() -> None:
    torch.library.opcheck(torch.ops.tilewright.activation.default, (X, None, "identity"))
    assert ops.activation(X, "identity").data_ptr() != X.data_ptr()


def test_operators_are_those_of_pytorch() -> None:
    functional = torch.nn.functional
    for ours, theirs in [
        (ops.softmax(X, axis=1), X.softmax(1)),
        (ops.log_softmax(X), X.log_softmax(-1)),
        (ops.rms_norm(X, W), functional.rms_norm(X, (8,), W, 1e-5)),
        (ops.layer_norm(X, W, B), functional.layer_norm(X, (8,), W, B)),
        (ops.gelu(X), functional.gelu(X)),
        (ops.gelu(X, approximate="tanh"), functional.gelu(X, approximate="tanh")),
        (ops.swiglu(X, UP), functional.silu(X) * UP),
        (ops.linear(X, MATRIX), functional.linear(X, MATRIX)),
        (ops.matmul(X, R.transpose(1, 2)), X @ R.transpose(1, 2)),
        (
            ops.cross_entropy(X, CLASSES, smoothing=0.1),
            functional.cross_entropy(X.reshape(15, 8), CLASSES.reshape(15), label_smoothing=0.1),
        ),
        (ops.embedding(CLASSES, B[:, None] * W), functional.embedding(CLASSES, B[:, None] * W)),
    ]:
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("function", definitions.FUNCTIONS)
def test_slopes_of_functions(function: str) -> None:
    assert torch.autograd.gradcheck(lambda x: ops.activation(x, function), (X,))


def _block(x: Any, weight: Any, bias: Any, matrix: Any) -> Any:
    normed, total = ops.rms_norm(x, weight, residual=x)
    hidden = ops.linear(ops.swiglu(normed, total), matrix)
    return ops.log_softmax(ops.layer_norm(ops.dropout(total, 0.1, 3), weight, bias)).sum() + ops.softmax(hidden).square().sum()


def test_attention_is_that_of_pytorch() -> None:
    q, k, v = _tensor(2, 4, 5, 16), _tensor(2, 2, 5, 16), _tensor(2, 2, 5, 16, seed=1)
    for causal in (False, True):
        theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        torch.testing.assert_close(ops.attention(q, k, v, causal=causal), theirs)
        swapped = (own.transpose(1, 2) for own in (q, k, v))
        torch.testing.assert_close(ops.attention(*swapped, causal=causal, heads=2), theirs.transpose(1, 2))


def test_the_order_of_sums_is_that_of_devices_alone() -> None:
    arrays = _tensor(2, 4, 5, 16), _tensor(2, 2, 5, 16), _tensor(2, 2, 5, 16, seed=1)
    slopes = [
        torch.autograd.grad(ops.attention(*arrays, causal=True, deterministic=deterministic).square().sum(), arrays)
        for deterministic in (True, False)
    ]
    for one, other in zip(*slopes):
        assert torch.equal(one, other)


def test_packed_sequences_have_the_derivatives_of_each() -> None:
    q, k, v, sinks = _tensor(7, 2, 8), _tensor(9, 1, 8), _tensor(9, 1, 8, seed=1), _tensor(2)
    cu_q, cu_k = torch.tensor([0, 3, 3, 7]), torch.tensor([0, 4, 5, 9])

    def of(*arrays: Any) -> Any:
        return ops.attention(*arrays[:3], sinks=arrays[3], cu_q=cu_q, cu_k=cu_k, causal=True, return_lse=True)

    o, _ = of(q, k, v, sinks)
    each = ops.attention(*(own[None] for own in (q[3:], k[5:], v[5:])), sinks=sinks, causal=True, heads=2)
    torch.testing.assert_close(o[3:], each[0])
    assert torch.autograd.gradcheck(of, (q, k, v, sinks))
    torch.library.opcheck(
        torch.ops.tilewright.attention.default, (q, k, v, sinks, None, None, cu_q, cu_k, True, -1, -1, 0.3, 0.0, 1, "", False)
    )


def test_a_block_is_compiled_as_one_graph() -> None:
    arguments = [X, W, B, MATRIX]
    own = [argument.detach().clone().requires_grad_() for argument in arguments]
    other = [argument.detach().clone().requires_grad_() for argument in arguments]
    eager = _block(*own)
    compiled = torch.compile(_block, fullgraph=True)(*other)
    torch.testing.assert_close(eager, compiled)
    eager.backward()
    compiled.backward()
    for one, two in zip(own, other):
        torch.testing.assert_close(one.grad, two.grad)


def test_vmap_is_a_call_for_each_element() -> None:
    calls: list[tuple[Any, Any, Any]] = [
        (lambda x: ops.softmax(x, axis=0), (X,), (1,)),
        (lambda x: ops.rms_norm(x, W), (X,), (0,)),
        (lambda x, w: ops.rms_norm(x, w), (X, _tensor(3, 8)), (0, 0)),
        (lambda x, r: ops.layer_norm(x, W, B, residual=r)[0], (X, R), (0, 0)),
        (lambda x: ops.swiglu(x, UP[0]), (X,), (0,)),
        (lambda x: ops.linear(x, MATRIX), (X,), (1,)),
        (lambda a: ops.matmul(a, MATRIX.T), (X,), (0,)),
    ]
    for function, arrays, dims in calls:
        found = torch.vmap(function, in_dims=dims)(*arrays)
        each = [function(*[array.select(dim, number) for array, dim in zip(arrays, dims)]) for number in range(found.shape[0])]
        torch.testing.assert_close(found, torch.stack(each))


def test_types_of_16_bits_are_kept() -> None:
    x = _tensor(4, 8, dtype=torch.bfloat16)
    y = ops.rms_norm(x, _tensor(8, dtype=torch.float32))
    assert y.dtype == torch.bfloat16
    y.sum().backward()
    assert x.grad.dtype == torch.bfloat16


def test_results_are_written_in_place_without_gradients() -> None:
    x = X.detach()
    out = torch.empty_like(x)
    version = out._version
    assert ops.softmax(x, out=out) is out and out._version > version
    torch.testing.assert_close(out, x.softmax(-1))


def test_a_loss_of_a_linear_layer_is_that_of_its_logits() -> None:
    x, weight, classes = _tensor(3, 5, 8), _tensor(9, 8), torch.arange(15).reshape(3, 5) % 9
    for reduction in ("mean", "sum"):
        ours = ops.linear_cross_entropy(x, weight, classes, rows=4, reduction=reduction)
        theirs = torch.nn.functional.cross_entropy((x @ weight.T).reshape(15, 9), classes.reshape(15), reduction=reduction)
        torch.testing.assert_close(ours, theirs)
        for one, two in zip(torch.autograd.grad(3 * ours, (x, weight)), torch.autograd.grad(3 * theirs, (x, weight))):
            torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)


def test_the_optimizer_is_that_of_pytorch() -> None:
    ours, theirs = ([_tensor(4, 8, dtype=torch.float32), _tensor(3, dtype=torch.float32)] for _ in range(2))
    options: Any = {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.2}
    steps = [tilewright.torch.AdamW(ours, **options), torch.optim.AdamW(theirs, **options)]
    for number in range(3):
        for own, other in zip(ours, theirs):
            own.grad = torch.full_like(own, 0.1 * number)
            other.grad = own.grad.clone()
        for optimizer in steps:
            optimizer.step()
    for own, other in zip(ours, theirs):
        torch.testing.assert_close(own, other)


def test_mixed_precision_has_the_types_of_pytorch() -> None:
    x, weight = _tensor(4, 16, dtype=torch.float32), _tensor(8, 16, dtype=torch.float32)
    q = _tensor(1, 2, 4, 16, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        y, o = ops.linear(x, weight), ops.attention(q, q, q)
        assert y.dtype == torch.nn.functional.linear(x, weight).dtype == torch.bfloat16 == o.dtype
    (y.sum() + o.sum()).backward()
    assert weight.grad.dtype == torch.float32 == q.grad.dtype


def _mixture(function: str) -> tuple[Any, Any]:
    """A mixture of experts by the operators, and by loops of PyTorch."""

    def ours(x: Any, logits: Any, gate: Any, up: Any, down: Any) -> Any:
        return ops.experts(x, logits, gate, up, down, 2, function=function)

    def theirs(x: Any, logits: Any, gate: Any, up: Any, down: Any) -> Any:
        top, which = logits.topk(2)
        weights = top.softmax(-1)
        y = torch.zeros_like(x)
        for token in range(x.shape[0]):
            for choice in range(2):
                expert = which[token, choice]
                hidden = torch.nn.functional.silu(gate[expert] @ x[token]) * (up[expert] @ x[token])
                y[token] = y[token] + weights[token, choice] * (down[expert] @ hidden)
        return y

    return ours, theirs


def test_a_mixture_of_experts_has_the_values_and_gradients_of_its_loops() -> None:
    ours, theirs = _mixture("silu")
    # Of four experts one is chosen by nobody.
    logits = _tensor(5, 4, seed=1).detach() - torch.tensor([0.0, 0.0, 0.0, 100.0])
    arrays = (_tensor(5, 8), logits.requires_grad_(), _tensor(4, 6, 8), _tensor(4, 6, 8, seed=2), _tensor(4, 8, 6, seed=3))
    torch.testing.assert_close(ours(*arrays), theirs(*arrays))
    found, exact = (torch.autograd.grad(of(*arrays).square().sum(), arrays) for of in (ours, theirs))
    for one, other in zip(found, exact):
        torch.testing.assert_close(one, other)
    compiled = torch.compile(ours, backend="aot_eager", fullgraph=False)(*arrays)
    torch.testing.assert_close(compiled, theirs(*arrays))


def test_numbers_of_8_bits_are_those_of_their_scales() -> None:
    x = _tensor(200, 300, dtype=torch.float32).detach() * 10
    for square in (False, True):
        q, scales = ops.quantize(x, square=square)
        assert q.dtype == torch.float8_e4m3fn
        back = ops.dequantize(q, scales, square=square)
        assert (back - x).abs().max() <= x.abs().max() / 16


def test_a_tile_program_is_an_operator_with_its_gradient() -> None:
    import tilewright as tw

    @tilewright.torch.operator
    @tw.tile(grid="ceil(M/2)")  # type: ignore[untyped-decorator]
    def scaled_norm(
        x: tw.Input("f32", "(M,64):(64,1)"),  # type: ignore[valid-type]
        w: tw.Input("f32", "(1,64):(64,1)"),  # type: ignore[valid-type]
        factor: tw.Scalar("f32"),  # type: ignore[valid-type]
        y: tw.Output("f32", "(M,64):(64,1)"),  # type: ignore[valid-type]
    ) -> None:
        at = (tw.tile.block.x, 0)
        a = x.load((2, 64), at)
        scale = ((a * a).reduce_sum(1) / 64.0 + 1e-5).rsqrt()
        y.store(at, a * scale * w.load((1, 64), (0, 0)) * factor)

    x, w = _tensor(5, 64, dtype=torch.float32), _tensor(1, 64, dtype=torch.float32)

    def of(x: Any, w: Any) -> Any:
        return scaled_norm(x * 2, w, 3.0).square().sum()

    def exact(x: Any, w: Any) -> Any:
        return (torch.nn.functional.rms_norm(x * 2, (64,), w[0], 1e-5) * 3).square().sum()

    torch.testing.assert_close(of(x, w), exact(x, w))
    torch.library.opcheck(scaled_norm._opoverload, (x, w, 3.0))
    for function in (of, torch.compile(of, fullgraph=True, backend=BACKEND)):
        for one, other in zip(torch.autograd.grad(function(x, w), (x, w)), torch.autograd.grad(exact(x, w), (x, w))):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="axes"):
        scaled_norm(x[0], w, 3.0)


def test_another_kernel_takes_the_gradient_that_is_given() -> None:
    import tilewright as tw

    @tw.jit
    def double(x: tw.Input("f32", "(M,N):(N,1)"), y: tw.Output("f32", "(M,N):(N,1)")) -> None:  # type: ignore[valid-type]
        threads, values = tw.Layout((4, 32), (32, 1)), tw.Layout((1, 1), (1, 1))
        tiler, layout = tw.make_layout_tv(threads, values)

        def part(tensor: Any) -> Any:
            block = tw.tensor_zipped_divide(tensor, tiler)[((None, None), tw.block("(y,x)"))]
            return tw.tensor_composition(block, layout, tiler)[(tw.thread, None)]

        part(y).store(part(x).load(predicated=True) * 2.0, predicated=True)

    twice = tilewright.torch.operator(double, gradient=lambda x, d_y: d_y * 2)
    x = _tensor(5, 50, dtype=torch.float32)
    y = twice(x)
    torch.testing.assert_close(y, 2 * x)
    y.sum().backward()
    assert bool((x.grad == 2).all())

    @tw.jit
    def unsaid(x, y) -> None:  # type: ignore[no-untyped-def]
        pass

    with pytest.raises(TypeError, match="no tw.Input"):
        tilewright.torch.operator(unsaid)


def test_tensors_that_are_negated_later_are_read_as_they_are() -> None:
    x = torch.complex(_tensor(3, 8, requires_grad=False), _tensor(3, 8, seed=1, requires_grad=False)).conj().imag
    assert x.is_neg()
    for own in (x.resolve_neg(), x):
        torch.testing.assert_close(ops.softmax(own), torch.softmax(x, -1))
        torch.testing.assert_close(ops.rms_norm(own), torch.nn.functional.rms_norm(x, (8,), None, 1e-5))
