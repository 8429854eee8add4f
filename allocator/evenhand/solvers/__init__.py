"""Doors to the solvers: each heavy dependency has one."""
