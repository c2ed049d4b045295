# SPDX-License-Identifier: Apache-2.0
"""JSON as the formats need it: no duplicate keys, no NaN, and errors that name the field."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from bricksim_core.errors import FormatError
from bricksim_core.formats.source import shorten
from bricksim_core.topology.ids import MAX_ID

_STRING_OR_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|NaN|-?Infinity')


class _RefusedError(ValueError):
    pass


class _ConstantError(ValueError):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _RefusedError(f"key {shorten(key)} appears twice in one object")
            seen.add(key)
    return result


def _constant(name: str) -> NoReturn:
    raise _ConstantError(name)


def _place(text: str, constant: str) -> str:
    """Line and column of the first such constant that is not in a string."""
    found = next(m for m in _STRING_OR_CONSTANT.finditer(text) if m.group() == constant)
    line = text.count("\n", 0, found.start()) + 1
    return f"line {line} column {found.start() - text.rfind(chr(10), 0, found.start())}"


def load_json(text: str, name: str) -> Any:
    """Parses JSON text.

    Args:
        text: The text.
        name: What to call it in errors.

    Raises:
        FormatError: It is not JSON, has duplicate keys or NaN, or nests too deeply.
    """
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        end = " (the file ends there)" if error.pos >= len(text.rstrip()) else ""
        raise FormatError(f"{name}: {where}: not JSON: {error.msg}{end}") from None
    except _ConstantError as error:
        where = _place(text, str(error))
        raise FormatError(
            f"{name}: {where}: {error} is not JSON, expected a finite number"
        ) from None
    except RecursionError:
        raise FormatError(f"{name}: objects or arrays are nested too deeply") from None
    except ValueError as error:  # _RefusedError, or an integer of thousands of digits
        raise FormatError(f"{name}: {error}") from None


class Field:
    """A JSON value with its place in the file.

    Attributes:
        value: The value.
        name: The file.
    """

    # A file of a thousand bricks has twenty thousand fields: they are light, and put their paths
    # together when an error asks.
    __slots__ = ("_key", "_parent", "name", "value")

    def __init__(self, value: Any, key: str | int, name: str, parent: Field | None = None) -> None:
        self.value = value
        self.name = name
        self._key = key
        self._parent = parent

    @property
    def path(self) -> str:
        """Its place, as in ``parts[3].payload.L``; empty for the top level."""
        before = "" if self._parent is None else self._parent.path
        if isinstance(self._key, int):
            return f"{before}[{self._key}]"
        return f"{before}.{self._key}" if before else self._key

    def fail(self, expected: str) -> NoReturn:
        """Raises the error that this value is not what was expected."""
        value = self.value
        if value is None or isinstance(value, bool):
            shown = json.dumps(value)
        elif isinstance(value, float) and math.isinf(value):
            shown = "beyond 1.8e308 in size"
        else:
            shown = shorten(value)
        raise FormatError(
            f"{self.name}: {self.path or 'top level'} is {shown}, expected {expected}"
        )

    def object(self) -> dict[str, Any]:
        """The value as an object."""
        return self.value if isinstance(self.value, dict) else self.fail("an object")

    def get(self, key: str) -> Field:
        """A field that must be there."""
        members = self.object()
        if key not in members:
            missing = Field(None, key, self.name, self)
            raise FormatError(f"{self.name}: {missing.path} is missing")
        return Field(members[key], key, self.name, self)

    def optional(self, key: str) -> Field | None:
        """A field that may be absent."""
        return self.get(key) if key in self.object() else None

    def items(self) -> Iterator[tuple[str, Field]]:
        """All fields of an object."""
        return ((key, Field(value, key, self.name, self)) for key, value in self.object().items())

    def elements(self, count: int | None = None) -> list[Field]:
        """Elements of an array, of ``count`` elements if that is given."""
        if not isinstance(self.value, list) or count not in (None, len(self.value)):
            self.fail("an array" if count is None else f"an array of {count}")
        return [Field(value, i, self.name, self) for i, value in enumerate(self.value)]

    def integer(self, low: int, high: int) -> int:
        """The value as an integer in [low, high]; true and 1.0 are none."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.fail(f"an integer of {low} to {high}")
        return value

    def identifier(self) -> int:
        """The value as an id."""
        return self.integer(-MAX_ID, MAX_ID)

    def number(self, limit: float) -> float:
        """The value as a finite number of at most ``limit`` in size."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail("a number")
        if not (math.isfinite(value) and abs(value) <= limit):
            self.fail(f"a number of at most {limit:g} in size")
        return float(value)

    def boolean(self) -> bool:
        """The value as true or false."""
        return self.value if isinstance(self.value, bool) else self.fail("true or false")

    def string(self) -> str:
        """The value as a string."""
        return self.value if isinstance(self.value, str) else self.fail("a string")
