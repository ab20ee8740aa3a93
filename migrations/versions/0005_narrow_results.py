"""A narrow table of results: what is the same from commit to commit is in tables of its own, what follows is left out.

Down it is worked out again. A value that does not follow bit for bit, or is no whole number of nanoseconds,
microseconds or MHz, goes to `result_extra` as it is, so that nothing is lost either way. Views that read the table are
dropped before, and made again after.

Revision ID: 0005
"""

import hashlib
from typing import Any

import msgspec
import sqlalchemy as sa
from alembic import context, op

revision = "0005"
down_revision = "0004"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
SMALL = sa.SmallInteger().with_variant(sa.Integer(), "sqlite")
DOUBLE = sa.Double().with_variant(sa.REAL(), "sqlite")

POSITIVE = "{0} > 0 AND {0} < 1e300"
NON_NEGATIVE = "{0} >= 0 AND {0} < 1e300"
NATURAL = "{0} >= 0"

FAULTS = ("skipped", "wrong", "failed", "invalid", "unstable", "infra")
STATUSES = ("ok", *FAULTS)
MEASURED = (
    *("time_s", "q10_s", "q90_s", "speedup", "speedup_low", "speedup_high"),
    *("fusion_gain", "fusion_gain_low", "fusion_gain_high", "utilization"),
)
WHOLE = {
    "host_s": ("host_ns", 1_000_000_000, 2**31 - 1),
    "build_first_s": ("build_first_us", 1_000_000, 2**31 - 1),
    "build_s": ("build_us", 1_000_000, 2**31 - 1),
    "clock_mhz": ("clock_mhz", 1, 2**15 - 1),
}
"""Value -> its column, how many of the column's units one of the value's is, and the most that the column holds."""
DIGITS = {"error_l2": "error_l2_digits", "error_max": "error_max_digits"}
EXTRA = {
    "baseline_s": POSITIVE,
    "fusion_efficiency": POSITIVE,
    "bandwidth_bytes_per_s": NON_NEGATIVE,
    "peak_utilization": NON_NEGATIVE,
    "flops_per_s": NON_NEGATIVE,
    "error_l2": NON_NEGATIVE,
    "error_max": NON_NEGATIVE,
    "host_s": NON_NEGATIVE,
    "clock_mhz": POSITIVE,
    "build_first_s": NON_NEGATIVE,
    "build_s": NON_NEGATIVE,
}
REFERENCES = ("declaration_id", "device_id", "environment_id", "resources_id")
SAME = (*REFERENCES, "mode", "cached", "expected_gain")
EXTENT = ("samples", "rounds", "bad_blocks")
ASKED = {"bytes_min": "bandwidth_bytes_per_s", "flops": "flops_per_s", "peak_bytes_per_s": "peak_utilization"}
"""What a setting has only where its results have what is worked out from it."""

# what a value is made of; `r` is the row of `result`, `b` that of the baseline, `s` the setting
BANDWIDTH = "s.bytes_min / r.time_s"
WORKED_OUT = {
    "baseline_s": "CASE WHEN r.fault IS NULL THEN b.time_s END",
    "fusion_efficiency": "coalesce(r.fusion_gain, r.speedup) / s.expected_gain",
    "bandwidth_bytes_per_s": BANDWIDTH,
    "peak_utilization": f"{BANDWIDTH} / s.peak_bytes_per_s",
    "flops_per_s": "s.flops / r.time_s",
    **{name: f"r.{column} / CAST({factor} AS DOUBLE PRECISION)" for name, (column, factor, _) in WHOLE.items()},
    **{
        name: f"(r.{column} - r.{column} / 1000 * 1000)"
        f" / CAST('1e' || CAST(r.{column} / 1000 AS TEXT) AS DOUBLE PRECISION)"
        for name, column in DIGITS.items()
    },
}
VALUE = {name: f"CASE WHEN x.series_id IS NULL THEN {text} ELSE x.{name} END" for name, text in WORKED_OUT.items()}
TABLES = """
FROM result AS r
JOIN run_side ON run_side.id = r.run_side_id
JOIN setting AS s ON s.id = r.setting_id
JOIN extent ON extent.id = r.extent_id
JOIN series ON series.id = r.series_id
LEFT JOIN series AS bs ON bs.case_id = series.case_id AND bs.device_class_id = series.device_class_id
  AND bs.method_id = series.method_id AND bs.variant = series.baseline AND bs.baseline = series.baseline
LEFT JOIN result AS b ON b.series_id = bs.id AND b.run_side_id = r.run_side_id
LEFT JOIN result_extra AS x ON x.series_id = r.series_id AND x.run_side_id = r.run_side_id
"""

RESULTS = f"""
CREATE VIEW results AS
SELECT revision.repo, revision.sha, revision.dirty, revision.position AS commit_seq,
  {{committed}} AS committed_at, {{measured}} AS measured_at, run.uid AS run_uid, run_side.side,
  CASE run_side.side WHEN 'head' THEN run.head_branch ELSE run.base_branch END AS branch,
  suite.name AS suite, coalesce(shown.key, kernel_case.key) AS case_key, device_class.name AS device_class,
  device.uuid AS device_uuid, series.variant, series.baseline, coalesce(r.fault, 'ok') AS status,
  finding.verdict, finding.cause, r.time_s, r.q10_s, r.q90_s, {VALUE["baseline_s"]} AS baseline_s,
  r.speedup, r.speedup_low, r.speedup_high, r.fusion_gain, {VALUE["fusion_efficiency"]} AS fusion_efficiency,
  {VALUE["bandwidth_bytes_per_s"]} AS bandwidth_bytes_per_s, r.utilization, {VALUE["flops_per_s"]} AS flops_per_s,
  {VALUE["host_s"]} AS host_s, {VALUE["error_l2"]} AS error_l2, {VALUE["clock_mhz"]} AS clock_mhz,
  {VALUE["build_s"]} AS build_s, extent.samples, extent.rounds
{TABLES}
JOIN kernel_case ON kernel_case.id = series.case_id
JOIN suite ON suite.id = kernel_case.suite_id
JOIN device_class ON device_class.id = series.device_class_id
JOIN revision ON revision.id = run_side.revision_id
JOIN run ON run.id = run_side.run_id
LEFT JOIN device ON device.id = s.device_id
LEFT JOIN case_alias ON case_alias.case_id = kernel_case.id
LEFT JOIN kernel_case AS shown ON shown.id = case_alias.current_id
LEFT JOIN finding ON finding.run_id = run.id AND finding.case_id = series.case_id
  AND finding.device_class_id = series.device_class_id AND finding.variant = series.variant AND run_side.side = 'head'
"""

OLD_RESULTS = """
CREATE VIEW results AS
SELECT revision.repo, revision.sha, revision.dirty, revision.position AS commit_seq,
  {committed} AS committed_at, {measured} AS measured_at, run.uid AS run_uid, result.side,
  CASE result.side WHEN 'head' THEN run.head_branch ELSE run.base_branch END AS branch,
  suite.name AS suite, coalesce(shown.key, kernel_case.key) AS case_key, device_class.name AS device_class,
  device.uuid AS device_uuid, series.variant, series.baseline, result.status, finding.verdict, finding.cause,
  result.time_s, result.q10_s, result.q90_s, result.baseline_s,
  result.speedup, result.speedup_low, result.speedup_high, result.fusion_gain, result.fusion_efficiency,
  result.bandwidth_bytes_per_s, result.utilization, result.flops_per_s, result.host_s, result.error_l2,
  result.clock_mhz, result.build_s, result.samples, result.rounds
FROM result
JOIN series ON series.id = result.series_id
JOIN kernel_case ON kernel_case.id = series.case_id
JOIN suite ON suite.id = kernel_case.suite_id
JOIN device_class ON device_class.id = series.device_class_id
JOIN revision ON revision.id = result.revision_id
JOIN run ON run.id = result.run_id
LEFT JOIN device ON device.id = result.device_id
LEFT JOIN case_alias ON case_alias.case_id = kernel_case.id
LEFT JOIN kernel_case AS shown ON shown.id = case_alias.current_id
LEFT JOIN finding ON finding.run_id = result.run_id AND finding.case_id = series.case_id
  AND finding.device_class_id = series.device_class_id AND finding.variant = series.variant AND result.side = 'head'
"""

INSTANT = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%SZ', {} / 1000000, 'unixepoch')",
    "postgresql": "to_timestamp({} / 1e6)",
}


def upgrade() -> None:
    op.execute("DROP VIEW results")
    op.execute("ALTER TABLE result RENAME TO wide_result")
    op.drop_index("ix_result_revision_id")
    if _on_postgresql():
        op.execute("ALTER INDEX pk_result RENAME TO pk_wide_result")
    _create_small_tables()
    _create_result()
    _create_result_extra()
    op.execute(
        "INSERT INTO run_side (run_id, revision_id, side)"
        " SELECT DISTINCT run_id, revision_id, side FROM wide_result ORDER BY run_id, side DESC"
    )
    names = ", ".join(EXTENT)
    op.execute(f"INSERT INTO extent ({names}) SELECT DISTINCT {names} FROM wide_result ORDER BY {names}")  # noqa: S608
    _fill_setting()
    op.execute(_text(_narrowed()))
    op.execute(_text(_not_following()))
    op.drop_table("setting_of")
    op.drop_table("wide_result")
    _create_view(RESULTS)


def downgrade() -> None:
    op.execute("DROP VIEW results")
    _create_wide_result()
    values = {
        **{name: f"r.{name}" for name in ("series_id", *MEASURED)},
        **{name: f"run_side.{name}" for name in ("revision_id", "run_id", "side")},
        **{name: f"s.{name}" for name in SAME},
        **{name: f"extent.{name}" for name in EXTENT},
        **VALUE,
        "status": "coalesce(r.fault, 'ok')",
        "message": "coalesce(x.message, '')",
    }
    op.execute(_text(f"INSERT INTO wide_result ({', '.join(values)}) SELECT {', '.join(values.values())} {TABLES}"))
    for table in ("result_extra", "result", "setting", "extent", "run_side"):
        op.drop_table(table)
    op.execute("ALTER TABLE wide_result RENAME TO result")
    if _on_postgresql():
        op.execute("ALTER INDEX pk_wide_result RENAME TO pk_result")
    op.create_index("ix_result_revision_id", "result", ["revision_id"])
    _create_view(OLD_RESULTS)


def _on_postgresql() -> bool:
    return context.get_context().dialect.name == "postgresql"


def _text(statement: str) -> sa.TextClause:
    return sa.text(statement.replace(":", "\\:"))


def _create_view(view: str) -> None:
    instant = INSTANT[context.get_context().dialect.name]
    committed, measured = instant.format("revision.committed_us"), instant.format("run.started_us")
    op.execute(_text(view.format(committed=committed, measured=measured)))


def _fill_setting() -> None:
    """Their digests are those of the program. `setting_of` says for which results each stands."""
    flags = {name: f"CASE WHEN {of} IS NULL THEN 0 ELSE 1 END" for name, of in ASKED.items()}
    bind = op.get_bind()
    asked = [*SAME, *flags.values()]
    places = ", ".join(str(at + 1) for at in range(len(asked)))
    question = f"SELECT DISTINCT {', '.join(asked)} FROM wide_result ORDER BY {places}"  # noqa: S608 (our own names)
    found = bind.exec_driver_sql(question).fetchall()
    declared = {
        row[0]: msgspec.json.decode(row[1]) for row in bind.exec_driver_sql("SELECT id, traffic FROM declaration")
    }
    peaks = {row[0]: row[1] for row in bind.exec_driver_sql("SELECT id, peak_bytes_per_s FROM device")}
    rows: dict[str, dict[str, Any]] = {}
    of: list[dict[str, Any]] = []
    for row in found:
        same, (has_bandwidth, has_flops, has_peak) = dict(zip(SAME, row[:-3], strict=True)), row[-3:]
        traffic = declared[same["declaration_id"]]
        bytes_min, flops = traffic["read_bytes"] + traffic["write_bytes"], traffic.get("flops")
        made = same | {
            "bytes_min": bytes_min if has_bandwidth else None,
            "flops": flops if has_flops and flops else None,
            "peak_bytes_per_s": peaks.get(same["device_id"]) if has_peak else None,
        }
        digest = hashlib.sha256(msgspec.json.encode(made, order="sorted")).hexdigest()
        rows[digest] = made | {"digest": digest}
        of.append(same | dict(zip(ASKED, row[-3:], strict=True)) | {"digest": digest})
    setting = sa.table("setting", *map(sa.column, ("id", "digest", *SAME, "bytes_min", "flops", "peak_bytes_per_s")))
    kinds = {"mode": sa.Text, "cached": SMALL, "expected_gain": DOUBLE}
    setting_of = op.create_table(
        "setting_of",
        *(sa.Column(name, kinds.get(name, BIG)) for name in SAME),
        *(sa.Column(name, BIG) for name in (*ASKED, "setting_id")),
    )
    if not rows:
        return
    bind.execute(sa.insert(setting), list(rows.values()))
    numbers = {row.digest: row.id for row in bind.execute(sa.select(setting.c.id, setting.c.digest))}
    bind.execute(sa.insert(setting_of), [one | {"setting_id": numbers[one.pop("digest")]} for one in of])
    op.create_index("ix_setting_of", "setting_of", ["resources_id", "declaration_id"])
    op.execute("ANALYZE setting_of")


def _narrowed() -> str:
    """Every wide row as a narrow one."""
    is_ = "IS NOT DISTINCT FROM" if _on_postgresql() else "IS"
    values = {
        "series_id": "w.series_id",
        "run_side_id": "run_side.id",
        "setting_id": "o.setting_id",
        "extent_id": "extent.id",
        **{name: f"w.{name}" for name in MEASURED},
        **{
            column: f"CASE WHEN w.{name} <= {most / factor!r} THEN CAST(round(w.{name} * {factor}) AS INTEGER) END"
            for name, (column, factor, most) in WHOLE.items()
        },
        **{column: _digits(f"w.{name}") for name, column in DIGITS.items()},
        "fault": "nullif(w.status, 'ok')",
    }
    same = [f"o.{name} {is_} w.{name}" for name in SAME]
    asked = [f"o.{name} = CASE WHEN w.{of} IS NULL THEN 0 ELSE 1 END" for name, of in ASKED.items()]
    measured = " AND ".join(f"extent.{name} = w.{name}" for name in EXTENT)
    return f"""
INSERT INTO result ({", ".join(values)})
SELECT {", ".join(values.values())}
FROM wide_result AS w
JOIN run_side ON run_side.run_id = w.run_id AND run_side.side = w.side
JOIN extent ON {measured}
JOIN setting_of AS o ON o.declaration_id = w.declaration_id AND o.resources_id = w.resources_id
  AND {" AND ".join([*same, *asked])}
ORDER BY w.series_id, run_side.id
"""  # noqa: S608 (our own names)


def _digits(value: str) -> str:
    """Three digits and the power of ten to divide them by, as one number, from text like `4.37e-07`."""
    text = f"trim(to_char({value}, '9.99EEEE'))" if _on_postgresql() else f"printf('%.2e', {value})"
    first = f"CAST(substr({text}, 1, 1) || substr({text}, 3, 2) AS INTEGER)"
    scale = f"(2 - CAST(substr({text}, 6) AS INTEGER))"
    return f"CASE WHEN {value} = 0 THEN 0 WHEN {value} > 1e-20 AND {value} < 1e2 THEN {scale} * 1000 + {first} END"


def _not_following() -> str:
    """All values of the rows that have a message, or of which a value does not come out as it was."""
    differs = "IS DISTINCT FROM" if _on_postgresql() else "IS NOT"
    names = ("message", *EXTRA)
    wrong = " OR ".join(f"({text}) {differs} w.{name}" for name, text in WORKED_OUT.items())
    return f"""
INSERT INTO result_extra (series_id, run_side_id, {", ".join(names)})
SELECT r.series_id, r.run_side_id, {", ".join(f"w.{name}" for name in names)}
{TABLES}
JOIN wide_result AS w ON w.series_id = r.series_id AND w.revision_id = run_side.revision_id
  AND w.run_id = run_side.run_id AND w.side = run_side.side
WHERE w.message <> '' OR {wrong}
"""


def _create_small_tables() -> None:
    op.create_table(
        "run_side",
        sa.Column("id", BIG, nullable=False),
        sa.Column("run_id", BIG, nullable=False),
        sa.Column("revision_id", BIG, nullable=False),
        sa.Column("side", sa.Text, nullable=False),
        _one_of("run_side", "side", ("head", "base")),
        _refers("run_side", "run_id", "run"),
        _refers("run_side", "revision_id", "revision"),
        sa.PrimaryKeyConstraint("id", name="pk_run_side"),
        sa.UniqueConstraint("run_id", "side", name="uq_run_side_run_id_side"),
        sqlite_strict=True,
    )
    op.create_index("ix_run_side_revision_id", "run_side", ["revision_id"])
    op.create_table(
        "extent",
        sa.Column("id", BIG, nullable=False),
        *(sa.Column(name, BIG, nullable=False) for name in EXTENT),
        *(_check("extent", name, NATURAL) for name in EXTENT),
        sa.PrimaryKeyConstraint("id", name="pk_extent"),
        sa.UniqueConstraint(*EXTENT, name="uq_extent_samples_rounds_bad_blocks"),
        sqlite_strict=True,
    )
    op.create_table(
        "setting",
        sa.Column("id", BIG, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("declaration_id", BIG, nullable=False),
        sa.Column("device_id", BIG),
        sa.Column("environment_id", BIG),
        sa.Column("resources_id", BIG, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("cached", SMALL, nullable=False),
        sa.Column("expected_gain", DOUBLE),
        sa.Column("bytes_min", BIG),
        sa.Column("flops", BIG),
        sa.Column("peak_bytes_per_s", DOUBLE),
        sa.CheckConstraint("cached IN (0, 1)", name="ck_setting_cached"),
        *(_check("setting", name, POSITIVE) for name in ("expected_gain", "peak_bytes_per_s")),
        *(_check("setting", name, NATURAL) for name in ("bytes_min", "flops")),
        *(_refers("setting", name, name.removesuffix("_id")) for name in REFERENCES),
        sa.PrimaryKeyConstraint("id", name="pk_setting"),
        sa.UniqueConstraint("digest", name="uq_setting_digest"),
        sqlite_strict=True,
    )


def _create_result() -> None:
    numbers = ("series_id", "run_side_id", "setting_id", "extent_id")
    wholes = tuple(column for column, _, most in WHOLE.values() if most > 2**15)
    smalls = ("clock_mhz", *DIGITS.values())
    op.create_table(
        "result",
        *(sa.Column(name, sa.Integer, nullable=False) for name in numbers),
        *(sa.Column(name, DOUBLE) for name in MEASURED),
        *(sa.Column(name, sa.Integer) for name in wholes),
        *(sa.Column(name, SMALL) for name in smalls),
        sa.Column("fault", sa.Text),
        _one_of("result", "fault", FAULTS),
        sa.CheckConstraint("(fault IS NULL) = (time_s IS NOT NULL)", name="ck_result_time_exactly_when_ok"),
        *(_check("result", name, NON_NEGATIVE if name == "utilization" else POSITIVE) for name in MEASURED),
        *(_check("result", name, NATURAL) for name in (*wholes, *smalls)),
        *(_refers("result", name, name.removesuffix("_id")) for name in numbers),
        sa.PrimaryKeyConstraint("series_id", "run_side_id", name="pk_result"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_index("ix_result_run_side_id", "result", ["run_side_id"])


def _create_result_extra() -> None:
    op.create_table(
        "result_extra",
        sa.Column("series_id", sa.Integer, nullable=False),
        sa.Column("run_side_id", sa.Integer, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        *(sa.Column(name, DOUBLE) for name in EXTRA),
        *(_check("result_extra", name, rule) for name, rule in EXTRA.items()),
        sa.ForeignKeyConstraint(
            ["series_id", "run_side_id"],
            ["result.series_id", "result.run_side_id"],
            name="fk_result_extra_series_id_run_side_id",
        ),
        sa.PrimaryKeyConstraint("series_id", "run_side_id", name="pk_result_extra"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )


def _create_wide_result() -> None:
    """As 0002 left it, under another name until the narrow one is gone.

    The checks of its last columns are theirs, so that 0002 can drop them on SQLite.
    """
    doubles = {
        **dict.fromkeys(("time_s", "q10_s", "q90_s", "baseline_s"), POSITIVE),
        **dict.fromkeys(("speedup", "speedup_low", "speedup_high"), POSITIVE),
        **dict.fromkeys(("fusion_gain", "fusion_gain_low", "fusion_gain_high"), POSITIVE),
        **dict.fromkeys(("expected_gain", "fusion_efficiency"), POSITIVE),
        **dict.fromkeys(("bandwidth_bytes_per_s", "utilization", "peak_utilization", "flops_per_s"), NON_NEGATIVE),
    }
    errors = ("error_l2", "error_max", "host_s")
    later = {"clock_mhz": POSITIVE, "build_first_s": NON_NEGATIVE, "build_s": NON_NEGATIVE}
    rules = {**doubles, **dict.fromkeys(errors, NON_NEGATIVE)}
    refers = {"series_id": "series", "revision_id": "revision", "run_id": "run"}
    refers |= {name: name.removesuffix("_id") for name in REFERENCES}
    op.create_table(
        "wide_result",
        *(sa.Column(name, BIG, nullable=False) for name in ("series_id", "revision_id", "run_id")),
        sa.Column("side", sa.Text, nullable=False),
        *(sa.Column(name, BIG, nullable=name in {"device_id", "environment_id"}) for name in REFERENCES),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        *(sa.Column(name, DOUBLE) for name in doubles),
        *(sa.Column(name, BIG, nullable=False) for name in EXTENT),
        *(sa.Column(name, DOUBLE) for name in errors),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("cached", SMALL, nullable=False),
        *(sa.Column(name, DOUBLE, _check("result", name, rule)) for name, rule in later.items()),
        sa.CheckConstraint("(status = 'ok') = (time_s IS NOT NULL)", name="ck_result_time_exactly_when_ok"),
        sa.CheckConstraint("cached IN (0, 1)", name="ck_result_cached"),
        _one_of("result", "side", ("head", "base")),
        _one_of("result", "status", STATUSES),
        *(_check("result", name, rule) for name, rule in rules.items()),
        *(_refers("result", name, other) for name, other in refers.items()),
        sa.PrimaryKeyConstraint(
            *("series_id", "revision_id", "run_id", "side"), name="pk_wide_result" if _on_postgresql() else "pk_result"
        ),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )


def _check(table: str, name: str, rule: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(rule.format(name), name=f"ck_{table}_{name}")


def _refers(table: str, name: str, other: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([name], [f"{other}.id"], name=f"fk_{table}_{name}")


def _one_of(table: str, name: str, words: tuple[str, ...]) -> sa.CheckConstraint:
    values = ", ".join(repr(word) for word in words)
    return sa.CheckConstraint(f"{name} IN ({values})", name=f"ck_{table}_{name}")
