"""Many replays: scenarios times schedulers times seeds, in processes or on a Ray cluster, kept as they finish."""
