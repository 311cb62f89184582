"""How a driver refuses what it is started with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from actuators.settings import read_settings
from runtime.abi.errors import ActuatorInvalid
from runtime.mqtt.broker import free_port

WAIT_S = 25.0


def settings(**changes: Any) -> str:
    broker = {"host": "127.0.0.1", "port": free_port()}
    return json.dumps({"agent": "tested", "name": "arm", "broker": broker, "safe": 0.0} | changes)


def refusal(*arguments: str, given: str = "") -> str:
    """The one line that a driver says when it can't begin."""
    done = subprocess.run(
        [sys.executable, "-m", "actuators", *arguments], capture_output=True, text=True, input=given, timeout=WAIT_S
    )
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def test_no_driver() -> None:
    assert refusal().startswith("ACTUATOR_INVALID: a driver is started with")


def test_an_unknown_driver() -> None:
    assert refusal("servo", settings()).startswith("ACTUATOR_INVALID: there is no driver 'servo'")


@pytest.mark.parametrize("wrong", ["{", "[]", settings(safe="off"), settings(name="a/b"), settings(speed=1)])
def test_settings_that_cant_be_read(wrong: str) -> None:
    with pytest.raises(ActuatorInvalid, match="the driver's settings can't be read"):
        read_settings(wrong)


def test_settings_on_standard_input(tmp_path: Path) -> None:
    line = refusal("simulated", given=settings(trace=str(tmp_path)))
    assert line.startswith("ACTUATOR_INVALID: the trace")


def test_a_parent_that_is_gone_already_ends_it(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "actuators", "simulated", settings(parent=2**22 - 1, trace=str(tmp_path / "t"))]
    assert subprocess.run(argv, timeout=WAIT_S, check=False).returncode == 0
    assert "its parent is gone" in (tmp_path / "t").read_text()
