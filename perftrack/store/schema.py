"""The tables, as this version of the program reads and writes them.

Units are in the column names, instants are microseconds UTC, flags are 0 or 1, JSON is canonical text.
A measured value is never part of a key; a key never has a nullable column. A failed case is a status with
NULL times: zero, a negative number, infinity and NaN are refused by the checks. `migrations/` restates all
of this; a test compares the two.
"""

import sqlalchemy as sa

from perftrack.judge.life import Kind, State
from perftrack.model import Accuracy, Cause, Status, Verdict
from perftrack.store import columns, schema_results
from perftrack.store.columns import (
    BIG,
    count,
    flag,
    interval,
    non_negative,
    number,
    one_of,
    positive,
    refers,
    row_id,
    small,
    table,
    text,
)

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006")
"""Every schema this program knows, oldest first; the last one is what it needs."""

VERSION_TABLE = "perftrack_alembic_version"
"""A name of our own, since other tools in one database each believe that `alembic_version` is theirs."""

VIEWS = ("results", "findings")
"""For tools that read SQL. Only the migrations make them; the program does not read them."""

metadata = columns.metadata
"""All tables below, and those of results."""

run_side, setting, extent = schema_results.run_side, schema_results.setting, schema_results.extent
result, result_extra = schema_results.result, schema_results.result_extra

revision = table(
    "revision",
    row_id(),
    text("repo"),
    text("sha"),
    text("tree"),
    small("dirty"),
    sa.Column("parent_sha", sa.Text),
    sa.Column("position", sa.Integer),
    count("committed_us"),
    text("subject"),
    sa.UniqueConstraint("repo", "sha", "tree", "dirty"),
    sa.Index(None, "repo", "position"),
    flag("dirty"),
)

device_class = table("device_class", row_id(), text("name"), sa.UniqueConstraint("name"))

device = table(
    "device",
    row_id(),
    text("digest"),
    refers("device_class_id", "device_class"),
    text("uuid"),
    text("name"),
    text("backend"),
    text("node"),
    count("memory_bytes"),
    text("compute_capability"),
    count("multiprocessors"),
    count("l2_bytes"),
    number("peak_bytes_per_s"),
    sa.UniqueConstraint("digest"),
    sa.Index(None, "uuid"),
    *positive("peak_bytes_per_s"),
)

environment = table("environment", row_id(), text("digest"), text("entries"), sa.UniqueConstraint("digest"))

method = table("method", row_id(), text("digest"), text("name"), text("document"), sa.UniqueConstraint("digest"))

suite = table("suite", row_id(), text("name"), sa.UniqueConstraint("name"))

kernel_case = table(
    "kernel_case",
    row_id(),
    refers("suite_id", "suite"),
    text("key"),
    sa.UniqueConstraint("suite_id", "key"),
)
"""The identity of a case, for good. What a revision's tree says of it is a `declaration`."""

case_alias = table(
    "case_alias",
    refers("case_id", "kernel_case", primary_key=True),
    refers("current_id", "kernel_case"),
    sa.CheckConstraint("case_id <> current_id", name="another"),
    with_rowid=False,
)
"""A renamed case and the one under whose name its history is shown. Nobody's name leads to a further one."""

declaration = table(
    "declaration",
    row_id(),
    text("digest"),
    refers("case_id", "kernel_case"),
    text("benchmark"),
    text("backend"),
    text("params"),
    text("variants"),
    text("baseline"),
    text("traffic"),
    number("min_effect", nullable=False),
    text("doc"),
    sa.UniqueConstraint("digest"),
    *non_negative("min_effect"),
)

resources = table(
    "resources",
    row_id(),
    text("digest"),
    sa.Column("registers", BIG),
    sa.Column("local_bytes", BIG),
    sa.Column("shared_bytes", BIG),
    number("occupancy"),
    sa.Column("launches", BIG),
    sa.Column("code_digest", sa.Text),
    sa.UniqueConstraint("digest"),
    *non_negative("occupancy"),
)
"""Compiled code, stored once however often it was measured."""

series = table(
    "series",
    row_id(),
    refers("device_class_id", "device_class"),
    refers("case_id", "kernel_case"),
    text("variant"),
    text("baseline"),
    refers("method_id", "method"),
    sa.UniqueConstraint("case_id", "device_class_id", "variant", "baseline", "method_id"),
)

run = table(
    "run",
    row_id(),
    text("uid"),
    refers("head_id", "revision"),
    refers("base_id", "revision", nullable=True),
    sa.Column("head_branch", sa.Text),
    sa.Column("base_branch", sa.Text),
    text("base_note"),
    text("options"),
    count("started_us"),
    sa.Column("finished_us", BIG),
    text("state"),
    text("problems"),
    count("expected_jobs"),
    sa.UniqueConstraint("uid"),
    sa.Index(None, "head_id"),
    sa.Index(None, "started_us"),
    one_of("state", ("running", "complete", "interrupted")),
)

job_attempt = table(
    "job_attempt",
    row_id(),
    refers("run_id", "run"),
    refers("case_id", "kernel_case"),
    refers("device_class_id", "device_class"),
    small("round"),
    small("attempt"),
    refers("declaration_id", "declaration"),
    refers("device_id", "device"),
    refers("environment_id", "environment", nullable=True),
    refers("method_id", "method"),
    text("payload_digest"),
    text("status"),
    text("message"),
    text("device_uuid"),
    count("seed"),
    sa.Column("canary_s", sa.LargeBinary, nullable=False),
    sa.Column("clock_mhz", sa.LargeBinary, nullable=False),
    text("bad_blocks"),
    text("throttle_reasons"),
    number("ceiling_bytes_per_s"),
    number("mix_ceiling_bytes_per_s"),
    small("cached"),
    count("sets"),
    count("set_bytes"),
    text("source_digest"),
    number("timed_s", nullable=False),
    number("wall_s", nullable=False),
    count("started_us"),
    sa.UniqueConstraint("run_id", "case_id", "device_class_id", "round", "attempt"),
    sa.Index(None, "device_id"),
    one_of("status", Status),
    flag("cached"),
    *positive("ceiling_bytes_per_s", "mix_ceiling_bytes_per_s"),
    *non_negative("timed_s", "wall_s"),
)
"""Every attempt is a row; which one counts is decided when reading."""

measurement = table(
    "measurement",
    refers("job_attempt_id", "job_attempt", primary_key=True),
    sa.Column("side", sa.Text, primary_key=True),
    sa.Column("variant", sa.Text, primary_key=True),
    small("ordinal"),
    text("status"),
    text("message"),
    count("calls_per_sample"),
    text("mode"),
    number("error_l2"),
    number("error_max"),
    number("host_s"),
    refers("resources_id", "resources"),
    number("clock_mhz"),
    number("build_s"),
    number("time_s"),
    number("q10_s"),
    number("q90_s"),
    sa.Column("samples", BIG),
    one_of("side", ("head", "base")),
    one_of("status", Status),
    *positive("clock_mhz", "time_s", "q10_s", "q90_s"),
    *non_negative("error_l2", "error_max", "host_s", "build_s", "samples"),
    with_rowid=False,
)
"""The last four, of the good blocks as far as that could be judged, are NULL until the samples expire."""

sample = table(
    "sample",
    sa.Column("job_attempt_id", BIG, primary_key=True, autoincrement=False),
    sa.Column("side", sa.Text, primary_key=True),
    sa.Column("variant", sa.Text, primary_key=True),
    small("encoding"),
    sa.Column("samples_s", sa.LargeBinary, nullable=False),
    sa.Column("blocks", sa.LargeBinary, nullable=False),
    sa.ForeignKeyConstraint(
        ["job_attempt_id", "side", "variant"],
        ["measurement.job_attempt_id", "measurement.side", "measurement.variant"],
    ),
)
"""Raw samples; a table of their own, so that they may expire."""

finding = table(
    "finding",
    refers("run_id", "run", primary_key=True),
    refers("case_id", "kernel_case", primary_key=True),
    refers("device_class_id", "device_class", primary_key=True),
    sa.Column("variant", sa.Text, primary_key=True),
    text("verdict"),
    text("cause"),
    text("message"),
    number("head_s"),
    number("base_s"),
    number("baseline_head_s"),
    number("baseline_base_s"),
    number("speedup_head"),
    number("speedup_base"),
    *interval("change"),
    *interval("baseline_change"),
    number("min_effect", nullable=False),
    number("detectable"),
    count("rounds"),
    text("ratios"),
    small("confirmed"),
    small("newly"),
    text("why"),
    number("error_head"),
    number("error_base"),
    sa.Column("accuracy", sa.Text, nullable=False, server_default=""),
    one_of("verdict", Verdict),
    one_of("cause", Cause),
    one_of("accuracy", Accuracy),
    flag("confirmed"),
    flag("newly"),
    *positive("head_s", "base_s", "baseline_head_s", "baseline_base_s", "speedup_head", "speedup_base"),
    *positive("change", "change_low", "change_high"),
    *positive("baseline_change", "baseline_change_low", "baseline_change_high"),
    *non_negative("min_effect", "detectable", "error_head", "error_base"),
    with_rowid=False,
)

regression = table(
    "regression",
    row_id(),
    refers("found_id", "revision"),
    refers("base_id", "revision", nullable=True),
    refers("device_class_id", "device_class"),
    text("kind"),
    count("found_us"),
    sa.UniqueConstraint("found_id", "device_class_id", "kind"),
    one_of("kind", Kind),
)
"""One problem: a commit, a device class and what is wrong. How it stands follows from its sightings and marks."""

sighting = table(
    "sighting",
    refers("run_id", "run", primary_key=True),
    refers("regression_id", "regression", primary_key=True),
    refers("case_id", "kernel_case", primary_key=True),
    sa.Column("variant", sa.Text, primary_key=True),
    small("gone"),
    number("level"),
    sa.Index(None, "regression_id"),
    flag("gone"),
    *positive("level"),
    with_rowid=False,
)
"""What a judged run says of one case of a regression: it is there, or gone. Drawn from the run, as its findings are."""

mark = table(
    "mark",
    refers("regression_id", "regression", primary_key=True),
    refers("case_id", "kernel_case", primary_key=True),
    sa.Column("variant", sa.Text, primary_key=True),
    sa.Column("at_us", BIG, primary_key=True, autoincrement=False),
    text("state"),
    text("reason"),
    text("author"),
    sa.Column("until_us", BIG),
    number("level"),
    one_of("state", (State.ACKNOWLEDGED.value, State.INVALID.value, State.INFRA.value)),
    *positive("level"),
    with_rowid=False,
)
"""What a person said of one case of a regression. Never changed, never removed; the newest one counts."""
