"""The embedded broker for machines without mosquitto, as a program: ``python -m runtime.mqtt.embedded PORT [GRACE_S]``.

It is amqtt with some of its ways changed, each told where it is done. It speaks MQTT 3.1.1, asks for no password,
listens on loopback, and loses what it holds when it ends: what must not be lost is in the drivers' spools.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from typing import Any

import amqtt.broker
import uvloop
from amqtt.contexts import ListenerConfig
from amqtt.errors import AMQTTError
from amqtt.mqtt.protocol.broker_handler import BrokerProtocolHandler
from amqtt.session import OUTGOING, ApplicationMessage, Session

_KEEPALIVE_GRACE_S = 10
_SESSION_KEPT_S = 300


class EmbeddedHandler(BrokerProtocolHandler):  # type: ignore[misc]  # amqtt publishes no types
    """One connection of a client.

    amqtt gives up a message of QoS 1 that isn't acknowledged within 5 s, and forgets all that are under way when
    the connection ends. The kernel acknowledges when the disk has it, so here a message waits as long as its
    connection, and goes out again on the next one of the same session, before anything newer.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._ready = asyncio.Event()
        self._ended = False
        self._again: set[asyncio.Task[Any]] = set()

    def begin(self, waiting: list[ApplicationMessage]) -> None:
        """Let messages out: first those under way when the last connection ended, then those that waited."""
        session = self.session
        if session is not None:
            for message in list(session.inflight_out.values()):
                self._later(self._handle_message_flow(message))
        for message in waiting:
            self._later(super().mqtt_publish(message.topic, message.data, message.qos, retain=False))
        self._ready.set()

    def _later(self, flow: Any) -> None:
        task = asyncio.ensure_future(flow)
        self._again.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._again.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.logger.warning("a message was not delivered again: %r", task.exception())

    async def _retry_deliveries(self) -> None:
        """Left to ``begin``: amqtt waits here for every acknowledgement before it serves the client."""

    async def mqtt_publish(self, *args: Any, **options: Any) -> Any:
        """Nothing overtakes what ``begin`` sends."""
        await self._ready.wait()
        return await super().mqtt_publish(*args, **options)

    async def _handle_qos1_message_flow(self, message: Any) -> None:
        if message.direction != OUTGOING:
            await super()._handle_qos1_message_flow(message)
            return
        session, number = self.session, message.packet_id
        if session is None:
            raise AMQTTError("the connection has ended")
        session.inflight_out[number] = message
        if self._ended:
            return
        packet = message.build_publish_packet(dup=message.publish_packet is not None)
        message.publish_packet = packet
        waiter = self._puback_waiters[number] = asyncio.get_running_loop().create_future()
        await self._send_packet(packet)
        if not self._ended:
            message.puback_packet = await waiter  # cancelled when the connection ends: then it stays under way
            session.inflight_out.pop(number, None)
        self._puback_waiters.pop(number, None)

    async def handle_puback(self, puback: Any) -> None:
        """An acknowledgement that is read after the end of its connection counts too."""
        number = puback.variable_header.packet_id
        waiter = self._puback_waiters.get(number)
        if waiter is not None and not waiter.done():
            waiter.set_result(puback)
        elif self.session is not None:
            self.session.inflight_out.pop(number, None)

    async def stop(self) -> None:
        """Free all that wait for this connection."""
        self._ended = True
        self._ready.set()
        await super().stop()

    def handle_read_timeout(self) -> None:
        """Cut off a client that is silent beyond its keep-alive; amqtt would keep it, and all that is sent to it."""
        if self.writer is not None:
            self.writer._writer.transport.abort()


class EmbeddedBroker(amqtt.broker.Broker):  # type: ignore[misc]  # amqtt publishes no types
    """The broker; sessions without a password are kept like others, which amqtt doesn't do."""

    async def stream_connected(self, reader: Any, writer: asyncio.StreamWriter, listener_name: str) -> None:
        """Close what ends; amqtt leaves the socket of a client open whose first packet is no CONNECT."""
        try:
            await super().stream_connected(reader, writer, listener_name)
        finally:
            writer.close()

    async def _authenticate(self, session: Session, listener: ListenerConfig) -> bool:  # noqa: ARG002 - amqtt's signature
        return True

    async def _publish_session_retained_messages(self, session: Session) -> None:
        """Deliver what waited for the client as what it is; amqtt marks it as retained and blocks until all came."""
        _mark_present(session)
        waiting = []
        while not session.retained_messages.empty():
            waiting.append(session.retained_messages.get_nowait())
        handler = self._get_handler(session)
        if handler is not None:
            handler.begin(waiting)

    async def _handle_disconnect(self, session: Session, handler: Any, waiter: asyncio.Future[Any]) -> None:
        """A session whose connection was replaced stays present; amqtt marks it absent, and delivers no more."""
        await super()._handle_disconnect(session, handler, waiter)
        current, replacement = self._sessions.get(session.client_id, (None, None))
        if current is session and replacement is not handler:
            _mark_present(session)


def _mark_present(session: Session) -> None:
    """The end of its former connection, handled late, may have marked the session absent."""
    if session.transitions.state != "connected":
        session.transitions.connect()


async def serve(host: str, port: int, *, grace_s: int = _KEEPALIVE_GRACE_S) -> None:
    """Run the broker until SIGTERM or SIGINT; clients may be ``grace_s`` late with their keep-alive."""
    amqtt.broker.BrokerProtocolHandler = EmbeddedHandler
    broker = EmbeddedBroker(
        {
            "listeners": {"default": {"type": "tcp", "bind": f"{host}:{port}"}},
            "timeout_disconnect_delay": grace_s,
            "session_expiry_interval": _SESSION_KEPT_S,
            "plugins": {},
        }
    )
    asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    await broker.start()
    await asked.wait()
    await broker.shutdown()


def main() -> None:
    """Start as a program."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    port, grace_s = [*map(int, sys.argv[1:]), _KEEPALIVE_GRACE_S][:2]
    uvloop.run(serve("127.0.0.1", port, grace_s=grace_s))


if __name__ == "__main__":
    main()
