"""Sums a run up: the one place where the figures of all parts become a ``Summary``."""

from __future__ import annotations

from runtime.abi.summary import Boot, ChannelCounts, Summary, Wakes
from runtime.kernel.brain_host import BrainHost
from runtime.kernel.setup import Setup
from runtime.kernel.statistics import MB, Statistics, spread


def reckon(
    setup: Setup,
    *,
    statistics: Statistics,
    brain: BrainHost,
    counts: dict[str, ChannelCounts],
    refused: dict[str, int],
    stopped: bool,
    notices: list[str],
    actuators: dict[str, str],
) -> Summary:
    """The figures since counting began; memory only."""
    log, recovery = setup.log, setup.log.recovery
    seconds = statistics.seconds
    return Summary(
        agent=setup.agent.agent.name,
        session=setup.session.id,
        seconds=round(seconds, 3),
        wakes=_wakes(statistics, seconds),
        stimuli=statistics.stimuli(counts, log.durable_seq),
        commit_ms=spread(list(statistics.commit_ms)),
        commits=statistics.commits,
        entries=log.last_seq - log.first_seq + 1 if log.last_seq else 0,
        last_seq=log.last_seq,
        boot=Boot(
            boot_id=setup.boot_id,
            clean_before=recovery.clean_before,
            replayed=recovery.replayed,
            replay_ms=round(recovery.replay_ms, 1),
            brain_folded=brain.folded,
            first_wake_ms=brain.first_wake_ms,
        ),
        processes=statistics.process_meter.latest,
        media_mb=round(setup.media.size_bytes / MB, 1),
        sandboxed=setup.sandboxed,
        storage="full" if log.low_space and log.state == "ok" else log.state,
        stopped=stopped,
        refused=dict(refused),
        brain=brain.state,
        notices=notices,
        actuators=actuators,
    )


def _wakes(statistics: Statistics, seconds: float) -> Wakes:
    counts = statistics.wakes
    return Wakes(
        admitted=counts.admitted,
        completed=counts.completed,
        failed=counts.failed,
        interrupted=counts.interrupted,
        missed=counts.missed,
        max_overlap=counts.max_overlap,
        hz=round(counts.admitted / seconds, 2) if seconds > 0 else 0.0,
        late_ms=spread([us / 1000 for us in counts.late_us]),
    )
