"""Every check between a value that was said and the command that carries it."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.abi.actuators import Release, Stop
from runtime.abi.errors import ActuatorAway, ActuatorLate, PolicyDenied
from runtime.config.policy import Bound
from runtime.kernel.actuators.commander import AGAIN_US, Commander, Order
from runtime.kernel.actuators.device import AWAY_US

from .conftest import FAST, actuator, commander, policy, state


def order(value: Any = 0.5, *, said_us: int = 0, seq: int = 7) -> Order:
    return Order(value=value, said_us=said_us, seq=seq)


def test_a_value_holds_from_when_it_was_said_by_the_actuators_own_clock(steer: Commander) -> None:
    command = steer.command(order(said_us=100_000), 250_000)
    assert command.until_ms == 100 + FAST + 500
    assert (command.value, command.epoch, command.boot, command.seq) == (0.5, "e", "b", 7)


def test_a_state_that_was_delayed_gives_no_value_more_time(steer: Commander) -> None:
    steer.heard(state(1_000_000), 1_400_000)  # 400 ms on its way
    assert steer.command(order(said_us=1_400_000), 1_400_000).until_ms == 1400 + FAST + 500
    late = commander()
    late.device.heard(state(0, epoch="new"), 400_000)
    assert late.command(order(said_us=400_000), 400_000).until_ms == 0 + FAST + 500


def test_what_became_durable_too_late_is_refused(steer: Commander) -> None:
    steer.command(order(said_us=0), 499_000)
    with pytest.raises(ActuatorLate, match="500 ms ago"):
        steer.command(order(said_us=0), 500_000)


def test_an_actuator_that_was_never_heard_or_is_silent_gets_nothing(steer: Commander) -> None:
    fresh = Commander("steer", steer.actuator, boot="b", check=policy().check)
    with pytest.raises(ActuatorAway):
        fresh.command(order(), 0)
    with pytest.raises(ActuatorAway):
        steer.command(order(said_us=AWAY_US), AWAY_US + 1)


def test_one_that_said_goodbye_gets_nothing(steer: Commander) -> None:
    steer.heard(state(1000, "gone"), 1000)
    with pytest.raises(ActuatorAway):
        steer.command(order(said_us=1000), 1000)


def test_the_goodbye_of_an_earlier_start_is_nobodys(steer: Commander) -> None:
    steer.heard(state(1000, epoch="new"), 1000)
    steer.heard(state(2000, "gone"), 2000)
    assert steer.command(order(said_us=2000), 2000).epoch == "new"


def test_numbers_rise_over_all_kinds_of_commands(steer: Commander) -> None:
    said = [
        steer.command(order(), 0),
        steer.tell_stop(1, 0),
        steer.device.take_safe(),
        steer.tell_release(1, 0),
        steer.command(order(), 0),
    ]
    assert [command.number for command in said] == [1, 2, 3, 4, 5]


# -- policy -------------------------------------------------------------------------------------------


def test_the_table_that_binds_it_allows_it(steer: Commander) -> None:
    assert steer.command(order(), 0).value == 0.5


@pytest.mark.parametrize("name", ["actuator.steer", "actuator.*", "*"])
def test_a_rule_that_names_it_decides_instead(name: str) -> None:
    denied = commander(policy(**{name: {"decision": "deny"}}))
    with pytest.raises(PolicyDenied, match=r"actuator\.steer: the rule denies it") as caught:
        denied.command(order(), 0)
    assert caught.value.facts["rule"] == name
    assert commander(policy(**{name: {"decision": "allow"}})).command(order(), 0).value == 0.5


def test_a_rule_may_bound_the_value_and_its_rate() -> None:
    rule = {"decision": "allow", "rate": "1/s", "arguments": {"value": Bound(max=0.6)}}
    bounded = commander(policy(**{"actuator.steer": rule}))
    with pytest.raises(PolicyDenied, match=r"at most 0\.6"):
        bounded.command(order(0.7), 0)
    bounded.command(order(0.5), 0)
    with pytest.raises(PolicyDenied, match="more than 1/s"):
        bounded.command(order(0.5), 1000)


def test_nobody_is_asked_about_an_output() -> None:
    asking = commander(policy(**{"actuator.steer": {"decision": "escalate"}}))
    with pytest.raises(PolicyDenied, match="can't wait for a person"):
        asking.command(order(), 0)


def test_a_tools_value_has_passed_policy_by_the_tools_own_name() -> None:
    denied = commander(policy(**{"*": {"decision": "deny"}}), channel=None, tool="arm.move", argument="angle")
    assert denied.command(order(seq=0), 0).value == 0.5


# -- limits -------------------------------------------------------------------------------------------


def test_an_output_is_limited_to_range_and_rate() -> None:
    slow = commander(max_rate=2.0)
    first = slow.command(order(9.0), 100_000)
    slow.sent(first, 100_000)
    assert first.value == pytest.approx(0.2)
    assert slow.command(order(9.0, said_us=150_000), 150_000).value == pytest.approx(0.3)


def test_the_rate_begins_at_the_safe_value_when_the_actuator_rests() -> None:
    slow = commander(max_rate=2.0)
    slow.sent(first := slow.command(order(0.2), 100_000), 100_000)
    slow.heard(state(110_000, "safe", last=""), 110_000)  # crossed the command on its way
    assert slow.command(order(9.0, said_us=150_000), 150_000).value == pytest.approx(0.3)
    slow.heard(state(160_000, "safe", last=first.id), 160_000)
    assert slow.command(order(9.0, said_us=210_000), 210_000).value == pytest.approx(0.1)


def test_a_new_start_of_the_actuator_begins_at_the_safe_value() -> None:
    slow = commander(max_rate=2.0)
    slow.sent(slow.command(order(0.2), 100_000), 100_000)
    slow.heard(state(120_000, epoch="new"), 120_000)
    assert slow.command(order(9.0, said_us=170_000), 170_000).value == pytest.approx(0.1)


def test_what_another_kernel_set_in_motion_goes_on_from_where_it_is() -> None:
    found = Commander("steer", actuator(max_rate=2.0), boot="next", check=policy().check)
    found.heard(state(0, "moving", value=0.8), 0)
    assert found.command(order(-1.0, said_us=100_000), 100_000).value == pytest.approx(0.6)


# -- the emergency stop -------------------------------------------------------------------------------


def test_an_actuator_is_told_what_it_doesnt_say_itself(steer: Commander) -> None:
    told = steer.owed(stopped=True, stop=3, now_us=0)
    assert isinstance(told, Stop)
    assert told.stop == 3
    assert steer.owed(stopped=True, stop=3, now_us=AGAIN_US - 1) is None
    assert steer.owed(stopped=True, stop=3, now_us=AGAIN_US) is not None


def test_one_that_holds_the_stop_needs_no_more(steer: Commander) -> None:
    steer.heard(state(0, "stopped", stop=3), 0)
    assert steer.owed(stopped=True, stop=3, now_us=10**6) is None
    assert steer.owed(stopped=True, stop=4, now_us=10**6) is not None


def test_one_that_missed_the_clearing_is_released(steer: Commander) -> None:
    assert steer.owed(stopped=False, stop=3, now_us=0) is None
    steer.heard(state(0, "stopped", stop=2), 0)
    told = steer.owed(stopped=False, stop=3, now_us=0)
    assert isinstance(told, Release)
    assert told.stop == 3
