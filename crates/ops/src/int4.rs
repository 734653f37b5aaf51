//! Dequantization of weights of four bits.
//!
//! Law: a weight is an integer from -8 to 7 times the scale of its group of [`INT4_GROUP`] weights
//! along K. A word of i32 packs eight weights of a row: from the lowest four bits upward, the
//! weights at K = 0, 2, 4, 6, 1, 3, 5, 7. The planner of GEMMs multiplies such words directly
//! (`gemm::Problem::of_int4`).

use tilewright_tile::{Element, Sequence};

use crate::Operator;
use crate::error::OperatorError;
use crate::options::options;
use crate::row_tiles::{narrowed, program};

/// The number of weights along K that share a scale.
pub const INT4_GROUP: i64 = 128;
/// The number of weights in a word.
const WEIGHTS_OF_WORD: i64 = 8;
/// The number of words in a group.
const WORDS_OF_GROUP: i64 = INT4_GROUP / WEIGHTS_OF_WORD;
/// The rows of weights in a tile.
const TILE_ROWS: i64 = 16;
/// The greatest number of weights in a row.
const LONGEST_ROW: i64 = 1 << 24;

options! {
    /// Dequantizes weights packed in words. Inputs: `w`, `(N,length/8)` of i32, and `scales`,
    /// `(length/128,N)`. Output: `y`, `(N,length)`, of the type of the scales. All are contiguous.
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
        /// The number of weights in a row, a multiple of 128.
        length: i64 = 0,
        /// The type of `scales` and `y`, bf16 or f16.
        element: Element = Element::F16,
        /// A power of two that divides `N`.
        alignment: i64 = 1,
    }
}

impl Operator for Int4Weights {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        let Int4Weights { length, element, alignment } = *self;
        let refuse = |option, given: &dyn std::fmt::Display, because: &str| {
            Err(OperatorError::value("int4_weights", option, given, because))
        };
        if !(1..=LONGEST_ROW).contains(&length) || length % INT4_GROUP != 0 {
            let because = format!("a row has a multiple of {INT4_GROUP} weights, at most {LONGEST_ROW}");
            return refuse("length", &length, &because);
        }
        if !matches!(element, Element::Bf16 | Element::F16) {
            return refuse("element", &element, "the types are bf16 and f16");
        }
        if alignment < 1 || alignment.count_ones() != 1 {
            return refuse("alignment", &alignment, "an alignment is a power of two");
        }
        let facts = if alignment == 1 { String::new() } else { format!("{{div={alignment}}}") };
        let (words, groups) = (length / WEIGHTS_OF_WORD, length / INT4_GROUP);
        let text = format!(
            "tile int4_weights {{
    input  w: i32 ({words},N{facts}):(1,{words})
    input  scales: {element} (N{facts},{groups}):(1,N{facts})
    output y: {element} ({length},N{facts}):(1,{length})
    grid {groups}, ceil(N/{TILE_ROWS})
    a = unpack_i4(load(w, ({WORDS_OF_GROUP},{TILE_ROWS}), (block.x, block.y)), f32)
    a = reshape(transpose(reshape(a, (4,2,{WORDS_OF_GROUP},{TILE_ROWS})), (1,0,2,3)), ({INT4_GROUP},{TILE_ROWS}))
    scale = reshape(f32(load(scales, ({TILE_ROWS},1), (block.y, block.x))), (1,{TILE_ROWS}))
    store(y, (block.x, block.y), {})
}}
",
            narrowed(element, "a * scale"),
        );
        Ok(Sequence::new(vec![program(&text)?]))
    }

    fn backward(&self) -> Result<Sequence, OperatorError> {
        Err(OperatorError::NoBackward { operator: "int4_weights", because: "numbers of four bits are not trained" })
    }
}
