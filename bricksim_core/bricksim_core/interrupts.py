# SPDX-License-Identifier: Apache-2.0
"""Interrupts of a command get through wherever they strike, and strike where they do no harm.

Python cannot raise an exception out of a callback from C or out of a finalizer: it prints the
KeyboardInterrupt as ignored and goes on. Compiled loops are loaded through such callbacks. One
interrupt in dozens was lost there, and the command ran to its end; or the compiler, which got no
answer, took the process down.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType

INTERRUPTED = 130
"""Exit code of a command that was interrupted."""
SIGNALS = signal.SIGINT, signal.SIGTERM
"""What interrupts: Ctrl-C, and the request of whoever supervises a command that it end."""
AGAIN_AFTER = 0.02
"""Time until an interrupt is given again that could not be raised [s]."""
COMPILER = "llvmlite"
"""Package whose callbacks do not stand an exception."""


def keep_interrupts() -> None:
    """Settles for this process: an interrupt that cannot be raised where it strikes comes again.

    Called by the main thread, before anything else handles `SIGNALS`.
    """
    show = sys.unraisablehook

    def hook(unraisable: UnraisableHookArgs) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _give_again()
        else:
            show(unraisable)

    sys.unraisablehook = hook
    for number in SIGNALS:
        signal.signal(number, _handle)


def end_when_interrupted() -> None:
    """Has an interrupt end this process at once with exit code 0, as it does with a node that runs.

    For the seconds in which a node's libraries load, until something else handles interrupts.
    Whoever starts the process may hold SIGINT back (block it) until then: before, Python itself
    starts, and an interrupt ends it with a traceback that nothing in the process can prevent.
    """
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _handle(_signal: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == COMPILER:
            _give_again()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _give_again() -> None:
    again = threading.Timer(AGAIN_AFTER, _interrupt)
    again.daemon = True
    again.start()


def _interrupt() -> None:
    # To the main thread, which alone handles signals: it may wait in a call that has to end.
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
