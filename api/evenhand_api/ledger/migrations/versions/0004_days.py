"""Charges by day, from those by hour."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision: str | None = "0003"
branch_labels: str | None = None
depends_on: str | None = None

DAY = "(hour - (hour % 24 + 24) % 24) / 24"  # rounded down before 1970 too
FILL = f"""
INSERT INTO days (cluster_id, day, group_id, charge_s, charge_rest)
SELECT cluster_id, {DAY}, group_id, SUM(charge_s), SUM(charge_rest) FROM hours
WHERE charged GROUP BY cluster_id, {DAY}, group_id HAVING SUM(charge_s) <> 0 OR SUM(charge_rest) <> 0
"""


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "days",
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("day", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("group_id", sa.String(length=256), nullable=False),
        sa.Column("charge_s", sa.BigInteger(), nullable=False),
        sa.Column("charge_rest", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["cluster_id"], ["clusters.id"], name=op.f("fk_days_cluster_id")),
        sa.PrimaryKeyConstraint("cluster_id", "day", "group_id", name=op.f("pk_days")),
        sqlite_with_rowid=False,
    )
    op.execute(FILL)


def downgrade() -> None:
    """Take back."""
    op.drop_table("days")
