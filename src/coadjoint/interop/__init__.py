"""Conversion of models from and to Pinocchio and MuJoCo, of states also from and to Drake and PyBullet (`convert_states`), and native
functions inside JAX, PyTorch and CasADi. These libraries are imported only when they are needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import casadi, jax, mujoco, pinocchio, torch
    from .states import convert_states

__all__ = ["casadi", "convert_states", "jax", "mujoco", "pinocchio", "torch"]


def __getattr__(name: str) -> Any:
    if name == "convert_states":
        return import_module(".states", __name__).convert_states
    if name in __all__:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
