"""The exceptions of packtrain: one class per kind of failure, all of them an `Error`."""

from __future__ import annotations

from typing import Any, ClassVar


class Error(Exception):
    """A failure: what happened, where, and what to do next."""

    code: ClassVar[str] = ""
    """The kind of failure, the word that the command's --json gives."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.report: Any = None  # of pack(): what was found before it failed

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.where)


class NotFoundError(Error, KeyError):
    """A path, key, class, split or field is not there."""

    code = "not_found"


class InvalidError(Error, ValueError):
    """Wrong usage: an argument, or a combination of them."""

    code = "invalid"


class CorruptError(Error):
    """The bytes are not what they must be."""

    code = "corrupt"


class NoRoomError(Error, OSError):
    """Bytes, inodes, memory or quota are exhausted."""

    code = "no_room"


class StorageError(Error, OSError):
    """The storage or the system failed."""

    code = "io"


class UnsupportedError(Error):
    """Valid, but this build or version cannot do it."""

    code = "unsupported"


class StoppedError(Error):
    """Stopped by the caller; the same call again goes on where this one ended."""

    code = "stopped"
