from __future__ import annotations

from typing import Any, get_args

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from capsule.result import AbsenceReason, Absent, BlockError, CapsuleScope, ErrorKind, RunResult
from runtime.abi.entries import EntryContext
from runtime.abi.errors import StorageFailed
from runtime.kernel.execution.outcome import MAX_CHARACTERS, bounded, failed, payload, refused
from runtime.log.admission import Admission

ADMISSION = Admission(
    EntryContext(agent_id="a" * 64, session_id="s" * 36, boot_id="b" * 36), last_seq=0, last_chain=b"\0" * 32
)


def admitted(result: RunResult) -> Any:
    """The entry that the log would take."""
    body = ADMISSION.body("cognet:action:result", payload("b" * 36, result), wake_id="w" * 36, cursor=2**53)
    return msgspec.json.decode(body)["data"]


def test_a_small_result_is_unchanged() -> None:
    result = RunResult(
        ok=True,
        value={"a": [1, None, 0.5]},
        stdout=["one", "", "two\nlines"],
        scope=CapsuleScope(values={"x": 1}, unavailable=[Absent("f", "function")]),
    )
    assert bounded(result) == result
    assert admitted(result)["scope"] == {"values": {"x": 1}, "unavailable": [{"name": "f", "reason": "function"}]}


def test_a_failure_has_no_value_and_no_scope() -> None:
    error = BlockError(kind="timeout", message="10 s")
    result = bounded(RunResult(ok=True, value=3, stdout=["seen"], scope=CapsuleScope(values={"x": 1}), error=error))
    assert result == RunResult(ok=False, stdout=["seen"], error=error)


def test_a_failure_without_a_reason_gets_one() -> None:
    result = bounded(RunResult(ok=False))
    assert result.error is not None
    assert result.error.kind == "exception"


def test_long_output_keeps_both_ends_and_names_the_cut() -> None:
    lines = ["first", *("x" * 99 for _ in range(10_000)), "last"]
    result = bounded(RunResult(ok=True, stdout=lines))
    assert (result.stdout[0], result.stdout[-1]) == ("first", "last")
    assert sum(len(line) + 1 for line in result.stdout) <= MAX_CHARACTERS
    (marked,) = (line for line in result.stdout if "[..." in line)
    left_out = marked.partition("[... ")[2].partition(" characters cut ...]")[0]
    assert result.cut == f"stdout: {left_out} characters left out"
    assert 960_000 < int(left_out.replace(",", "")) < 961_000


def test_one_endless_line_keeps_both_ends() -> None:
    result = bounded(RunResult(ok=True, stdout=["a" + "x" * 1_000_000 + "z"]))
    (line,) = result.stdout
    assert (line[0], line[-1]) == ("a", "z")
    assert len(line) <= MAX_CHARACTERS


def test_a_long_text_keeps_both_ends() -> None:
    result = bounded(RunResult(ok=True, value="a" + "x" * 100_000 + "z"))
    assert (result.value[0], result.value[-1]) == ("a", "z")
    assert result.cut == "value: 60,042 characters left out"


def test_a_long_list_becomes_text_with_both_ends() -> None:
    result = bounded(RunResult(ok=True, value=list(range(100_000))))
    assert result.value.startswith("[0,1,2,")
    assert result.value.endswith(",99999]")
    assert result.cut is not None
    assert result.cut.startswith("value, as text,")


def test_what_doesnt_fit_of_the_scope_is_oversized_largest_first() -> None:
    values = {"small": 1, "large": "x" * 30_000, "larger": "y" * 35_000}
    result = bounded(RunResult(ok=True, scope=CapsuleScope(values=values)))
    assert result.scope == CapsuleScope(
        values={"small": 1, "large": "x" * 30_000}, unavailable=[Absent("larger", "oversized")]
    )
    assert result.cut == "scope: 1 values too large"


def test_each_part_has_its_share() -> None:
    result = bounded(
        RunResult(
            ok=True, value="v" * 50_000, stdout=["s" * 50_000], scope=CapsuleScope(values={"x": "x" * 13_000, "y": 1})
        )
    )
    assert len(result.value) > 13_000
    assert len(result.stdout[0]) > 13_000
    assert result.scope.values == {"x": "x" * 13_000, "y": 1}


def test_a_value_that_no_json_can_say_is_named() -> None:
    for value in (float("nan"), [float("inf")], b"bytes", {1: 2}, 2**64, {"a": {1, 2}}, object(), ["\udc00"]):
        result = bounded(RunResult(ok=True, value=value, scope=CapsuleScope(values={"x": value})))
        assert result.ok
        assert result.value is None
        assert result.value_error
        assert result.scope.unavailable == [Absent("x", "unserializable")]
        admitted(result)


def test_a_circular_or_deep_value_is_named() -> None:
    circular: list[Any] = []
    circular.append(circular)
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    for value in (circular, deep):
        result = bounded(RunResult(ok=True, value=value))
        assert result.value is None
        assert "nested" in str(result.value_error)


def test_lone_surrogates_become_question_marks() -> None:
    result = bounded(RunResult(ok=True, value="a\udc00", stdout=["\ud800"]))
    assert (result.value, result.stdout) == ("a?", ["?"])


def test_control_characters_still_fit_into_an_entry() -> None:
    result = bounded(RunResult(ok=True, value="\0" * 20_000, stdout=["\0" * 1_000_000]))
    assert admitted(result)["ok"]


def test_names_that_no_entry_can_hold_are_counted() -> None:
    scope = CapsuleScope(values={"n" * 1000: 1, "ok": 2, "\udc00": 3}, unavailable=[Absent("m" * 1000, "function")])
    result = bounded(RunResult(ok=True, scope=scope))
    assert result.scope == CapsuleScope(values={"ok": 2})
    assert result.cut == "scope: 3 names left out"


def test_many_small_names_are_bounded() -> None:
    scope = CapsuleScope(
        values={f"v{number}": number for number in range(20_000)},
        unavailable=[Absent(f"f{number}", "function") for number in range(20_000)],
    )
    result = bounded(RunResult(ok=True, scope=scope))
    assert len(admitted(result)["scope"]["unavailable"]) < 5000
    assert "names left out" in str(result.cut)


def test_the_capsules_own_cut_stays() -> None:
    assert bounded(RunResult(ok=True, cut="stdout: 5 lines")).cut == "stdout: 5 lines"
    assert bounded(RunResult(ok=True, cut="stdout: 5 characters left out")).cut == "stdout: 5 characters left out"
    result = bounded(RunResult(ok=True, stdout=["x" * 50_000] * 2, cut="stdout: 1,000,000 characters left out"))
    assert result.cut == "stdout: 1,060,042 characters left out"
    assert "[... 1,060,042 characters cut ...]" in result.stdout[0]
    assert len(str(bounded(RunResult(ok=True, cut="x" * 1000)).cut)) == 256
    assert bounded(RunResult(ok=True, cut="stdout: ,,, characters left out")).cut


def test_an_error_of_the_kernel_is_an_exception_with_its_code() -> None:
    result = refused(StorageFailed("the disk is gone"))
    assert not result.ok
    assert result.error is not None
    assert result.error.message.startswith("STORAGE_FAILED: the disk is gone")
    admitted(bounded(failed("interrupt", "\udc00" * 100_000)))


texts = st.text(st.characters(), max_size=10)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.binary(max_size=9) | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts | st.integers(), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.builds(
        RunResult,
        ok=st.booleans(),
        value=anything,
        stdout=st.lists(texts | st.sampled_from(["\1" * 9_000, "x" * 30_000, "é" * 50_000]), max_size=3),
        scope=st.builds(
            CapsuleScope,
            values=st.dictionaries(texts, anything, max_size=3),
            unavailable=st.lists(st.builds(Absent, texts, st.sampled_from(get_args(AbsenceReason))), max_size=3),
        ),
        error=st.none() | st.builds(BlockError, kind=st.sampled_from(get_args(ErrorKind)), message=texts),
        value_error=st.none() | texts,
        cut=st.none() | texts,
    )
)
def test_whatever_comes_back_ends_as_an_entry_and_as_a_message(result: RunResult) -> None:
    found = bounded(result)
    data = admitted(found)
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=RunResult)
    assert sent == found
    assert data.get("value") == found.value
    assert data.get("stdout", []) == found.stdout
    assert bounded(found) == found
