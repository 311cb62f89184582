import pytest

from hardware_profiles.profile import load
from runtime.abi.errors import ConfigInvalid
from runtime.config.agent import AgentConfig, load_agent
from runtime.config.policy import Bound

HEAD = 'format = 1\nagent.name = "r"\n'
GOOD = """
[policy]
ask_s = 20

[policy."arm.move"]
decision = "allow"
arguments.x = {min = -1, max = 1}
arguments.joints = {max_length = 6, each = {min = -3.2, max = 3.2}}
rate = "5/s"

[policy."arm.*"]
decision = "escalate"
ask_s = 5

[policy."*"]
decision = "deny"
"""


def loaded(folder, text: str) -> AgentConfig:
    (folder / "axon.toml").write_text(HEAD + text)
    return load_agent(folder, load("generic-x86_64"))


def test_rules_are_read_with_their_bounds(tmp_path):
    policy = loaded(tmp_path, GOOD).policy
    assert policy.ask_s == 20
    assert list(policy.rules) == ["arm.move", "arm.*", "*"]
    rule = policy.rules["arm.move"]
    assert (rule.decision, rule.calls) == ("allow", (5, 1))
    assert rule.arguments["x"] == Bound(min=-1, max=1)
    assert rule.arguments["joints"] == Bound(max_length=6, each=Bound(min=-3.2, max=3.2))


def test_without_a_table_there_is_no_rule(tmp_path):
    policy = loaded(tmp_path, "").policy
    assert (policy.ask_s, policy.rules) == (30, {})


def test_every_rule_tells_in_words_where_it_came_from(tmp_path):
    origins = loaded(tmp_path, GOOD).origins
    assert origins['policy."arm.move"'].source == "axon.toml:7"
    assert origins['policy."arm.move"'].value == (
        "allow; x from -1 to 1; joints of at most 6 characters or items, each from -3.2 to 3.2; at most 5/s"
    )
    assert origins["policy.ask_s"].source == "axon.toml:5"


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("[policy]\nask = 3", "policy.ask", "in quotes"),
        ("[policy]\nask_s = 0", "policy.ask_s", "above 0"),
        ('policy = "allow"', "policy", "a table"),
        ('[policy.arm.move]\ndecision = "allow"', "policy.arm", "in quotes"),
        ('[policy."arm."]\ndecision = "allow"', 'policy."arm."', "in quotes"),
        ('[policy."*.move"]\ndecision = "allow"', 'policy."*.move"', "in quotes"),
        ('[policy."arm.move "]\ndecision = "allow"', 'policy."arm.move "', "in quotes"),
        ('[policy."arm.m*"]\ndecision = "allow"', 'policy."arm.m*"', "in quotes"),
        ('[policy."a.b"]', 'policy."a.b".decision', "to be given"),
        ('[policy."a.b"]\ndecision = "maybe"', 'policy."a.b".decision', '"allow"'),
        ('[policy."a.b"]\ndecision = "allow"\nrat = "5/s"', 'policy."a.b".rat', "rate"),
        ('[policy."a.b"]\ndecision = "allow"\nrate = "5"', 'policy."a.b".rate', '"5/s"'),
        ('[policy."a.b"]\ndecision = "allow"\nrate = "0/s"', 'policy."a.b".rate', '"5/s"'),
        ('[policy."a.b"]\ndecision = "allow"\nburst = 2', 'policy."a.b".burst', "beside a rate"),
        ('[policy."a.b"]\ndecision = "allow"\nask_s = 2', 'policy."a.b".ask_s', "escalate"),
        ('[policy."a.b"]\ndecision = "deny"\nrate = "1/s"', 'policy."a.b".rate', "no more than decision"),
        ('[policy."a.b"]\ndecision = "deny"\narguments.x = {min = 1}', 'policy."a.b".arguments', "no more than"),
        ('[policy."a.b"]\ndecision = "allow"\narguments.x = {}', 'policy."a.b".arguments.x', "one of min"),
        ('[policy."a.b"]\ndecision = "allow"\narguments.x = 3', 'policy."a.b".arguments.x', "a table"),
        ('[policy."a.b"]\ndecision = "allow"\narguments = 3', 'policy."a.b".arguments', "a table"),
        ('[policy."a.b"]\ndecision = "allow"\narguments."x y" = {min = 1}', 'policy."a.b".arguments.x y', "parameter"),
        ('[policy."a.b"]\ndecision = "allow"\narguments.x = {min = 2, max = 1}', 'policy."a.b".arguments.x', "above"),
        ('[policy."a.b"]\ndecision = "allow"\narguments.x = {min = "1"}', 'policy."a.b".arguments.x.min', "a number"),
        ('[policy."a.b"]\ndecision = "allow"\narguments.x = {min = nan}', 'policy."a.b".arguments.x.min', "finite"),
        ('[policy."a.b"]\ndecision = "allow"\narguments.x = {max = inf}', 'policy."a.b".arguments.x.max', "finite"),
        ('[policy."a.b"]\ndecision = "allow"\narguments.x = {min = true}', 'policy."a.b".arguments.x.min', "a number"),
        ('[policy."a.b"]\ndecision = "allow"\narguments.x = {values = []}', 'policy."a.b".arguments.x.values', "list"),
        ('[policy."a.b"]\ndecision = "allow"\narguments.x = {min=1, max_length=1}', 'policy."a.b".arguments.x', "or "),
        ('[policy."a.b"]\ndecision = "allow"\narguments.x = {each = {}}', 'policy."a.b".arguments.x.each', "one of"),
    ],
)  # fmt: skip
def test_what_would_mean_less_than_its_owner_believes_is_refused(tmp_path, text, key, expected):
    with pytest.raises(ConfigInvalid) as caught:
        loaded(tmp_path, text)
    assert caught.value.facts["key"] == key
    assert expected in caught.value.facts["expected"]


def test_two_rules_of_one_name_are_refused(tmp_path):
    rule = '[policy."a.b"]\ndecision = "allow"\n'
    with pytest.raises(ConfigInvalid):
        loaded(tmp_path, rule + rule)


def test_a_rule_without_quotes_is_told_how_it_is_written(tmp_path):
    with pytest.raises(ConfigInvalid) as caught:
        loaded(tmp_path, '[policy.arm.move]\ndecision = "deny"')
    assert '[policy."arm.move"]' in caught.value.hint
