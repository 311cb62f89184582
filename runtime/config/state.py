"""The store's schema as a class in a cognet's ``state.py``: read as text, never executed, since it isn't the kernel's.

class CognetStoreSchema(TypedDict):
    checkpoint: dict[str, Any]
    mood: float | None
"""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

from runtime.abi.errors import CognetInvalid
from runtime.config.store import EXPECTED, is_store_key, store_type

STATE = "state.py"
SCHEMA = "CognetStoreSchema"
MAX_BYTES = 1_000_000


def read_schema(path: Path) -> dict[str, str] | None:
    """The keys and types that the class declares; None without the file or the class.

    Raises ``CognetInvalid`` with file and line for a file that is no Python, and for a class that holds anything
    but annotations.
    """
    try:
        with path.open("rb") as file:
            source = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _invalid(path, 0, f"can't be read: {error.strerror}") from error
    if len(source) > MAX_BYTES:
        raise _invalid(path, 0, f"has more than {MAX_BYTES:,} bytes")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are for whoever runs the file
            tree = ast.parse(source)
    except SyntaxError as error:
        raise _invalid(path, error.lineno or 0, error.msg) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise _invalid(path, 0, f"is no Python: {error}") from error
    found = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == SCHEMA]
    if len(found) > 1:
        raise _invalid(path, found[1].lineno, f"a second class {SCHEMA}")
    return _declared(path, found[0]) if found else None


def _declared(path: Path, schema: ast.ClassDef) -> dict[str, str]:
    keys: dict[str, str] = {}
    for node in schema.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=key), annotation=annotation, value=None):
                if key in keys:
                    raise _invalid(path, node.lineno, f"{key} is declared twice")
                keys[key] = _type(path, key, annotation)
            case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
                pass
            case _:
                raise _invalid(path, node.lineno, f"{SCHEMA} takes lines such as `key: int`, nothing else")
    return keys


def _type(path: Path, key: str, annotation: ast.expr) -> str:
    """The text of one annotation, checked."""
    if not is_store_key(key):
        raise _invalid(path, annotation.lineno, f"{key!r} can't be a key")
    text = "it"
    try:
        match annotation:
            case ast.Constant(value=str(quoted)):
                text = quoted
            case _:
                text = ast.unparse(annotation)
        store_type(text)
    except (ValueError, RecursionError) as error:
        what = f"{key}: {text[:60]!r} is no type of the store; expected {EXPECTED}"
        raise _invalid(path, annotation.lineno, what) from error
    return text


def _invalid(path: Path, line: int, what: str) -> CognetInvalid:
    place = f"{path}:{line}" if line else str(path)
    return CognetInvalid(f"{place}: {what}", file=str(path), line=line)
