//! Linear layers whose weights have four bits.
//!
//! Law: a weight is an integer from -8 to 7 times the scale of its [`INT4_GROUP`] along K. A word
//! of i32 has eight weights of a row; its bits, four by four from the lowest, are those of K 0 2 4 6
//! 1 3 5 7. So a thread has the pairs of an instruction side by side without moving them.
//!
//! The products of a group are added by instructions, and the groups one after another in f32, each
//! times its scale. K may be divided into parts, whose sums are added in their order by a second
//! program. Neither the order nor the parts depend on the number of rows.

use tilewright_tile::{Element, Sequence};

use crate::Operator;
use crate::error::OperatorError;
use crate::options::options;
use crate::row_tiles::{narrowed, program, widened};

/// Weights along K that share a scale.
pub const INT4_GROUP: i64 = 128;
/// Weights of a word.
const WEIGHTS_OF_WORD: i64 = 8;
/// Columns of the result, and so rows of weights, of a tile.
const TILE_COLUMNS: i64 = 16;
/// The most weights of a row, and the most parts of K: bounds of what is accepted.
const LONGEST_ROW: i64 = 1 << 24;
const MOST_PARTS: i64 = 64;

options! {
    /// `y = x w^T + bias`, with weights of four bits. Inputs: `x`, `(M,length)`; `w`,
    /// `(N,length/8)` words of i32; `scales`, `(length/128,N)`; with `bias` that of N elements.
    /// Output: `y`, `(M,N)`. All are contiguous. `scales`, `bias` and `y` have the type of `x`;
    /// with `splits`, there are partial sums, `parts`, `(splits,M,N)` of f32.
    ///
    /// ```
    /// use tilewright_ops::{Int4Linear, Operator};
    ///
    /// // 128 weights of 1, with a scale of 0.5.
    /// let inputs = [("x", vec![1.0; 128]), ("w", vec![f64::from(0x1111_1111); 16]), ("scales", vec![0.5])];
    /// let layer = Int4Linear { length: 128, ..Int4Linear::default() };
    /// assert_eq!(layer.forward()?.run(&[("M", 1), ("N", 1)], &inputs)?[0].1, [Some(64.0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Int4Linear("int4_linear") {
        /// The elements of a row of `x`, a multiple of 128.
        length: i64 = 0,
        /// The type of `x`, bf16 or f16.
        element: Element = Element::F16,
        /// Rows of `x` of a tile: 8, 16, 32 or 64.
        rows: i64 = 8,
        /// Into how many parts K is divided.
        splits: i64 = 1,
        /// Whether there is a bias.
        bias: bool = false,
        /// A power of two that divides `N`.
        alignment: i64 = 1,
    }
}

options! {
    /// The weights of [`Int4Linear`] as numbers, `y`, `(N,length)`, of its words `w` and its
    /// `scales`.
    ///
    /// ```
    /// use tilewright_ops::{Int4Weights, Operator};
    ///
    /// // The words of -1 and 1, in turn.
    /// let inputs = [("w", vec![f64::from(0x1111_ffff_u32 as i32); 16]), ("scales", vec![0.5])];
    /// let weights = Int4Weights { length: 128, ..Int4Weights::default() };
    /// assert_eq!(weights.forward()?.run(&[("N", 1)], &inputs)?[0].1[..3], [-0.5, 0.5, -0.5].map(Some));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Int4Weights("int4_weights") {
        /// The weights of a row, a multiple of 128.
        length: i64 = 0,
        /// The type of `scales` and `y`, bf16 or f16.
        element: Element = Element::F16,
        /// A power of two that divides `N`.
        alignment: i64 = 1,
    }
}

/// What both operators are given.
struct Weights {
    length: i64,
    element: Element,
    facts: String,
}

impl Weights {
    fn new(operator: &'static str, length: i64, element: Element, alignment: i64) -> Result<Weights, OperatorError> {
        if !(1..=LONGEST_ROW).contains(&length) || length % INT4_GROUP != 0 {
            let because = format!("a row has a multiple of {INT4_GROUP} weights, at most {LONGEST_ROW}");
            return Err(OperatorError::value(operator, "length", length, because));
        }
        if !matches!(element, Element::Bf16 | Element::F16) {
            return Err(OperatorError::value(operator, "element", element, "the types are bf16 and f16"));
        }
        if alignment < 1 || alignment.count_ones() != 1 {
            return Err(OperatorError::value(operator, "alignment", alignment, "an alignment is a power of two"));
        }
        let facts = if alignment == 1 { String::new() } else { format!("{{div={alignment}}}") };
        Ok(Weights { length, element, facts })
    }

    /// The declarations of the words and the scales.
    fn declared(&self) -> String {
        let Weights { length, element, facts } = self;
        let (words, groups) = (length / WEIGHTS_OF_WORD, length / INT4_GROUP);
        format!(
            "    input  w: i32 ({words},N{facts}):(1,{words})
    input  scales: {element} (N{facts},{groups}):(1,N{facts})
"
        )
    }
}

/// The words of a group of a tile.
const WORDS_OF_GROUP: i64 = INT4_GROUP / WEIGHTS_OF_WORD;

impl Operator for Int4Linear {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        let Int4Linear { length, element, rows, splits, bias, alignment } = *self;
        let weights = Weights::new("int4_linear", length, element, alignment)?;
        if ![8, 16, 32, 64].contains(&rows) {
            return Err(OperatorError::value("int4_linear", "rows", rows, "a tile has 8, 16, 32 or 64 rows"));
        }
        let groups = length / INT4_GROUP;
        if !(1..=MOST_PARTS.min(groups)).contains(&splits) || groups % splits != 0 {
            let because = format!("the {groups} groups of K have as many parts as divide them, at most {MOST_PARTS}");
            return Err(OperatorError::value("int4_linear", "splits", splits, because));
        }
        let (steps, facts) = (groups / splits, &weights.facts);
        let of_bias = if bias { format!("    input  bias: {element} (N{facts},1):(1,N)\n") } else { String::new() };
        let added = |sum: &str, place: &str| match bias {
            true => format!("{sum} + {}", widened(element, &format!("load(bias, ({TILE_COLUMNS},1), ({place}, 0))"))),
            false => sum.to_string(),
        };
        // Both operands take the order of K in which a thread reads whole words and 16 bytes of x.
        let multiplied = |group: &str, output: &str, stored: &str| {
            format!(
                "tile int4_linear {{
    input  x: {element} ({length},M):(1,{length})
{}{output}    grid {splits}, ceil(M/{rows}), ceil(N/{TILE_COLUMNS})
    loop g < {steps} with sum = broadcast(f32(0), ({TILE_COLUMNS},{rows})) {{
        a = unpack_i4(load(w, ({WORDS_OF_GROUP},{TILE_COLUMNS}), ({group}, block.z)), {element})
        a = reshape(transpose(reshape(a, (4,2,4,4,{TILE_COLUMNS})), (4,1,3,0,2)), ({TILE_COLUMNS},{INT4_GROUP}))
        b = reshape(load(x, ({INT4_GROUP},{rows}), ({group}, block.y)), (2,16,4,{rows}))
        b = reshape(transpose(b, (0,2,1,3)), ({INT4_GROUP},{rows}))
        part = dot(a, b, broadcast(f32(0), ({TILE_COLUMNS},{rows})))
        next fma(part, f32(load(scales, ({TILE_COLUMNS},1), (block.z, {group}))), sum)
    }} -> sum
    {stored}
}}
",
                weights.declared(),
            )
        };
        let result = format!("    output y: {element} (N{facts},M):(1,N{facts})\n");
        if splits == 1 {
            let value = narrowed(element, &added("sum", "block.z"));
            let text =
                multiplied("g", &format!("{of_bias}{result}"), &format!("store(y, (block.z, block.y), {value})"));
            return Ok(Sequence::new(vec![program(&text)?]));
        }
        let parts = format!("(N{facts},M,{splits}):(1,N{facts},N{facts}*M)");
        let first = multiplied(
            &format!("block.x*{steps} + g"),
            &format!("    output parts: f32 {parts}\n"),
            &format!("store(parts, (block.z, block.y, block.x), reshape(sum, ({TILE_COLUMNS},{rows},1)))"),
        );
        let second = format!(
            "tile int4_sums {{
    input  parts: f32 {parts}
{of_bias}{result}    grid ceil(N/{TILE_COLUMNS}), ceil(M/{rows})
    loop s < {splits} with sum = broadcast(f32(0), ({TILE_COLUMNS},{rows})) {{
        next sum + reshape(load(parts, ({TILE_COLUMNS},{rows},1), (block.x, block.y, s)), ({TILE_COLUMNS},{rows}))
    }} -> sum
    store(y, (block.x, block.y), {})
}}
",
            narrowed(element, &added("sum", "block.x")),
        );
        Ok(Sequence::new(vec![program(&first)?, program(&second)?]))
    }

    fn backward(&self) -> Result<Sequence, OperatorError> {
        let because = "numbers of four bits are not trained, and the derivative by `x` is a GEMM of `int4_weights`";
        Err(OperatorError::NoBackward { operator: "int4_linear", because })
    }
}

impl Operator for Int4Weights {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        let Int4Weights { length, element, alignment } = *self;
        let weights = Weights::new("int4_weights", length, element, alignment)?;
        let facts = &weights.facts;
        let text = format!(
            "tile int4_weights {{
{}    output y: {element} ({length},N{facts}):(1,{length})
    grid {}, ceil(N/{TILE_COLUMNS})
    a = unpack_i4(load(w, ({WORDS_OF_GROUP},{TILE_COLUMNS}), (block.x, block.y)), f32)
    a = reshape(transpose(reshape(a, (4,2,{WORDS_OF_GROUP},{TILE_COLUMNS})), (1,0,2,3)), ({INT4_GROUP},{TILE_COLUMNS}))
    scale = reshape(f32(load(scales, ({TILE_COLUMNS},1), (block.y, block.x))), (1,{TILE_COLUMNS}))
    store(y, (block.x, block.y), {})
}}
",
            weights.declared(),
            length / INT4_GROUP,
            narrowed(element, "a * scale"),
        );
        Ok(Sequence::new(vec![program(&text)?]))
    }

    fn backward(&self) -> Result<Sequence, OperatorError> {
        Err(OperatorError::NoBackward { operator: "int4_weights", because: "numbers of four bits are not trained" })
    }
}
