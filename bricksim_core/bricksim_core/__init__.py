# SPDX-License-Identifier: Apache-2.0
"""BrickSim: bricks that click together when pressed, carry load and break where overloaded."""
