"""CUTLASS's own tests of its module `pycute`, run as they are with `tilewright.pycute` in its place.

    python cutlass.py FOLDER    the folder keeps them

They are fetched once from CUTLASS's repository, each at the commit that is named here, and are
taken only with the hash that is named here. Where there is no network and the folder is empty, they
are left out, and that is said.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

WHERE = "https://raw.githubusercontent.com/NVIDIA/cutlass/{commit}/test/python/pycute/{name}.py"

#: The name, the commit, and the SHA-256 of the file.
FILES = [
    ("test_coalesce", "07a02380222b8099045fa3b8d10378648a52cd38",
     "6265b20a2d6d976fe1ea10840d4805805938bca1f2e9a729987a8551c965ed77"),
    ("test_complement", "07a02380222b8099045fa3b8d10378648a52cd38",
     "c21caa52fd55598e55482461889eae304b305c7800bcd9cf2469be3a16c49f62"),
    ("test_composition", "5744c02a63e98a486d5d7e60db2855c1f41a9eff",
     "0de0254cd1a33c7d03577e3a5c247275523cb04948bf47a04f63390055c18a78"),
    ("test_int_tuple", "5744c02a63e98a486d5d7e60db2855c1f41a9eff",
     "4af8682b898329b188d21193bd124d174b8898578b1493d5833f7a770548f4c6"),
    ("test_left_inverse", "5744c02a63e98a486d5d7e60db2855c1f41a9eff",
     "6b9e130ee91eafcb02e01eaeefb4184d54bba18b81cac74f923c631717101742"),
    ("test_logical_product", "f7aed48b6a329e28e021c60d774f86d2048f2044",
     "02a03a515816e96ef5a7300512c53e0baad1abd71c6c65cea272ea562383eb34"),
    ("test_product", "e349f0d8e6104005f07e13308b1547a83cd62d91",
     "0d5e48630ec6c5099a26771df6f0704a73dd68e89e01b55484243460e0d7dc13"),
    ("test_right_inverse", "5744c02a63e98a486d5d7e60db2855c1f41a9eff",
     "f94b3e57a472917dcd66ffbc9fde248e26bde9fd858cf12e7f1524f215cb9e7a"),
    ("test_swizzle", "6a79799d2b6170c2beecc7b9f93616fef5e45917",
     "132f9439c12362f4744ba3ddbb97a98504d41d252eea3e02a804bbd281ef5d2f"),
    ("test_typing", "07a02380222b8099045fa3b8d10378648a52cd38",
     "b1427b4382ec8e7d248363886b0415a8532eaf5dd07776b9ae16606f08f12d27"),
]  # fmt: skip

RUN = """
import sys, unittest
from tilewright import pycute
pycute.install()
tests = unittest.TestLoader().discover(sys.argv[1], "test_*.py")
print(tests.countTestCases(), "tests")
sys.exit(not unittest.TextTestRunner(verbosity=2).run(tests).wasSuccessful())
"""


def fetched(name: str, commit: str, digest: str, folder: Path) -> bytes:
    """The file: from the folder, or from the repository, into the folder.

    Raises: `OSError` where there is no network; `ValueError` where the file has another hash.
    """
    kept = folder / f"{name}.py"
    if kept.exists():
        contents = kept.read_bytes()
    else:
        with urllib.request.urlopen(WHERE.format(commit=commit, name=name), timeout=20) as answer:
            contents = answer.read()
    found = hashlib.sha256(contents).hexdigest()
    if found != digest:
        raise ValueError(f"{name}.py has the hash {found}, and not {digest}: remove {kept}, if it is there")
    kept.write_bytes(contents)
    return contents


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as taken:
        for name, commit, digest in FILES:
            try:
                contents = fetched(name, commit, digest, folder)
            except (urllib.error.URLError, OSError) as error:
                print(f"CUTLASS's own tests of pycute are left out: {name}.py cannot be fetched ({error});")
                print(f"put test/python/pycute of its repository into {folder} to run them")
                return 0
            (Path(taken) / f"{name}.py").write_bytes(contents)
        # Nothing but these files and the package is there to be imported.
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        return subprocess.run([sys.executable, "-c", RUN, taken], cwd=taken, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
