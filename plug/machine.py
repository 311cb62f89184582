"""One virtual machine: started from a guest with a disk of ours, frozen, thawed, and its plug pulled."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from plug.disk import Disk
from plug.guest import Guest
from plug.nbd import Server

MEMORY_MB = 768
THAW_S = 60


class Machine:
    """QEMU without hardware help. ``lines`` are what the guest has sent over its serial port, each complete."""

    def __init__(self, guest: Guest, disk: Disk, folder: Path, *, thaw: Path | None = None, order: str = "run") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.disk = disk
        self._acks = folder / "acks"
        self._acks.write_bytes(b"")
        self._console = folder / "console"
        self._server = Server(disk, folder / "disk.sock")
        self._monitor = folder / "monitor.sock"
        self._monitor.unlink(missing_ok=True)
        command = [*_arguments(guest, folder, order), *(["-incoming", f"exec:cat {thaw}"] if thaw else [])]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if thaw:
            self._wake()

    def _wake(self) -> None:
        """It was frozen while stopped, and is so when it has been thawed."""
        with Monitor(self._monitor) as monitor:
            deadline = time.monotonic() + THAW_S
            while (status := monitor.ask("query-status")["status"]) == "inmigrate":
                if time.monotonic() > deadline:
                    raise RuntimeError(f"the machine doesn't thaw: {status}")
                time.sleep(0.02)
            monitor.ask("cont")

    def lines(self) -> list[str]:
        """What has left the machine; a line that the cut left unfinished never did."""
        whole, newline, _ = self._acks.read_bytes().rpartition(b"\n")
        return (whole + newline).decode(errors="replace").splitlines()

    def console(self) -> str:
        """What the guest printed."""
        return self._console.read_text(errors="replace")

    def wait_for(self, happened: Callable[[list[str]], bool], limit_s: float) -> list[str]:
        """Wait until the lines say so; raises with the console's end when they don't in time, or the guest ends."""
        deadline = time.monotonic() + limit_s
        while not happened(lines := self.lines()):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the guest didn't get there:\n{self.console()[-3000:]}")
            time.sleep(0.05)
        return lines

    def freeze(self, path: Path) -> Disk:
        """Write the whole state to a file and end; returns the disk of that moment, its cache included."""
        with Monitor(self._monitor) as monitor:
            monitor.ask("stop")
            monitor.ask("migrate", uri=f"exec:cat > {path}")
            while (status := monitor.ask("query-migrate").get("status")) != "completed":
                if status in ("failed", "cancelled"):
                    raise RuntimeError("the machine's state couldn't be written")
                time.sleep(0.05)
        self.pull()
        return self.disk

    def pull(self) -> None:
        """Pull the plug: no signal that anybody could handle, nothing more reaches the disk."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()
        self._server.close()


class Monitor:
    """QEMU's own control socket."""

    def __init__(self, path: Path, limit_s: float = 30) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(limit_s)
        deadline = time.monotonic() + limit_s
        while True:
            try:
                self._socket.connect(str(path))
                break
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        self._lines = self._socket.makefile("r")
        self._lines.readline()
        self.ask("qmp_capabilities")

    def ask(self, command: str, **arguments: object) -> dict[str, object]:
        """The answer to one command."""
        self._socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        while True:
            answer = json.loads(self._lines.readline())
            if "error" in answer:
                raise RuntimeError(f"{command}: {answer['error']}")
            if "return" in answer:
                result: dict[str, object] = answer["return"]
                return result

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._socket.close()


def _arguments(guest: Guest, folder: Path, order: str) -> list[str]:
    kind = guest.architecture
    words = f"console={kind.console} quiet panic=-1 mitigations=off random.trust_cpu=1 plug.order={order}"
    return [
        *(*kind.qemu, "-accel", "tcg,thread=multi", "-smp", "2", "-m", str(MEMORY_MB)),
        *("-display", "none", "-no-reboot", "-nic", "none", "-serial", f"file:{folder / 'console'}"),
        *("-qmp", f"unix:{folder / 'monitor.sock'},server=on,wait=off"),
        *("-kernel", str(guest.kernel), "-initrd", str(guest.initrd), "-append", words),
        *("-drive", f"file={guest.root},if=virtio,format=raw,readonly=on"),
        *("-drive", f"file={guest.product},if=virtio,format=raw,readonly=on"),
        # writeback: QEMU passes each of the guest's flushes on; the cache that may be lost is ours.
        *("-drive", f"file=nbd+unix:///?socket={folder / 'disk.sock'},if=virtio,format=raw,cache=writeback"),
        *("-device", "virtio-serial", "-chardev", f"file,id=acks,path={folder / 'acks'}"),
        *("-device", "virtserialport,chardev=acks,name=acks"),
    ]
