"""The sandbox, the framed-message protocol and the root error that everything above builds on."""

from capsule.errors import AxonError

__all__ = ["AxonError"]
