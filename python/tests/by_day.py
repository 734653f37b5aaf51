"""What is tried before each change, and what at night alone: all of it with `TILEWRIGHT_EXHAUSTIVE=1`."""

from __future__ import annotations

import os

EXHAUSTIVE = "TILEWRIGHT_EXHAUSTIVE" in os.environ

#: What PyTorch compiles graphs by. Its own compiler starts a C++ compiler for each graph; by day one
#: test has it, and the others run the graphs of the same operators without it.
BACKEND = "inductor" if EXHAUSTIVE else "aot_eager"

#: Random calls of each kind.
CALLS = int(os.environ.get("TILEWRIGHT_CALLS", "3000"))
