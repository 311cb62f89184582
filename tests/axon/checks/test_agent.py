import pytest

from axon.checks.agent import kernel, kernel_summary, refused, stop_latch, storage_state
from runtime.kernel.stop import StopLatch


def test_a_stop_that_is_latched_is_a_warning_with_who_and_why(agent):
    (agent / "data").mkdir()
    latch = StopLatch.load(agent / "data")
    latch.latch(by="ada", reason="smoke")
    latch.save()
    check = stop_latch(agent)
    assert check.state == "warning"
    assert check.detail == "latched by ada: smoke"
    assert f"axon stop {agent} --clear" in check.fix


def test_an_unreadable_stop_file_counts_as_latched(agent):
    (agent / "data").mkdir()
    (agent / "data/stop.json").write_text("{")
    assert stop_latch(agent).state == "warning"


def test_an_agent_that_was_never_stopped_is_held(agent):
    assert stop_latch(agent).state == "held"


def test_without_a_kernel_there_is_nothing_to_tell(agent):
    assert kernel_summary(agent) is None
    assert [check.detail for check in kernel(None)] == ["not running"]


def test_refused_input_is_shown_by_code():
    check = refused({"TOPIC_INVALID": 2, "STIMULUS_INVALID": 1_500, "CHANNEL_LIMIT": 0})
    assert check.state == "warning"
    assert check.detail == "refused: STIMULUS_INVALID 1,500, TOPIC_INVALID 2"


@pytest.mark.parametrize("counts", [{}, {"TOPIC_INVALID": 0}])
def test_when_nothing_was_refused_all_is_well(counts):
    assert refused(counts).state == "held"


@pytest.mark.parametrize("state", ["recovering", "failed"])
def test_storage_that_does_not_write_is_essential(state):
    check = storage_state(state)
    assert (check.state, check.essential) == ("not held", True)
