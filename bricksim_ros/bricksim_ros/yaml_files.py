# SPDX-License-Identifier: Apache-2.0
"""YAML files of users: nothing in them is dropped silently, and errors are one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from bricksim_core.errors import BrickSimError


class _Loader(yaml.SafeLoader):
    """Refuses keys that are given twice, and reads 1e-3 as a number, as YAML 1.2 does."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"key {key.value!r} is given twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def read_yaml(path: Path, error: type[BrickSimError]) -> Any:
    """Content of a YAML file.

    Args:
        path: The file.
        error: What to raise.

    Raises:
        BrickSimError: It cannot be read.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # a safe one
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise error(f"{path}: {' '.join(str(problem).split())}") from None
    except RecursionError:
        raise error(f"{path}: is nested too deeply") from None
