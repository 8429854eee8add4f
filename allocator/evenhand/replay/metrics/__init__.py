"""What a replay is worth: pure functions of its result, and one frozen record of them all."""

from evenhand.replay.metrics.delivery import Delivery, GroupDelivery, HourlyDelivery, delivery, hourly
from evenhand.replay.metrics.measures import ReplayMetrics, WindowEnvy, measure
from evenhand.replay.metrics.waits import Distribution, WaitClass

__all__ = [
    "Delivery",
    "Distribution",
    "GroupDelivery",
    "HourlyDelivery",
    "ReplayMetrics",
    "WaitClass",
    "WindowEnvy",
    "delivery",
    "hourly",
    "measure",
]
