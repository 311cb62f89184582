"""What a block can do, in a real sandboxed guest."""

from __future__ import annotations

import pytest

from capsule.result import Absent

pytestmark = pytest.mark.sandbox


async def test_the_value_is_the_last_expression(capsule):
    result = await capsule.one("x = 1; x + 1")
    assert result.ok
    assert result.value == 2
    assert result.scope.values == {"x": 1}
    assert result.error is None


async def test_a_block_that_ends_with_a_statement_has_no_value(capsule):
    assert (await capsule.one("1 + 1\ny = 3")).value is None


async def test_a_block_sees_what_earlier_blocks_bound(capsule):
    await capsule.one("import math\ndef twice(n):\n    return 2 * n\nbase = 20")
    result = await capsule.one("twice(base) + math.floor(2.5)")
    assert result.value == 42
    assert result.scope.values == {}


async def test_top_level_await_works_and_its_loop_goes_on(capsule):
    await capsule.one("import asyncio\ntask = asyncio.ensure_future(asyncio.sleep(0, 'later'))")
    result = await capsule.one("import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 5\nawait f()")
    assert result.value == 5


async def test_stdout_has_one_item_a_print(capsule):
    result = await capsule.one(
        "import sys\nprint('a', 1, sep='-')\nprint()\nprint('two\\nlines')\nprint('no end', end='')\n"
        "sys.stdout.write('x\\ny')\nprint('err', file=sys.stderr)"
    )
    assert result.stdout == ["a-1", "", "two\nlines", "no end", "x", "y", "err"]


async def test_blocks_at_once_keep_their_prints_apart(capsule):
    code = "import time\nfor n in range(20):\n    print({0}, n)\n    time.sleep(0.001)\n{0}"
    results = await capsule.run(*(code.format(number) for number in range(8)))
    for number, result in enumerate(results):
        assert result.value == number
        assert result.stdout == [f"{number} {n}" for n in range(20)]


async def test_what_a_thread_of_a_block_prints_is_the_blocks(capsule):
    code = "import threading\nt = threading.Thread(target=print, args=({0},))\nt.start(); t.join()"
    results = await capsule.run(code.format(1), code.format(2))
    assert [result.stdout for result in results] == [["1"], ["2"]]


async def test_blocks_of_a_list_start_from_the_same_names_and_the_last_to_settle_wins(capsule):
    await capsule.one("x = 1")
    slow = "import time\nbefore = x\nx = 'slow'\ntime.sleep(0.3)\nbefore"
    fast = "before = x\nx = 'fast'\nfrom_fast = 1\nbefore"
    results = await capsule.run(slow, fast)
    assert [result.value for result in results] == [1, 1]
    assert results[0].scope.values["x"] == "slow"
    assert results[1].scope.values["x"] == "fast"
    after = await capsule.one("[x, from_fast]")
    assert after.value == ["slow", 1]


async def test_names_that_cannot_cross_are_named_with_a_reason(capsule):
    result = await capsule.one(
        "def f(): pass\nclass C: pass\nloop = []\nloop.append(loop)\nhandle = object()\nlong = 'x' * 10**6\n"
        "import math\nplain = {'a': [1, (2, None)]}\nnan = float('nan')\nbig = 2**70"
    )
    assert result.scope.values == {"plain": {"a": [1, [2, None]]}}
    assert set(result.scope.unavailable) == {
        Absent("f", "function"),
        Absent("C", "function"),
        Absent("loop", "circular"),
        Absent("handle", "unserializable"),
        Absent("long", "oversized"),
        Absent("math", "unserializable"),
        Absent("nan", "unserializable"),
        Absent("big", "unserializable"),
    }


async def test_scope_is_what_this_block_bound(capsule):
    await capsule.one("a = 1; b = 2; c = 3")
    result = await capsule.one("a = 1\nif False:\n    b = 9\ndel c\ndef g():\n    global d\n    d = 4\ng()")
    assert result.scope.values == {"a": 1, "d": 4}
    assert [absent.name for absent in result.scope.unavailable] == ["g"]


async def test_a_failure_has_an_empty_scope_and_keeps_its_prints(capsule):
    result = await capsule.one("x = 1\nprint('before')\n1 / 0")
    assert not result.ok
    assert result.value is None
    assert result.stdout == ["before"]
    assert result.scope.values == {}
    assert result.scope.unavailable == []
    assert result.error.kind == "exception"
    assert "ZeroDivisionError" in result.error.message
    assert "1 / 0" in result.error.message
    assert (await capsule.one("x")).value == 1


async def test_a_syntax_error_is_a_result(capsule):
    result = await capsule.one("x = (")
    assert result.error.kind == "exception"
    assert "SyntaxError" in result.error.message


@pytest.mark.parametrize(
    "code", ["raise SystemExit(3)", "exit()", "raise KeyboardInterrupt", "raise BaseException('b')"]
)
async def test_exits_are_exceptions_and_the_incarnation_goes_on(capsule, code):
    await capsule.one("kept = 1")
    result = await capsule.one(code)
    assert result.error.kind == "exception"
    assert (await capsule.one("kept")).value == 1


async def test_a_value_that_refuses_is_null_with_its_reason(capsule):
    result = await capsule.one("object()")
    assert result.ok
    assert result.value is None
    assert "unserializable" in result.value_error


async def test_a_value_runs_no_code_on_its_way_out(capsule):
    result = await capsule.one(
        "class L(list):\n    def __iter__(self):\n        while True: pass\n"
        "class S(str):\n    def __str__(self):\n        while True: pass\n[L([1, 2]), S('s'), {S('k'): 1}]"
    )
    assert result.value == [[1, 2], "s", {"k": 1}]


async def test_numpy_crosses_as_plain_values(capsule):
    result = await capsule.one("import numpy as np\n[np.float64(1.5), np.arange(3), np.bool_(True)]")
    assert result.value == [1.5, [0, 1, 2], True]


async def test_a_hundred_megabytes_of_output_keep_both_ends(capsule):
    result = await capsule.one("print('first')\nfor n in range(100):\n    print('x' * 1_000_000)\nprint('last')")
    assert result.ok
    assert result.stdout[0] == "first"
    assert result.stdout[-1] == "last"
    assert sum(map(len, result.stdout)) < 200_000
    assert "left out" in result.cut


async def test_deleted_builtins_hurt_nobody(capsule):
    await capsule.one("import builtins, sys\nsys.stdout = None\nprint = None")
    assert (await capsule.one("1 + 1")).value == 2


async def test_an_exception_that_cannot_be_described_is_a_result(capsule):
    code = "class E(Exception):\n    def __str__(self): raise self\nraise E"
    result = await capsule.one(code)
    assert result.error.kind == "exception"
    assert "E" in result.error.message


async def test_without_a_sandbox_it_works_too(make_capsule):
    assert (await make_capsule(sandboxed=False).one("6 * 7")).value == 42
