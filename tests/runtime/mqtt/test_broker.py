"""Which broker is used, and that what is planned really runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime.abi.errors import BrokerUnavailable, ConfigInvalid
from runtime.mqtt.broker import free_port, plan, wait_until_up
from runtime.mqtt.client import BrokerAddress


def test_a_given_broker_is_taken_as_it_is(tmp_path: Path) -> None:
    planned = plan("mqtts://anna:secret@pi", tmp_path, ca_file="ca.pem", version="5")
    assert (planned.kind, planned.argv, planned.files) == ("given", None, [])
    assert (planned.address.host, planned.address.ca_file, planned.address.version) == ("pi", "ca.pem", "5")
    assert list(tmp_path.iterdir()) == []


def test_a_url_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid):
        plan("privat", tmp_path)


def test_without_mosquitto_the_embedded_broker_is_planned(tmp_path: Path) -> None:
    planned = plan("private", tmp_path, port=4711, mosquitto="")
    assert planned.kind == "amqtt"
    assert planned.argv is not None
    assert planned.argv[1:] == ["-P", "-m", "runtime.mqtt.embedded", "4711"]


def test_mosquitto_listens_on_loopback_alone_and_on_the_port_it_had(tmp_path: Path) -> None:
    planned = plan("private", tmp_path / "broker", port=4711, mosquitto="/opt/mosquitto")
    assert (planned.kind, planned.argv) == ("mosquitto", ["/opt/mosquitto", "-c", str(planned.files[0])])
    assert "\nlistener 4711 127.0.0.1\n" in planned.files[0].read_text()


async def test_a_planned_broker_comes_up(own: Any) -> None:
    await wait_until_up(own.address)


async def test_a_broker_that_stays_away_is_an_error() -> None:
    with pytest.raises(BrokerUnavailable):
        await wait_until_up(BrokerAddress(host="127.0.0.1", port=free_port()), timeout_s=0)
