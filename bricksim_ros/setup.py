# SPDX-License-Identifier: Apache-2.0
"""Package of the ROS 2 nodes. Launch files, robots and configuration are shared at the root."""

from glob import glob

from setuptools import find_packages, setup

PACKAGE = "bricksim_ros"

setup(
    name=PACKAGE,
    version="0.1.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
        (f"share/{PACKAGE}/launch", glob("../launch/*.launch.py")),
        (f"share/{PACKAGE}/config", glob("../config/*.*")),
        (f"share/{PACKAGE}/config/scenes", glob("../config/scenes/*")),
        (f"share/{PACKAGE}/urdf", glob("../urdf/*.*")),
    ],
    install_requires=["setuptools"],
    zip_safe=True,
    maintainer="BrickSim-ROS maintainers",
    maintainer_email="maintainers@example.org",
    description="ROS 2 nodes of BrickSim: the simulator, RViz markers and the episode recorder.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "simulator = bricksim_ros.programs:simulator",
            "markers = bricksim_ros.programs:markers",
            "recorder = bricksim_ros.programs:recorder",
            "press_demo = bricksim_ros.programs:press_demo",
        ],
    },
)
