import socket
import threading
from contextlib import contextmanager

import msgspec
import pytest

from axon.client import Control, ask, running
from capsule.errors import FrameInvalid
from capsule.frames import Hello, frame
from runtime.abi.errors import AgentNotRunning, CallInvalid, StorageFailed
from runtime.abi.observe import RunFile


async def echo(text: str) -> dict[str, str]:
    return {"text": text}


async def fail() -> None:
    raise StorageFailed("the disk is gone", path="/x")


def listening(agent, tmp_path) -> socket.socket:
    """A socket where the kernel's should be, that the test answers by hand."""
    path = tmp_path / "c"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    (agent / "data").mkdir()
    run = RunFile(pid=1, agent="a", session="s", boot_id="b", control=str(path), bus="", broker="")
    (agent / "data/run.json").write_bytes(msgspec.json.encode(run))
    return server


def test_a_question_is_answered(agent, kernel):
    kernel(echo=echo)
    assert ask(agent, "echo", text="hello") == {"text": "hello"}


def test_several_questions_go_over_one_connection(agent, kernel):
    kernel(echo=echo)
    with Control(agent) as control:
        assert [control.ask("echo", text=str(number)) for number in range(3)] == [{"text": str(n)} for n in range(3)]


def test_the_kernels_refusal_is_raised_as_the_same_class(agent, kernel):
    kernel(fail=fail)
    with pytest.raises(StorageFailed, match="the disk is gone") as caught:
        ask(agent, "fail")
    assert caught.value.facts["path"] == "/x"


@pytest.mark.parametrize(("verb", "args"), [("nothing", {}), ("echo", {}), ("echo", {"text": "a", "more": 1})])
def test_a_question_nobody_understands_is_refused(agent, kernel, verb, args):
    kernel(echo=echo)
    with pytest.raises(CallInvalid):
        ask(agent, verb, **args)


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"pid": "x"}'])
def test_without_a_readable_run_file_no_kernel_runs(agent, content):
    if content is not None:
        (agent / "data").mkdir()
        (agent / "data/run.json").write_bytes(content)
    with pytest.raises(AgentNotRunning):
        running(agent)


def test_a_run_file_left_behind_by_a_killed_kernel_means_not_running(agent, tmp_path):
    listening(agent, tmp_path).close()
    with pytest.raises(AgentNotRunning):
        ask(agent, "summary")


def test_a_kernel_that_says_nothing_is_not_waited_for_for_ever(agent, tmp_path):
    with listening(agent, tmp_path), pytest.raises(AgentNotRunning, match="doesn't answer"):
        Control(agent, timeout_s=0.05)


@contextmanager
def answering(agent, tmp_path, answer: bytes):
    """Whoever connects first is sent ``answer``."""
    with listening(agent, tmp_path) as server:

        def serve() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(answer)
                peer.recv(1000)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join(20)


@pytest.mark.parametrize("garbage", [b"\xff\xff\xff\xff", frame(b"\xc1"), frame(b"\x80")])
def test_garbage_instead_of_a_hello_is_an_error(agent, tmp_path, garbage):
    with answering(agent, tmp_path, garbage), pytest.raises((AgentNotRunning, FrameInvalid)):
        Control(agent)


def test_another_protocol_is_refused(agent, tmp_path):
    hello = frame(msgspec.msgpack.encode(Hello(protocol="axon-control/9")))
    with answering(agent, tmp_path, hello), pytest.raises(FrameInvalid, match="axon-control/9"):
        Control(agent)
