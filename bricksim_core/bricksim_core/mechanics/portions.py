# SPDX-License-Identifier: Apache-2.0
"""Work that can be done in portions: some now, the rest later.

A frame has little time, and what a hit of a thousand bricks asks for takes several. Such work is a
generator that yields before each portion what that costs, and returns the result. Costs are told by
sizes and never by a clock, so that the same is done in the same frame on every machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator

type Portions[T] = Generator[float, None, T]
"""Yields costs of what comes next: milliseconds of a core, by its size."""


def at_once[T](portions: Portions[T]) -> T:
    """The result of all portions."""
    while True:
        try:
            next(portions)
        except StopIteration as end:
            return end.value


class Allowance:
    """What may be spent on portions in a frame.

    Args:
        amount: Of it.
        begin: Whether the first portion is paid for however dear it is.
    """

    def __init__(self, amount: float, begin: bool = True) -> None:
        self._left, self._free = amount, begin

    def pays(self, cost: float, must: bool = False) -> bool:
        """Takes a cost off, unless it is too much; what must be paid is in any case."""
        if not (must or self._free) and cost > self._left:
            return False
        self._left, self._free = self._left - cost, False
        return True


class Task[T]:
    """Portions that are done as they are paid for.

    Args:
        portions: They.
    """

    def __init__(self, portions: Portions[T]) -> None:
        self._portions: Portions[T] | None = portions
        self._costs: deque[float] = deque()
        self._result: tuple[T, ...] = ()
        self._do()

    def result(self, allowance: Allowance, must: bool = False) -> tuple[T, ...]:
        """Goes on as far as an allowance lasts, or to the end if it must; empty: that was not
        enough for the result."""
        while self._costs:
            if not allowance.pays(self._costs[0], must):
                return ()
            self._costs.popleft()
            if not self._costs:
                self._do()
        return self._result

    def run_ahead(self) -> T:
        """Does all that is left; it has to be paid for nevertheless."""
        while self._portions is not None:
            self._do()
        return self._result[0]

    def copy(self) -> Task[T]:
        """The same for another future; does all that is left."""
        self.run_ahead()
        other = Task.__new__(Task)
        other._portions, other._costs, other._result = None, self._costs.copy(), self._result
        return other

    def _do(self) -> None:
        """Does what has been paid for, up to what costs next."""
        if self._portions is None:
            return
        try:
            self._costs.append(next(self._portions))
        except StopIteration as end:
            self._portions, self._result = None, (end.value,)


def solve_cost(parts: int) -> float:
    """Cost of internal forces of so many parts, factored."""
    return 0.2 + 0.0018 * parts
