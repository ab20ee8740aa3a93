"""The tables of results: one narrow row per series and side of a run, and the small tables that it names.

There are millions of results, so a row has only what differs from one to the next. What follows from it is worked out
on reading (`wide` in SQL, `frames_table` in NumPy); what does not follow as usual is a row of `result_extra`.
"""

import sqlalchemy as sa

from perftrack.model import Status
from perftrack.store.columns import (
    BIG,
    count,
    flag,
    interval,
    natural,
    non_negative,
    number,
    one_of,
    positive,
    refers,
    row_id,
    small,
    table,
    text,
    whole,
)

run_side = table(
    "run_side",
    row_id(),
    refers("run_id", "run"),
    refers("revision_id", "revision"),
    text("side"),
    sa.UniqueConstraint("run_id", "side"),
    sa.Index(None, "revision_id"),
    one_of("side", ("head", "base")),
)
"""What a run measured of one revision. There are two of a commit compared with itself."""

setting = table(
    "setting",
    row_id(),
    text("digest"),
    refers("declaration_id", "declaration"),
    refers("device_id", "device", nullable=True),
    refers("environment_id", "environment", nullable=True),
    refers("resources_id", "resources"),
    text("mode"),
    small("cached"),
    number("expected_gain"),
    sa.Column("bytes_min", BIG),
    sa.Column("flops", BIG),
    number("peak_bytes_per_s"),
    sa.UniqueConstraint("digest"),
    flag("cached"),
    *positive("expected_gain", "peak_bytes_per_s"),
    *natural("bytes_min", "flops"),
)
"""What was measured, and on what: the same from commit to commit as long as neither code nor machine changes.

The last three are what bandwidth, FLOP/s and utilization of the datasheet are worked out from; NULL where a result
has none.
"""

extent = table(
    "extent",
    row_id(),
    count("samples"),
    count("rounds"),
    count("bad_blocks"),
    sa.UniqueConstraint("samples", "rounds", "bad_blocks"),
    *natural("samples", "rounds", "bad_blocks"),
)
"""How much a result rests on; a few hundred rows serve millions of results."""

result = table(
    "result",
    refers("series_id", "series", primary_key=True, kind=sa.Integer),
    refers("run_side_id", "run_side", primary_key=True, kind=sa.Integer),
    refers("setting_id", "setting", kind=sa.Integer),
    refers("extent_id", "extent", kind=sa.Integer),
    number("time_s"),
    number("q10_s"),
    number("q90_s"),
    *interval("speedup"),
    *interval("fusion_gain"),
    number("utilization"),
    whole("host_ns"),
    whole("build_first_us"),
    whole("build_us"),
    small("clock_mhz", nullable=True),
    small("error_l2_digits", nullable=True),
    small("error_max_digits", nullable=True),
    sa.Column("fault", sa.Text),
    sa.Index(None, "run_side_id"),
    one_of("fault", tuple(word.value for word in Status if word is not Status.OK)),
    sa.CheckConstraint("(fault IS NULL) = (time_s IS NOT NULL)", name="time_exactly_when_ok"),
    *positive("time_s", "q10_s", "q90_s", "speedup", "speedup_low", "speedup_high"),
    *positive("fusion_gain", "fusion_gain_low", "fusion_gain_high"),
    *non_negative("utilization"),
    *natural("host_ns", "build_first_us", "build_us", "clock_mhz", "error_l2_digits", "error_max_digits"),
    with_rowid=False,
)
"""One row per series and side of a run, the widest numbers first: PostgreSQL pads none of them.

`fault` is the status, NULL for ok. Diagnostics are whole numbers, which take one to four bytes; an error of 4.37e-7 is
the digits 9437: 437 ÷ 10⁹ (`narrow`).
"""

result_extra = table(
    "result_extra",
    sa.Column("series_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("run_side_id", sa.Integer, primary_key=True, autoincrement=False),
    text("message"),
    number("baseline_s"),
    number("fusion_efficiency"),
    number("bandwidth_bytes_per_s"),
    number("peak_utilization"),
    number("flops_per_s"),
    number("error_l2"),
    number("error_max"),
    number("host_s"),
    number("clock_mhz"),
    number("build_first_s"),
    number("build_s"),
    sa.ForeignKeyConstraint(["series_id", "run_side_id"], ["result.series_id", "result.run_side_id"]),
    *positive("baseline_s", "fusion_efficiency", "clock_mhz"),
    *non_negative("bandwidth_bytes_per_s", "peak_utilization", "flops_per_s", "error_l2", "error_max"),
    *non_negative("host_s", "build_first_s", "build_s"),
    with_rowid=False,
)
"""Of the few results that have a message, or a value that does not follow as usual: all these values as they are."""
