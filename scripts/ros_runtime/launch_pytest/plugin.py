# SPDX-License-Identifier: Apache-2.0
"""pytest's side: the ``launch`` mark and the fixtures ``launch_service`` and ``launch_context``.

Nothing of ROS is imported until a test asks for it, so that pytest works without the runtime too.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Declares the mark."""
    config.addinivalue_line(
        "markers",
        "launch(fixture, shutdown=False): run while the processes of a launch fixture run;"
        " shutdown: run after they have ended",
    )


def _fixture_name(item: pytest.Item) -> str | None:
    mark = item.get_closest_marker("launch")
    if mark is None:
        return None
    function = mark.kwargs.get("fixture", mark.args[0] if mark.args else None)
    if function is None:
        raise pytest.UsageError(f"{item.nodeid}: the launch mark needs fixture=")
    return function.__name__


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[pytest.Function] | None:
    """Collects marked generators, which pytest itself refuses."""
    marks = getattr(obj, "pytestmark", [])
    if inspect.isgeneratorfunction(obj) and any(mark.name == "launch" for mark in marks):
        return list(collector._genfunctions(name, obj))
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lets marked tests use their launch fixture without naming it among their arguments."""
    for item in items:
        name = _fixture_name(item)
        if name is not None and isinstance(item, pytest.Function) and name not in item.fixturenames:
            item.fixturenames.append(name)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a marked test: a function, a coroutine, or a generator whose rest runs after the end."""
    name = _fixture_name(pyfuncitem)
    if name is None:
        return None
    system: Any = pyfuncitem.funcargs.get(name) or pyfuncitem._request.getfixturevalue(name)
    mark = pyfuncitem.get_closest_marker("launch")
    names = inspect.signature(pyfuncitem.obj).parameters
    test = functools.partial(
        pyfuncitem.obj, **{n: pyfuncitem.funcargs[n] for n in names if n in pyfuncitem.funcargs}
    )
    if mark is not None and mark.kwargs.get("shutdown"):
        system.stop()
        test()
    elif inspect.iscoroutinefunction(pyfuncitem.obj):
        system.run_coroutine(test())
    elif inspect.isgeneratorfunction(pyfuncitem.obj):
        steps = test()
        system.run_while(lambda: next(steps))
        system.stop()
        if next(steps, StopIteration) is not StopIteration:
            pytest.fail("a launch test may yield only once")
    else:
        system.run_while(test)
    return True


@pytest.fixture
def launch_service(request: pytest.FixtureRequest) -> Any:
    """The LaunchService of the test's launch fixture."""
    name = _fixture_name(request.node)
    if name is None:
        raise pytest.UsageError("launch_service needs a test with the launch mark")
    return request.getfixturevalue(name).service


@pytest.fixture
def launch_context(launch_service: Any) -> Any:
    """The LaunchContext of the test's launch fixture."""
    return launch_service.context
