"""Whether products have the same bits for every number of rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_setting: ContextVar[bool] = ContextVar("tilewright_invariant", default=False)


@contextmanager
def invariant(enabled: bool = True) -> Iterator[None]:
    """In this context, products are batch-invariant, unless a call says otherwise: row ``i`` of a
    result has the same bits whatever the other rows are and however many there are, for the same
    weights, types and device. That is for products whose rows are independent: ``linear``, ``linears``,
    ``matmul``, ``feed_forward``, ``gated_linear``, ``scaled_linear``, ``expert_product``, ``experts``,
    and their derivatives by ``x``. A derivative by weights is a sum over the rows; it has the same bits
    for the same arrays. The number of splits of ``attention_decode`` is that of one sequence.

    Derivatives are as invariant as the calls that they are derivatives of, wherever ``backward`` is
    called. A function that is traced or compiled keeps the setting of its trace; ``torch.compile``
    traces again where the setting has changed, and does not enter the context itself: enter it outside,
    or pass ``invariant=True`` to the calls.

    >>> import numpy as np
    >>> from tilewright.ops import linear
    >>> x, weight = np.linspace(-1, 1, 3 * 40).reshape(3, 40), np.linspace(-1, 1, 5 * 40).reshape(5, 40)
    >>> with invariant():
    ...     bool((linear(x, weight)[:1] == linear(x[:1], weight)).all())
    True
    """
    token = _setting.set(enabled)
    try:
        yield
    finally:
        _setting.reset(token)


def is_invariant(given: bool | None) -> bool:
    """What a call says, or the setting of its context."""
    return _setting.get() if given is None else given
