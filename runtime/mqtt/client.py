"""The MQTT client of kernel and drivers: a connection that comes back by itself."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

import msgspec

from runtime.abi.errors import BrokerUnavailable
from runtime.mqtt.address import BrokerAddress, parse_address
from runtime.mqtt.connection import Connection, Incoming, Will

__all__ = ["BackOff", "BrokerAddress", "Connection", "Incoming", "Will", "keep_connected", "parse_address"]


class BackOff(msgspec.Struct, frozen=True, kw_only=True):
    """The pauses between attempts, in seconds: doubled from ``first_s`` to ``most_s``, each shortened by chance.

    A connection that held for ``settled_s`` begins anew.
    """

    first_s: float = 0.1
    most_s: float = 5.0
    settled_s: float = 5.0

    def pause_s(self, failures: int, chance: float) -> float:
        """The pause after that many failures in a row (from 1); ``chance`` in 0..1 takes up to half of it."""
        return float(min(self.first_s * 2 ** min(failures - 1, 30), self.most_s)) * (1 - chance / 2)


async def keep_connected(
    address: BrokerAddress,
    serve: Callable[[Connection], Awaitable[None]],
    *,
    will: Will | None = None,
    tell: Callable[[BrokerUnavailable | None], None] | None = None,
    back_off: BackOff | None = None,
) -> None:
    """Run ``serve(connection)`` on a connection, and on a new one whenever it is lost, until ``serve`` returns.

    ``serve`` is cancelled when its connection is lost, and may raise ``BrokerUnavailable`` for the same; any other
    exception of it ends this too. ``tell`` hears None when connected and the error when not. A wrong password is
    tried again like a broker that is away, since either may be mended meanwhile.
    """
    pauses = back_off or BackOff()
    failures = 0
    while True:
        connected_at: float | None = None
        try:
            async with Connection(address, will=will) as connection:
                connected_at = time.monotonic()
                if tell is not None:
                    tell(None)
                await _serve(connection, serve)
                return
        except BrokerUnavailable as error:
            if tell is not None:
                tell(error)
        held = connected_at is not None and time.monotonic() - connected_at >= pauses.settled_s
        failures = 1 if held else failures + 1
        await asyncio.sleep(pauses.pause_s(failures, random.random()))


async def _serve(connection: Connection, serve: Callable[[Connection], Awaitable[None]]) -> None:
    """Run ``serve`` until it ends; raises ``BrokerUnavailable`` if the connection is lost before."""
    serving = asyncio.ensure_future(serve(connection))
    try:
        await asyncio.wait([serving, connection.lost], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
            return
    finally:
        if not serving.done():
            serving.cancel()
            await asyncio.wait([serving])
    if not serving.cancelled():
        serving.result()  # an error while it was being cancelled is its own
    connection.check()
