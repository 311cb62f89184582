"""Commands over MQTT: ``axon/<agent>/interrupt``, ``axon/<agent>/stop`` and ``axon/<agent>/approve``, as JSON.

``{"id", "issued_ms", "ttl_ms", "by"?, "reason"?, "clear"?}``: ``id`` is unlike that of any other command,
``issued_ms`` the sender's wall clock in milliseconds, ``ttl_ms`` how long the command is meant to be obeyed.

An approval also says which: ``{"approval", "deny"?, ...}``, the id of the call that waits.

An interrupt, an approval, and a stop with ``clear`` true, are obeyed when all of that is right, once. A stop is obeyed
whenever it is a JSON object, late, repeated or incomplete as it may be: stopping twice, or too often, is safe. Nothing
retained is obeyed, and nothing that can't be read: the message that deletes a retained stop is an empty one.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta

from runtime.abi.clock import wall_ms
from runtime.abi.errors import CommandRefused

MAX_COMMAND_BYTES = 4096
MAX_TTL_MS = 600_000
MAX_REMEMBERED = 1024
_SHOWN_CHARS = 200

Name: TypeAlias = Literal["interrupt", "stop", "approve"]
_Text = Annotated[str, Meta(max_length=256)]


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A command to obey; ``clear`` frees the emergency stop; ``approval`` is the call that is approved or denied."""

    name: Name
    id: str = ""
    by: str = "mqtt"
    reason: str | None = None
    clear: bool = False
    approval: str = ""
    deny: bool = False


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command that is right in all its parts."""

    id: Annotated[str, Meta(min_length=1, max_length=64)]
    issued_ms: int
    ttl_ms: Annotated[int, Meta(ge=1, le=MAX_TTL_MS)]
    by: _Text = "mqtt"
    reason: _Text | None = None
    clear: bool = False


class _Approve(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer to a call that waits for a person."""

    approval: Annotated[str, Meta(min_length=1, max_length=64)]
    deny: bool = False


class CommandGate:
    """Lets commands pass, and remembers the identifiers of those that it did until they would be expired."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def take(self, name: str, payload: bytes, retained: bool, *, now_ms: int | None = None) -> Command:  # noqa: FBT001 - as the message has it
        """The command to obey; ``name`` is its topic's last part, ``now_ms`` the wall clock (None: now's).

        Raises ``CommandRefused``.
        """
        if name not in get_args(Name):
            raise CommandRefused(f"there is no command {name[:64]!r}")
        if retained:
            raise CommandRefused(f"{name}: a retained command is told again at every reconnect", command=name)
        if len(payload) > MAX_COMMAND_BYTES:
            raise CommandRefused(f"{name}: {len(payload)} bytes exceed {MAX_COMMAND_BYTES}", command=name)
        if name == "stop" and (stop := _stop(payload)) is not None:
            return stop
        return self._strict(name, payload, wall_ms() if now_ms is None else now_ms)

    def _strict(self, name: str, payload: bytes, now_ms: int) -> Command:
        try:
            asked = msgspec.json.decode(payload, type=_Approve if name == "approve" else _Strict)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise CommandRefused(f"{name}: {str(error)[:_SHOWN_CHARS]}", command=name) from error
        if name != "stop" and asked.clear:
            raise CommandRefused(f"{name}: only a stop can be cleared", command=name)
        self._check_age(name, asked, now_ms)
        return Command(
            name=msgspec.convert(name, Name),
            id=asked.id,
            by=asked.by,
            reason=asked.reason,
            clear=asked.clear,
            approval=asked.approval if isinstance(asked, _Approve) else "",
            deny=isinstance(asked, _Approve) and asked.deny,
        )

    def _check_age(self, name: str, asked: _Strict, now_ms: int) -> None:
        """Refuse what is expired, comes from the future (then its age is unknown), or was obeyed before."""
        age_ms = now_ms - asked.issued_ms
        if age_ms > asked.ttl_ms:
            raise CommandRefused(f"{name} {asked.id}: expired {age_ms - asked.ttl_ms} ms ago", command=name)
        if age_ms < -asked.ttl_ms:
            raise CommandRefused(
                f"{name} {asked.id}: issued {-age_ms} ms from now",
                hint="The clocks of sender and agent differ; set both by NTP.",
                command=name,
            )
        if asked.id in self._seen:
            raise CommandRefused(f"{name} {asked.id}: repeated", command=name)
        self._remember(asked.id, asked.issued_ms + asked.ttl_ms, now_ms)

    def _remember(self, id_: str, until_ms: int, now_ms: int) -> None:
        """Beyond the bound those go that are expired, else the oldest."""
        if len(self._seen) >= MAX_REMEMBERED:
            self._seen = {known: until for known, until in self._seen.items() if until >= now_ms}
        if len(self._seen) >= MAX_REMEMBERED:
            del self._seen[next(iter(self._seen))]
        self._seen[id_] = until_ms


def _stop(payload: bytes) -> Command | None:
    """A stop from any JSON object without ``clear``; None when it may be something else."""
    try:
        asked = msgspec.json.decode(payload, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if "clear" in asked and bytes(asked["clear"]) != b"false":
        return None
    return Command(
        name="stop", id=_text(asked, "id") or "", by=_text(asked, "by") or "mqtt", reason=_text(asked, "reason")
    )


def _text(asked: dict[str, msgspec.Raw], key: str) -> str | None:
    """A part of a stop, if it is text; shortened rather than refused."""
    try:
        return msgspec.json.decode(asked[key], type=str)[:256]
    except (KeyError, msgspec.MsgspecError):
        return None
