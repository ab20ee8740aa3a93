"""From the readings of one case to what the store keeps of a job: a time of each variant, and never a speedup.

A case of another tool has no baseline variant: `baseline` is empty, so that nothing is divided by anything.
"""

from collections.abc import Sequence
from typing import NamedTuple

from perftrack import stats
from perftrack.interop.value import Notes, Reading, Role, Session
from perftrack.judge.value import Summary
from perftrack.model import Case, Device, Environment, JobResult, Measurement, Method, Status, Traffic

MIN_EFFECT = 0.02
_QUANTILES_FROM = 3
"""Raw times below which quantiles would only repeat them."""
_MAX_MESSAGE = 2000


class Assembled(NamedTuple):
    """One case on one device class in one session."""

    case: Case
    attempts: tuple[tuple[JobResult, Device], ...]
    """One for each device of the class: its rounds."""
    answers: tuple[tuple[Summary, Method], ...]
    """One for each variant, over all devices of the class."""


def assemble(found: Sequence[Reading], session: Session, started_us: int, notes: Notes) -> Assembled | None:
    """None where the readings are statistics only, and none of them is a time: that is noted."""
    by_variant: dict[str, list[Reading]] = {}
    for one in found:
        by_variant.setdefault(one.variant, []).append(one)
    chosen = {variant: some for variant, all_ in by_variant.items() if (some := _chosen(all_))}
    first = found[0]
    if not chosen:
        notes.leave_out(first.record, f"{first.case!r} has statistics only, and neither mean nor median")
        return None
    device = session.devices[first.device]
    environment = session.origin.environment
    case = Case(
        suite=first.suite,
        benchmark=first.case.partition("[")[0] or first.case,
        key=first.case,
        backend=device.backend,
        params=first.params,
        variants=tuple(chosen),
        traffic=Traffic(read_bytes=0, write_bytes=0),
        min_effect=MIN_EFFECT,
        baseline="",
    )
    attempts: list[tuple[JobResult, Device]] = []
    for number, key in enumerate(dict.fromkeys(one.device for one in found), 1):
        card = session.devices[key]
        mine = {variant: [one for one in some if one.device == key] for variant, some in chosen.items()}
        result = JobResult(
            suite=case.suite,
            case_key=case.key,
            device_class=card.device_class,
            round=number,
            attempt=1,
            status=Status.OK,
            device_uuid=card.uuid,
            environment=environment,
            measurements=tuple(_measurement(variant, some) for variant, some in mine.items() if some),
            started_us=started_us,
        )
        attempts.append((result, card))
    answers = tuple(
        (_summary(case, device, environment, variant, some), session.methods[some[0].method])
        for variant, some in chosen.items()
    )
    return Assembled(case, tuple(attempts), answers)


def _chosen(found: Sequence[Reading]) -> list[Reading]:
    """The tool's own times where there are any, else its median, else its mean."""
    roles: tuple[Role, ...] = ("sample", "median", "mean")
    return next((some for role in roles if (some := [one for one in found if one.role == role])), [])


def _status(found: Sequence[Reading]) -> tuple[Status, str]:
    """Failed where one of the repetitions failed; else ok where one has a time."""
    statuses = [one.status for one in found]
    status = next((one for one in (Status.FAILED, Status.OK) if one in statuses), statuses[0])
    message = next((one.message for one in found if one.status is status), "")
    return status, message[:_MAX_MESSAGE]


def _raw(found: Sequence[Reading]) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Raw times, and of each the repetition that it belongs to; a single reported median is no raw time."""
    if not any(one.samples_s for one in found) and len(found) < 2:
        return (), ()
    raw = [(time_s, at) for at, one in enumerate(found) for time_s in one.samples_s or (one.time_s or 0.0,)]
    return tuple(time_s for time_s, _ in raw), tuple(at for _, at in raw)


def _measurement(variant: str, found: Sequence[Reading]) -> Measurement:
    status, message = _status(found)
    samples_s, blocks = _raw(found) if status is Status.OK else ((), ())
    return Measurement(
        side="head",
        variant=variant,
        status=status,
        message=message,
        samples_s=samples_s,
        blocks=blocks,
        calls_per_sample=found[0].calls_per_sample,
    )


def _summary(case: Case, device: Device, environment: Environment, variant: str, found: Sequence[Reading]) -> Summary:
    status, message = _status(found)
    timed = [one for one in found if one.time_s is not None] if status is Status.OK else []
    raw, _ = _raw(timed) if timed else ((), ())
    spread = len(raw) >= _QUANTILES_FROM
    return Summary(
        suite=case.suite,
        case_key=case.key,
        device_class=device.device_class,
        device_uuid=device.uuid,
        environment_digest=environment.digest,
        variant=variant,
        side="head",
        status=status,
        message=message,
        time_s=stats.median([one.time_s or 0.0 for one in timed]) if timed else None,
        q10_s=stats.quantile(raw, 0.1) if spread else None,
        q90_s=stats.quantile(raw, 0.9) if spread else None,
        samples=sum(one.count for one in timed),
        rounds=len({one.device for one in timed}),
    )
