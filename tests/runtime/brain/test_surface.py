"""``from runtime import ...``: the same names whatever else has been imported."""

import importlib
import subprocess
import sys

import runtime
from runtime.brain.verbs import Kernel


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
