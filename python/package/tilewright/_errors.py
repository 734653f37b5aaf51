"""What is refused."""

from __future__ import annotations

from typing import Any


class LayoutError(ValueError):
    """The algebra refuses: there is no such layout, or the arguments do not go together.

    The text shows the call with the culprit underlined. ``explain(error)`` is the page about it.
    """

    #: The stable code, such as ``"E0107"``.
    code: str
    #: What is wrong, as one sentence.
    message: str
    #: What would help.
    help: str | None
    #: The call, as a program of the language.
    source: str | None
    #: The culprit in ``source``, as a range of characters.
    span: tuple[int, int] | None
    #: Where the condition fails: an index, or a coordinate nested as the layout is that the message
    #: speaks of, so that ``b(error.witness)`` is the value there.
    witness: int | tuple[Any, ...] | None

    def __init__(
        self,
        text: str,
        *,
        code: str = "",
        message: str | None = None,
        help: str | None = None,
        source: str | None = None,
        span: tuple[int, int] | None = None,
        witness: int | tuple[Any, ...] | None = None,
    ) -> None:
        super().__init__(text)
        self.code = code
        self.message = text if message is None else message
        self.help = help
        self.source = source
        self.span = span
        self.witness = witness


class KernelError(LayoutError):
    """A statement of a kernel is refused, or a run of it found something wrong.

    The text shows the line of Python with the statement underlined. ``explain(error)`` is the page
    about its code, where it has one.
    """

    #: The file in which the statement stands.
    filename: str | None
    #: Its line, from 1.
    lineno: int | None
    #: Its first character, from 1.
    column: int | None
    #: The line and the column behind its last character.
    end: tuple[int, int] | None

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        help: str | None = None,
        place: tuple[str, int, int, tuple[int, int] | None] | None = None,
    ) -> None:
        if place is not None and place[0].endswith(".rs"):
            # What the package does by itself has no line of Python.
            place = None
        if ".rs:" in message:
            import re

            message = re.sub(r" at \S+\.rs:\d+:\d+", "", message)
        self.filename, self.lineno, self.column, self.end = place or (None, None, None, None)
        lines = [f"error[{code}]: {message}" if code else f"error: {message}"]
        if place is not None:
            lines += _shown(*place)
        if help:
            lines.append(f" = help: {help}")
        super().__init__("\n".join(lines), code=code, message=message, help=help)


def _shown(file: str, line: int, column: int, end: tuple[int, int] | None) -> list[str]:
    """The line of a file, underlined from a column on."""
    import linecache

    text = linecache.getline(file, line).rstrip()
    shown = [f" --> {file}:{line}:{column}"]
    if not text:
        return shown
    number = str(line)
    margin = " " * len(number)
    if end is None:
        # The line is known, and nothing of its columns.
        first, last = len(text) - len(text.lstrip()), len(text)
    else:
        first = column - 1
        last = min(end[1] - 1, len(text)) if end[0] == line else len(text)
    under = text[:first].translate({ord(letter): " " for letter in text[:first] if letter != "\t"})
    return [*shown, f"{margin} |", f"{number} | {text}", f"{margin} | {under}{'^' * max(1, last - first)}"]


class GpuError(RuntimeError):
    """The driver or a device refuses, or there is none; ``explain(error)`` is the page about it."""

    #: The stable code, such as ``"E0801"``.
    code: str
    #: What is wrong.
    message: str
    #: What would help.
    help: str | None

    def __init__(self, message: str, *, code: str = "", help: str | None = None) -> None:
        text = f"error[{code}]: {message}" + (f"\n = help: {help}" if help else "")
        super().__init__(text)
        self.code = code
        self.message = message
        self.help = help
