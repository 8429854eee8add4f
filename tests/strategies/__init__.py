"""Random cluster states and policies, and what may be done to them."""

from strategies.clusters import random_state, state_of, states, wire_state
from strategies.profiles import PROFILES, Profile
from strategies.rules import policies, random_policy
from strategies.transforms import (
    Renaming,
    apply_plan,
    changed,
    comparable,
    policy_with,
    shuffled,
    wire_of,
    without_sentences,
)

__all__ = [
    "PROFILES",
    "Profile",
    "Renaming",
    "apply_plan",
    "changed",
    "comparable",
    "policies",
    "policy_with",
    "random_policy",
    "random_state",
    "shuffled",
    "state_of",
    "states",
    "wire_of",
    "wire_state",
    "without_sentences",
]
