# SPDX-License-Identifier: Apache-2.0
"""The decorator that makes a launch description a fixture."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from launch_pytest.system import LaunchedSystem


def fixture(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a function that returns a LaunchDescription a fixture that launches it.

    The description holds one `actions.ReadyToTest`; the fixture waits for it. Tests name the
    fixture in their mark: ``@pytest.mark.launch(fixture=my_description)``. All processes are ended
    when the fixture ends.

    Args:
        function: Returns a LaunchDescription, or a pair of it and anything.
        **options: Passed on to pytest.fixture (``scope``, ``name``, ``autouse`` ...).
    """
    if function is None:
        return functools.partial(fixture, **options)

    @functools.wraps(function)
    def launched(*args: Any, **kwargs: Any) -> Any:
        result: Any = function(*args, **kwargs)
        # A fixture function may yield its description and clean up after the end.
        steps = result if inspect.isgenerator(result) else iter((result,))
        returned: Any = next(steps)
        system = LaunchedSystem(returned[0] if isinstance(returned, tuple) else returned)
        try:
            system.start()
            yield system
        finally:
            system.stop()
            next(steps, None)

    return pytest.fixture(**options)(launched)
