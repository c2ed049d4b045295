# SPDX-License-Identifier: Apache-2.0
"""Python packages in .venv, from the lock files in requirements/."""

from __future__ import annotations

from pathlib import Path

from common import (
    PYTHON,
    REQUIREMENTS,
    ROOT,
    VENV,
    clean_environment,
    digest,
    doing,
    is_done,
    remove,
    run,
    say,
    was_interrupted,
)

LOCKS = ("core", "dev", "ros")
EXTRA_PREFIX = "extra-"
EXTRAS = VENV / "extras"
"""Each optional part has a folder of its own here, to be put in front of PYTHONPATH."""
EDITABLE_CORE = ROOT / "bricksim_core"
EDITABLE_ROS_RUNTIME = ROOT / "scripts" / "ros_runtime"
BUILD_FILES = ("pyproject.toml", "setup.cfg", "setup.py")


def available_extras() -> list[str]:
    """Names of the optional parts that have a lock file."""
    files = sorted(REQUIREMENTS.glob(f"{EXTRA_PREFIX}*.txt"))
    return [file.stem.removeprefix(EXTRA_PREFIX) for file in files]


def _pip(*words: str | Path) -> list[str | Path]:
    return [PYTHON, "-m", "pip", "--disable-pip-version-check", *words]


def _install_locked(step: str, locks: list[Path]) -> bool:
    key = digest(locks)
    if is_done(step, key):
        return False
    say(f"installing Python packages: {', '.join(lock.stem for lock in locks)}")
    # A package that was being installed when the power went may look whole: install all anew.
    again = ["--force-reinstall"] if was_interrupted(step) else []
    files = [word for lock in locks for word in ("--requirement", lock)]
    with doing(step, key):
        run(_pip("install", "--no-deps", "--require-hashes", *again, *files), f"pip-{step}")
    return True


def _install_editable(project: Path) -> bool:
    step = f"editable-{project.name}"
    key = digest(project / name for name in BUILD_FILES if (project / name).exists())
    if is_done(step, key):
        return False
    with doing(step, key):
        run(
            _pip("install", "--no-deps", "--no-build-isolation", "--editable", project),
            f"pip-{step}",
        )
    return True


def _install_extra(name: str) -> bool:
    step = f"{EXTRA_PREFIX}{name}"
    lock, folder = REQUIREMENTS / f"{step}.txt", EXTRAS / name
    key = digest([lock])
    if is_done(step, key):
        return False
    say(f"installing the optional part {name}; its licence: see requirements/{step}.in")
    part = EXTRAS / f"{name}.part"
    remove(part)
    EXTRAS.mkdir(exist_ok=True)
    with doing(step, key):
        flags = ["--no-deps", "--require-hashes", "--no-compile"]
        run(_pip("install", *flags, "--target", part, "--requirement", lock), f"pip-{step}")
        if (part / "pxr").is_dir():
            # usd-exchange's pxr has no __init__.py; usd-core's, which has one, would win over it.
            (part / "pxr" / "__init__.py").touch()
        remove(folder)
        part.rename(folder)
    return True


def _compile_loops() -> bool:
    """Compiles the core's loops, which their first use would have to wait for."""
    step = "compiled"
    sources = (EDITABLE_CORE / EDITABLE_CORE.name).rglob("*.py")
    key = digest(source for source in sources if "@compiled" in source.read_text())
    if is_done(step, key):
        return False
    say("compiling loops of the mechanics")
    with doing(step, key):
        # numba looks at a loop's own file only, and would keep what it has taken in of others.
        for old in EDITABLE_CORE.rglob("__pycache__/*.nb[ic]"):
            old.unlink()
        environment = clean_environment(OPENBLAS_NUM_THREADS="1")
        run([PYTHON, "-m", "bricksim_core.rehearsal"], step, environment)
    return True


def ensure(extras: list[str], ros_source: str | None) -> bool:
    """Installs all packages that are not there yet in the locked versions.

    Args:
        extras: Optional parts to install; those installed before are kept up to date.
        ros_source: Where ROS 2 comes from, None for none.

    Returns:
        True if something was installed.
    """
    changed = _install_locked("packages", [REQUIREMENTS / f"{name}.txt" for name in LOCKS])
    for name in available_extras():
        if name in extras or (EXTRAS / name).is_dir():
            changed |= _install_extra(name)
    changed |= _install_editable(EDITABLE_CORE)
    changed |= _compile_loops()
    if ros_source == "private":
        changed |= _install_editable(EDITABLE_ROS_RUNTIME)
    return changed
