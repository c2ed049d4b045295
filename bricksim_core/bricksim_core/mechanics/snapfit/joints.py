# SPDX-License-Identifier: Apache-2.0
"""Connections as joints: what wrench each can carry and how stiff it is.

The wrench w = (Fx, Fy, Fz, Mx, My, Mz) of a joint acts on its lower (stud) part about the centre of
the overlap at the stud plane; Fz > 0 pulls the parts off each other. A stud's contact points give
friction up to a strength each; the faces push without limit. What wrenches are possible then is a
cone with its apex at the full friction of all points (docs/mechanics.md): the parts come apart by
tipping about one of the four edges of the overlap, and that is all there is to check:

    tip:     (moment of the pull about an edge) / (moment of all strengths about it)
    bearing: (|Fx| + |Fy|) / (bearing of all studs) + |Mz| / (its torque)

On one stud only friction resists turning, and what it takes the pull lacks: there |Mz| / (friction
torque) adds to the tipping rows, counts alone under a push, and is left out of bearing.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

import numpy as np

from bricksim_core.compiled import compiled
from bricksim_core.mechanics.geometry import Holder, Place, StudPattern, stud_contacts
from bricksim_core.mechanics.snapfit.constants import SnapFitConstants
from bricksim_core.mechanics.snapfit.elastic import PITCHES
from bricksim_core.parts import STUD_PITCH, STUD_RADIUS
from bricksim_core.spatial import Array
from bricksim_core.topology.layout import ComponentLayout, IntArray

EDGE_SIGNS = np.array([[0.0, -1.0], [0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
"""Signs of (Mx, My) in the moment of the pull about the edge at -x, +x, -y, +y."""

BEARING_SIGNS = np.array(list(itertools.product((1.0, -1.0), repeat=3)))
"""Signs of Fx, Fy, Mz in bearing."""

TIP_ROWS = 8
"""Rows 0-7: edge -x, +x, -y, +y, first with +Mz, then with -Mz (zero if that is the same)."""
ROWS = TIP_ROWS + len(BEARING_SIGNS)
"""Rows of one joint; 8-15 are the sign patterns of Fx, Fy, Mz in bearing. For one stud those with
-Mz are spare: two hold the twist alone. Rows without use are zero."""


@dataclass(frozen=True, eq=False)
class Joints:
    """C joints as arrays.

    Attributes:
        lower: (C,) index of the stud part.
        upper: (C,) index of the hole part.
        centre: (C, 3) centre of the overlap at the stud plane, component frame [m].
        half: (C, 2) half sides of the overlap along x and y [m].
        studs: (C,) engaged studs.
        pull: (C,) pure pull-off strength [N].
        tip: (C, 4) moment of all strengths about the edges -x, +x, -y, +y [N m].
        shear: (C,) lateral strength [N].
        twist: (C,) torsional strength [N m].
        stiffness: (C, 6) diagonal stiffness about the centre [N/m, N m/rad].
    """

    lower: IntArray
    upper: IntArray
    centre: Array
    half: Array
    studs: IntArray
    pull: Array
    tip: Array
    shear: Array
    twist: Array
    stiffness: Array

    def __len__(self) -> int:
        return len(self.lower)

    @cached_property
    def rows(self) -> Array:
        """(C, ROWS, 6) coefficients: the utilization is the greatest of rows @ wrench, or 0."""
        return _rows(self.half, self.tip, self.shear, self.twist, self.studs)

    def utilization(self, wrench: Array) -> Array:
        """(C,) load over capacity >= 0 of (C, 6) wrenches [N, N m]: the greatest row."""
        return _utilization(wrench, self.half, self.tip, self.shear, self.twist, self.studs)

    def greatest(self, scaled: Array) -> Array:
        """(C,) utilization of (C, 6) scaled wrenches [N]."""
        return self.utilization(scaled * PITCHES)

    def split(self, wrench: Array) -> tuple[Array, Array]:
        """What of the wrenches the studs give and what the faces.

        Friction is taken as even over all points, as much as the wrench needs at least: that gives
        every wrench the joint can carry. What is left is a push, spread bilinearly over the corners
        of the overlap.

        Args:
            wrench: (C, 6) [N, N m].

        Returns:
            (C, 6) wrench of the studs on the lower part [N, N m] and (C, 4) forces >= 0 at the
            corners -x-y, +x-y, +x+y, -x+y [N].
        """
        return _split(wrench, self.half, self.tip, self.pull)

    def take(self, index: IntArray) -> Joints:
        """Some of the joints."""
        return self.between(self.lower[index], self.upper[index], index)

    def between(self, lower: IntArray, upper: IntArray, index: IntArray) -> Joints:
        """Some of the joints, with other numbers of their parts."""
        return Joints(
            lower, upper,
            *_taken(
                index, self.centre, self.half, self.studs, self.pull, self.tip, self.shear,
                self.twist, self.stiffness,
            ),
        )  # fmt: skip

    def and_others(self, others: Joints) -> Joints:
        """These joints, then others."""
        return Joints(
            *(
                np.concatenate([getattr(self, f.name), getattr(others, f.name)])
                for f in fields(Joints)
            )
        )

    @cached_property
    def corners(self) -> Array:
        """(C, 4, 3) corners of the overlaps [m], in the order of `split`."""
        return rectangle_corners(self.centre, self.half)


@compiled
def _taken(
    index: IntArray,
    centre: Array,
    half: Array,
    studs: IntArray,
    pull: Array,
    tip: Array,
    shear: Array,
    twist: Array,
    stiffness: Array,
) -> tuple[Array, Array, IntArray, Array, Array, Array, Array, Array]:
    """Some rows of the arrays of `Joints`."""
    return (
        centre[index], half[index], studs[index], pull[index], tip[index], shear[index],
        twist[index], stiffness[index],
    )  # fmt: skip


@compiled
def _rows(half: Array, tip: Array, shear: Array, twist: Array, studs: IntArray) -> Array:
    """`Joints.rows`."""
    rows = np.zeros((len(half), ROWS, 6))
    for c in range(len(half)):
        own, single = rows[c], studs[c] == 1
        for edge in range(4):
            row = own[edge]
            row[2] = half[c, edge // 2] / tip[c, edge]
            row[3:5] = EDGE_SIGNS[edge] / tip[c, edge]
            if single:
                own[4 + edge] = row
                row[5], own[4 + edge, 5] = 1.0 / twist[c], -1.0 / twist[c]
        spare = 1.0
        for r in range(TIP_ROWS, ROWS):
            x, y, turn = BEARING_SIGNS[r - TIP_ROWS]
            if not single:
                own[r, 0], own[r, 1], own[r, 5] = x / shear[c], y / shear[c], turn / twist[c]
            elif turn > 0.0:
                own[r, 0], own[r, 1] = x / shear[c], y / shear[c]
            elif spare >= -1.0:
                own[r, 5] = spare / twist[c]
                spare -= 2.0
    return rows


@compiled
def _utilization(
    wrench: Array, half: Array, tip: Array, shear: Array, twist: Array, studs: IntArray
) -> Array:
    """`Joints.utilization`."""
    greatest = np.zeros(len(half))
    for c in range(len(half)):
        fx, fy, fz, mx, my, mz = wrench[c]
        x, y = half[c]
        pulled = max(
            max((x * fz - my) / tip[c, 0], (x * fz + my) / tip[c, 1]),
            max((y * fz + mx) / tip[c, 2], (y * fz - mx) / tip[c, 3]),
        )
        turned, sheared = abs(mz) / twist[c], (abs(fx) + abs(fy)) / shear[c]
        if studs[c] == 1:
            alone = max(max(pulled, 0.0) + turned, sheared)
        else:
            alone = max(pulled, sheared + turned)
        # NaN stays NaN.
        greatest[c] = 0.0 if alone < 0.0 else alone
    return greatest


def pull_moments(wrench: Array) -> Array:
    """(C, 3) pull Fz [N] and its first moments along x and y [N m] of (C, 6) wrenches."""
    return np.column_stack([wrench[:, 2], -wrench[:, 4], wrench[:, 3]])


def rectangle_corners(centre: Array, half: Array) -> Array:
    """(C, 4, 3) corners -x-y, +x-y, +x+y, -x+y of horizontal rectangles."""
    corners = np.repeat(centre[:, None, :], 4, axis=1)
    corners[:, :, :2] += half[:, None, :] * [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]
    return corners


@compiled
def _split(wrench: Array, half: Array, tip: Array, pull: Array) -> tuple[Array, Array]:
    """`Joints.split`."""
    studs, push = wrench.copy(), np.empty((len(wrench), 3))
    for c in range(len(wrench)):
        need, about_x, about_y = wrench[c, 2], -wrench[c, 4], wrench[c, 3]
        x, y = half[c]
        used = np.maximum(need * x + about_x, 0.0)  # NaN stays NaN
        used = np.maximum(used / tip[c, 0], (need * x - about_x) / tip[c, 1])
        used = np.maximum(used, (need * y + about_y) / tip[c, 2])
        used = np.maximum(used, (need * y - about_y) / tip[c, 3])
        friction = used * pull[c]
        friction_x = used * (0.5 * (tip[c, 0] - tip[c, 1]))
        friction_y = used * (0.5 * (tip[c, 2] - tip[c, 3]))
        studs[c, 2], studs[c, 3], studs[c, 4] = friction, friction_y, -friction_x
        push[c, 0], push[c, 1] = friction - need, friction_x - about_x
        push[c, 2] = friction_y - about_y
    return studs, spread_push(push, half)


@compiled
def spread_push(push: Array, half: Array) -> Array:
    """(C, 4) forces at the corners of rectangles that give a push and its moments, bilinearly.

    Args:
        push: (C, 3) push >= 0 [N] and its first moments along x and y [N m], its centre within the
            rectangle.
        half: (C, 2) half sides [m].
    """
    corners, place = np.empty((len(push), 4)), np.empty(2)
    for c in range(len(push)):
        total = np.maximum(push[c, 0], 0.0)
        for k in range(2):
            scale = total * half[c, k]
            away = push[c, 1 + k] / scale if scale > 0.0 else 0.0
            place[k] = np.minimum(np.maximum(away, -1.0), 1.0)
        x, y = place
        quarter = 0.25 * total
        corners[c, 0], corners[c, 1] = quarter * ((1 - x) * (1 - y)), quarter * ((1 + x) * (1 - y))
        corners[c, 2], corners[c, 3] = quarter * ((1 + x) * (1 + y)), quarter * ((1 - x) * (1 + y))
    return corners


def joints_of(layout: ComponentLayout, constants: SnapFitConstants) -> Joints:
    """The joints of a component, in the layout's order of connections."""
    known = _KNOWN.get(layout)
    if known is None or known[0] != constants:
        every = np.arange(len(layout.connection_ids))
        known = _KNOWN[layout] = constants, _joints_of(layout, constants, every)
    return known[1]


def joints_of_descendant(
    layout: ComponentLayout, constants: SnapFitConstants, joints: Joints, index: IntArray
) -> Joints:
    """The joints of a component most of which were joints of an earlier one.

    Args:
        layout: The component.
        constants: The model's constants.
        joints: Of the earlier component, whose frame it has, with these constants.
        index: (C,) where its joints are among them, -1 for new ones.
    """
    new = np.flatnonzero(index < 0)
    if len(new):
        index = index.copy()
        index[new] = len(joints) + np.arange(len(new))
        joints = joints.and_others(_joints_of(layout, constants, new))
    own = joints.between(layout.stud_index, layout.hole_index, index)
    _KNOWN[layout] = constants, own
    return own


_KNOWN: WeakKeyDictionary[ComponentLayout, tuple[SnapFitConstants, Joints]] = WeakKeyDictionary()
"""Joints of the layouts that are alive."""


def _joints_of(layout: ComponentLayout, constants: SnapFitConstants, rows: IntArray) -> Joints:
    """Those of some of a component's connections."""
    contacts = stud_contacts(layout, rows)
    table = np.array([_strengths(p, constants) for p in contacts.patterns]).reshape(-1, 3)
    pull, first_x, first_y = table[contacts.pattern].T.copy()
    half = (0.5 * STUD_PITCH * contacts.overlap).astype(np.float64)
    tip = np.column_stack(
        [
            pull * half[:, 0] + first_x,
            pull * half[:, 0] - first_x,
            pull * half[:, 1] + first_y,
            pull * half[:, 1] - first_y,
        ]
    )
    studs = contacts.overlap.prod(axis=1)
    lever = _stud_levers(contacts.overlap)
    bearing: float = constants.bearing_strength
    return Joints(
        lower=layout.stud_index[rows],
        upper=layout.hole_index[rows],
        centre=contacts.centre,
        half=half,
        studs=studs,
        pull=pull,
        tip=tip,
        shear=bearing * studs.astype(np.float64),
        twist=bearing * lever + STUD_RADIUS * pull,
        stiffness=spread_stiffness(half, studs, constants.stud_stiffness),
    )


def contact_strengths(pattern: StudPattern, constants: SnapFitConstants) -> Array:
    """(P,) friction that each contact point of a pattern can bear [N].

    A stud's contact points press on it in equilibrium. Four alike press alike. Of the three at a
    corner stud the diagonal tube holds two walls, of the three at an edge stud the wall holds two
    diagonal tubes; the two are weaker by 1/sqrt(2).
    """
    weak = ((pattern.place == Place.CORNER) & (pattern.holder == Holder.WALL)) | (
        (pattern.place == Place.EDGE) & (pattern.holder == Holder.TUBE)
    )
    return constants.contact_strength * np.where(weak, constants.weak_contact, 1.0)


@lru_cache(maxsize=4096)
def _strengths(pattern: StudPattern, constants: SnapFitConstants) -> tuple[float, float, float]:
    """Sum of the points' strengths [N] and their first moments along x and y [N m]."""
    strength = contact_strengths(pattern, constants)
    first = strength @ pattern.position
    return float(strength.sum()), float(first[0]), float(first[1])


def _stud_levers(overlap: IntArray) -> Array:
    """(C,) sum of the distances of (C, 2) studs from the centres of their overlaps [m]."""
    sizes, which = np.unique(overlap[:, 0] << 32 | overlap[:, 1], return_inverse=True)
    return np.array([_stud_lever(int(k >> 32), int(k & 0xFFFFFFFF)) for k in sizes])[which]


@lru_cache(maxsize=4096)
def _stud_lever(nx: int, ny: int) -> float:
    """Sum of the distances of nx by ny studs from their centre [m]."""
    x = (np.arange(nx) - 0.5 * (nx - 1)) * STUD_PITCH
    y = (np.arange(ny) - 0.5 * (ny - 1)) * STUD_PITCH
    return float(np.hypot(x[:, None], y[None, :]).sum())


def spread_stiffness(half: Array, studs: IntArray, per_stud: float) -> Array:
    """(C, 6) stiffness of springs spread evenly over the overlaps."""
    x2, y2 = half[:, 0] ** 2 / 3.0, half[:, 1] ** 2 / 3.0
    one = np.ones(len(half))
    return per_stud * studs[:, None] * np.column_stack([one, one, one, y2, x2, x2 + y2])
