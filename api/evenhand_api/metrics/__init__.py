"""What Prometheus reads: requests, rounds, processes, and what groups were owed and received."""

from evenhand_api.metrics.figures import Figures
from evenhand_api.metrics.instruments import Metrics

__all__ = ["Figures", "Metrics"]
