import socket
import subprocess
import threading
import time

import pytest

from axon.checks.exchange import exchange, private
from runtime.config.sections import Broker
from runtime.mqtt.broker import find_mosquitto, free_port


def test_mosquitto_is_held():
    assert private("/usr/sbin/mosquitto").state == "held"


def test_without_it_amqtt_is_a_warning_with_what_it_cannot_promise():
    check = private("")
    assert check.state == "warning"
    assert "lost with its process" in check.detail
    assert "apt install mosquitto" in check.fix


def test_a_private_broker_is_whatever_is_installed():
    assert exchange(Broker()) == private(find_mosquitto())


def test_a_broker_that_is_not_there_is_told_without_its_password():
    check = exchange(Broker(url=f"mqtt://robot:hunter2@127.0.0.1:{free_port()}"))
    assert (check.state, check.essential) == ("not held", False)
    assert "robot:***@" in check.detail
    assert "hunter2" not in check.detail + check.fix


def test_something_that_is_no_broker_is_told():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            peer, _ = server.accept()
            peer.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        check = exchange(Broker(url=f"mqtt://127.0.0.1:{server.getsockname()[1]}"))
        thread.join(20)
    assert check.state == "not held"


@pytest.mark.mosquitto
def test_a_broker_that_answers_is_held(tmp_path):
    program = find_mosquitto()
    if not program:
        pytest.skip("mosquitto isn't installed: sudo apt install mosquitto")
    port = free_port()
    with subprocess.Popen([program, "-p", str(port)], stderr=subprocess.DEVNULL) as broker:
        try:
            deadline = time.monotonic() + 20
            while exchange(Broker(url=f"mqtt://127.0.0.1:{port}")).state != "held" and time.monotonic() < deadline:
                time.sleep(0.05)
            assert exchange(Broker(url=f"mqtt://127.0.0.1:{port}")).state == "held"
        finally:
            broker.terminate()
