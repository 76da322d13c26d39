"""Build the wheel of the present commit twice, from copies at different places, and compare: `python tools/reproducible.py [OUT]`.

Prints the SHA-256 of the wheel, which is left in OUT (default: dist); ends with 1 if the two differ.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def build(folder: Path, epoch: str) -> Path:
    """The wheel of the committed files, copied to a folder."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", "HEAD"))) as archive:
        archive.extractall(folder / "source", filter="data")
    for path in (folder / "source").rglob("*"):
        os.utime(path)  # another time than that of the commit
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(folder), str(folder / "source")]
    subprocess.run(
        command, check=True, env=os.environ | {"SOURCE_DATE_EPOCH": epoch}, umask=0o077 if "second" in folder.name else 0o022
    )
    return next(folder.glob("*.whl"))


def main() -> int:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "dist")
    epoch = git("log", "-1", "--format=%ct").decode().strip()
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory(suffix="-second") as second:
        wheels = [build(Path(folder), epoch) for folder in (first, second)]
        digests = [hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels]
        if digests[0] != digests[1]:
            print(f"two builds, two hashes: {digests[0]} and {digests[1]}", file=sys.stderr)
            return 1
        out.mkdir(exist_ok=True)
        shutil.copy(wheels[0], out)
        print(f"{digests[0]}  {out / wheels[0].name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
