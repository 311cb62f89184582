from axon.checks.tools import tools
from hardware_profiles.profile import load
from runtime.config.agent import load_agent


def checks(agent, *, running):
    return {check.name: check for check in tools(load_agent(agent, load("generic-x86_64")), running=running)}


def test_without_a_kernel_the_modules_are_listed_and_none_is_imported(agent):
    (agent / "modules").mkdir()
    (agent / "modules/lamp.py").write_text("raise SystemExit('imported')")
    (agent / "modules/_shared.py").write_text("")
    with (agent / "axon.toml").open("a") as file:
        file.write('[policy."lamp.*"]\ndecision = "allow"\n')
    found = checks(agent, running=False)
    assert found["tools"].detail == "lamp: imported when the agent runs"
    assert found["policy"].detail == "1 rule; what no rule names is denied"


def test_an_agent_without_modules_has_none(agent):
    assert checks(agent, running=False)["tools"].detail == "no modules"


def serve(kernel, scope, mistakes=()):
    async def told() -> dict[str, object]:
        return {"scope": {"modules": [], "unavailable": [], **scope}, "mistakes": list(mistakes)}

    kernel(tools=told)


def test_a_module_that_failed_is_a_warning_with_its_reason(agent, kernel):
    serve(
        kernel,
        {
            "modules": [{"name": "lamp", "members": [{"name": "dim"}, {"name": "fade"}]}],
            "unavailable": [
                {"name": "arm", "reason": "ImportError: no motor"},
                {"name": "lamp.on", "reason": "denied by policy"},
            ],
        },
    )
    check = checks(agent, running=True)["tools"]
    assert check.state == "warning"
    assert check.detail == "lamp (dim, fade)\ndenied by policy: lamp.on\narm: ImportError: no motor"


def test_when_all_loaded_all_is_well(agent, kernel):
    serve(kernel, {"modules": [{"name": "lamp", "members": [{"name": "dim"}]}]})
    found = checks(agent, running=True)
    assert (found["tools"].state, found["tools"].detail) == ("held", "lamp (dim)")
    assert found["policy"].state == "held"


def test_a_rule_that_can_mean_nothing_is_a_warning(agent, kernel):
    serve(kernel, {}, ["the rule lamp.dimm names no tool: lamp has dim"])
    check = checks(agent, running=True)["policy"]
    assert (check.state, check.detail) == ("warning", "the rule lamp.dimm names no tool: lamp has dim")


def test_a_kernel_that_does_not_answer_is_told(agent, kernel):
    assert checks(agent, running=True)["tools"].state == "warning"
