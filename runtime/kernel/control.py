"""The control socket: a person's command asks the kernel for something and gets an answer."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from capsule.errors import AxonError, FrameInvalid
from capsule.frames import frame, read_frame
from runtime.abi.errors import CallInvalid, to_wire
from runtime.abi.observe import CONTROL_PROTOCOL, Answer, Request
from runtime.kernel.bus import HELLO_S, expect_hello

MAX_REQUEST_BYTES = 1024 * 1024
Verb = Callable[..., Awaitable[Any]]


class Control:
    """Serves the verbs it is given; each takes the request's ``args`` by name."""

    def __init__(self, verbs: dict[str, Verb]) -> None:
        self._verbs = verbs
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
        try:
            await asyncio.wait_for(expect_hello(reader, writer, CONTROL_PROTOCOL), HELLO_S)
            while (payload := await read_frame(reader, MAX_REQUEST_BYTES)) is not None:
                answer = await self._answer(msgspec.msgpack.decode(payload, type=Request))
                writer.write(frame(msgspec.msgpack.encode(answer)))
                await writer.drain()
        except (FrameInvalid, msgspec.MsgspecError, TimeoutError, OSError):
            pass  # whoever speaks garbage or leaves is cut off; nothing was begun for it
        finally:
            writer.close()

    async def _answer(self, request: Request) -> Answer:
        verb = self._verbs.get(request.verb)
        try:
            if verb is None:
                raise CallInvalid(f"there is no request {request.verb!r}", hint=f"known: {', '.join(self._verbs)}")
            return Answer(value=msgspec.to_builtins(await verb(**_arguments(request, verb))))
        except AxonError as error:
            return Answer(error=to_wire(error))


def _arguments(request: Request, verb: Verb) -> dict[str, Any]:
    """The request's arguments, each of the type that the verb declares; ``CallInvalid`` names what isn't."""
    try:
        inspect.signature(verb).bind(**request.args)
        types = get_type_hints(verb)
        return {name: msgspec.convert(value, types[name]) for name, value in request.args.items()}
    except (TypeError, msgspec.ValidationError) as error:
        raise CallInvalid(f"{request.verb}: {error}") from error
