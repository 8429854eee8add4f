"""The first tables: what `evenhand_api.ledger.tables` describes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "clusters",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("state_version", sa.BigInteger(), nullable=False),
        sa.Column("config_version", sa.Integer(), nullable=False),
        sa.Column("last_round", sa.Integer(), nullable=False),
        sa.Column("last_now_us", sa.BigInteger(), nullable=True),
        sa.Column("nodes", sa.Text(), nullable=False),
        sa.Column("down", sa.Text(), nullable=False),
        sa.Column("kept_from_us", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_clusters")),
        sa.UniqueConstraint("name", name=op.f("uq_clusters_name")),
    )
    op.create_table(
        "adjustments",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("group_id", sa.String(length=256), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("charge_s", sa.BigInteger(), nullable=False),
        sa.Column("charge_rest", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("author", sa.String(length=256), nullable=False),
        sa.Column("recorded_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["cluster_id"], ["clusters.id"], name=op.f("fk_adjustments_cluster_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_adjustments")),
    )
    with op.batch_alter_table("adjustments", schema=None) as batch_op:
        batch_op.create_index("ix_adjustments_at", ["cluster_id", "at_us"], unique=False)

    op.create_table(
        "cluster_versions",
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("recorded_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["cluster_id"], ["clusters.id"], name=op.f("fk_cluster_versions_cluster_id")),
        sa.PrimaryKeyConstraint("cluster_id", "version", name=op.f("pk_cluster_versions")),
    )
    op.create_table(
        "decisions",
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job", sa.String(length=256), nullable=False),
        sa.Column("n", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("assignment", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["cluster_id"], ["clusters.id"], name=op.f("fk_decisions_cluster_id")),
        sa.PrimaryKeyConstraint("cluster_id", "job", "n", name=op.f("pk_decisions")),
    )
    op.create_table(
        "facts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job", sa.String(length=256), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("source", sa.String(length=8), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=True),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("recorded_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["cluster_id"], ["clusters.id"], name=op.f("fk_facts_cluster_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_facts")),
        sa.UniqueConstraint("cluster_id", "digest", name=op.f("uq_facts_cluster_id_digest")),
    )
    with op.batch_alter_table("facts", schema=None) as batch_op:
        batch_op.create_index("ix_facts_job", ["cluster_id", "job"], unique=False)

    op.create_table(
        "holds",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job", sa.String(length=256), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=False),
        sa.Column("group_id", sa.String(length=256), nullable=True),
        sa.Column("user_id", sa.String(length=256), nullable=True),
        sa.Column("gpu_type", sa.String(length=256), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("charged", sa.Boolean(), nullable=False),
        sa.Column("rate_m", sa.BigInteger(), nullable=False),
        sa.Column("since_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["cluster_id"], ["clusters.id"], name=op.f("fk_holds_cluster_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_holds")),
    )
    with op.batch_alter_table("holds", schema=None) as batch_op:
        batch_op.create_index("ix_holds_job", ["cluster_id", "job"], unique=False)

    op.create_table(
        "hours",
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("hour", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("group_id", sa.String(length=256), nullable=False),
        sa.Column("gpu_type", sa.String(length=256), nullable=False),
        sa.Column("charged", sa.Boolean(), nullable=False),
        sa.Column("charge_s", sa.BigInteger(), nullable=False),
        sa.Column("charge_rest", sa.BigInteger(), nullable=False),
        sa.Column("slope", sa.BigInteger(), nullable=False),
        sa.Column("held_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["cluster_id"], ["clusters.id"], name=op.f("fk_hours_cluster_id")),
        sa.PrimaryKeyConstraint("cluster_id", "hour", "group_id", "gpu_type", "charged", name=op.f("pk_hours")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "incarnations",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job", sa.String(length=256), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=False),
        sa.Column("present", sa.Boolean(), nullable=False),
        sa.Column("seen_us", sa.BigInteger(), nullable=True),
        sa.Column("sighted", sa.Text(), nullable=True),
        sa.Column("end_us", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["cluster_id"], ["clusters.id"], name=op.f("fk_incarnations_cluster_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_incarnations")),
        sa.UniqueConstraint("cluster_id", "job", "started_us", name=op.f("uq_incarnations_cluster_id_job_started_us")),
    )
    with op.batch_alter_table("incarnations", schema=None) as batch_op:
        batch_op.create_index("ix_incarnations_end", ["cluster_id", "end_us"], unique=False)
        batch_op.create_index("ix_incarnations_present", ["cluster_id", "present"], unique=False)

    op.create_table(
        "intervals",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job", sa.String(length=256), nullable=False),
        sa.Column("started_us", sa.BigInteger(), nullable=False),
        sa.Column("group_id", sa.String(length=256), nullable=True),
        sa.Column("user_id", sa.String(length=256), nullable=True),
        sa.Column("gpu_type", sa.String(length=256), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("charged", sa.Boolean(), nullable=False),
        sa.Column("rate_m", sa.BigInteger(), nullable=False),
        sa.Column("weight", sa.BigInteger(), nullable=False),
        sa.Column("from_us", sa.BigInteger(), nullable=False),
        sa.Column("to_us", sa.BigInteger(), nullable=False),
        sa.Column("recorded_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["cluster_id"], ["clusters.id"], name=op.f("fk_intervals_cluster_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_intervals")),
    )
    with op.batch_alter_table("intervals", schema=None) as batch_op:
        batch_op.create_index("ix_intervals_from", ["cluster_id", "from_us", "group_id", "weight"], unique=False)
        batch_op.create_index("ix_intervals_job", ["cluster_id", "job"], unique=False)
        batch_op.create_index("ix_intervals_to", ["cluster_id", "to_us", "group_id", "weight"], unique=False)

    op.create_table(
        "jobs",
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job", sa.String(length=256), nullable=False),
        sa.Column("group_id", sa.String(length=256), nullable=False),
        sa.Column("user_id", sa.String(length=256), nullable=True),
        sa.Column("min_runtime_s", sa.BigInteger(), nullable=False),
        sa.Column("declared", sa.Text(), nullable=False),
        sa.Column("first_round", sa.Integer(), nullable=False),
        sa.Column("last_round", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["cluster_id"], ["clusters.id"], name=op.f("fk_jobs_cluster_id")),
        sa.PrimaryKeyConstraint("cluster_id", "job", name=op.f("pk_jobs")),
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index("ix_jobs_present", ["cluster_id", "last_round"], unique=False)

    op.create_table(
        "node_facts",
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("node", sa.String(length=256), nullable=False),
        sa.Column("at_us", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("up", sa.Boolean(), nullable=False),
        sa.Column("recorded_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["cluster_id"], ["clusters.id"], name=op.f("fk_node_facts_cluster_id")),
        sa.PrimaryKeyConstraint("cluster_id", "node", "at_us", "up", name=op.f("pk_node_facts")),
    )
    op.create_table(
        "observations",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job", sa.String(length=256), nullable=False),
        sa.Column("ended_us", sa.BigInteger(), nullable=True),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("recorded_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["cluster_id"], ["clusters.id"], name=op.f("fk_observations_cluster_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_observations")),
        sa.UniqueConstraint("cluster_id", "digest", name=op.f("uq_observations_cluster_id_digest")),
    )
    with op.batch_alter_table("observations", schema=None) as batch_op:
        batch_op.create_index("ix_observations_job", ["cluster_id", "job"], unique=False)

    op.create_table(
        "owed_hours",
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("hour", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("group_id", sa.String(length=256), nullable=False),
        sa.Column("demand", sa.BigInteger(), nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["cluster_id"], ["clusters.id"], name=op.f("fk_owed_hours_cluster_id")),
        sa.PrimaryKeyConstraint("cluster_id", "hour", "group_id", name=op.f("pk_owed_hours")),
    )
    op.create_table(
        "rounds",
        sa.Column("cluster_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("n", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("now_us", sa.BigInteger(), nullable=False),
        sa.Column("state_version", sa.BigInteger(), nullable=False),
        sa.Column("config_version", sa.Integer(), nullable=False),
        sa.Column("idempotency_key", sa.String(length=256), nullable=True),
        sa.Column("body_hash", sa.String(length=64), nullable=False),
        sa.Column("state_hash", sa.String(length=64), nullable=False),
        sa.Column("plan_hash", sa.String(length=64), nullable=False),
        sa.Column("engine_version", sa.String(length=64), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("certificate", sa.Text(), nullable=False),
        sa.Column("groups", sa.Text(), nullable=False),
        sa.Column("occupancy", sa.Text(), nullable=False),
        sa.Column("state", sa.LargeBinary(), nullable=False),
        sa.Column("plan", sa.LargeBinary(), nullable=False),
        sa.Column("recorded_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["cluster_id"], ["clusters.id"], name=op.f("fk_rounds_cluster_id")),
        sa.PrimaryKeyConstraint("cluster_id", "n", name=op.f("pk_rounds")),
        sa.UniqueConstraint("cluster_id", "idempotency_key", name=op.f("uq_rounds_cluster_id_idempotency_key")),
    )


def downgrade() -> None:
    """Take back."""
    op.drop_table("rounds")
    op.drop_table("owed_hours")
    op.drop_table("observations")
    op.drop_table("node_facts")
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_index("ix_jobs_present")

    op.drop_table("jobs")
    with op.batch_alter_table("intervals", schema=None) as batch_op:
        batch_op.drop_index("ix_intervals_to")
        batch_op.drop_index("ix_intervals_job")
        batch_op.drop_index("ix_intervals_from")

    op.drop_table("intervals")
    with op.batch_alter_table("incarnations", schema=None) as batch_op:
        batch_op.drop_index("ix_incarnations_present")
        batch_op.drop_index("ix_incarnations_end")

    op.drop_table("incarnations")
    op.drop_table("hours")
    with op.batch_alter_table("holds", schema=None) as batch_op:
        batch_op.drop_index("ix_holds_job")

    op.drop_table("holds")
    with op.batch_alter_table("facts", schema=None) as batch_op:
        batch_op.drop_index("ix_facts_job")

    op.drop_table("facts")
    op.drop_table("decisions")
    op.drop_table("cluster_versions")
    with op.batch_alter_table("adjustments", schema=None) as batch_op:
        batch_op.drop_index("ix_adjustments_at")

    op.drop_table("adjustments")
    op.drop_table("clusters")
