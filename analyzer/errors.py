"""What can go wrong for a reason the user can act on: one sentence, one hint, one exit code."""

from __future__ import annotations


class AnalyzerError(Exception):
    """A failure with a cause the user can read; never shown as a traceback.

    `message` states the fact (with the file name where there is one), `hint` the next action.
    """

    exit_code = 70

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(AnalyzerError):
    """The command line or the configuration asks for something that cannot be done (exit 2)."""

    exit_code = 2


class UnusableInput(AnalyzerError):  # noqa: N818 - reads as what it is, like StopIteration
    """A file, or every file, holds nothing that can be analysed (exit 3)."""

    exit_code = 3
