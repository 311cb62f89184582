"""Importing the agent's modules: what each offers, and why one isn't there; a bad one spoils no other."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import keyword
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from capsule.scope import Member, Module, Unavailable
from runtime.tools.declaration import declaration
from runtime.tools.declare import is_tool
from runtime.tools.failure import describe

Function = Callable[..., Any]
MAX_MODULES = 64
MAX_MEMBERS = 128
MAX_NAME = 64
MAX_DOC = 4000
MAX_DECLARATION = 4000
MAX_SCOPE_BYTES = 1024 * 1024
TAKEN = frozenset({"actuator", "axon", "capsule", "cognets", "msgspec", "numpy", "runtime"})
"""Names that mean something else to the agent's code."""


class Loaded(msgspec.Struct, frozen=True):
    """What came of importing a folder: for the agent to see, and to call by ``(module, member)``."""

    modules: list[Module]
    unavailable: list[Unavailable]
    functions: dict[tuple[str, str], Function]


class _NotOffered(Exception):
    """A module was imported and offers nothing, for the reason given."""


def module_files(folder: Path) -> list[Path]:
    """The modules of an agent by name, whether or not they can be loaded; ``_name.py`` is for the others to import."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".py" and path.name[0] not in "._")
    except OSError:
        return []


def load_modules(folder: Path, *, skip: Mapping[str, str], loading: Callable[[str], None]) -> Loaded:
    """Import every module of ``folder`` in the order of their names; ``loading`` hears of each beforehand.

    They may import each other, and what lies beside them.
    """
    sys.path.append(str(folder))
    loaded = Loaded([], [], {})
    described = 0
    for number, path in enumerate(module_files(folder)):
        reason = skip.get(path.stem) or _refusal(path.stem, number)
        if reason is None:
            loading(path.stem)
            try:
                module, functions = _offer(_imported(path), path.stem)
                described += len(msgspec.msgpack.encode(module))
                if described > MAX_SCOPE_BYTES:
                    raise _NotOffered(f"all modules together are described in more than {MAX_SCOPE_BYTES} bytes")
            except _NotOffered as error:
                reason = str(error)
            except BaseException as error:  # noqa: BLE001 - sys.exit too: whatever a module does ends its own import
                sys.modules.pop(path.stem, None)
                reason = describe(error, folder)
            else:
                loaded.modules.append(module)
                loaded.functions.update({(module.name, name): function for name, function in functions.items()})
        if reason is not None:
            loaded.unavailable.append(Unavailable(name=path.stem, reason=reason))
    return loaded


def _refusal(name: str, number: int) -> str | None:
    """Why a file isn't even imported."""
    if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name) or len(name) > MAX_NAME:
        return "its file's name is no name that can be imported"
    if name in sys.stdlib_module_names or name in TAKEN:
        return f"{name} means something else to the agent's code; give the file another name"
    if number >= MAX_MODULES:
        return f"an agent has at most {MAX_MODULES} modules"
    return None


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.find_spec(path.stem)
    if spec is None or spec.loader is None or spec.origin != str(path):
        raise _NotOffered(f"a library named {path.stem} is installed; give the file another name")
    if path.stem in sys.modules:
        return sys.modules[path.stem]  # another module has imported it
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _offer(module: ModuleType, name: str) -> tuple[Module, dict[str, Function]]:
    """What a module offers: its own marked functions, in the order of its source."""
    functions = {
        member: value
        for member, value in vars(module).items()
        if is_tool(value) and value.__module__ == name and member.isascii()
    }
    if not functions:
        raise _NotOffered("no function of it is marked @tool")
    if len(functions) > MAX_MEMBERS:
        raise _NotOffered(f"a module has at most {MAX_MEMBERS} tools")
    members = list(_members(functions))
    return Module(name=name, doc=(inspect.getdoc(module) or "")[:MAX_DOC], members=members), functions


def _members(functions: Mapping[str, Function]) -> Iterator[Member]:
    for name, function in functions.items():
        if len(name) > MAX_NAME:
            raise _NotOffered(f"the name {name[:MAX_NAME]}... has more than {MAX_NAME} characters")
        declared = declaration(function, name)
        if len(declared) > MAX_DECLARATION:
            raise _NotOffered(f"the signature of {name} has more than {MAX_DECLARATION} characters")
        ast.parse(f"{declared}: ...")
        yield Member(
            name=name,
            declaration=declared,
            doc=(inspect.getdoc(function) or "")[:MAX_DOC],
            is_async=inspect.iscoroutinefunction(function),
        )
