"""Literal rounds for the tests of the judge."""

from perftrack.model import Case, Device, Environment, JobResult, Measurement, Resources, Status, Traffic

CLASS = "NVIDIA-H200-141G"


def case(*variants: str, min_effect: float = 0.02, backend: str = "cuda", flops: int = 0) -> Case:
    return Case(
        suite="elementwise",
        benchmark="add_mul_relu",
        key="add_mul_relu[dtype=float32,n=1024]",
        backend=backend,
        params={"dtype": "float32", "n": 1024},
        variants=variants or ("unfused", "steps", "fused"),
        traffic=Traffic(
            read_bytes=3000, write_bytes=1000, moved_bytes={"unfused": 8000, "steps": 8000, "fused": 4000}, flops=flops
        ),
        min_effect=min_effect,
    )


def device(peak: float | None = None) -> Device:
    return Device(
        uuid="GPU-1",
        name="NVIDIA H200",
        backend="cuda",
        device_class=CLASS,
        node="n1",
        memory_bytes=1,
        peak_bytes_per_s=peak,
    )


def measured(side, variant, *block_times, status=Status.OK, message="", resources=None, **more) -> Measurement:
    """Two samples a block, 1 % around the given time."""
    return Measurement(
        side=side,
        variant=variant,
        status=status,
        message=message,
        samples_s=tuple(t * f for t in block_times for f in (0.99, 1.01)),
        blocks=tuple(b for b in range(len(block_times)) for _ in (0, 1)),
        resources=resources or Resources(),
        **more,
    )


def result(number, *measurements, status=Status.OK, attempt=1, **more) -> JobResult:
    of = case()
    return JobResult(
        suite=of.suite,
        case_key=of.key,
        device_class=CLASS,
        round=number,
        attempt=attempt,
        status=status,
        device_uuid=more.pop("device_uuid", "GPU-1"),
        environment=Environment(entries={"driver": "580.65"}),
        measurements=tuple(measurements),
        canary_s=more.pop("canary_s", (1e-4, 1e-4, 1e-4)),
        **more,
    )


def rounds(head_fused, base_fused=None, head_unfused=None, base_unfused=None, **more):
    """One round for each time in `head_fused` (microseconds), three blocks with a common drift of 10 %."""
    count = len(head_fused)
    base_fused = base_fused or (10.0,) * count
    head_unfused = head_unfused or (20.0,) * count
    base_unfused = base_unfused or (20.0,) * count
    fused, unfused = more.pop("head_resources", None), more.pop("base_resources", None)
    made = []
    for number in range(count):
        drift = [1e-6 * f for f in (1.0, 1.05, 1.1)]
        made.append(
            result(
                number + 1,
                measured("head", "unfused", *(head_unfused[number] * d for d in drift)),
                measured("head", "fused", *(head_fused[number] * d for d in drift), resources=fused),
                measured("base", "unfused", *(base_unfused[number] * d for d in drift)),
                measured("base", "fused", *(base_fused[number] * d for d in drift), resources=unfused),
                **more,
            )
        )
    return made
