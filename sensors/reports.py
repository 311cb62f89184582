"""What a driver has to tell besides its stimuli: gaps in its counters, and facts about its health."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.abi.envelope import GapReport, HealthReport, SensorReport
from sensors.spool import Dropped

Fact = str | int | float | bool
MOST_GAPS = 1024


class Reports:
    """Keeps reports until they are published; several of one health state become one, with their counts added."""

    def __init__(self, *, channel: str, source_id: str | None, epoch: str) -> None:
        self._channel = channel
        self._source_id = source_id
        self._epoch = epoch
        self._gaps: list[GapReport] = []
        self._health: dict[str, dict[str, Fact]] = {}

    def add_gaps(self, channel: str, dropped: Iterable[Dropped]) -> None:
        """These counters of a channel will not come."""
        for part in dropped:
            last = next((gap for gap in reversed(self._gaps) if gap.channel == channel), None)
            # Adjacent ranges are one gap; beyond a bound, which no honest run reaches, a gap may cover what did come.
            if last is not None and (last.last + 1 == part.first or len(self._gaps) >= MOST_GAPS):
                self._gaps.remove(last)
                part = Dropped(first=last.first, last=part.last)
            self._gaps.append(
                GapReport(channel=channel, id=self._source_id, epoch=self._epoch, first=part.first, last=part.last)
            )

    def add_health(self, state: str, *, count: int = 0, **facts: Fact) -> None:
        """A fact about the sensor; ``count`` is added to what waits under the same state."""
        before = self._health.get(state, {}).get("count", 0)
        if count:
            facts["count"] = count + int(before)
        self._health[state] = facts

    def take(self) -> list[SensorReport]:
        """Everything that waits, and forget it."""
        health = [
            HealthReport(channel=self._channel, state=state, facts=facts) for state, facts in self._health.items()
        ]
        taken: list[SensorReport] = [*self._gaps, *health]
        self._gaps, self._health = [], {}
        return taken

    def put_back(self, reports: Iterable[SensorReport]) -> None:
        """These were not published after all."""
        for report in reports:
            if isinstance(report, GapReport):
                self._gaps.append(report)
            else:
                self._put_back_health(report)

    def _put_back_health(self, report: HealthReport) -> None:
        """What was told meanwhile is newer; the counts add up."""
        newer = self._health.get(report.state, {})
        counts = [int(facts["count"]) for facts in (report.facts, newer) if "count" in facts]
        self._health[report.state] = {**report.facts, **newer, **({"count": sum(counts)} if counts else {})}
