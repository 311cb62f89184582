"""The control socket: a person's command asks the kernel for something and gets an answer."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Collection
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from capsule.errors import AxonError, FrameInvalid
from capsule.frames import frame
from capsule.streams import read_frame
from runtime.abi.errors import CallInvalid, to_wire
from runtime.abi.observe import CONTROL_PROTOCOL, Answer, Request
from runtime.kernel.bus import HELLO_S, expect_hello

MAX_REQUEST_BYTES = 4 * 1024 * 1024
MAX_AT_ONCE = 64
"""Requests of one connection that wait for their answers; the next one is read when there is room."""
Verb = Callable[..., Awaitable[Any]]


class Control:
    """Serves the verbs it is given; each takes the request's ``args`` by name.

    A connection's requests are served side by side: a long one doesn't hold up a stop. Those of ``forsaken`` are
    cancelled when their client leaves; all others were meant to happen and do.
    """

    def __init__(self, verbs: dict[str, Verb], *, forsaken: Collection[str] = ()) -> None:
        self._verbs = verbs
        self._forsaken = forsaken
        self._server: asyncio.Server | None = None

    async def listen(self, path: Path) -> None:
        """Open the socket, for this user alone."""
        self._server = await asyncio.start_unix_server(self._serve, path=str(path))
        os.chmod(path, 0o600)

    async def close(self) -> None:
        """Take no more requests."""
        if self._server:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving: dict[asyncio.Task[None], str] = {}
        with closing(writer):
            try:
                await self._take(reader, writer, serving)
            except (FrameInvalid, msgspec.MsgspecError, TimeoutError, OSError):
                pass  # whoever speaks garbage or leaves is cut off
            finally:
                for task, verb in serving.items():
                    if verb in self._forsaken:
                        task.cancel()
            if serving:
                await asyncio.wait(serving)

    async def _take(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, serving: dict[asyncio.Task[None], str]
    ) -> None:
        """Begin to serve each request that comes, until there are no more."""
        await asyncio.wait_for(expect_hello(reader, writer, CONTROL_PROTOCOL), HELLO_S)
        while (payload := await read_frame(reader, MAX_REQUEST_BYTES)) is not None:
            request = msgspec.msgpack.decode(payload, type=Request)
            task = asyncio.get_running_loop().create_task(self._reply(request, writer))
            serving[task] = request.verb
            task.add_done_callback(serving.pop)
            while len(serving) >= MAX_AT_ONCE:
                await asyncio.wait(serving, return_when=asyncio.FIRST_COMPLETED)

    async def _reply(self, request: Request, writer: asyncio.StreamWriter) -> None:
        answer = msgspec.structs.replace(await self._answer(request), number=request.number)
        with suppress(OSError):  # it has left: what it asked for is done all the same
            writer.write(frame(msgspec.msgpack.encode(answer)))
            await writer.drain()

    async def _answer(self, request: Request) -> Answer:
        verb = self._verbs.get(request.verb)
        try:
            if verb is None:
                raise CallInvalid(f"there is no request {request.verb!r}", hint=f"known: {', '.join(self._verbs)}")
            return Answer(value=msgspec.to_builtins(await verb(**_arguments(request, verb))))
        except AxonError as error:
            return Answer(error=to_wire(error))
        except Exception as error:  # noqa: BLE001 - a defect of ours, told to both: nobody waits for ever for an answer
            told = {"message": f"the request {request.verb!r} failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(told)
            return Answer(error=to_wire(AxonError(f"{request.verb} failed: {error!r}")))


def _arguments(request: Request, verb: Verb) -> dict[str, Any]:
    """The request's arguments, each of the type that the verb declares; ``CallInvalid`` names what isn't."""
    try:
        inspect.signature(verb).bind(**request.args)
        types = get_type_hints(verb)
        return {name: msgspec.convert(value, types.get(name, Any)) for name, value in request.args.items()}
    except (TypeError, msgspec.ValidationError) as error:
        raise CallInvalid(f"{request.verb}: {error}") from error
