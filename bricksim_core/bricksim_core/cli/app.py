# SPDX-License-Identifier: Apache-2.0
"""All commands in one application, and what happens when one fails.

Exit codes: 0 success, 1 an answer in the negative (unstable, not connected), 2 an error, 130
interrupted, 141 the reader of the output went away.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.exceptions import TyperException

from bricksim_core.cli import (
    analyze,
    bench,
    convert,
    demo,
    doctor,
    drop,
    info,
    plan,
    press,
    pull,
    replay,
    version,
)
from bricksim_core.errors import BrickSimError
from bricksim_core.interrupts import INTERRUPTED
from bricksim_core.threads import use_single_thread

COMMANDS = (
    analyze,
    drop,
    press,
    pull,
    plan,
    info,
    convert,
    replay,
    demo,
    bench,
    doctor,
    version,
)
ERROR = 2
READER_GONE = 141

app = typer.Typer(
    name="bricksim",
    help="Bricks that click together, carry load and come apart: analyse, drop, press, pull.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for module in COMMANDS:
    app.command(module.NAME, epilog=module.EXAMPLES)(module.command)


def _tell_version(wanted: bool) -> None:
    if wanted:
        raise typer.Exit(version.command())


@app.callback()
def root(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the full traceback of an error.")
    ] = False,
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_tell_version, is_eager=True),
    ] = False,
) -> None:
    """Options that come before the command."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        arguments: Without the program's name; None takes those of the process.

    Returns:
        The exit code.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = bool(words) and words[0] == "--debug"
    use_single_thread()
    code = _guarded(words, debug)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = READER_GONE
    if code == READER_GONE:
        # Nothing may be written to the closed pipe when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _guarded(words: list[str], debug: bool) -> int:
    try:
        result = app(words, prog_name="bricksim", standalone_mode=False)
    except BrickSimError as error:
        return _fail(str(error), debug)
    except TyperException as error:
        return _fail(error.format_message() or "no command, expected one of those above", debug)
    except BrokenPipeError:
        return READER_GONE
    except SystemExit as error:
        # Typer ends so when the reader of the output has gone.
        if isinstance(error.__context__, BrokenPipeError):
            return READER_GONE
        return error.code if isinstance(error.code, int) else ERROR
    except (KeyboardInterrupt, typer.Abort):
        result = INTERRUPTED
    except Exception as error:
        again = " ".join(["bricksim --debug", *words[:1]])
        hint = "" if debug else f" (this is a fault of ours; details: {again} ...)"
        return _fail(f"internal error: {type(error).__name__}: {error}{hint}", debug)
    if result == INTERRUPTED:
        print("bricksim: interrupted", file=sys.stderr)
    return result if isinstance(result, int) else 0


def _fail(message: str, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"bricksim: {' '.join(message.split())}", file=sys.stderr)
    return ERROR
