import io

import pytest
from rich.console import Console

from axon.status_view import Beat, line, rates, table
from runtime.abi.summary import ProcessUse, Spread


@pytest.fixture
def beat(summary):
    """One moment's figures, changed as the test asks."""
    return lambda at_s=0.0, **changes: Beat(at_s=at_s, summary=summary(**changes))


def picture(now: Beat, before: Beat | None = None, *, height: int = 24) -> list[str]:
    console = Console(file=io.StringIO(), width=80, height=height)
    console.print(table(now, before, height=height))
    return console.file.getvalue().splitlines()


def test_rates_are_what_happened_since_the_beat_before(beat):
    flow = rates(beat(at_s=102.0, seconds=12.0, wakes=360, commits=500), beat(at_s=100.0, seconds=10.0))
    assert (flow.wakes, flow.commits) == (30, 50)


def test_the_first_beat_shows_the_mean_since_counting_began(beat):
    assert rates(beat(), None).wakes == 30
    assert rates(beat(), None).stimuli["camera"] == 29


def test_counters_that_began_anew_give_no_negative_rates(beat):
    now = beat(at_s=105.0, seconds=1.0, wakes=30, commits=40, stimuli={"camera": 3})
    flow = rates(now, beat(at_s=100.0, seconds=10.0))
    assert flow.wakes == 30
    assert flow.stimuli == {"camera": 3}


def test_counters_that_began_anew_early_are_not_taken_for_a_short_time(beat):
    before = beat(at_s=100.0, seconds=1.0, wakes=3, commits=2, stimuli={})
    assert rates(beat(at_s=105.0, seconds=4.0, wakes=120, commits=300), before).wakes == 30


def test_before_anything_was_counted_nothing_is_divided_by_zero(beat):
    assert rates(beat(seconds=0.0, wakes=0, commits=0, stimuli={}), None).wakes == 0


def test_the_picture_shows_every_figure_that_was_promised(beat):
    text = "\n".join(picture(beat()))
    for word in ("30.0", "0.9 ms", "40.0", "3.1 ms", "12,345", "camera", "host.cpu", "kernel", "40 MB"):
        assert word in text


@pytest.mark.parametrize("channels", [0, 3, 9, 300])
@pytest.mark.parametrize("height", [24, 40])
def test_the_picture_fits_the_terminal(beat, channels, height):
    stimuli = {f"channel-with-a-long-name-{number:03}": 10**9 for number in range(channels)}
    processes = {name: ProcessUse(rss_mb=40, cpu_percent=5, restarts=0) for name in ("kernel", *list(stimuli)[:9])}
    refused = {f"CODE_{number}": 10**6 for number in range(30)}
    now = beat(stimuli=stimuli, processes=processes, stopped=True, storage="failed", refused=refused)
    lines = picture(now, height=height)
    assert len(lines) <= height - 1
    assert max(map(len, lines)) <= 80
    if channels == 300:
        assert any("more" in row for row in lines)


def test_the_main_job_is_shown_whole_on_a_small_terminal(beat):
    host = {f"host.{name}": 1 for name in ("cpu", "memory", "temperature", "disk", "net_rx", "net_tx")}
    names = ("kernel", "broker", "brain", "camera", "microphone", "host", "status")
    processes = {name: ProcessUse(rss_mb=40, cpu_percent=5, restarts=0) for name in names}
    text = "\n".join(picture(beat(stimuli={"camera": 9, "microphone": 9} | host, processes=processes)))
    assert "more" not in text
    assert all(name in text for name in (*names, *host))


def test_trouble_is_told_in_both_forms(beat):
    now = beat(stopped=True, storage="failed", refused={"STIMULUS_INVALID": 7, "TOPIC_INVALID": 0})
    for text in ("\n".join(picture(now)), line(now, None)):
        assert "EMERGENCY STOP" in text
        assert "STORAGE failed" in text
        assert "STIMULUS_INVALID 7" in text
        assert "TOPIC_INVALID" not in text


def test_the_plain_line_is_one_line_with_every_figure(beat):
    text = line(beat(), None)
    assert "\n" not in text
    for word in (
        "30.0 wakes/s",
        "late p99 0.9 ms",
        "40 commits/s",
        "commit p99 3.1 ms",
        "12345 entries",
        "kernel 40 MB",
    ):
        assert word in text


def test_what_was_not_measured_is_a_dash(beat):
    assert "commit p99 - |" in line(beat(commit_ms=Spread()), None)
