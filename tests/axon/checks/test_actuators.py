import pytest

from axon.checks.actuators import actuators
from hardware_profiles.profile import load
from runtime.config.agent import load_agent

CONFIG = """
[actuators.steer]
driver = "simulated"
channel = "steer"
safe = 0
min = -1
max = 1
max_rate = 4
unit = "rad"

[actuators.lamp]
driver = "mqtt"
tool = "lamp.switch"
argument = "on"
safe = false
"""


@pytest.fixture
def checks(agent, summary):
    """The lines about an agent with these rules, in a kernel that knows these states."""

    def check(rules="", **states):
        file = agent / "axon.toml"
        file.write_text('format = 1\n[agent]\nname = "robot"\n' + CONFIG + rules)
        known = summary(actuators=states) if states else None
        return list(actuators(load_agent(agent, load("generic-x86_64")), known))

    return check


ALLOWED = '[policy."lamp.switch"]\ndecision = "allow"\n'


def test_a_binding_is_one_line_with_its_limits(checks):
    steer, lamp = checks(ALLOWED)
    assert (steer.name, steer.state) == ("actuator steer", "held")
    assert steer.detail == "channel steer: -1 to 1 rad, at most 4/s, safe 0, 500 ms; simulated"
    assert (lamp.state, lamp.detail) == ("held", "tool lamp.switch, on: on or off, safe false, 500 ms; mqtt")


def test_a_tool_that_no_rule_allows_moves_nothing(checks):
    _, lamp = checks()
    assert lamp.state == "warning"
    assert "policy denies lamp.switch" in lamp.detail


@pytest.mark.parametrize(("decision", "words"), [("deny", "denies it"), ("escalate", "asks a person")])
def test_a_rule_that_lets_nothing_through_is_told(checks, decision, words):
    steer, _ = checks(f'{ALLOWED}[policy."actuator.*"]\ndecision = "{decision}"\n')
    assert steer.state == "warning"
    assert f"the rule actuator.* {words}" in steer.detail


def test_one_that_isnt_heard_is_told(checks):
    steer, lamp = checks(ALLOWED, steer="moving", lamp="gone")
    assert (steer.state, lamp.state) == ("held", "warning")
    assert steer.detail.endswith("; moving")
