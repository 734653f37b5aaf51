"""Whether products have the same bits for every number of rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class _Setting:
    """The setting of the process. It is a plain attribute, because `torch.compile` of PyTorch 2.11 ends
    a graph where a variable of a context is read.
    """

    enabled = False


@contextmanager
def invariant(enabled: bool = True) -> Iterator[None]:
    """In this context, products are batch-invariant, unless a call says otherwise: row ``i`` of a
    result has the same bits whatever the other rows are and however many there are, for the same
    weights, types and device. That is for products whose rows are independent: ``linear``, ``linears``,
    ``matmul``, ``feed_forward``, ``gated_linear``, ``scaled_linear``, ``expert_product``, ``experts``,
    and their derivatives by ``x``. A derivative by weights is a sum over the rows; it has the same bits
    for the same arrays. The number of splits of ``attention_decode`` is that of one sequence.

    The setting is that of all threads. Derivatives are as invariant as the calls that they are derivatives of, wherever ``backward`` is
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
    before = _Setting.enabled
    _Setting.enabled = enabled
    try:
        yield
    finally:
        _Setting.enabled = before


def is_invariant(given: bool | None) -> bool:
    """What a call says, or the setting of its context."""
    return _Setting.enabled if given is None else given
