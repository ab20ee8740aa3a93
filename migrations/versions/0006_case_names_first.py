"""The view `results` with the name of a case as a value of the case alone.

A condition on it is then tried on a few hundred cases, where it was tried on every result that the others left: an
outer join in the middle of a view keeps a database from looking at it earlier.

Revision ID: 0006
"""

import sqlalchemy as sa
from alembic import context, op

revision = "0006"
down_revision = "0005"

OUTER_NAME = "coalesce(shown.key, kernel_case.key)"
OUTER_JOINS = """
LEFT JOIN case_alias ON case_alias.case_id = kernel_case.id
LEFT JOIN kernel_case AS shown ON shown.id = case_alias.current_id"""
NAME = """coalesce((
    SELECT shown.key FROM case_alias JOIN kernel_case AS shown ON shown.id = case_alias.current_id
    WHERE case_alias.case_id = kernel_case.id
  ), kernel_case.key)"""

# what a value is made of; `r` is the row of `result`, `b` that of the baseline, `s` the setting
BANDWIDTH = "s.bytes_min / r.time_s"
WORKED_OUT = {
    "baseline_s": "CASE WHEN r.fault IS NULL THEN b.time_s END",
    "fusion_efficiency": "coalesce(r.fusion_gain, r.speedup) / s.expected_gain",
    "bandwidth_bytes_per_s": BANDWIDTH,
    "flops_per_s": "s.flops / r.time_s",
    "host_s": "r.host_ns / CAST(1000000000 AS DOUBLE PRECISION)",
    "error_l2": "(r.error_l2_digits - r.error_l2_digits / 1000 * 1000)"
    " / CAST('1e' || CAST(r.error_l2_digits / 1000 AS TEXT) AS DOUBLE PRECISION)",
    "clock_mhz": "r.clock_mhz / CAST(1 AS DOUBLE PRECISION)",
    "build_s": "r.build_us / CAST(1000000 AS DOUBLE PRECISION)",
}
VALUE = {name: f"CASE WHEN x.series_id IS NULL THEN {text} ELSE x.{name} END" for name, text in WORKED_OUT.items()}

RESULTS = """
CREATE VIEW results AS
SELECT revision.repo, revision.sha, revision.dirty, revision.position AS commit_seq,
  {committed} AS committed_at, {measured} AS measured_at, run.uid AS run_uid, run_side.side,
  CASE run_side.side WHEN 'head' THEN run.head_branch ELSE run.base_branch END AS branch,
  suite.name AS suite, {name} AS case_key, device_class.name AS device_class,
  device.uuid AS device_uuid, series.variant, series.baseline, coalesce(r.fault, 'ok') AS status,
  finding.verdict, finding.cause, r.time_s, r.q10_s, r.q90_s, {baseline_s} AS baseline_s,
  r.speedup, r.speedup_low, r.speedup_high, r.fusion_gain, {fusion_efficiency} AS fusion_efficiency,
  {bandwidth_bytes_per_s} AS bandwidth_bytes_per_s, r.utilization, {flops_per_s} AS flops_per_s,
  {host_s} AS host_s, {error_l2} AS error_l2, {clock_mhz} AS clock_mhz,
  {build_s} AS build_s, extent.samples, extent.rounds
FROM result AS r
JOIN run_side ON run_side.id = r.run_side_id
JOIN setting AS s ON s.id = r.setting_id
JOIN extent ON extent.id = r.extent_id
JOIN series ON series.id = r.series_id
LEFT JOIN series AS bs ON bs.case_id = series.case_id AND bs.device_class_id = series.device_class_id
  AND bs.method_id = series.method_id AND bs.variant = series.baseline AND bs.baseline = series.baseline
LEFT JOIN result AS b ON b.series_id = bs.id AND b.run_side_id = r.run_side_id
LEFT JOIN result_extra AS x ON x.series_id = r.series_id AND x.run_side_id = r.run_side_id
JOIN kernel_case ON kernel_case.id = series.case_id
JOIN suite ON suite.id = kernel_case.suite_id
JOIN device_class ON device_class.id = series.device_class_id
JOIN revision ON revision.id = run_side.revision_id
JOIN run ON run.id = run_side.run_id
LEFT JOIN device ON device.id = s.device_id{joins}
LEFT JOIN finding ON finding.run_id = run.id AND finding.case_id = series.case_id
  AND finding.device_class_id = series.device_class_id AND finding.variant = series.variant AND run_side.side = 'head'
"""

INSTANT = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%SZ', {} / 1000000, 'unixepoch')",
    "postgresql": "to_timestamp({} / 1e6)",
}


def upgrade() -> None:
    _replace_view(NAME)


def downgrade() -> None:
    _replace_view(OUTER_NAME, OUTER_JOINS)


def _replace_view(name: str, joins: str = "") -> None:
    instant = INSTANT[context.get_context().dialect.name]
    committed, measured = instant.format("revision.committed_us"), instant.format("run.started_us")
    text = RESULTS.format(committed=committed, measured=measured, name=name, joins=joins, **VALUE)
    if context.get_context().dialect.name == "sqlite":
        op.execute("DROP VIEW results")
    else:  # who may read it is said of the view, and others may have views of it
        text = text.replace("CREATE VIEW", "CREATE OR REPLACE VIEW")
    op.execute(sa.text(text.replace(":", "\\:")))
