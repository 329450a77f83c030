"""What the functions of C++ refuse, in a sentence: their own TypeError is the whole signature, and messages
from below name options of the command.

Nothing is looked at before a call has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

from .errors import Error

Function = TypeVar("Function", bound=Callable[..., Any])

_REFUSED = "(): incompatible function arguments"


def told(function: Function) -> Function:
    """The function, which says what is wrong with its arguments."""

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except TypeError as error:
            if _REFUSED not in str(error):
                raise
            from .signatures import what_is_wrong

            raise what_is_wrong(function, given, named) from None
        except Error as error:
            if "--" in error.message:
                from .signatures import without_options

                error.message = without_options(error.message, function)
                error.args = (error.message,)
            raise

    call.__module__ = "packtrain"
    return call  # type: ignore[return-value]


def tell_of(owner: type, names: Iterable[str]) -> None:
    """The same for methods of a class of C++."""
    for name in names:
        setattr(owner, name, told(getattr(owner, name)))
