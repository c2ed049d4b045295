# SPDX-License-Identifier: Apache-2.0
"""Numbers that users give, checked where they are given."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from bricksim_core.errors import BrickSimError
from bricksim_core.spatial import Array

_LONGEST = 300
"""Characters of what was given that an error shows."""


def as_number(
    value: Any,
    name: str,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    above: bool = False,
    finite: bool = True,
    unit: str = "",
    error: type[BrickSimError] = BrickSimError,
) -> float:
    """A number, checked.

    Args:
        value: What was given.
        name: What it is, for the error.
        low: Least value.
        high: Greatest value.
        above: The least value itself is too little.
        finite: Infinity is none, though there is no greatest value.
        unit: Its unit, for the error.
        error: What to raise.

    Raises:
        BrickSimError: It is not a number of the range.
    """
    number = as_numbers(value, finite=finite)
    if number is not None and number.ndim == 0 and not isinstance(value, (bool, np.bool_)):
        checked = float(number)
        if (low < checked if above else low <= checked) and checked <= high:
            return checked
    wanted = _range(low, high, above)
    unit = unit and f" {unit}"
    raise error(f"{name} is {shown(value)}{unit}, expected {wanted or 'a number'}{unit}")


def as_whole(
    value: Any, name: str, low: int, high: int, error: type[BrickSimError] = BrickSimError
) -> int:
    """A whole number of low to high, checked.

    Raises:
        BrickSimError: It is none.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not low <= number <= high:
        raise error(f"{name} is {value!r}, expected a whole number of {low} to {high}")
    return number


def as_vector(
    value: Any,
    name: str,
    count: int,
    most: float,
    error: type[BrickSimError] = BrickSimError,
) -> Array:
    """(count,) numbers of up to ``most`` either way, checked.

    Raises:
        BrickSimError: They are none.
    """
    numbers = as_numbers(value)
    if numbers is None or numbers.shape != (count,) or not np.all(np.abs(numbers) <= most):
        raise error(f"{name} is {shown(value)}, expected {count} numbers of at most {most:g}")
    return numbers


def require_flag(value: Any, name: str) -> None:
    """Checks that a value is True or False.

    Raises:
        BrickSimError: It is neither.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise BrickSimError(f"{name} is {value!r}, expected True or False")


def as_numbers(value: Any, *, finite: bool = True) -> Array | None:
    """An array of numbers, finite ones if asked for; None if it is something else."""
    try:
        given = np.asarray(value)
    except ValueError:  # rows that are not alike
        return None
    if given.dtype.kind not in "biuf":
        return None
    numbers = given.astype(float, copy=False)
    fine = np.isfinite(numbers) if finite else ~np.isnan(numbers)
    return numbers if np.all(fine) else None


def shown(value: Any) -> str:
    """What was given, in a line of an error."""
    text = repr(value.tolist() if isinstance(value, np.ndarray) else value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _range(low: float, high: float, above: bool) -> str:
    if math.isfinite(low) and math.isfinite(high) and not above:
        return f"{low:g} to {high:g}"
    parts = []
    if math.isfinite(low):
        parts.append(f"{'more than' if above else 'at least'} {low:g}")
    if math.isfinite(high):
        parts.append(f"at most {high:g}")
    return ", ".join(parts)
