"""What is wrong with the arguments of a function of C++, told from its signature. Imported when one is
refused."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from .checks import MOST, MOST_OF_FEW
from .errors import InvalidError


@dataclass(frozen=True)
class Parameter:
    name: str
    kinds: tuple[str, ...]
    """What it may be, as the signature has it."""
    by_position: bool
    needed: bool


def _is_number(value: Any) -> bool:
    return hasattr(value, "__index__")


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, bytes, os.PathLike)) and (not isinstance(value, str) or "\0" not in value)


def _is_texts(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, (str, bytes))
        and all(isinstance(each, str) for each in value)
    )


def _is_numbers(value: Any) -> bool:
    return isinstance(value, Iterable) and all(map(_is_number, value))


def _is_paths(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and all(map(_is_path, value))


def _is_named_paths(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and (_is_path(paths) or _is_paths(paths)) for name, paths in value.items()
    )


# By the types of a signature: whether a value is one, and what it is called in words.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "int": (_is_number, "a whole number"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "str": (lambda value: isinstance(value, str), "a text"),
    "slice": (lambda value: isinstance(value, slice), "a slice"),
    "None": (lambda value: value is None, "None"),
    "os.PathLike[str]": (_is_path, "a path"),
    "collections.abc.Sequence[str]": (_is_texts, "a list of texts"),
    "collections.abc.Iterable[int]": (_is_numbers, "a list of whole numbers"),
    "collections.abc.Sequence[int]": (_is_numbers, "a list of whole numbers"),
    "collections.abc.Sequence[str | os.PathLike[str]]": (_is_paths, "a list of paths"),
    "collections.abc.Mapping": (_is_named_paths, "{split: path}"),
    "collections.abc.Callable": (callable, "a function of one packtrain.Progress"),
}


def what_is_wrong(
    function: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]
) -> TypeError | InvalidError:
    """Of a call that was refused: of a wrong type a TypeError, of the right one but out of range an
    InvalidError."""
    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    forms = [_parameters(text) for text, *_ in function.__nb_signature__]  # type: ignore[attr-defined]
    if name == "Dataset":
        forms = forms[:1]  # the second takes anything, and asks here
    if len(forms) > 1:
        return _of_several(name, forms, given, named)
    parameters = forms[0]
    known = {parameter.name: parameter for parameter in parameters}
    is_method = parameters[0].name == "self"
    for word in named:
        if word not in known:
            near = get_close_matches(word, known, 1)
            there = ", ".join(other for other in known if other != "self")
            hint = f"did you mean {near[0]}=?" if near else f"there are: {there}"
            return TypeError(f"{name}() has no argument {word}=; {hint}")
    by_position = [parameter for parameter in parameters if parameter.by_position]
    if len(given) > len(by_position):
        words = " and ".join(parameter.name for parameter in by_position if parameter.name != "self")
        return TypeError(f"{name}() takes {words or 'nothing'} by position; give the others by name")
    values = {parameter.name: value for parameter, value in zip(by_position, given)}
    for word in named:
        if word in values:
            return TypeError(f"{name}() is given {word} twice, by position and by name")
    values.update(named)
    for parameter in parameters:
        if parameter.needed and parameter.name not in values:
            return TypeError(f"{name}() needs {parameter.name}")
    for word, value in values.items():
        parameter = known[word]
        if word == "self":
            continue
        # The form in which it was given.
        called = word if parameter.needed and not is_method else f"{word}="
        if not any(_KINDS[kind][0](value) for kind in parameter.kinds if kind in _KINDS):
            return TypeError(
                f"{called} is {_in_words(parameter.kinds)}, not {_shown(value)}{_hint(word, value)}"
            )
        if _is_number(value) and not 0 <= value <= MOST and "int" in parameter.kinds:
            return InvalidError(
                f"{called} is {_in_words(parameter.kinds)} from 0 to {MOST}, not {_shown(value)}"
            )
    # The right types, and yet refused: some numbers are smaller than others.
    for word, value in values.items():
        if "int" in known[word].kinds and _is_number(value) and value > MOST_OF_FEW:
            return InvalidError(f"{word}= is a whole number from 0 to {MOST_OF_FEW}, not {_shown(value)}")
    return TypeError(f"{name}() cannot take one of its arguments; see help(packtrain.{name})")


def _of_several(
    name: str, forms: Sequence[Sequence[Parameter]], given: Sequence[Any], named: Mapping[str, Any]
) -> TypeError:
    """A function that takes one of several things: data[…]."""
    kinds = tuple(dict.fromkeys(kind for form in forms for kind in form[-1].kinds))
    called = {"__getitem__": "what is in [ ]"}.get(name, f"the argument of {name}()")
    value = next(iter([*given[1:], *named.values()]), None)
    return TypeError(f"{called} is {_in_words(kinds)}, not {_shown(value)}")


def _parameters(signature: str) -> list[Parameter]:
    # Defaults stand as \0, \1 and so on beside the signature.
    arguments_only = re.sub(r"\\\d+", "...", signature.rpartition(" -> ")[0])
    definition = ast.parse(arguments_only + ": ...").body[0]
    assert isinstance(definition, ast.FunctionDef)
    arguments = definition.args
    positional = [*arguments.posonlyargs, *arguments.args]
    optional = len(positional) - len(arguments.defaults)
    found = [
        Parameter(each.arg, _kinds_of(each.annotation), True, place < optional)
        for place, each in enumerate(positional)
    ]
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        found.append(Parameter(each.arg, _kinds_of(each.annotation), False, default is None))
    return found


def _kinds_of(annotation: ast.expr | None) -> tuple[str, ...]:
    if annotation is None:
        return ()
    if isinstance(annotation, ast.BinOp):
        return (*_kinds_of(annotation.left), *_kinds_of(annotation.right))
    text = ast.unparse(annotation)
    whole = text.partition("[")[0]
    return (whole if whole in ("collections.abc.Mapping", "collections.abc.Callable") else text,)


def _in_words(kinds: Sequence[str]) -> str:
    # A path may be a text, too: one word for both.
    named = [kind for kind in kinds if kind != "str" or "os.PathLike[str]" not in kinds]
    words = [_KINDS[kind][1] if kind in _KINDS else kind for kind in named]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 100 else shown[:97] + "..."


def _hint(name: str, value: Any) -> str:
    """For what the command takes in another form."""
    parts = str(value).split("/")
    if name == "task" and len(parts) == 2 and all(part.isdecimal() for part in parts):
        return f"; the task {value} is task={parts[0]}, tasks={parts[1]}"
    return ""


# An option of the command, with what is said of its value: a word that stands for one, or a number.
_VALUES = (
    "none|raw|keep|auto|webdataset|zip|npz|npy|zarr|hdf5|lmdb|arrow|parquet|squashfs|deflate|gzip|zstd|lz4|blosc"
    r"|jpeg:\w+|[A-Z]+\b|\d+"
)
_OPTION = re.compile(rf"(?<!packtrain index )--([a-z][a-z-]*)(?: ({_VALUES})(?![\w-]))?")


def without_options(message: str, function: Callable[..., Any]) -> str:
    """A message that names the function's arguments where it named the options of the command."""
    known = {p.name for text, *_ in function.__nb_signature__ for p in _parameters(text)}  # type: ignore[attr-defined]

    def argument(option: re.Match[str]) -> str:
        name, value = option[1].replace("-", "_"), option[2]
        if name not in known:
            return option[0]
        if value is None:
            return f"{name}="
        plain = value.isdecimal() or value.isupper()
        return f"{name}={value}" if plain else f'{name}="{value}"'

    return _OPTION.sub(argument, message)
