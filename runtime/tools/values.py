"""What may cross between a tool and its caller: plain data, of a bounded size."""

from __future__ import annotations

from typing import Any

import msgspec

from runtime.abi.errors import ToolFailed
from runtime.tools.protocol import MAX_VALUE_BYTES

_BYTES = (bytes, bytearray, memoryview)
_HINT = "Return None, bool, int, float, str, bytes, lists and dicts of them; of numpy's, what .tolist() gives."
_encoder = msgspec.msgpack.Encoder()


def packed(value: Any) -> msgspec.Raw:
    """A returned value as it crosses; raises ``ToolFailed`` naming the type that can't, or the size.

    Dataclasses become dicts, sets and tuples lists, enums their values, times and decimals text, and a number or text
    of a type of its own what it is a kind of. NaN and infinities cross as they are: no echo is a measurement too.
    """
    try:
        encoded = _encoder.encode(msgspec.to_builtins(value, builtin_types=_BYTES, enc_hook=_simpler))
    except ToolFailed:
        raise
    except RecursionError as error:
        raise ToolFailed("it returned something that contains itself, or is nested too deeply") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise ToolFailed(f"it returned a {_type(value)} that can't be carried: {error}") from error
    if len(encoded) > MAX_VALUE_BYTES:
        raise ToolFailed(f"it returned {len(encoded)} bytes, above {MAX_VALUE_BYTES}")
    return msgspec.Raw(encoded)


def _simpler(value: Any) -> int | float | str:
    """The plain value behind one of a type of its own, such as numpy's float64, which is a float."""
    if isinstance(value, int | float | str):
        return next(kind(value) for kind in (int, float, str) if isinstance(value, kind))
    raise ToolFailed(f"it returned a {_type(value)}, which can't be carried", hint=_HINT)


def _type(value: Any) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
