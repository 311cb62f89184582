"""Whatever comes in, it is counted, and what is admitted fits its type."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from runtime.abi.entries import PAYLOAD_CLASSES

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(["id", "captured", "content", "reading", "bytes", "kind", "width", "height", "transcript"])
NEARLY = st.dictionaries(KEYS, JSON | st.binary(max_size=8), max_size=6)
CAPTURED = st.fixed_dictionaries({"epoch": st.text(max_size=3), "ms": st.integers(), "seq": st.integers(-1, 5)})
ALMOST_GOOD = st.fixed_dictionaries(
    {"reading": st.fixed_dictionaries({"value": JSON})}, optional={"captured": CAPTURED, "id": st.text(max_size=3)}
)
PAYLOADS = (
    st.binary(max_size=200)
    | JSON.map(lambda value: msgspec.json.encode(value))
    | NEARLY.map(lambda value: msgspec.msgpack.encode(value, enc_hook=str) if _fits(value) else b"\xc1")
    | ALMOST_GOOD.map(lambda value: msgspec.json.encode(value))
)
TOPICS = st.sampled_from(["text", "field", "audio", "visual"]).map(
    lambda kind: f"axon/rover/stimulus/{kind}/imu"
) | st.text(max_size=40)


def _fits(value: Any) -> bool:
    """Whether msgpack can say it: it has no larger integers."""
    try:
        msgspec.msgpack.encode(value)
    except OverflowError:
        return False
    return True


@given(st.lists(st.tuples(TOPICS, PAYLOADS, st.booleans()), max_size=12))
def test_nothing_raises_and_what_is_admitted_is_valid(make_world: Any, messages: list[tuple[str, bytes, bool]]) -> None:
    world = make_world()
    outcomes = [world.ingest.take(topic, payload, retained).outcome for topic, payload, retained in messages]
    assert outcomes.count("admitted") == len(world.log.rows)
    assert outcomes.count("refused") == sum(world.ingest.refused.values())
    for row, data in world.log.rows:
        assert msgspec.json.decode(row.body, type=PAYLOAD_CLASSES[row.type]) == data


@given(st.binary(max_size=200) | JSON.map(lambda value: msgspec.json.encode(value)))
def test_no_report_raises(make_world: Any, payload: bytes) -> None:
    make_world().ingest.report("axon/rover/sensor/imu", payload)
