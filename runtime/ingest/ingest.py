"""Ingest: from a message of a sensor to an admitted entry, a duplicate, or a refusal; in memory, without I/O.

A message that isn't admitted changes nothing but counts. The caller acknowledges it to the broker all the same (it
would only come again), and never tells its driver that it was committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Literal, Protocol, TypeAlias

import msgspec

from capsule.errors import AxonError
from runtime.abi import payloads as p
from runtime.abi import topics
from runtime.abi.clock import mono_us
from runtime.abi.entries import STIMULUS_PREFIX
from runtime.abi.envelope import (
    DECODERS,
    MAX_BYTES,
    REPORT_DECODER,
    AudioEnvelope,
    Committed,
    Envelope,
    FieldEnvelope,
    GapReport,
    VisualEnvelope,
)
from runtime.abi.errors import StimulusInvalid, StimulusTooLarge, TopicInvalid
from runtime.abi.link import Row
from runtime.abi.marks import Mark
from runtime.abi.summary import ChannelCounts
from runtime.abi.telemetry import Gap, Health, TransientStimulus
from runtime.ingest.channels import Channels, Tally
from runtime.ingest.ledger import Account, Ledger
from runtime.ingest.refusals import Refusals

MAX_REPORT_BYTES = 16 * 1024
_SHOWN_CHARS = 200

Outcome: TypeAlias = Literal["admitted", "duplicate", "refused", "transient"]
Stimulus: TypeAlias = p.TextStimulus | p.AudioStimulus | p.VisualStimulus | p.FieldStimulus
_UNREADABLE = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)


class Stages(Protocol):
    """What ingest asks of the media store."""

    def stage(self, data: bytes) -> str:
        """Keep the bytes and return their ref."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a message: ``row`` of an admitted one; ``type`` and ``data`` of a transient one.

    ``seq`` is 0 where nothing was admitted. ``gap`` are counters that never came before this one.
    """

    outcome: Outcome
    channel: str = ""
    seq: int = 0
    error: AxonError | None = None
    gap: Gap | None = None
    row: Row | None = None
    type: str = ""
    data: Stimulus | None = None


class _Waiting(msgspec.Struct, frozen=True):
    """An admitted stimulus that isn't durable yet."""

    seq: int
    tally: Tally
    account: Account | None
    counter: int


class Ingest:
    """The decisions about everything that comes in by MQTT, and the counts of them.

    ``log_admit`` is ``Log.admit``, ``marks`` what the log held, ``transient`` the channels that no log keeps,
    ``tell`` takes telemetry, ``clock`` gives monotonic microseconds.
    """

    def __init__(
        self,
        *,
        agent: str,
        log_admit: Callable[..., Row],
        media: Stages,
        marks: Iterable[Mark] = (),
        transient: frozenset[str] = frozenset(),
        tell: Callable[[str, msgspec.Struct], None],
        clock: Callable[[], int] = mono_us,
    ) -> None:
        self._agent = agent
        self._log_admit = log_admit
        self._media = media
        self._transient = transient
        self._tell = tell
        self._clock = clock
        self._ledger = Ledger(marks)
        self._channels = Channels(self._ledger.channels())
        self._refusals = Refusals("kernel:ingest:refused", tell)
        self._waiting: deque[_Waiting] = deque()

    @property
    def counts(self) -> dict[str, ChannelCounts]:
        """What became of the stimuli, by channel."""
        return self._channels.counts()

    @property
    def refused(self) -> dict[str, int]:
        """How many messages were refused, by code; the caller may add what it refused itself."""
        return self._refusals.totals

    # -- stimuli ------------------------------------------------------------------------------------

    def take(self, topic: str, payload: bytes, retained: bool) -> Taken:  # noqa: FBT001 - as the message has it
        """Decide about one message; never raises for what is in it."""
        channel = ""
        try:
            kind, channel = topics.parse_stimulus(self._agent, topic)
            envelope = _decode(kind, payload)
            if retained and envelope.captured is None:
                raise StimulusInvalid(
                    "a retained stimulus without a counter would be told again at every reconnect",
                    hint="Publish stimuli unretained, or give them captured {epoch, ms, seq}.",
                )
            return self._take(kind, channel, envelope)
        except AxonError as error:
            self.refuse(error.code, channel=channel, example=error.message)
            return Taken(outcome="refused", channel=channel, error=error)

    def _take(self, kind: str, channel: str, envelope: Envelope) -> Taken:
        """Admit a stimulus that could be read, unless it is known."""
        captured, source_id = envelope.captured, envelope.id or ""
        self._channels.check(channel)
        hole = None
        if captured is not None:
            judgement = self._ledger.judge(channel, source_id, captured)
            if judgement.duplicate:
                tally = self._channels.admitted(channel)
                tally.received += 1
                tally.duplicates += 1
                return Taken(outcome="duplicate", channel=channel)
            hole = judgement.hole
        type_, data = STIMULUS_PREFIX + kind, self._payload(channel, envelope)
        if channel in self._transient:
            row = None
        else:
            row = self._log_admit(type_, data, mark=_mark(channel, source_id, captured))
        self._admitted(row, channel, source_id, captured)
        gap = None if hole is None or captured is None else self._gap(channel, source_id, captured.epoch, hole)
        if row is None:
            self._tell("kernel:ingest:transient", TransientStimulus(channel=channel, kind=kind))
            return Taken(outcome="transient", channel=channel, gap=gap, type=type_, data=data)
        return Taken(outcome="admitted", channel=channel, seq=row.seq, gap=gap, row=row)

    def _payload(self, channel: str, envelope: Envelope) -> Stimulus:
        """The payload of the entry; bytes go to the media store."""
        source, captured = p.Source(channel=channel, id=envelope.id), envelope.captured
        if isinstance(envelope, FieldEnvelope):
            return p.FieldStimulus(source=source, reading=envelope.reading, captured=captured)
        if isinstance(envelope, VisualEnvelope):
            return p.VisualStimulus(
                source=source,
                ref=self._media.stage(envelope.bytes),
                kind=envelope.kind,
                width=envelope.width,
                height=envelope.height,
                caption=envelope.caption,
                captured=captured,
            )
        if isinstance(envelope, AudioEnvelope):
            return p.AudioStimulus(
                source=source,
                ref=self._media.stage(envelope.bytes),
                transcript=envelope.transcript,
                duration_ms=envelope.duration_ms,
                captured=captured,
            )
        return p.TextStimulus(source=source, content=envelope.content, captured=captured)

    def _admitted(self, row: Row | None, channel: str, source_id: str, captured: p.Captured | None) -> None:
        """Count it, and remember what may be confirmed when it is durable; a transient one may be at once."""
        tally = self._channels.admitted(channel)
        tally.received += 1
        account = None if captured is None else self._ledger.take(channel, source_id, captured)
        counter = 0 if captured is None else captured.seq
        if row is not None:
            self._waiting.append(_Waiting(row.seq, tally, account, counter))
            return
        tally.committed += 1
        if account is not None:
            self._ledger.settle(account, counter)

    def _gap(self, channel: str, source_id: str, epoch: str, hole: tuple[int, int]) -> Gap:
        """Record counters that never came."""
        told = self._ledger.was_told(channel, source_id, epoch, hole)
        gap = Gap(channel=channel, source=source_id, epoch=epoch, first=hole[0], last=hole[1], told=told)
        self._channels.admitted(channel).gaps += 1
        self._tell("kernel:ingest:gap", gap)
        return gap

    def refuse(self, code: str, *, channel: str = "", example: str = "") -> None:
        """Count a refusal, and report it, now or together with others of its kind."""
        if channel:
            self._channels.reject(channel)
        self._refusals.add(code, example, channel=channel, now_us=self._clock())

    def report_refusals(self) -> None:
        """Report what has gathered, at most once a second; ``committed`` does it too."""
        self._refusals.flush(self._clock())

    def say(self, channel: str, content: str, source_id: str | None = None) -> Row:
        """Admit words that a person said; recorded on a transient channel too. Raises what refuses them."""
        try:
            data = msgspec.convert(
                {"source": {"channel": channel, "id": source_id}, "content": content}, p.TextStimulus
            )
        except msgspec.ValidationError as error:
            raise StimulusInvalid(f"a text stimulus: {error}", channel=channel[:64]) from error
        self._channels.check(channel)
        row = self._log_admit(STIMULUS_PREFIX + "text", data)
        self._admitted(row, channel, source_id or "", None)
        return row

    # -- confirmations ------------------------------------------------------------------------------

    def committed(self, durable_seq: int) -> list[tuple[str, Committed]]:
        """Channel and confirmation of all that may be confirmed now and wasn't yet, or was asked for again.

        Call it every now and then: it also reports refusals.
        """
        while self._waiting and self._waiting[0].seq <= durable_seq:
            done = self._waiting.popleft()
            done.tally.committed += 1
            if done.account is not None:
                self._ledger.settle(done.account, done.counter)
        self.report_refusals()
        return self._ledger.announcements()

    # -- reports of drivers -------------------------------------------------------------------------

    def report(self, topic: str, payload: bytes) -> None:
        """Take what a driver says about itself on ``sensor/<channel>``; never raises for what is in it."""
        try:
            self._report(topic, payload)
        except AxonError as error:
            self.refuse(error.code, example=error.message)

    def _report(self, topic: str, payload: bytes) -> None:
        if len(payload) > MAX_REPORT_BYTES:
            raise StimulusTooLarge(f"a sensor's report of {len(payload)} bytes exceeds {MAX_REPORT_BYTES}")
        try:
            report = REPORT_DECODER.decode(payload)
        except _UNREADABLE as error:
            raise StimulusInvalid(f"a sensor's report: {_shown(error)}") from error
        if topic != topics.sensor_report(self._agent, report.channel):
            raise TopicInvalid(f"a report about {report.channel!r} came on {topic[:120]!r}")
        if not isinstance(report, GapReport):
            self._tell("sensor:health", Health(channel=report.channel, state=report.state, facts=report.facts))
            return
        if report.last < report.first:
            raise StimulusInvalid(f"a gap from {report.first} to {report.last}")
        hole, source_id = (report.first, report.last), report.id or ""
        self._ledger.told(report.channel, source_id, report.epoch, hole)
        self._tell(
            "sensor:gap",
            Gap(
                channel=report.channel,
                source=source_id,
                epoch=report.epoch,
                first=report.first,
                last=report.last,
                told=True,
            ),
        )


def _decode(kind: str, payload: bytes) -> Envelope:
    if len(payload) > MAX_BYTES[kind]:
        raise StimulusTooLarge(
            f"{kind} of {len(payload)} bytes exceeds {MAX_BYTES[kind]}", kind=kind, size_bytes=len(payload)
        )
    try:
        return DECODERS[kind].decode(payload)
    except _UNREADABLE as error:
        raise StimulusInvalid(f"{kind}: {_shown(error)}", kind=kind) from error


def _shown(error: BaseException) -> str:
    return str(error)[:_SHOWN_CHARS] or type(error).__name__


def _mark(channel: str, source_id: str, captured: p.Captured | None) -> Mark | None:
    if captured is None:
        return None
    return Mark(channel=channel, source_id=source_id, epoch=captured.epoch, high=captured.seq)
