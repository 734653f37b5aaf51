"""The kernels and tile programs of the library, by their names: what ``tilewright kernel`` does.

>>> import tilewright as tw
>>> tw.kernels.named("gather_rows").summary
'Rows by their numbers: the tokens of each expert one after another'
>>> "attention" in tw.kernels.names()
True
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import _native
from ._native import Picture, Program
from ._reports import Checked, Compared, Cost, Measured
from ._tile import Explanation


class LibraryKernel:
    """A kernel of the library.

    Sizes are keywords, as in ``kernel.cost(M=4096)``. Where none is given, they are the kernel's
    own: ``sizes`` for a check, ``large`` for a cost.
    """

    def __init__(self, kernel: _native.NamedKernel) -> None:
        self._kernel = kernel
        #: The name.
        self.name: str = kernel.name
        #: What it does.
        self.summary: str = kernel.summary
        #: The sizes at which it is checked where none are given.
        self.sizes: dict[str, int] = {name: size for name, size, _ in kernel.sizes}
        #: Those at which it is costed.
        self.large: dict[str, int] = {name: size for name, _, size in kernel.sizes}
        #: The types of elements that may be asked for; none for a tile program, whose text says them.
        self.types: tuple[str, ...] = tuple(kernel.types)
        #: The text of a tile program.
        self.text: str | None = kernel.text

    @property
    def is_tile(self) -> bool:
        """Whether it is a tile program."""
        return self.text is not None

    def programs(self, *, type: Any = None, machine: str = "A100", target: str | None = None, **sizes: int) -> tuple[Program, ...]:
        """The kernels of its launches, one after another."""
        return self._launched(type, target or machine, sizes, False)[1]

    def show(self, *, type: Any = None, machine: str = "A100", target: str | None = None, **sizes: int) -> str:
        """The plan, and the resources of each launch."""
        plan, programs, _ = self._launched(type, target or machine, sizes, False)
        lines = [f"{self.name}: {self.summary}", *(f"  {line}" for line in plan)]
        for program in programs:
            lines.append("")
            lines += [f"  {name:<12} {element} {layout}" for name, element, _, layout in program.tensors]
            lines.append(f"  grid         ({','.join(program.grid)}) of {program.threads} threads")
            lines.append(f"  shared       {program.shared_bytes} bytes a block")
        return "\n".join(lines)

    def ptx(
        self, machine: str = "A100", *, launch: int = 1, type: Any = None, target: str | None = None, **sizes: int
    ) -> str:
        """The kernel of a launch as PTX: for a card, as "H200", or one that runs ``target="sm_90a"``."""
        machine = target or machine
        programs = self._launched(type, machine, sizes, False)[1]
        if not 1 <= launch <= len(programs):
            raise ValueError(f"{self.name} has launches 1 to {len(programs)}, not {launch}")
        return programs[launch - 1].ptx(_native.target_of_machine(machine))

    def check(self, *, type: Any = None, machine: str = "H200", **sizes: int) -> Checked:
        """Runs it in the interpreter under every schedule, and compares the result with its
        definition, or with that of the tile program.
        """
        self._without_type(type)
        if tiles := self._kernel.tiles(None):
            of = sizes or self.sizes
            schedules, instructions, outputs = tiles.check(of, [])
            return Checked(of, schedules, instructions, tuple(Compared(*output) for output in outputs))
        schedules, instructions, compared, worst = self._kernel.check(sizes, type, machine)
        result = Compared("result", compared, worst, 1.0)
        return Checked({**self.sizes, **sizes}, schedules, instructions, (result,))

    def cost(self, machine: str = "H200", *, launch: int = 1, type: Any = None, **sizes: int) -> Cost:
        """What a launch costs on a machine, before it runs: "H200", "RTX 4090" and others."""
        _, programs, of = self._launched(type, machine, sizes, True)
        if not 1 <= launch <= len(programs):
            raise ValueError(f"{self.name} has launches 1 to {len(programs)}, not {launch}")
        return Cost(*programs[launch - 1].cost(of, machine))

    def bench(self, *, device: int = 0, repeats: int = 9, type: Any = None, **sizes: int) -> Measured:
        """Runs it on a GPU, compares its output with its definition, and times it beside the
        driver's copy of equally many bytes: the medians of ``repeats`` times. A tile program is
        compared at its ``sizes``, and timed at the given ones, or at ``large``.

        Errors: there is no driver or no such device (``GpuError``); an element differs from the
        definition (``KernelError``).
        """
        self._without_type(type)
        if tiles := self._kernel.tiles(None):
            text, numbers = tiles.bench(self.sizes, sizes or self.large, device, repeats)
        else:
            text, numbers = self._kernel.bench(sizes, type, device, repeats)
        told = " ".join(f"{name}={size}" for name, size in numbers["sizes"].items())
        return Measured(f"{self.name} {told}\n{text}", numbers)

    def explain(self, machine: str = "A100", *, target: str | None = None) -> Explanation:
        """Of a tile program, the layout of each value, and why."""
        tiles = self._kernel.tiles(target or machine)
        if tiles is None:
            raise TypeError(f"{self.name} is no tile program, whose layouts are assigned: `show()` says what was planned")
        text, pictures = tiles.explain()
        return Explanation(text, dict(pictures))

    def draw(
        self,
        *,
        block: tuple[int, int, int] = (0, 0, 0),
        warp: int = 0,
        launch: int = 1,
        type: Any = None,
        **sizes: int,
    ) -> Picture:
        """What the lanes of a warp of a block reach, statement by statement."""
        _, programs, of = self._launched(type, "A100", sizes, False)
        return programs[launch - 1].draw(of, block, warp)

    def _without_type(self, type: Any) -> None:
        if self.is_tile and type is not None:
            raise TypeError(f"{self.name} is a tile program, whose text says its types")

    def _launched(
        self, type: Any, machine: str, sizes: dict[str, int], large: bool
    ) -> tuple[list[str], tuple[Program, ...], dict[str, int]]:
        """The plan, the kernels, and the sizes of a launch."""
        self._without_type(type)
        if tiles := self._kernel.tiles(machine):
            return [f"{tiles.warps} warps"], (tiles.program,), sizes or (self.large if large else self.sizes)
        plan, programs, of = self._kernel.planned(sizes, type, machine, large)
        return plan, tuple(programs), dict(of)

    def __repr__(self) -> str:
        return f"<kernel {self.name}: {self.summary}>"


def _all() -> Iterable[LibraryKernel]:
    return (LibraryKernel(kernel) for kernel in _native.named_kernels())


def names() -> list[str]:
    """The names of all kernels and tile programs. ``softmax.tile`` is a tile program where a kernel
    has the name, too.
    """
    return [kernel.name for kernel in _native.named_kernels()]


def listed() -> list[LibraryKernel]:
    """All kernels and tile programs."""
    return list(_all())


def named(name: str) -> LibraryKernel:
    """The kernel, or the tile program, of this name.

    Errors: there is none (``ValueError``).
    """
    for kernel in _all():
        if name in (kernel.name, kernel.name.removesuffix(".tile") + ".tile" if kernel.is_tile else None):
            return kernel
    from difflib import get_close_matches

    near = get_close_matches(name, names(), 1)
    raise ValueError(f"there is no kernel '{name}'" + (f": did you mean '{near[0]}'?" if near else "; tw.kernels.names() lists them"))


__all__ = ["Checked", "Compared", "Cost", "LibraryKernel", "Measured", "listed", "named", "names"]
