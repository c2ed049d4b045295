# SPDX-License-Identifier: Apache-2.0
"""Records against what dataclasses do."""

from dataclasses import field, replace

from bricksim_core.records import record


@record
class Span:
    start: float
    steps: list[int] = field(default_factory=list)


def test_records_are_dataclasses_that_equal_themselves_only():
    one, other = Span(1.0), Span(start=1.0)
    assert one == one and one != other and len({one, other}) == 2
    assert one.steps == [] and one.steps is not other.steps
    later = replace(one, start=2.0)
    assert (later.start, one.start) == (2.0, 1.0) and later.steps is one.steps
