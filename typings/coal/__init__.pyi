# SPDX-License-Identifier: Apache-2.0
"""coal's bindings carry no types: its attributes are taken as they come."""

from typing import Any

def __getattr__(name: str) -> Any: ...
