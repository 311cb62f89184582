"""A cognet in memory: its folder imported as one package, with exactly one loop and its hooks."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from capsule.errors import AxonError
from runtime.abi.errors import CognetInvalid
from runtime.brain.declare import Declarations, Hook, LoopBody, collecting, place
from runtime.brain.failure import describe, places

PACKAGE = "cognet"
"""The name a cognet's folder has inside the brain, whatever it is called on the disk."""


class Cognet:
    """What the brain runs."""

    def __init__(self, *, folder: Path, body: LoopBody, hooks: dict[str, list[Hook]]) -> None:
        self.folder = folder
        self.body = body
        self.hooks = hooks

    @classmethod
    def load(cls, folder: Path) -> Cognet:
        """Import ``main.py`` and every file of ``plugins/``; blocking, so never on a serving loop.

        Raises ``CognetInvalid`` naming the file, or the runtime's own error when a module at its top level
        called what it may not.
        """
        if not (folder / "main.py").is_file():
            raise CognetInvalid(f"{folder} has no main.py", hint="A cognet's loop stands in its main.py.")
        unload()
        declarations = Declarations()
        token = collecting.set(declarations)
        try:
            with _importable(folder):
                for module in ["main", *(f"plugins.{path.stem}" for path in _plugins(folder))]:
                    _import(module, folder)
        except BaseException:
            unload()
            raise
        finally:
            collecting.reset(token)
        return cls(folder=folder, body=_only_loop(declarations, folder), hooks=declarations.hooks)


def unload() -> None:
    """Forget the modules of the cognet that was loaded before, so that the next one starts fresh."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _OwnModules)]
    for name, module in list(sys.modules.items()):
        real_name = getattr(module, "__name__", "")
        if real_name == PACKAGE or real_name.startswith(f"{PACKAGE}."):
            del sys.modules[name]


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Make the folder the package ``cognet``; no bytecode is written into an agent's folder."""
    package = ModuleType(PACKAGE)
    package.__path__ = [str(folder)]
    package.__file__ = str(folder)
    sys.modules[PACKAGE] = package
    sys.meta_path.insert(0, _OwnModules(folder))
    importlib.invalidate_caches()
    wrote, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = wrote


class _OwnModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Lets ``from state import state`` in a cognet mean its own ``state.py``: the same module as ``.state``."""

    def __init__(self, folder: Path) -> None:
        files = {path.stem for path in folder.glob("*.py")} | {path.name for path in folder.iterdir() if path.is_dir()}
        self._names = files - sys.stdlib_module_names - {"runtime", "capsule", "__init__", PACKAGE}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the import system's signature
        target: ModuleType | None = None,  # noqa: ARG002 - as above
    ) -> importlib.machinery.ModuleSpec | None:
        """Only names of the cognet's own files."""
        if fullname.partition(".")[0] not in self._names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The module under its real name, imported now if it wasn't."""
        module = importlib.import_module(f"{PACKAGE}.{spec.name}")
        self._real_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has been executed; give it back the spec that this import put over its own."""
        module.__spec__ = self._real_spec


def _import(name: str, folder: Path) -> None:
    path = folder / f"{name.replace('.', '/')}.py"
    try:
        importlib.import_module(f"{PACKAGE}.{name}")
    except AxonError as error:
        at = _last_place(error, folder) or str(path)
        raise type(error)(f"{at}: {error.message}", hint=error.hint, **error.facts | {"file": str(path)}) from error
    except SyntaxError as error:
        raise CognetInvalid(
            f"{error.filename or path}:{error.lineno}: {error.msg}", file=str(error.filename or path)
        ) from error
    except (Exception, SystemExit) as error:
        at = _last_place(error, folder) or str(path)
        raise CognetInvalid(f"{at}: importing it failed: {describe(error)}", file=str(path)) from error


def _last_place(error: BaseException, folder: Path) -> str:
    """The last line of the cognet's own that the exception passed through."""
    own = [place for place in places(error.__traceback__, full=True) if place.startswith(f"{folder}/")]
    return own[-1].partition(" in ")[0] if own else ""


def _only_loop(declarations: Declarations, folder: Path) -> LoopBody:
    loops = declarations.loops
    if len(loops) == 1:
        return loops[0]
    if not loops:
        raise CognetInvalid(
            f"{folder / 'main.py'}: no loop", hint="Decorate one `async def think(wake)` with @loop.", loops=0
        )
    where = ", ".join(place(body) for body in loops)
    raise CognetInvalid(f"{len(loops)} loops: {where}", hint="A cognet has exactly one @loop.", loops=len(loops))


def _plugins(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("plugins/*.py") if not path.stem.startswith("_"))
