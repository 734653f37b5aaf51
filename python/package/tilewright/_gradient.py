"""Gradients of tile programs."""

from __future__ import annotations

from typing import Any

from . import _native
from ._arrays import fill, laid
from ._interpret import interpret
from ._native import Layout, Program
from ._versions import Version


class Gradient:
    """The gradient of a tile program: what ``kernel.gradient(..)`` gives.

    It is one or several programs, launched in order. The first reads the inputs and ``d_y`` for
    each output ``y``, and writes ``d_x`` for each input ``x``. Where blocks share a tile of an
    input, as the weights of a norm, it writes parts, and another program adds them in a fixed order.
    """

    def __init__(self, name: str, source: Program, programs: list[_native.TileProgram]) -> None:
        self.__name__ = f"gradient of {name}"
        self._source = source
        self._programs = programs
        self._versions = [Version(own.program, own) for own in programs]

    @property
    def text(self) -> str:
        """The programs, as texts of the language of tile programs."""
        return "\n".join(own.text for own in self._programs)

    @property
    def programs(self) -> list[Program]:
        """The kernels, in the order in which they are launched."""
        return [own.program for own in self._programs]

    def __call__(self, **arrays: Any) -> dict[str, Any]:
        """Computes the derivatives: of the inputs and the numbers of the launch by their names, and
        of each output ``y`` as ``d_y``. Arrays that are given for derivatives are written in place, where
        the program loads the elements; others are made, of zeros. Sums by atomics are added to what a
        given array holds. Returns the derivatives by their names, ``d_x``.

        Errors: an array is missing, or is none of the programs' (``TypeError``); its type or its
        shape is another one (``ValueError``).
        """
        known = {name for version in self._versions for name, *_ in version.program.tensors}
        known |= {name for name, *_ in self._source.tensors} | {name for name, _ in self._source.numbers}
        known |= {name for version in self._versions for name, _ in version.program.numbers}
        for name in arrays:
            if name not in known:
                raise TypeError(f"the {self.__name__} has no tensor '{name}': it has {', '.join(sorted(known))}")
        like = [arrays.get(name, arrays.get(f"d_{name}")) for name, *_ in self._source.tensors]
        for (name, *_), array in zip(self._source.tensors, like):
            if array is None:
                raise TypeError(f"the {self.__name__} misses its array '{name}'")
        sizes = self._source.fit(like, {})
        made: dict[str, Any] = dict(arrays)
        read = {name for version in self._versions for name, _, role, _ in version.program.tensors if role == "input"}
        found: dict[str, Any] = {}
        for version in self._versions:
            program = version.program
            for name, element, role, layout in program.tensors:
                if name not in made:
                    if role == "input":
                        raise TypeError(f"the {self.__name__} misses its array '{name}'")
                    own_layout = Layout(layout)
                    extents = {size: sizes[size] for size in _native.sizes_in(own_layout)}
                    # What the program does not load has the derivative 0, and sums begin at 0.
                    made[name] = laid(like[0], own_layout.substitute(**extents) if extents else own_layout, element)
                    fill(made[name], 0.0)
                if role != "input" and name not in read:
                    found[name] = made[name]
            tensors = [made[name] for name, *_ in program.tensors]
            own = {size: sizes[size] for size in program.sizes}
            for name, _ in program.numbers:
                if name not in arrays:
                    raise TypeError(f"the {self.__name__} misses its number '{name}'")
            given = {name: arrays[name] for name, _ in program.numbers}
            if not version.launcher.launch(tensors, given, own, None):
                interpret(program, tensors, given, own, None, False)
        return found

    def __repr__(self) -> str:
        return f"<{self.__name__}>"
