"""The kernels that are traced of a function, and which of them a call is for.

Law: two calls share a kernel if it is right for both, and each call finds the kernel that its
constants, types and sizes ask for. Those that were called last are kept.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from . import _constants, _native
from ._errors import KernelError
from ._native import Layout, Program
from ._parameters import Array, Known, Scalar, Spec, is_array
from ._sizes import LADDER, MOST, Read, Rung, Sizes


class Given(NamedTuple):
    """What a kernel is traced with: the layouts of tensors, the roles that are not declared, numbers
    of the launch with what is known of each, and the values of the other parameters.
    """

    layouts: dict[str, tuple[str, Any]]
    roles: dict[str, str]
    sizes: dict[str, str]
    constants: dict[str, Any]
    grid: tuple[int, int, int] | None


class Version:
    """A kernel for some constants and layouts."""

    def __init__(self, program: Program, explained: _native.TileProgram | None = None) -> None:
        self.program = program
        self.explained = explained
        self.launcher = _native.Launcher(program)
        #: The numbers of the launch that are arguments, by their names.
        self.integers: dict[str, str] = {}
        #: By what it is kept.
        self.key: Hashable = None


class Versions(NamedTuple):
    """The kernels that were traced of a function: how many are kept, the most that are, and how many
    were traced in all.
    """

    kept: int
    most: int
    traced: int



def _axes(layout: Layout) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The extents and strides of a layout whose modes are no tuples; none of others."""
    try:
        shape, strides = layout.shape, layout.stride
    except ValueError:
        # It is composed, as of a swizzle.
        return None
    pair = (shape, strides) if isinstance(shape, tuple) else ((shape,), (strides,))
    return pair if pair[0] and all(type(number) is int for of in pair for number in of) else None


#: The words of a layout.
_WORDS = re.compile(r"[A-Za-z_]\w*")


class Versioned:
    """A function with the kernels that were traced of it."""

    #: How many versions are kept: the one that was called longest ago goes first.
    most_versions = 64

    def __init__(self, function: Callable[..., Any], specs: dict[str, Spec]) -> None:
        self.function = function
        self.specs = specs
        self.__name__ = function.__name__
        self._all_said = all(isinstance(spec, Array) and spec.layout is not None for spec in specs.values())
        self._reads = _constants.Reads(function)
        # By all that a call says, and by what a version is traced with.
        self._calls: OrderedDict[Hashable, Version] = OrderedDict()
        self._versions: OrderedDict[Hashable, Version] = OrderedDict()
        # What was tried with some sizes as numbers of the launch and refused, and why.
        self._refused: OrderedDict[Hashable, Exception | None] = OrderedDict()
        # The sizes that a kernel was seen to use as constants, by what is equal to what.
        self._needed: dict[Hashable, frozenset[str]] = {}
        self._roles: dict[str, str] = {}
        self._traced = 0
        # What launches the version of the last call, where calls tell no versions apart.
        self._launch: Callable[..., bool] | None = None
        self._lock = threading.RLock()

    @property
    def versions(self) -> Versions:
        """How many kernels were traced of the function, and how many are kept."""
        return Versions(len(self._versions), self.most_versions, self._traced)

    def _version(self, grid: tuple[int, int, int] | None, values: dict[str, Any], said: dict[str, Known]) -> Version:
        """The kernel for these values, traced if it is not known."""
        arrays: list[Any] = []
        if not self._reads.unchanged():
            self._launch = None
            self._reads.update()
        key: list[Hashable] = [self._reads.key]
        for name, own in self.specs.items():
            if isinstance(own, Scalar) or (isinstance(own, Array) and own.layout is not None):
                continue
            value = values[name]
            if isinstance(own, Array) or is_array(value):
                arrays.append(value)
                key.append(None)
            elif type(value) is int:
                key.append(value)
            else:
                key.append(_constants.key(value, f"'{name}' of {self.__name__}"))
        if arrays:
            key.append(_native.array_key(tuple(arrays)))
        if said:
            key.append(tuple((name, own.is_static, own.div) for name, own in said.items()))
        for at in (None, grid) if grid is not None else (None,):
            known = self._calls.get((*key, at))
            if known is not None:
                try:
                    self._versions.move_to_end(known.key)
                except KeyError:
                    # Another thread has dropped it meanwhile.
                    pass
                if self._all_said and at is None and self._launch is None:
                    self._launch = known.launcher.launch
                return known
        with self._lock:
            version, at = self._found(grid, values, said, key)
            self._calls[(*key, at)] = version
            while len(self._calls) > 16 * self.most_versions:
                self._calls.popitem(last=False)
            if self._all_said and at is None:
                self._launch = version.launcher.launch
        return version

    def _found(
        self, grid: tuple[int, int, int] | None, values: dict[str, Any], said: dict[str, Known], key: list[Hashable]
    ) -> tuple[Version, tuple[int, int, int] | None]:
        """The version of these values on the first rung that takes them."""
        sizes, layouts, constants = self._read(values, said)
        # Integers that may be numbers of the launch are in the pattern, and no constants.
        others = tuple(
            (name, _constants.key(value, f"'{name}' of {self.__name__}")) for name, value in constants.items() if name not in sizes.integers.values()
        )
        fixed = tuple((name, element, str(layout)) for name, (element, layout) in layouts.items())
        pattern = (key[0], sizes.pattern, others, fixed)
        last: Exception | None = None
        tried: set[Hashable] = set()
        for rung in self._ladder(sizes):
            while True:
                needed = self._needed.get(pattern, frozenset())
                static = sizes.constants(rung, needed)
                facts = sizes.facts(rung, static)
                own = (pattern, tuple((name, sizes.values[name]) for name in sorted(static)), tuple(sorted(facts.items())))
                known, at = self._kept(own, grid)
                if known is not None:
                    return known, at
                if own in tried or (own, grid is None) in self._refused:
                    last = self._refused.get((own, grid is None), last) or last
                    break
                tried.add(own)
                texts = sizes.layouts(static, facts)
                given = Given(
                    {**layouts, **{name: (element, texts[name]) for name, element in sizes.elements}},
                    {},
                    {
                        name: f"{name}{{max={MOST}{f',div={facts[name]}' if facts[name] > 1 else ''}}}"
                        for name in sizes.integers
                        if name not in static
                    },
                    constants,
                    None,
                )
                try:
                    made, at = self._with_grid(given, grid)
                except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
                    last = error
                    if not facts:
                        raise
                    uses = (frozenset(getattr(error, "sizes", ())) & set(facts)) - set(sizes.dynamic)
                    if uses:
                        # The kernel says which ones it needs.
                        self._needed[pattern] = needed | uses
                        continue
                    self._refuse((own, grid is None), error)
                    break
                # What the kernel does not use is no size of it.
                used = {_WORDS.match(text).group() for text in made.program.sizes}  # type: ignore[union-attr]
                made.integers = {name: of for name, of in sizes.integers.items() if name in used}
                if facts and not sizes.dynamic and self._is_narrower(made, given, sizes, grid):
                    self._refuse((own, grid is None), None)
                    break
                self._keep((own, at), made)
                return made, at
        if last is None:
            raise TypeError(f"{self.__name__} is not traced with these sizes as numbers of the launch")
        raise last

    def _ladder(self, sizes: Sizes) -> tuple[Rung, ...]:
        return LADDER if sizes.integers else LADDER[len(LADDER) // 2 :]

    def _kept(self, own: Hashable, grid: tuple[int, int, int] | None) -> tuple[Version | None, tuple[int, int, int] | None]:
        for at in (None, grid) if grid is not None else (None,):
            known = self._versions.get((own, at))
            if known is not None:
                self._versions.move_to_end((own, at))
                return known, at
        return None, None

    def _keep(self, key: Hashable, version: Version) -> None:
        """Keeps a version, in place of the least recently called one."""
        self._traced += 1
        version.key = key
        self._versions[key] = version
        while len(self._versions) > self.most_versions:
            _, gone = self._versions.popitem(last=False)
            for call in [call for call, known in self._calls.items() if known is gone]:
                del self._calls[call]
        while len(self._needed) > self.most_versions:
            del self._needed[next(iter(self._needed))]

    def _refuse(self, key: Hashable, why: Exception | None) -> None:
        """Keeps that some sizes are no numbers of the launch, so that it is not tried again."""
        self._refused[key] = None if why is None else why.with_traceback(None)
        while len(self._refused) > 16 * self.most_versions:
            self._refused.popitem(last=False)

    def _read(self, values: dict[str, Any], said: dict[str, Known]) -> tuple[Sizes, dict[str, tuple[str, Any]], dict[str, Any]]:
        """The sizes of arrays without a layout, the layouts of those that have another one than
        strides, and the values of the other parameters.
        """
        arrays: list[Read] = []
        integers: dict[str, tuple[int, bool | None, int | None]] = {}
        layouts: dict[str, tuple[str, Any]] = {}
        constants: dict[str, Any] = {}
        taken: set[str] = set()
        for name, own in self.specs.items():
            if isinstance(own, Scalar):
                continue
            if isinstance(own, Array) and own.layout is not None:
                taken.update(_WORDS.findall(str(own.layout)))
                continue
            value = values[name]
            mark = said.get(name) or (own if isinstance(own, Known) else None)
            is_static, div = (None, None) if mark is None else (mark.is_static, mark.div)
            if isinstance(own, Array) or is_array(value):
                element, layout = _native.array_layout(value)
                element = _native.element_name(own.element) if isinstance(own, Array) else element
                axes = _axes(layout)
                if axes is None:
                    layouts[name] = element, layout
                else:
                    arrays.append(Read(name, element, *axes, is_static, div))
                continue
            constants[name] = value
            if type(value) is int and 1 <= value <= MOST and is_static is not True and (value > 1 or is_static is False):
                if self._takes_integers:
                    integers[name] = value, is_static, div
            elif is_static is False:
                raise TypeError(f"'{name}' of {self.__name__} is no array and no integer from 1 to {MOST}: tw.dynamic is for these")
        return Sizes(arrays, integers, taken), layouts, constants

    #: Whether integers may be numbers of the launch.
    _takes_integers = True

    def _with_grid(
        self, given: Given, grid: tuple[int, int, int] | None
    ) -> tuple[Version, tuple[int, int, int] | None]:
        """The version, and the grid that it is for: none where the layouts tell it."""
        try:
            return self._with_roles(given), None
        except KernelError as error:
            # No tensor says how many blocks there are, or views say different numbers.
            if grid is None or error.code not in ("E0908", "E0909") or "blocks" not in error.message:
                raise
            return self._with_roles(given._replace(grid=grid)), grid

    def _with_roles(self, given: Given) -> Version:
        """The version in which the roles of undeclared tensors follow from how the kernel uses
        them.
        """
        undeclared = {name for name in given.layouts if not isinstance(self.specs[name], Array)}
        both = dict.fromkeys(undeclared, "tensor")
        guess = {name: self._roles.get(name, "tensor") for name in undeclared}
        try:
            made = self._written(given._replace(roles=guess))
        except KernelError:
            if guess == both:
                raise
            guess = both
            made = self._written(given._replace(roles=both))
        found = {}
        for (name, *_), (read, written, _) in zip(made.program.tensors, made.program.uses()):
            if name in undeclared:
                found[name] = "tensor" if read and written else "output" if written else "input"
        if found != guess:
            try:
                better = self._written(given._replace(roles=found))
                unproved = {name for name, proved in better.program.outputs if not proved} & undeclared
            except KernelError:
                # A part of an output is written, say: it keeps what it was elsewhere.
                unproved = {name for name, role in found.items() if role == "output"}
                better = None
            if unproved:
                found.update(dict.fromkeys(unproved, "tensor"))
                better = self._written(given._replace(roles=found)) if found != guess else made
            made = better or made
        self._roles = found
        return made

    def _is_narrower(self, made: Version, given: Given, sizes: Sizes, grid: tuple[int, int, int] | None) -> bool:
        """Whether an access takes fewer bytes than it would with all sizes as constants."""
        uses = made.program.uses()
        if all(bytes_ == 0 or bytes_ >= 16 for _, _, bytes_ in uses):
            return False
        static = frozenset(sizes.values)
        texts = sizes.layouts(static, {})
        layouts = {**given.layouts, **{name: (element, texts[name]) for name, element in sizes.elements}}
        roles = {name: role for name, _, role, _ in made.program.tensors}
        try:
            constant = self._written(given._replace(layouts=layouts, sizes={}, roles=roles, grid=grid))
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError):
            return False
        return any(own[2] < other[2] for own, other in zip(uses, constant.program.uses()))

    def _written(self, given: Given) -> Version:
        """The kernel that the function writes."""
        raise NotImplementedError
