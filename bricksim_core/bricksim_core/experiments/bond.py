# SPDX-License-Identifier: Apache-2.0
"""Blocks of any size, for trials."""


def running_bond(columns: int, rows: int, layers: int) -> str:
    """The text of a solid block of 4x2 bricks, each laid over the joints of those below: one
    component with many loops.

    Args:
        columns: Bricks along x.
        rows: Bricks along y.
        layers: Bricks along z.
    """
    return "".join(
        f"4x2 ({4 * i + 2 * (z % 2)},{2 * j + (z // 2) % 2},{z})\n"
        for z in range(layers)
        for i in range(columns)
        for j in range(rows)
    )
