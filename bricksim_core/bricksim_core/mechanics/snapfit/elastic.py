# SPDX-License-Identifier: Apache-2.0
"""The bonded structure: rigid parts, every joint an elastic spring that never yields.

Displacements y of the parts that can move follow from the loads b by K y = b, K = J D J^T, where D
is the diagonal of the joints' stiffness and J^T y the displacement of the upper part relative to
the lower one at each joint. K is symmetric and positive definite and constant while the topology
is, so it is factored once.

Torques and rotations are scaled by the stud pitch (`to_pitches`), so that all wrenches are in
newtons and all displacements in metres.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bricksim_core.compiled import compiled, crossed
from bricksim_core.mechanics.portions import Portions, at_once
from bricksim_core.mechanics.snapfit.band import filled
from bricksim_core.mechanics.snapfit.cholesky import (
    Band,
    BandCholesky,
    BlockCholesky,
    DenseCholesky,
    Front,
    band_cost,
    entries_of,
    swept_order,
)
from bricksim_core.mechanics.snapfit.dissection import Dissection, dissect
from bricksim_core.parts import STUD_PITCH
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import IntArray

DENSE = 90
"""Free displacements up to which the matrix is a dense one."""

_ORDER, _MATRIX = 0.0025, 0.007
"""Costs for each part of the order of elimination by fronts and of the matrix in a band."""

PITCHES = np.array([1.0, 1.0, 1.0, STUD_PITCH, STUD_PITCH, STUD_PITCH])
"""A wrench in SI over the same wrench scaled; a scaled displacement over the one in SI."""

_SQUARES = PITCHES**2


def wrench_maps(points: Array, coms: Array) -> Array:
    """(C, 6, 6) maps from scaled wrenches about points to scaled wrenches about COMs.

    Args:
        points: (C, 3) [m].
        coms: (C, 3) [m].
    """
    arms = (points - coms) / STUD_PITCH
    maps = np.empty((len(arms), 6, 6))
    _put_maps(arms, maps)
    return maps


class ElasticStructure:
    """The factored stiffness of a component.

    Args:
        lower: (J,) index of the lower part of each joint, GROUND for the world.
        upper: (J,) index of the upper part.
        centres: (J, 3) points of the joints [m].
        stiffness: (J, 6) diagonal stiffness about those points [N/m, N m/rad].
        coms: (N, 3) centres of mass [m].
        held: (N,) parts that do not move. Every part must hang on a held one or on the world.
        origin: A structure that this one came out of. Dissection and those fronts that nothing
            changed in are taken over.

    Attributes:
        lower: As given.
        upper: As given.
        centres: As given.
        node: (N + 1,) number of each part among those that are free, -1 for others; the last one is
            GROUND.
        free: (F,) indices of the 6 N scaled displacements that are free.
        stiffness: (6 J,) scaled stiffness [N/m].
        strain: Values, columns and beginnings of the rows of the sparse (6 J, F) J^T.
    """

    def __init__(
        self,
        lower: IntArray,
        upper: IntArray,
        centres: Array,
        stiffness: Array,
        coms: Array,
        held: NDArray[np.bool_],
        origin: Origin | None = None,
    ) -> None:
        self.lower, self.upper = lower, upper
        self.centres, self._coms = centres, coms
        self._parts, self.node, self.free = _numbered(held)
        self.stiffness = (stiffness / _SQUARES).reshape(-1)
        self.strain = _strain_rows(lower, upper, centres, coms, self.node)
        self._origin = origin

    @cached_property
    def jacobian(self) -> sp.csc_array:
        """(F, 6 J) sparse J."""
        return sp.csc_array(self.strain, shape=(len(self.free), len(self.stiffness)))

    def closing(
        self, low: IntArray, high: IntArray, points: Array, normals: Array
    ) -> tuple[Array, IntArray, IntArray]:
        """How far contacts between two parts each close by displacements.

        Args:
            low: (V,) part on the side that a normal points from; held parts do not move.
            high: (V,) part on the other side.
            points: (V, 3) where [m].
            normals: (V, 3) unit normals.

        Returns:
            Values, columns and beginnings of the rows of a sparse (V, F) matrix. Its transpose,
            with the other sign, gives the loads [N] of pushes of a newton each.
        """
        return _closing_rows(low, high, points, normals, self._coms, self.node)

    def nodes(self, parts: IntArray) -> IntArray:
        """Numbers of parts among those that are free, -1 for others."""
        return self.node[parts]

    @cached_property
    def _dissected(self) -> tuple[Dissection, list[Front | None]]:
        """The order of elimination, and the fronts that are known already."""
        origin, self._origin = self._origin, None
        a, b = self.node[self.lower], self.node[self.upper]
        both = (a >= 0) & (b >= 0)
        a, b = a[both], b[both]
        known = None if origin is None else origin.handed_down(self._parts, a, b)
        if known is not None:
            return known
        tree = dissect(self._coms[self._parts], a, b)
        return tree, [None] * len(tree)

    @cached_property
    def _factor(self) -> BandCholesky | BlockCholesky | DenseCholesky:
        return at_once(self._factored())

    def _factored(self) -> Portions[BandCholesky | BlockCholesky | DenseCholesky]:
        if len(self.free) <= DENSE:
            self._origin = None
            strain = filled(*self.strain, len(self.free))
            return DenseCholesky((strain * self.stiffness[:, None]).T @ strain)
        a, b = self.node[self.lower], self.node[self.upper]
        both = (a >= 0) & (b >= 0)
        swept = swept_order(self._coms[self._parts], a[both], b[both])
        if swept is not None:
            self._origin = None
            yield _MATRIX * len(self._parts)
            place = np.argsort(swept)
            row, column, value = self._blocks(place, np.ones(len(place), dtype=bool))
            matrix = Band(row, column, len(place)).filled(value)
            yield band_cost(matrix)
            return BandCholesky(swept, matrix)
        yield _ORDER * len(self._parts)
        dissection, known = self._dissected
        new = np.array([front is None for front in known])
        blocks = self._blocks(dissection.place, new[dissection.block_of])
        entries = entries_of(*blocks, count=len(dissection.place))
        return (yield from BlockCholesky.factored(dissection, entries, known))

    def _blocks(
        self, place: IntArray, wanted: NDArray[np.bool_]
    ) -> tuple[IntArray, IntArray, Array]:
        """Rows, columns and (M, 6, 6) transposed blocks in the lower triangle that sum up to K.

        Args:
            place: (n,) places of the parts in the order of elimination.
            wanted: (n,) which places' columns are.
        """
        return _blocks(
            place, wanted, self.node[self.lower], self.node[self.upper], self.lower, self.upper,
            self.centres, self._coms, self.stiffness.reshape(-1, 6),
        )  # fmt: skip

    def fronts(self) -> tuple[Dissection, list[Front | None]] | None:
        """What others can take over: the dissection, and the fronts known so far; None where it was
        factored without."""
        factor = vars(self).get("_factor")
        if factor is None:
            return self._dissected
        if not isinstance(factor, BlockCholesky):
            return None
        return self._dissected[0], [*factor.fronts]

    def factor(self) -> Portions[None]:
        """Factors the stiffness, which else happens when it is needed first."""
        if "_factor" not in vars(self):
            vars(self)["_factor"] = yield from self._factored()

    @property
    def points(self) -> Array:
        """(n, 3) centres of mass of the parts that are free [m]."""
        return self._coms[self._parts]

    def displacements(self, loads: Array) -> Array:
        """(F,) or (F, m) scaled displacements [m] under (F,) or (F, m) scaled loads [N]."""
        return self._factor.solve(loads)

    @property
    def size(self) -> int:
        """F, number of free displacements."""
        return len(self.free)

    def loads(self, joints: IntArray, wrenches: Array) -> tuple[Array, IntArray]:
        """Loads J w by (M, 6) scaled wrenches [N], each at one joint: (M, 12) of them [N], and the
        displacements on which they act; those of what is held are 0."""
        return _loads(joints, wrenches, self.lower, self.upper, self.node, *self.strain)

    def wrenches(self, displacements: Array) -> Array:
        """(J, 6) scaled wrenches [N] of the joints on their lower parts."""
        return _wrenches(
            self.lower, self.upper, self.centres, self._coms, self.node, self.stiffness,
            displacements,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Origin:
    """What a structure came out of.

    Attributes:
        structure: The earlier structure.
        parts: (N,) indices that its parts had there, -1 for new ones.
        changed: (N,) its parts that have got or lost joints.
        grown: It has joints that were not there.
    """

    structure: ElasticStructure
    parts: IntArray
    changed: NDArray[np.bool_]
    grown: bool

    def handed_down(
        self, free: IntArray, a: IntArray, b: IntArray
    ) -> tuple[Dissection, list[Front | None]] | None:
        """Dissection and known fronts; None where it is better to begin anew.

        Args:
            free: (n,) parts that are free to move.
            a: (k,) one end of each joint between them, by the order of ``free``.
            b: (k,) the other.
        """
        fronts = self.structure.fronts()
        if fronts is None:
            return None
        dissection, known = fronts
        node = self.structure.nodes(self.parts[free])  # -1 is the world's, which is no node
        old, changed = np.flatnonzero(node >= 0), self.changed[free]
        if not self.grown or len(old) < len(dissection.order):
            kept = np.zeros(len(dissection.order), dtype=bool)
            kept[node[old]] = True
            lost = np.zeros(len(dissection.order), dtype=bool)
            lost[node[old]] = changed[old]
            dissection, same = dissection.without(kept, lost)
            known = [known[block] if block >= 0 else None for block in same.tolist()]
        if self.grown or len(old) < len(free):
            larger = dissection.grown(old, changed, a, b)
            if larger is None:
                return None
            dissection, same = larger
            known = [known[block] if block >= 0 else None for block in same.tolist()]
        return dissection, known


@compiled
def _numbered(held: NDArray[np.bool_]) -> tuple[IntArray, IntArray, IntArray]:
    """(n,) parts that are free, and `node` and `free` of `ElasticStructure`."""
    node = np.full(len(held) + 1, -1, dtype=np.int64)
    count = 0
    for i in range(len(held)):
        if not held[i]:
            node[i] = count
            count += 1
    parts, free = np.empty(count, dtype=np.int64), np.empty(6 * count, dtype=np.int64)
    for i in range(len(held)):
        if node[i] >= 0:
            parts[node[i]] = i
            for c in range(6):
                free[6 * node[i] + c] = 6 * i + c
    return parts, node, free


@compiled
def _blocks(
    place: IntArray,
    wanted: NDArray[np.bool_],
    a: IntArray,
    b: IntArray,
    lower: IntArray,
    upper: IntArray,
    centres: Array,
    coms: Array,
    stiffness: Array,
) -> tuple[IntArray, IntArray, Array]:
    """See `ElasticStructure._blocks`.

    Args:
        place: (n,) places of the parts in the order of elimination.
        wanted: (n,) which places' columns are.
        a: (J,) number of each joint's lower part among those that are free, -1 for others.
        b: (J,) of the upper one.
        lower: (J,) index of the lower part.
        upper: (J,) index of the upper part.
        centres: (J, 3) points of the joints [m].
        coms: (N, 3) centres of mass [m].
        stiffness: (J, 6) scaled [N/m].
    """
    joints = len(a)
    # Those of lower parts, of upper parts, and between them.
    chosen = np.zeros((3, joints), dtype=np.bool_)
    count = 0
    for j in range(joints):
        p, q = a[j] >= 0, b[j] >= 0
        chosen[0, j] = p and wanted[place[a[j]]]
        chosen[1, j] = q and wanted[place[b[j]]]
        chosen[2, j] = p and q and wanted[min(place[a[j]], place[b[j]])]
        count += int(chosen[0, j]) + int(chosen[1, j]) + int(chosen[2, j])
    row, column = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    value, maps = np.empty((count, 6, 6)), np.empty((2, 6, 6))
    nodes, parts = np.stack((a, b)), np.stack((lower, upper))
    at = 0
    for kind in range(3):
        one, other = (1 if kind == 1 else 0), (1 if kind > 0 else 0)
        for j in range(joints):
            if not chosen[kind, j]:
                continue
            p, q = place[nodes[one, j]], place[nodes[other, j]]
            row[at], column[at] = max(p, q), min(p, q)
            # Blocks are stored transposed, the later part's along the rows of the matrix.
            for k in range(2):
                part = parts[other if (k == 0) == (p > q) else one, j]
                x = (centres[j, 0] - coms[part, 0]) / STUD_PITCH
                y = (centres[j, 1] - coms[part, 1]) / STUD_PITCH
                z = (centres[j, 2] - coms[part, 2]) / STUD_PITCH
                _put_map(x, y, z, maps[k])
            _put_block(maps[0], stiffness[j], maps[1], -1.0 if kind == 2 else 1.0, value[at])
            at += 1
    return row, column, value


@compiled
def _put_block(left: Array, stiffness: Array, right: Array, sign: float, target: Array) -> None:
    """Writes left diag(stiffness) right' for two of `wrench_maps`, which are the identity but for
    the moments of forces."""
    for r in range(3):
        for c in range(3):
            target[r, c] = sign * stiffness[r] if r == c else 0.0
            target[r, 3 + c] = sign * stiffness[r] * right[3 + c, r]
            target[3 + r, c] = sign * left[3 + r, c] * stiffness[c]
            moment = stiffness[3 + r] if r == c else 0.0
            for k in range(3):
                moment += left[3 + r, k] * stiffness[k] * right[3 + c, k]
            target[3 + r, 3 + c] = sign * moment


@compiled
def _put_maps(arms: Array, maps: Array) -> None:
    """Writes the maps of `wrench_maps` for (C, 3) arms [pitches]."""
    for k in range(len(arms)):
        _put_map(arms[k, 0], arms[k, 1], arms[k, 2], maps[k])


@compiled
def _put_map(x: float, y: float, z: float, target: Array) -> None:
    """Writes one of them."""
    target[:] = 0.0
    for c in range(6):
        target[c, c] = 1.0
    target[3, 1], target[3, 2] = -z, y
    target[4, 0], target[4, 2] = z, -x
    target[5, 0], target[5, 1] = -y, x


@compiled
def _wrenches(
    lower: IntArray,
    upper: IntArray,
    centres: Array,
    coms: Array,
    node: IntArray,
    stiffness: Array,
    displacements: Array,
) -> Array:
    """(J, 6) `stiffness` times `strain` times (F,) displacements; reads a fifth of what these take.

    The other arguments are those of `_strain_rows`, and `ElasticStructure.stiffness`.
    """
    count = len(lower)
    wrenches = np.empty((count, 6))
    shift, arms = np.zeros((2, 6)), np.empty((2, 3))
    for j in range(count):
        for side in range(2):
            part = upper[j] if side else lower[j]
            at = node[part]
            for c in range(6):
                shift[side, c] = displacements[6 * at + c] if at >= 0 else 0.0
            for c in range(3):
                arms[side, c] = (centres[j, c] - coms[part, c]) / STUD_PITCH
        for row in range(6):
            opening = shift[1, row] - shift[0, row]
            for turn in range(3 if row < 3 else 0):
                if turn == row:
                    continue
                sign = 1.0 if (turn - row) % 3 == 1 else -1.0
                opening -= sign * arms[0, 3 - row - turn] * shift[0, 3 + turn]
                opening += sign * arms[1, 3 - row - turn] * shift[1, 3 + turn]
            wrenches[j, row] = stiffness[6 * j + row] * opening
    return wrenches


@compiled
def _loads(
    joints: IntArray,
    wrenches: Array,
    lower: IntArray,
    upper: IntArray,
    node: IntArray,
    value: Array,
    column: IntArray,
    start: IntArray,
) -> tuple[Array, IntArray]:
    """See `ElasticStructure.loads`; the last three are its `strain`."""
    loads, places = np.zeros((len(joints), 12)), np.zeros((len(joints), 12), dtype=np.int64)
    for m in range(len(joints)):
        joint = joints[m]
        first, second = node[lower[joint]], node[upper[joint]]
        for axis in range(6):
            places[m, axis] = 6 * max(first, 0) + axis
            places[m, 6 + axis] = 6 * max(second, 0) + axis
        for row in range(6):
            for k in range(start[6 * joint + row], start[6 * joint + row + 1]):
                on_second = column[k] // 6 == second
                axis = column[k] % 6 + (6 if on_second else 0)
                loads[m, axis] += value[k] * wrenches[m, row]
    return loads, places


@compiled
def _closing_rows(
    low: IntArray, high: IntArray, points: Array, normals: Array, coms: Array, node: IntArray
) -> tuple[Array, IntArray, IntArray]:
    """See `ElasticStructure.closing`."""
    count, used = len(low), 0
    value, column = np.empty(12 * count), np.empty(12 * count, dtype=np.int64)
    start = np.zeros(count + 1, dtype=np.int64)
    shift = np.empty(6)
    for v in range(count):
        for part, sign in ((low[v], 1.0), (high[v], -1.0)):
            if node[part] >= 0:
                x = (points[v, 0] - coms[part, 0]) / STUD_PITCH
                y = (points[v, 1] - coms[part, 1]) / STUD_PITCH
                z = (points[v, 2] - coms[part, 2]) / STUD_PITCH
                a, b, c = sign * normals[v, 0], sign * normals[v, 1], sign * normals[v, 2]
                shift[0], shift[1], shift[2] = a, b, c
                shift[3], shift[4], shift[5] = crossed((x, y, z), (a, b, c))
                for axis in range(6):
                    if shift[axis] != 0.0:
                        value[used], column[used] = shift[axis], 6 * node[part] + axis
                        used += 1
        start[v + 1] = used
    return value[:used], column[:used], start


@compiled
def _strain_rows(
    lower: IntArray, upper: IntArray, centres: Array, coms: Array, node: IntArray
) -> tuple[Array, IntArray, IntArray]:
    """Values, columns and beginnings of the rows of J^T: what a joint's opening is made of."""
    count, used = len(lower), 0
    value, column = np.empty(24 * count), np.empty(24 * count, dtype=np.int64)
    start = np.zeros(6 * count + 1, dtype=np.int64)
    arms, at = np.empty((2, 3)), np.empty(2, dtype=np.int64)
    for j in range(count):
        for side in range(2):
            part = upper[j] if side else lower[j]
            at[side] = 6 * node[part]
            for c in range(3):
                arms[side, c] = (centres[j, c] - coms[part, c]) / STUD_PITCH
        for row in range(6):
            for side in range(2):
                if at[side] >= 0:
                    value[used], column[used] = 1.0 if side else -1.0, at[side] + row
                    used += 1
            # By turns about the other axes it shifts as well.
            for turn in range(3 if row < 3 else 0):
                for side in range(2):
                    if turn == row or at[side] < 0:
                        continue
                    arm = arms[side, 3 - row - turn]
                    value[used] = arm if ((turn - row) % 3 == 1) == (side == 1) else -arm
                    column[used] = at[side] + 3 + turn
                    used += 1
            start[6 * j + row + 1] = used
    return value[:used], column[:used], start
