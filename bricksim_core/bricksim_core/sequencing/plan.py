# SPDX-License-Identifier: Apache-2.0
"""Assembly plans: what is put where, in which order and how it is held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bricksim_core.sequencing.gripper import Grasp
from bricksim_core.topology import Structure


def part_name(structure: Structure, part_id: int) -> str:
    """A part by its id, its shape and its place in the file."""
    text = f"{part_id} ({structure.graph.part(part_id).shape})"
    origin = structure.origins.get(part_id)
    return f"{text}, {origin}" if origin else text


@dataclass(frozen=True)
class SubAssembly:
    """Parts that are joined aside and put in place as one.

    Attributes:
        steps: How they are joined.
        holder: Part that a second hand holds from the start; None if they are joined standing on
            the table, where the first step puts a part down.
        from_below: The parts are put on from the hole side: seen upside down.
        in_hand: They are joined from the top down in one hand: each step presses all that is in the
            hand onto a part that lies on the table, and takes that along.
    """

    steps: tuple[Step, ...]
    holder: int | None = None
    from_below: bool = False
    in_hand: bool = False

    @property
    def order(self) -> tuple[int, ...]:
        """The parts in the order in which they are joined."""
        if self.in_hand:
            return self.steps[0].parts + tuple(p for step in self.steps for p in step.supports)
        first = () if self.holder is None else (self.holder,)
        return first + tuple(p for step in self.steps for p in step.parts)


@dataclass(frozen=True)
class Step:
    """One insertion from above.

    Attributes:
        parts: The part, or all parts of a sub-assembly (the order of joining them).
        supports: Parts that it is pressed on; none if it is put on the ground.
        connections: Ids of the connections that form.
        grasps: Ways to hold it on the way down, best first; the held part may be any of ``parts``.
            Empty if the plan was made without a gripper.
        press_utilization: Greatest load over capacity in the structure while it is pressed on.
        utilization: The same when it is in place and let go.
        needs_support: Part at which a second hand must push back meanwhile, None if none.
        subassembly: How the parts are joined before; None for a single part.
    """

    parts: tuple[int, ...]
    supports: tuple[int, ...]
    connections: tuple[int, ...]
    grasps: tuple[Grasp, ...]
    press_utilization: float
    utilization: float
    needs_support: int | None = None
    subassembly: SubAssembly | None = None


@dataclass(frozen=True)
class AssemblyPlan:
    """The order in which a structure is built.

    Attributes:
        name: Name of the structure.
        base: Parts that are there from the start (the base plate).
        steps: The insertions in order.
        press_force: Force [N] of each press that the plan was checked with.
        names: What to call each part, by part id: its place in the file and its shape.
    """

    name: str
    base: tuple[int, ...]
    steps: tuple[Step, ...]
    press_force: float
    names: dict[int, str]

    @property
    def order(self) -> tuple[int, ...]:
        """All part ids in the order in which they are put into the structure, base first."""
        return self.base + tuple(p for step in self.steps for p in step.parts)

    @property
    def arms(self) -> int:
        """How many hands the plan needs, 1 or 2."""
        return 2 if any(_needs_two(step) for step in self.steps) else 1

    def table(self) -> str:
        """The plan as text, a line per step, sub-assemblies indented."""
        rows = [("step", "part", "on", "grasp", "press", "after", "notes")]
        rows += [row for i, step in enumerate(self.steps, 1) for row in self._rows(str(i), step)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        base = ", ".join(self.names[p] for p in self.base) or "the table"
        title = f"{self.name}: {len(self.steps)} steps on {base}; press {self.press_force:g} N"
        return "\n".join([title, *lines]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return {
            "name": self.name,
            "base": list(self.base),
            "arms": self.arms,
            "press_force": self.press_force,
            "steps": [_step_dict(step) for step in self.steps],
        }

    def _rows(self, number: str, step: Step) -> Iterator[tuple[str, ...]]:
        inner = step.subassembly
        notes = []
        if inner is not None:
            where = f"held at {inner.holder}" if inner.holder is not None else "on the table"
            where = "in one hand" if inner.in_hand else where
            below = ", from below" if inner.from_below else ""
            notes.append(f"joined before {where}{below}")
        if step.needs_support is not None:
            notes.append(f"push back at {step.needs_support}")
        what = "+".join(map(str, step.parts))
        if len(step.parts) == 1:
            what = self.names[step.parts[0]]
        yield (
            number,
            what,
            ", ".join(map(str, step.supports)) or "ground",
            _grasp_text(step),
            f"{step.press_utilization:.2f}",
            f"{step.utilization:.2f}",
            "; ".join(notes),
        )
        if inner is not None:
            for i, part in enumerate(inner.steps, 1):
                yield from self._rows(f" {number}.{i}", part)


def _needs_two(step: Step) -> bool:
    if step.needs_support is not None:
        return True
    inner = step.subassembly
    if inner is None:
        return False
    return inner.in_hand or inner.holder is not None or any(map(_needs_two, inner.steps))


def _grasp_text(step: Step) -> str:
    if not step.grasps:
        return "-"
    grasp = step.grasps[0]
    what = str(grasp.part) if grasp.beside is None else f"{grasp.part}+{grasp.beside}"
    held = f"{what} " if len(step.parts) > 1 else ""
    side = 1 - grasp.closing_axis
    return (
        f"{held}{'xy'[grasp.closing_axis]} {grasp.width * 1e3:.0f} mm,"
        f" {'xy'[side]}{grasp.centre[side] * 1e3:+.1f}, {grasp.depth * 1e3:.1f} deep"
    )


def _step_dict(step: Step) -> dict[str, Any]:
    inner = step.subassembly
    return {
        "parts": list(step.parts),
        "supports": list(step.supports),
        "connections": list(step.connections),
        "press_utilization": step.press_utilization,
        "utilization": step.utilization,
        "needs_support": step.needs_support,
        "grasps": [
            {
                "part": g.part,
                "closing_axis": "xy"[g.closing_axis],
                "centre": list(g.centre),
                "depth": g.depth,
                "opening": g.opening,
                "width": g.width,
                "beside": g.beside,
                "from_below": g.from_below,
            }
            for g in step.grasps
        ],
        "subassembly": None
        if inner is None
        else {
            "holder": inner.holder,
            "from_below": inner.from_below,
            "in_hand": inner.in_hand,
            "steps": [_step_dict(s) for s in inner.steps],
        },
    }
