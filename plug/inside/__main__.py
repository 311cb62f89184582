"""PID 1's program in the guest: runs the product and sends out of the machine what the product has acknowledged.

What it sends, one JSON object a line, left the machine before the plug was pulled, so the log must hold it:
``said`` (a text that `axon say`'s request was told is durable), ``output`` (an output that reached MQTT, which is
after its commit) and ``committed`` (a sensor's confirmed counter). Order on the kernel's command line: ``run``.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import aiomqtt

from axon.client import Control, running
from runtime.abi.errors import AgentNotRunning

AGENT = Path("/data/agent")
NAME = "plugged"
START_S = 300
PAUSE_S = 0.05
Send = Callable[..., None]


def port() -> Send:
    """The serial port that leads out; what is written there is unbuffered."""
    for name in Path("/sys/class/virtio-ports").glob("*/name"):
        if name.read_text().strip() == "acks":
            out = os.open(f"/dev/{name.parent.name}", os.O_WRONLY)
            return lambda **what: _write_whole(out, json.dumps(what).encode() + b"\n")
    raise RuntimeError("the guest has no port named acks")


def _write_whole(out: int, line: bytes) -> None:
    while line:
        line = line[os.write(out, line) :]


async def listen(send: Send) -> None:
    """Pass on what the broker is told; both topics carry only what is durable."""
    address = urlsplit(running(AGENT).broker)
    while True:
        try:
            await _listen(address.hostname or "", address.port or 1883, send)
        except aiomqtt.MqttError:
            await asyncio.sleep(0.2)  # the broker is younger than the control socket


async def _listen(host: str, port_number: int, send: Send) -> None:
    async with aiomqtt.Client(host, port_number) as client:
        await client.subscribe(f"axon/{NAME}/output/#")
        await client.subscribe(f"axon/{NAME}/committed/#")
        async for message in client.messages:
            kind, rest = message.topic.value.removeprefix(f"axon/{NAME}/").split("/", 1)
            assert isinstance(message.payload, bytes)
            send(kind=kind, channel=rest.rpartition("/")[2], what=json.loads(message.payload))


def talk(send: Send) -> None:
    """Say something again and again; each answer means that it is on the disk."""
    with Control(AGENT, timeout_s=START_S) as control:
        for number in range(10**9):
            text = f"{time.monotonic_ns()}-{number}"
            answer = control.ask("say", text=text, channel="person", source="witness")
            send(kind="said", seq=answer["seq"], what=text)
            time.sleep(PAUSE_S)


def start() -> subprocess.Popen[bytes]:
    """The product, as a user starts it."""
    return subprocess.Popen([sys.executable, "-P", "-m", "axon", "run", str(AGENT), "--no-status"])


def wait_until_it_serves(product: subprocess.Popen[bytes]) -> None:
    """Until the control socket answers."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and product.poll() is None:
        try:
            with Control(AGENT, timeout_s=START_S):
                return
        except AgentNotRunning:
            time.sleep(0.1)
    raise RuntimeError(f"the product doesn't serve (exit {product.poll()})")


async def main() -> None:
    """Never returns in order: the plug is pulled."""
    send = port()
    send(kind="booted", what=time.monotonic())
    product = start()
    wait_until_it_serves(product)
    send(kind="serving", what=time.monotonic())
    listening = asyncio.create_task(listen(send))
    talking = asyncio.create_task(asyncio.to_thread(talk, send))
    await asyncio.wait([listening, talking], return_when=asyncio.FIRST_COMPLETED)
    send(kind="broken", what=f"{listening} {talking} {product.poll()}")
    await asyncio.sleep(1e9)


asyncio.run(main())
