"""``every``: absolute deadlines, missed periods skipped and counted, failures told."""

import time

import pytest

from runtime.abi import link
from runtime.brain.timerfd import TimerFd


def test_a_timer_counts_every_period_since_its_first_deadline():
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    timer = TimerFd(first_ns=now - 9_500_000, interval_ns=1_000_000)
    count = timer.expirations()
    passed = (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - (now - 9_500_000)) // 1_000_000 + 1
    assert 10 <= count <= passed
    timer.close()


def test_a_timer_whose_deadline_has_not_come_has_not_expired():
    timer = TimerFd(first_ns=time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 60_000_000_000, interval_ns=1_000_000)
    assert timer.expirations() == 0
    timer.close()


def test_the_system_refuses_a_wrong_timer():
    with pytest.raises(OSError, match="timerfd"):
        TimerFd(first_ns=1, interval_ns=-1)


async def test_wakes_carry_how_late_they_are_against_their_deadline(kernel_of, lines):
    kernel = kernel_of(
        """
    @on("boot")
    def start(): every(0.005, kernel.wake)
    @loop
    async def think(wake): wake.stop()
    """
    )
    await kernel.start()
    await kernel.until(link.Ended, 5)
    admitted = kernel.all(link.Admitted)
    assert [e.ordinal for e in admitted] == list(range(1, len(admitted) + 1))
    assert all(e.late_us >= 0 for e in admitted)


async def test_a_wake_that_nothing_was_due_for_has_no_lateness(kernel_of, lines):
    kernel = kernel_of("\n    on('boot')(kernel.wake)\n    @loop\n    async def think(wake): wake.stop()")
    await kernel.start()
    assert (await kernel.until(link.Admitted)).late_us is None


async def test_periods_missed_whole_are_skipped_and_counted(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins, time
    @on("boot")
    def start(): every(0.01, kernel.wake)
    @loop
    async def think(wake):
        wake.stop()
        if wake.ordinal == 1:
            time.sleep(0.055)
    """
    )
    await kernel.start()
    # A busy machine may have missed one before that.
    await kernel.until(lambda: sum(missed.count for missed in kernel.all(link.Missed)) >= 4)
    assert {missed.reason for missed in kernel.all(link.Missed)} == {"clock"}
    await kernel.until(link.Ended, 3)


async def test_a_callback_does_not_overlap_itself(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    busy = 0
    async def slow():
        global busy
        busy += 1
        builtins.seen.append(busy)
        await asyncio.sleep(0.02)
        busy -= 1
    @on("boot")
    def start(): every(0.005, slow)
    @loop
    async def think(wake): wake.stop()
    """
    )
    await kernel.start()
    await kernel.until(link.Missed, 2)
    assert set(lines) == {1}


async def test_a_failing_callback_is_told_and_called_again(kernel_of, lines):
    kernel = kernel_of(
        """
    def bad(): raise ValueError("tick tock")
    @on("boot")
    def start(): every(0.002, bad)
    @loop
    async def think(wake): wake.stop()
    """
    )
    await kernel.start()
    await kernel.until(lambda: len(kernel.spans("cognet:log:error")) >= 3)
    assert "ValueError: tick tock" in kernel.spans("cognet:log:error")[0].data["message"]


async def test_a_rhythm_can_be_stopped(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    def tick():
        builtins.seen.append("tick")
        if len(builtins.seen) == 3:
            rhythm.stop()
            kernel.emit("cognet:log:info", {"message": "stopped"})
    @on("boot")
    def start():
        global rhythm
        rhythm = every(0.002, tick)
        every(0.005, kernel.wake)
    @loop
    async def think(wake): wake.stop()
    """
    )
    await kernel.start()
    await kernel.until(lambda: kernel.spans("cognet:log:info"))
    await kernel.until(link.Ended, 5)
    assert lines == ["tick"] * 3


async def test_when_the_kernel_stops_the_rhythm_ends_in_silence(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @on("boot")
    def start(): every(0.002, kernel.wake)
    @on("shutdown")
    async def over():
        try:
            await kernel.wake()
        except errors.KernelStopping as error:
            builtins.seen.append(error.code)
        await asyncio.sleep(0.02)
    @loop
    async def think(wake): wake.stop()
    """
    )
    await kernel.start()
    await kernel.until(link.Ended, 2)
    await kernel.stop()
    assert lines == ["KERNEL_STOPPING"]
    assert not kernel.spans("cognet:log:error")
