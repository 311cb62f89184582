"""Its store, declared as a class."""

from typing import TypedDict


class CognetStoreSchema(TypedDict):
    n: int
