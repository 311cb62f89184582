"""Addresses of brokers, as people write them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.abi.errors import ConfigInvalid
from runtime.mqtt.address import BrokerAddress, parse_address


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mqtt://pi", BrokerAddress(host="pi")),
        ("mqtt://pi:99/", BrokerAddress(host="pi", port=99)),
        ("mqtts://pi", BrokerAddress(host="pi", port=8883, tls=True)),
        ("mqtt://anna:se%40cret@pi", BrokerAddress(host="pi", username="anna", password="se@cret")),
        ("mqtt://anna@[::1]:99", BrokerAddress(host="::1", port=99, username="anna")),
    ],
)
def test_a_url_is_read(url: str, expected: BrokerAddress) -> None:
    assert parse_address(url) == expected


@pytest.mark.parametrize(
    "url",
    ["", "pi", "http://pi", "mqtt://", "mqtt://:99", "mqtt://pi:99999", "mqtt://pi:x", "mqtt://pi/a", "mqtt://pi?a=1"],
)
def test_a_bad_url_is_an_error_of_the_configuration(url: str) -> None:
    with pytest.raises(ConfigInvalid) as error:
        parse_address(url)
    assert error.value.facts == {"key": "broker.url"}


def test_no_text_shows_the_password() -> None:
    address = parse_address("mqtt://anna:secret@pi")
    assert str(address) == "mqtt://anna@pi:1883"
    assert "secret" not in repr(address) + str([address])
    with pytest.raises(ConfigInvalid) as error:
        parse_address("mqtt://anna:secret@pi:x")
    assert "secret" not in str(error.value)


def test_an_address_crosses_to_a_driver_as_json() -> None:
    address = parse_address("mqtts://anna:secret@pi", ca_file="ca.pem", version="5").named("a", clean_session=False)
    assert msgspec.json.decode(msgspec.json.encode(address), type=BrokerAddress) == address


def test_a_kept_session_needs_a_name() -> None:
    with pytest.raises(ValueError, match="client_id"):
        BrokerAddress(host="pi", clean_session=False)


@given(st.text(max_size=40) | st.text(max_size=30).map(lambda text: f"mqtt://{text}"))
def test_any_text_is_an_address_or_an_error(url: str) -> None:
    try:
        address = parse_address(url)
    except ConfigInvalid:
        return
    assert address.host
    assert 0 <= address.port <= 65_535
