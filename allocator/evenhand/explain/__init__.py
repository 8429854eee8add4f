"""Why: the reasons of every decision, when a wait can end, and what would end it."""

from evenhand.explain.answer import Explanation
from evenhand.explain.explanation import explain
from evenhand.explain.unlocking import unlocks

__all__ = ["Explanation", "explain", "unlocks"]
