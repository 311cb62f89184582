import asyncio
import json
from pathlib import Path

import pytest

from runtime.abi.ids import uuid7
from runtime.abi.payloads import FieldOutput, FieldStimulus, Reading, Source, SystemMessage, TextStimulus
from runtime.abi.telemetry import Refused, TelemetryEvent
from runtime.log.log import Log
from runtime.log.settings import LogSettings
from runtime.media.ring import MemoryRing


async def live(folder: Path) -> None:
    """One short life: seven entries and one event, ended cleanly."""
    media = MemoryRing(max_bytes=10**6)
    log = Log.open(
        folder,
        agent_id="robot",
        session_id=folder.name,
        boot_id=uuid7(),
        settings=LogSettings(volatile_data=True),
        media=media,
    )
    log.start(asyncio.get_running_loop())
    for number in range(3):
        reading = Reading(value=number / 2, unit="V")
        log.admit("cognet:stimulus:field", FieldStimulus(source=Source(channel="battery"), reading=reading))
    log.admit("cognet:stimulus:text", TextStimulus(source=Source(channel="person"), content="come\x1b[2J here"))
    log.admit("cognet:output:field", FieldOutput(channel="steer", reading=Reading(value=0.1)))
    log.tell(TelemetryEvent(type="kernel:ingest:refused", mono_us=1, data=Refused(code="TOPIC_INVALID", count=3)))
    log.admit("axon:system:message", SystemMessage(type="clock", text="stepped\nback"))
    await log.durable(log.last_seq)
    await log.close(clean=True)
    media.close()


@pytest.fixture
def lived(agent) -> Path:
    """An agent with two sessions; the last one has lived."""
    folder = agent / "data/sessions/0002"
    folder.mkdir(parents=True)
    (agent / "data/sessions/0001").mkdir()
    (agent / "data/session").write_text("0002")
    asyncio.run(live(folder))
    return agent


def shown(axon, agent, *words) -> list[dict]:
    ended = axon("log", "show", agent, "--json", *words)
    assert ended.status == 0, ended.err
    return [json.loads(line) for line in ended.out.splitlines()]


def seqs(entries: list[dict]) -> list[int]:
    return [entry["time"]["seq"] for entry in entries]


def test_all_entries_are_shown_in_their_order(axon, lived):
    entries = shown(axon, lived)
    assert seqs(entries) == list(range(1, len(entries) + 1))
    assert {entry["type"] for entry in entries} >= {"cognet:stimulus:text", "cognet:output:field"}


def test_a_type_or_a_family_can_be_chosen(axon, lived):
    assert len(shown(axon, lived, "--type", "cognet:stimulus:field")) == 3
    assert len(shown(axon, lived, "--type", "cognet:stimulus")) == 4
    assert len(shown(axon, lived, "--type", "cognet:stimulus:text", "--type", "cognet:output:*")) == 2


def test_a_type_that_does_not_exist_is_refused_with_those_that_do(axon, lived):
    ended = axon("log", "show", lived, "--type", "cognet:smell")
    assert ended.status == 1
    assert ended.err.startswith("ENTRY_TYPE_UNKNOWN: ")
    assert "cognet:stimulus:text" in ended.err


def test_a_channel_can_be_chosen_of_stimuli_and_outputs(axon, lived):
    assert len(shown(axon, lived, "--channel", "battery")) == 3
    assert len(shown(axon, lived, "--channel", "steer")) == 1
    assert shown(axon, lived, "--channel", "nobody") == []


def test_a_range_of_seq_can_be_chosen(axon, lived):
    everything = seqs(shown(axon, lived))
    assert seqs(shown(axon, lived, "--after", 2, "--upto", 4)) == [3, 4]
    assert seqs(shown(axon, lived, "--last", 2)) == everything[-2:]
    assert seqs(shown(axon, lived, "--last", 2, "--upto", 5)) == [4, 5]
    assert shown(axon, lived, "--after", 10**6) == []


def test_the_last_of_a_type_can_be_chosen(axon, lived):
    (entry,) = shown(axon, lived, "--last", 1, "--channel", "battery")
    assert entry["data"]["reading"]["value"] == 1.0


def test_a_line_for_people_cannot_drive_their_terminal(axon, lived):
    text = axon("log", "show", lived, "--type", "cognet:stimulus:text").out
    assert "person" in text
    assert "come" in text
    assert "\x1b" not in text


def test_telemetry_is_shown_instead_when_asked(axon, lived):
    (event,) = shown(axon, lived, "--telemetry", "--type", "kernel:ingest")
    assert event["data"]["code"] == "TOPIC_INVALID"
    assert "code=TOPIC_INVALID count=3" in axon("log", "show", lived, "--telemetry").out


def test_a_whole_log_verifies(axon, lived):
    ended = axon("log", "verify", lived, "--json")
    report = json.loads(ended.out)
    wanted = {"ok", "entries", "last_seq", "boots", "unclean_boots", "seq_monotonic", "truncated_chunks", "integrity"}
    assert wanted <= set(report)
    assert (ended.status, report["ok"], report["entries"]) == (0, True, len(shown(axon, lived)))
    assert "as it was written" in axon("log", "verify", lived).out


def test_a_changed_byte_is_found_and_fails(axon, lived):
    path = lived / "data/sessions/0002/log.db"
    raw = path.read_bytes()
    assert b"battery" in raw
    path.write_bytes(raw.replace(b"battery", b"baTtery", 1))
    ended = axon("log", "verify", lived)
    assert ended.status == 1
    assert "DAMAGED" in ended.out
    shown_with_damage = axon("log", "show", lived)
    assert shown_with_damage.status == 1
    assert shown_with_damage.err.startswith("LOG_DAMAGED: ")


def test_without_a_note_the_newest_session_is_the_last(axon, lived):
    (lived / "data/session").unlink()
    assert shown(axon, lived)


@pytest.mark.parametrize("session", ["0003", "../.."])
def test_a_session_that_is_not_there_is_refused_with_those_that_are(axon, lived, session):
    ended = axon("log", "show", lived, "--session", session)
    assert ended.err.startswith("SESSION_NOT_FOUND: ")
    assert "0001, 0002" in ended.err


def test_a_session_without_a_log_is_told(axon, lived):
    assert axon("log", "show", lived, "--session", "0001").err.startswith("SESSION_NOT_FOUND: ")


def test_an_agent_that_never_ran_has_no_session(axon, agent):
    ended = axon("log", "verify", agent)
    assert ended.err.startswith("SESSION_NOT_FOUND: ")
    assert "axon run" in ended.err


def test_a_folder_without_an_agent_is_told(axon, tmp_path):
    assert axon("log", "show", tmp_path).err.startswith("AGENT_NOT_FOUND: ")


def test_a_message_of_several_lines_stays_one(axon, lived):
    assert "clock: stepped ⏎ back" in axon("log", "show", lived, "--type", "axon:system:message").out
