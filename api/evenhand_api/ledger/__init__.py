"""The ledger: who held which GPUs when, what was decided, and what it was charged. SQLite or PostgreSQL."""
