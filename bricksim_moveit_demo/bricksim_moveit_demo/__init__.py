# SPDX-License-Identifier: Apache-2.0
"""Franka arms that pick bricks and press them onto structures."""
