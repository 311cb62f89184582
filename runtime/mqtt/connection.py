"""One MQTT connection: aiomqtt, with paho's manual acknowledgement underneath.

This is the only file that knows of either. aiomqtt connects, subscribes and keeps alive; messages are taken from
its paho client directly, since only there can a message be acknowledged after its entry is durable. What else is
replaced was measured to matter: aiomqtt makes a task for each message, registers the socket for writing for each
packet (a wake-up of the loop and two epoll calls an acknowledgement), and paho builds two large objects for each
published message when anybody listens for that. Without TCP_NODELAY a confirmed message takes 44 ms on loopback.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial
from types import TracebackType
from typing import Any

import aiomqtt
import msgspec
import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from runtime.abi.errors import BrokerUnavailable
from runtime.mqtt.address import BrokerAddress

MAX_UNSENT = 256
"""Packets that may wait for the socket before ``send`` refuses and ``publish`` waits."""
MAX_UNREAD = 1024
"""Messages that may wait for their reader before the socket isn't read any more."""
SESSION_EXPIRY_S = 86_400
_ANSWER_S = 5.0


class Will(msgspec.Struct, frozen=True, kw_only=True):
    """What the broker publishes when this client vanishes without a goodbye."""

    topic: str
    payload: bytes
    qos: int = 1
    retain: bool = True


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """A message. ``ack()`` tells the broker that it is taken care of; after the connection it came by, nothing.

    A topic that isn't UTF-8 has its bad bytes as ``\\xNN``, so that it fits no filter of ours and can be refused.
    """

    topic: str
    payload: bytes
    retained: bool
    qos: int
    ack: Callable[[], None]


class Connection:
    """One connection, from ``async with`` until it is lost or left; another one is another object.

    Everything is called in the event loop's thread. Where the broker is gone, all of it raises
    ``BrokerUnavailable``; ``lost`` is a future that resolves at that moment.
    """

    def __init__(self, address: BrokerAddress, *, will: Will | None = None) -> None:
        self.address = address
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._client = _client(address, will)
        self._paho = self._client._client
        self._arrived: deque[Incoming] = deque()
        self._reason = ""
        self._reader: asyncio.Future[None] | None = None
        self._paused: int | None = None  # the descriptor that isn't read for now
        self._writer: int | None = None  # the descriptor that waits until it can be written
        self._confirmations: dict[int, asyncio.Future[None]] = {}
        self._room: asyncio.Future[None] | None = None
        self._hook()

    def _hook(self) -> None:
        """Take messages and writing into our own hands."""
        self._paho.manual_ack_set(True)
        self._paho.disable_logger()
        self._paho.max_inflight_messages_set(0)
        self._paho.on_publish = None
        self._paho.on_message = self._on_message
        self._paho.on_disconnect = self._on_disconnect
        self._paho.on_socket_register_write = self._on_register_write
        self._paho.on_socket_unregister_write = self._on_unregister_write
        self._paho._ssl_wrap_socket = self._shake_hands  # type: ignore[method-assign, assignment]  # no hook

    def _shake_hands(self, sock: socket.socket) -> ssl.SSLSocket:
        """Begin TLS, in the connecting thread; paho leaves the socket open when a certificate is refused."""
        context = self._paho._ssl_context
        if context is None:
            raise ValueError("TLS without a context")
        secured = context.wrap_socket(sock, server_hostname=self.address.host, do_handshake_on_connect=False)
        try:
            secured.settimeout(_ANSWER_S)
            secured.do_handshake()
        except BaseException:
            secured.close()
            raise
        return secured

    # -- connecting ---------------------------------------------------------------------------------

    async def __aenter__(self) -> Connection:
        """Connect. When cancelled, waits for the connecting thread, which can't be: at most a few seconds."""
        self._client._disconnected.add_done_callback(self._on_disconnected)
        entering = asyncio.ensure_future(self._client.__aenter__())
        try:
            await asyncio.shield(entering)
        except asyncio.CancelledError:
            self._refuse("given up")
            await asyncio.wait([entering])
            if not entering.cancelled():
                entering.exception()
            self._close("the connection was given up")
            raise
        except aiomqtt.MqttError as error:
            self._close(str(error))
            raise _unavailable(self.address, error) from error
        self.check()  # aiomqtt forgets that a connection was lost before it had told that it was there
        self._client._disconnected.add_done_callback(self._on_disconnected)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Say goodbye, after what is still to be sent; give up on a broker that doesn't take it."""
        if not self.lost.done():
            try:
                await self._client.__aexit__(None, None, None)
            except aiomqtt.MqttError:
                self._paho.disconnect()  # told already; the broker doesn't answer, so the socket is closed now
        self._close("the connection was left")

    def _refuse(self, reason: str) -> None:
        """Wake who waits for the broker's answer to the attempt to connect."""
        if not self._client._connected.done():
            self._client._connected.set_exception(aiomqtt.MqttError(reason))

    def _on_disconnect(self, client: paho.Client, data: Any, flags: Any, reason: Any, properties: Any = None) -> None:
        """aiomqtt waits in vain when the broker hangs up instead of answering."""
        self._client._on_disconnect(client, data, flags, reason, properties)
        self._refuse("the broker closed the connection")

    def _on_disconnected(self, disconnected: asyncio.Future[None]) -> None:
        reason = None if disconnected.cancelled() else disconnected.exception()
        self._close(str(reason or "the broker closed the connection"))

    def _close(self, reason: str) -> None:
        """Free the socket and wake everybody who waits; a second call does nothing."""
        self._paho._sock_close()
        if self.lost.done():
            return
        self.lost.set_result(None)
        self._reason = reason
        for waiting in (self._reader, self._room, *self._confirmations.values()):
            if waiting is not None and not waiting.done():
                waiting.set_result(None)

    def check(self) -> None:
        """Raise ``BrokerUnavailable`` if the connection is lost or left."""
        if self.lost.done():
            raise _unavailable(self.address, self._reason)

    # -- receiving ----------------------------------------------------------------------------------

    async def subscribe(self, topic_filter: str, qos: int = 1) -> None:
        """Ask for the messages of a filter."""
        self.check()
        try:
            codes = await self._client.subscribe(topic_filter, qos, timeout=_ANSWER_S)
        except aiomqtt.MqttError as error:
            raise _unavailable(self.address, error) from error
        if any((code if isinstance(code, int) else code.value) >= 0x80 for code in codes):
            raise _unavailable(self.address, f"it refuses the subscription to {topic_filter!r}")

    async def messages(self) -> AsyncIterator[Incoming]:
        """All messages as they come; raises ``BrokerUnavailable`` when the connection is lost. One reader."""
        while True:
            while self._arrived:
                yield self._arrived.popleft()
                if self._paused is not None and len(self._arrived) <= MAX_UNREAD // 2:
                    self._resume()
            self.check()
            self._reader = self._loop.create_future()
            await self._reader

    def _on_message(self, _client: paho.Client, _data: Any, message: paho.MQTTMessage) -> None:
        """Called by paho for each message; must not raise, since that would end the connection."""
        ack: Callable[[], None] = partial(self._ack, message.mid, message.qos) if message.qos else _nothing
        self._arrived.append(
            Incoming(
                topic=message._topic.decode("utf-8", "backslashreplace"),
                payload=bytes(message.payload),
                retained=bool(message.retain),
                qos=message.qos,
                ack=ack,
            )
        )
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
        if len(self._arrived) >= MAX_UNREAD and self._paused is None:
            self._pause()

    def _ack(self, mid: int, qos: int) -> None:
        if not self.lost.done():
            self._paho.ack(mid, qos)

    def _pause(self) -> None:
        """Stop reading the socket: the broker notices, queues, and disconnects us in the end."""
        sock = self._paho.socket()
        if sock is not None:
            self._paused = sock.fileno()
            self._loop.remove_reader(self._paused)

    def _resume(self) -> None:
        sock = self._paho.socket()
        if sock is not None and self._paused == sock.fileno():
            self._loop.add_reader(self._paused, self._read)
        self._paused = None

    def _read(self) -> None:
        """One packet, or as many as TLS has already decoded."""
        self._paho.loop_read()
        sock: Any = self._paho.socket()
        while sock is not None and hasattr(sock, "pending") and sock.pending() > 0:
            self._paho.loop_read()
            sock = self._paho.socket()

    # -- publishing ---------------------------------------------------------------------------------

    @property
    def unsent(self) -> int:
        """Packets that wait for the socket."""
        return len(self._paho._out_packet)

    @property
    def in_flight(self) -> int:
        """Messages of QoS 1 that were sent and that the broker has not acknowledged."""
        return len(self._paho._out_messages)

    def send(self, topic: str, payload: bytes, *, qos: int = 0, retain: bool = False) -> None:
        """Hand a message to the socket without waiting; refuses while ``MAX_UNSENT`` packets wait already."""
        self.check()
        if self.unsent >= MAX_UNSENT:
            raise _unavailable(self.address, f"{self.unsent} packets wait to be sent")
        self._publish(topic, payload, qos=qos, retain=retain)

    async def publish(self, topic: str, payload: bytes, *, qos: int = 0, retain: bool = False) -> None:
        """Publish, waiting for room; with QoS 1 until the broker has acknowledged it."""
        self.check()
        while self.unsent >= MAX_UNSENT:
            if self._room is None or self._room.done():
                self._room = self._loop.create_future()
            await asyncio.shield(self._room)
            self.check()
        mid = self._publish(topic, payload, qos=qos, retain=retain)
        if qos:
            await self._confirmed(mid)

    def _publish(self, topic: str, payload: bytes, *, qos: int, retain: bool) -> int:
        info = self._paho.publish(topic, payload, qos, retain)
        if info.rc != paho.MQTT_ERR_SUCCESS:
            raise _unavailable(self.address, paho.error_string(info.rc))
        return info.mid

    async def _confirmed(self, mid: int) -> None:
        """Wait for the broker's acknowledgement; paho is asked to report them only while somebody waits."""
        confirmation = self._confirmations[mid] = self._loop.create_future()
        self._paho.on_publish = self._on_publish
        try:
            await confirmation
        finally:
            del self._confirmations[mid]
            if not self._confirmations:
                self._paho.on_publish = None
        self.check()

    def _on_publish(self, _client: paho.Client, _data: Any, mid: int, *_rest: Any) -> None:
        confirmation = self._confirmations.get(mid)
        if confirmation is not None and not confirmation.done():
            confirmation.set_result(None)

    # -- writing to the socket ----------------------------------------------------------------------

    def _on_register_write(self, _client: paho.Client, _data: Any, _sock: Any) -> None:
        """Packets wait: write them at the end of this turn of the loop, all at once."""
        if threading.get_ident() == self._thread:
            self._loop.call_soon(self._write)
        else:  # paho connects in a thread
            self._loop.call_soon_threadsafe(self._write)

    def _write(self) -> None:
        """Write what the socket takes, and watch it only if it doesn't take everything."""
        self._paho.loop_write()
        sock = self._paho.socket()
        if sock is not None and self._writer is None and self._paho.want_write():
            self._writer = sock.fileno()
            self._loop.add_writer(self._writer, self._paho.loop_write)
        if self._room is not None and not self._room.done() and self.unsent < MAX_UNSENT:
            self._room.set_result(None)

    def _on_unregister_write(self, _client: paho.Client, _data: Any, _sock: Any) -> None:
        if self._writer is not None:
            self._loop.remove_writer(self._writer)
            self._writer = None
        if self._room is not None and not self._room.done():
            self._room.set_result(None)


def _nothing() -> None:
    """The acknowledgement of a message that has none."""


def _client(address: BrokerAddress, will: Will | None) -> aiomqtt.Client:
    five = address.version == "5"
    properties = None
    if five and not address.clean_session:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # paho left it untyped
        properties.SessionExpiryInterval = SESSION_EXPIRY_S
    return aiomqtt.Client(
        address.host,
        address.port,
        username=address.username,
        password=address.password,
        identifier=address.client_id or None,
        protocol=aiomqtt.ProtocolVersion.V5 if five else aiomqtt.ProtocolVersion.V311,
        clean_session=None if five else address.clean_session,
        clean_start=address.clean_session if five else paho.MQTT_CLEAN_START_FIRST_ONLY,
        properties=properties,
        keepalive=address.keepalive_s,
        timeout=_ANSWER_S,
        socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        tls_params=aiomqtt.TLSParameters(ca_certs=address.ca_file) if address.tls else None,
        will=None if will is None else aiomqtt.Will(will.topic, will.payload, will.qos, will.retain),
    )


def _unavailable(address: BrokerAddress, why: object) -> BrokerUnavailable:
    return BrokerUnavailable(f"the MQTT broker at {address}: {why}", address=str(address))
