# SPDX-License-Identifier: Apache-2.0
"""Reads and writes of simulation state through ovphysx's C functions.

The package wraps every array of every prim into a Warp array and every call into an operation:
25 ms a step for the contacts of 50 bricks, 3 ms to place them. The same C calls made here take
less than one. This is not the
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
_GroupPointer = ctypes.POINTER(native.ovstage_read_group_t)

_DTYPES = {
    (2, 32): np.dtype("f4"),
    (2, 64): np.dtype("f8"),
    (0, 32): np.dtype("i4"),
    (1, 32): np.dtype("u4"),
    (1, 64): np.dtype("u8"),
    (1, 8): np.dtype("u1"),
}
"""NumPy types by DLPack's type code and bits."""


def attribute_names(tokens: Sequence[int]) -> ctypes.Array:
    """Attributes as `read` takes them."""
    names = (native.ovx_string_or_token_t * len(tokens))()
    for name, token in zip(names, tokens, strict=True):
        name.token = token
    return names


def read(
    instance: int,
    query: int,
    names: ctypes.Array,
    see_prims: Callable[[int], None] | None = None,
) -> dict[int, NDArray]:
    """Reads attributes of what a query has selected.

    Args:
        instance: Handle of the PhysX instance.
        query: Handle of the query.
        names: Attributes, from `attribute_names`.
        see_prims: Is given the handle of the first attribute's list of prims, which lives during
            the call only.

    Returns:
        (M, ...) values of all prims by token, in the order of the prims: a row for each prim, or
        as many as it has, end to end. Attributes without any value are missing. Read only.

    Raises:
        EngineError: A call failed.
    """
    lib = native._lib
    session = ctypes.c_uint64(0)
    _wait(instance, lib.ovphysx_read(instance, query, names, len(names), session, None))
    found: dict[int, NDArray] = {}
    try:
        while True:
            pointer = _GroupPointer()
            _wait(instance, lib.ovphysx_fetch_read_next(instance, session, pointer))
            if not pointer:
                return found
            group = pointer.contents
            if see_prims and not found:
                see_prims(group.prims.list)
            found[group.attribute] = _values(group.data)
    finally:
        _wait(instance, lib.ovphysx_release_read(instance, session))  # the groups with it


def write(
    instance: int,
    query: int,
    names: ctypes.Array,
    values: Sequence[NDArray],
    rows: Callable[[int], NDArray[np.intp]],
) -> None:
    """Writes attributes of what a query has selected, at once.

    Args:
        instance: Handle of the PhysX instance.
        query: Handle of the query.
        names: Attributes, from `attribute_names`.
        values: (N, W) values of each attribute, in its type.
        rows: Which rows the prims of a list take, by the list's handle.

    Raises:
        EngineError: A call failed.
    """
    lib = native._lib
    session = ctypes.c_uint64(0)
    _wait(instance, lib.ovphysx_write(instance, query, names, len(names), session, None))
    try:
        while True:
            fetched = native.ovphysx_fetched_write_group_t()
            _wait(instance, lib.ovphysx_fetch_write_next(instance, session, fetched))
            if not fetched.group:
                return
            group = fetched.group.contents
            _fill(group.data, values[fetched.attribute_index][rows(group.prims.list)])
            sync = native.ovstage_cuda_sync_t()
            _wait(instance, lib.ovphysx_commit_group(instance, session, fetched.group, sync))
    finally:
        _wait(instance, lib.ovphysx_release_write(instance, session))


def _fill(data: native.ovstage_data_t, values: NDArray) -> None:
    """Puts values into a group's tensors: one for all prims, or one for each."""
    count = data.tensor_count
    total = 0
    places = []
    for i in range(count):
        tensor = data.tensors[i]
        if _DTYPES.get((tensor.dtype.code, tensor.dtype.bits)) != values.dtype:
            raise EngineError(f"ovphysx wants another type than {values.dtype} in a write")
        places.append(tensor.data + tensor.byte_offset)
        total += math.prod(tensor.shape[: tensor.ndim]) * tensor.dtype.lanes
    if count not in (1, len(values)) or total != values.size:
        raise EngineError("ovphysx laid out a write group in another way than expected")
    source = np.ascontiguousarray(values)
    size = source.nbytes // count
    for i, place in enumerate(places):
        ctypes.memmove(place, source.ctypes.data + i * size, size)


def _wait(instance: int, receipt: native.ovphysx_enqueue_result_t) -> None:
    status = receipt.status
    if status == 0:
        result = native.ovphysx_wait_task_result_t()
        status = native._lib.ovphysx_wait_task(instance, receipt, _FOREVER, result).status
        if result.num_errors:
            native._lib.ovphysx_destroy_wait_task_result(result)
    if status != 0:
        raise EngineError(f"a call of ovphysx failed with status {status}")


def _values(data: native.ovstage_data_t) -> NDArray:
    """Copy of a group's tensors, end to end: they lie in one block, in order."""
    count = data.tensor_count
    first, last = data.tensors[0], data.tensors[count - 1]
    kind, shape = first.dtype, last.shape
    dtype = _DTYPES[int(kind.code), kind.bits]
    width = (*shape[1 : last.ndim], kind.lanes)
    item = math.prod(width) * dtype.itemsize
    begin = first.data + first.byte_offset
    size = last.data + last.byte_offset + shape[0] * item - begin
    rows, rest = divmod(size, item)
    if rest or rows < count:
        raise EngineError("ovphysx laid out a read group in another way than expected")
    row = width if kind.lanes > 1 else width[:-1]
    return np.frombuffer(ctypes.string_at(begin, size), dtype).reshape(rows, *row)
