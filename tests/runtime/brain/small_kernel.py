"""A small real kernel for tests: an in-memory log, the link, a page thread, a store; durability can be held back."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from capsule.errors import AxonError
from capsule.frames import FrameSplitter, Hello, frame, receive_frame
from capsule.result import RunResult
from runtime.abi import entries as e
from runtime.abi import link
from runtime.abi.clock import mono_us, wall_ms
from runtime.abi.errors import EntryInvalid, KnowledgeNotFound, to_wire
from runtime.abi.ids import uuid7
from runtime.brain.brain import run_brain

PATIENCE_S = 20.0
_Message = TypeVar("_Message")


class SmallLog:
    """Rows in memory, the first at seq 1; pages are served from a thread."""

    def __init__(self) -> None:
        self.rows: list[link.Row] = []
        self.pages_served = 0

    @property
    def last_seq(self) -> int:
        return len(self.rows)

    def admit(self, type_: str, data: Any, *, wake_id: str | None = None, cursor: int | None = None) -> link.Row:
        row = link.Row(self.last_seq + 1, type_, body_of(type_, data, wake_id=wake_id, cursor=cursor))
        self.rows.append(row)
        return row

    def entries(self) -> list[e.Entry]:
        return [e.decode(row.body, row.seq) for row in self.rows]

    def page(self, request: link.PageRequest) -> link.Page:
        rows = self.rows[request.after : min(request.upto, request.after + request.limit)]
        bodies = b"[" + b",".join(row.body for row in rows) + b"]"
        return link.Page(request.after + 1, len(rows), bodies)

    def serve_pages(self, sock: socket.socket) -> threading.Thread:
        thread = threading.Thread(target=self._serve_pages, args=(sock,), daemon=True)
        thread.start()
        return thread

    def _serve_pages(self, sock: socket.socket) -> None:
        encoder = msgspec.msgpack.Encoder()
        with sock, contextlib.suppress(OSError):
            hello = receive_frame(sock)
            if hello is None:
                return
            assert msgspec.msgpack.decode(hello, type=Hello).protocol == link.PAGE_PROTOCOL
            sock.sendall(frame(encoder.encode(Hello(protocol=link.PAGE_PROTOCOL))))
            while (payload := receive_frame(sock)) is not None:
                page = self.page(msgspec.msgpack.decode(payload, type=link.PageRequest))
                self.pages_served += 1
                sock.sendall(frame(encoder.encode(page)))


def body_of(type_: str, data: Any, *, wake_id: str | None = None, cursor: int | None = None) -> bytes:
    try:
        payload = msgspec.convert(data, e.PAYLOAD_CLASSES[type_])
    except (msgspec.ValidationError, KeyError) as error:
        raise EntryInvalid(f"{type_}: {error}") from error
    context = e.EntryContext(agent_id="a", session_id="s", boot_id="b", wake_id=wake_id, cursor=cursor)
    time = e.EntryTime(ms=wall_ms(), mono_us=mono_us())
    return e.encode_body(e.ENTRY_CLASSES[type_](id=uuid7(), time=time, context=context, data=payload))


def entry_of(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "description": "", "size": len(text.encode()), "path": f"/knowledge/{name}"}


class SmallKernel(asyncio.Protocol):
    """One kernel for any number of brains after each other."""

    def __init__(self, folder: Path, *, mode: str = "continuous", **welcome: Any) -> None:
        self.folder = folder
        self.log = SmallLog()
        self.store: dict[str, Any] = {}
        self.knowledge: dict[str, str] = {}
        self.base = ""
        self.messages: list[link.FromBrain] = []
        self.told: list[Any] = []
        self.hold_outputs = False
        self.hold_runs = False
        self.run_error: AxonError | None = None
        self.held: list[link.Reply] = []
        self.wakes = 0
        self.settled_seq = 0
        self.resident = 1024
        self.brain: asyncio.Task[None] | None = None
        self.closed = asyncio.Event()
        self._given = {"mode": mode, **welcome}
        self._heard = asyncio.Event()
        self._decoder = msgspec.msgpack.Decoder(link.FromBrain)
        self._encoder = msgspec.msgpack.Encoder()

    # -- lives of the brain ------------------------------------------------------------------------

    async def sockets(self) -> tuple[socket.socket, socket.socket]:
        """The brain's ends of a new link and page socket."""
        mine, link_end = socket.socketpair()
        pages, page_end = socket.socketpair()
        self.log.serve_pages(pages)
        self._splitter = FrameSplitter()
        self._greeted = False
        self.messages.clear()
        self.told.clear()
        self.closed.clear()
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=mine)
        return link_end, page_end

    async def start(self, *, until_loaded: bool = True) -> None:
        """A brain in this loop."""
        ends = await self.sockets()
        self.brain = asyncio.get_running_loop().create_task(run_brain(*ends))
        self.brain.add_done_callback(lambda _: self._heard.set())
        if until_loaded:
            await self.until(link.Loaded)

    async def stop(self, grace_s: float = 5.0) -> None:
        """Shut the brain down in order."""
        assert self.brain is not None
        self.write(link.Stop(grace_s))
        await asyncio.wait_for(self.brain, PATIENCE_S)

    async def kill(self) -> None:
        """End the brain as a crash would."""
        self.transport.abort()
        if self.brain is not None:
            await asyncio.wait([self.brain], timeout=PATIENCE_S)
            with contextlib.suppress(AxonError):
                self.brain.result()

    # -- what a test looks at ----------------------------------------------------------------------

    def all(self, kind: type[_Message]) -> list[_Message]:
        return [message for message in self.messages if isinstance(message, kind)]

    def spans(self, prefix: str) -> list[Any]:
        return [event for event in self.told if event.type.startswith(prefix)]

    async def until(self, wanted: type[Any] | Callable[[], Any], count: int = 1) -> Any:
        """Wait until that many messages of a kind came, or until the function says something true."""
        ready = (lambda: len(self.all(wanted)) >= count) if isinstance(wanted, type) else wanted
        async with asyncio.timeout(PATIENCE_S):
            while not (result := ready()):
                if self.brain is not None and self.brain.done():
                    self.brain.result()
                self._heard.clear()
                await self._heard.wait()
        return self.all(wanted)[count - 1] if isinstance(wanted, type) else result

    async def breathe(self) -> None:
        """Let the brain and its threads have their turn."""
        await asyncio.sleep(0.0005)

    # -- what a test does --------------------------------------------------------------------------

    def admit(self, type_: str, data: Any, **context: Any) -> int:
        """An entry as the kernel admits it: kept, and streamed to the brain."""
        row = self.log.admit(type_, data, **context)
        self.write(link.Entries([row]))
        return row.seq

    def say(self, content: str, channel: str = "user") -> int:
        return self.admit("cognet:stimulus:text", {"source": {"channel": channel}, "content": content})

    def sense(self, value: float, channel: str = "host.cpu") -> int:
        return self.admit("cognet:stimulus:field", {"source": {"channel": channel}, "reading": {"value": value}})

    def transient(self, value: float, channel: str = "fast") -> None:
        data = {"source": {"channel": channel}, "reading": {"value": value}}
        self.write(link.Entries([link.Row(0, "cognet:stimulus:field", body_of("cognet:stimulus:field", data))]))

    def interrupt(self) -> int:
        return self.admit("axon:interrupt", {"by": "test"})

    def release(self) -> None:
        """Everything held is durable now."""
        held, self.held = self.held, []
        self.hold_outputs = False
        for reply in held:
            self.write(reply)

    def write(self, message: Any) -> None:
        self.transport.write(frame(self._encoder.encode(message)))

    # -- the protocol ------------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.write(Hello(protocol=link.LINK_PROTOCOL))

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()
        self._heard.set()

    def data_received(self, data: bytes) -> None:
        for payload in self._splitter.feed(data):
            if self._greeted:
                self._take(self._decoder.decode(payload))
            else:
                assert msgspec.msgpack.decode(payload, type=Hello).protocol == link.LINK_PROTOCOL
                self._greeted = True
                self._greet()
        self._heard.set()

    def _greet(self) -> None:
        given = {
            "agent_id": "a",
            "session_id": "s",
            "boot_id": "b",
            "wake_on": ["text"],
            "max_ticks_per_wake": 32,
            "store": {"checkpoint": "dict", "checkpoint-{session}": "dict"},
            "wakes": self.wakes,
            "last_seq": self.log.last_seq,
            "first_seq": 1,
            "settled_seq": self.settled_seq,
            "window_entries": 20000,
            "heartbeat_s": 2.0,
            "max_overlap": 64,
            "cognet": "test",
            "cognet_path": str(self.folder),
        } | self._given
        self.write(link.Welcome(**given))
        tail = self.log.rows[-self.resident :] if self.resident else []
        self.write(link.Entries(tail))

    def _take(self, message: link.FromBrain) -> None:
        self.messages.append(message)
        match message:
            case link.Told(events):
                self.told += events
            case link.Admitted():
                self.wakes = message.ordinal
            case link.Call():
                self._call(message)

    def _call(self, call: link.Call) -> None:
        value: Any = None
        rows: list[link.Row] = []
        try:
            match call.verb, call.args:
                case "output", [type_, data] if self.hold_outputs:
                    self.admit(type_, data, wake_id=call.wake_id, cursor=call.cursor)
                case "output", [type_, data]:  # its row comes with the reply
                    rows.append(self.log.admit(type_, data, wake_id=call.wake_id, cursor=call.cursor))
                case "settle", [upto_seq]:
                    self.settled_seq = upto_seq
                    self.admit("axon:agent:settled", {"upto_seq": upto_seq})
                case "store.get", [key]:
                    value = self.store.get(key)
                case "store.set", [key, new]:
                    self.store[key] = new
                case "knowledge.list", [_, limit]:
                    value = [entry_of(name, text) for name, text in sorted(self.knowledge.items())][:limit]
                case "knowledge.read", [name]:
                    value = self.knowledge.get(name)
                    if value is None:
                        raise KnowledgeNotFound(f"there is no entry {name}")
                case "knowledge.write", [name, text]:
                    self.knowledge[name] = text
                case "knowledge.remove", [name]:
                    self.knowledge.pop(name, None)
                case "base", []:
                    value = self.base
                case "run", [codes]:
                    if self.run_error:
                        raise self.run_error
                    value = [RunResult(ok=True, value=code) for code in codes]
        except AxonError as error:
            self.write(link.Reply(call.call, None, to_wire(error)))
            return
        reply = link.Reply(call.call, value, rows=rows)
        if call.verb == "output" and self.hold_outputs:
            self.held.append(reply)
        elif call.verb == "run" and self.hold_runs:
            return
        else:
            self.write(reply)
