# SPDX-License-Identifier: Apache-2.0
"""Functions over small arrays, compiled when first used and kept on disk from then on (numba).

NumPy costs a microsecond or more per call, whatever the size: where an algorithm takes hundreds of
small steps one after the other, that is most of its time. Such a loop is written as a function over
plain arrays with `compiled`. Compiling takes a second or more each, loading from disk some
milliseconds; `bricksim_core.rehearsal` does both before it matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numba
from numba import types
from numba.extending import intrinsic

from bricksim_core.spatial import Array

Vector = tuple[float, float, float]

_LOOPS: list[Any] = []


def compiled[F: Callable[..., Any]](function: F) -> F:
    """A function over arrays and numbers, compiled for the types it is called with.

    Every array that a call takes costs some nanoseconds, those in tuples too: inner loops should
    call little. Sums are taken in the order of the source, divisions by zero give what NumPy gives.
    The machine code is kept beside the source, or in the user's cache folder where that cannot be
    written.

    Orders are to be found by ``np.argsort(x, kind="mergesort")``. numba gives its quicksort of
    values and that of indices the same name: of two loops loaded from disk the second one would use
    the first one's, and sort nothing.
    """
    loop = numba.njit(cache=True, error_model="numpy", nogil=True)(function)
    _LOOPS.append(loop)
    return cast(F, loop)


def loaded() -> dict[str, int]:
    """For how many combinations of argument types each loop is ready, by name."""
    return {f"{loop.__module__}.{loop.__name__}": len(loop.signatures) for loop in _LOOPS}


@intrinsic
def _pointer(typing_context: Any, address: Any) -> Any:
    """A pointer to floating point numbers at an address."""

    def cast_to_pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float64)(types.intp), cast_to_pointer


@compiled
def numbers_at(address: int, shape: tuple[int, int]) -> Array:
    """A matrix in memory that somebody else keeps, row by row: where loops go through more arrays
    than a call could take. For loops only."""
    pointer = _pointer(address)  # pyright: ignore[reportCallIssue]
    return numba.carray(pointer, shape)  # pyright: ignore[reportPrivateImportUsage]


@compiled
def length(a: Array | Vector) -> float:
    """Euclidean length of the first three entries."""
    return math.sqrt(a[0] ** 2 + a[1] ** 2 + a[2] ** 2)


@compiled
def crossed(a: Array | Vector, b: Array | Vector) -> Vector:
    """Cross product of the first three entries."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
