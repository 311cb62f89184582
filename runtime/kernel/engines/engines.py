"""The engines of a cognet's roles: serves the brain's verbs, tells the facts, and cancels what nobody may wait for."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from capsule.errors import AxonError
from runtime.abi.engines import Counts, EngineFacts, EngineType, check_messages, check_options, check_weight
from runtime.abi.errors import CallInvalid, EngineFailed, EngineRoleUnbound, KernelStopping
from runtime.abi.link import Call
from runtime.engines.protocol import Count, Generate, Open, Transform
from runtime.kernel.brain_link import Verb, arguments
from runtime.kernel.engines.request import Asking, Request
from runtime.kernel.engines.roles import Role
from runtime.kernel.engines.span import OpenSpan, Tell
from runtime.kernel.engines.worker import Patience, Worker
from runtime.kernel.supervisor import Supervisor
from runtime.log.log import Log

Part = Callable[[Any], None]
MAX_STREAM_NAME = 64


class Engines:
    """One worker a role that is filled. ``changed`` is called with all facts when one has become another."""

    def __init__(
        self,
        roles: Sequence[Role],
        *,
        log: Log,
        supervisor: Supervisor,
        tell: Tell,
        changed: Callable[[list[EngineFacts]], None],
        cores: Sequence[int] = (),
        patience: Patience | None = None,
    ) -> None:
        self._roles = {role.name: role for role in roles}
        self._log = log
        self._tell = tell
        self._changed = changed
        self._workers = {
            role.name: Worker(
                role,
                supervisor=supervisor,
                cores=cores,
                tell=lambda type_, data: tell(type_, data, None),
                changed=lambda: self._changed(self.facts),
                patience=patience,
            )
            for role in roles
            if role.order
        }
        self._streams: dict[str, Request] = {}
        self._calls: dict[asyncio.Task[Any], str | None] = {}
        self._numbers = itertools.count(1)
        self._stopping = False

    @property
    def facts(self) -> list[EngineFacts]:
        """Every role of the cognet, as it is now."""
        return [
            self._workers[name].facts if name in self._workers else role.facts for name, role in self._roles.items()
        ]

    async def table(self) -> list[dict[str, Any]]:
        """Every role with what fills it, for people."""
        orders = [role.order for role in self._roles.values()]
        return [
            {"provider": order.provider if order else "", "model": order.model if order else ""}
            | msgspec.structs.asdict(facts)
            for facts, order in zip(self.facts, orders, strict=True)
        ]

    @property
    def verbs(self) -> dict[str, Verb]:
        """What a brain may ask."""
        return {
            "engine.generate": self._generate,
            "engine.count": self._count,
            "engine.transform": self._transform,
            "engine.open": self._open,
            "engine.push": self._push,
            "engine.reset": self._reset,
            "engine.close": self._close,
        }

    def interrupt(self) -> None:
        """An interrupt was admitted: what runs for a wake is cancelled, whether its brain still listens or not."""
        for task, wake_id in self._calls.items():
            if wake_id is not None:
                task.cancel()

    def stop(self) -> None:
        """The shutdown has begun: everything is cancelled, nothing more is taken."""
        self._stopping = True
        for task in self._calls:
            task.cancel()

    # -- verbs -------------------------------------------------------------------------------------

    async def _generate(self, call: Call, part: Part) -> Any:
        role, messages, options = arguments(call, tuple[str, Any, Any])
        worker = self._worker(role, "generate")
        message = Generate(next(self._numbers), check_messages(messages), check_options(options))
        counts = await self._serve(call, worker, message, part)
        try:
            return msgspec.convert(counts, Counts)
        except msgspec.ValidationError as error:
            raise EngineFailed(f"the engine of {role!r} answered without its counts: {error}", role=role) from error

    async def _count(self, call: Call, _: Part) -> int:
        role, messages = arguments(call, tuple[str, Any])
        worker = self._worker(role, "generate")
        request = Request(Count(next(self._numbers), check_messages(messages)), _ignore)
        with self._registered(call):
            return int(await worker.ask(request))

    async def _transform(self, call: Call, _: Part) -> Any:
        role, value = arguments(call, tuple[str, Any])
        worker = self._worker(role, "transform")
        check_weight(value)
        return await self._serve(call, worker, Transform(next(self._numbers), value), _ignore)

    async def _open(self, call: Call, part: Part) -> None:
        role, stream = arguments(call, tuple[str, str])
        worker = self._worker(role, "stream")
        if not 0 < len(stream) <= MAX_STREAM_NAME or stream in self._streams:
            raise CallInvalid(f"engine.open: {stream[:80]!r} names no new stream", verb=call.verb)
        await self._serve(call, worker, Open(next(self._numbers)), part, stream=stream)

    async def _push(self, call: Call, _: Part) -> None:
        stream, value = arguments(call, tuple[str, Any])
        request = self._stream(stream)
        check_weight(value)
        await request.push(value)

    async def _reset(self, call: Call, _: Part) -> None:
        (stream,) = arguments(call, tuple[str])
        self._stream(stream).reset()

    async def _close(self, call: Call, _: Part) -> None:
        (stream,) = arguments(call, tuple[str])
        self._stream(stream).close()

    # -- serving -----------------------------------------------------------------------------------

    async def _serve(self, call: Call, worker: Worker, message: Asking, part: Part, *, stream: str = "") -> Any:
        """One request with its span, from the queue to its end."""
        request = Request(message, part)
        if stream:
            self._streams[stream] = request
        kind = worker.role.want.type
        span = OpenSpan(self._tell, role=worker.role.name, number=request.number, kind=kind, wake_id=call.wake_id)
        try:
            with self._registered(call):
                await self._stands(call, worker)
                value = await worker.ask(request)
        except asyncio.CancelledError:
            span.end("interrupted", request)
            raise
        except AxonError as error:
            span.end("failed", request, error=error.code)
            raise
        finally:
            self._streams.pop(stream, None)
            request.answer.cancel()  # whoever ends here, nothing more is wanted of it
        span.end("complete", request, counts=value)
        return value

    async def _stands(self, call: Call, worker: Worker) -> None:
        """A request that leaves the machine waits until the entries it stands on are durable."""
        offer = worker.role.offer
        if offer and offer.leaves_machine:
            last = self._log.last_seq
            await self._log.durable(last if call.cursor is None else max(0, min(call.cursor, last)))

    @contextmanager
    def _registered(self, call: Call) -> Any:
        """While it is served, an interrupt or the shutdown may cancel it."""
        task = asyncio.current_task()
        assert task
        self._calls[task] = call.wake_id
        try:
            yield
        finally:
            del self._calls[task]

    def _worker(self, role: str, type_: EngineType) -> Worker:
        """The worker of a role of that type; raises ``EngineRoleUnbound``, ``KernelStopping``."""
        if self._stopping:
            raise KernelStopping("the kernel is shutting down; no engine is asked any more", verb="engine")
        worker = self._workers.get(role)
        if worker is None:
            why = self._roles[role].reason if role in self._roles else "the cognet doesn't declare it"
            raise EngineRoleUnbound(f"the role {role[:80]!r} has no engine: {why}", role=role[:80])
        if worker.role.want.type != type_:
            raise CallInvalid(f"the role {role!r} is of type {worker.role.want.type!r}, not {type_!r}", role=role)
        return worker

    def _stream(self, stream: str) -> Request:
        request = self._streams.get(stream)
        if self._stopping:
            raise KernelStopping("the kernel is shutting down; no engine is asked any more", verb="engine")
        if request is None:
            raise CallInvalid(f"there is no open stream {stream[:80]!r}", verb="engine.push")
        return request


def _ignore(_: Any) -> None:
    """For requests whose answer has no pieces."""
