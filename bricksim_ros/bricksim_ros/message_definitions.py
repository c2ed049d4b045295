# SPDX-License-Identifier: Apache-2.0
"""Full text of message definitions, as bags carry them."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from ament_index_python.packages import get_package_share_directory

_SEPARATOR = "=" * 80
_PRIMITIVES = {
    "bool", "byte", "char", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32",
    "uint32", "int64", "uint64", "string", "wstring",
}  # fmt: skip


@lru_cache(maxsize=256)
def full_definition(type_name: str) -> str:
    """Definition of a message type and of all that it contains (MCAP encoding ``ros2msg``).

    Args:
        type_name: For example ``sensor_msgs/msg/JointState``.

    Raises:
        LookupError: The package or the definition is not installed.
    """
    texts = {type_name: _definition(type_name)}
    waiting = [type_name]
    while waiting:
        current = waiting.pop(0)
        for other in _contained(texts[current], current.partition("/")[0]):
            if other not in texts:
                texts[other] = _definition(other)
                waiting.append(other)
    first, *rest = texts
    blocks = [texts[first]]
    for name in rest:
        package, _, kind = name.split("/")
        blocks.append(f"{_SEPARATOR}\nMSG: {package}/{kind}\n{texts[name]}")
    return "\n".join(blocks)


def _definition(type_name: str) -> str:
    package, folder, kind = type_name.split("/")
    path = Path(get_package_share_directory(package)) / folder / f"{kind}.msg"
    if not path.is_file():
        raise LookupError(f"{type_name}: {path} does not exist")
    return path.read_text(encoding="utf-8")


def _contained(text: str, package: str) -> list[str]:
    found = []
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if len(words) < 2:
            continue
        kind = re.sub(r"\[.*\]$", "", words[0])
        if "<=" in kind:
            kind = kind.split("<=")[0]
        if kind in _PRIMITIVES or "=" in words[0]:
            continue
        found.append(f"{kind.replace('/', '/msg/')}" if "/" in kind else f"{package}/msg/{kind}")
    return found
