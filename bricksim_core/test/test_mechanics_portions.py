# SPDX-License-Identifier: Apache-2.0
"""Work in portions: the same result, as soon as it has been paid for."""

from collections.abc import Iterator

import pytest

from bricksim_core.mechanics.portions import Allowance, Portions, Task, at_once

COSTS = (2.0, 1.0, 5.0, 0.5)


def work(done: list[float]) -> Portions[float]:
    """Adds up its costs."""
    for cost in COSTS:
        yield cost
        done.append(cost)
    return sum(done)


def frames(task: Task[float], amount: float) -> Iterator[tuple[float, ...]]:
    while True:
        yield task.result(Allowance(amount))


def test_all_at_once() -> None:
    assert at_once(work([])) == sum(COSTS)


@pytest.mark.parametrize(("amount", "after"), [(9.0, [4]), (3.0, [2, 3, 4]), (0.1, [1, 2, 3, 4])])
def test_a_frame_does_what_it_pays_for_and_always_something(amount, after) -> None:
    done: list[float] = []
    task = Task(work(done))
    assert not done
    for portions, result in zip(after, frames(task, amount), strict=False):
        assert len(done) == portions
        assert result == ((sum(COSTS),) if portions == len(COSTS) else ())


def test_what_cannot_be_paid_for_is_not_begun_without_leave() -> None:
    task = Task(work([]))
    poor = 0.5 * COSTS[0]
    assert task.result(Allowance(poor, begin=False)) == ()
    assert not Allowance(poor, begin=False).pays(COSTS[0])
    assert Allowance(poor, begin=False).pays(COSTS[0], must=True)
    assert Allowance(poor).pays(COSTS[0])


def test_an_allowance_is_shared() -> None:
    allowance = Allowance(8.0)
    first, second = Task(work([])), Task(work([]))
    assert first.result(allowance) == ()  # 2 and 1, 5 is too much by now
    assert second.result(allowance) == ()
    assert not allowance.pays(1e-9 + 8.0 - 2 * 3.0)


def test_what_runs_ahead_is_paid_for_later() -> None:
    task = Task(work([]))
    assert task.result(Allowance(2.0)) == ()
    other = task.copy()
    for one in (task, other):
        results = [result for result, _ in zip(frames(one, 4.0), range(3), strict=False)]
        assert [len(result) for result in results] == [0, 0, 1]
    assert task.run_ahead() == other.run_ahead() == sum(COSTS)
