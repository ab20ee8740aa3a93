"""The tables, as this version of the program reads and writes them.

Units are in the column names, instants are microseconds UTC, flags are 0 or 1, JSON is canonical text.
A measured value is never part of a key; a key never has a nullable column. A failed case is a status with
NULL times: zero, a negative number, infinity and NaN are refused by the checks. `migrations/` restates all
of this; a test compares the two.
"""

from enum import StrEnum

import sqlalchemy as sa

from perftrack.judge.life import Kind, State
from perftrack.model import Accuracy, Cause, Status, Verdict

REVISIONS = ("0001", "0002", "0003")
"""Every schema this program knows, oldest first; the last one is what it needs."""

VERSION_TABLE = "perftrack_alembic_version"
"""A name of our own, since other tools in one database each believe that `alembic_version` is theirs."""

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite's STRICT tables know only INTEGER, REAL, TEXT and BLOB; `Double` is 8 bytes on both engines.
DOUBLE = sa.Double().with_variant(sa.REAL(), "sqlite")
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
SMALL = sa.SmallInteger().with_variant(sa.Integer(), "sqlite")


def _table(name: str, *parts: sa.schema.SchemaItem, with_rowid: bool = True) -> sa.Table:
    return sa.Table(name, metadata, *parts, sqlite_strict=True, sqlite_with_rowid=with_rowid)


def _id() -> sa.Column[int]:
    return sa.Column("id", BIG, primary_key=True)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, BIG, nullable=False)


def _small(name: str, *, primary_key: bool = False) -> sa.Column[int]:
    return sa.Column(name, SMALL, nullable=False, primary_key=primary_key)


def _refers(name: str, table: str, *, nullable: bool = False, primary_key: bool = False) -> sa.Column[int]:
    key = sa.ForeignKey(f"{table}.id")
    return sa.Column(name, BIG, key, nullable=nullable, primary_key=primary_key, autoincrement=False)


def _number(name: str, *, nullable: bool = True) -> sa.Column[float]:
    return sa.Column(name, DOUBLE, nullable=nullable)


def _interval(name: str) -> list[sa.Column[float]]:
    """A ratio and its confidence bounds."""
    return [_number(name), _number(f"{name}_low"), _number(f"{name}_high")]


def _positive(*names: str) -> list[sa.CheckConstraint]:
    """Above zero and finite, or NULL. The upper bound is what refuses infinity, and NaN on PostgreSQL."""
    return [sa.CheckConstraint(f"{name} > 0 AND {name} < 1e300", name=name) for name in names]


def _non_negative(*names: str) -> list[sa.CheckConstraint]:
    return [sa.CheckConstraint(f"{name} >= 0 AND {name} < 1e300", name=name) for name in names]


def _flag(name: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(f"{name} IN (0, 1)", name=name)


def _one_of(name: str, words: type[StrEnum] | tuple[str, ...]) -> sa.CheckConstraint:
    values = words if isinstance(words, tuple) else tuple(word.value for word in words)
    return sa.CheckConstraint(f"{name} IN ({', '.join(repr(value) for value in values)})", name=name)


revision = _table(
    "revision",
    _id(),
    _text("repo"),
    _text("sha"),
    _text("tree"),
    _small("dirty"),
    sa.Column("parent_sha", sa.Text),
    sa.Column("position", sa.Integer),
    _count("committed_us"),
    _text("subject"),
    sa.UniqueConstraint("repo", "sha", "tree", "dirty"),
    sa.Index(None, "repo", "position"),
    _flag("dirty"),
)

device_class = _table("device_class", _id(), _text("name"), sa.UniqueConstraint("name"))

device = _table(
    "device",
    _id(),
    _text("digest"),
    _refers("device_class_id", "device_class"),
    _text("uuid"),
    _text("name"),
    _text("backend"),
    _text("node"),
    _count("memory_bytes"),
    _text("compute_capability"),
    _count("multiprocessors"),
    _count("l2_bytes"),
    _number("peak_bytes_per_s"),
    sa.UniqueConstraint("digest"),
    sa.Index(None, "uuid"),
    *_positive("peak_bytes_per_s"),
)

environment = _table("environment", _id(), _text("digest"), _text("entries"), sa.UniqueConstraint("digest"))

method = _table("method", _id(), _text("digest"), _text("name"), _text("document"), sa.UniqueConstraint("digest"))

suite = _table("suite", _id(), _text("name"), sa.UniqueConstraint("name"))

kernel_case = _table(
    "kernel_case",
    _id(),
    _refers("suite_id", "suite"),
    _text("key"),
    sa.UniqueConstraint("suite_id", "key"),
)
"""The identity of a case, for good. What a revision's tree says of it is a `declaration`."""

declaration = _table(
    "declaration",
    _id(),
    _text("digest"),
    _refers("case_id", "kernel_case"),
    _text("benchmark"),
    _text("backend"),
    _text("params"),
    _text("variants"),
    _text("baseline"),
    _text("traffic"),
    _number("min_effect", nullable=False),
    _text("doc"),
    sa.UniqueConstraint("digest"),
    *_non_negative("min_effect"),
)

resources = _table(
    "resources",
    _id(),
    _text("digest"),
    sa.Column("registers", BIG),
    sa.Column("local_bytes", BIG),
    sa.Column("shared_bytes", BIG),
    _number("occupancy"),
    sa.Column("launches", BIG),
    sa.Column("code_digest", sa.Text),
    sa.UniqueConstraint("digest"),
    *_non_negative("occupancy"),
)
"""Compiled code, stored once however often it was measured."""

series = _table(
    "series",
    _id(),
    _refers("device_class_id", "device_class"),
    _refers("case_id", "kernel_case"),
    _text("variant"),
    _text("baseline"),
    _refers("method_id", "method"),
    sa.UniqueConstraint("case_id", "device_class_id", "variant", "baseline", "method_id"),
)

run = _table(
    "run",
    _id(),
    _text("uid"),
    _refers("head_id", "revision"),
    _refers("base_id", "revision", nullable=True),
    sa.Column("head_branch", sa.Text),
    sa.Column("base_branch", sa.Text),
    _text("base_note"),
    _text("options"),
    _count("started_us"),
    sa.Column("finished_us", BIG),
    _text("state"),
    _text("problems"),
    _count("expected_jobs"),
    sa.UniqueConstraint("uid"),
    sa.Index(None, "head_id"),
    sa.Index(None, "started_us"),
    _one_of("state", ("running", "complete", "interrupted")),
)

job_attempt = _table(
    "job_attempt",
    _id(),
    _refers("run_id", "run"),
    _refers("case_id", "kernel_case"),
    _refers("device_class_id", "device_class"),
    _small("round"),
    _small("attempt"),
    _refers("declaration_id", "declaration"),
    _refers("device_id", "device"),
    _refers("environment_id", "environment", nullable=True),
    _refers("method_id", "method"),
    _text("payload_digest"),
    _text("status"),
    _text("message"),
    _text("device_uuid"),
    _count("seed"),
    sa.Column("canary_s", sa.LargeBinary, nullable=False),
    sa.Column("clock_mhz", sa.LargeBinary, nullable=False),
    _text("bad_blocks"),
    _text("throttle_reasons"),
    _number("ceiling_bytes_per_s"),
    _number("mix_ceiling_bytes_per_s"),
    _small("cached"),
    _count("sets"),
    _count("set_bytes"),
    _text("source_digest"),
    _number("timed_s", nullable=False),
    _number("wall_s", nullable=False),
    _count("started_us"),
    sa.UniqueConstraint("run_id", "case_id", "device_class_id", "round", "attempt"),
    sa.Index(None, "device_id"),
    _one_of("status", Status),
    _flag("cached"),
    *_positive("ceiling_bytes_per_s", "mix_ceiling_bytes_per_s"),
    *_non_negative("timed_s", "wall_s"),
)
"""Every attempt is a row; which one counts is decided when reading."""

measurement = _table(
    "measurement",
    _refers("job_attempt_id", "job_attempt", primary_key=True),
    sa.Column("side", sa.Text, primary_key=True),
    sa.Column("variant", sa.Text, primary_key=True),
    _small("ordinal"),
    _text("status"),
    _text("message"),
    _count("calls_per_sample"),
    _text("mode"),
    _number("error_l2"),
    _number("error_max"),
    _number("host_s"),
    _refers("resources_id", "resources"),
    _number("clock_mhz"),
    _number("build_s"),
    _one_of("side", ("head", "base")),
    _one_of("status", Status),
    *_positive("clock_mhz"),
    *_non_negative("error_l2", "error_max", "host_s", "build_s"),
    with_rowid=False,
)

sample = _table(
    "sample",
    sa.Column("job_attempt_id", BIG, primary_key=True, autoincrement=False),
    sa.Column("side", sa.Text, primary_key=True),
    sa.Column("variant", sa.Text, primary_key=True),
    _small("encoding"),
    sa.Column("samples_s", sa.LargeBinary, nullable=False),
    sa.Column("blocks", sa.LargeBinary, nullable=False),
    sa.ForeignKeyConstraint(
        ["job_attempt_id", "side", "variant"],
        ["measurement.job_attempt_id", "measurement.side", "measurement.variant"],
    ),
)
"""Raw samples; a table of their own, so that they may expire."""

result = _table(
    "result",
    _refers("series_id", "series", primary_key=True),
    _refers("revision_id", "revision", primary_key=True),
    _refers("run_id", "run", primary_key=True),
    sa.Column("side", sa.Text, primary_key=True),
    _refers("declaration_id", "declaration"),
    _refers("device_id", "device", nullable=True),
    _refers("environment_id", "environment", nullable=True),
    _refers("resources_id", "resources"),
    _text("status"),
    _text("message"),
    _number("time_s"),
    _number("q10_s"),
    _number("q90_s"),
    _number("baseline_s"),
    *_interval("speedup"),
    *_interval("fusion_gain"),
    _number("expected_gain"),
    _number("fusion_efficiency"),
    _number("bandwidth_bytes_per_s"),
    _number("utilization"),
    _number("peak_utilization"),
    _number("flops_per_s"),
    _count("samples"),
    _count("rounds"),
    _count("bad_blocks"),
    _number("error_l2"),
    _number("error_max"),
    _number("host_s"),
    _text("mode"),
    _small("cached"),
    _number("clock_mhz"),
    _number("build_first_s"),
    _number("build_s"),
    sa.Index(None, "revision_id"),
    _one_of("side", ("head", "base")),
    _one_of("status", Status),
    _flag("cached"),
    sa.CheckConstraint("(status = 'ok') = (time_s IS NOT NULL)", name="time_exactly_when_ok"),
    *_positive("time_s", "q10_s", "q90_s", "baseline_s", "speedup", "speedup_low", "speedup_high"),
    *_positive("fusion_gain", "fusion_gain_low", "fusion_gain_high", "expected_gain", "fusion_efficiency"),
    *_non_negative("bandwidth_bytes_per_s", "utilization", "peak_utilization", "flops_per_s"),
    *_positive("clock_mhz"),
    *_non_negative("error_l2", "error_max", "host_s", "build_first_s", "build_s"),
    with_rowid=False,
)
"""One wide row per series, revision and run. `side` is in the key for a commit compared with itself."""

finding = _table(
    "finding",
    _refers("run_id", "run", primary_key=True),
    _refers("case_id", "kernel_case", primary_key=True),
    _refers("device_class_id", "device_class", primary_key=True),
    sa.Column("variant", sa.Text, primary_key=True),
    _text("verdict"),
    _text("cause"),
    _text("message"),
    _number("head_s"),
    _number("base_s"),
    _number("baseline_head_s"),
    _number("baseline_base_s"),
    _number("speedup_head"),
    _number("speedup_base"),
    *_interval("change"),
    *_interval("baseline_change"),
    _number("min_effect", nullable=False),
    _number("detectable"),
    _count("rounds"),
    _text("ratios"),
    _small("confirmed"),
    _small("newly"),
    _text("why"),
    _number("error_head"),
    _number("error_base"),
    sa.Column("accuracy", sa.Text, nullable=False, server_default=""),
    _one_of("verdict", Verdict),
    _one_of("cause", Cause),
    _one_of("accuracy", Accuracy),
    _flag("confirmed"),
    _flag("newly"),
    *_positive("head_s", "base_s", "baseline_head_s", "baseline_base_s", "speedup_head", "speedup_base"),
    *_positive("change", "change_low", "change_high"),
    *_positive("baseline_change", "baseline_change_low", "baseline_change_high"),
    *_non_negative("min_effect", "detectable", "error_head", "error_base"),
    with_rowid=False,
)

regression = _table(
    "regression",
    _id(),
    _refers("found_id", "revision"),
    _refers("base_id", "revision", nullable=True),
    _refers("device_class_id", "device_class"),
    _text("kind"),
    _count("found_us"),
    sa.UniqueConstraint("found_id", "device_class_id", "kind"),
    _one_of("kind", Kind),
)
"""One problem: a commit, a device class and what is wrong. How it stands follows from its sightings and marks."""

sighting = _table(
    "sighting",
    _refers("run_id", "run", primary_key=True),
    _refers("regression_id", "regression", primary_key=True),
    _refers("case_id", "kernel_case", primary_key=True),
    sa.Column("variant", sa.Text, primary_key=True),
    _small("gone"),
    _number("level"),
    sa.Index(None, "regression_id"),
    _flag("gone"),
    *_positive("level"),
    with_rowid=False,
)
"""What a judged run says of one case of a regression: it is there, or gone. Drawn from the run, as its findings are."""

mark = _table(
    "mark",
    _refers("regression_id", "regression", primary_key=True),
    _refers("case_id", "kernel_case", primary_key=True),
    sa.Column("variant", sa.Text, primary_key=True),
    sa.Column("at_us", BIG, primary_key=True, autoincrement=False),
    _text("state"),
    _text("reason"),
    _text("author"),
    sa.Column("until_us", BIG),
    _number("level"),
    _one_of("state", (State.ACKNOWLEDGED.value, State.INVALID.value, State.INFRA.value)),
    *_positive("level"),
    with_rowid=False,
)
"""What a person said of one case of a regression. Never changed, never removed; the newest one counts."""
