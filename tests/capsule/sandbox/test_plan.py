"""A plan shows a guest its Python and the named folders, singly."""

from __future__ import annotations

import sys
from pathlib import Path

import capsule
from capsule.sandbox.plan import Bind, base_executable, python_plan, site_folders

CAPSULE = Path(capsule.__path__[0])


def test_packages_lie_singly_below_app() -> None:
    plan = python_plan("a.module", ["one"], packages=[CAPSULE], extra=[Bind(Path("/x"), "/y")])
    shown = {bind.dest: bind.source for bind in plan.binds}
    assert shown["/app/capsule"] == CAPSULE.resolve()
    assert shown["/y"] == Path("/x")
    assert CAPSULE.resolve().parent not in shown.values()
    assert plan.argv[-3:] == ["-m", "a.module", "one"]
    assert plan.cwd == "/app"


def test_no_shown_folder_holds_the_checkout() -> None:
    plan = python_plan("a.module", [], packages=[CAPSULE])
    checkout = CAPSULE.resolve().parent
    assert not [bind for bind in plan.binds if checkout.is_relative_to(bind.source)]


def test_python_is_the_one_below_the_virtual_environment() -> None:
    assert base_executable().is_relative_to(Path(sys.base_prefix).resolve())
    assert not base_executable().is_symlink()


def test_site_packages_are_searched_after_the_packages() -> None:
    plan = python_plan("a.module", [], packages=[CAPSULE])
    inside = plan.env["PYTHONPATH"].split(":")
    assert inside == ["/app", *(f"/site/{number}" for number in range(len(site_folders())))]
    outside = plan.host_env["PYTHONPATH"].split(":")
    assert outside == [str(CAPSULE.resolve().parent), *map(str, site_folders())]


def test_variables_are_added() -> None:
    plan = python_plan("a.module", [], packages=[], env={"OPENBLAS_NUM_THREADS": "1"})
    assert plan.env["OPENBLAS_NUM_THREADS"] == plan.host_env["OPENBLAS_NUM_THREADS"] == "1"
