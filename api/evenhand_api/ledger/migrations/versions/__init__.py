"""One module a step, each with its upgrade and downgrade."""
