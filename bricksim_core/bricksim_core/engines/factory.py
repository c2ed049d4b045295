# SPDX-License-Identifier: Apache-2.0
"""Engines by name. An engine's packages are imported when it is asked for, not before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bricksim_core.engines.protocol import Engine
from bricksim_core.errors import EngineError


def create_engine(name: str = "mujoco", **options: Any) -> Engine:
    """Starts an engine.

    Args:
        name: ``mujoco`` (one body per component; needs nothing), ``ovphysx`` (PhysX on the CPU;
            extra ``ovphysx``) or ``isaacsim`` (in Isaac Sim's Python, on a machine with an NVIDIA
            RTX GPU).
        **options: Of all engines: ``timestep`` [s], ``gravity`` (3,) [m/s^2], ``ground`` height
            of the ground [m] or None. Of ``mujoco`` also those of `MujocoEngine`; of the two on
            PhysX those of `PhysxSettings`; of ``isaacsim`` also those of `IsaacOptions`.

    Raises:
        EngineError: There is no such engine or option, or it cannot start here; one line says why.
    """
    factory, _ = _engine(name)
    try:
        return factory(options)
    except TypeError as error:
        raise EngineError(f"engine {name}: {error}") from None


def require_engine(name: str) -> None:
    """Looks for what would keep an engine from starting here, without starting it.

    Raises:
        EngineError: There is no such engine, or the first thing that it lacks: its packages, their
            release, a licence that was not accepted, a GPU.
    """
    _, require = _engine(name)
    require()


def _engine(name: str) -> tuple[Callable[[dict[str, Any]], Engine], Callable[[], None]]:
    try:
        return _ENGINES[name]
    except (KeyError, TypeError):
        raise EngineError(f"engine is {name!r}, expected one of {', '.join(_ENGINES)}") from None


def _mujoco(options: dict[str, Any]) -> Engine:
    from bricksim_core.engines.mujoco import MujocoEngine

    return MujocoEngine(**options)


def _ovphysx(options: dict[str, Any]) -> Engine:
    from bricksim_core.engines.ovphysx import OvphysxEngine
    from bricksim_core.engines.physx_settings import PhysxSettings

    return OvphysxEngine(PhysxSettings(**options))


def _isaacsim(options: dict[str, Any]) -> Engine:
    from bricksim_core.engines.isaacsim import start

    return start(**options)


def _require_nothing() -> None:
    pass


def _require_ovphysx() -> None:
    import bricksim_core.engines.ovphysx  # noqa: F401  # refuses what it cannot work with


def _require_isaacsim() -> None:
    from bricksim_core.engines.isaacsim.launch import require_startable

    require_startable()


_ENGINES = {
    "mujoco": (_mujoco, _require_nothing),
    "ovphysx": (_ovphysx, _require_ovphysx),
    "isaacsim": (_isaacsim, _require_isaacsim),
}
