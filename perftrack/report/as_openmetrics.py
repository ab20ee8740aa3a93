"""The report as OpenMetrics text: for a Prometheus text file, and for GitLab's metrics report in a merge request."""

from collections.abc import Iterable, Iterator

from perftrack import openmetrics
from perftrack.foreign import spelled
from perftrack.openmetrics import Family, Sample
from perftrack.report.value import Report, Row


def render(report: Report) -> str:
    """Every row's times, speedups, change and detectable change, coverage by device class, counts by verdict."""
    return openmetrics.render(_families(report))


def _families(report: Report) -> Iterator[Family]:
    about = {
        "verdict": report.verdict,
        "run": report.run,
        "repo": report.repo,
        "head": report.head_sha,
        "base": report.base_sha or "",
    }
    yield Family("perftrack_report", "The answer of one run.", (_sample(about, 1),), kind="info")
    exit_code = (Sample({}, report.exit_code),)
    yield Family("perftrack_exit_code", "0 no confirmed slowdown, 1 red, 4 incomplete.", exit_code)
    counts = tuple(_sample({"verdict": verdict}, count) for verdict, count in report.counts.items())
    yield Family("perftrack_rows", "Candidate variants by verdict.", counts)
    accuracy = (("less", report.less_accurate), ("more", report.more_accurate))
    changed = tuple(_sample({"accuracy": word}, count) for word, count in accuracy)
    yield Family("perftrack_accuracy_changes", "Variants whose error clearly changed, within the tolerance.", changed)
    coverage = tuple(_sample({"device_class": one.device_class}, one.coverage) for one in report.devices)
    yield Family("perftrack_coverage_ratio", "Share of the variants that have an answer.", coverage, unit="ratio")
    yield from _of_rows(report.rows)


def _of_rows(rows: Iterable[Row]) -> Iterator[Family]:
    numbers = [(_labels(row), row) for row in rows]
    sides = [(dict(of, side=side), row, side == "head") for of, row in numbers for side in ("base", "head")]
    times = [(of, row.head_s if head else row.base_s) for of, row, head in sides]
    yield _family("perftrack_time_seconds", "Median time of a call.", times, unit="seconds")
    baselines = [(of, row.baseline_head_s if head else row.baseline_base_s) for of, row, head in sides]
    yield _family("perftrack_baseline_time_seconds", "Median time of the baseline.", baselines, unit="seconds")
    speedups = [(of, row.speedup_head if head else row.speedup_base) for of, row, head in sides]
    yield _family("perftrack_speedup_ratio", "Baseline time / time, above 1 it wins.", speedups, unit="ratio")
    changes = [(of, row.change.point if row.change else None) for of, row in numbers]
    yield _family("perftrack_time_change_ratio", "Head time / base time, above 1 is slower.", changes, unit="ratio")
    detectable = [(of, row.detectable) for of, row in numbers]
    said = "Smallest relative change that could have been seen."
    yield _family("perftrack_detectable_change_ratio", said, detectable, unit="ratio")
    bandwidths = [(of, row.bandwidth_bytes_per_s) for of, row in numbers]
    said = "Distinct bytes / time, of the head."
    yield _family("perftrack_bandwidth_bytes_per_second", said, bandwidths, unit="bytes_per_second")
    reds = [(of, float(row.red)) for of, row in numbers]
    yield _family("perftrack_red", "1 for a confirmed slowdown and for what newly fails or is wrong.", reds)


def _family(name: str, said: str, samples: Iterable[tuple[dict[str, str], float | None]], *, unit: str = "") -> Family:
    known = tuple(_sample(labels, value) for labels, value in samples if value is not None)
    return Family(name, said, known, unit=unit)


def _labels(row: Row) -> dict[str, str]:
    return {
        "suite": row.suite,
        "case": row.case,
        "device_class": row.device_class,
        "variant": row.variant,
    }


def _sample(labels: dict[str, str], value: float) -> Sample:
    return Sample({name: spelled(str(text)) for name, text in labels.items()}, value)
