# SPDX-License-Identifier: Apache-2.0
"""Reads of simulation state through ovphysx's C functions.

The package wraps every array of every prim into a Warp array and every call into an operation:
25 ms a step for the contacts of 50 bricks. The same C calls made here take one. This is not the
package's public interface, hence the pinned release.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from ovphysx import _bindings as native

from bricksim_core.errors import EngineError

_FOREVER = 2**64 - 1

_DTYPES = {(2, 32): "f4", (2, 64): "f8", (0, 32): "i4", (1, 32): "u4", (1, 64): "u8", (1, 8): "u1"}
"""NumPy types by DLPack's type code and bits."""


def read(
    instance: int,
    query: int,
    tokens: Sequence[int],
    see_prims: Callable[[int], None] | None = None,
) -> dict[int, NDArray]:
    """Reads attributes of what a query has selected.

    Args:
        instance: Handle of the PhysX instance.
        query: Handle of the query.
        tokens: Attributes.
        see_prims: Is given the handle of the first attribute's list of prims, which lives during
            the call only.

    Returns:
        (M, ...) values of all prims by token, in the order of the prims: a row for each prim, or
        as many as it has, end to end. Attributes without any value are missing.

    Raises:
        EngineError: A call failed.
    """
    lib = native._lib
    names = (native.ovx_string_or_token_t * len(tokens))()
    for name, token in zip(names, tokens, strict=True):
        name.token = token
    session = ctypes.c_uint64(0)
    _wait(instance, lib.ovphysx_read(instance, query, names, len(tokens), session, None))
    found: dict[int, NDArray] = {}
    groups = []
    try:
        while True:
            pointer = ctypes.POINTER(native.ovstage_read_group_t)()
            _wait(instance, lib.ovphysx_fetch_read_next(instance, session, pointer))
            if not pointer:
                return found
            group = pointer.contents
            groups.append(group.read_group_id)
            found[group.attribute] = _values(group.data)
            if see_prims and len(groups) == 1:
                see_prims(group.prims.list)
    finally:
        for group_id in groups:
            _wait(instance, lib.ovphysx_release_group(instance, session, group_id))
        _wait(instance, lib.ovphysx_release_read(instance, session))


def _wait(instance: int, receipt: native.ovphysx_enqueue_result_t) -> None:
    result = native.ovphysx_wait_task_result_t()
    status = receipt.status
    if status == 0:
        status = native._lib.ovphysx_wait_task(instance, receipt, _FOREVER, result).status
        native._lib.ovphysx_destroy_wait_task_result(result)
    if status != 0:
        raise EngineError(f"a read of ovphysx failed with status {status}")


def _values(data: native.ovstage_data_t) -> NDArray:
    """Copy of a group's tensors, end to end: they lie in one block, in order."""
    first, last = data.tensors[0], data.tensors[data.tensor_count - 1]
    kind = first.dtype
    dtype = np.dtype(_DTYPES[kind.code, kind.bits])
    width = (*last.shape[1 : last.ndim], kind.lanes)
    item = math.prod(width) * dtype.itemsize
    begin = first.data + first.byte_offset
    end = last.data + last.byte_offset + last.shape[0] * item
    count, rest = divmod(end - begin, item)
    if rest or count < data.tensor_count:
        raise EngineError("ovphysx laid out a read group in another way than expected")
    block = (ctypes.c_char * (end - begin)).from_address(begin)
    values = np.frombuffer(block, dtype).reshape(count, *width).copy()
    return values[..., 0] if width[-1] == 1 else values
