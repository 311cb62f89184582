"""What leaves a block: bounded, plain, and without running any more of its code."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.sandbox

SPIN = "while True: pass"


async def test_a_loop_at_top_level_is_as_quick_as_python_is(capsule):
    """The names of a block are real globals: no code of ours runs for each use of one."""
    result = await capsule.one("import sys\nkind = type(globals()), type(locals()), globals() is locals()\nstr(kind)")
    assert result.value == "(<class 'dict'>, <class 'dict'>, True)"


async def test_a_name_bound_again_to_the_same_object_was_bound(capsule):
    await capsule.one("x = 1\ny = 2")
    assert (await capsule.one("x = 1")).scope.values == {"x": 1}
    assert (await capsule.one("x")).scope.values == {}
    assert (await capsule.one("def f():\n    global made\n    made = 8\nf()")).scope.values == {"made": 8}
    assert (await capsule.one("exec('more = 3'); globals()['most'] = 4")).scope.values == {"more": 3, "most": 4}
    assert (await capsule.one("gone = 1\ndel gone, y")).scope.values == {}
    assert (await capsule.one("for a, (b, *c) in [(1, (2, 3))]: pass")).scope.values == {"a": 1, "b": 2, "c": [3]}


async def test_a_large_scope_is_cut_and_told(capsule):
    result = await capsule.one("for k in range(60): globals()[f'v{k}'] = 'x' * 150_000\n'ends'")
    assert result.value == "ends"
    assert {absent.reason for absent in result.scope.unavailable} == {"oversized"}
    assert len(result.scope.values) + len(result.scope.unavailable) == 60 + len(["k"])
    result = await capsule.one("for k in range(100_000): globals()[f'w{k}'] = k\n'ends'")
    assert result.value == "ends"
    assert result.cut.startswith("scope: ")
    assert capsule.incarnations == 1


HIDDEN = {
    "a metaclass": f"class M(type):\n    def __getattribute__(c, n):\n        {SPIN}\nclass X(metaclass=M): pass\nX()",
    "a __class__": f"class X:\n    @property\n    def __class__(self):\n        {SPIN}\nX()",
    "a list": f"class X(list):\n    def __iter__(self):\n        {SPIN}\n    __len__ = __iter__\nX([1])",
    "a dict": f"class X(dict):\n    def items(self):\n        {SPIN}\n    __iter__ = items\nX(a=1)",
    "a str": f"class X(str):\n    def __str__(self):\n        {SPIN}\n    isascii = __str__\nX('x')",
    "a key": f"class X(str):\n    def __eq__(self, o):\n        {SPIN}\n    __hash__ = str.__hash__\n{{X('x'): 1}}",
}


@pytest.mark.parametrize("code", HIDDEN.values(), ids=HIDDEN.keys())
async def test_a_value_is_not_asked_what_it_is(capsule, code):
    assert (await capsule.one(code, timeout_s=5)).ok


async def test_a_text_of_a_hundred_megabytes_is_printed_within_the_memory(capsule):
    for code in ("print('y' * 100_000_000)", "import sys\nsys.stdout.write('y' * 100_000_000)\n1"):
        result = await capsule.one(code)
        assert result.ok, result.error
        assert result.cut
        assert sum(map(len, result.stdout)) < 200_000
    assert capsule.incarnations == 1


async def test_garbage_that_prints_while_something_is_printed_blocks_nobody(capsule):
    result = await capsule.one("""
import gc, sys
class D:
    def __init__(self): self.me = self
    def __del__(self): print('collected')
gc.set_threshold(1)
for i in range(2000):
    D(); sys.stdout.write('a\\nb\\n'); print('x')
gc.set_threshold(700)
'ends'""")
    assert result.value == "ends", result


async def test_what_a_block_defines_can_be_pickled(capsule):
    await capsule.one("import dataclasses\n@dataclasses.dataclass\nclass P:\n    a: int")
    assert (await capsule.one("import pickle\npickle.loads(pickle.dumps(P(4))).a")).value == 4


async def test_deep_code_in_a_thread_ends_nobody(capsule):
    codes = ["[" * 5000 + "]" * 5000, "-" * 20000 + "1", "def f(): f()\nf()"]
    assert not any(result.ok for result in (await capsule.run(*codes))[::2])
    assert capsule.incarnations == 1
