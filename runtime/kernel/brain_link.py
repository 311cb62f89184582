"""The kernel's end of the brain: streams entries to it, serves its calls, counts its wakes, notices its silence."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar, cast

import msgspec

from capsule.errors import AxonError, FrameInvalid
from capsule.frames import FrameSplitter, Hello, frame
from runtime.abi.clock import mono_us
from runtime.abi.entries import OUTPUT_PREFIX, PAYLOAD_CLASSES
from runtime.abi.errors import CallCancelled, CallInvalid, EntryTypeUnknown, LogBacklogFull, from_wire, to_wire
from runtime.abi.link import (
    LINK_PROTOCOL,
    Admitted,
    Call,
    Cancel,
    Ended,
    Engines,
    FromBrain,
    FromKernel,
    Heartbeat,
    Loaded,
    LoadFailed,
    Missed,
    Part,
    Reply,
    Retired,
    Row,
    Scoped,
    Stop,
    Stopped,
    Told,
    Welcome,
)
from runtime.abi.payloads import Settled
from runtime.abi.telemetry import COGNET_MAY_EMIT, TelemetryEvent, check
from runtime.kernel.brain_stream import BrainStream, Until
from runtime.log.log import Log

MAX_UNREAD_BYTES = 8 * 1024 * 1024
MESSAGES_A_TURN = 128
MAX_CALLS = 256
QUICK_US = 2000
"""While outputs are durable so soon, a lone one's row waits for its reply."""
RESULT = "cognet:action:result"
TICKS = "cognet:tick:"
OUTPUT_TYPES = tuple(type_ for type_ in PAYLOAD_CLASSES if type_.startswith(OUTPUT_PREFIX))

Verb = Callable[[Call, Callable[[Any], None]], Awaitable[Any]]
"""Serves one call: given the call and what sends a ``Part`` of its answer, it returns the answer.

It raises ``AxonError`` for what it refuses. A ``Cancel`` of the call cancels it, and so does the end of the brain.
"""


class BrainEvents(Protocol):
    """What the kernel wants to hear of the brain."""

    def brain_loaded(self, message: Loaded) -> None:
        """The boot hooks are done."""

    def brain_failed(self, error: AxonError) -> None:
        """The cognet can't be loaded."""

    def wake_began(self, message: Admitted) -> None:
        """A wake was admitted."""

    def wake_ended(self, message: Ended) -> None:
        """A wake ended."""

    def wakes_missed(self, message: Missed) -> None:
        """A clock skipped, or an admission waited."""

    def brain_told(self, event: TelemetryEvent) -> None:
        """Checked telemetry of the cognet."""

    def brain_refused(self, error: AxonError) -> None:
        """The brain broke the protocol; it is about to be killed."""


class BrainLink(asyncio.Protocol):
    """One life of the brain's connection."""

    def __init__(
        self, *, log: Log, verbs: Mapping[str, Verb], welcome: Callable[[], Welcome], events: BrainEvents
    ) -> None:
        self._log = log
        self._verbs = verbs
        self._welcome = welcome
        self._events = events
        self._splitter = FrameSplitter()
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(FromBrain)
        self._transport: asyncio.Transport | None = None
        self._stream = BrainStream(self._write_entries)
        self._quick = False  # the last output was durable within QUICK_US
        self._greeted = False
        self._serving_calls: dict[int, asyncio.Task[None]] = {}
        self.heard_us = self.began_us = mono_us()
        self.loaded = False
        self._unserved: deque[bytes] = deque()
        self._serving = self._paused = self._refused = False
        self.left_us: int | None = None
        self.stopped = asyncio.Event()

    # -- the connection ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say hello; the rest waits for the brain's own."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports don't inherit from asyncio's
        self._transport.set_write_buffer_limits(0)  # so that uvloop writes at once, not at the end of the turn
        self._write(Hello(protocol=LINK_PROTOCOL, pid=os.getpid()))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's own signature)
        """The brain is gone; nobody waits for the calls that still run."""
        self._transport = None
        for task in self._serving_calls.values():
            task.cancel()
        self.left_us = mono_us()
        self.stopped.set()

    def data_received(self, data: bytes) -> None:
        """Every message in its order; garbage ends the connection and the brain."""
        if self._refused:
            return  # it may still arrive, and was told of
        self.heard()
        try:
            self._unserved.extend(self._splitter.feed(data))
        except FrameInvalid as error:
            self._refuse(error)
        if not self._serving:
            self._serve()

    def _serve(self) -> None:
        """Some messages a turn of the loop: a brain that floods delays itself, not the sensors or a stop."""
        self._serving = False
        for _ in range(min(len(self._unserved), MESSAGES_A_TURN)):
            try:
                self._take(self._unserved.popleft())
            except Exception as error:  # noqa: BLE001 - whatever a brain's bytes can cause ends that brain alone
                self._refuse(error)
                return
        self._log.hand_over()
        if self._transport is None:
            return
        if self._unserved:
            if not self._paused:
                self._transport.pause_reading()
            self._paused = self._serving = True
            asyncio.get_running_loop().call_soon(self._serve)
        elif self._paused:
            self._paused = False
            self._transport.resume_reading()

    def _refuse(self, error: Exception) -> None:
        self._refused = True
        self._unserved.clear()
        refusal = error if isinstance(error, AxonError) else FrameInvalid(f"the brain sent {error!r}"[:500])
        self._events.brain_refused(refusal)
        self.close()

    def close(self) -> None:
        """End this connection."""
        if self._transport:
            self._transport.abort()

    def stop(self, grace_s: float) -> None:
        """Ask the brain to shut down; ``stopped`` is set when it did or is gone."""
        if self._transport is None or not self.loaded:
            self.stopped.set()
        else:
            self._write(Stop(grace_s))

    def heard(self) -> None:
        """The brain is alive; the page server's thread says so too."""
        self.heard_us = mono_us()

    @property
    def connected(self) -> bool:
        """Whether a brain is at the other end."""
        return self._transport is not None

    @property
    def drowning(self) -> bool:
        """Whether the brain has stopped reading."""
        return self._transport is not None and self._transport.get_write_buffer_size() > MAX_UNREAD_BYTES

    # -- entries -----------------------------------------------------------------------------------

    def stream(self, rows: list[Row]) -> None:
        """Entries were admitted."""
        if self._greeted and self._transport is not None:  # else the welcome will carry them
            self._stream.add(rows, until=self._until(rows[-1].type))

    def _until(self, type_: str) -> Until:
        """A reply carries a lone row of its call: one wake-up of the brain, not two."""
        if type_ == RESULT:
            return "soon"
        return "reply" if self._quick and type_.startswith(OUTPUT_PREFIX) else "turn"

    def flush(self) -> None:
        """Stream what waits for its reply; called several times a second, since a disk may suddenly take long."""
        self._stream.flush()

    def tell(self, message: Retired | Scoped | Engines) -> None:
        """The brain's situation has changed; one that wasn't welcomed yet hears it in the welcome."""
        if self._greeted and self._transport is not None:
            self._write(message)

    def _write_entries(self, entries: bytes) -> None:
        """None for a brain that is drowning: it is about to be ended."""
        if self._transport and not self.drowning:
            self._transport.write(entries)

    # -- messages ----------------------------------------------------------------------------------

    def _take(self, payload: bytes) -> None:
        if not self._greeted:
            self._greet(msgspec.msgpack.decode(payload, type=Hello))
            return
        message = self._decoder.decode(payload)
        match message:
            case Call():  # first: somebody waits for its answer
                self._call(message)
            case Told():
                for event in message.events:
                    self._narrate(event)
            case Cancel():
                if task := self._serving_calls.get(message.call):
                    task.cancel()
            case Heartbeat():
                pass  # any bytes at all set heard_us
            case Admitted():
                self._events.wake_began(message)
            case Ended():
                self._events.wake_ended(message)
            case Missed():
                self._events.wakes_missed(message)
            case Loaded():
                self.loaded = True
                self._events.brain_loaded(message)
            case LoadFailed():
                self._events.brain_failed(from_wire(message.error))
            case Stopped():
                self.stopped.set()

    def _greet(self, hello: Hello) -> None:
        if hello.protocol != LINK_PROTOCOL:
            raise FrameInvalid(f"the brain speaks {hello.protocol!r}, not {LINK_PROTOCOL!r}")
        self._greeted = True
        self._write(self._welcome())
        self._stream.add(self._log.recent(0), until="reply")
        self._stream.flush()

    def _narrate(self, event: TelemetryEvent) -> None:
        """A cognet may narrate its own world and nothing else; ticks are written by the brain's own code."""
        try:
            if not event.type.startswith((*COGNET_MAY_EMIT, TICKS, "cognet:load:")):
                raise EntryTypeUnknown(f"a brain may not write {event.type!r}", type=event.type)
            data = check(event.type, event.data)
        except AxonError as error:
            raise FrameInvalid(f"telemetry that the ABI doesn't allow: {error.message}") from error
        self._events.brain_told(msgspec.structs.replace(event, data=data, after_seq=self._log.last_seq))

    # -- calls -------------------------------------------------------------------------------------

    def _call(self, call: Call) -> None:
        try:
            if call.verb == "output" and len(call.args) == 2:
                self._output(call, *call.args)
            elif call.verb == "settle" and len(call.args) == 1:
                self._settle(call, *call.args)
            elif verb := self._verbs.get(call.verb):
                self._serve_call(call, verb)
            else:
                raise CallInvalid(f"there is no call {call.verb!r} with {len(call.args)} arguments")
        except AxonError as error:
            self._reply(call, error=error)

    def _output(self, call: Call, type_: Any, data: Any) -> None:
        """A brain emits outputs and nothing else; the log checks their data."""
        if type_ not in OUTPUT_TYPES:
            said = repr(type_[:100]) if isinstance(type_, str) else f"a {type(type_).__name__}"
            raise EntryTypeUnknown(f"output takes {OUTPUT_PREFIX}text, audio, visual or field, not {said}")
        self._admit(call, type_, data)

    def _settle(self, call: Call, upto_seq: Any) -> None:
        if type(upto_seq) is not int or not 0 <= upto_seq <= self._log.last_seq:
            raise CallInvalid("settle takes the seq of an entry")
        self._admit(call, "axon:agent:settled", Settled(upto_seq=upto_seq))

    def _admit(self, call: Call, type_: str, data: Any) -> None:
        """Commit on the brain's behalf; the reply follows once it is durable, whoever still waits for it."""
        cursor = call.cursor if call.cursor is not None and 0 <= call.cursor <= self._log.last_seq else None
        last = not self._unserved
        row = self._log.admit(type_, data, wake_id=call.wake_id, cursor=cursor, reserve=True, last=last)
        admitted_us = mono_us()
        self._log.when_durable(row.seq, lambda error: self._durable(call, row.seq, admitted_us, error))

    def _durable(self, call: Call, seq: int, admitted_us: int, error: AxonError | None) -> None:
        self._quick = mono_us() - admitted_us < QUICK_US
        self._reply(call, value=seq, error=error)

    def _serve_call(self, call: Call, verb: Verb) -> None:
        if len(self._serving_calls) >= MAX_CALLS:
            raise LogBacklogFull(f"{MAX_CALLS} calls wait for their answer", hint="Await some before the next.")
        if call.call in self._serving_calls:
            raise FrameInvalid(f"call {call.call} was made twice")
        task = asyncio.get_running_loop().create_task(self._finish(call, verb))
        self._serving_calls[call.call] = task
        task.add_done_callback(lambda _: self._serving_calls.pop(call.call))

    async def _finish(self, call: Call, verb: Verb) -> None:
        try:
            self._reply(call, value=await verb(call, lambda value: self._part(call, value)))
        except asyncio.CancelledError:
            self._reply(call, error=CallCancelled(f"{call.verb} was cancelled", verb=call.verb))
        except AxonError as error:
            self._reply(call, error=error)
        except OSError as error:
            self._reply(call, error=AxonError(f"{call.verb} failed: {error}"))
        except Exception as error:
            # A defect of ours: the brain must not wait for ever for the answer, wake after wake.
            self._reply(call, error=AxonError(f"{call.verb} failed: {error!r}"))
            raise

    def _part(self, call: Call, value: Any) -> None:
        if self._transport:
            self._write(Part(call.call, value))

    def _reply(self, call: Call, *, value: Any = None, error: AxonError | None = None) -> None:
        """The brain has seen by then what was admitted before."""
        if self._transport:
            rows = self._stream.take_lone()
            self._write(Reply(call.call, value, to_wire(error) if error else None, rows))

    def _write(self, message: FromKernel | Hello) -> None:
        assert self._transport
        self._transport.write(frame(self._encoder.encode(message)))


A = TypeVar("A")


def arguments(call: Call, shape: type[A]) -> A:
    """The call's arguments as a tuple of that shape; ``CallInvalid`` names what doesn't fit."""
    try:
        return msgspec.convert(call.args, shape)
    except msgspec.ValidationError as error:
        raise CallInvalid(f"{call.verb}: {error}", verb=call.verb) from error
