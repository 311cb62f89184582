"""``from runtime import ...``: the same names whatever else has been imported."""

import importlib
import inspect
import subprocess
import sys

import msgspec
import pytest

import runtime
from runtime.brain import engines
from runtime.brain.clock import Rhythm
from runtime.brain.verbs import Engines, Kernel, KernelClock, Knowledge, SessionLog, Span, Store
from runtime.brain.wake import Wake


def test_the_package_of_the_kernel_does_not_take_the_name_of_the_verbs():
    package = importlib.import_module("runtime.kernel")
    assert package.__name__ == "runtime.kernel"
    assert isinstance(runtime.kernel, Kernel)


def test_the_surface_is_what_it_says():
    assert all(hasattr(runtime, name) for name in runtime.__all__)


def test_importing_it_loads_nothing_heavy():
    heavy = {"uvloop", "numpy", "apsw", "aiomqtt", "cv2", "runtime.kernel", "runtime.log"}
    code = f"import sys, runtime; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_the_verbs_are_those_of_the_specification_and_there_is_no_other():
    """``store``, ``knowledge`` and what they have: see ``test_doors.py``."""
    one_word = {"output", "engine", "run", "scope", "base", "emit", "fault", "wake", "clock"}
    assert public(Kernel) == one_word | {"store", "knowledge"}
    assert public(Engines) == {"has"}


def test_a_clock_is_a_snapshot_with_the_wakes_and_nothing_else():
    assert KernelClock.__struct_fields__ == ("wakes",)
    clock = KernelClock(wakes=3)
    with pytest.raises(AttributeError):
        clock.wakes = 4
    assert msgspec.structs.asdict(clock) == {"wakes": 3}


HANDLES = [engines.GenerateEngine, engines.TransformEngine, engines.StreamEngine, engines.ResultStream]
ALL = [Kernel, Engines, Store, SessionLog, Knowledge, Span, Rhythm, Wake, *HANDLES]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_no_verb_takes_a_signal_or_a_callback(kind):
    for name, verb in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_") or name == "__call__":
            words = set(inspect.signature(verb).parameters)
            assert not words & {"signal", "cancel", "token", "timeout", "timeout_s", "callback", "on_stdout"}, name
