"""Sums of the intervals under a half-life, as they were at an instant, and an index that holds all they need."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision: str | None = "0002"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "fading",
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("half_us", sa.BigInteger(), nullable=False),
        sa.Column("until_us", sa.BigInteger(), nullable=False),
        sa.Column("amounts", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["cluster_id"], ["clusters.id"], name=op.f("fk_fading_cluster_id")),
        sa.PrimaryKeyConstraint("cluster_id", name=op.f("pk_fading")),
    )
    op.drop_index("ix_intervals_to", "intervals")
    op.create_index("ix_intervals_to", "intervals", ["cluster_id", "to_us", "group_id", "weight", "from_us"])


def downgrade() -> None:
    """Take back."""
    op.drop_index("ix_intervals_to", "intervals")
    op.create_index("ix_intervals_to", "intervals", ["cluster_id", "to_us", "group_id", "weight"])
    op.drop_table("fading")
