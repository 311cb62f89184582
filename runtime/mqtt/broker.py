"""Which broker an agent uses: the one given, else a private mosquitto, else the embedded amqtt."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
import time
from pathlib import Path
from typing import Literal

import msgspec

from runtime.abi.errors import BrokerUnavailable
from runtime.mqtt.address import BrokerAddress, Version, parse_address
from runtime.mqtt.connection import Connection

Kind = Literal["mosquitto", "amqtt", "given"]
PRIVATE = "private"
EMBEDDED = "embedded"
OWN = (PRIVATE, EMBEDDED)
"""Addresses that start a broker of the agent's own: the better one of this machine, or amqtt in any case."""
_SBIN = ("/usr/sbin", "/usr/local/sbin")  # not on the path of an ordinary user of Debian
_LOOPBACK = "127.0.0.1"
_CONFIG = """\
# Written by axon at every start.
listener {port} {host}
allow_anonymous true
# Nothing of a private broker outlives its kernel; what must not be lost is in the drivers' spools.
persistence false
# The kernel acknowledges after the disk: no limit on what is under way to it, bounds on what waits for it.
max_inflight_messages 0
max_queued_messages 4096
max_queued_bytes 134217728
max_packet_size 16777216
set_tcp_nodelay true
sys_interval 0
log_dest stderr
log_type error
log_type warning
connection_messages false
"""
# Changing the user, as mosquitto does when started by root, clears the signal by which it dies with its kernel.
_AS_ROOT = "user root\n"


class BrokerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Where the broker is, and what to start for it: ``argv`` None when it is somebody else's."""

    address: BrokerAddress
    kind: Kind
    argv: list[str] | None = None
    files: list[Path] = []


def plan(
    url: str,
    folder: Path,
    *,
    port: int | None = None,
    ca_file: str | None = None,
    version: Version = "3.1.1",
    mosquitto: str | None = None,
) -> BrokerPlan:
    """Decide, and write the private broker's configuration into ``folder``; blocking, before the loop runs.

    ``port`` is the one to use again when a run goes on (None: a free one of loopback). ``mosquitto`` names the
    program, or is "" for none (None: look for it). Raises ``ConfigInvalid`` for a URL that can't be read.
    """
    if url not in OWN:
        return BrokerPlan(address=parse_address(url, ca_file=ca_file, version=version), kind="given")
    address = BrokerAddress(host=_LOOPBACK, port=port or free_port())
    program = find_mosquitto() if mosquitto is None else mosquitto
    if program and url == PRIVATE:
        return _mosquitto(program, folder, address)
    argv = [sys.executable, "-P", "-m", "runtime.mqtt.embedded", str(address.port)]
    return BrokerPlan(address=address, kind="amqtt", argv=argv)


def find_mosquitto() -> str:
    """The path of the mosquitto program, or "" when it isn't installed."""
    return shutil.which("mosquitto") or next(
        (found for folder in _SBIN if (found := shutil.which("mosquitto", path=folder))), ""
    )


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        return int(probe.getsockname()[1])


async def wait_until_up(address: BrokerAddress, *, timeout_s: float = 20.0) -> None:
    """Return when the broker answers; raises ``BrokerUnavailable`` with its last words after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            async with Connection(address.named("")):
                return
        except BrokerUnavailable:
            if time.monotonic() >= deadline:
                raise
        await asyncio.sleep(0.05)


def _mosquitto(program: str, folder: Path, address: BrokerAddress) -> BrokerPlan:
    """The configuration is written anew at each start, so a torn one from a power cut can't matter."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "mosquitto.conf"
    user = _AS_ROOT if os.geteuid() == 0 else ""
    config.write_text(_CONFIG.format(port=address.port, host=address.host) + user)
    return BrokerPlan(address=address, kind="mosquitto", argv=[program, "-c", str(config)], files=[config])
