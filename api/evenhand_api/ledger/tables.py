"""The tables of the ledger. `migrations/` builds them; a test holds the two together.

Instants are microseconds since 1970 (`_us`), rates thousandths (`rate_m`). Charges are thousandths of a charged
GPU times seconds (`charge_s`) and, apart, the microseconds that make no whole second (`charge_rest`):
``charge_s * 10**6 + charge_rest`` is exact, and no sum of it leaves 64 bits.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMING)

BigId = BigInteger().with_variant(Integer, "sqlite")
"""A number the database gives: SQLite only does so for INTEGER."""
Name = String(256)
Digest = String(64)


def _cluster(primary_key: bool = False) -> Column[int]:
    return Column("cluster_id", ForeignKey("clusters.id"), nullable=False, primary_key=primary_key)


tokens = Table(
    "tokens",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("digest", Digest, nullable=False),
    Column("label", Name, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("cluster", Name),
    Column("groups", Text),
    Column("created_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger),
    Column("revoked_us", BigInteger),
)
"""Who may ask what. `digest` is SHA-256 of the secret, `scopes` and `groups` JSON lists; `groups` unset: the whole tree."""

clusters = Table(
    "clusters",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("name", Name, nullable=False, unique=True),
    Column("state_version", BigInteger, nullable=False),
    Column("config_version", Integer, nullable=False),
    Column("last_round", Integer, nullable=False),
    Column("last_now_us", BigInteger),
    Column("nodes", Text, nullable=False),
    Column("down", Text, nullable=False),
    Column("kept_from_us", BigInteger, nullable=False, server_default="0"),
)
"""One row a cluster: versions, the last round, the nodes as they are (JSON), those the last round saw down (JSON),
and from when on the ledger is whole (what was before may have been forgotten)."""

cluster_versions = Table(
    "cluster_versions",
    metadata,
    _cluster(primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("document", Text, nullable=False),
    Column("recorded_us", BigInteger, nullable=False),
)
"""Every configuration a cluster ever had: types, nodes, tree, policy (JSON)."""

jobs = Table(
    "jobs",
    metadata,
    _cluster(primary_key=True),
    Column("job", Name, primary_key=True),
    Column("group_id", Name, nullable=False),
    Column("user_id", Name),
    Column("min_runtime_s", BigInteger, nullable=False),
    Column("declared", Text, nullable=False),
    Column("first_round", Integer, nullable=False),
    Column("last_round", Integer),
    Index("ix_jobs_present", "cluster_id", "last_round"),
)
"""Every job a round has listed, what it declared (JSON); `last_round` is unset while the latest round lists it."""

observations = Table(
    "observations",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    _cluster(),
    Column("job", Name, nullable=False),
    Column("ended_us", BigInteger),
    Column("payload", Text, nullable=False),
    Column("digest", Digest, nullable=False),
    Column("recorded_us", BigInteger, nullable=False),
    UniqueConstraint("cluster_id", "digest"),
    Index("ix_observations_job", "cluster_id", "job"),
)
"""What was measured of jobs: work done on GPUs of a type in some time (JSON)."""

facts = Table(
    "facts",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    _cluster(),
    Column("job", Name, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("source", String(8), nullable=False),
    Column("started_us", BigInteger),
    Column("at_us", BigInteger, nullable=False),
    Column("payload", Text, nullable=False),
    Column("digest", Digest, nullable=False),
    Column("recorded_us", BigInteger, nullable=False),
    UniqueConstraint("cluster_id", "digest"),
    Index("ix_facts_job", "cluster_id", "job"),
)
"""What was reported about jobs, append-only, each fact once: the evidence that intervals follow from."""

node_facts = Table(
    "node_facts",
    metadata,
    _cluster(primary_key=True),
    Column("node", Name, primary_key=True),
    Column("at_us", BigInteger, primary_key=True, autoincrement=False),
    Column("up", Boolean, primary_key=True),
    Column("recorded_us", BigInteger, nullable=False),
)
"""When nodes went down and came back, append-only."""

incarnations = Table(
    "incarnations",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    _cluster(),
    Column("job", Name, nullable=False),
    Column("started_us", BigInteger, nullable=False),
    Column("present", Boolean, nullable=False),
    Column("seen_us", BigInteger),
    Column("sighted", Text),
    Column("end_us", BigInteger),
    UniqueConstraint("cluster_id", "job", "started_us"),
    Index("ix_incarnations_present", "cluster_id", "present"),
    Index("ix_incarnations_end", "cluster_id", "end_us"),
)
"""One row a start of a job: whether the latest round shows it, when it was last seen, its end as derived."""

intervals = Table(
    "intervals",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    _cluster(),
    Column("job", Name, nullable=False),
    Column("started_us", BigInteger, nullable=False),
    Column("group_id", Name),
    Column("user_id", Name),
    Column("gpu_type", Name, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("charged", Boolean, nullable=False),
    Column("rate_m", BigInteger, nullable=False),
    Column("weight", BigInteger, nullable=False),
    Column("from_us", BigInteger, nullable=False),
    Column("to_us", BigInteger, nullable=False),
    Column("recorded_us", BigInteger, nullable=False),
    Index("ix_intervals_job", "cluster_id", "job"),
    Index("ix_intervals_from", "cluster_id", "from_us", "group_id", "weight"),
    Index("ix_intervals_to", "cluster_id", "to_us", "group_id", "weight", "from_us"),
)
"""Occupancy, append-only. A correction is a row of negative `gpus`. `weight` is gpus x rate_m, 0 if not charged."""

holds = Table(
    "holds",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    _cluster(),
    Column("job", Name, nullable=False),
    Column("started_us", BigInteger, nullable=False),
    Column("group_id", Name),
    Column("user_id", Name),
    Column("gpu_type", Name, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("charged", Boolean, nullable=False),
    Column("rate_m", BigInteger, nullable=False),
    Column("since_us", BigInteger, nullable=False),
    Index("ix_holds_job", "cluster_id", "job"),
)
"""Occupancy that goes on: becomes an interval once its end is known."""

hours = Table(
    "hours",
    metadata,
    _cluster(primary_key=True),
    Column("hour", Integer, primary_key=True, autoincrement=False),
    Column("group_id", Name, primary_key=True),
    Column("gpu_type", Name, primary_key=True),
    Column("charged", Boolean, primary_key=True),
    Column("charge_s", BigInteger, nullable=False),
    Column("charge_rest", BigInteger, nullable=False),
    Column("slope", BigInteger, nullable=False),
    Column("held_us", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""Roll-up of the intervals by hour since 1970. `slope` is the weight of what began before the hour and ends in or after it,
`held_us` GPUs x microseconds; the group of work that is counted nowhere is the empty name."""

days = Table(
    "days",
    metadata,
    _cluster(primary_key=True),
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("group_id", Name, primary_key=True),
    Column("charge_s", BigInteger, nullable=False),
    Column("charge_rest", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""Charges of the hours summed by day since 1970 and group: what makes long windows cheap."""

fading = Table(
    "fading",
    metadata,
    _cluster(primary_key=True),
    Column("half_us", BigInteger, nullable=False),
    Column("until_us", BigInteger, nullable=False),
    Column("amounts", Text, nullable=False),
)
"""What closed intervals are worth at an instant under the half-life in force, by group (JSON); no row: none is."""

adjustments = Table(
    "adjustments",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    _cluster(),
    Column("group_id", Name, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("charge_s", BigInteger, nullable=False),
    Column("charge_rest", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("author", Name, nullable=False),
    Column("recorded_us", BigInteger, nullable=False),
    Index("ix_adjustments_at", "cluster_id", "at_us"),
)
"""What somebody added to a group's usage or took off it, why, and who it was."""

rounds = Table(
    "rounds",
    metadata,
    _cluster(primary_key=True),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("now_us", BigInteger, nullable=False),
    Column("state_version", BigInteger, nullable=False),
    Column("config_version", Integer, nullable=False),
    Column("idempotency_key", String(256)),
    Column("body_hash", Digest, nullable=False),
    Column("state_hash", Digest, nullable=False),
    Column("plan_hash", Digest, nullable=False),
    Column("engine_version", String(64), nullable=False),
    Column("policy", Text, nullable=False),
    Column("certificate", Text, nullable=False),
    Column("groups", Text, nullable=False),
    Column("occupancy", Text, nullable=False),
    Column("state", LargeBinary, nullable=False),
    Column("plan", LargeBinary, nullable=False),
    Column("recorded_us", BigInteger, nullable=False),
    UniqueConstraint("cluster_id", "idempotency_key"),
)
"""Every round: what went in, what came out (JSON; `state` and `plan` packed with zlib)."""

decisions = Table(
    "decisions",
    metadata,
    _cluster(primary_key=True),
    Column("job", Name, primary_key=True),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("action", String(16), nullable=False),
    Column("assignment", Text, nullable=False),
)
"""What rounds decided to change (start, migrate, resize, preempt, infeasible), with all reasons (JSON)."""

owed_hours = Table(
    "owed_hours",
    metadata,
    _cluster(primary_key=True),
    Column("hour", Integer, primary_key=True, autoincrement=False),
    Column("group_id", Name, primary_key=True),
    Column("demand", BigInteger, nullable=False),
    Column("due", BigInteger, nullable=False),
)
"""By hour and group: what its jobs could have held and its product of shares of the cluster, in thousandths of a
charged GPU times seconds."""
