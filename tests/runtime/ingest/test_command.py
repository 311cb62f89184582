"""Commands over MQTT: what is obeyed, and how strictly each is read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.abi.errors import CommandRefused
from runtime.ingest.command import MAX_REMEMBERED, Command, CommandGate

NOW = 1_800_000_000_000
GOOD: dict[str, Any] = {"id": "c1", "issued_ms": NOW - 100, "ttl_ms": 5000}


def take(name: str, payload: object, *, gate: CommandGate | None = None, retained: bool = False) -> Command:
    data = payload if isinstance(payload, bytes) else msgspec.json.encode(payload)
    return (gate or CommandGate()).take(name, data, retained, now_ms=NOW)


def test_an_interrupt_passes() -> None:
    assert take("interrupt", {**GOOD, "by": "anna", "reason": "enough"}) == Command(
        name="interrupt", id="c1", by="anna", reason="enough"
    )


def test_clearing_a_stop_passes() -> None:
    assert take("stop", {**GOOD, "clear": True}).clear


WRONG: dict[str, object] = {
    "expired": {**GOOD, "issued_ms": NOW - 6000},
    "of the future": {**GOOD, "issued_ms": NOW + 6000},
    "without an id": {"issued_ms": NOW, "ttl_ms": 5000},
    "with an empty id": {**GOOD, "id": ""},
    "without an expiry": {"id": "c1", "issued_ms": NOW},
    "with an expiry of a day": {**GOOD, "ttl_ms": 86_400_000},
    "with an expiry of nothing": {**GOOD, "ttl_ms": 0},
    "with more than it should": {**GOOD, "speed": 3},
    "with a wrong type": {**GOOD, "issued_ms": "now"},
    "without JSON": b"now!",
    "without anything": b"",
    "in bad UTF-8": b'{"id":"\xff","issued_ms":1800000000000,"ttl_ms":5,"clear":true}',
    "too long": b" " * 5000,
    "too deep": b"[" * 4000,
}


@pytest.mark.parametrize("payload", WRONG.values(), ids=WRONG.keys())
def test_an_interrupt_that_is_not_right_is_refused(payload: object) -> None:
    with pytest.raises(CommandRefused):
        take("interrupt", payload)


@pytest.mark.parametrize("payload", WRONG.values(), ids=WRONG.keys())
def test_clearing_a_stop_is_read_as_strictly(payload: object) -> None:
    with pytest.raises(CommandRefused):
        take("stop", {**payload, "clear": True} if isinstance(payload, dict) else payload)


@pytest.mark.parametrize("clear", ["true", 1, None, "no", []])
def test_a_stop_that_may_mean_clearing_does_neither(clear: object) -> None:
    with pytest.raises(CommandRefused):
        take("stop", {**GOOD, "clear": clear})


@pytest.mark.parametrize(
    "payload",
    [
        {},
        GOOD,
        {**GOOD, "clear": False},
        {**GOOD, "issued_ms": 0},
        {"by": 7, "id": [1]},
        {"by": "x" * 1000},
        {"speed": 3},
    ],
    ids=str,
)
def test_a_stop_is_obeyed_late_incomplete_or_odd(payload: dict[str, object]) -> None:
    assert take("stop", payload).clear is False


def test_a_stop_is_obeyed_again() -> None:
    gate = CommandGate()
    assert take("stop", GOOD, gate=gate) == take("stop", GOOD, gate=gate)


@pytest.mark.parametrize("name", ["stop", "interrupt"])
def test_nothing_retained_is_obeyed(name: str) -> None:
    with pytest.raises(CommandRefused):
        take(name, GOOD, retained=True)


@pytest.mark.parametrize(("name", "more"), [("interrupt", {}), ("stop", {"clear": True})])
def test_nothing_is_obeyed_twice(name: str, more: dict[str, object]) -> None:
    gate = CommandGate()
    take(name, {**GOOD, **more}, gate=gate)
    with pytest.raises(CommandRefused, match="repeated"):
        take(name, {**GOOD, **more}, gate=gate)


def test_a_refused_command_uses_up_no_id() -> None:
    gate = CommandGate()
    with pytest.raises(CommandRefused):
        take("interrupt", GOOD, gate=gate, retained=True)
    assert take("interrupt", GOOD, gate=gate).id == "c1"


def test_an_interrupt_clears_nothing() -> None:
    with pytest.raises(CommandRefused):
        take("interrupt", {**GOOD, "clear": True})


def test_an_unknown_command_is_refused() -> None:
    with pytest.raises(CommandRefused):
        take("dance", GOOD)


def test_what_is_remembered_is_bounded() -> None:
    gate = CommandGate()
    for number in range(3 * MAX_REMEMBERED):
        take("interrupt", {**GOOD, "id": f"c{number}"}, gate=gate)
    assert len(gate._seen) <= MAX_REMEMBERED


@given(st.sampled_from(["stop", "interrupt"]), st.binary(max_size=200) | st.text(max_size=60).map(str.encode))
def test_any_bytes_pass_or_are_refused(name: str, payload: bytes) -> None:
    try:
        command = take(name, payload)
    except CommandRefused:
        return
    assert command.name == "stop"
    assert not command.clear
    assert payload.lstrip()[:1] == b"{"


def test_an_approval_and_a_denial_pass_with_the_call_they_are_about() -> None:
    assert take("approve", {**GOOD, "by": "ann", "approval": "kfdrtzw"}) == Command(
        name="approve", id="c1", by="ann", approval="kfdrtzw"
    )
    assert take("approve", {**GOOD, "approval": "kfdrtzw", "deny": True}).deny


@pytest.mark.parametrize(
    "payload",
    [
        *WRONG.values(),
        GOOD,
        {**GOOD, "approval": ""},
        {**GOOD, "approval": 5},
        {**GOOD, "approval": "x" * 65},
        {**GOOD, "approval": "kfdrtzw", "deny": "no"},
        {**GOOD, "approval": "kfdrtzw", "clear": True},
    ],
)
def test_an_approval_that_is_not_right_is_refused(payload: object) -> None:
    with pytest.raises(CommandRefused):
        take("approve", payload)


def test_an_approval_is_obeyed_once_and_never_retained() -> None:
    gate = CommandGate()
    approval = {**GOOD, "approval": "kfdrtzw"}
    with pytest.raises(CommandRefused, match="retained"):
        take("approve", approval, gate=gate, retained=True)
    take("approve", approval, gate=gate)
    with pytest.raises(CommandRefused, match="repeated"):
        take("approve", approval, gate=gate)


def test_other_commands_approve_nothing() -> None:
    with pytest.raises(CommandRefused):
        take("interrupt", {**GOOD, "approval": "kfdrtzw"})
