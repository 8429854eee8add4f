"""Judges that try everything, written from docs/model.md alone."""
