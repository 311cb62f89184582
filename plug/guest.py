"""The guest: a Debian with the product's packages, its kernel, and the product as it is in this tree.

Root and kernel are built from Debian's packages once for each architecture and kept below ``build/plug``, under a
name made from what went into them; the product's own image is made anew for each campaign, which takes a second.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "plug"
SUITE = "bookworm"
PYTHON = "3.11"
SITE = f"usr/local/lib/python{PYTHON}/dist-packages"
PACKAGES = ("python3", "mosquitto", "busybox-static", "kmod")
MODULES = ("virtio_pci", "virtio_mmio", "virtio_blk", "virtio_console")
UNWANTED = ("boot", "lib/modules", "var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale")
PRODUCT = ("actuators", "axon", "capsule", "cognets", "hardware_profiles", "runtime", "sensors", "plug")
NEEDS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-system-aarch64": "qemu-system-arm",
    "mmdebstrap": "mmdebstrap",
    "arch-test": "arch-test",
    "mke2fs": "e2fsprogs",
    "e2fsck": "e2fsprogs",
    "debugfs": "e2fsprogs",
    "cpio": "cpio",
}


class Architecture(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between the two kinds of guest."""

    name: str
    wheel: str
    kernel: str
    qemu: tuple[str, ...]
    console: str


ARCHITECTURES = {
    "amd64": Architecture(
        name="amd64",
        wheel="x86_64",
        kernel="linux-image-cloud-amd64",
        # numpy wants x86-64-v2; wider vectors only make the emulation slower.
        qemu=("qemu-system-x86_64", "-M", "pc", "-cpu", "Nehalem,+rdrand"),
        console="ttyS0",
    ),
    "arm64": Architecture(
        name="arm64",
        wheel="aarch64",
        kernel="linux-image-cloud-arm64",
        # "max" is three times slower than a real core's model.
        qemu=("qemu-system-aarch64", "-M", "virt,gic-version=3", "-cpu", "cortex-a72"),
        console="ttyAMA0",
    ),
}


class Guest(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a machine is started from."""

    architecture: Architecture
    kernel: Path
    initrd: Path
    root: Path
    product: Path


class Missing(Exception):
    """This machine lacks a program; the message names the packages to install."""


def check_programs(names: list[str]) -> None:
    """Raise ``Missing`` with the line that installs whatever isn't there."""
    sbin = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    lacking = sorted({NEEDS[name] for name in names if shutil.which(name, path=sbin) is None})
    if lacking:
        raise Missing(f"sudo apt install {' '.join(lacking)}")


def guest(name: str) -> Guest:
    """Build what isn't in the cache; the first time takes minutes (arm64 about ten, by emulation)."""
    architecture = ARCHITECTURES[name]
    qemu = architecture.qemu[0]
    check_programs([qemu, "mke2fs", "e2fsck", "debugfs", "cpio"])
    base = CACHE / f"{name}-{_key(architecture)}"
    if not (base / "root.ext4").exists():
        check_programs(["mmdebstrap", *(["arch-test"] if name != _host() else [])])
        _build(architecture, base)
    product = CACHE / f"product-{os.getpid()}.ext4"
    _product(product)
    return Guest(
        architecture=architecture,
        kernel=base / "vmlinuz",
        initrd=base / "initrd",
        root=base / "root.ext4",
        product=product,
    )


def _host() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def _dependencies() -> list[str]:
    found: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return found


def _debian_key(architecture: Architecture) -> str:
    """Names Debian's part, which takes longest."""
    return _digest([SUITE, *PACKAGES, architecture.kernel])


def _key(architecture: Architecture) -> str:
    """Names what goes into a root: packages, wheels and the way it is put together."""
    return _digest([_debian_key(architecture), *_dependencies(), *MODULES, *UNWANTED, INIT])


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _build(architecture: Architecture, base: Path) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix=".building-") as name:
        work = Path(name)
        tree = work / "tree"
        _unpack(_debian(architecture), tree)
        kernels = sorted((tree / "boot").glob("vmlinuz-*"))
        made = work / "made"
        made.mkdir()
        shutil.copy(kernels[-1], made / "vmlinuz")
        _initrd(tree, kernels[-1].name.removeprefix("vmlinuz-"), made / "initrd")
        for unwanted in UNWANTED:
            shutil.rmtree(tree / unwanted, ignore_errors=True)
        _wheels(architecture, tree / SITE)
        for folder in ("opt/axon", "data"):
            (tree / folder).mkdir(parents=True, exist_ok=True)
        make_ext4(made / "root.ext4", tree, megabytes=900, journal=False)
        made.rename(base)


def _debian(architecture: Architecture) -> Path:
    """Debian's packages as one archive, kept for the next root."""
    kept = CACHE / f"debian-{architecture.name}-{_debian_key(architecture)}.tar"
    if not kept.exists():
        include = ",".join((*PACKAGES, architecture.kernel))
        mode = "root" if os.geteuid() == 0 else "unshare"
        arguments = [f"--mode={mode}", "--variant=minbase", f"--architectures={architecture.name}"]
        _run("mmdebstrap", *arguments, f"--include={include}", SUITE, f"{kept}.part.tar")
        Path(f"{kept}.part.tar").rename(kept)
    return kept


def _unpack(tar: Path, tree: Path) -> None:
    """Everything but devices, which a guest makes itself."""
    with tarfile.open(tar) as packed:
        members = [member for member in packed if not member.isdev()]
        packed.extractall(tree, members, filter="fully_trusted")


def _wheels(architecture: Architecture, site: Path) -> None:
    """The product's dependencies for that architecture, as pip would choose them there."""
    platforms = [
        f"manylinux{tag}_{architecture.wheel}" for tag in ("_2_34", "_2_28", "_2_27", "_2_17", "2014", "_2_12")
    ]
    tags = [part for tag in platforms for part in ("--platform", tag)]
    _run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--target", str(site), "--only-binary=:all:", "--implementation", "cp", "--python-version", PYTHON),
        *tags,
        *_dependencies(),
    )


def _initrd(tree: Path, release: str, path: Path) -> None:
    """Busybox and the few modules that it takes to see the disks."""
    modules = tree / "lib" / "modules" / release
    ordered = list(dict.fromkeys(_closure(modules)))
    with tempfile.TemporaryDirectory(dir=path.parent) as name:
        inside = Path(name)
        for folder in ("bin", "modules", "dev", "proc", "sys", "root"):
            (inside / folder).mkdir()
        shutil.copy(tree / "bin" / "busybox", inside / "bin" / "busybox")
        for module in ordered:
            shutil.copy(modules / module, inside / "modules" / Path(module).name)
        loads = "\n".join(f"/bin/busybox insmod /modules/{Path(module).name}" for module in ordered)
        init = inside / "init"
        init.write_text(INIT.format(loads=loads))
        init.chmod(0o755)
        listing = "\n".join(str(entry.relative_to(inside)) for entry in sorted(inside.rglob("*")))
        packed = subprocess.run(
            ["cpio", "--quiet", "-o", "-H", "newc"], cwd=inside, input=listing.encode(), capture_output=True, check=True
        )
        path.write_bytes(gzip.compress(packed.stdout, 1))


def _closure(modules: Path) -> Iterator[str]:
    """Each wanted module after those it needs; one that is part of the kernel has no file."""
    needs = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        module, _, others = line.partition(":")
        needs[module] = others.split()
    for wanted in MODULES:
        for module in needs:
            if Path(module).name.partition(".")[0] == wanted:
                yield from reversed(needs[module])
                yield module


def _product(path: Path) -> None:
    """The product as it is in this tree, with its bytecode: a guest compiles slowly."""
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        tree = Path(name)
        for package in PRODUCT:
            if (ROOT / package).is_dir():
                shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
        python = shutil.which(f"python{PYTHON}")
        if python:
            _run(python, "-m", "compileall", "-q", str(tree))
        make_ext4(path, tree, megabytes=64, journal=False)


def make_ext4(path: Path, tree: Path, *, megabytes: int, journal: bool) -> None:
    """A file system with that tree in it, without mounting anything."""
    options = [] if journal else ["-O", "^has_journal"]
    _run("mke2fs", "-q", "-F", "-t", "ext4", *options, "-d", str(tree), str(path), f"{megabytes}M")


def _run(*command: str) -> None:
    """Run a program; what it said is in the error when it fails."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PATH": path})
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)[:200]} failed: {(done.stderr or done.stdout)[-2000:]}")


INIT = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
{loads}
/bin/busybox mount -o ro /dev/vda /root
/bin/busybox mount -o ro /dev/vdb /root/opt/axon
/bin/busybox mount --move /dev /root/dev
/bin/busybox umount /sys /proc
exec /bin/busybox switch_root /root /opt/axon/plug/inside/init
"""
