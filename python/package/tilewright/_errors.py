"""What is refused."""

from __future__ import annotations


class LayoutError(ValueError):
    """The algebra refuses: there is no such layout, or the arguments do not go together.

    The text shows the call with the culprit underlined. ``explain(error)`` is the page about its code.
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
    #: Where the condition fails: an index, or a coordinate with one index for each leaf.
    witness: tuple[int, ...] | None

    def __init__(
        self,
        text: str,
        *,
        code: str = "",
        message: str | None = None,
        help: str | None = None,
        source: str | None = None,
        span: tuple[int, int] | None = None,
        witness: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(text)
        self.code = code
        self.message = text if message is None else message
        self.help = help
        self.source = source
        self.span = span
        self.witness = witness
