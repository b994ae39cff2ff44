"""Exceptions that this library raises on purpose, and the wording of their messages."""

INTERRUPTED, TERMINATED = 130, 143
"""Exit codes of a command that Ctrl-C and SIGTERM end."""


class AnnotraceError(Exception):
    """Base class of all errors raised on purpose; the command line prints them in one line."""


class InputError(AnnotraceError, ValueError):
    """Invalid input; the message names the place and the remedy."""


class LimitError(InputError):
    """A file exceeds a limit; the message names the option that raises it."""


class RunError(AnnotraceError):
    """A saved run or checkpoint is missing, damaged, or from a newer version."""


class DivergenceError(AnnotraceError):
    """The loss is not finite."""


class ProcessLostError(AnnotraceError):
    """Another process of the same run has ended."""


class ConnectError(AnnotraceError):
    """A labelling tool cannot be reached, or refuses a request.

    Parameters
    ----------
    message : str
    status : int or None
        The HTTP status, if the server answered.
    is_temporary : bool
        Whether the same request may succeed later: the server is down, busy or restarting.
    """

    def __init__(
        self, message: str, *, status: int | None = None, is_temporary: bool = False
    ) -> None:
        super().__init__(message)
        self.status = status
        self.is_temporary = is_temporary


class UnsupportedError(ConnectError):
    """A labelling tool has nothing of the kind that is asked for."""


class SweepError(AnnotraceError):
    """Some runs of an experiment failed; the results of the others are kept."""


class TrainingInterrupted(KeyboardInterrupt):
    """Training was interrupted from the keyboard; the message says how to resume."""


def describe_os_error(error: OSError) -> str:
    """Describe an error of the operating system in one line, with the file if it is known.

    >>> describe_os_error(FileNotFoundError(2, "No such file or directory", "labels.csv"))
    'labels.csv: No such file or directory.'
    """
    reason = error.strerror or str(error) or type(error).__name__
    message = reason if error.filename is None else f"{error.filename}: {reason}"
    return message.rstrip(".") + "."


def first_few(names: object, limit: int = 3) -> str:
    """Quote the first `limit` names, each cut to 60 characters.

    >>> first_few(["a", "b", "c", "d"])
    "'a', 'b', 'c', ..."
    """
    listed = list(names)  # type: ignore[call-overload]
    return ", ".join(repr(str(name)[:60]) for name in listed[:limit]) + (
        ", ..." if len(listed) > limit else ""
    )


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun in the singular or plural.

    >>> count(1, "item"), count(1200, "item"), count(2, "class", "classes")
    ('1 item', '1,200 items', '2 classes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
