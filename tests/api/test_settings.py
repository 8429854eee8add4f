"""Settings come from EVENHAND_* variables, all faults at once."""

import pytest

from evenhand_api.settings import Settings
from evenhand_models import InvalidInput


def test_nothing_set_means_this_machine_only() -> None:
    settings = Settings.from_environment({"PATH": "/bin"})
    assert (settings.host, settings.port) == ("127.0.0.1", 8080)


def test_every_field_can_be_set() -> None:
    variables = {"EVENHAND_HOST": "::1", "EVENHAND_PORT": "9000", "EVENHAND_MAX_BODY_MB": "1.5"}
    settings = Settings.from_environment(variables)
    assert (settings.host, settings.port, settings.max_body_bytes) == ("::1", 9000, 1_500_000)


def test_all_faults_are_named() -> None:
    with pytest.raises(InvalidInput) as refused:
        Settings.from_environment({"EVENHAND_PORT": "much", "EVENHAND_MAX_CONCURENT": "2"})
    assert {error.pointer for error in refused.value.errors} == {"/EVENHAND_PORT", "/EVENHAND_MAX_CONCURENT"}


def test_what_kubernetes_sets_for_a_service_of_our_name_is_no_setting() -> None:
    variables = {
        "EVENHAND_PORT": "tcp://10.0.0.7:8080",
        "EVENHAND_SERVICE_HOST": "10.0.0.7",
        "EVENHAND_PORT_8080_TCP_ADDR": "10.0.0.7",
    }
    assert Settings.from_environment(variables) == Settings()
