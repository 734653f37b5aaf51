"""Writes parts of the type stubs of the package from the language's table of functions.

    python stubs.py           writes those parts of package/tilewright/*.pyi
    python stubs.py --check   says whether they are what it would write

A part begins with a comment, such as `# methods of Layout, written by stubs.py:`, and ends with `# end`.

What stands in the table is never written by hand: the names of the arguments, which of them may be left out, which classes
have a function as a method. By hand are the other parts, and what a function returns where its example does not tell.
It needs the package installed; `scripts/python` runs it, and then mypy.stubtest, which compares the stubs with the package.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

import tilewright as tw

HERE = Path(__file__).parent
PACKAGE = HERE / "package" / "tilewright"

# Layouts and tuples alike: what goes in comes out.
NESTED = {
    "append", "append_to_rank", "dice", "flatten", "get", "group", "prepend", "prepend_to_rank", "remove", "replace",
    "reverse", "select", "slice", "take", "unflatten", "unzip", "zip",
}  # fmt: skip

# Numbers of a layout may become known at launch; those of most are integers.
NUMBERS = {"size", "cosize", "product", "inner_product", "max", "min", "sum", "gcd", "mod", "rem"}
TUPLES = {
    "shape", "stride", "coshape", "product_each", "product_like", "elem_scale", "tuple_add", "tuple_sub", "ceil_div",
    "floor_div", "shape_div", "round_up", "compact_order", "idx2crd", "crd2crd", "increment_coord",
}  # fmt: skip
RETURNS = {
    "crd2idx": "Any",
    "substitute": "Any",
    "slice_and_offset": "tuple[Layout, int]",
    "domain_offset": "tuple[Layout, Any]",
    "make_layout_tv": "tuple[IntTuple, Layout]",
    "mutual_refinement": "tuple[IntTuple, IntTuple]",
    "image": "tuple[Any, ...]",
    "bit_kernel": "tuple[int, ...]",
    "bit_image": "tuple[int, ...]",
    "graft": "IntTuple",
    "factorisation": "IntTuple",
    "refined_sizes": "IntTuple",
    "domain": "IntTuple",
    "codomain": "IntTuple",
    "common_refinement": "IntTuple",
    "common_coarsening": "IntTuple",
}  # fmt: skip
# Those that morphisms and linear layouts have in a form of their own.
OWN = {
    "Morphism": {
        "composition", "coalesce", "complement", "logical_divide", "logical_product", "flatten", "sum",
    },
    "LinearLayout": {"composition", "bit_inverse", "left_inverse", "right_inverse", "left_divide"},
}  # fmt: skip

# Those that take a tensor of a kernel, and what they give then.
VIEWS = {
    "composition": "View",
    "cosize": "Any",
    "depth": "int",
    "get": "Any",
    "group": "View",
    "local_tile": "View",
    "make_fragment_like": "Fragment",
    "rank": "int",
    "select": "View",
    "shape": "Any",
    "size": "Any",
    "stride": "Any",
    "zipped_divide": "View",
}


def returned(function: tw.Function) -> str:
    """The type of what a function returns of layouts or numbers."""
    name = function.__name__
    if name in RETURNS:
        return RETURNS[name]
    if name in NUMBERS:
        return "int | Any"
    if name in TUPLES:
        return "IntTuple | Any"
    kind = type(tw.evaluate(function.example)).__name__
    return "tuple[Any, ...]" if kind == "tuple" else kind


def parameters(function: tw.Function, method: bool) -> str:
    """The parameters, those of all ways of calling the function together."""
    least, most = function.arity
    ways = sorted(function.ways, key=len)
    longest = ways[-1]
    first = ["self"] if method else []
    if most is None or not all(longest[: len(way)] == way for way in ways):
        return ", ".join([*first, "*arguments: Argument", "**named: Argument"])
    names = longest[1:] if method else longest
    skipped = len(longest) - len(names)
    told = [f"{name}: Argument" + (" = None" if at + skipped >= least else "") for at, name in enumerate(names)]
    return ", ".join(first + told)


def function_stub(function: tw.Function) -> str:
    name, rest = function.__name__, parameters(function, method=False)
    own = [(kind, kind) for kind, names in OWN.items() if name in names]
    plain = returned(function)
    if name.startswith("partition_"):
        return f"def {name}({rest.replace('A: Argument', 'A: Argument | Tensor')}) -> Any: ...\n"
    if "Tensor" in function.classes:
        own.append(("Tensor", of_tensor(function)))
    if name in VIEWS:
        own.append(("View", VIEWS[name]))
    if name in NESTED:
        forms = own + [("Layout | str", "Layout"), ("IntTuple", "Any")]
    elif own:
        forms = own + [("LayoutLike", plain)]
    else:
        return f"def {name}({rest}) -> {plain}: ...\n"
    if rest.startswith("*arguments"):
        rest = "A: Argument, /, " + rest
    head, _, others = rest.partition(": Argument")
    lines = [f"@overload\ndef {name}({head}: {first}{others}) -> {result}: ...\n" for first, result in forms]
    return "".join(lines)


def of_tensor(function: tw.Function) -> str:
    """The type of what a function returns of a tensor: what it tells of the layout, or a tensor."""
    if function.__name__ in TUPLES:
        return returned(function)
    return "int" if function.__name__ in NUMBERS | {"rank", "depth"} else "Tensor"


def method_stub(function: tw.Function, kind: str) -> str:
    name = function.__name__
    if kind == "Tensor":
        return f"    def {name}({parameters(function, method=True)}) -> {of_tensor(function)}: ...\n"
    result = returned(function)
    if name in NESTED:
        result = "Layout"
    if name in OWN.get(kind, ()):
        result = kind
    return f"    def {name}({parameters(function, method=True)}) -> {result}: ...\n"


def filled(name: str, parts: dict[str, str]) -> str:
    """The text of a stub with these parts."""
    text = (PACKAGE / name).read_text()
    for what, part in parts.items():
        head, begin, rest = text.partition(f"# {what}, written by stubs.py:\n")
        # The comment of the end is indented as that of the beginning.
        written, end, tail = rest.partition(head[head.rfind("\n") + 1 :] + "# end\n")
        assert begin and end, what
        text = head + begin + part + end + tail
    return text


def native() -> str:
    kinds = ("Layout", "Swizzle", "BitMatrix", "LinearLayout", "Morphism", "Tensor")
    by_hand = filled("_native.pyi", {f"methods of {kind}": "" for kind in kinds})
    parts = {}
    for kind in kinds:
        # What the class has of its own stays.
        body = re.split(rf"class {kind}[(:]", by_hand)[1].partition("\nclass ")[0]
        own = {f.__name__ for f in tw.functions() if f" {f.__name__}(" in body} | {"substitute"}
        methods = [method_stub(f, kind) for f in tw.functions() if kind in f.classes and f.__name__ not in own]
        parts[f"methods of {kind}"] = "".join(methods)
    return filled("_native.pyi", parts)


def module() -> str:
    from tilewright import _cute

    own = {"make_layout", *_cute.__all__}
    stubs = [function_stub(f) for f in tw.functions() if f.__name__ not in own]
    names = {f.__name__: f for f in tw.functions()}
    from tilewright._more import aliases

    stubs += [f"{theirs} = {ours.__name__}\n" for theirs, ours in aliases.items() if ours.__name__ in names]
    listed = ", ".join(f'"{name}"' for name in tw.__all__) + ","
    exported = f"__all__ = [\n{textwrap.fill(listed, 120, initial_indent='    ', subsequent_indent='    ')}\n]\n"
    return filled("__init__.pyi", {"exported": exported, "functions": "".join(stubs)})


def main() -> int:
    wrong = []
    for name, text in {"_native.pyi": native(), "__init__.pyi": module()}.items():
        file = PACKAGE / name
        if "--check" not in sys.argv:
            file.write_text(text)
        elif file.read_text() != text:
            wrong.append(name)
    if wrong:
        print(f"{', '.join(wrong)}: not what stubs.py writes; run it")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
