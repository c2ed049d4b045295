# SPDX-License-Identifier: Apache-2.0
"""Interrupts of a command get through wherever they strike.

Python cannot raise an exception out of a callback from C or out of a finalizer: it prints the
KeyboardInterrupt as ignored and goes on. Loading a compiled loop makes such callbacks, so that one
interrupt in dozens was lost there and the command ran to its end.
"""

from __future__ import annotations

import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

AGAIN_AFTER = 0.05
"""Time until an interrupt that was lost is given again [s]."""


def keep_interrupts() -> None:
    """Settles for this process that an interrupt which Python had to ignore is given again."""
    show = sys.unraisablehook

    def hook(unraisable: UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            show(unraisable)
            return
        again = threading.Timer(AGAIN_AFTER, _interrupt)
        again.daemon = True
        again.start()

    sys.unraisablehook = hook


def _interrupt() -> None:
    # To the main thread, which alone handles signals: it may wait in a call that has to end.
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
