"""The first schema.

Revision ID: 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
SMALL = sa.SmallInteger().with_variant(sa.Integer(), "sqlite")
DOUBLE = sa.Double().with_variant(sa.REAL(), "sqlite")

STATES = ("running", "complete", "interrupted")
CAUSES = (
    "fused-slower",
    "fused-faster",
    "unfused-faster",
    "unfused-slower",
    "both",
    "environment",
    "method",
    "device",
    "identical-code",
    "",
)
VERDICTS = ("slower", "faster", "same", "ambiguous", "failed", "wrong", "missing", "new", "removed", "unstable")
STATUSES = ("ok", "skipped", "wrong", "failed", "invalid", "unstable", "infra")
SIDES = ("head", "base")


def upgrade() -> None:
    _create_device_class()
    _create_environment()
    _create_method()
    _create_resources()
    _create_revision()
    _create_suite()
    _create_device()
    _create_kernel_case()
    _create_declaration()
    _create_series()
    _create_run()
    _create_job_attempt()
    _create_measurement()
    _create_sample()
    _create_result()
    _create_finding()


def downgrade() -> None:
    for table in (
        "finding",
        "result",
        "sample",
        "measurement",
        "job_attempt",
        "run",
        "series",
        "declaration",
        "kernel_case",
        "device",
        "suite",
        "revision",
        "resources",
        "method",
        "environment",
        "device_class",
    ):
        op.drop_table(table)


def _create_device_class() -> None:
    op.create_table(
        "device_class",
        sa.Column("id", BIG, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_device_class"),
        sa.UniqueConstraint("name", name="uq_device_class_name"),
        sqlite_strict=True,
    )


def _create_environment() -> None:
    op.create_table(
        "environment",
        sa.Column("id", BIG, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("entries", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_environment"),
        sa.UniqueConstraint("digest", name="uq_environment_digest"),
        sqlite_strict=True,
    )


def _create_method() -> None:
    op.create_table(
        "method",
        sa.Column("id", BIG, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_method"),
        sa.UniqueConstraint("digest", name="uq_method_digest"),
        sqlite_strict=True,
    )


def _create_resources() -> None:
    op.create_table(
        "resources",
        sa.Column("id", BIG, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("registers", BIG),
        sa.Column("local_bytes", BIG),
        sa.Column("shared_bytes", BIG),
        sa.Column("occupancy", DOUBLE),
        sa.Column("launches", BIG),
        sa.Column("code_digest", sa.Text),
        *_non_negative("resources", "occupancy"),
        sa.PrimaryKeyConstraint("id", name="pk_resources"),
        sa.UniqueConstraint("digest", name="uq_resources_digest"),
        sqlite_strict=True,
    )


def _create_revision() -> None:
    op.create_table(
        "revision",
        sa.Column("id", BIG, nullable=False),
        sa.Column("repo", sa.Text, nullable=False),
        sa.Column("sha", sa.Text, nullable=False),
        sa.Column("tree", sa.Text, nullable=False),
        sa.Column("dirty", SMALL, nullable=False),
        sa.Column("parent_sha", sa.Text),
        sa.Column("position", sa.Integer),
        sa.Column("committed_us", BIG, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        _flag("revision", "dirty"),
        sa.PrimaryKeyConstraint("id", name="pk_revision"),
        sa.UniqueConstraint("repo", "sha", "tree", "dirty", name="uq_revision_repo_sha_tree_dirty"),
        sqlite_strict=True,
    )
    op.create_index("ix_revision_repo_position", "revision", ["repo", "position"])


def _create_suite() -> None:
    op.create_table(
        "suite",
        sa.Column("id", BIG, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_suite"),
        sa.UniqueConstraint("name", name="uq_suite_name"),
        sqlite_strict=True,
    )


def _create_device() -> None:
    op.create_table(
        "device",
        sa.Column("id", BIG, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("device_class_id", BIG, nullable=False),
        sa.Column("uuid", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("backend", sa.Text, nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("memory_bytes", BIG, nullable=False),
        sa.Column("compute_capability", sa.Text, nullable=False),
        sa.Column("multiprocessors", BIG, nullable=False),
        sa.Column("l2_bytes", BIG, nullable=False),
        sa.Column("peak_bytes_per_s", DOUBLE),
        *_positive("device", "peak_bytes_per_s"),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_class.id"], name="fk_device_device_class_id"),
        sa.PrimaryKeyConstraint("id", name="pk_device"),
        sa.UniqueConstraint("digest", name="uq_device_digest"),
        sqlite_strict=True,
    )
    op.create_index("ix_device_uuid", "device", ["uuid"])


def _create_kernel_case() -> None:
    op.create_table(
        "kernel_case",
        sa.Column("id", BIG, nullable=False),
        sa.Column("suite_id", BIG, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["suite_id"], ["suite.id"], name="fk_kernel_case_suite_id"),
        sa.PrimaryKeyConstraint("id", name="pk_kernel_case"),
        sa.UniqueConstraint("suite_id", "key", name="uq_kernel_case_suite_id_key"),
        sqlite_strict=True,
    )


def _create_declaration() -> None:
    op.create_table(
        "declaration",
        sa.Column("id", BIG, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("case_id", BIG, nullable=False),
        sa.Column("benchmark", sa.Text, nullable=False),
        sa.Column("backend", sa.Text, nullable=False),
        sa.Column("params", sa.Text, nullable=False),
        sa.Column("variants", sa.Text, nullable=False),
        sa.Column("baseline", sa.Text, nullable=False),
        sa.Column("traffic", sa.Text, nullable=False),
        sa.Column("min_effect", DOUBLE, nullable=False),
        sa.Column("doc", sa.Text, nullable=False),
        *_non_negative("declaration", "min_effect"),
        sa.ForeignKeyConstraint(["case_id"], ["kernel_case.id"], name="fk_declaration_case_id"),
        sa.PrimaryKeyConstraint("id", name="pk_declaration"),
        sa.UniqueConstraint("digest", name="uq_declaration_digest"),
        sqlite_strict=True,
    )


def _create_series() -> None:
    op.create_table(
        "series",
        sa.Column("id", BIG, nullable=False),
        sa.Column("device_class_id", BIG, nullable=False),
        sa.Column("case_id", BIG, nullable=False),
        sa.Column("variant", sa.Text, nullable=False),
        sa.Column("baseline", sa.Text, nullable=False),
        sa.Column("method_id", BIG, nullable=False),
        sa.ForeignKeyConstraint(["case_id"], ["kernel_case.id"], name="fk_series_case_id"),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_class.id"], name="fk_series_device_class_id"),
        sa.ForeignKeyConstraint(["method_id"], ["method.id"], name="fk_series_method_id"),
        sa.PrimaryKeyConstraint("id", name="pk_series"),
        sa.UniqueConstraint(
            "case_id",
            "device_class_id",
            "variant",
            "baseline",
            "method_id",
            name="uq_series_case_id_device_class_id_variant_baseline_method_id",
        ),
        sqlite_strict=True,
    )


def _create_run() -> None:
    op.create_table(
        "run",
        sa.Column("id", BIG, nullable=False),
        sa.Column("uid", sa.Text, nullable=False),
        sa.Column("head_id", BIG, nullable=False),
        sa.Column("base_id", BIG),
        sa.Column("head_branch", sa.Text),
        sa.Column("base_branch", sa.Text),
        sa.Column("base_note", sa.Text, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("started_us", BIG, nullable=False),
        sa.Column("finished_us", BIG),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("problems", sa.Text, nullable=False),
        sa.Column("expected_jobs", BIG, nullable=False),
        _one_of("run", "state", STATES),
        sa.ForeignKeyConstraint(["base_id"], ["revision.id"], name="fk_run_base_id"),
        sa.ForeignKeyConstraint(["head_id"], ["revision.id"], name="fk_run_head_id"),
        sa.PrimaryKeyConstraint("id", name="pk_run"),
        sa.UniqueConstraint("uid", name="uq_run_uid"),
        sqlite_strict=True,
    )
    op.create_index("ix_run_head_id", "run", ["head_id"])
    op.create_index("ix_run_started_us", "run", ["started_us"])


def _create_job_attempt() -> None:
    op.create_table(
        "job_attempt",
        sa.Column("id", BIG, nullable=False),
        sa.Column("run_id", BIG, nullable=False),
        sa.Column("case_id", BIG, nullable=False),
        sa.Column("device_class_id", BIG, nullable=False),
        sa.Column("round", SMALL, nullable=False),
        sa.Column("attempt", SMALL, nullable=False),
        sa.Column("declaration_id", BIG, nullable=False),
        sa.Column("device_id", BIG, nullable=False),
        sa.Column("environment_id", BIG),
        sa.Column("method_id", BIG, nullable=False),
        sa.Column("payload_digest", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("device_uuid", sa.Text, nullable=False),
        sa.Column("seed", BIG, nullable=False),
        sa.Column("canary_s", sa.LargeBinary, nullable=False),
        sa.Column("clock_mhz", sa.LargeBinary, nullable=False),
        sa.Column("bad_blocks", sa.Text, nullable=False),
        sa.Column("throttle_reasons", sa.Text, nullable=False),
        sa.Column("ceiling_bytes_per_s", DOUBLE),
        sa.Column("mix_ceiling_bytes_per_s", DOUBLE),
        sa.Column("cached", SMALL, nullable=False),
        sa.Column("sets", BIG, nullable=False),
        sa.Column("set_bytes", BIG, nullable=False),
        sa.Column("source_digest", sa.Text, nullable=False),
        sa.Column("timed_s", DOUBLE, nullable=False),
        sa.Column("wall_s", DOUBLE, nullable=False),
        sa.Column("started_us", BIG, nullable=False),
        _one_of("job_attempt", "status", STATUSES),
        _flag("job_attempt", "cached"),
        *_positive("job_attempt", "ceiling_bytes_per_s", "mix_ceiling_bytes_per_s"),
        *_non_negative("job_attempt", "timed_s", "wall_s"),
        sa.ForeignKeyConstraint(["case_id"], ["kernel_case.id"], name="fk_job_attempt_case_id"),
        sa.ForeignKeyConstraint(["declaration_id"], ["declaration.id"], name="fk_job_attempt_declaration_id"),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_class.id"], name="fk_job_attempt_device_class_id"),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name="fk_job_attempt_device_id"),
        sa.ForeignKeyConstraint(["environment_id"], ["environment.id"], name="fk_job_attempt_environment_id"),
        sa.ForeignKeyConstraint(["method_id"], ["method.id"], name="fk_job_attempt_method_id"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_job_attempt_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_job_attempt"),
        sa.UniqueConstraint(
            "run_id",
            "case_id",
            "device_class_id",
            "round",
            "attempt",
            name="uq_job_attempt_run_id_case_id_device_class_id_round_attempt",
        ),
        sqlite_strict=True,
    )
    op.create_index("ix_job_attempt_device_id", "job_attempt", ["device_id"])


def _create_measurement() -> None:
    op.create_table(
        "measurement",
        sa.Column("job_attempt_id", BIG, nullable=False),
        sa.Column("side", sa.Text, nullable=False),
        sa.Column("variant", sa.Text, nullable=False),
        sa.Column("ordinal", SMALL, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("calls_per_sample", BIG, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("error_l2", DOUBLE),
        sa.Column("error_max", DOUBLE),
        sa.Column("host_s", DOUBLE),
        sa.Column("resources_id", BIG, nullable=False),
        _one_of("measurement", "side", SIDES),
        _one_of("measurement", "status", STATUSES),
        *_non_negative("measurement", "error_l2", "error_max", "host_s"),
        sa.ForeignKeyConstraint(["job_attempt_id"], ["job_attempt.id"], name="fk_measurement_job_attempt_id"),
        sa.ForeignKeyConstraint(["resources_id"], ["resources.id"], name="fk_measurement_resources_id"),
        sa.PrimaryKeyConstraint("job_attempt_id", "side", "variant", name="pk_measurement"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )


def _create_sample() -> None:
    op.create_table(
        "sample",
        sa.Column("job_attempt_id", BIG, nullable=False),
        sa.Column("side", sa.Text, nullable=False),
        sa.Column("variant", sa.Text, nullable=False),
        sa.Column("encoding", SMALL, nullable=False),
        sa.Column("samples_s", sa.LargeBinary, nullable=False),
        sa.Column("blocks", sa.LargeBinary, nullable=False),
        sa.ForeignKeyConstraint(
            ["job_attempt_id", "side", "variant"],
            ["measurement.job_attempt_id", "measurement.side", "measurement.variant"],
            name="fk_sample_job_attempt_id_side_variant",
        ),
        sa.PrimaryKeyConstraint("job_attempt_id", "side", "variant", name="pk_sample"),
        sqlite_strict=True,
    )


def _create_result() -> None:
    op.create_table(
        "result",
        sa.Column("series_id", BIG, nullable=False),
        sa.Column("revision_id", BIG, nullable=False),
        sa.Column("run_id", BIG, nullable=False),
        sa.Column("side", sa.Text, nullable=False),
        sa.Column("declaration_id", BIG, nullable=False),
        sa.Column("device_id", BIG),
        sa.Column("environment_id", BIG),
        sa.Column("resources_id", BIG, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("time_s", DOUBLE),
        sa.Column("q10_s", DOUBLE),
        sa.Column("q90_s", DOUBLE),
        sa.Column("baseline_s", DOUBLE),
        sa.Column("speedup", DOUBLE),
        sa.Column("speedup_low", DOUBLE),
        sa.Column("speedup_high", DOUBLE),
        sa.Column("fusion_gain", DOUBLE),
        sa.Column("fusion_gain_low", DOUBLE),
        sa.Column("fusion_gain_high", DOUBLE),
        sa.Column("expected_gain", DOUBLE),
        sa.Column("fusion_efficiency", DOUBLE),
        sa.Column("bandwidth_bytes_per_s", DOUBLE),
        sa.Column("utilization", DOUBLE),
        sa.Column("peak_utilization", DOUBLE),
        sa.Column("flops_per_s", DOUBLE),
        sa.Column("samples", BIG, nullable=False),
        sa.Column("rounds", BIG, nullable=False),
        sa.Column("bad_blocks", BIG, nullable=False),
        sa.Column("error_l2", DOUBLE),
        sa.Column("error_max", DOUBLE),
        sa.Column("host_s", DOUBLE),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("cached", SMALL, nullable=False),
        sa.CheckConstraint("(status = 'ok') = (time_s IS NOT NULL)", name="ck_result_time_exactly_when_ok"),
        _one_of("result", "side", SIDES),
        _one_of("result", "status", STATUSES),
        *_non_negative(
            "result",
            "bandwidth_bytes_per_s",
            "error_l2",
            "error_max",
            "flops_per_s",
            "host_s",
            "peak_utilization",
            "utilization",
        ),
        *_positive(
            "result",
            "baseline_s",
            "expected_gain",
            "fusion_efficiency",
            "fusion_gain",
            "fusion_gain_high",
            "fusion_gain_low",
            "q10_s",
            "q90_s",
            "speedup",
            "speedup_high",
            "speedup_low",
            "time_s",
        ),
        _flag("result", "cached"),
        sa.ForeignKeyConstraint(["declaration_id"], ["declaration.id"], name="fk_result_declaration_id"),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name="fk_result_device_id"),
        sa.ForeignKeyConstraint(["environment_id"], ["environment.id"], name="fk_result_environment_id"),
        sa.ForeignKeyConstraint(["resources_id"], ["resources.id"], name="fk_result_resources_id"),
        sa.ForeignKeyConstraint(["revision_id"], ["revision.id"], name="fk_result_revision_id"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_result_run_id"),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name="fk_result_series_id"),
        sa.PrimaryKeyConstraint("series_id", "revision_id", "run_id", "side", name="pk_result"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_index("ix_result_revision_id", "result", ["revision_id"])


def _create_finding() -> None:
    op.create_table(
        "finding",
        sa.Column("run_id", BIG, nullable=False),
        sa.Column("case_id", BIG, nullable=False),
        sa.Column("device_class_id", BIG, nullable=False),
        sa.Column("variant", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("head_s", DOUBLE),
        sa.Column("base_s", DOUBLE),
        sa.Column("baseline_head_s", DOUBLE),
        sa.Column("baseline_base_s", DOUBLE),
        sa.Column("speedup_head", DOUBLE),
        sa.Column("speedup_base", DOUBLE),
        sa.Column("change", DOUBLE),
        sa.Column("change_low", DOUBLE),
        sa.Column("change_high", DOUBLE),
        sa.Column("baseline_change", DOUBLE),
        sa.Column("baseline_change_low", DOUBLE),
        sa.Column("baseline_change_high", DOUBLE),
        sa.Column("min_effect", DOUBLE, nullable=False),
        sa.Column("detectable", DOUBLE),
        sa.Column("rounds", BIG, nullable=False),
        sa.Column("ratios", sa.Text, nullable=False),
        sa.Column("confirmed", SMALL, nullable=False),
        sa.Column("newly", SMALL, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        _one_of("finding", "cause", CAUSES),
        _one_of("finding", "verdict", VERDICTS),
        *_positive(
            "finding",
            "base_s",
            "baseline_base_s",
            "baseline_change",
            "baseline_change_high",
            "baseline_change_low",
            "baseline_head_s",
            "change",
            "change_high",
            "change_low",
            "head_s",
            "speedup_base",
            "speedup_head",
        ),
        _flag("finding", "confirmed"),
        *_non_negative("finding", "detectable", "min_effect"),
        _flag("finding", "newly"),
        sa.ForeignKeyConstraint(["case_id"], ["kernel_case.id"], name="fk_finding_case_id"),
        sa.ForeignKeyConstraint(["device_class_id"], ["device_class.id"], name="fk_finding_device_class_id"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_finding_run_id"),
        sa.PrimaryKeyConstraint("run_id", "case_id", "device_class_id", "variant", name="pk_finding"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )


def _positive(table: str, *names: str) -> list[sa.CheckConstraint]:
    return [sa.CheckConstraint(f"{name} > 0 AND {name} < 1e300", name=f"ck_{table}_{name}") for name in names]


def _non_negative(table: str, *names: str) -> list[sa.CheckConstraint]:
    return [sa.CheckConstraint(f"{name} >= 0 AND {name} < 1e300", name=f"ck_{table}_{name}") for name in names]


def _flag(table: str, name: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(f"{name} IN (0, 1)", name=f"ck_{table}_{name}")


def _one_of(table: str, name: str, words: tuple[str, ...]) -> sa.CheckConstraint:
    values = ", ".join(repr(word) for word in words)
    return sa.CheckConstraint(f"{name} IN ({values})", name=f"ck_{table}_{name}")
