# SPDX-License-Identifier: Apache-2.0
"""Build file; what pip and colcon need beyond setup.cfg."""

from glob import glob

from setuptools import setup

NAME = "bricksim_core"

setup(
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/data", glob(f"{NAME}/data/*")),
    ],
)
