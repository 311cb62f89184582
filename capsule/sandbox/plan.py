"""A plan: which process to start, and everything of this machine that it may see."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from capsule.sandbox.limits import Limits

APP = "/app"
SITE = "/site"
LIBRARY_FOLDERS = ("/lib", "/usr/lib", "/lib64", "/usr/lib64")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo")
LOADERS = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}
GUEST_ENV = {"HOME": "/tmp", "LANG": "C.UTF-8", "MALLOC_ARENA_MAX": "2", "PATH": "/usr/bin", "PYTHONUNBUFFERED": "1"}


class Bind(msgspec.Struct, frozen=True):
    """A file or folder of this machine, shown read-only at ``dest``."""

    source: Path
    dest: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One process; ``host_env`` and ``host_cwd`` stand in for ``env`` and ``cwd`` without a sandbox."""

    argv: list[str]
    binds: list[Bind] = []
    fds: tuple[int, ...] = ()
    env: dict[str, str] = {}
    limits: Limits = Limits()
    cwd: str = "/"
    host_env: dict[str, str] = {}
    host_cwd: str = "/"


def python_plan(
    module: str,
    args: list[str],
    *,
    packages: list[Path],
    extra: list[Bind] | None = None,
    fds: tuple[int, ...] = (),
    limits: Limits | None = None,
    env: Mapping[str, str] | None = None,
) -> Plan:
    """Plan ``python -m module args``.

    The guest sees this Python, its site-packages under ``/site``, each folder of ``packages`` as
    ``/app/<name>``, and ``extra``; the descriptors ``fds`` keep their numbers. ``env`` is added to the few
    variables a guest gets.
    """
    sites = site_folders()
    binds = [*python_binds(), *(Bind(site, f"{SITE}/{number}") for number, site in enumerate(sites))]
    binds += [Bind(package.resolve(), f"{APP}/{package.name}") for package in packages]
    inside = [APP, *(f"{SITE}/{number}" for number in range(len(sites)))]
    outside = dict.fromkeys([*(str(package.resolve().parent) for package in packages), *map(str, sites)])
    variables = GUEST_ENV | dict(env or {})
    return Plan(
        argv=[str(base_executable()), "-P", "-S", "-s", "-B", "-m", module, *args],
        binds=binds + list(extra or []),
        fds=fds,
        env=variables | {"PYTHONPATH": os.pathsep.join(inside)},
        limits=limits or Limits(),
        cwd=APP,
        host_env=variables | {"PYTHONPATH": os.pathsep.join(outside)},
    )


def base_executable() -> Path:
    """The Python that a virtual environment stands on."""
    return Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()


def site_folders() -> list[Path]:
    """Where the packages of this Python were installed, in the order they are searched."""
    folders = (Path(entry).resolve() for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages"))
    return list(dict.fromkeys(folder for folder in folders if folder.is_dir()))


def python_binds() -> list[Bind]:
    """This Python at its own paths: executable, standard library, and the shared libraries of the system."""
    wanted = [base_executable(), *_standard_library(), *_shared_libraries(), *map(Path, SYSTEM_FILES)]
    return [Bind(path.resolve(), str(path)) for path in dict.fromkeys(wanted) if path.exists()]


def _standard_library() -> Iterator[Path]:
    for name in ("stdlib", "platstdlib"):
        folder = Path(sysconfig.get_path(name, vars={"base": sys.base_prefix, "platbase": sys.base_exec_prefix}))
        if (folder / "os.py").exists() or (folder / "lib-dynload").exists():
            yield folder
    libpython = sysconfig.get_config_var("INSTSONAME")
    if libpython:
        yield Path(sysconfig.get_config_var("LIBDIR"), libpython)
        yield Path(sys.base_exec_prefix, "lib", libpython)  # a Python that was moved after it was built


def _shared_libraries() -> Iterator[Path]:
    """Only the folder of this architecture where the system has one, else the library folders whole."""
    loader = LOADERS.get(platform.machine())
    if loader:
        yield Path(loader)
    triplet = sysconfig.get_config_var("MULTIARCH")
    folders = [Path(folder, triplet) for folder in LIBRARY_FOLDERS if triplet and Path(folder, triplet).is_dir()]
    yield from folders or map(Path, LIBRARY_FOLDERS)
