#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How the verdicts of the default model hang on its constants (docs/sensitivity.md).

    .venv/bin/python scripts/sensitivity_study.py [--out docs/images] [--quick]

Takes some minutes on one core, nearly all of it for the drops.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import ArrayLike

from bricksim_core.engines.mujoco import MujocoEngine
from bricksim_core.engines.mujoco.contact import ContactParameters
from bricksim_core.experiments.bond import running_bond
from bricksim_core.experiments.setup import UNHURRIED, rotation_from_degrees, standing
from bricksim_core.formats import parse_structure, read_structure
from bricksim_core.mechanics.detector import BreakageThresholds
from bricksim_core.mechanics.loads import gravity_loads
from bricksim_core.mechanics.slip import SlipCriterion
from bricksim_core.mechanics.snapfit import SnapFitConstants, SnapFitModel
from bricksim_core.mechanics.steps import steps_of
from bricksim_core.simulator import Simulator, SimulatorConfig
from bricksim_core.topology import Structure

DATA = Path(__file__).parents[1] / "bricksim_core" / "test" / "data"
BUILT = {
    "external_weight_good": True,
    "stair_19": True,
    "stair_20": False,
    "stick_light": True,
    "stick_heavy": False,
}
"""Structures of StableLego that were built, and whether they stood."""
GENERATED = ("demo_car", "demo_sofa", "demo_table", "mesh2brick_car", "texture_guitar")
GRAVITY = np.array([0.0, 0.0, -9.81])


def built(name: str) -> Structure:
    """A built structure of StableLego."""
    return read_structure(DATA / "stablelego" / f"{name}.json")


def utilization(
    structure: Structure, constants: SnapFitConstants, masses: ArrayLike = 1.0
) -> float:
    """Highest utilization under gravity, with the weights of the parts multiplied."""
    highest = 0.0
    for component in structure.graph.component_ids:
        layout = structure.graph.layout(component)
        anchored = np.isin(layout.part_ids, list(structure.fixed))
        loads = gravity_loads(layout, GRAVITY) * np.asarray(masses).reshape(-1, 1)
        solution = SnapFitModel(constants).system(layout, anchored).solve(loads)
        highest = max(highest, float(solution.utilization.max(initial=0.0)))
    return highest


def friction_window() -> None:
    """For which friction at the strongest point each case comes out as built."""
    print("\n| case | built | least T that carries it [N] |\n|---|---|---|")
    constants = SnapFitConstants()
    for name, stood in BUILT.items():
        least = constants.contact_strength * utilization(built(name), constants)
        print(f"| {name} | {'stood' if stood else 'fell'} | {least:.3f} |")


def map_of_constants(out: Path) -> None:
    """Which (T, r) give the right verdict on which family."""
    ratios = np.linspace(0.5, 1.0, 51)
    window = {}
    for family, (stood, fell) in {
        "stairs": ("stair_19", "stair_20"),
        "sticks": ("stick_light", "stick_heavy"),
    }.items():
        bounds = []
        for ratio in ratios:
            constants = SnapFitConstants(weak_contact=float(ratio))
            least = [
                constants.contact_strength * utilization(built(name), constants)
                for name in (stood, fell)
            ]
            bounds.append(least)
        window[family] = np.array(bounds)
    figure, axes = plt.subplots(figsize=(5.5, 4.0), layout="constrained")
    for (family, bounds), color in zip(window.items(), ("tab:blue", "tab:orange"), strict=True):
        axes.fill_between(ratios, *bounds.T, alpha=0.4, color=color, label=f"{family} as built")
    axes.plot(
        [math.sqrt(0.5)], [0.7], "ko", label="default: r = 1/√2 (derived), T = 0.7 N (published)"
    )
    axes.set_xlabel("r: weak over strong contact of a stud")
    axes.set_ylabel("T: friction at the strong contact [N]")
    axes.legend(fontsize=8)
    figure.savefig(out / "sensitivity_constants.png", dpi=110)
    plt.close(figure)
    both = (window["stairs"][:, 0] < 0.7) & (window["stairs"][:, 1] > 0.7)
    print(
        f"\nAt T = 0.7 N the stairs come out as built for r in {ratios[both][0]:.2f} to"
        f" {ratios[both][-1]:.2f}."
    )


def monte_carlo(out: Path, samples: int) -> None:
    """Probability of standing under uncertain constants."""
    rng = np.random.default_rng(0)
    structures = {name: built(name) for name in BUILT}
    structures |= {n: read_structure(DATA / "brickgpt" / f"{n}.txt") for n in GENERATED}
    print("\n| structure | built | u | u, 5 % to 95 % | stands | called marginal |")
    print("|---|---|---|---|---|---|")
    spread = {}
    for name, structure in structures.items():
        values = []
        counts = [len(structure.graph.layout(c).part_ids) for c in structure.graph.component_ids]
        for _ in range(samples if name in BUILT else samples // 10):
            constants = replace(
                SnapFitConstants(),
                preload=3.5 * float(np.exp(rng.normal(0.0, 0.10))),
                weak_contact=float(np.clip(rng.normal(math.sqrt(0.5), 0.05), 0.5, 1.0)),
            )
            # Every part varies by itself: printing, glue, tolerances of injection moulding.
            masses = 1.0 + 0.02 * rng.standard_normal(counts[0])
            values.append(utilization(structure, constants, masses))
        values = np.array(values)
        spread[name] = values
        low, high = np.percentile(values, [5, 95])
        stands = np.mean(values <= 1.0)
        nominal = utilization(structure, SnapFitConstants())
        truth = {True: "stood", False: "fell", None: "-"}[BUILT.get(name)]
        marginal = "yes" if 0.9 <= nominal <= 1.1 else "no"
        print(
            f"| {name} | {truth} | {nominal:.3f} | {low:.3f} to {high:.3f} | {stands:.0%} |"
            f" {marginal} |"
        )
    figure, axes = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
    axes.axvspan(0.9, 1.1, color="0.85", label="called marginal")
    axes.axvline(1.0, color="0.5", lw=0.8)
    axes.violinplot(list(spread.values()), orientation="horizontal", showmedians=True, widths=0.8)
    axes.set_yticks(range(1, 1 + len(spread)), list(spread))
    axes.set_xscale("log")
    axes.set_xlabel("highest utilization")
    axes.legend(fontsize=8)
    figure.savefig(out / "sensitivity_verdicts.png", dpi=110)
    plt.close(figure)


ORIENTATIONS = {
    "upright": (0, 0, 0),
    "on its back": (90, 0, 0),
    "on its side": (0, 90, 0),
    "upside down": (180, 0, 0),
    "tilted 30° about x": (30, 0, 0),
    "tilted 30° about y": (0, 30, 0),
    "on a corner": (45, 30, 0),
}
WAYS = {
    "1/60 s": (60, 4, 1 / 120),
    "1/120 s": (120, 4, 1 / 120),
    "1/240 s": (240, 4, 1 / 120),
    "1/480 s": (480, 4, 1 / 120),
    "1/60 s, contacts 8x stiffer": (60, 32, 1 / 960),
}
"""Frame, substeps, time constant of contacts [s]."""
UNBROKEN = BreakageThresholds(engagement=1.0, lateness=0.0)
"""Nothing breaks: the whole slip is seen."""


def _lines(*lines: str) -> Structure:
    return parse_structure("\n".join(lines) + "\n", baseplate=None)


OTHERS = {
    "hammer": _lines(
        *(f"1x1 (5,5,{z})" for z in range(8)), *(f"4x4 (5,5,{z})" for z in range(8, 11))
    ),
    "bridge": _lines(*(f"2x2 ({x},0,{z})" for x in (0, 6) for z in range(3)), "8x2 (0,0,3)"),
    "chain": _lines("8x1 (0,0,0)", "8x1 (7,0,1)", "8x1 (14,0,2)", "2x2 (21,0,3)"),
    "demo_table": read_structure(DATA / "brickgpt" / "demo_table.txt", baseplate=None),
    "block": parse_structure(running_bond(2, 2, 12), baseplate=None),
}
OTHER_ORIENTATIONS = {
    "upright": (0, 0, 0),
    "flat": (90, 0, 0),
    "side": (0, 90, 0),
    "tilted": (20, 30, 0),
}


def first_impact(structure: Structure, euler, way, thresholds) -> tuple[list[int], float, float]:
    """Bricks in each piece, greatest slip [mm] and peak ground force [N] up to 0.25 s after a drop
    of 144 mm."""
    rate, substeps, constant = way
    config = SimulatorConfig(frame_rate=rate, substeps=substeps, breakage=thresholds)
    engine = MujocoEngine(
        config.timestep, config.gravity, config.ground, ContactParameters(time_constant=constant)
    )
    simulator = Simulator(engine, config)
    pose = standing(structure, rotation_from_degrees(*euler), 0.144)
    simulator.spawn(structure, pose, fixed=())
    criterion = simulator._watch.detector.criterion
    assert isinstance(criterion, SlipCriterion)
    slip, forces = 0.0, [0.0]

    def look_back() -> None:
        if (last := simulator._last) is not None:
            steps = steps_of([last])
            impulses = np.split(steps.contacts.normal_impulse, steps.first[1:-1])
            forces.extend(own.sum() / dt for own, dt in zip(impulses, steps.dt, strict=True))

    simulator.before_substep.append(look_back)
    for _ in range(round(0.25 * rate)):
        ids = list(simulator.graph.connections)
        simulator.step()
        slip = max([slip, *(criterion.slip(c) for c in ids)])
    peak = float(max(forces))
    pieces = [len(simulator.graph.component_parts(c)) for c in simulator.graph.component_ids]
    return sorted(pieces, reverse=True), 1e3 * slip, peak


def drops(out: Path, ways: dict[str, tuple[int, int, float]]) -> None:
    """Outcome of the guitar's drop by orientation, time step and contact stiffness."""
    guitar = read_structure(DATA / "brickgpt" / "texture_guitar.txt", baseplate=None)
    at_once = BreakageThresholds(engagement=0.0, impact_time=math.inf, lateness=0.0)
    print("\n| lands | " + " | ".join(ways) + " |\n|---|" + "---|" * len(ways))
    slips = {}
    for lands, euler in ORIENTATIONS.items():
        cells, slips[lands] = [], []
        for way in ways.values():
            _, slip, _ = first_impact(guitar, euler, way, UNBROKEN)
            pieces, _, _ = first_impact(guitar, euler, way, UNHURRIED.breakage)
            once, _, peak = first_impact(guitar, euler, way, at_once)
            slips[lands].append(slip)
            cells.append(f"{peak:.0f} N, {slip:.2f} mm: {len(pieces)} ({len(once)})")
        print(f"| {lands} | " + " | ".join(cells) + " |")
    figure, axes = plt.subplots(figsize=(8.0, 3.6), layout="constrained")
    least = 0.01
    for lands, values in slips.items():
        axes.plot(np.maximum(values, least), "o-", label=lands)
    axes.axhline(1.7, color="k", ls="--", lw=0.8)
    axes.text(0.02, 1.8, "engagement 1.7 mm", fontsize=8)
    axes.set_yscale("log")
    axes.set_xticks(range(len(ways)), list(ways), fontsize=7)
    axes.set_ylabel(f"greatest slip in the first impacts [mm]\n(less than {least:g} shown as that)")
    figure.legend(loc="outside right center", fontsize=8)
    figure.savefig(out / "sensitivity_impacts.png", dpi=110)
    plt.close(figure)


def other_drops(ways: dict[str, tuple[int, int, float]]) -> None:
    """Pieces and slips of other structures by orientation, time step and contact stiffness."""
    print("\n| structure | lands | " + " | ".join(ways) + " |\n|---|---|" + "---|" * len(ways))
    for name, structure in OTHERS.items():
        for lands, euler in OTHER_ORIENTATIONS.items():
            cells = []
            for way in ways.values():
                _, slip, _ = first_impact(structure, euler, way, UNBROKEN)
                pieces, _, _ = first_impact(structure, euler, way, UNHURRIED.breakage)
                cells.append(f"{' + '.join(map(str, pieces))}, {slip:.2f} mm")
            print(f"| {name} | {lands} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Prints the tables and writes the plots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--quick", action="store_true", help="few samples, few time steps")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    friction_window()
    map_of_constants(options.out)
    monte_carlo(options.out, 40 if options.quick else 400)
    ways = dict(list(WAYS.items())[:: 2 if options.quick else 1])
    drops(options.out, ways)
    other_drops(ways)


if __name__ == "__main__":
    main()
