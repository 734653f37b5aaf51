"""A panic in Rust is an exception of Python, never the end of the process, and harms nothing.

Rust panics where Python hands it a `PanicException`: PyO3 goes on with that panic, through all
frames of Rust up to the call. So everything that calls back into Python is made to panic here.
"""

from __future__ import annotations

import functools
import threading
from typing import Any, Callable

import numpy as np
import pytest

import tilewright as tw


def panic_exception() -> type[BaseException]:
    """The class of panics, which is made when the first exception reaches Rust."""
    with pytest.raises(TypeError):
        tw.Layout(object())  # type: ignore[arg-type]
    found = [kind for kind in BaseException.__subclasses__() if kind.__name__ == "PanicException"]
    assert len(found) == 1 and found[0].__module__ == "pyo3_runtime"
    return found[0]


class Fails:
    """What panics wherever it is asked for a number or for memory."""

    def __index__(self) -> int:
        raise PANIC("of a number")

    @property
    def __array_interface__(self) -> dict[str, Any]:
        raise PANIC("of an array")


PANIC = panic_exception()


def fails(*_: object) -> None:
    raise PANIC("of a call")


def traced(body: Callable[[Any], object]) -> None:
    def kernel(x: Any) -> None:
        body(x.local_tile(128, tw.block("x"))[tw.thread,])

    tw.jit(x=tw.InOut("f32", "N{div=128}:1"), threads=128)(kernel).program()


def in_a_loop(x: Any) -> None:
    for _ in tw.range(3):
        fails()


def in_a_branch(x: Any) -> None:
    with tw.when(x.load().numbers()[0] > 1.0):
        fails()


def tensors() -> tuple[tw.Tensor, tw.Tensor]:
    return tw.Tensor(np.ones((64, 32), np.float32)), tw.zeros((64, 64))


#: Calls a function on the thread that checks and interpreters run on; the wheel that users build has
#: none.
ON_A_WORKER: Callable[[Callable[[], object]], object] | None = getattr(tw._native, "_on_a_worker", None)

CALLS: dict[str, Callable[[], object]] = {
    "a number": lambda: tw.Layout(Fails()),
    "a coordinate": lambda: tw.Layout((4, 8))(Fails()),
    "an argument": lambda: tw.complement("4:2", Fails()),
    "an array": lambda: tw.Tensor(Fails()),
    "a copy": lambda: tw.copy(tensors()[0], tw.zeros((64, 32)), progress=fails),
    "a product": lambda: tw.gemm(tensors()[0], tensors()[0], tensors()[1], progress=fails),
    "a trace": lambda: traced(fails),
    "a trace, in a loop": lambda: traced(in_a_loop),
    "a trace, in a branch": lambda: traced(in_a_branch),
}

if ON_A_WORKER is not None:
    CALLS["a worker"] = functools.partial(ON_A_WORKER, fails)


def works() -> None:
    """What the calls do, where nothing panics."""
    assert tw.complement("4:2", 24) == tw.Layout((2, 3), (1, 8)) and tw.Layout((4, 8))(3) == 3
    a, d = tensors()
    into = tw.zeros((64, 32))
    tw.copy(a, into)
    assert into.sum() == 64 * 32
    assert (np.asarray(tw.gemm(a, a, d)) == 32).all()
    assert tw.check("complement((4,8):(8,1), 64)").holds
    # No kernel is being written any more: a call of one runs it.
    assert not tw._native.is_tracing()
    traced(lambda x: x.store(2.0 * x.load()))


@pytest.mark.parametrize("name", CALLS)
def test_a_panic_is_an_exception(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BaseException) as raised:
        CALLS[name]()
    assert type(raised.value) is PANIC and not isinstance(raised.value, Exception)
    assert str(raised.value).startswith("of a")
    # It was a panic: what only passes exceptions on would not say this.
    assert "PyO3 is resuming a panic" in capfd.readouterr().err
    works()


def test_a_panic_of_each_of_several_threads() -> None:
    caught: list[type[BaseException]] = []

    def call(make: Callable[[], object]) -> None:
        for _ in range(20):
            try:
                make()
            except BaseException as error:
                caught.append(type(error))
        works()

    threads = [threading.Thread(target=call, args=(make,)) for make in CALLS.values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert caught == [PANIC] * (20 * len(CALLS))
    works()


@pytest.mark.skipif(ON_A_WORKER is None, reason="the wheel that users build has no such function")
def test_a_worker_returns_and_raises() -> None:
    assert ON_A_WORKER is not None
    own = threading.get_ident()
    assert ON_A_WORKER(threading.get_ident) != own
    with pytest.raises(ZeroDivisionError):
        ON_A_WORKER(lambda: 1 // 0)
