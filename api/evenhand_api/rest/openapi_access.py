"""What the service's description says of tokens: which operation needs which scope, and how it is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from evenhand_api.access.grants import Scope
from evenhand_api.rest.problems import Kind
from evenhand_api.rest.rules import RULES, Rule

Node = dict[str, Any]

SECURITY_SCHEMES: Node = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token made by `evenhand token create`, evh_... Not needed where the service listens on its own "
        "machine only, unless it is set to require one.",
    }
}


def add_access(paths: Node, problems: Callable[[list[Kind]], Node]) -> None:
    """Add to every operation what its row in the table of rules asks for.

    Parameters
    ----------
    paths : the document's paths; operations are changed in place.
    problems : writes kinds of problems as responses.
    """
    rules = {(method.lower(), re.sub(r":\w+}", "}", path)): rule for (method, path), rule in RULES.items()}
    for path, item in paths.items():
        for method, operation in item.items():
            rule = rules.get((method, path))
            if rule is None or rule.scope is None:
                continue
            kinds = [Kind.UNAUTHENTICATED, Kind.FORBIDDEN]
            if "requestBody" in operation:
                kinds.append(Kind.TOO_SLOW)
            operation["security"] = [{"token": []}, {}]
            operation["description"] += f" {_needs(rule.scope, rule)}"
            operation["responses"] |= problems(kinds)


def _needs(scope: Scope, rule: Rule) -> str:
    if rule.cut is None:
        return f"Needs a token with the scope {scope}."
    return f"Needs a token with the scope {scope}; one limited to groups gets its part, marked Evenhand-View: part."
