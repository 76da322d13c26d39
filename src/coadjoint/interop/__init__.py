"""Models that are open in other libraries: from and to Pinocchio's `Model` and MuJoCo's `MjModel`, and their states.

Nothing of either library is imported before a function here needs it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import mujoco, pinocchio

__all__ = ["mujoco", "pinocchio"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
