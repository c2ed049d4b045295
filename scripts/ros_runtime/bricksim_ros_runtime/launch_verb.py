# SPDX-License-Identifier: Apache-2.0
"""``ros2 launch``, with the arguments of the verb of the same name in ros2launch."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from launch import LaunchDescription, LaunchIntrospector, LaunchService
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import (
    AnyLaunchDescriptionSource,
    get_launch_description_from_any_launch_file,
)
from ros2cli.command import CommandExtension


def find_launch_file(package_or_path: str, file_name: str | None) -> Path:
    """Path of a launch file, given by its path or by package and name.

    Raises:
        FileNotFoundError: There is no such file or package, or several files of that name.
    """
    if file_name is None:
        path = Path(package_or_path)
        if not path.is_file():
            raise FileNotFoundError(f"launch file {package_or_path!r} does not exist")
        return path
    try:
        share = Path(get_package_share_directory(package_or_path))
    except (PackageNotFoundError, ValueError) as error:
        raise FileNotFoundError(f"package {package_or_path!r} was not found") from error
    found = sorted(path for path in share.rglob(file_name) if path.is_file())
    if len(found) != 1:
        what = "several files" if found else "no file"
        raise FileNotFoundError(f"{what} named {file_name!r} in {share}")
    return found[0]


def split_launch_arguments(words: list[str]) -> list[tuple[str, str]]:
    """(name, value) of each ``name:=value``; the last one counts where a name is given twice.

    Raises:
        ValueError: A word is not of that form.
    """
    arguments = {}
    for word in words:
        name, separator, value = word.partition(":=")
        if not separator or not name:
            raise ValueError(f"malformed launch argument {word!r}, expected name:=value")
        arguments[name] = value
    return list(arguments.items())


def describe_arguments(arguments: list[DeclareLaunchArgument]) -> str:
    """Text of ``--show-args``."""
    if not arguments:
        return "No arguments."
    lines = ["Arguments (pass arguments as '<name>:=<value>'):"]
    for argument in arguments:
        lines += ["", f"    '{argument.name}':", f"        {argument.description}"]
        if argument.default_value is not None:
            default = "".join(part.describe() for part in argument.default_value)
            lines.append(f"        (default: {default})")
    return "\n".join(lines)


class LaunchCommand(CommandExtension):
    """Run a launch file."""

    def add_arguments(self, parser: argparse.ArgumentParser, cli_name: str) -> None:
        """Declares the verb's arguments."""
        parser.add_argument(
            "-n",
            "--noninteractive",
            action="store_true",
            default=not sys.stdin.isatty(),
            help="there is no terminal (default: found out)",
        )
        parser.add_argument(
            "-d", "--debug", action="store_true", help="debug output of the launch system"
        )
        parser.add_argument(
            "-p", "--print", "--print-description", action="store_true", help="print, do not run"
        )
        parser.add_argument(
            "-s", "--show-args", "--show-arguments", action="store_true", help="list its arguments"
        )
        parser.add_argument("package_name", help="package, or path of a launch file")
        parser.add_argument("launch_file_name", nargs="?", help="name of its launch file")
        parser.add_argument("launch_arguments", nargs="*", help="'<name>:=<value>'")

    def main(self, *, parser: argparse.ArgumentParser, args: argparse.Namespace) -> int | str:
        """Runs, prints or describes the launch file.

        Returns:
            Exit code, or the text of an error.
        """
        name, words = args.launch_file_name, list(args.launch_arguments)
        if name is not None and (":=" in name or Path(args.package_name).is_file()):
            name, words = None, [name, *words]
        try:
            path = find_launch_file(args.package_name, name)
            arguments = split_launch_arguments(words)
        except (FileNotFoundError, ValueError) as error:
            return str(error)
        if args.show_args or args.print:
            description = get_launch_description_from_any_launch_file(str(path))
            if args.print:
                print(LaunchIntrospector().format_launch_description(description))
            else:
                print(describe_arguments(description.get_launch_arguments()))
            return 0
        service = LaunchService(argv=words, noninteractive=args.noninteractive, debug=args.debug)
        include = IncludeLaunchDescription(
            AnyLaunchDescriptionSource(str(path)), launch_arguments=arguments
        )
        service.include_launch_description(LaunchDescription([include]))
        return service.run()
