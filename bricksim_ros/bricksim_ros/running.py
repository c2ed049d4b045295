# SPDX-License-Identifier: Apache-2.0
"""How the nodes' programs start and end."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable

import rclpy
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.timer import Timer

from bricksim_core.errors import BrickSimError


def run_node[N: Node](
    make: Callable[[], N],
    work: Callable[[N, SingleThreadedExecutor], int],
    args: list[str] | None = None,
    *,
    close: Callable[[N], None] | None = None,
) -> int:
    """Makes a node, lets it work until it is done or interrupted, and takes it down.

    Args:
        make: Makes the node.
        work: Spins it; returns the exit code.
        args: Command line arguments.
        close: Called before the node is destroyed, however it ended.

    Returns:
        The exit code, 0 after an interrupt, 2 if a parameter or what it names is not acceptable.
    """
    # While context and executor come into being, an interrupt waits: rclpy cannot take either down
    # half made, and before rclpy listens it would be lost.
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    # An interrupt ends the context; raised as an exception it could strike inside a conversion.
    signal.signal(signal.SIGINT, lambda *_: None)
    rclpy.init(args=args)
    executor = SingleThreadedExecutor()
    signal.pthread_sigmask(signal.SIG_SETMASK, held)
    node: N | None = None
    code = 0
    try:
        node = make()
        executor.add_node(node)
        code = work(node, executor)
    except ExternalShutdownException:
        pass
    except ParameterException as error:
        print(f"{error}".splitlines()[0], file=sys.stderr)
        code = 2
    except BrickSimError as error:
        name = "bricksim" if node is None else node.get_name()
        print(f"{name}: {error}", file=sys.stderr)
        code = 2
    except rclpy_implementation.RCLError:
        # A signal ends the context in the middle of whatever was going on.
        if rclpy.ok():
            raise
    finally:
        if node is not None:
            if close is not None:
                close(node)
            executor.shutdown()
            node.destroy_node()
        rclpy.try_shutdown()
        # launch repeats the interrupt of a terminal. While it ends, Python gives its own handlers
        # up, and one that comes then would kill what has ended well.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code


def unexpected(node: Node, error: Exception) -> str:
    """Logs an error that no check has foreseen; what was asked last must not end a node.

    Args:
        node: Node that serves.
        error: What a handler raised.

    Returns:
        Text for the answer.
    """
    text = "".join(traceback.format_exception(error))
    node.get_logger().error(f"a request failed for a reason that nobody foresaw:\n{text}")
    return f"internal error, {type(error).__name__}: {error}"


def wall_timer(node: Node, period: float, callback: Callable[[], None]) -> Timer:
    """A timer that also goes while simulation time stands still.

    Args:
        node: Node that owns it.
        period: Wall time [s].
        callback: What to call.
    """
    return node.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))


def spin(_node: Node, executor: SingleThreadedExecutor) -> int:
    """Serves callbacks until the context ends."""
    executor.spin()
    return 0
