"""What is shown of an answer, entry by entry."""

from __future__ import annotations

from typing import Any

import pytest

from axon.answer import Answer, printable
from runtime.abi import entries as e
from runtime.abi import payloads as p
from runtime.abi.telemetry import TelemetryEvent

STIMULUS = 10


class Shown:
    """An answer and everything that was printed for it."""

    def __init__(self) -> None:
        self.printed = ""
        self.answer = Answer(STIMULUS, say=self._say, show=lambda line: self._say(f"{line}\n"))
        self._seq = STIMULUS

    def _say(self, words: str) -> None:
        self.printed += words

    def take(self, kind: Any, data: Any, *, cursor: int | None = STIMULUS, wake: str | None = "w") -> None:
        self._seq += 1
        context = e.EntryContext(agent_id="a", session_id="s", boot_id="b", wake_id=wake, cursor=cursor)
        self.answer.take(kind(id="i", time=e.EntryTime(ms=0, mono_us=0, seq=self._seq), context=context, data=data))

    def says(self, words: str, *, final: bool | None = None, **given: Any) -> None:
        chunk = None if final is None else p.Chunk(of="m", final=final)
        self.take(e.TextOutputEntry, p.TextOutput(channel="voice", content=words, chunk=chunk), **given)

    def runs(self, code: str, **given: Any) -> None:
        self.take(e.PythonActionEntry, p.PythonAction(action="1", code=code), **given)

    def results(self, **data: Any) -> None:
        self.take(e.ActionResultEntry, p.ActionResult(action="1", **data))


@pytest.fixture
def shown() -> Shown:
    return Shown()


def test_words_actions_and_results_in_their_order(shown):
    shown.says("Let me ", final=False)
    shown.says("see.", final=False)
    shown.says("", final=True)
    shown.runs("x = 6\nx * 7\n")
    shown.results(ok=True, value=42, stdout=["hm"])
    shown.says("It is 42.")
    assert shown.printed == "Let me see.\n    > x = 6\n      x * 7\n      hm\n    = 42\nIt is 42.\n"
    assert shown.answer.as_dict()["actions"] == [
        {"code": "x = 6\nx * 7\n", "ok": True, "value": 42, "stdout": ["hm"], "error": None}
    ]
    assert shown.answer.text == "Let me see.\nIt is 42.\n"


def test_an_error_is_shown_by_its_kind(shown):
    shown.runs("1/0")
    shown.results(ok=False, error=p.ActionError(kind="exception", message="ZeroDivisionError: division by zero"))
    assert shown.printed == "    > 1/0\n    ! exception: ZeroDivisionError: division by zero\n"


def test_a_block_that_only_prints_has_no_value_to_show(shown):
    shown.runs("print(1)")
    shown.results(ok=True, stdout=["1"])
    assert shown.printed == "    > print(1)\n      1\n"


def test_what_a_wake_said_before_it_saw_the_question_is_no_answer(shown):
    shown.says("about something else", cursor=STIMULUS - 1)
    shown.says("of a hook", cursor=None)
    shown.runs("1", cursor=3)
    shown.results(ok=True)
    assert shown.printed == ""


def test_it_is_settled_when_the_wake_has_answered_for_the_question(shown):
    shown.take(e.SettledEntry, p.Settled(upto_seq=STIMULUS - 1))
    assert not shown.answer.settled
    shown.take(e.SettledEntry, p.Settled(upto_seq=STIMULUS))
    assert shown.answer.settled


@pytest.mark.parametrize(
    ("outcome", "failure"), [("complete", ""), ("failed", "Boom"), ("interrupted", "the wake was interrupted")]
)
def test_a_wake_that_failed_is_told(shown, outcome, failure):
    data = {"ordinal": 1, "outcome": outcome, "ticks": 1, "took_us": 5}
    data |= {"error": "Boom"} if outcome == "failed" else {}
    shown.answer.take(TelemetryEvent(type="kernel:wake:settled", mono_us=1, after_seq=STIMULUS + 2, data=data))
    assert shown.answer.failure == failure


def test_an_earlier_wakes_failure_is_none_of_it(shown):
    data = {"ordinal": 1, "outcome": "failed", "ticks": 1, "took_us": 5, "error": "Boom"}
    shown.answer.take(TelemetryEvent(type="kernel:wake:settled", mono_us=1, after_seq=STIMULUS - 1, data=data))
    assert shown.answer.failure == ""


def test_words_do_not_drive_the_terminal(shown):
    shown.says("a\x1b[31mb\ttab\nline\n")
    assert shown.printed == "a\N{REPLACEMENT CHARACTER}[31mb\ttab\nline\n"
    assert printable("\x07") == "\N{REPLACEMENT CHARACTER}"


def test_long_code_is_cut(shown):
    shown.runs("\n".join(f"x = {number}" for number in range(100)))
    assert shown.printed.count("\n") == 12
    assert "89 more lines" in shown.printed
