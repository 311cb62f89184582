"""One entry or telemetry event as a line for people."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from runtime.abi.entries import Entry
from runtime.abi.telemetry import TelemetryEvent

_WIDTH = 160


def channel_of(data: dict[str, Any]) -> str:
    """The channel of a stimulus, an output or a sensor's report; "" for what has none."""
    source = data.get("source")
    found = source.get("channel") if isinstance(source, dict) else data.get("channel")
    return found if isinstance(found, str) else ""


def entry_line(entry: Entry) -> str:
    """``seq``, the wall clock as it was then, type, channel and content."""
    data: dict[str, Any] = msgspec.to_builtins(entry.data)
    time = datetime.fromtimestamp(entry.time.ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    return f"{entry.seq:>8}  {time}  {entry.type:<24} {channel_of(data):<16} {_content(data)}".rstrip()


def event_line(event: TelemetryEvent) -> str:
    """The entry it came after, the monotonic clock in seconds, type and facts."""
    data = event.data if isinstance(event.data, dict) else {}
    return f"{event.after_seq:>8}  {event.mono_us / 1e6:>14.6f}  {event.type:<26} {_facts(data)}".rstrip()


def _content(data: dict[str, Any]) -> str:
    """What an entry says, without what stands in the other columns."""
    match data:
        case {"content": text}:
            return _cut(repr(text))
        case {"reading": {"value": value, **rest}}:
            return _cut(f"{value} {rest.get('unit', '')}".rstrip())
        case {"ref": ref, "width": width, "height": height}:
            return f"{width}x{height} {ref[:23]}"
        case {"ref": ref}:
            duration = data.get("duration_ms")
            return f"{duration:g} ms {ref[:23]}" if duration is not None else ref[:23]
        case {"action": _, "code": code}:
            return _cut(repr(code))
        case {"action": _, "error": {"kind": kind, "message": message}}:
            return _cut(f"{kind}: {message}")
        case {"action": _, "ok": True}:
            return _cut(f"ok: {data.get('value')!r}")
        case {"text": text, "type": kind}:
            return _cut(f"{kind}: {text}")
    return _facts(data)


def _facts(data: dict[str, Any]) -> str:
    return _cut(" ".join(f"{key}={_plain(value)}" for key, value in data.items() if value not in ("", None)))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) and " " not in value else msgspec.json.encode(value).decode()


def _cut(text: str) -> str:
    """One line of printable text: an entry's words must not drive somebody's terminal."""
    text = " ⏎ ".join(text.splitlines())
    text = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
