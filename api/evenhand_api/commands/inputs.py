"""A state and the policy to decide by, from the files of a command line."""

from __future__ import annotations

import json

from evenhand_api.commands.terminal import read_input
from evenhand_models import AllocateRequest, InvalidInput, parse_document, parse_policy, parse_request
from evenhand_models.parse import read_json


def read_request(state_path: str, policy_path: str | None) -> AllocateRequest:
    """Read STATE (a state or a whole request) and the policy, which replaces the one in the request.

    Raises
    ------
    InvalidInput
        If anything is wrong with either. Pointers are relative to the file; with a policy of its own they are
        relative to the request both make: /state/... and /policy/....
    """
    body = read_input(state_path)
    if policy_path is None:
        return parse_document(body)
    policy_body = read_input(policy_path)
    document = read_json(body)
    try:
        parse_policy(policy_body)
    except InvalidInput as invalid:
        raise invalid.under("/policy") from None
    if isinstance(document, dict) and "state" not in document:
        document = {"state": document}
    if isinstance(document, dict):
        document["policy"] = read_json(policy_body)
    return parse_request(json.dumps(document).encode())
