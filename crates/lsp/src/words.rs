//! The keywords and functions of tile programs, each with its hover text.
//!
//! Law: the functions of this table are exactly those that the reader knows. Element types are not
//! in the table, although their names are also conversion functions.

/// A keyword or a function of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// The name.
    pub name: &'static str,
    /// Its syntax; names in capitals stand for operands.
    pub signature: &'static str,
    /// A sentence about what it does.
    pub summary: &'static str,
    /// Whether it is called with arguments in parentheses.
    pub is_function: bool,
}

const fn keyword(name: &'static str, signature: &'static str, summary: &'static str) -> Word {
    Word { name, signature, summary, is_function: false }
}

const fn function(name: &'static str, signature: &'static str, summary: &'static str) -> Word {
    Word { name, signature, summary, is_function: true }
}

/// All keywords and functions.
pub const WORDS: &[Word] = &[
    keyword(
        "tile",
        "tile NAME { .. }",
        "A program: declarations, then statements. It is executed once for each block of the grid.",
    ),
    keyword(
        "input",
        "input NAME: TYPE LAYOUT",
        "A tensor that is read. Names in the layout are sizes known at launch.",
    ),
    keyword("output", "output NAME: TYPE LAYOUT", "A tensor that is written."),
    keyword("inout", "inout NAME: TYPE LAYOUT", "A tensor that is changed: its elements before the launch count."),
    function(
        "scalar",
        "scalar NAME: TYPE",
        "A number of f32, i32, f64 or i64 that the launch passes; its name, or `scalar(NAME)`, is a value.",
    ),
    keyword("grid", "grid COUNT, COUNT, COUNT", "How many blocks there are along x, y and z, as in `ceil(M/4)`."),
    keyword("warps", "warps N", "How many warps a block has; without it the plan chooses."),
    keyword(
        "loop",
        "loop i < COUNT with a = INITIAL { .. next VALUE } -> RESULT",
        "A loop that carries values from one iteration to the next.",
    ),
    keyword(
        "with",
        "loop i < COUNT with a = INITIAL, b = INITIAL { .. }",
        "The values that a loop carries, and what they are before the first iteration.",
    ),
    keyword("next", "next VALUE, VALUE", "The carried values of the next iteration, in the order of `with`."),
    keyword("block", "block.x", "The number of the block along x, y or z."),
    keyword("inf", "inf", "Infinity."),
    keyword("nan", "nan", "Not a number."),
    function(
        "store",
        "store(TENSOR, (INDEX, ..), VALUE)",
        "Stores a tile at an index, which counts tiles. Elements past the edges of the tensor are skipped.",
    ),
    function(
        "atomic_add",
        "atomic_add(TENSOR, (INDEX, ..), VALUE)",
        "Replaces each element by its sum with the one of the tile, atomically.",
    ),
    function(
        "atomic_min",
        "atomic_min(TENSOR, (INDEX, ..), VALUE)",
        "Replaces each element by its minimum with the one of the tile, atomically.",
    ),
    function(
        "atomic_max",
        "atomic_max(TENSOR, (INDEX, ..), VALUE)",
        "Replaces each element by its maximum with the one of the tile, atomically.",
    ),
    function(
        "load",
        "load(TENSOR, (EXTENT, ..), (INDEX, ..), OTHER)",
        "The tile of a tensor at an index, which counts tiles. Elements past the edges are 0, or OTHER. Indices may be tiles of i32 or i64 that say coordinates, broadcast against each other; one in brackets, `[i*16 - 3]`, is the element at which the tile begins.",
    ),
    function(
        "stage",
        "stage(TENSOR, (EXTENT, ..), (INDEX, ..), (ROWS, COLUMNS))",
        "A matrix in a tile of a tensor, by way of shared memory, for `dot`; the last argument names the modes that are its rows and columns.",
    ),
    function("dot", "dot(A, B, C)", "The matrix product `A B + C`."),
    function("fma", "fma(A, B, C)", "`A * B + C`, rounded once."),
    function("neg", "neg(VALUE)", "The negative of each element."),
    function("abs", "abs(VALUE)", "The magnitude of each element."),
    function("exp", "exp(VALUE)", "e to the power of each element."),
    function("exp2", "exp2(VALUE)", "2 to the power of each element."),
    function("log2", "log2(VALUE)", "The logarithm of each element to base 2."),
    function("sqrt", "sqrt(VALUE)", "The square root of each element."),
    function("rsqrt", "rsqrt(VALUE)", "1 over the square root of each element."),
    function("recip", "recip(VALUE)", "1 over each element."),
    function("tanh", "tanh(VALUE)", "The hyperbolic tangent of each element."),
    function("log", "log(VALUE)", "The natural logarithm of each element."),
    function("sin", "sin(VALUE)", "The sine of each element, in radians."),
    function("cos", "cos(VALUE)", "The cosine of each element, in radians."),
    function("erf", "erf(VALUE)", "The error function of each element."),
    function("floor", "floor(VALUE)", "The greatest whole number up to each element, of the same type."),
    function("ceil", "ceil(VALUE)", "The least whole number from each element on, of the same type."),
    function("round", "round(VALUE)", "The nearest whole number to each element, ties to even, of the same type."),
    function(
        "tf32",
        "tf32(VALUE)",
        "The nearest number of tf32, which has 10 bits behind the first one, as f32; ties away from 0. `dot` multiplies tiles of f32 that are rounded so.",
    ),
    function("min", "min(A, B)", "The lesser of two elements; NaN if one is NaN."),
    function("max", "max(A, B)", "The greater of two elements; NaN if one is NaN."),
    function("and", "and(A, B)", "The bits that are 1 in both elements, which are integers."),
    function("or", "or(A, B)", "The bits that are 1 in one or both elements, which are integers."),
    function("xor", "xor(A, B)", "The bits that differ between two elements, which are integers."),
    function("shl", "shl(A, B)", "The bits of integers shifted to the left."),
    function("shr", "shr(A, B)", "The arithmetic shift of integers to the right."),
    function("lshr", "lshr(A, B)", "The logical shift of integers to the right."),
    function(
        "select",
        "select(A < B, YES, NO)",
        "Elements of YES where the condition holds, else of NO: comparisons by `<`, `<=`, `>`, `>=`, `==` and `!=`, combined by `&`, `|` and `!`, or a tile of i32 that is not 0 there.",
    ),
    function("reduce_sum", "reduce_sum(VALUE, MODE, ..)", "The sum along modes, which keep one element each."),
    function(
        "reduce_product",
        "reduce_product(VALUE, MODE, ..)",
        "The product along modes, which keep one element each.",
    ),
    function("reduce_min", "reduce_min(VALUE, MODE, ..)", "The minimum along modes, which keep one element each."),
    function("reduce_max", "reduce_max(VALUE, MODE, ..)", "The maximum along modes, which keep one element each."),
    function(
        "scan_sum",
        "scan_sum(VALUE, MODE)",
        "The inclusive scan along a mode: each element is the sum up to and with its own.",
    ),
    function(
        "scan_before_sum",
        "scan_before_sum(VALUE, MODE)",
        "The exclusive scan along a mode: each element is the sum of those before its own.",
    ),
    function(
        "scan_product",
        "scan_product(VALUE, MODE)",
        "The inclusive scan along a mode: each element is the product up to and with its own.",
    ),
    function(
        "scan_before_product",
        "scan_before_product(VALUE, MODE)",
        "The exclusive scan along a mode: each element is the product of those before its own.",
    ),
    function(
        "scan_min",
        "scan_min(VALUE, MODE)",
        "The inclusive scan along a mode: each element is the minimum up to and with its own.",
    ),
    function(
        "scan_before_min",
        "scan_before_min(VALUE, MODE)",
        "The exclusive scan along a mode: each element is the minimum of those before its own.",
    ),
    function(
        "scan_max",
        "scan_max(VALUE, MODE)",
        "The inclusive scan along a mode: each element is the maximum up to and with its own.",
    ),
    function(
        "scan_before_max",
        "scan_before_max(VALUE, MODE)",
        "The exclusive scan along a mode: each element is the maximum of those before its own.",
    ),
    function(
        "argmax",
        "argmax(VALUE, MODE)",
        "Where the greatest element is along a mode, the first of equal ones, as i32.",
    ),
    function(
        "argmin",
        "argmin(VALUE, MODE)",
        "Where the least element is along a mode, the first of equal ones, as i32.",
    ),
    function("top", "top(VALUE, MODE, COUNT)", "The greatest elements along a mode, in descending order."),
    function(
        "top_places",
        "top_places(VALUE, MODE, COUNT)",
        "Where the greatest elements are along a mode, in descending order, the first of equal ones first, as i32.",
    ),
    function("histogram", "histogram(VALUE, BINS)", "How often each number from 0 occurs in a tile of i32."),
    function("broadcast", "broadcast(VALUE, (EXTENT, ..))", "The tile repeated along modes of extent 1."),
    function("reshape", "reshape(VALUE, (EXTENT, ..))", "The same elements in another shape."),
    function("transpose", "transpose(VALUE, (MODE, ..))", "The modes in another order."),
    function("arange", "arange((EXTENT, ..), MODE)", "The coordinate of each element along a mode, as i32."),
    function("index", "index(INDEX)", "An index such as `block.x*64 + i / 2`, as one number of i32."),
    function("size", "size(SIZE)", "An expression of sizes such as `ceil(K/64)`, as one number of i32."),
    function(
        "random",
        "random(COUNTERS, SEED, WORD)",
        "Random bits by Philox4x32-10: word 0 to 3 of the counter (c,0,0,0) and the key (seed,0).",
    ),
    function("as_i32", "as_i32(VALUE)", "The bits of each element, as i32."),
    function("as_f32", "as_f32(VALUE)", "The bits of each element, as f32."),
    function("as_i64", "as_i64(VALUE)", "The bits of each element of f64, as i64."),
    function("as_f64", "as_f64(VALUE)", "The bits of each element of i64, as f64."),
    function(
        "unpack_i4",
        "unpack_i4(WORDS, TYPE)",
        "The signed numbers of four bits in words of i32, eight along the first mode for each.",
    ),
    function(
        "unpack_u4",
        "unpack_u4(WORDS, TYPE)",
        "The unsigned numbers of four bits in words of i32, eight along the first mode for each.",
    ),
    function("atom", "atom(VALUE, \"NAME\")", "The same value, given by this instruction: products and loads."),
    function(
        "held",
        "held(VALUE, \"LAYOUT\")",
        "The same value, held by the threads of the block in this thread-value layout.",
    ),
];
