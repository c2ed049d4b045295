#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drops of the guitar in pictures, by three ways to decide what breaks (docs/drops.md).

    .venv/bin/python scripts/drop_study.py [--out docs/images] [--quick]

Prints the tables; takes some minutes on one core, most of it for the pictures.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from bricksim_core.engines.mujoco import MujocoEngine
from bricksim_core.engines.mujoco.contact import ContactParameters
from bricksim_core.experiments.film import film_strip
from bricksim_core.experiments.recording import Recorder, Recording
from bricksim_core.experiments.setup import UNHURRIED, rotation_from_degrees, run, standing
from bricksim_core.formats import read_structure
from bricksim_core.mechanics.detector import BreakageThresholds
from bricksim_core.simulator import Simulator, SimulatorConfig
from bricksim_core.topology import Structure

DATA = Path(__file__).parents[1] / "bricksim_core" / "test" / "data" / "brickgpt"
GUITAR = "texture_guitar"
OTHERS = ("demo_table", "demo_sofa", "demo_car", "mesh2brick_car")
HEIGHT = 0.144
"""From the ground to the lowest point [m]: 15 bricks."""
SECONDS = 1.0

ORIENTATIONS = {
    "upright": (0.0, 0.0, 0.0),
    "flat": (90.0, 0.0, 0.0),
    "side": (0.0, 90.0, 0.0),
    "tilted": (20.0, 50.0, 0.0),
}
"""Roll, pitch, yaw [degrees]."""


@dataclass(frozen=True)
class Way:
    """A way to decide what breaks.

    Attributes:
        label: What it is.
        config: Settings of the simulator.
        contact_time: Time constant of the engine's contacts [s].
    """

    label: str
    config: SimulatorConfig
    contact_time: float = ContactParameters().time_constant


AT_ONCE = BreakageThresholds(engagement=0.0, impact_time=math.inf, lateness=0.0)
WAYS = {
    "slip": Way("slip (default)", UNHURRIED),
    "mean": Way("at once, mean load of 1/60 s", SimulatorConfig(breakage=AT_ONCE)),
    "peak": Way(
        "at once, load of each 1/960 s, contacts of 5 ms",
        SimulatorConfig(frame_rate=960.0, substeps=1, breakage=AT_ONCE),
        0.005,
    ),
}
PAPER = Way("model paper, 1/60 s", replace(UNHURRIED, model="paper"))


def dropped(structure: Structure, euler: tuple[float, float, float], way: Way) -> Recording:
    """A drop from rest."""
    config = way.config
    contacts = ContactParameters(time_constant=way.contact_time)
    engine = MujocoEngine(config.timestep, config.gravity, config.ground, contacts)
    simulator = Simulator(engine, config)
    ids = simulator.spawn(
        structure, standing(structure, rotation_from_degrees(*euler), HEIGHT), fixed=()
    )
    recorder = Recorder(simulator, {new: old for old, new in ids.items()})
    run(simulator, recorder, SECONDS)
    return recorder.finish()


def outcome(recording: Recording) -> str:
    """Pieces, and when the first connection broke."""
    if not recording.broken:
        return "holds"
    pieces = " + ".join(str(len(piece)) for piece in recording.pieces)
    return f"{pieces} ({recording.broken[0].time:.2f} s)"


def labelled(strips: Iterable[tuple[str, np.ndarray]], width: int) -> Image.Image:
    """Strips below each other, a line of text above each."""
    rows = []
    for label, strip in strips:
        picture = Image.fromarray(strip)
        picture = picture.resize((width, round(picture.height * width / picture.width)))
        row = Image.new("RGB", (width, picture.height + 26), "white")
        ImageDraw.Draw(row).text((6, 3), label, "black", font=ImageFont.load_default(16))
        row.paste(picture, (0, 26))
        rows.append(row)
    sheet = Image.new("RGB", (width, sum(row.height for row in rows)), "white")
    top = 0
    for row in rows:
        sheet.paste(row, (0, top))
        top += row.height
    return sheet


def guitar_drops(out: Path, ways: dict[str, Way]) -> None:
    """The guitar's table and pictures."""
    guitar = read_structure(DATA / f"{GUITAR}.txt", baseplate=None)
    print("| lands | " + " | ".join([w.label for w in ways.values()] + [PAPER.label]) + " |")
    print("|---|" + "---|" * (len(ways) + 1))
    for name, euler in ORIENTATIONS.items():
        recordings = {key: dropped(guitar, euler, way) for key, way in ways.items()}
        cells = [outcome(r) for r in [*recordings.values(), dropped(guitar, euler, PAPER)]]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
        strips = [
            (f"{name}, {ways[key].label}: {outcome(recording)}", film_strip(recording))
            for key, recording in recordings.items()
        ]
        labelled(strips, 900).save(out / f"drop_guitar_{name}.jpg", quality=80, optimize=True)


def other_drops(out: Path) -> None:
    """Other structures, with the default."""
    print("\n| structure | bricks | " + " | ".join(ORIENTATIONS) + " |")
    print("|---|---|" + "---|" * len(ORIENTATIONS))
    strips = []
    for name in OTHERS:
        structure = read_structure(DATA / f"{name}.txt", baseplate=None)
        recordings = {
            lands: dropped(structure, euler, WAYS["slip"]) for lands, euler in ORIENTATIONS.items()
        }
        cells = [outcome(recording) for recording in recordings.values()]
        print(f"| {name} | {len(structure.graph)} | " + " | ".join(cells) + " |", flush=True)
        tilted = recordings["tilted"]
        strips.append((f"{name}, tilted: {outcome(tilted)}", film_strip(tilted)))
    labelled(strips, 900).save(out / "drop_others.jpg", quality=78, optimize=True)


def main() -> None:
    """The study."""
    parser = argparse.ArgumentParser(description="Drops of the guitar in pictures.")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--quick", action="store_true", help="without the way of 1/960 s steps")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    ways = {k: w for k, w in WAYS.items() if not (arguments.quick and k == "peak")}
    guitar_drops(arguments.out, ways)
    other_drops(arguments.out)


if __name__ == "__main__":
    main()
