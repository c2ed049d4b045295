# SPDX-License-Identifier: Apache-2.0
"""One PhysX instance with its stage: edits go in as columns, state comes out as arrays.

The stage (ovstage) is a table of prims by attributes. An edit writes cells at the next *ordinal*,
seals it and lets PhysX drain it; an edit therefore costs milliseconds however small it is, and
edits of one frame are made together. State is read and written through query sessions, past the
stage.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import newton_usd_schemas
import numpy as np
import ovphysx
import ovstage
import physx_usd_schemas
import warp
from numpy.typing import NDArray
from ovphysx import GlobalConfigKey, PhysX, Query
from ovphysx.types import (
    ArticulationKinematicFlag,
    ObjectScope,
    SceneQueryGeometryType,
    SceneQueryMode,
    SimObjectType,
)

from bricksim_core.engines.ovphysx import native
from bricksim_core.errors import EngineError


class Column:
    """Values of one attribute for all prims of a write.

    Args:
        name: Attribute.
        rows: One array for all prims (first axis), or a list of arrays, one for each prim.
        semantic: Name of ovstage's AttributeSemantic.
    """

    def __init__(
        self, name: str, rows: NDArray | Sequence[NDArray], semantic: str = "NONE"
    ) -> None:
        ragged = not isinstance(rows, np.ndarray)
        # Warp's arrays where the stage does not take the strides of NumPy's: of empty ones.
        self._memory = [
            np.ascontiguousarray(row) if row.size else warp.array(row, device="cpu")
            for row in (rows if ragged else [rows])
        ]
        tensors = [ovstage.DLTensor.from_dlpack(array) for array in self._memory]
        self.write = ovstage.WriteDesc(
            name,
            tensors if ragged else tensors[0],
            is_array=ragged,
            semantic=ovstage.AttributeSemantic[semantic],
        )


class Session:
    """PhysX with a stage attached.

    Args:
        usda: The stage to begin with, as text.

    Raises:
        EngineError: PhysX does not take it.
    """

    def __init__(self, usda: str) -> None:
        _prepare_process()
        self.physx = PhysX()
        self.stage = ovstage.Stage("bricksim")
        self.ordinal = 1
        self._queries: dict[object, Query] = {}
        self._orders: dict[object, list[int]] = {}
        self._handles: dict[str, int] = {}
        self._attributes: dict[tuple[str, ...], tuple[ctypes.Array, list[int]]] = {}
        try:
            ovstage.population.open_usd_from_string(
                self.stage, usda, ordinal=1, domains=ovstage.PopulationDomain.ALL
            )
            self.stage.advance_write_floor(ordinal=1).wait()
            self.physx.wait_task(self.physx.attach_ovstage(self.stage, read_ordinal=1))
        except (RuntimeError, ovstage.OvstageError) as error:
            self.close()
            raise EngineError(f"ovphysx does not take the stage: {error}") from None
        self.paths = ovstage.PathDictionary(self.stage)

    def step(self, dt: float) -> None:
        """Advances by a time [s]."""
        self.physx.step_sync(dt)

    def update_kinematics(self) -> None:
        """Brings the links of articulations to where their joints are, without a step."""
        self.physx.update_articulations_kinematic(flags=ArticulationKinematicFlag.POSITION)

    # -- edits of the stage -------------------------------------------------------------------

    @contextmanager
    def editing(self) -> Iterator[None]:
        """Edits inside take effect together when it ends."""
        self.ordinal += 1
        yield
        self.stage.advance_write_floor(ordinal=self.ordinal).wait()
        self.physx.wait_task(self.physx.update_from_ovstage(self.ordinal, self.ordinal))
        self._drop_queries()

    def write(self, prims: Sequence[str], columns: Sequence[Column]) -> None:
        """Writes attributes of prims, and makes the prims that do not exist."""
        with self._selected(prims) as query:
            writes = [column.write for column in columns]
            self.stage.write_attributes(query, writes, self.ordinal).wait()

    def delete(self, prims: Sequence[str]) -> None:
        """Deletes prims."""
        with self._selected(prims) as query:
            self.stage.delete_attributes(query, [], self.ordinal).wait()

    def reference(self, usda: str, path: str) -> None:
        """Adds a stage, given as text, below a prim."""
        ovstage.population.add_usd_reference_from_string(self.stage, usda, path)
        ovstage.population.apply_usd_changes(self.stage, ordinal=self.ordinal)

    @contextmanager
    def _selected(self, prims: Sequence[str]) -> Iterator[object]:
        paths = self.paths.create_path_list_from_strings(list(prims))
        query = self.stage.query_from_path_list(paths)
        try:
            yield query
        finally:
            self.stage.release_query(query).wait()
            self.paths.destroy_path_list(paths)

    # -- state --------------------------------------------------------------------------------

    def read(
        self, kind: SimObjectType, attributes: Sequence[str], prims: Sequence[int] | None = None
    ) -> dict[str, NDArray]:
        """Reads attributes of simulated things.

        Args:
            kind: What kind of things.
            attributes: Names.
            prims: Handles of the prims to read, None for all of the kind.

        Returns:
            (M, ...) values by name, in the order of `order`: a row for each prim, or as many as it
            has, end to end. Attributes without any value are missing. Not to be written to.
        """
        names, tokens = self._names(tuple(attributes))
        found = native.read(self.physx.handle, self._query(kind, prims).handle, names)
        return {n: found[t] for n, t in zip(attributes, tokens, strict=True) if t in found}

    def order(
        self, kind: SimObjectType, attribute: str, prims: Sequence[int] | None = None
    ) -> list[int]:
        """Handles of the prims in the order in which `read` has their values; until an edit."""
        key = (kind, None if prims is None else tuple(prims))
        if key not in self._orders:
            seen: list[int] = []

            def see(path_list: int) -> None:
                seen.extend(self.paths.get_paths(path_list))

            query = self._query(kind, prims).handle
            native.read(self.physx.handle, query, self._names((attribute,))[0], see)
            self._orders[key] = seen
        return self._orders[key]

    def set(self, kind: SimObjectType, values: Mapping[str, NDArray], prims: Sequence[int]) -> None:
        """Writes attributes of simulated things, at once.

        Args:
            kind: What kind of things.
            values: (len(prims), ...) values by name; written in single precision, those of bytes
                as they are.
            prims: Handles of the prims.
        """
        place = {prim: i for i, prim in enumerate(prims)}

        def rows(path_list: int) -> NDArray[np.intp]:
            return np.array([place[p] for p in self.paths.get_paths(path_list)], dtype=np.intp)

        tensors = [
            value if value.dtype == np.uint8 else np.asarray(value, dtype=np.float32)
            for value in values.values()
        ]
        names, _ = self._names(tuple(values))
        native.write(self.physx.handle, self._query(kind, prims).handle, names, tensors, rows)

    def overlapping(self, centre: NDArray, halves: NDArray, rotation: NDArray) -> list[str]:
        """Paths of the colliders that a box overlaps.

        Args:
            centre: (3,) [m].
            halves: (3,) half extents [m].
            rotation: (4,) quaternion xyzw.
        """
        with warnings.catch_warnings():
            # Deprecated, while this release has nothing else that asks what a shape overlaps.
            warnings.filterwarnings("ignore", message="ovphysx scene queries", module=__name__)
            hits = self.physx.overlap(
                SceneQueryGeometryType.BOX,
                SceneQueryMode.ALL,
                half_extent=halves.tolist(),
                position=centre.tolist(),
                rotation=rotation.tolist(),
            )
            if not hits:
                return []
            return self.physx.get_scene_query_paths_from_ids([hit["collision"] for hit in hits])

    def handle(self, path: str) -> int:
        """The handle by which sessions name a prim."""
        if path not in self._handles:
            self._handles[path] = self.paths.intern_path(path)
        return self._handles[path]

    def _query(self, kind: SimObjectType, prims: Sequence[int] | None) -> Query:
        key = (kind, None if prims is None else tuple(prims))
        if key not in self._queries:
            if prims is None:
                query = self.physx.query(kind, scope=ObjectScope.ALL, metadata=False)
            else:
                query = self.physx.query(kind, prim_paths=list(prims), metadata=False)
            self._queries[key] = query.wait()
        return self._queries[key]

    def _names(self, attributes: tuple[str, ...]) -> tuple[ctypes.Array, list[int]]:
        """Attributes as the C functions take them, and their tokens."""
        if attributes not in self._attributes:
            tokens = [self.paths.intern_token(name) for name in attributes]
            self._attributes[attributes] = (native.attribute_names(tokens), tokens)
        return self._attributes[attributes]

    def _drop_queries(self) -> None:
        for query in self._queries.values():
            query.close_sync()
        self._queries.clear()
        self._orders.clear()

    def close(self) -> None:
        """Frees everything."""
        if self.physx.is_stage_attached(self.stage):
            self._drop_queries()
            self.physx.wait_task(self.physx.detach_ovstage())
        self.stage.destroy()
        self.physx.destroy()


@cache
def _prepare_process() -> None:
    """Settings that hold for the whole process and must come before the first stage."""
    PhysX.set_cpu_mode(True)
    ovphysx.enable_default_log_output(False)
    warp.config.log_level = warp.LOG_ERROR
    # No worker threads: scenes of bricks are small, handing them over costs more than it brings.
    ovphysx.set_global_config(GlobalConfigKey.NUM_THREADS, 0)
    schemas = Path(physx_usd_schemas.__path__[0])
    roots = [
        schemas / "PhysxSchema/resources",
        schemas / "OmniUsdPhysicsDeformableSchema/resources",
        Path(newton_usd_schemas.__path__[0]),
    ]
    ovstage.population.register_usd_schemas([str(root) for root in roots])
    # Reads and writes on the CPU go through Warp arrays, which look for a CUDA driver once.
    warnings.filterwarnings("ignore", message="ovphysx is in CPU-only mode", module="ovphysx")
