"""The figures of a run that has ended, as the file holds them."""

from __future__ import annotations

import json


def test_a_brain_that_was_up_to_the_end_is_up_in_the_summary(make_agent, tmp_path):
    agent = make_agent(sensors=False).start(drivers=False, summary=str(tmp_path / "out.json"))
    assert agent.stop() == 0
    assert json.loads((tmp_path / "out.json").read_text())["brain"] == "up"
