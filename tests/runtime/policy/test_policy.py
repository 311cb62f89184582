from hypothesis import given
from hypothesis import strategies as st

from runtime.config.policy import Bound, Rule
from runtime.config.policy import Policy as Table
from runtime.policy.policy import Policy


def policy(**rules: Rule) -> Policy:
    """Rules by name, with ``_`` for the dot and ``any`` for ``*``."""
    return Policy(Table(rules={name.replace("_", ".").replace("any", "*"): rule for name, rule in rules.items()}))


def decision(made: Policy, name: str, now_us: int = 0, **arguments: object) -> str:
    return made.check(name, arguments, now_us).decision


def test_what_no_rule_names_is_denied():
    verdict = policy().check("arm.move", {}, 0)
    assert (verdict.decision, verdict.rule, verdict.reason) == ("deny", "", "no rule names it")


def test_the_most_specific_rule_decides_alone():
    made = policy(arm_move=Rule(decision="allow"), arm_any=Rule(decision="deny"), any=Rule(decision="escalate"))
    assert decision(made, "arm.move") == "allow"
    assert decision(made, "arm.home") == "deny"
    assert decision(made, "lamp.on") == "escalate"
    assert made.check("arm.home", {}, 0).rule == "arm.*"


def test_a_module_of_a_longer_name_is_another_module():
    made = policy(arm_any=Rule(decision="allow"))
    assert decision(made, "armour.move") == "deny"
    assert decision(made, "arm.left.move") == "allow"


def test_an_argument_above_its_bound_is_denied_with_its_name_and_value():
    made = policy(arm_move=Rule(decision="allow", arguments={"x": Bound(min=-1, max=1)}))
    assert decision(made, "arm.move", x=0.5) == "allow"
    verdict = made.check("arm.move", {"x": 5}, 0)
    assert verdict.decision == "deny"
    assert verdict.reason == "x = 5 isn't from -1 to 1"


def test_a_bounded_argument_that_is_not_known_is_denied():
    made = policy(arm_any=Rule(decision="allow", arguments={"x": Bound(max=1)}))
    assert decision(made, "arm.move") == "deny"
    assert decision(made, "arm.move", y=0) == "deny"


def test_a_person_is_asked_only_about_what_is_within_the_bounds():
    made = policy(arm_move=Rule(decision="escalate", arguments={"x": Bound(max=1)}, ask_s=7))
    assert decision(made, "arm.move", x=2) == "deny"
    verdict = made.check("arm.move", {"x": 1}, 0)
    assert (verdict.decision, verdict.ask_s) == ("escalate", 7)


def test_a_rule_without_its_own_time_asks_for_that_of_the_table():
    made = Policy(Table(ask_s=12, rules={"*": Rule(decision="escalate")}))
    assert made.check("a.b", {}, 0).ask_s == 12


def test_a_rate_refuses_what_comes_too_often_and_lets_pass_later():
    made = policy(arm_move=Rule(decision="allow", rate="2/s"))
    assert [decision(made, "arm.move", now) for now in (0, 1, 2)] == ["allow", "allow", "deny"]
    assert made.check("arm.move", {}, 2).reason == "more than 2/s"
    assert decision(made, "arm.move", 500_001) == "allow"
    assert decision(made, "arm.move", 500_002) == "deny"


def test_a_rate_is_shared_by_all_that_the_rule_decides_about():
    made = policy(arm_any=Rule(decision="allow", rate="1/min"))
    assert decision(made, "arm.move") == "allow"
    assert decision(made, "arm.home") == "deny"


def test_what_is_out_of_bounds_uses_nothing_of_the_rate():
    made = policy(arm_move=Rule(decision="allow", rate="1/h", arguments={"x": Bound(max=1)}))
    assert [decision(made, "arm.move", x=x) for x in (9, 9, 1, 1)] == ["deny", "deny", "allow", "deny"]


def test_what_is_never_allowed_is_known_beforehand():
    made = policy(arm_any=Rule(decision="deny"), arm_home=Rule(decision="escalate"))
    assert made.permits("arm.home")
    assert not made.permits("arm.move")
    assert not made.permits("lamp.on")


@given(st.text(max_size=40))
def test_any_name_gets_a_verdict(name):
    assert decision(policy(arm_any=Rule(decision="allow")), name) in ("allow", "deny")
