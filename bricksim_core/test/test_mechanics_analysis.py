# SPDX-License-Identifier: Apache-2.0
"""Static analysis in model "paper" (exact solver) against statics."""

import pickle

import numpy as np
import pytest
from mechanics_cases import DATA, data_structure, internal_wrenches, text_structure

from bricksim_core.errors import StructureError, UnknownIdError
from bricksim_core.experiments.setup import standing
from bricksim_core.mechanics import qp
from bricksim_core.mechanics.analysis import LoadError, analyze
from bricksim_core.mechanics.models import UnknownModelError
from bricksim_core.mechanics.paper import PaperModel, PaperParameters
from bricksim_core.mechanics.qp import QpSettings
from bricksim_core.mechanics.snapfit import connection_limits
from bricksim_core.mechanics.types import SolveStatus
from bricksim_core.parts import BrickShape
from bricksim_core.simulator import Simulator
from bricksim_core.spatial import transform
from bricksim_core.topology.graph import BrickTopologyGraph
from bricksim_core.topology.structure import Structure

EXACT = PaperModel(PaperParameters(solver=QpSettings(method="interior"), margin=0.0))
CAPACITY = 12 * 0.7  # of a 2x2 brick [N]
WEIGHT = BrickShape(2, 2).mass * 9.81

STANDING = sorted(
    p.stem for p in (DATA / "brickgpt").glob("*.txt") if not p.stem.startswith("test_")
)


def on_plate(text="2x2 (4,4,0)"):
    return text_structure(text)


def pull(force):
    """A pull on part 1 that leaves ``force`` [N] for its joint."""
    return {1: [0, 0, force + WEIGHT, 0, 0, 0]}


@pytest.mark.parametrize("support", ["auto", "ground"])
@pytest.mark.parametrize("name", STANDING)
def test_the_sample_structures_stand(name, support):
    analysis = analyze(
        data_structure(f"brickgpt/{name}.txt"), model="paper", support=support, limit=False
    )
    assert analysis.stable and analysis.solved and not analysis.marginal
    assert analysis.reasons == () and 0.0 < analysis.max_utilization < 0.2


def test_a_floating_brick_does_not_stand():
    analysis = analyze(data_structure("brickgpt/test_floating.txt"), model=EXACT)
    assert not analysis.stable and not analysis.marginal
    floating = [c for c in analysis.components if not c.supported]
    assert len(floating) == 1 and floating[0].solution.imbalance == pytest.approx(1.0)
    (reason,) = analysis.reasons
    assert reason.startswith(f"part {floating[0].part_ids[0]}: not supported")
    assert analysis.safety_factor == 0.0


def test_a_pull_by_hand_gives_utilization_and_safety_factor():
    for force in (2.0, 7.0):
        analysis = analyze(on_plate(), loads=pull(force), model=EXACT)
        assert analysis.stable
        assert analysis.max_utilization == pytest.approx(force / CAPACITY, abs=1e-5)
        assert analysis.safety_factor == pytest.approx(CAPACITY / force, rel=1e-6)
        assert analysis.mechanism == (analysis.worst_connection,) == (0,)
        assert not analysis.marginal
        assert analysis.connection_wrenches[0] == pytest.approx([0, 0, force, 0, 0, 0], abs=1e-4)


@pytest.mark.parametrize(
    ("force", "stable", "marginal"),
    [
        (7.5, True, False),
        (7.6, True, True),
        (8.3, True, True),
        (8.5, False, True),
        (9.3, False, False),
    ],
)
def test_close_to_the_limit_it_is_marginal(force, stable, marginal):
    analysis = analyze(on_plate(), loads=pull(force), model=EXACT, limit=False)
    assert (analysis.stable, analysis.marginal) == (stable, marginal)
    assert np.isnan(analysis.safety_factor) and analysis.mechanism == ()
    if not stable:
        assert analysis.reasons[0].endswith("times its capacity")
        assert f"connection 0 – 1 carries {force / CAPACITY:.4g} times" in analysis.reasons[0]


def test_gravity_is_a_number_or_a_vector():
    structure = data_structure("stablelego/external_weight_good.json")
    options = {"model": EXACT, "limit": False}
    number = analyze(structure, gravity=9.8, **options).max_utilization
    vector = analyze(structure, gravity=[0, 0, -9.8], **options).max_utilization
    assert number == vector == pytest.approx(0.6863, abs=5e-4)
    assert analyze(structure, gravity=0.0, **options).max_utilization == pytest.approx(
        0.0, abs=1e-5
    )
    half = analyze(structure, gravity=4.9, **options).max_utilization
    assert half == pytest.approx(number / 2, rel=1e-3)


def test_the_pose_in_the_world_matters_only_through_gravity():
    """A structure on a plate screwed to a wall hangs sideways."""
    structure = on_plate("4x2 (4,4,0)\n4x2 (7,4,1)")
    (component,) = structure.graph.component_ids
    upright = analyze(structure, gravity=[9.81, 0, 0], model=EXACT, limit=False)
    structure.component_poses[component] = transform([1, 2, 3], [0, np.sqrt(0.5), 0, np.sqrt(0.5)])
    hanging = analyze(structure, gravity=9.81, model=EXACT, limit=False)  # its x axis points down
    assert hanging.max_utilization > 0.001
    assert hanging.utilization == pytest.approx(upright.utilization, abs=1e-9)


def test_connection_and_contact_forces_balance_every_part():
    structure = data_structure("brickgpt/demo_table.txt")
    analysis = analyze(structure, model=EXACT, support="ground", limit=False)
    (component,) = analysis.components
    layout = structure.graph.layout(component.component)
    total = internal_wrenches(layout, component.solution, component.contacts)
    weight = layout.masses * 9.81
    assert total[:, 2] == pytest.approx(weight, abs=1e-5)
    assert total[:, [0, 1, 3, 4, 5]] == pytest.approx(np.zeros((len(total), 5)), abs=1e-5)
    ground = component.contacts.part_a < 0
    assert component.solution.contact_force[ground].sum() == pytest.approx(weight.sum(), abs=1e-4)


def test_components_are_judged_one_by_one():
    graph = BrickTopologyGraph()
    for _ in range(2):
        lower, upper = graph.add_part(BrickShape(2, 2)), graph.add_part(BrickShape(2, 2))
        graph.connect(lower, upper, (0, 0), 0)
    lone = graph.add_part(BrickShape(4, 2))
    poses = {c: transform([0.1 * c, 0, 0]) for c in graph.component_ids}
    structure = Structure(graph, poses, fixed=frozenset({0, 2}))
    analysis = analyze(structure, loads={3: [0, 0, 10.0, 0, 0, 0]}, model=EXACT)
    first, second, third = analysis.components
    assert first.stable and not second.stable and third.stable
    assert third.part_ids.tolist() == [lone] and third.supported
    assert not analysis.stable and not analysis.marginal
    assert analysis.worst_connection == 1 and set(analysis.utilization) == {0, 1}
    assert second.limit is not None
    assert analysis.safety_factor == second.limit.factor < 1.0
    assert set(analysis.statuses.values()) == {SolveStatus.SOLVED}


def test_supports():
    structure = on_plate("4x2 (4,4,0)")
    loads = {1: [0, 0, 3.0, 0, 0, 0]}
    assert analyze(structure, loads=loads, model=EXACT, support="fixed").stable
    # Lying loose, plate and brick weigh less than 3 N: nothing holds them down.
    lifted = analyze(structure, loads=loads, model=EXACT, support="ground")
    assert not lifted.stable and "cannot be carried to the ground" in lifted.reasons[0]
    structure.fixed = frozenset()
    structure.ground = None
    assert analyze(structure, model=EXACT).stable
    assert not analyze(structure, model=EXACT, support="fixed").stable
    structure.ground = -1.0  # a metre below: it floats
    assert not analyze(structure, model=EXACT).stable


def test_a_tilted_loose_component_is_not_supported():
    structure = text_structure("4x2 (0,0,0)\n4x2 (0,0,1)", baseplate=None)
    (component,) = structure.graph.component_ids
    structure.ground = None
    assert analyze(structure, model=EXACT).stable
    structure.component_poses[component] = transform([0, 0, 0], [0.1, 0, 0, 1])
    analysis = analyze(structure, model=EXACT)
    assert not analysis.stable and "not supported" in analysis.reasons[0]
    assert analysis.safety_factor == 0.0 and analysis.mechanism == ()


@pytest.mark.parametrize("text", ["1x1 (0,0,0)\n2x1 (0,0,3)", "4x2 (0,0,0)\n8x2 (0,0,3)"])
def test_what_stands_in_a_simulator_is_supported_by_the_ground(text):
    """Its soft contacts sink deeper under the side that carries more, by ten micrometres."""
    lower, upper = text.split("\n")
    tower = "\n".join([lower, *(lower.replace(",0)", f",{z})") for z in (1, 2)), upper])
    structure = text_structure(tower, baseplate=None)
    simulator = Simulator()
    simulator.spawn(structure, standing(structure))
    for _ in range(60):
        result = simulator.step()
    assert np.abs(result.twist).max() == 0.0
    (pose,) = simulator.structure().component_poses.values()
    assert 2e-4 < np.hypot(*pose[:2, 2]) < 3e-3
    assert analyze(simulator.structure()).stable


@pytest.mark.parametrize(("lift", "stands"), [(0.9e-4, True), (1.1e-4, False)])
def test_what_lifts_the_edge_of_a_sole_decides_whether_it_stands(lift, stands):
    structure = text_structure("2x1 (0,0,0)\n8x8 (0,0,1)", baseplate=None)
    (component,) = structure.graph.component_ids
    structure.ground = None
    structure.component_poses[component] = transform([0, 0, 0], [0, 0.5 * lift / 0.016, 0, 1])
    assert analyze(structure, limit=False).components[0].supported == stands


def test_a_table_pushes_its_feet_apart_against_the_ground():
    """Two feet, two beams that meet halfway, a brick over both. By hand, half of it: without a
    thrust the brick is tipped off with 0.71 N mm less its weight, and so in a simulator, whose
    component is rigid; in static analysis the ground's friction holds the feet."""
    text = "2x2 (0,0,0)\n2x2 (0,10,0)\n2x6 (0,0,1)\n2x6 (0,6,1)\n2x2 (0,5,2)"
    structure = text_structure(text, baseplate=None)
    foot, beam = (shape.mass * 9.81 for shape in (BrickShape(2, 2), BrickShape(6, 2)))
    reaction = 1.5 * foot + beam
    tipping = (reaction - foot) * 0.036 - beam * 0.020 - 0.5 * foot * 0.004  # about its edge
    row = connection_limits(BrickShape(6, 2), BrickShape(2, 2), (5, 0))
    free = tipping / row.tilt_y

    simulator = Simulator()
    simulator.spawn(structure, standing(structure))
    for _ in range(60):
        result = simulator.step()
    assert result.utilization.max() == pytest.approx(free, abs=1e-3)
    analysis = analyze(structure, limit=False)
    (component,) = analysis.components
    assert analysis.max_utilization < 0.1 * free
    thrust = np.abs(component.solution.connection_wrench[:, 1])
    assert thrust == pytest.approx(np.full(4, 0.5 * reaction), rel=1e-3)  # all that friction gives


def test_a_leaning_stack_tips_over_its_edge():
    """The joint COM of a 4x2 and an 8x2 on it: beyond the lower brick's edge it tips."""
    small, large = BrickShape(4, 2).mass, BrickShape(8, 2).mass
    for x in range(8):
        middle = (small * 2 + large * x) / (small + large)  # [studs] from the lower's left edge
        structure = text_structure(f"4x2 (4,0,0)\n8x2 ({x},0,1)", baseplate=None)
        analysis = analyze(structure, model=EXACT, limit=False)
        balanced = analysis.components[0].solution.imbalance < 1e-4
        assert balanced == (0.0 <= middle <= 4.0)


def test_a_failed_solve_concludes_nothing(monkeypatch):
    monkeypatch.setattr(qp, "solve_interior", lambda P, q, *_: (np.zeros_like(q), "numerics"))
    analysis = analyze(on_plate(), model=EXACT)
    assert not analysis.solved and not analysis.stable and not analysis.marginal
    assert np.isnan(analysis.max_utilization) and analysis.worst_connection is None
    assert "no solver found the internal forces" in analysis.reasons[0]


def test_an_analysis_can_be_sent_to_another_process():
    analysis = analyze(on_plate(), loads=pull(2.0), model="paper")
    again = pickle.loads(pickle.dumps(analysis))
    assert again.utilization == analysis.utilization and again.stable


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e9])
def test_huge_and_tiny_loads_are_judged_alike(size):
    strength = 4 * (1 + np.sqrt(2)) * 0.7  # [N] of the 2 x 2: four studs at edges
    pulled, pressed = (
        analyze(on_plate(), gravity=0.0, loads={1: [0, 0, force, 0, 0, 0]})
        for force in (size, -size)
    )
    assert pulled.safety_factor == pytest.approx(strength / size, rel=1e-6)
    assert pulled.max_utilization == pytest.approx(size / strength, rel=1e-6)
    assert pressed.stable and pressed.max_utilization < 1e-6 and np.isinf(pressed.safety_factor)


def test_bad_input_is_refused():
    structure = on_plate()
    with pytest.raises(LoadError, match="gravity is 'down', expected"):
        analyze(structure, gravity="down", model=EXACT)
    for gravity in (np.nan, [0, 0], [0, 0, np.inf], 1e30):
        with pytest.raises(LoadError, match="gravity is"):
            analyze(structure, gravity=gravity, model=EXACT)
    # 1e308 N were carried (by no number), 1e20 N pressed a brick off its plate.
    for wrench in ([0, 0, 1], [0, 0, 1, 0, 0, np.nan], "up", pull(1e308)[1], pull(-1e20)[1]):
        with pytest.raises(LoadError, match="load on part 1 is"):
            analyze(structure, loads={1: wrench}, model=EXACT)
    for part_id in (1.5, "1"):
        with pytest.raises(LoadError, match=r"a load is on part .*1.*, expected a part id"):
            analyze(structure, loads={part_id: [0] * 6}, model=EXACT)  # pyright: ignore
    with pytest.raises(LoadError, match="support is 'floor', expected one of auto, fixed, ground"):
        analyze(structure, support="floor", model=EXACT)  # pyright: ignore
    with pytest.raises(UnknownIdError, match="7"):
        analyze(structure, loads={7: [0] * 6}, model=EXACT)
    with pytest.raises(UnknownModelError):
        analyze(structure, model="papre")
    with pytest.raises(StructureError, match="holds no part"):
        analyze(Structure(BrickTopologyGraph(), {}), model=EXACT)


def ends(structure, connection_ids):
    """Pairs of parts that connections join, sorted."""
    graph = structure.graph
    found = (graph.connection(connection) for connection in connection_ids)
    return sorted((c.stud_part, c.hole_part) for c in found)


def test_a_cantilever_comes_apart_at_its_root():
    """Statically determinate: the joint at the column carries the most moment, and cuts alone."""
    column = [f"2x2 (0,0,{k})" for k in (0, 1)]
    arm = [f"4x2 ({2 * k},0,{2 + k % 2})" for k in range(22)]
    structure = text_structure("\n".join(column + arm), (50, 32))
    analysis = analyze(structure)
    assert not analysis.stable
    (root,) = ends(structure, analysis.breaking)
    assert root == (2, 3) and analysis.breaking == (analysis.worst_connection,)
    assert analysis.bypassed == ()


@pytest.mark.parametrize("force", [14.0, 40.0])
def test_a_bridge_lifted_off_two_towers_comes_off_both(force):
    """Each 2x2 end bears four edge studs; they share what is more than the bridge's weight."""
    towers = "2x2 (0,0,0)\n2x2 (0,0,1)\n2x2 (6,0,0)\n2x2 (6,0,1)\n8x2 (0,0,2)"
    structure = text_structure(towers)
    analysis = analyze(structure, loads={5: [0, 0, force, 0, 0, 0]})
    carried = 2 * 4 * (1 + np.sqrt(2)) * 0.7
    lifted = force - BrickShape(8, 2).mass * 9.81
    assert analysis.safety_factor == pytest.approx(carried / lifted, rel=1e-6)
    assert analysis.max_utilization == pytest.approx(lifted / carried, rel=1e-6)
    assert ends(structure, analysis.breaking) == [(2, 5), (4, 5)]


def test_one_of_two_overloaded_towers_falls():
    """Pulled more than its joints bear at its top, the weaker tower loses that brick alone."""
    structure = text_structure("2x2 (0,0,0)\n2x2 (0,0,1)\n1x1 (6,0,0)\n1x1 (6,0,1)")
    analysis = analyze(structure, loads={2: [0, 0, 8.0, 0, 0, 0], 4: [0, 0, 6.0, 0, 0, 0]})
    assert ends(structure, analysis.breaking) == [(3, 4)]
    assert analysis.max_utilization == pytest.approx(
        (6.0 - BrickShape(1, 1).mass * 9.81) / 2.8, rel=1e-6
    )


def test_what_stands_breaks_nowhere():
    analysis = analyze(text_structure("2x2 (0,0,0)\n2x2 (0,0,1)"))
    assert analysis.breaking == () and analysis.bypassed == ()
