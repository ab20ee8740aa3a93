"""Declaring benchmarks, and collecting the cases that a tree of files declares.

A suite is a module; `@benchmark` turns a function that makes inputs into a frozen `Benchmark`, a plain
module-level value. There is no registry: `collect_suite` reads the values of a module.
"""

import inspect
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple, get_args

from perftrack.errors import SuiteError
from perftrack.model import Backend, Case, Issue, Scalar, Traffic

BACKENDS: tuple[Backend, ...] = get_args(Backend)

Build = Callable[..., Any]
"""`build(*inputs, **params) -> (launch, outputs)`; see `benchmark`."""

DEFAULT_TOLERANCE: Mapping[str, float] = MappingProxyType(
    {"float64": 1e-13, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1.2e-2}
)
"""Relative L2 error allowed by dtype, a few units of round-off; integers must be equal."""

NEVER_GATED = ("steps",)
"""Variants that are yardsticks beside the baseline: reported, never red."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VALUE = re.compile(r"[A-Za-z0-9_.+\-/]+")


@dataclass(frozen=True, slots=True)
class Variant:
    """One implementation of a benchmark, per backend, with what it needs to run."""

    builds: Mapping[str, Build]
    requires: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    tolerance: float = 1.0


def variant(
    build: Build | None = None,
    *,
    cuda: Build | None = None,
    cpu: Build | None = None,
    requires: Sequence[str] | Mapping[str, Sequence[str]] = (),
    tolerance: float = 1.0,
) -> Variant:
    """Describe an implementation that a plain function cannot: other code per backend, or with needs.

    `build` serves both backends; `cuda` and `cpu` serve one each. `requires` lists packages that must be
    importable (`"numba"`) and compute capabilities (`"sm_90"`: at least 9.0), for both backends or per
    backend; where one is absent the variant is `skipped` with the reason. `tolerance` multiplies the
    benchmark's tolerance for this variant (an implementation that rounds after each step needs more).
    """
    builds = {"cuda": cuda or build, "cpu": cpu or build}
    present = {backend: function for backend, function in builds.items() if function is not None}
    if isinstance(requires, str):
        raise SuiteError(f"variant(requires={requires!r}) must be a list of names, for example [{requires!r}]")
    needs = requires if isinstance(requires, Mapping) else dict.fromkeys(BACKENDS, requires)
    return Variant(MappingProxyType(present), {backend: tuple(names) for backend, names in needs.items()}, tolerance)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A declared operation: calling it makes its inputs; `cases` expands its axes."""

    name: str
    doc: str
    inputs: Callable[..., Any]
    variants: Mapping[str, Variant]
    baseline: str
    reference: Callable[..., Any]
    axes: Mapping[str, tuple[Mapping[str, tuple[Scalar, ...]], ...]]
    """Per backend: axis name → values, of each product."""
    traffic: Callable[..., Mapping[str, Any]]
    tolerance: Mapping[str, float]
    min_effect: float
    issue: Issue
    where: str
    """`file:line` of the declaration, for messages."""

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Make the inputs: `(rng, **params) -> arrays`."""
        return self.inputs(*args, **params)

    def cases(self, suite: str, backend: Backend) -> list[Case]:
        """Every point of the axes on `backend`, in declaration order; empty if no baseline runs there."""
        if backend not in self.axes or backend not in self.variants[self.baseline].builds:
            return []
        names = (self.baseline, *(name for name in self.variants if name != self.baseline))
        present = tuple(name for name in names if backend in self.variants[name].builds)
        return [
            self._case(suite, backend, present, dict(zip(axes, values, strict=True)))
            for axes in self.axes[backend]
            for values in itertools.product(*axes.values())
        ]

    def _case(self, suite: str, backend: Backend, variants: tuple[str, ...], params: dict[str, Scalar]) -> Case:
        key = case_key(self.name, params)
        try:
            traffic = _traffic(self.traffic(**params))
        except SuiteError:
            raise
        except Exception as error:  # the suite's own code may raise anything
            raise SuiteError(f"{self.where}: traffic() of {key} raised {type(error).__name__}: {error}") from error
        return Case(
            suite=suite,
            benchmark=self.name,
            key=key,
            backend=backend,
            params=params,
            variants=variants,
            traffic=traffic,
            min_effect=self.min_effect,
            baseline=self.baseline,
            doc=self.doc,
            issue=self.issue,
        )


def case_key(benchmark_name: str, params: Mapping[str, Scalar]) -> str:
    """`benchmark[axis=value,…]` with sorted axes: the same in every process and on every machine."""
    inside = ",".join(f"{name}={_spell(params[name])}" for name in sorted(params))
    return f"{benchmark_name}[{inside}]" if inside else benchmark_name


def _spell(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _traffic(counts: Mapping[str, Any]) -> Traffic:
    moved = {name: int(count) for name, count in counts.get("moved", {}).items()}
    traffic = Traffic(
        read_bytes=int(counts["reads"]),
        write_bytes=int(counts["writes"]),
        moved_bytes=moved,
        flops=int(counts.get("flops", 0)),
    )
    if traffic.min_bytes <= 0 or min(traffic.read_bytes, traffic.write_bytes) < 0:
        raise ValueError(f"reads={traffic.read_bytes} and writes={traffic.write_bytes} must be bytes, at least one > 0")
    return traffic


def benchmark(
    *,
    variants: Mapping[str, Build | Variant],
    reference: Callable[..., Any],
    axes: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    traffic: Callable[..., Mapping[str, Any]],
    baseline: str = "unfused",
    tolerance: Mapping[str, float] = MappingProxyType({}),
    min_effect: float = 0.02,
    issue: Issue = "queued",
) -> Callable[[Callable[..., Any]], Benchmark]:
    """Declare a benchmark; the decorated function makes the inputs.

    The decorated function is called as `inputs(rng, **params)` and returns an array or a tuple of arrays of
    the backend in use. `rng` has `normal(shape, dtype)`, `uniform(shape, dtype)` and `integers(low, high,
    shape, dtype)`, seeded, on the device; its docstring's first line describes the benchmark.

    `variants`: name → `build` function, or `variant(...)`. `build(*inputs, **params)` prepares everything
    (kernels, temporaries, outputs) and returns `(launch, outputs)`: `launch()` computes the outputs in place,
    allocates nothing, and is what is timed; `outputs` is an array or a tuple of arrays. A `launch` may carry
    an attribute `kernels`, a sequence of `(kernel, grid, block, shared_bytes)` in launch order, so that
    registers, occupancy and identity of the compiled code can be recorded.

    `baseline`: the variant a user would write; `reference(*inputs, **params)`: the right answer from float64
    inputs (integers stay as they are), written with the array's own methods and the functions NumPy and CuPy
    share, so that it runs where the data is.

    `axes`: axis name → values (numbers, strings, booleans), or per backend `{"cuda": {...}, "cpu": {...}}`; a list of
    such mappings where one axis depends on another: every one of them is expanded.

    `traffic(**params)`: `{"reads": bytes, "writes": bytes, "moved": {variant: bytes}, "flops": n}` with
    `reads` each distinct input once, `writes` each output once, `moved` what a variant's kernels move.

    `tolerance`: dtype → relative L2 error (default a few units of round-off); the largest single error,
    relative to |reference| + rms, may be ten times that. `min_effect`: smallest relative change of a time that counts.

    `issue`: `queued` times a GPU's own work, the host ahead of it; `eager` times calls as a user's loop makes them,
    launching included, for benchmarks whose subject is that. All variants on both sides are issued alike.

    Raises SuiteError, naming file and benchmark, where any of it is not so.
    """
    return _Declaration(
        variants, reference, axes, traffic, baseline, {**DEFAULT_TOLERANCE, **tolerance}, min_effect, issue
    ).of


class _Declaration(NamedTuple):
    """What `benchmark` was given, for the function that makes the inputs."""

    variants: Mapping[str, Build | Variant]
    reference: Callable[..., Any]
    axes: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    traffic: Callable[..., Mapping[str, Any]]
    baseline: str
    tolerance: Mapping[str, float]
    min_effect: float
    issue: Issue

    def of(self, inputs: Callable[..., Any]) -> Benchmark:
        """The benchmark of these inputs; SuiteError as `benchmark` says."""
        where, name = _where(inputs), inputs.__name__
        made = Benchmark(
            name=name,
            doc=(inspect.getdoc(inputs) or "").partition("\n")[0],
            inputs=inputs,
            variants=MappingProxyType(_variants(where, name, self.variants)),
            baseline=self.baseline,
            reference=self.reference,
            axes=MappingProxyType(_axes(where, name, self.axes)),
            traffic=self.traffic,
            tolerance=MappingProxyType(self.tolerance),
            min_effect=self.min_effect,
            issue=self.issue,
            where=f"{where}: benchmark {name}",
        )
        _check(made)
        return made


def _where(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)


def _variants(where: str, name: str, declared: Mapping[str, Build | Variant]) -> dict[str, Variant]:
    made: dict[str, Variant] = {}
    for label, what in declared.items():
        if not _NAME.fullmatch(label):
            raise SuiteError(f"{where}: benchmark {name}: variant name {label!r} must be a plain identifier")
        if isinstance(what, Variant):
            made[label] = what
        elif callable(what):
            made[label] = variant(what)
        else:
            raise SuiteError(
                f"{where}: benchmark {name}: variant {label!r} is {what!r}, not a function or variant(...)"
            )
        if not made[label].builds:
            raise SuiteError(f"{where}: benchmark {name}: variant {label!r} has no function for any backend")
    return made


def _axes(where: str, name: str, axes: Any) -> dict[str, tuple[Mapping[str, tuple[Scalar, ...]], ...]]:
    if isinstance(axes, Mapping) and axes and set(axes) <= set(BACKENDS):
        return {backend: _products(where, name, products) for backend, products in axes.items()}
    return dict.fromkeys(BACKENDS, _products(where, name, axes))


def _products(where: str, name: str, axes: Any) -> tuple[Mapping[str, tuple[Scalar, ...]], ...]:
    return tuple(_one_axes(where, name, product) for product in ([axes] if isinstance(axes, Mapping) else axes))


def _one_axes(where: str, name: str, axes: Mapping[str, Any]) -> Mapping[str, tuple[Scalar, ...]]:
    made: dict[str, tuple[Scalar, ...]] = {}
    for axis, values in axes.items():
        if not _NAME.fullmatch(axis):
            raise SuiteError(f"{where}: benchmark {name}: axis name {axis!r} must be a plain identifier")
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise SuiteError(f"{where}: benchmark {name}: axis {axis!r} is {values!r}, not a list of values")
        made[axis] = tuple(_axis_value(where, name, axis, value) for value in values)
        if not made[axis]:
            raise SuiteError(f"{where}: benchmark {name}: axis {axis!r} has no values")
        spelled = [_spell(value) for value in made[axis]]
        if len(set(spelled)) != len(spelled):
            raise SuiteError(f"{where}: benchmark {name}: axis {axis!r} has the same value twice: {spelled}")
    return MappingProxyType(made)


def _axis_value(where: str, name: str, axis: str, value: object) -> Scalar:
    if isinstance(value, float) and not math.isfinite(value):
        raise SuiteError(f"{where}: benchmark {name}: axis {axis!r} has the value {value!r}; use a finite number")
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str) and _VALUE.fullmatch(value):
        return value
    raise SuiteError(
        f"{where}: benchmark {name}: axis {axis!r} has the value {value!r} ({type(value).__name__}); a case's key "
        "must be the same in every process: use numbers, booleans or strings of letters, digits and _ . + - /"
    )


def _check(made: Benchmark) -> None:
    if made.baseline not in made.variants:
        raise SuiteError(f"{made.where}: baseline {made.baseline!r} is not among the variants {list(made.variants)}")
    if not 0 < made.min_effect < 1:
        raise SuiteError(f"{made.where}: min_effect is {made.min_effect!r}; give a share between 0 and 1, e.g. 0.02")
    if made.issue not in get_args(Issue):
        raise SuiteError(f"{made.where}: issue is {made.issue!r}; give one of {', '.join(get_args(Issue))}")
    for what, function in (("reference", made.reference), ("traffic", made.traffic)):
        if not callable(function):
            raise SuiteError(f"{made.where}: {what} is {function!r}, not a function")
    for backend, axes in ((backend, axes) for backend, products in made.axes.items() for axes in products):
        try:
            inspect.signature(made.inputs).bind(None, **dict.fromkeys(axes))
        except TypeError as error:
            raise SuiteError(
                f"{made.where}: its function cannot take the {backend} axes {list(axes)}: {error}"
            ) from error


def collect_suite(module: ModuleType, suite: str) -> list[Benchmark]:
    """The benchmarks that are module-level values of `module`, in order of definition.

    Raises SuiteError where two cases have the same key, naming their benchmarks.
    """
    seen: dict[int, Benchmark] = {}
    for value in vars(module).values():
        if isinstance(value, Benchmark):
            seen.setdefault(id(value), value)
    benchmarks = list(seen.values())
    for backend in BACKENDS:
        owners: dict[str, Benchmark] = {}
        for made in benchmarks:
            for case in made.cases(suite, backend):
                if other := owners.get(case.key):
                    raise SuiteError(f"suite {suite}: {other.where} and {made.where} both declare the case {case.key}")
                owners[case.key] = made
    return benchmarks
