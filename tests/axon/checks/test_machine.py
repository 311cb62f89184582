import pytest

from axon.checks.machine import machine, memory_limits, python
from hardware_profiles.profile import load


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13)])
def test_a_tested_python_is_held(version):
    assert python(version).state == "held"


@pytest.mark.parametrize("version", [(3, 10), (3, 14), (2, 7), (4, 0)])
def test_another_python_is_not_and_says_which_are(version):
    check = python(version)
    assert (check.state, check.essential) == ("not held", True)
    assert "3.11 to 3.13" in check.fix


def controllers(root, text):
    path = root / "sys/fs/cgroup/cgroup.controllers"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return root


def test_a_memory_controller_is_held(tmp_path):
    assert memory_limits(controllers(tmp_path, "cpuset cpu io memory pids\n")).state == "held"


def test_raspberry_pi_os_as_it_comes_gets_the_fix(tmp_path):
    check = memory_limits(controllers(tmp_path, "cpuset cpu io pids\n"))
    assert (check.state, check.essential) == ("warning", False)
    assert "cgroup_enable=memory" in check.fix


def test_the_profile_is_named(tmp_path):
    assert any("raspberry-pi-5" in check.detail for check in machine(load("raspberry-pi-5"), root=tmp_path))
