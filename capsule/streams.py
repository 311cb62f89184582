"""Frames from an asyncio stream; apart from the others, since a guest starts quicker without asyncio."""

from __future__ import annotations

import asyncio

from capsule.errors import FrameInvalid
from capsule.frames import LENGTH, MAX_FRAME_BYTES


async def read_frame(reader: asyncio.StreamReader, max_bytes: int = MAX_FRAME_BYTES) -> bytes | None:
    """Read one payload; None when the peer closed between frames, ``FrameInvalid`` inside one."""
    try:
        head = await reader.readexactly(LENGTH.size)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise FrameInvalid("the connection ended inside a frame's length") from error
        return None
    (size,) = LENGTH.unpack(head)
    if size > max_bytes:
        raise FrameInvalid(f"a frame of {size} bytes exceeds {max_bytes}", size_bytes=size)
    try:
        return await reader.readexactly(size)
    except asyncio.IncompleteReadError as error:
        raise FrameInvalid("the connection ended inside a frame") from error
