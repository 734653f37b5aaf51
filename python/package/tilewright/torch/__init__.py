"""Operators of PyTorch: what `tilewright.ops` computes, with gradients, in graphs and compiled.

>>> import torch, tilewright as tw                          # doctest: +SKIP
>>> step = torch.compile(lambda x, w: tw.ops.rms_norm(x, w), fullgraph=True)  # doctest: +SKIP

Every operator is registered in the namespace ``tilewright`` of ``torch.ops``, with a fake
implementation, derivatives and a rule for ``vmap``. The functions of ``tilewright.ops`` call these
where PyTorch records gradients or traces, so a model needs nothing of this module but ``patch`` and
``operator``.

On the host the operators run by their definitions, so tests of models need no GPU.
"""

from __future__ import annotations

from ..ops import _common
from . import _attention, _elements, _embedding, _experts, _losses, _products, _rows, _training
from ._register import operators
from .decoder import Decoder
from .kernels import operator
from .optimizer import AdamW
from .patch import Patched, patch

# An import in each recorded call would take a microsecond.
_common.registered = operators

__all__ = ["AdamW", "Decoder", "Patched", "operator", "operators", "patch"]
