"""The design of a robot: numbers of its description chosen so that an objective is least, by exact gradients.

The objective is a function of the robot and of states, written with array operations. It is traced once with the chosen numbers as
variables, differentiated and compiled; every evaluation of all states is one native call. Inertias move on the manifold of those that
bodies have: their pseudo-inertia is P = L Lᵀ with a positive diagonal of L, so every design is physically possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from ..arguments import a_function, a_function_of, a_robot, finite, floats, positive, sequence, some_names, takes, whole
from ..arrays import concat
from ..compiling import with_values
from ..errors import CoadjointError, ShapeError
from ..families import built
from ..kernel.passes.derive import jacobian
from ..robot.robot import Robot
from ..words import short
from .variables import Chart, Variables, variables

Objective = Callable[..., Any]
States = Mapping[str, Any] | Callable[[Robot], Mapping[str, Any]]


@dataclass(frozen=True)
class Design:
    """The outcome of a design."""

    robot: Robot
    """The robot with the chosen numbers."""
    parameters: dict[str, float]
    """The numbers by name, as "lengths:link2"."""
    start: dict[str, float]
    """The numbers at the start: the robot's own, or the nearest ones within bounds."""
    cost: float
    start_cost: float
    history: np.ndarray
    """The cost after every iteration."""
    converged: bool
    """True if the conditions of first order hold to the tolerance."""
    message: str
    gradient: dict[str, float] = field(repr=False)
    """The derivative of the cost by every number, at the outcome; not zero at a bound."""

    def __str__(self) -> str:
        width = max(map(len, self.parameters), default=0)
        lines = [f"cost {self.start_cost:.6g} -> {self.cost:.6g} in {len(self.history) - 1} iterations; {self.message}"]
        lines += [f"  {name:<{width}}  {self.start[name]:12.6g} -> {x:12.6g}" for name, x in self.parameters.items()]
        return "\n".join(lines)


@takes(
    robot=a_robot,
    objective=a_function,
    constraints=sequence,
    tolerance=positive,
    iterations=whole,
    report=a_function_of("part"),
)
def optimize(
    robot: Robot,
    parameters: str | Sequence[str],
    objective: Objective,
    *,
    states: States | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    constraints: Sequence[Objective] = (),
    choices: Mapping[str, Sequence[float]] | None = None,
    tolerance: float = 1e-8,
    iterations: int = 200,
    report: Callable[[float], object] | None = None,
) -> Design:
    """The robot whose numbers make the mean of an objective over states least.

    parameters: sets of the robot's numbers (`Robot.parameters`: "masses", "lengths", "inertial", "axes", …), those of one link, as
    "inertial:link2", or one number, as "lengths:link2.length". objective(robot, *arrays) -> (...), written with array operations; states:
    its arrays by name, with batch axes in front, or a function of the robot that gives them, as from inverse kinematics: the gradient then
    takes them as fixed, which is exact where the objective is stationary in them. bounds: {number or set: (lower, upper)}.
    constraints: functions constraint(robot, *arrays) whose mean must be zero or more. choices: numbers that can only take the values of a
    list, as the armature of a motor behind one of some gears: {number: values}; every combination is tried. Ctrl-C
    ends the search and keeps the best design so far.
    """
    sets = [parameters] if isinstance(parameters, str) else list(some_names(parameters, "parameters"))
    space = variables(robot, sets, {} if bounds is None else bounds)
    lists = _choices(robot, space, {} if choices is None else choices)
    problem = _Problem(robot, space, objective, constraints, states)
    searches: list[_Search] = []
    combinations = list(product(*lists.values()))
    for k, values in enumerate(combinations):
        part = (lambda x, k=k: report((k + x) / len(combinations))) if report else None
        searches.append(_solved(problem, dict(zip(lists, values, strict=True)), tolerance, iterations, part))
        if not searches[-1].finished:
            break
    return min(searches, key=lambda search: search.rank(search.values)).design(searches[-1].finished)


def _choices(robot: Robot, space: Variables, given: Mapping[str, Sequence[float]]) -> dict[int, list[float]]:
    """The values of every number that is chosen from a list, by its place."""
    if not isinstance(given, Mapping):
        raise CoadjointError(f"choices is {short(given)}; expected a mapping, as {{'armature:joint1.armature': [0.1, 0.4]}}.")
    found = {}
    for name, values in given.items():
        place = space.place(name)
        try:
            numbers = [float(x) for x in values]
        except (TypeError, ValueError, OverflowError):
            numbers = []
        if not numbers or not np.isfinite(numbers).all():
            raise CoadjointError(f"choices of {name!r} are {short(values)}; expected a list of one finite number or more.")
        for x in numbers:
            if not space.lower[place] <= x <= space.upper[place]:
                raise CoadjointError(
                    f"choices of {name!r} have {x:g}; expected numbers within {space.lower[place]:g} … {space.upper[place]:g}."
                )
        found[place] = numbers
    count = int(np.prod([len(x) for x in found.values()])) if found else 1
    if count > 1000:
        raise CoadjointError(f"choices have {count} combinations; every one is tried, so give at most 1000.")
    return found


class _Problem:
    """Cost, constraints and their gradients, natively, at values of the design's numbers."""

    def __init__(
        self, robot: Robot, space: Variables, objective: Objective, constraints: Sequence[Objective], states: States | None
    ) -> None:
        self.robot, self.space, self.states = robot, space, states
        arrays = self.arrays(robot)
        limits = [a_function(fn, f"constraints[{k}]") for k, fn in enumerate(constraints)]
        self.functions = [_Mean(robot, space, fn, arrays) for fn in (objective, *limits)]

    def arrays(self, robot: Robot) -> dict[str, np.ndarray]:
        own = a_function_of("robot")(self.states, "states") if callable(self.states) else None
        given = own(robot) if own is not None else {} if self.states is None else self.states
        if not isinstance(given, Mapping):
            raise CoadjointError(f"states is {short(given)}; expected a mapping of arrays by name, as {{'q': q, 'v': v}}.")
        arrays = {name: floats(x, f"states[{short(name)}]") for name, x in given.items()}
        for name, x in arrays.items():
            if not x.size:
                raise ShapeError(f"states[{name!r}] has shape {x.shape}: no state at all; expected one or more.")
            finite(x, f"states[{name!r}]")
        return arrays

    def evaluate(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The cost and the constraints (1 + m,), and their gradients (1 + m, n) by the numbers."""
        arrays = self.arrays(self.space.robot(self.robot, values)) if callable(self.states) else None
        found = [fn(values, arrays) for fn in self.functions]
        return np.array([x for x, _ in found]), np.array([g for _, g in found])

    def violated(self, values: np.ndarray) -> str:
        """The constraint with the largest violation, and this violation."""
        k = int(np.argmin(values))
        name = self.functions[1 + k].name if k + 1 < len(self.functions) else "that inertias are those of bodies"
        return (
            f"constraint {k + 1} ({name}) is violated: its mean is {values[k]:.3g} in the best design found, and must be 0 or more"
        )


class _Mean:
    """The mean of one function over the states, and its gradient."""

    def __init__(self, robot: Robot, space: Variables, fn: Objective, arrays: Mapping[str, np.ndarray]) -> None:
        from inspect import signature

        if not signature(fn).parameters:
            raise CoadjointError(f"{_name(fn)} takes no arguments; expected a function fn(robot, *arrays).")
        named = [x.name for x in list(signature(fn).parameters.values())[1:] if x.default is x.empty or x.name in arrays]
        missing = [x for x in named if x not in arrays]
        if missing:
            raise CoadjointError(
                f"{_name(fn)} takes {missing[0]!r}, which states does not give; expected states={{{missing[0]!r}: array}}."
            )
        self.name = getattr(fn, "__name__", "function").replace("<lambda>", "function")
        self.names, self.space, self.own = named, space, {x: arrays[x] for x in named}
        sizes = {"q": robot.nq} | dict.fromkeys(("v", "a", "tau", "dv"), robot.nv)
        for name in named:
            if name in sizes and arrays[name].shape[-1:] != (sizes[name],):
                raise ShapeError(f"states[{name!r}] has shape {arrays[name].shape}; expected (..., {sizes[name]}).")
        shapes = {x: arrays[x].shape[-1:] for x in named} | {x: (n,) for x, n in zip(space.sets, space.sizes, strict=True)}

        def with_slopes(*given: Any) -> tuple[Any, Any]:
            """The function at one state, and its derivatives by all numbers of the design."""
            numbers = given[len(named) :]
            changed = with_values(robot, dict(zip(space.sets, numbers, strict=True)))
            found = fn(changed, **dict(zip(named, given, strict=False)))
            if found is None or isinstance(found, str):
                raise CoadjointError(f"{_name(fn)} gave {short(found)} for one state; expected one number.")
            if np.ndim(found) != 0:
                raise ShapeError(f"{_name(fn)} gave an array of shape {np.shape(found)} for one state; expected one number.")
            return found, concat([jacobian(found, x) for x in numbers])

        self.run = built(robot, with_slopes, shapes, "design")

    def __call__(self, values: np.ndarray, arrays: Mapping[str, np.ndarray] | None) -> tuple[float, np.ndarray]:
        given = [(arrays or self.own)[x] for x in self.names]
        result, slopes = self.run(*given, *self.space.split(values))
        return float(np.mean(result)), np.asarray(slopes).reshape(-1, values.size).mean(0)


def _name(fn: Any) -> str:
    return getattr(fn, "__name__", "the objective").replace("<lambda>", "the objective")


class _Search:
    """The best design for one combination of the chosen values: z are the coordinates of a `Chart`."""

    def __init__(self, problem: _Problem, fixed: dict[int, float], tolerance: float) -> None:
        self.problem, self.tolerance = problem, tolerance
        self.chart: Chart = problem.space.chart(fixed)
        self._seen: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}
        self.best, self.finished = self.chart.start, True
        self.iterations = 0
        """The iterations that were made, if the limit ended the search."""
        self.values, slopes = self.at(self.best)
        self.first = float(self.values[0])
        steepest = float(np.abs(slopes[0]).max(initial=0.0))
        self.scale = abs(self.first) if abs(self.first) > 1e-12 * steepest else steepest or 1.0
        self.history = [self.first]

    def at(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cost, constraints and the chart's margins (k,), and their gradients (k, n)."""
        key = z.tobytes()
        if key not in self._seen:
            values, slopes = self.problem.evaluate(self.chart.values(z))
            margins, rates = self.chart.margins(z)
            self._seen = {key: (np.concatenate([values, margins]), np.concatenate([slopes @ self.chart.jacobian(z), rates]))}
        return self._seen[key]

    def keep(self, z: np.ndarray) -> None:
        """Note an iteration, and keep the design if it is the best."""
        values, _ = self.at(z)
        self.history.append(float(values[0]))
        if np.isfinite(values).all() and self.rank(values) <= self.rank(self.values):
            self.best, self.values = z.copy(), values

    def rank(self, values: np.ndarray) -> tuple[float, float]:
        """The rank of a design, least for the best: its violation of constraints, then its cost."""
        violation = float(np.max(-values[1:], initial=0.0))
        return (violation if violation > self.tolerance else 0.0), float(values[0])

    def run(self, iterations: int, report: Callable[[float], object] | None) -> None:
        """Search until the end or an interrupt."""
        from scipy.optimize import minimize

        def noted(z: np.ndarray) -> None:
            self.keep(z)
            if report:
                report(min(1.0, len(self.history) / iterations))

        rows = [
            {"type": "ineq", "fun": lambda z, k=k: self.at(z)[0][k], "jac": lambda z, k=k: self.at(z)[1][k]}
            for k in range(1, len(self.values))
        ]
        options: dict[str, Any] = {"maxiter": iterations}
        options |= {"ftol": 1e-15} if rows else {"ftol": 0.0, "gtol": self.tolerance, "maxls": 50, "maxcor": 50}
        try:
            done = minimize(
                lambda z: self.at(z)[0][0] / self.scale,
                self.chart.start,
                jac=lambda z: self.at(z)[1][0] / self.scale,
                bounds=list(zip(self.chart.lower, self.chart.upper, strict=True)),
                constraints=rows,
                method="SLSQP" if rows else "L-BFGS-B",
                callback=noted,
                options=options,
            )
        except KeyboardInterrupt:
            self.finished = False
        else:
            self.iterations = done.nit if done.nit >= iterations else 0
            self.keep(done.x)

    def design(self, finished: bool) -> Design:
        """The design that was found, with its first-order conditions."""
        space, robot = self.problem.space, self.problem.robot
        values, slopes = self.at(self.best)
        error = self.chart.stationarity(self.best, slopes[0] / self.scale, slopes[1:], values[1:])
        feasible = bool((values[1:] >= -10 * self.tolerance).all())
        converged = finished and feasible and error <= 100 * self.tolerance
        if not finished:
            message = "interrupted: the best so far"
        elif not feasible:
            message = self.problem.violated(values[1:])
        else:
            stopped = f"stopped after {self.iterations} iterations, " if self.iterations else ""
            message = f"{'' if converged else f'{stopped}not an optimum: '}the conditions of first order hold to {error:.1e}"
        numbers = self.chart.values(self.best)
        after, before, slope = (
            {name: float(x) for name, x in zip(space.names, row, strict=True) if name in space.free}
            for row in (numbers, self.chart.values(self.chart.start), self.problem.evaluate(numbers)[1][0])
        )
        history = np.array(self.history)
        return Design(space.robot(robot, numbers), after, before, float(values[0]), self.first, history, converged, message, slope)


def _solved(
    problem: _Problem, fixed: dict[int, float], tolerance: float, iterations: int, report: Callable[[float], object] | None
) -> _Search:
    search = _Search(problem, fixed, tolerance)
    if not all(np.isfinite(x).all() for x in search.at(search.best)):
        raise CoadjointError(
            f"the cost of the robot as it is, {search.first:g}, or its gradient is not finite; start from another robot."
        )
    if search.best.size:
        search.run(iterations, report)
    return search
