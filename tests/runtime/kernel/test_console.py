"""What the person at the terminal hears: each thing once, and nothing that could stop the kernel."""

from __future__ import annotations

import io
import os
import threading

from runtime.kernel.console import Console


def test_the_same_line_with_other_numbers_is_said_once() -> None:
    stream = io.StringIO()
    console = Console(stream)
    for number in range(50):
        console.say(f"wake {number} failed: ZeroDivisionError")
    console.say("something else")
    console.close()
    assert stream.getvalue().splitlines() == ["wake 0 failed: ZeroDivisionError", "something else"]


def test_with_a_view_lines_are_notices_first_and_written_at_the_end() -> None:
    stream = io.StringIO()
    console = Console(stream, has_view=True)
    console.say("a thing happened")
    assert list(console.notices) == ["a thing happened"]
    assert stream.getvalue() == ""
    console.close()
    assert stream.getvalue() == "a thing happened\n"


def test_a_terminal_that_takes_nothing_stops_nobody() -> None:
    read_end, write_end = os.pipe()
    stream = os.fdopen(write_end, "w")
    console = Console(stream)
    for number in range(5000):
        console.say("".join(chr(97 + int(digit)) for digit in str(number)) + "x" * 200)
    assert console.dropped > 0
    drain = threading.Thread(target=lambda: [None for _ in iter(lambda: os.read(read_end, 65536), b"")])
    drain.start()
    console.close(timeout_s=20)
    stream.close()
    drain.join(20)
    os.close(read_end)
    assert not drain.is_alive()


def test_a_notice_goes_when_what_it_tells_of_is_over() -> None:
    stream = io.StringIO()
    console = Console(stream, has_view=True)
    console.say("[base] line 3 is wrong")
    console.say("[policy] move('[base]') waits: axon approve DIR bcdfghj [--deny]")
    console.settled("[base]")
    assert list(console.notices) == ["[policy] move('[base]') waits: axon approve DIR bcdfghj [--deny]"]
    console.settled("axon approve DIR bcdfghj [--deny]")
    assert not console.notices
    console.close()
    assert len(stream.getvalue().splitlines()) == 2, "what was said stays written"
