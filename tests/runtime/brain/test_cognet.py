"""Loading a cognet's folder: what it may look like, and how a bad one is refused."""

import sys

import pytest

from runtime.abi.errors import CognetAccessedBeforeLoad, CognetInvalid
from runtime.brain.cognet import Cognet, unload

LOOP = "@loop\nasync def think(wake): wake.stop()\n"


@pytest.fixture(autouse=True)
def forget():
    yield
    unload()
    assert not [name for name in sys.modules if name == "cognet" or name.startswith("cognet.")]


def test_main_state_and_plugins_are_one_package(write):
    folder = write(
        "from .state import values\nfrom .plugins import first\n@loop\nasync def think(wake): values.append(1)",
        state="values = []",
        plugins__first="from ..state import values\n@on('boot')\ndef one(): values.append('first')",
        plugins__second="from ..state import values\n@on('boot')\nasync def two(): values.append('second')",
    )
    cognet = Cognet.load(folder)
    assert cognet.body.__name__ == "think"
    assert [hook.function.__name__ for hook in cognet.hooks["boot"]] == ["one", "two"]


def test_a_file_of_its_own_may_be_imported_by_its_bare_name(write):
    folder = write(
        "import state\nfrom plugins.first import MARK\n" + LOOP,
        state="values = []",
        plugins__first="from state import values\nMARK = values",
    )
    Cognet.load(folder)
    assert sys.modules["state"] is sys.modules["cognet.state"]
    assert sys.modules["cognet.main"].MARK is sys.modules["cognet.state"].values


def test_every_load_is_a_fresh_one(write):
    Cognet.load(write(LOOP + "MARK = 1"))
    folder = write(LOOP + "MARK = 2")
    Cognet.load(folder)
    assert sys.modules["cognet.main"].MARK == 2
    assert not list(folder.rglob("*.pyc"))


def test_no_loop_names_the_file(write):
    folder = write("")
    with pytest.raises(CognetInvalid, match=f"{folder}/main.py: no loop"):
        Cognet.load(folder)


def test_two_loops_name_both_places(write):
    folder = write(LOOP, plugins__other="\n@loop\nasync def also(wake): ...")
    with pytest.raises(CognetInvalid) as caught:
        Cognet.load(folder)
    assert f"{folder}/main.py:" in caught.value.message
    assert f"{folder}/plugins/other.py:" in caught.value.message


def test_two_loops_of_one_name_are_two(write):
    with pytest.raises(CognetInvalid, match="2 loops"):
        Cognet.load(write(LOOP + LOOP))


def test_no_main_is_refused(tmp_path):
    with pytest.raises(CognetInvalid, match=r"main\.py"):
        Cognet.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import a_module_nobody_has", "a_module_nobody_has"),
        ("raise SystemExit(3)", "SystemExit"),
        ("def broken(:", r"main.py:5"),
        ("@loop\ndef think(wake): ...", "async function"),
        ("@loop\nasync def think(): ...", "one argument"),
        ("@on('sunrise')\ndef f(): ...", "no hook 'sunrise'"),
        ("@on('boot')\ndef f(a): ...", "no argument"),
        ("@on('tick')\ndef f(a, b): ...", "the wake or"),
    ],
)
def test_a_module_that_fails_names_its_file(write, text, says):
    folder = write(text)
    with pytest.raises(CognetInvalid, match=says) as caught:
        Cognet.load(folder)
    assert str(folder) in caught.value.message


@pytest.mark.parametrize(
    "call",
    [
        "kernel.output('cognet:output:text', {})",
        "kernel.emit('cognet:log:info', {})",
        "kernel.wake()",
        "kernel.clock()",
        "kernel.store.get('a')",
        "kernel.store.set('a', 1)",
        "kernel.store.session.get()",
        "kernel.run('1')",
        "kernel.base()",
        "kernel.scope()",
        "kernel.engine('main')",
        "kernel.fault(code='A', message='b')",
        "kernel.knowledge.list()",
        "kernel.knowledge.read('a')",
        "kernel.knowledge.write('a', 'b')",
        "kernel.knowledge.remove('a')",
        "every(1, kernel.wake)",
        "phase('a').__enter__()",
        "system('a').__enter__()",
    ],
)
def test_a_verb_at_the_top_level_is_refused_with_its_place(write, call):
    folder = write(LOOP + call)
    with pytest.raises(CognetAccessedBeforeLoad, match=f"{folder}/main.py:7"):
        Cognet.load(folder)


def test_decorators_outside_a_load_only_check(write):
    from runtime import loop, on

    @loop
    async def think(wake): ...

    @on("tick")
    def each(): ...

    assert think.__name__ == "think"
    assert each.__name__ == "each"
