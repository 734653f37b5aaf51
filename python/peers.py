"""Beside the Python packages `pycute` (CUTLASS's, in `nvidia-cutlass`) and `tensor-layouts`, in one run.

    scripts/python --peers

Compares the answers of `tilewright.pycute` with CUTLASS's on random layouts: where they differ as functions, the definition
decides who is right, and it has to be Tilewright. Then prints what a call takes, as a Markdown table: the least of several rounds.
"""

from __future__ import annotations

import random
import sys
import timeit
from typing import Any, Callable

import numpy as np

import tilewright as tw
from tilewright import pycute as ours

sys.path.insert(0, "tests")
from plain import like, random_shape  # noqa: E402

import pycute as theirs  # type: ignore[import-not-found]  # noqa: E402
import tensor_layouts as meta  # type: ignore[import-not-found]  # noqa: E402


def answers(rounds: int) -> None:
    source = random.Random(3)
    counts = {"same text": 0, "same function": 0, "pycute wrong": 0, "pycute fails, here an answer": 0, "refused here, pycute right": 0, "refused here": 0}
    for _ in range(rounds):
        (a_shape, b_shape) = random_shape(source), random_shape(source)
        a_stride = like(a_shape, lambda: source.randint(0, 12))
        b_stride = like(b_shape, lambda: source.randint(0, 6))
        a, b = ours.Layout(a_shape, a_stride), ours.Layout(b_shape, b_stride)
        wanted = [a(b(i)) for i in range(b.size())]
        mine = attempt(lambda: ours.composition(a, b))
        other = attempt(lambda: theirs.composition(theirs.Layout(a_shape, a_stride), theirs.Layout(b_shape, b_stride)))
        right = other is not None and theirs.size(other) == b.size() and [other(i) for i in range(b.size())] == wanted
        if mine is None:
            # A function with these values and B's shape is a layout that Tilewright has missed,
            # unless modes do not nest.
            nested = right and nests(other.shape, b_shape)
            counts["refused here, pycute right" if nested else "refused here"] += 1
            continue
        assert [mine(i) for i in range(b.size())] == wanted, (a, b)
        if other is None:
            counts["pycute fails, here an answer"] += 1
        elif not right:
            counts["pycute wrong"] += 1
        else:
            counts["same text" if str(other) == str(mine) else "same function"] += 1
    print(f"compositions of {rounds} random pairs:", ", ".join(f"{count} {what}" for what, count in counts.items()))
    assert counts["refused here, pycute right"] == 0


def tuples(rounds: int) -> None:
    """The functions on tuples, on layouts at coordinates and on texts answer as CUTLASS's do, or both fail."""
    source = random.Random(4)
    same = 0
    for _ in range(rounds):
        shape, other = random_shape(source, 3), random_shape(source)
        number = source.randint(-3, 40)
        crd = like(shape, lambda: source.choice([None, 0, 1, 2]))
        for name, arguments in {
            "shape_div": (shape, source.choice([other, abs(number) or 1])),
            "prefix_product": (shape,),
            "product": (shape,),
            "inner_product": (shape, shape),
            "elem_scale": (shape, like(shape, lambda: source.randint(1, 3))),
            "flatten": (shape,),
            "tuple_max": (shape,),
            "idx2crd": (number, shape),
            "crd2idx": (source.choice([number, crd]), shape),
            "crd2crd": (number, shape),
            "slice_": (crd, shape),
            "has_none": (crd,),
        }.items():
            mine, theirs_ = (attempt(lambda: getattr(module, name)(*arguments)) for module in (ours, theirs))
            assert mine == theirs_, (name, arguments, mine, theirs_)
            same += 1
        mine, theirs_ = ours.Layout(shape), theirs.Layout(shape)
        assert (str(mine), repr(mine), len(mine)) == (str(theirs_), repr(theirs_), len(theirs_))
        sliced, cut = attempt(lambda: mine(crd)), attempt(lambda: theirs_(crd))
        assert str(sliced) == str(cut), (shape, crd)
    # With a shift that is not positive CUTLASS's calls itself without end.
    for bits, base, shift in [(3, 0, 3), (2, 1, 4), (0, 2, 1)]:
        mine, theirs_ = ours.Swizzle(bits, base, shift), theirs.Swizzle(bits, base, shift)
        assert [mine(i) for i in range(1024)] == [theirs_(i) for i in range(1024)] and str(mine) == str(theirs_)
    print(f"functions on tuples: {same} calls, the same answers")


def nests(fine: Any, coarse: Any) -> bool:
    """Whether a shape refines another, mode by mode."""
    if isinstance(coarse, tuple):
        return isinstance(fine, tuple) and len(fine) == len(coarse) and all(map(nests, fine, coarse))
    return bool(ours.product(fine) == coarse)


def attempt(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (AssertionError, ValueError, TypeError, ZeroDivisionError):
        return None


def seconds(statement: str, names: dict[str, Any]) -> float:
    """The least of two hundred rounds, each of a millisecond or so, of a statement by itself: what else runs only adds to the others."""
    timer = timeit.Timer(statement, globals=names)
    count, _ = timer.autorange()
    count = max(1, count // 200)
    return min(timer.repeat(200, count)) / count


class Nothing:
    """What a call takes of the interpreter when the method does nothing."""

    def __call__(self, index: Any) -> Any:
        return index


def speed() -> None:
    modules = {"tilewright": tw, "pycute": theirs, "tensor_layouts": meta}
    rows = {
        "`Layout(shape, stride)`": "Layout(shape, stride)",
        "made and used once: `Layout(shape, stride)(i)`": "Layout(shape, stride)(1234)",
        "made and composed: `composition(A, Layout(4, 3))`": "composition(a, Layout(4, 3))",
        "`composition(A, B)`": "composition(a, b)",
        "`coalesce(A)`": "coalesce(c)",
        "`complement(A, n)`": "complement(b, 24)",
        "`right_inverse(A)`": "right_inverse(c)",
        "`left_inverse(A)`": "left_inverse(c)",
        "`logical_divide(A, tiler)`": "logical_divide(c, (4, 16))",
        "`zipped_divide(A, tiler)`": "zipped_divide(c, (4, 16))",
        "`logical_product(A, B)`": "logical_product(c, b)",
        "`A(i, j)`": "c((3, 5), (1, 20))",
        "`A(i)`": "c(1234)",
        "`A(i)` at 4096 indices": "c.offsets()",
        "`A(array)`, 4096 indices": "c(array)",
    }
    print("\n| | here, us | pycute, us | tensor-layouts, us | times pycute | times tensor-layouts |\n|---|---|---|---|---|---|")
    for name, statement in rows.items():
        found: list[float | None] = []
        for module in modules.values():
            names = {name: getattr(module, name, None) for name in dir(module)}
            if module is meta:
                names["composition"] = module.compose
            shape, stride = ((4, 8), (2, 64)), ((1, 256), (2048, 4))
            a, b, c = module.Layout((6, 2), (8, 2)), module.Layout((4, 3), (3, 1)), module.Layout(shape, stride)
            names |= {"shape": shape, "stride": stride, "a": a, "b": b, "c": c, "array": np.arange(4096), "index": range(4096)}
            own = "[c(i) for i in index]" if "4096" in name and module is not tw else statement
            try:
                found.append(seconds(own, names))
            except Exception:  # what a peer does not have
                found.append(None)
        mine, *others = found
        assert mine is not None
        cells = [f"{1e6 * mine:.2f}"] + ["" if other is None else f"{1e6 * other:.1f}" for other in others]
        cells += ["" if other is None else f"{other / mine:.0f}" for other in others]
        print(f"| {name} | {' | '.join(cells)} |")
    floor = {"a function of C, `abs(i)`": "abs(i)", "a method of Python": "f(i)", "a method of a class of C, `range.count`": "r.count(i)"}
    names = {"i": 1234, "f": Nothing(), "r": range(4, 5)}
    print("\nA call alone:", ", ".join(f"{what} {1e9 * seconds(statement, names):.0f} ns" for what, statement in floor.items()))


if __name__ == "__main__":
    tuples(2000)
    answers(4000)
    speed()
