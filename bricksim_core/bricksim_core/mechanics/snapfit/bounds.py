# SPDX-License-Identifier: Apache-2.0
"""How far the forces in a bonded structure can change with its loads, without solving for them.

Of all wrenches that balance given loads the elastic ones have the least energy (Castigliano), so
the energy of any others is an upper bound. Those that flow along a spanning tree of the joints take
sums only. The energy bounds every wrench, and with it every row of a utilization and, by virtual
work, every displacement (Cauchy and Schwarz):

    |r' w| <= |D^(1/2) r| sqrt(w' D^-1 w)
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bricksim_core.mechanics.snapfit.elastic import PITCHES
from bricksim_core.mechanics.snapfit.joints import Joints
from bricksim_core.parts import STUD_PITCH
from bricksim_core.spatial import Array, cross, joined
from bricksim_core.topology.layout import ComponentLayout


class ChangeBound:
    """Bounds for a component whose joints do not yield.

    Args:
        layout: The component.
        held: (N,) parts that do not move.
        joints: Its connections, all joints that it has.

    Attributes:
        per_utilization: (C,) greatest change of each connection's utilization over the root of the
            energy [1/sqrt(J)].
        per_displacement: Greatest displacement of any point of a part over that root
            [m/sqrt(J)].
    """

    def __init__(self, layout: ComponentLayout, held: NDArray[np.bool_], joints: Joints) -> None:
        count = len(layout.part_ids)
        self._coms = layout.coms / STUD_PITCH
        tree, self._subtree = _spanning_tree(joints, held, count)
        self._centre = joints.centre[tree] / STUD_PITCH
        stiffness = joints.stiffness[tree] / PITCHES**2
        self._compliance = 1.0 / stiffness

        # A unit force anywhere on a part has no longer lever than the component's diameter.
        size = (
            np.linalg.norm(np.ptp(layout.coms, axis=0))
            + np.linalg.norm(layout.dimensions, axis=1).max(initial=0.0) * STUD_PITCH
        )
        longest = 1.0 / stiffness[:, :3].min(axis=1)
        longest += (size / STUD_PITCH) ** 2 / stiffness[:, 3:].min(axis=1)
        self.per_displacement = float(np.sqrt((longest @ self._subtree).max(initial=0.0)))

        k, turn = joints.stiffness, joints.stiffness[:, 5] / joints.twist**2
        half, tip = joints.half, joints.tip
        about_y = (half[:, 0] ** 2 * k[:, 2] + k[:, 4]) / tip[:, :2].min(axis=1) ** 2
        about_x = (half[:, 1] ** 2 * k[:, 2] + k[:, 3]) / tip[:, 2:].min(axis=1) ** 2
        bearing = (k[:, 0] + k[:, 1]) / joints.shear**2
        self.per_utilization = np.sqrt(np.maximum(np.maximum(about_x, about_y), bearing) + turn)

    def root_energy(self, change: Array) -> float:
        """Upper bound of sqrt(w' D^-1 w) for the wrenches by a change of loads [sqrt(J)].

        Args:
            change: (N, 6) scaled loads about the parts' COMs [N]; what acts on held parts goes into
                the world, and the rest has to be in balance with that.
        """
        torque = change[:, 3:] + cross(self._coms, change[:, :3])
        total = self._subtree @ np.concatenate([change[:, :3], torque], axis=1)
        total[:, 3:] -= cross(self._centre, total[:, :3])
        return float(np.sqrt((total * total * self._compliance).sum()))


def _spanning_tree(
    joints: Joints, held: NDArray[np.bool_], count: int
) -> tuple[NDArray, sp.csr_array]:
    """Shortest ways from all parts to held ones.

    Returns:
        (T,) joints of the tree and (T, N) which parts hang on each.
    """
    # Static analysis does without it, and it is slow to load.
    from scipy.sparse.csgraph import breadth_first_order

    # The world is one more node.
    world = np.flatnonzero(held)
    rows = np.concatenate([joints.lower, joints.upper, np.full_like(world, count)])
    columns = np.concatenate([joints.upper, joints.lower, world])
    shape = (count + 1, count + 1)
    graph = sp.csr_array(sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=shape))
    _, parent = breadth_first_order(graph, count)
    moving = np.flatnonzero(~held)
    key = np.minimum(joints.lower, joints.upper) * count + np.maximum(joints.lower, joints.upper)
    order = np.argsort(key, kind="stable")
    onto = parent[moving]
    way = np.minimum(moving, onto) * count + np.maximum(moving, onto)
    tree = order[np.searchsorted(key, way, sorter=order)]
    row = np.full(count + 1, -1, dtype=np.int64)
    row[moving] = np.arange(len(moving))
    hanging, above = [], []
    part, at = moving, moving
    while len(part):
        hanging.append(part)
        above.append(row[at])
        at = parent[at]
        part, at = part[row[at] >= 0], at[row[at] >= 0]
    entries = (joined(above, dtype=np.int64), joined(hanging, dtype=np.int64))
    ones = np.ones(len(entries[0]))
    return tree, sp.csr_array(sp.coo_array((ones, entries), shape=(len(tree), count)))
