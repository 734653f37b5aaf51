"""Notes about answers."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Iterator

from ._errors import LayoutError


class OutsideDomain(UserWarning):
    """An answer goes beyond the domain of the layout.

    A coordinate is outside of the layout, which continues past its end as in CuTe; tiles extend
    past an end; copies of a product by mode coincide. Within ``strict()`` this is an error (E0217).
    """


_strict: ContextVar[bool] = ContextVar("tilewright_strict", default=False)


@contextmanager
def strict() -> Iterator[None]:
    """Within the block, the warning ``OutsideDomain`` is an error.

    >>> import tilewright as tw
    >>> with tw.strict():
    ...     tw.Layout((4, 8), (8, 1))(3, 7)
    31
    >>> with tw.strict():
    ...     tw.Layout((4, 8), (8, 1))(9, 9)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    tilewright...LayoutError: ...the coordinate (9,9) is outside the shape (4,8)...
    """
    token = _strict.set(True)
    try:
        yield
    finally:
        _strict.reset(token)


def tell(message: str) -> None:
    """Warns about the line that called; raises where it is strict."""
    if _strict.get():
        text = f"error[E0217]: {message}"
        raise LayoutError(text, code="E0217", message=message, help="outside of strict() this is answered, with a warning")
    # The caller of the function of the library, which is no frame of Python.
    warnings.warn(message, OutsideDomain, stacklevel=2)


def say(message: str) -> None:
    """Warns about the line that called."""
    warnings.warn(message, UserWarning, stacklevel=2)
