"""Builds the wheel with maturin, without the paths of the machine in it.

A panic names the source file it stands in. The compiler writes such paths as it was given them, so those of the home of Cargo
and of the source tree are replaced here; a pyproject.toml cannot know them.
"""

import os
from pathlib import Path

from maturin import *  # noqa: F403


def _flags() -> str:
    # In a source distribution the backend lies beside `crates`, in the repository beside `python`.
    parents = Path(__file__).resolve().parents
    root = next(parent for parent in parents[1:3] if (parent / "crates").is_dir())
    cargo = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo").resolve()
    remap = [f"--remap-path-prefix={root}=tilewright", f"--remap-path-prefix={cargo}=cargo"]
    given = os.environ.get("CARGO_ENCODED_RUSTFLAGS")
    flags = given.split("\x1f") if given else os.environ.get("RUSTFLAGS", "").split()
    return "\x1f".join(flags + [flag for flag in remap if flag not in flags])


os.environ["CARGO_ENCODED_RUSTFLAGS"] = _flags()
