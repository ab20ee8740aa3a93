"""The clock that samples ran at, how long a variant took to build, and how its error changed.

Columns are added at the end, each with its check: neither engine has to copy a table for that. What was stored
before has NULL in them, and the accuracy of no answer.

Revision ID: 0002
"""

from alembic import context, op

revision = "0002"
down_revision = "0001"

POSITIVE = "{} > 0 AND {} < 1e300"
NON_NEGATIVE = "{} >= 0 AND {} < 1e300"
ADDED = {
    "measurement": {"clock_mhz": POSITIVE, "build_s": NON_NEGATIVE},
    "result": {"clock_mhz": POSITIVE, "build_first_s": NON_NEGATIVE, "build_s": NON_NEGATIVE},
    "finding": {"error_head": NON_NEGATIVE, "error_base": NON_NEGATIVE},
}
"""Table → measured column → what it must be."""

ACCURACIES = ("less-accurate", "more-accurate", "")


def upgrade() -> None:
    double = {"sqlite": "REAL", "postgresql": "DOUBLE PRECISION"}[context.get_context().dialect.name]
    for table, columns in ADDED.items():
        for name, rule in columns.items():
            _add(table, name, double, rule.format(name, name))
    words = ", ".join(repr(word) for word in ACCURACIES)
    _add("finding", "accuracy", "TEXT DEFAULT '' NOT NULL", f"accuracy IN ({words})")


def _add(table: str, name: str, kind: str, rule: str) -> None:
    op.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind} CONSTRAINT ck_{table}_{name} CHECK ({rule})")


def downgrade() -> None:
    op.execute("ALTER TABLE finding DROP COLUMN accuracy")
    for table, columns in ADDED.items():
        for name in reversed(columns):
            op.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
