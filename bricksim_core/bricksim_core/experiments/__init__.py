# SPDX-License-Identifier: Apache-2.0
"""Standard experiments on structures: drop, press on, pull off. Pure functions that return data."""
