"""Alembic's migrations of the ledger; they run when the service starts."""
