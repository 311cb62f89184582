"""Reflex's model is a projection of the log: however it is folded, the same entries give the same model."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognets.reflex.state import LEARNING, Model, Sense

REF = "sha256:" + "0" * 64


def field(value, channel="host.cpu"):
    return "cognet:stimulus:field", {"source": {"channel": channel}, "reading": {"value": value}}


def picture(channel="camera"):
    source = {"channel": channel}
    return "cognet:stimulus:visual", {"source": source, "ref": REF, "kind": "image/jpeg", "width": 640, "height": 480}


def text(content, channel="user"):
    return "cognet:stimulus:text", {"source": {"channel": channel}, "content": content}


def output(value, channel="steer"):
    return "cognet:output:field", {"channel": channel, "reading": {"value": value}}


THOUGHT = ("cognet:output:text", {"channel": "thought", "content": "camera: it speaks for the first time"})
MESSAGE = ("axon:system:message", {"type": "recovery", "text": "replayed"})


@pytest.fixture(scope="session")
def log_of(small_kernel):
    def make(facts):
        log = small_kernel.SmallLog()
        for type_, data in facts:
            log.admit(type_, data)
        return log.entries()

    return make


facts = st.lists(
    st.one_of(
        st.builds(field, st.floats(-1e6, 1e6) | st.booleans() | st.just("on") | st.integers(-9, 9)),
        st.builds(picture),
        st.builds(text, st.text(max_size=20)),
        st.builds(output, st.floats(-1, 1), st.sampled_from(["steer", "bias"])),
        st.sampled_from([THOUGHT, MESSAGE]),
    ),
    max_size=60,
)


@given(facts, st.integers(0, 60))
def test_a_checkpoint_and_what_came_after_give_the_model_of_the_whole_log(log_of, facts, cut):
    entries = log_of(facts)
    whole, resumed = Model(), Model()
    whole.fold(entries)
    resumed.fold(entries[:cut])
    resumed = Model.from_checkpoint(json.loads(json.dumps(resumed.to_checkpoint())))
    resumed.fold(entries[cut:])
    assert resumed == whole
    assert whole.seq == len(entries)


@given(facts)
def test_steering_stays_within_its_limits(log_of, facts):
    model = Model()
    for entry in log_of(facts):
        model.fold([entry])
        assert -1 <= model.steer <= 1


@pytest.mark.parametrize("saved", [None, {}, [], 3, {"seq": 1}, {"senses": 1}, {"senses": {}, "colour": 1}])
def test_a_checkpoint_that_cannot_be_read_is_an_empty_model(saved):
    assert Model.from_checkpoint(saved) == Model()


def test_the_first_of_a_channel_is_new_and_the_second_is_not(log_of):
    model = Model()
    assert [[n.channel for n in model.fold([entry])] for entry in log_of([picture(), picture()])] == [["camera"], []]


def test_words_are_always_new(log_of):
    model = Model()
    model.fold(log_of([text("hello")] * 3)[:2])
    (novelty,) = model.fold(log_of([text("hello")] * 3)[2:])
    assert "hello" in novelty.what


def test_a_reading_far_off_is_new_once_the_channel_is_known(log_of):
    usual = [field(10 + math.sin(number)) for number in range(LEARNING + 5)]
    novelties = Model().fold(log_of([*usual, field(50), field(10)]))
    assert [novelty.seq for novelty in novelties] == [1, LEARNING + 6]
    assert "sigma off" in novelties[-1].what


def test_a_constant_channel_does_not_divide_by_nothing():
    sense = Sense()
    for _ in range(100):
        sense.take(5.0)
    assert abs(sense.deviation) < 1


def test_its_own_thought_comes_back_through_the_log(log_of):
    model = Model()
    model.fold(log_of([output(0.2, "bias"), THOUGHT, output(0.1)]))
    assert (model.bias, model.steer) == (0.2, 0.2)
    assert model.outputs == {"bias": 1, "thought": 1, "steer": 1}
    assert model.thought.startswith("camera")
