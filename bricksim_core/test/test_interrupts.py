# SPDX-License-Identifier: Apache-2.0
"""An interrupt that Python has to ignore is given again."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import time

import pytest

from bricksim_core.interrupts import COMPILER, SIGNALS, keep_interrupts


@pytest.fixture(autouse=True)
def handlers_as_before():
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def kept(monkeypatch):
    """Errors that Python had to ignore from now on, but for those that `keep_interrupts` takes."""
    shown = []
    monkeypatch.setattr(sys, "unraisablehook", shown.append)
    keep_interrupts()
    return shown


def in_a_callback(action):
    ctypes.CFUNCTYPE(None)(action)()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_in_a_callback_from_c_comes_again(number, monkeypatch):
    unraisable = kept(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        in_a_callback(lambda: signal.raise_signal(number))
        time.sleep(30)
    assert unraisable == []


def test_other_errors_are_shown_as_before(monkeypatch):
    unraisable = kept(monkeypatch)
    in_a_callback(lambda: 1 / 0)
    (error,) = unraisable
    assert error.exc_type is ZeroDivisionError


def test_interrupt_waits_until_the_compiler_is_done(monkeypatch):
    unraisable = kept(monkeypatch)
    done = False

    def load():
        nonlocal done
        signal.raise_signal(signal.SIGINT)
        done = True

    code = "def loading(callback): callback(load)"
    names = {"__name__": f"{COMPILER}.binding", "load": load}
    exec(code, names)
    with pytest.raises(KeyboardInterrupt):
        names["loading"](in_a_callback)
        time.sleep(30)
    assert done
    assert unraisable == []


def test_an_interrupt_that_is_held_back_while_python_starts_ends_a_node_well():
    held = ["env", "--block-signal=INT", sys.executable, "-c"]
    code = "from bricksim_core.interrupts import end_when_interrupted as end; end(); 1 / 0"
    for delay in (0.005, 0.02, 0.04):
        with subprocess.Popen([*held, code], stderr=subprocess.PIPE, text=True) as process:
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
            assert (process.returncode, err) == (0, "")
