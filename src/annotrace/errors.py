"""Everything this library raises on purpose."""


class AnnotraceError(Exception):
    """Base of every error raised on purpose; the command line shows it as one line."""


class InputError(AnnotraceError, ValueError):
    """What was given cannot be used; the message names the place and the remedy."""


class RunError(AnnotraceError):
    """A saved run or checkpoint is missing, damaged, or from a newer version."""


class DivergenceError(AnnotraceError):
    """The loss is no longer a number."""


class SweepError(AnnotraceError):
    """Some runs of an experiment failed; the others are kept, and can be drawn."""


class TrainingInterrupted(KeyboardInterrupt):
    """Training was stopped from the keyboard; the message says how to go on."""


def say_os_error(error: OSError) -> str:
    """Say in a line what the system refused, and of which file where that is known.

    >>> say_os_error(FileNotFoundError(2, "No such file or directory", "labels.csv"))
    'labels.csv: No such file or directory.'
    """
    refused = error.strerror or str(error) or type(error).__name__
    told = refused if error.filename is None else f"{error.filename}: {refused}"
    return told.rstrip(".") + "."


def first_few(names: object, limit: int = 3) -> str:
    """Quote the first `limit` of some names, each cut to 60 characters, for a message.

    >>> first_few(["a", "b", "c", "d"])
    "'a', 'b', 'c', ..."
    """
    listed = list(names)  # type: ignore[call-overload]
    return ", ".join(repr(str(name)[:60]) for name in listed[:limit]) + (
        ", ..." if len(listed) > limit else ""
    )
