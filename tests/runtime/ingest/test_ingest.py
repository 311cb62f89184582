"""What becomes of messages: admitted, known, refused, or passing through."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from runtime.abi import envelope as e
from runtime.abi.errors import EntryTooLarge, KernelStopping, LogBacklogFull, StimulusInvalid
from runtime.abi.payloads import Captured, Reading
from runtime.ingest.channels import MAX_CHANNELS
from runtime.ingest.refusals import MAX_KINDS, PERIOD_US

PACK = msgspec.msgpack.encode


def captured(seq: int) -> Captured:
    return Captured(epoch="e1", ms=5, seq=seq)


# -- what is good --------------------------------------------------------------------------------------


def test_a_reading_becomes_an_entry(world: Any) -> None:
    taken = world.raw(
        "field", "imu", e.encode(e.FieldEnvelope(reading=Reading(value=1.5, unit="m"), captured=captured(1)))
    )
    assert (taken.outcome, taken.channel, taken.seq) == ("admitted", "imu", 1)
    row, data = world.log.rows[0]
    assert row.type == "cognet:stimulus:field"
    assert (data.source.channel, data.reading.value, data.reading.unit, data.captured.seq) == ("imu", 1.5, "m", 1)


def test_a_picture_goes_to_the_media_store_and_its_ref_into_the_entry(world: Any) -> None:
    picture = e.VisualEnvelope(
        bytes=b"\xff\xd8jpeg", kind="image/jpeg", width=4, height=3, id="left", captured=captured(1)
    )
    taken = world.raw("visual", "camera", e.encode(picture))
    data = world.log.rows[0][1]
    assert taken.outcome == "admitted"
    assert world.media.staged == {data.ref: b"\xff\xd8jpeg"}
    assert (data.kind, data.width, data.height, data.source.id) == ("image/jpeg", 4, 3, "left")


def test_a_block_of_sound_keeps_its_facts(world: Any) -> None:
    world.raw("audio", "mic", e.encode(e.AudioEnvelope(bytes=b"pcm", transcript="hi", duration_ms=200.0)))
    data = world.log.rows[0][1]
    assert (world.media.staged[data.ref], data.transcript, data.duration_ms) == (b"pcm", "hi", 200.0)


def test_words_without_a_counter_are_admitted_every_time(world: Any) -> None:
    payload = e.encode(e.TextEnvelope(content="hello"))
    assert [world.raw("text", "person", payload).outcome for _ in range(3)] == ["admitted"] * 3


def test_words_that_a_person_says_take_the_same_path(world: Any) -> None:
    row = world.ingest.say("person", "hello", "cli")
    assert (row.seq, world.log.rows[0][1].source.id) == (1, "cli")
    world.committed()
    assert world.ingest.counts["person"].committed == 1


@pytest.mark.parametrize(("channel", "content"), [("per/son", "x"), ("", "x"), ("person", "x" * 70_000)])
def test_words_that_do_not_fit_are_raised(world: Any, channel: str, content: str) -> None:
    with pytest.raises(StimulusInvalid):
        world.ingest.say(channel, content, None)


# -- what is bad: counted and shown, never stored, never raised -------------------------------------------

BAD = {
    "malformed JSON": ("field", b'{"reading":'),
    "no JSON": ("text", b"hello"),
    "empty": ("field", b""),
    "an array": ("field", b"[]"),
    "a deep array": ("text", b"[" * 60_000),
    "a field too few": ("field", b"{}"),
    "a field too many": ("field", b'{"reading":{"value":1},"channel":"x"}'),
    "a wrong type": ("text", b'{"content":5}'),
    "NaN": ("field", b'{"reading":{"value":NaN}}'),
    "infinity": ("field", b'{"reading":{"value":1e999}}'),
    "infinity in a vector": ("field", b'{"reading":{"value":[1,1e999]}}'),
    "a number of 40 digits": ("field", b'{"reading":{"value":' + b"9" * 40 + b"}}"),
    "a clock of 40 digits": ("text", b'{"content":"x","captured":{"epoch":"a","seq":1,"ms":' + b"9" * 40 + b"}}"),
    "a negative counter": ("text", b'{"content":"x","captured":{"epoch":"a","seq":-1,"ms":1}}'),
    "an empty epoch": ("text", b'{"content":"x","captured":{"epoch":"","seq":1,"ms":1}}'),
    "invalid UTF-8": ("text", b'{"content":"\xff\xfe"}'),
    "half a surrogate pair": ("text", b'{"content":"\\ud800"}'),
    "no msgpack": ("audio", b"\xc1"),
    "JSON for msgpack": ("visual", b'{"bytes":"x"}'),
    "msgpack with a tail": ("audio", PACK({"bytes": b"x"}) + b"zz"),
    "msgpack that promises 4 GB": ("audio", b"\x81\xa5bytes\xc6\xff\xff\xff\xffx"),
    "NaN in msgpack": ("audio", PACK({"bytes": b"x", "duration_ms": math.nan})),
    "no bytes": ("audio", PACK({"bytes": b""})),
    "a size of zero": ("visual", PACK({"bytes": b"x", "kind": "image/jpeg", "width": 0, "height": 1})),
    "surrogates in msgpack": (
        "audio",
        PACK({"bytes": b"x"})[:-1].replace(b"\x81", b"\x82") + b"x\xaatranscript\xa3\xed\xa0\x80",
    ),
}


@pytest.mark.parametrize(("kind", "payload"), BAD.values(), ids=BAD.keys())
def test_bad_payloads_are_refused(world: Any, kind: str, payload: bytes) -> None:
    taken = world.raw(kind, "imu", payload)
    assert (taken.outcome, taken.error.code) == ("refused", "STIMULUS_INVALID")
    assert (world.log.rows, world.media.staged) == ([], {})
    assert world.ingest.refused == {"STIMULUS_INVALID": 1}
    assert (world.ingest.counts["imu"].received, world.ingest.counts["imu"].rejected) == (1, 1)


@pytest.mark.parametrize("kind", ["text", "field", "audio", "visual"])
def test_10_mb_are_refused_unread(world: Any, kind: str) -> None:
    assert world.raw(kind, "imu", b"x" * 10_000_000).error.code == "STIMULUS_TOO_LARGE"


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "axon",
        "axon/rover/stimulus",
        "axon/rover/stimulus/field",
        "axon/rover/stimulus/field/",
        "axon/rover/stimulus/smell/nose",
        "axon/rover/stimulus/field/a/b",
        "axon/rover/stimulus/field/../etc",
        "axon/rover/stimulus/field/" + "x" * 65,
        "axon/other/stimulus/field/imu",
        "axon/rover/stimulus/field/im\\xff",
        "axon/rover/stimulus/field/imu\n",
        "axon/rover/stimulus/field/ümu",
        "axon/rover/stimulus/field/" + "x" * 60_000,
    ],
    ids=lambda topic: topic[:40],
)
def test_absurd_topics_are_refused(world: Any, topic: str) -> None:
    taken = world.ingest.take(topic, b'{"reading":{"value":1}}', False)
    assert (taken.outcome, taken.error.code) == ("refused", "TOPIC_INVALID")
    assert world.ingest.counts == {}


@pytest.mark.parametrize(
    "error",
    [LogBacklogFull("full"), EntryTooLarge("large"), KernelStopping("stopping")],
    ids=lambda error: error.code,
)
def test_what_the_log_refuses_is_refused_and_moves_no_mark(world: Any, error: Exception) -> None:
    world.log.refuse_with = error
    assert world.field(seq=1).error is error
    world.log.refuse_with = None
    assert world.field(seq=1).outcome == "admitted"


def test_a_retained_stimulus_without_a_counter_is_refused(world: Any) -> None:
    """It would be told again at every reconnect of the kernel."""
    assert world.field(retained=True).error.code == "STIMULUS_INVALID"


def test_a_retained_stimulus_with_a_counter_is_admitted_once(world: Any) -> None:
    assert [world.field(seq=1, retained=True).outcome for _ in range(2)] == ["admitted", "duplicate"]


# -- floods ---------------------------------------------------------------------------------------------


def test_one_channel_too_many_is_refused_and_the_others_go_on(world: Any) -> None:
    for number in range(MAX_CHANNELS):
        assert world.field(f"c{number}").outcome == "admitted"
    assert world.field("one-more").error.code == "CHANNEL_LIMIT"
    assert world.field("c7").outcome == "admitted"


def test_a_flood_of_channels_grows_neither_memory_nor_telemetry(world: Any) -> None:
    """A million would do the same; what is kept is bounded from the first thousands on."""
    for number in range(MAX_CHANNELS):
        world.field(f"c{number}")
    for number in range(20_000):
        world.now_us += 100
        world.raw("field", f"x{number}", b'{"reading":{"value":1}}' if number % 2 else b"junk")
    world.now_us += PERIOD_US
    world.ingest.report_refusals()
    assert sum(world.ingest.refused.values()) == 20_000
    assert len(world.ingest.counts) <= MAX_CHANNELS + 256
    refusals = world.events("kernel:ingest:refused")
    assert len(refusals) <= 4 * (MAX_KINDS + 2)
    assert sum(refusal.count for refusal in refusals) == 20_000


def test_bad_channels_take_no_place_of_good_ones(world: Any) -> None:
    for number in range(3000):
        world.raw("field", f"bad{number}", b"junk")
    assert world.field("good").outcome == "admitted"
    assert world.ingest.counts["good"].received == 1


def test_a_flood_of_sources_on_one_channel_is_bounded(world: Any) -> None:
    outcomes = [world.field(id_=f"d{number}", seq=1).outcome for number in range(5000)]
    assert outcomes.count("admitted") == 4096
    assert world.ingest.refused == {"CHANNEL_LIMIT": 5000 - 4096}


def test_a_flood_of_epochs_is_bounded(world: Any) -> None:
    for number in range(2000):
        assert world.field(seq=1, epoch=f"e{number}").outcome == "admitted"
    assert world.committed()[-1] == ("imu", None, "e1999", 1)


def test_the_first_refusal_is_told_at_once_and_the_next_in_sums(world: Any) -> None:
    for _ in range(5):
        world.raw("text", "person", b"junk")
    assert [refusal.count for refusal in world.events("kernel:ingest:refused")] == [1]
    world.now_us += PERIOD_US
    world.committed()
    first, second = world.events("kernel:ingest:refused")
    assert (first.channel, first.code, second.count) == ("person", "STIMULUS_INVALID", 4)
    assert "malformed" in first.example


# -- transient channels ------------------------------------------------------------------------------------


def test_a_transient_stimulus_passes_through_and_leaves_no_entry(make_world: Any) -> None:
    world = make_world(transient=("imu",))
    taken = world.field(seq=1)
    assert (taken.outcome, taken.seq, taken.type) == ("transient", 0, "cognet:stimulus:field")
    assert taken.data.reading.value == 1.5
    assert world.log.rows == []
    assert [(event.channel, event.kind) for event in world.events("kernel:ingest:transient")] == [("imu", "field")]


def test_a_transient_stimulus_may_be_confirmed_at_once(make_world: Any) -> None:
    world = make_world(transient=("imu",))
    world.field(seq=1)
    assert world.committed(0) == [("imu", None, "e1", 1)]
    assert world.field(seq=1).outcome == "duplicate"
    assert world.ingest.counts["imu"].committed == 1


# -- reports of drivers -------------------------------------------------------------------------------------


def report(world: Any, channel: str, payload: dict[str, object]) -> None:
    world.ingest.report(f"axon/rover/sensor/{channel}", msgspec.json.encode(payload))


def test_a_gap_that_the_driver_tells_is_recorded_as_told(world: Any) -> None:
    world.field(seq=1)
    report(world, "imu", {"type": "gap", "channel": "imu", "epoch": "e1", "first": 2, "last": 3})
    report(world, "imu", {"type": "gap", "channel": "imu", "epoch": "e1", "first": 4, "last": 4})
    gap = world.field(seq=5).gap
    assert (gap.first, gap.last, gap.told) == (2, 4, True)
    assert [(told.first, told.last) for told in world.events("sensor:gap")] == [(2, 3), (4, 4)]


def test_health_is_passed_on(world: Any) -> None:
    report(world, "imu", {"type": "health", "channel": "imu", "state": "stalled", "facts": {"for_s": 3}})
    (health,) = world.events("sensor:health")
    assert (health.channel, health.state, health.facts) == ("imu", "stalled", {"for_s": 3})


@pytest.mark.parametrize(
    "payload",
    [
        b"junk",
        b"\xff",
        b'{"type":"gap"}',
        b'{"type":"party","channel":"imu"}',
        b'{"type":"gap","channel":"imu","epoch":"e","first":5,"last":4}',
        b'{"type":"health","channel":"other","state":"x"}',
        b'{"type":"health","channel":"imu","state":"' + b"x" * 300 + b'"}',
        b" " * 20_000,
    ],
    ids=lambda payload: repr(payload[:30]),
)
def test_bad_reports_are_refused(world: Any, payload: bytes) -> None:
    world.ingest.report("axon/rover/sensor/imu", payload)
    assert sum(world.ingest.refused.values()) == 1
    assert {type_ for type_, _ in world.told} == {"kernel:ingest:refused"}
