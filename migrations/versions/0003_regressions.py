"""Regressions that are remembered: what was found at which commit, where it was seen again, what people said of it.

Revision ID: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
SMALL = sa.SmallInteger().with_variant(sa.Integer(), "sqlite")
DOUBLE = sa.Double().with_variant(sa.REAL(), "sqlite")

KINDS = ("slower", "failed", "wrong", "less-accurate")
MARKS = ("acknowledged", "invalid", "infra")


def upgrade() -> None:
    op.create_table(
        "regression",
        sa.Column("id", BIG, nullable=False),
        sa.Column("found_id", BIG, nullable=False),
        sa.Column("base_id", BIG),
        sa.Column("device_class_id", BIG, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("found_us", BIG, nullable=False),
        _one_of("regression", "kind", KINDS),
        _refers("regression", "found_id", "revision"),
        _refers("regression", "base_id", "revision"),
        _refers("regression", "device_class_id", "device_class"),
        sa.PrimaryKeyConstraint("id", name="pk_regression"),
        sa.UniqueConstraint("found_id", "device_class_id", "kind", name="uq_regression_found_id_device_class_id_kind"),
        sqlite_strict=True,
    )
    op.create_table(
        "sighting",
        sa.Column("run_id", BIG, nullable=False),
        sa.Column("regression_id", BIG, nullable=False),
        sa.Column("case_id", BIG, nullable=False),
        sa.Column("variant", sa.Text, nullable=False),
        sa.Column("gone", SMALL, nullable=False),
        sa.Column("level", DOUBLE),
        sa.CheckConstraint("gone IN (0, 1)", name="ck_sighting_gone"),
        _positive("sighting", "level"),
        _refers("sighting", "run_id", "run"),
        _refers("sighting", "regression_id", "regression"),
        _refers("sighting", "case_id", "kernel_case"),
        sa.PrimaryKeyConstraint("run_id", "regression_id", "case_id", "variant", name="pk_sighting"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_index("ix_sighting_regression_id", "sighting", ["regression_id"])
    op.create_table(
        "mark",
        sa.Column("regression_id", BIG, nullable=False),
        sa.Column("case_id", BIG, nullable=False),
        sa.Column("variant", sa.Text, nullable=False),
        sa.Column("at_us", BIG, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("until_us", BIG),
        sa.Column("level", DOUBLE),
        _one_of("mark", "state", MARKS),
        _positive("mark", "level"),
        _refers("mark", "regression_id", "regression"),
        _refers("mark", "case_id", "kernel_case"),
        sa.PrimaryKeyConstraint("regression_id", "case_id", "variant", "at_us", name="pk_mark"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    for table in ("mark", "sighting", "regression"):
        op.drop_table(table)


def _refers(table: str, name: str, other: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([name], [f"{other}.id"], name=f"fk_{table}_{name}")


def _positive(table: str, name: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(f"{name} > 0 AND {name} < 1e300", name=f"ck_{table}_{name}")


def _one_of(table: str, name: str, words: tuple[str, ...]) -> sa.CheckConstraint:
    values = ", ".join(repr(word) for word in words)
    return sa.CheckConstraint(f"{name} IN ({values})", name=f"ck_{table}_{name}")
