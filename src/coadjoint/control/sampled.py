"""Controllers with a state of their own: adaptive ones, and observers that stand beside a controller.

Such a controller runs at a fixed period, as on a real-time computer: a step takes a sample of the robot's state and the controller's
state, and gives the forces and the next state. The step is a pure function, compiled as one kernel. `simulate` and `rollout` take the
controller as it is and begin with its `initial` state; `start` gives an object that also remembers the states, for `simulate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..arguments import check_core, floats, positive, times
from ..arrays import Array, namespace
from ..errors import CoadjointError
from ..kernel.graph import Graph
from ..robot.robot import Robot
from ..words import short
from .controller import Controller
from .evaluation import compiled, desired_at, desired_during, graph_of, is_traced
from .force_references import MotionAndForce, as_force
from .references import check_limits
from .sampling import Sampling

Step = Callable[..., tuple[Array, Array]]
"""step(gains, period, robot, q, v, state, *desired): forces (..., nv) and the next state (..., k), written with array operations."""


class SampledController:
    """A control law with a state (k,), evaluated once every `period` seconds. It is immutable."""

    def __init__(
        self,
        robot: Robot,
        name: str,
        law: Step,
        reference: Callable[[Any], tuple[Array, ...]],
        gains: Mapping[str, Any],
        period: float,
        initial: np.ndarray,
    ) -> None:
        self.robot, self.name, self.reference, self.gains = robot, name, reference, dict(gains)
        self.period, self.initial = float(positive(period, "period")), np.asarray(initial, dtype=float)
        self._law = law
        self._native: Any = None

    def step(self, q: Array, v: Array, t: Any, state: Array) -> tuple[Array, Array]:
        """The forces τ (..., nv) for the sample q (..., nq), v (..., nv) at the time t, and the next state (..., k)."""
        if namespace(q, v, state) is not np or hasattr(t, "__coadjoint_symbol__"):
            return self._law(self.gains, self.period, self.robot, q, v, state, *desired_at(self.reference, t, q))
        if self._native is None:
            self._native = compiled(self.robot, self._of_state, self.reference, self._shapes, self.name)
        tau, following = self._native(q, v, times(t)[..., None], state)
        return tau, following

    def start(self, state: Any = None) -> Running:
        """This controller at work, from a state (k,), its `initial` one by default."""
        state = self.initial if state is None else floats(state, "state")
        check_core("state", state, self.initial.shape, f" for {self!r}")
        return Running(self, state)

    def check_reference(self, times: Any) -> None:
        """An error if the reference leaves the limits of the robot's joints at some of the times (N,)."""
        check_limits(self.reference, times)

    def outside(self) -> tuple[Callable[..., Any], Callable[[np.ndarray], list[np.ndarray]]] | None:
        """The law as a function of q, v, the state and what is desired, and the latter at times (N,), as `Controller.outside`."""
        if is_traced(self.reference):
            return None
        return self._of_state, lambda times: desired_during(self.reference, times)

    def graph(self) -> Graph:
        """The expression graph of step(q, v, t, state), t of shape (1,): for `coadjoint.export.c` and `coadjoint.export.js`.

        Where the reference cannot be traced, it is that of step(q, v, state, desired0, desired1, …).
        """
        return graph_of(self._of_state, self.reference, self._shapes, self.name)

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"q": (self.robot.nq,), "v": (self.robot.nv,), "t": (1,), "state": self.initial.shape}

    def _of_state(self, *arrays: Array) -> tuple[Array, Array]:
        return self._law(self.gains, self.period, self.robot, *arrays)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_native": None}

    def __repr__(self) -> str:
        return f"<{self.name} of {self.robot.name!r}, every {self.period:g} s>"


def asked(one: Controller | SampledController, q: Array, v: Array, state: Array, *desired: Array) -> tuple[Array, Array]:
    """The forces (..., nv) of a controller for what is desired, and its next state (..., k); without a state, the one that is given."""
    if isinstance(one, SampledController):
        return one._law(one.gains, one.period, one.robot, q, v, state, *desired)
    return one._law(one.gains, one.robot, q, v, *desired), state


def sampled(
    controller: Controller | SampledController,
    period: float | None = None,
    *,
    delay: int = 0,
    resolution: float = 0.0,
    noise: Any = None,
) -> SampledController:
    """A controller as a real-time computer runs it: sampled every `period` seconds, its forces held between, from measured states.

    period: that of a `SampledController`, else 1 ms. delay: 0, or 1 for forces that act one sample late; none act before. resolution: the
    step of encoders [rad or m]; velocities are then differences of their readings. noise: (nv,) that is added to the measured velocities, a
    function of time under the rules of references. It runs in `simulate`, `rollout` and `closed_loop` and can be exported.
    """
    if not isinstance(controller, Controller | SampledController):
        raise CoadjointError(f"controller is {short(controller)}; expected one of `coadjoint.control`, as computed_torque(…).")
    robot, own = controller.robot, getattr(controller, "period", None)
    h = positive(period, "period") if period is not None else own or 1e-3
    if own not in (None, h):
        raise CoadjointError(f"period is {h:g}; the controller was made for {own:g} s. Leave period out.")
    sampling = Sampling.of(robot, float(h), delay, resolution)
    reference = controller.reference
    if noise is not None:
        reference = MotionAndForce(reference, as_force(noise, "noise", robot.nv, "velocities"))
    gains = {"of": controller, "sampling": sampling, "noisy": noise is not None}
    initial = sampling.initial(getattr(controller, "initial", np.zeros(0)))
    return SampledController(robot, f"sampled_{controller.name}", _sampled, reference, gains, h, initial)


def _sampled(
    gains: Mapping[str, Any], period: float, robot: Robot, q: Array, v: Array, state: Array, *desired: Array
) -> tuple[Array, Array]:
    noise, known = (desired[-1], desired[:-1]) if gains["noisy"] else (None, desired)
    ask = lambda q, v, own: asked(gains["of"], q, v, own, *known)
    tau, following = gains["sampling"].sample(ask, q, v, state, noise)
    return tau, following


class Running:
    """A sampled controller at work: `force` takes one sample after the other and keeps what happened."""

    def __init__(self, controller: SampledController, state: np.ndarray) -> None:
        self.controller, self.state = controller, state
        self.period = controller.period
        self.times: list[float] = []
        self.states: list[np.ndarray] = []
        """The state before each sample."""

    def check_reference(self, times: Any) -> None:
        """See `SampledController.check_reference`."""
        self.controller.check_reference(times)

    def force(self, q: Array, v: Array, t: float) -> Array:
        """The forces τ (nv,) for the sample at time t; the state moves on by one period, so that every sample is taken once."""
        if self.times and not t > self.times[-1]:
            raise CoadjointError(
                f"the sample at t = {t:g} s comes after that at {self.times[-1]:g} s: a running controller is for one motion, sampled with "
                f"period={self.controller.period:g}. Call start() anew for another motion; for a batch, use `closed_loop`."
            )
        self.times.append(float(t))
        self.states.append(self.state)
        tau, self.state = self.controller.step(q, v, t, self.state)
        return tau
