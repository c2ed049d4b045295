# SPDX-License-Identifier: Apache-2.0
# MuJoCo's Python module is compiled and ships no types.
from typing import Any

def __getattr__(name: str) -> Any: ...
