"""Pictures, claims, and the cost of layouts in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from . import _native
from ._errors import LayoutError
from ._native import Picture


class _Drawn:
    """What has a picture."""

    picture: Picture

    def _repr_svg_(self) -> str:
        return self.picture._repr_svg_()

    def _repr_html_(self) -> str:
        return self.picture._repr_html_()


def draw(*what: Any, file: str | PathLike[str] | None = None, scale: float = 2.0, **options: Any) -> Picture:
    """A picture of values, side by side: SVG in a notebook, text when it is printed.

    A program shows its last operation: ``draw("zipped_divide((4,6):(6,1), [2:1;3:1])")``. The name
    of an instruction shows who holds what. ``file`` also writes a file, as SVG, HTML, PNG, PDF,
    LaTeX or text by its name.

    Options: ``kind`` (``"auto"``, ``"offsets"``, ``"thread-value"``, ``"copy"``, ``"mma"``,
    ``"memory"``), ``tile`` (the shape of a tile of threads and values), ``title``, ``caption``,
    ``label`` (``"offset"``, ``"coordinate"``, ``"index"``, ``"none"``), ``shade`` (``"grey"``,
    ``"heat"``, ``"palette"``, ``"none"``), ``palette``, ``theme`` (``"auto"``, ``"light"``,
    ``"dark"``), ``element_bits``, ``width`` (addresses to a row of ``"memory"``). What
    :func:`banks` and :func:`access` found has its own picture, without options.

    >>> print(draw("(2,3):(3,1)").text().rstrip())
    (2,3):(3,1)
        0 1 2
      ┌───────┐
    0 │ 0 1 2 │
    1 │ 3 4 5 │
      └───────┘
    """
    if len(what) == 1 and isinstance(what[0], _Drawn) and not options:
        picture = what[0].picture
    else:
        picture = _native.picture(*what, **options)
    if file is not None:
        picture.save(file, scale)
    return picture


@dataclass(frozen=True)
class Claim:
    """A claim, and whether it holds.

    ``holds`` is True or False where that was shown, at every index or by the algebra, and None
    where the test did not get to the end. A claim is true where it holds.
    """

    law: str
    holds: bool | None
    detail: str

    def __bool__(self) -> bool:
        return self.holds is True

    def __str__(self) -> str:
        word = {True: "holds", False: "fails", None: "no failure found"}[self.holds]
        return f"{word}: {self.law}" + (f", {self.detail}" if self.detail else "")


def check(claim: Any, other: Any = None) -> Claim:
    """Whether two values are one function, or the last operation of a program keeps its law.

    >>> print(check("complement((4,8):(8,1), 64)"))
    holds: R increases, and (i,j) -> A(i) + R(j) hits each offset from 0 exactly once, at all 64 indices
    >>> check("(4,2):(2,1)", "(2,2,2):(2,5,1)").holds
    False
    """
    if other is not None:
        holds, law, detail = _native.check_equal(claim, other)
    elif isinstance(claim, str):
        holds, law, detail = _native.check_call(claim)
    else:
        raise TypeError("a claim is a program, or two values to compare")
    return Claim(law, holds, detail)


def explain(subject: LayoutError | str) -> str:
    """The page about an error or a code, as Markdown; for a program, its derivation.

    >>> print(explain("logical_divide((4,6):(1,4), 4:2)").splitlines()[0])
    logical_divide(A, T) = A o (T, complement(T, size(A)))
    """
    if not isinstance(subject, (LayoutError, str)):
        raise TypeError("what is explained is an error, its code or a program")
    code = subject.code if isinstance(subject, LayoutError) else subject.strip().upper()
    page = _native.page(code)
    if page is not None:
        return page
    if isinstance(subject, LayoutError) or (len(code) == 5 and code[0] == "E" and code[1:].isdigit()):
        raise LookupError(f"there is no error code {code}")
    _native.evaluate(subject)
    return _native.derivation(subject)


@dataclass(frozen=True)
class Operation:
    """An operation of a derivation: its formula, remarks, and its picture, if it has one.
    ``indent`` is its nesting depth.
    """

    indent: int
    formula: str
    lines: list[str]
    picture: Picture | None = field(repr=False, compare=False)


@dataclass(frozen=True)
class Derivation:
    """The derivation of the value of a program, operation by operation: text when it is printed,
    with pictures in a notebook.
    """

    program: str
    operations: list[Operation]

    def __str__(self) -> str:
        return _native.derivation(self.program)

    def _repr_html_(self) -> str:
        from html import escape

        parts = []
        for operation in self.operations:
            text = "\n".join([operation.formula, *("  " + line for line in operation.lines)])
            picture = operation.picture._repr_html_() if operation.picture is not None else ""
            parts.append(f'<div style="margin-left:{2 * operation.indent}em"><pre>{escape(text)}</pre>{picture}</div>')
        return "".join(parts)


def derive(program: str) -> Derivation:
    """The derivation of the value of a program.

    >>> print(derive("logical_divide((4,6):(1,4), 4:2)").operations[0].formula)
    logical_divide(A, T) = A o (T, complement(T, size(A)))
    """
    return Derivation(program, [Operation(*operation) for operation in _native.operations(program)])


@dataclass(frozen=True)
class Banks(_Drawn):
    """The cost of an access to shared memory: at most ``degree`` wavefronts in a phase; ``phases``
    has all of them. ``picture``, which a notebook shows, is of one of the worst phases, or of the
    requested one.
    """

    layout: str
    access: str
    threads: int
    bytes: int
    instructions: int
    degree: int
    wavefronts: int
    ideal: int
    phases: list[int]
    picture: Picture = field(repr=False, compare=False)

    @property
    def conflict_free(self) -> bool:
        return self.wavefronts == self.ideal

    def __str__(self) -> str:
        if self.conflict_free:
            return f"no conflicts: {self.wavefronts} wavefronts, and no fewer would do"
        return f"{self.degree}-way conflicts: {self.wavefronts} wavefronts, where {self.ideal} would do"


@dataclass(frozen=True)
class Access(_Drawn):
    """The cost of an access to global memory: sectors of 32 bytes, lines of 128. ``picture``, which
    a notebook shows, is of one of the worst requests, or of the requested one.
    """

    layout: str
    access: str
    threads: int
    bytes: int
    instructions: int
    sectors: int
    ideal: int
    lines: int
    efficiency: float
    picture: Picture = field(repr=False, compare=False)


@dataclass(frozen=True)
class Suggestion:
    """A change with which accesses cost less, and the tile after it. ``proof`` is why nothing of
    its kind is better: ``"bound"``, ``"exhausted"``, or ``"open"`` where that was not shown.
    """

    kind: str
    change: Any
    layout: _native.Layout
    wavefronts: int
    extra: int
    proof: str


@dataclass(frozen=True)
class Advice:
    """The cost of accesses to the tile, and what would cost less."""

    wavefronts: int
    ideal: int
    suggestions: list[Suggestion]


@dataclass(frozen=True)
class Footprint:
    """The memory that a layout covers. ``gaps`` are (first, length); ``alias`` are two indices with
    the same offset; ``cycles`` are those of the permutation that it is, if it is one.
    """

    layout: str
    indices: int
    offsets: int
    least: int
    greatest: int
    span: int
    holes: int
    gaps: list[tuple[int, int]]
    shared: int
    contiguity: int
    ascending: bool
    alias: tuple[int, int] | None
    cycles: list[list[int]] | None


def banks(
    layout: Any,
    access: Any = None,
    *,
    width: int = 32,
    vector: int = 1,
    count: int = 32,
    bytes: int = 4,
    phase: int | None = None,
) -> Banks:
    """Conflicts of an access to shared memory: of elements of ``width`` bits, ``vector`` to a load.

    The access is ``"rows:8"``, ``"columns"``, ``"threads"``, ``"ldmatrix.x4"`` and the like, or a
    layout from (thread, value) to an index; without one, the layout's own modes are threads and
    values. ``phase`` is the one that is drawn.

    >>> print(banks("(128,64):(64,1)", "ldmatrix.x4", width=16))
    8-way conflicts: 1024 wavefronts, where 128 would do
    """
    return Banks(**_native.banks(layout, access, width, vector, count, bytes, phase))


def access(layout: Any, access: Any = None, *, width: int = 32, vector: int = 1, request: int | None = None) -> Access:
    """Sectors of an access to global memory, by elements of ``width`` bits, ``vector`` to a load. The
    access is given as in :func:`banks`; ``request`` is the one that is drawn.

    >>> found = access("(128,64):(64,1)", "columns")
    >>> found.sectors, found.ideal
    (8192, 1024)
    """
    return Access(**_native.access_of(layout, access, width, vector, request))


def suggest(
    layout: Any, accesses: Any = (), *, width: int = 32, vector: int = 1, count: int = 32, bytes: int = 4
) -> Advice:
    """Swizzles, paddings and orders of threads with which accesses to shared memory cost less.

    >>> suggest("(128,64):(64,1)", ["rows:8", "ldmatrix.x4"], width=16).suggestions[0].change
    Swizzle(3, 3, 3)
    """
    specs = [accesses] if isinstance(accesses, str) or not isinstance(accesses, (list, tuple)) else list(accesses)
    found = _native.suggestions(layout, specs, width, vector, count, bytes)
    found["suggestions"] = [Suggestion(**suggestion) for suggestion in found["suggestions"]]
    return Advice(**found)


def footprint(layout: Any) -> Footprint:
    """The memory that a layout covers, with its gaps and overlaps.

    >>> footprint("(4,2):(1,8)").gaps
    [(4, 4)]
    """
    return Footprint(**_native.covered(layout))
