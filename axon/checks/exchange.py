"""The MQTT broker: which one a start would use, and what it can't promise."""

from __future__ import annotations

import asyncio

from axon.checks.check import Check, held, not_held, warning
from capsule.errors import AxonError
from runtime.abi.errors import BrokerUnavailable
from runtime.config.origin import public_url
from runtime.config.sections import Broker
from runtime.mqtt.address import parse_address
from runtime.mqtt.broker import OWN, PRIVATE, find_mosquitto
from runtime.mqtt.connection import Connection

ANSWER_S = 5.0
_NAME = "broker"
_WITHOUT = (
    "the embedded amqtt, for trying out: messages it hasn't delivered are lost with its process. Stimuli come again "
    "from the drivers' spools; commands and other programs' messages don't"
)


def exchange(broker: Broker) -> Check:
    """The agent's own broker, or the one it was given."""
    if broker.url in OWN:
        return private(find_mosquitto() if broker.url == PRIVATE else "")
    where = public_url(broker.url)
    try:
        asyncio.run(_greet(broker))
    except (AxonError, TimeoutError) as error:
        reason = error.message if isinstance(error, AxonError) else "it doesn't answer"
        fix = "Start it, or correct [broker] url; a running kernel tries again for ever."
        return not_held(_NAME, f"{where}: {reason}", fix=fix, essential=False)
    return held(_NAME, f"{where} answers")


def private(program: str) -> Check:
    """``program`` is the path of mosquitto, or "" where there is none."""
    if program:
        return held(_NAME, f"a private mosquitto: {program}")
    return warning(_NAME, _WITHOUT, fix="sudo apt install mosquitto")


async def _greet(broker: Broker) -> None:
    address = parse_address(broker.url, ca_file=broker.ca_file, version=broker.protocol)
    try:
        async with asyncio.timeout(ANSWER_S), Connection(address.named("")):
            return
    except OSError as error:
        raise BrokerUnavailable(str(error)) from error
