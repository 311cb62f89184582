"""``kernel.run`` as a cognet meets it: results, never an exception inside a wake or hook."""

import pytest

from runtime.abi import link
from runtime.abi.errors import CognetAccessedBeforeLoad, KernelStopping, LogBacklogFull

HEAD = """
    import builtins
    on('boot')(kernel.wake)
    @loop
    async def think(wake):
        wake.stop()
        builtins.seen.append(await kernel.run({code}))
"""


async def results(kernel_of, lines, code):
    kernel = kernel_of(HEAD.format(code=code))
    await kernel.start()
    await kernel.until(link.Ended)
    assert kernel.all(link.Ended)[0].outcome == "complete"
    return kernel, lines[0]


async def test_one_block_has_one_result(kernel_of, lines):
    kernel, result = await results(kernel_of, lines, "'1 + 1'")
    assert (result.ok, result.value) == (True, "1 + 1")
    (call,) = kernel.all(link.Call)
    assert call.args == [["1 + 1"]]
    assert call.wake_id == kernel.all(link.Ended)[0].wake_id


async def test_a_list_has_its_results_in_order(kernel_of, lines):
    _, found = await results(kernel_of, lines, "['1', '2', '3']")
    assert [result.value for result in found] == ["1", "2", "3"]


async def test_an_empty_list_asks_nobody(kernel_of, lines):
    kernel, found = await results(kernel_of, lines, "[]")
    assert found == []
    assert kernel.all(link.Call) == []


async def test_a_subclass_of_str_is_a_block_too(kernel_of, lines):
    _, result = await results(kernel_of, lines, "type('S', (str,), {'__str__': lambda s: 'other'})('1')")
    assert result.value == "1"


@pytest.mark.parametrize("code", ["3", "None", "b'1'", "{'1': 2}", "'\\ud800'", "object()", "'x' * 20_000_000"])
async def test_what_is_no_block_is_an_exception_and_nothing_is_asked(kernel_of, lines, code):
    kernel, result = await results(kernel_of, lines, code)
    assert not result.ok
    assert result.error.kind == "exception"
    assert result.error.message.startswith(("CALL_INVALID", "ENTRY_TOO_LARGE"))
    assert kernel.all(link.Call) == []


async def test_in_a_list_only_that_block_fails(kernel_of, lines):
    _, found = await results(kernel_of, lines, "['1', 2, '\\ud800', '4']")
    assert [result.value for result in found] == ["1", None, None, "4"]
    assert [result.ok for result in found] == [True, False, False, True]


async def test_a_refusal_of_the_kernel_is_an_exception(kernel_of, lines):
    kernel = kernel_of(HEAD.format(code="['1', '2']"))
    kernel.run_error = LogBacklogFull("256 calls wait for their answer")
    await kernel.start()
    await kernel.until(link.Ended)
    assert [result.error.message.partition(":")[0] for result in lines[0]] == ["LOG_BACKLOG_FULL"] * 2


async def test_when_the_wake_is_interrupted_the_kernel_hears_a_cancel(kernel_of, lines):
    kernel = kernel_of(HEAD.format(code="'1'"))
    kernel.hold_runs = True
    await kernel.start()
    call = await kernel.until(link.Call)
    kernel.interrupt()
    assert (await kernel.until(link.Cancel)).call == call.call
    assert (await kernel.until(link.Ended)).outcome == "interrupted"
    assert lines == []


async def test_in_a_shutdown_hook_it_is_still_only_a_result(kernel_of, lines):
    kernel = kernel_of("""
    import builtins
    @on("shutdown")
    async def last():
        builtins.seen.append(await kernel.run("1"))
    @loop
    async def think(wake): wake.stop()
    """)
    kernel.run_error = LogBacklogFull("stopping")
    await kernel.start()
    await kernel.stop()
    assert lines[0].error.kind == "exception"


async def test_after_the_shutdown_it_raises(kernel_of, lines):
    kernel = kernel_of(
        """
    import builtins
    @on("shutdown")
    def last():
        builtins.seen.append(kernel.run("1"))
    @loop
    async def think(wake): wake.stop()
    """
    )
    await kernel.start()
    await kernel.stop()
    with pytest.raises(KernelStopping):
        await lines[0]


async def test_scope_is_what_the_welcome_and_the_last_change_said(kernel_of, lines):
    from capsule.scope import AxonScope, Module, Unavailable

    kernel = kernel_of(
        """
    import builtins
    @loop
    async def think(wake):
        wake.stop()
        builtins.seen.append(kernel.scope())
    @on('boot')
    async def start():
        every(0.005, kernel.wake)
    """,
        scope=AxonScope(modules=[Module(name="arm")]),
    )
    await kernel.start()
    await kernel.until(lambda: lines)
    assert [module.name for module in lines[0].modules] == ["arm"]
    changed = AxonScope(unavailable=[Unavailable(name="arm", reason="it ended")])
    kernel.write(link.Scoped(changed))
    await kernel.until(lambda: lines[-1] == changed)


def test_before_a_cognet_is_loaded_both_are_refused():
    from runtime import kernel

    for call in (lambda: kernel.run("1"), lambda: kernel.run(["1"]), kernel.scope):
        with pytest.raises(CognetAccessedBeforeLoad):
            call()
