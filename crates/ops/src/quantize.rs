//! Quantization to 8-bit floats (e4m3) with a scale for each block.
//!
//! Law: the scale of a block is its greatest magnitude over 448, the greatest number of e4m3, or 1
//! if that quotient is 0 in f32. Each element is divided by the scale and rounded to the nearest
//! number of e4m3, ties to even. With `power_of_two` the scale is the least power of two that is
//! not less.

use tilewright_tile::{Element, Sequence};

use crate::Operator;
use crate::error::OperatorError;
use crate::options::options;
use crate::row_tiles::{check_float, narrowed, program, widened};

/// The elements of a block along a row.
const BLOCK: i64 = 128;
/// The columns and the rows of a tile if blocks have one row.
const COLUMNS: i64 = 1024;
const ROWS: i64 = 4;

options! {
    /// Quantizes a matrix `x`, `(M,K)`, to `q`, of e4m3, with scales of f32: one for each 128
    /// elements of a row, `scales` of `(M,ceil(K/128))`, or one for each block of 128 x 128,
    /// `(ceil(M/128),ceil(K/128))`. All are contiguous.
    ///
    /// ```
    /// use tilewright_ops::{Operator, Quantize};
    ///
    /// let results = Quantize::default().forward()?.run(&[("M", 1), ("K", 2)], &[("x", vec![896.0, -3.0])])?;
    /// assert_eq!(results[0], ("q".to_string(), vec![Some(448.0), Some(-1.5)]));
    /// assert_eq!(results[1], ("scales".to_string(), vec![Some(2.0)]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Quantize("quantize") {
        /// The type of the elements of `x`.
        element: Element = Element::F32,
        /// Whether a block is 128 x 128, as for weights, rather than 1 x 128.
        square: bool = false,
        /// Whether scales are powers of two.
        power_of_two: bool = false,
        /// A power of two that divides `K`.
        alignment: i64 = 1,
    }
}

options! {
    /// The inverse of [`Quantize`]: computes the matrix `y`, `(M,K)`, from `q` and `scales`.
    ///
    /// ```
    /// use tilewright_ops::{Dequantize, Operator};
    ///
    /// let inputs = [("q", vec![448.0, -1.5]), ("scales", vec![2.0])];
    /// let results = Dequantize::default().forward()?.run(&[("M", 1), ("K", 2)], &inputs)?;
    /// assert_eq!(results, [("y".to_string(), vec![Some(896.0), Some(-3.0)])]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Dequantize("dequantize") {
        /// The type of the elements of `y`.
        element: Element = Element::F32,
        /// Whether a block is 128 x 128 rather than 1 x 128.
        square: bool = false,
        /// A power of two that divides `K`.
        alignment: i64 = 1,
    }
}

/// The blocks of a matrix.
struct Blocks {
    square: bool,
    facts: String,
}

impl Blocks {
    fn new(operator: &'static str, element: Element, square: bool, alignment: i64) -> Result<Blocks, OperatorError> {
        check_float(operator, "element", element)?;
        if alignment < 1 || alignment.count_ones() != 1 {
            return Err(OperatorError::value(operator, "alignment", alignment, "an alignment is a power of two"));
        }
        let facts = if alignment == 1 { String::new() } else { format!("{{div={alignment}}}") };
        Ok(Blocks { square, facts })
    }

    fn matrix(&self, role: &str, name: &str, element: Element) -> String {
        let facts = &self.facts;
        format!("    {role} {name}: {element} (M,K{facts}):(K{facts},1)\n")
    }

    fn scales(&self, role: &str) -> String {
        let rows = if self.square { format!("ceil(M/{BLOCK})") } else { "M".to_string() };
        format!("    {role} scales: f32 ({rows},ceil(K/{BLOCK})):(ceil(K/{BLOCK}),1)\n")
    }

    /// Four shapes: of a tile; of a tile with separate modes for its blocks; of its scales in those
    /// modes; and of its scales as a matrix. Then the modes within a block.
    fn shapes(&self) -> ([String; 4], &'static str) {
        let shapes = match self.square {
            true => {
                [format!("({BLOCK},{BLOCK})"), format!("({BLOCK},{BLOCK})"), "(1,1)".to_string(), "(1,1)".to_string()]
            }
            false => {
                let blocks = COLUMNS / BLOCK;
                [
                    format!("({ROWS},{COLUMNS})"),
                    format!("({ROWS},{BLOCK},{blocks})"),
                    format!("({ROWS},1,{blocks})"),
                    format!("({ROWS},{blocks})"),
                ]
            }
        };
        (shapes, if self.square { "0, 1" } else { "1" })
    }

    fn grid(&self) -> String {
        let (rows, columns) = if self.square { (BLOCK, BLOCK) } else { (ROWS, COLUMNS) };
        format!("    grid ceil(M/{rows}), ceil(K/{columns})\n")
    }
}

impl Operator for Quantize {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        let blocks = Blocks::new("quantize", self.element, self.square, self.alignment)?;
        let ([tile, split, _, scales], modes) = blocks.shapes();
        // If the scale is not a power of two, round up: the exponent plus 1.
        let power = match self.power_of_two {
            true => "    scale = as_f32(and(as_i32(scale) + 8388607, -8388608))\n",
            false => "",
        };
        let text = format!(
            "tile quantize {{
{}{}{}{}    a = reshape({}, {split})
    most = reduce_max(abs(a), {modes})
    share = most / 448
    scale = select(share == 0, 1, share)
{power}    store(scales, (block.x, block.y), reshape(scale, {scales}))
    store(q, (block.x, block.y), e4m3(reshape(a / scale, {tile})))
}}
",
            blocks.matrix("input ", "x", self.element),
            blocks.matrix("output", "q", Element::E4M3),
            blocks.scales("output"),
            blocks.grid(),
            widened(self.element, &format!("load(x, {tile}, (block.x, block.y))")),
        );
        Ok(Sequence::new(vec![program(&text)?]))
    }

    fn backward(&self) -> Result<Sequence, OperatorError> {
        Err(OperatorError::NoBackward { operator: "quantize", because: "rounding to 8 bits has no derivative" })
    }
}

impl Operator for Dequantize {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        let blocks = Blocks::new("dequantize", self.element, self.square, self.alignment)?;
        let ([tile, split, own, scales], _) = blocks.shapes();
        let text = format!(
            "tile dequantize {{
{}{}{}{}    scale = reshape(load(scales, {scales}, (block.x, block.y)), {own})
    a = reshape(f32(load(q, {tile}, (block.x, block.y))), {split}) * scale
    store(y, (block.x, block.y), {})
}}
",
            blocks.matrix("input ", "q", Element::E4M3),
            blocks.scales("input "),
            blocks.matrix("output", "y", self.element),
            blocks.grid(),
            narrowed(self.element, &format!("reshape(a, {tile})")),
        );
        Ok(Sequence::new(vec![program(&text)?]))
    }

    fn backward(&self) -> Result<Sequence, OperatorError> {
        Err(OperatorError::NoBackward { operator: "dequantize", because: "numbers of 8 bits are not trained" })
    }
}
