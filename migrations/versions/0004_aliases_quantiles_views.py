"""Cases under a new name, what samples leave behind when they expire, and views for tools that read SQL.

The columns are added at the end, each with its check: neither engine has to copy a table for that. A later migration
that drops or renames what a view reads drops the views first, and makes them again.

Revision ID: 0004
"""

import sqlalchemy as sa
from alembic import context, op

revision = "0004"
down_revision = "0003"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

KEPT = ("time_s", "q10_s", "q90_s")

RESULTS = """
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

FINDINGS = """
CREATE VIEW findings AS
SELECT head.repo, head.sha, head.position AS commit_seq, base.sha AS base_sha, {measured} AS measured_at,
  run.uid AS run_uid, suite.name AS suite, coalesce(shown.key, kernel_case.key) AS case_key,
  device_class.name AS device_class, finding.variant, finding.verdict, finding.cause, finding.accuracy,
  finding.head_s, finding.base_s, finding.change, finding.change_low, finding.change_high,
  finding.speedup_head, finding.speedup_base, finding.detectable, finding.confirmed, finding.why
FROM finding
JOIN run ON run.id = finding.run_id
JOIN revision AS head ON head.id = run.head_id
LEFT JOIN revision AS base ON base.id = run.base_id
JOIN kernel_case ON kernel_case.id = finding.case_id
JOIN suite ON suite.id = kernel_case.suite_id
JOIN device_class ON device_class.id = finding.device_class_id
LEFT JOIN case_alias ON case_alias.case_id = kernel_case.id
LEFT JOIN kernel_case AS shown ON shown.id = case_alias.current_id
"""

INSTANT = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%SZ', {} / 1000000, 'unixepoch')",
    "postgresql": "to_timestamp({} / 1e6)",
}
"""As both Grafana's data sources read it: text on SQLite, timestamptz on PostgreSQL."""


def upgrade() -> None:
    op.create_table(
        "case_alias",
        sa.Column("case_id", BIG, nullable=False),
        sa.Column("current_id", BIG, nullable=False),
        sa.CheckConstraint("case_id <> current_id", name="ck_case_alias_another"),
        sa.ForeignKeyConstraint(["case_id"], ["kernel_case.id"], name="fk_case_alias_case_id"),
        sa.ForeignKeyConstraint(["current_id"], ["kernel_case.id"], name="fk_case_alias_current_id"),
        sa.PrimaryKeyConstraint("case_id", name="pk_case_alias"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    dialect = context.get_context().dialect.name
    double, whole = {"sqlite": ("REAL", "INTEGER"), "postgresql": ("DOUBLE PRECISION", "BIGINT")}[dialect]
    for name in KEPT:
        _add(name, double, f"{name} > 0 AND {name} < 1e300")
    _add("samples", whole, "samples >= 0 AND samples < 1e300")
    instant = INSTANT[dialect]
    for view in (RESULTS, FINDINGS):
        op.execute(
            sa.text(
                view.format(
                    committed=instant.format("revision.committed_us"), measured=instant.format("run.started_us")
                ).replace(":", "\\:")
            )
        )


def _add(name: str, kind: str, rule: str) -> None:
    op.execute(f"ALTER TABLE measurement ADD COLUMN {name} {kind} CONSTRAINT ck_measurement_{name} CHECK ({rule})")


def downgrade() -> None:
    op.execute("DROP VIEW findings")
    op.execute("DROP VIEW results")
    for name in ("samples", *reversed(KEPT)):
        op.execute(f"ALTER TABLE measurement DROP COLUMN {name}")
    op.drop_table("case_alias")
