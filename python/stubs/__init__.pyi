from typing import Any, overload

from ._errors import LayoutError as LayoutError
from ._more import E as E
from ._more import Param as Param
from ._more import make_composed_layout as make_composed_layout
from ._more import make_layout as make_layout
from ._native import BitMatrix as BitMatrix
from ._native import Expr as Expr
from ._native import Function as Function
from ._native import Layout as Layout
from ._native import LinearLayout as LinearLayout
from ._native import Morphism as Morphism
from ._native import Picture as Picture
from ._native import Step as Step
from ._native import Swizzle as Swizzle
from ._native import Tensor as Tensor
from ._native import Tiler as Tiler
from ._native import Value as Value
from ._native import Xor as Xor
from ._native import copy as copy
from ._native import evaluate as evaluate
from ._native import functions as functions
from ._native import gemm as gemm
from ._native import zeros as zeros
from ._study import Access as Access
from ._study import Advice as Advice
from ._study import Banks as Banks
from ._study import Claim as Claim
from ._study import Footprint as Footprint
from ._study import Suggestion as Suggestion
from ._study import access as access
from ._study import banks as banks
from ._study import check as check
from ._study import draw as draw
from ._study import explain as explain
from ._study import footprint as footprint
from ._study import suggest as suggest
from ._tensor import tensor_composition as tensor_composition
from ._tensor import transform as transform
from ._types import Argument as Argument
from ._types import IntTuple as IntTuple
from ._types import LayoutLike as LayoutLike

# exported

__version__: str

# functions
