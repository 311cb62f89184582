"""Locks between processes and between objects."""

from pathlib import Path

from runtime.durable.locks import FileLock


def test_one_alone_or_many_shared(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    alone, other = FileLock(path), FileLock(path)
    assert alone.acquire()
    assert not other.acquire()
    assert not other.acquire(shared=True)
    alone.release()
    assert alone.acquire(shared=True)
    assert other.acquire(shared=True)
    assert not FileLock(path).acquire(wait_s=0.01)
    alone.release()
    other.release()
    other.release()
    assert FileLock(path).acquire()
