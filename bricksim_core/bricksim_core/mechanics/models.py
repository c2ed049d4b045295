# SPDX-License-Identifier: Apache-2.0
"""The snap-fit models by name."""

from __future__ import annotations

from collections.abc import Callable

from bricksim_core.errors import BrickSimError
from bricksim_core.mechanics.snapfit import SnapFitModel
from bricksim_core.mechanics.types import ConnectionModel


class UnknownModelError(BrickSimError):
    """No snap-fit model has this name."""


def _paper() -> ConnectionModel:
    # Its solver takes longer to load than most structures take to analyse.
    from bricksim_core.mechanics.paper import PaperModel

    return PaperModel()


_FACTORIES: dict[str, Callable[[], ConnectionModel]] = {
    "default": SnapFitModel,
    "paper": _paper,
}


def model_names() -> list[str]:
    """Names of all models, sorted."""
    return sorted(_FACTORIES)


def get_model(model: str | ConnectionModel) -> ConnectionModel:
    """A model with its default constants by name; a model itself is passed through.

    Raises:
        UnknownModelError: There is none of this name, or it is neither a name nor a model.
    """
    if isinstance(model, str):
        if model in _FACTORIES:
            return _FACTORIES[model]()
    elif hasattr(model, "system"):
        return model
    expected = " or ".join(repr(name) for name in model_names())
    raise UnknownModelError(f"model is {model!r}, expected {expected}")
