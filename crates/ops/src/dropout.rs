//! Dropout: each element is kept with a given probability.
//!
//! Law: element `i` of a tensor of one mode is kept if word 0 of Philox4x32-10, with the counter
//! `(i, 0, 0, 0)` and the key `(seed, 0)`, read as a signed integer, is at least a threshold. The
//! share `probability` of all 32-bit integers is below the threshold. So the same seed keeps the
//! same elements in the forward and in the backward, on every device.

use tilewright_tile::{Element, Sequence};

use crate::Operator;
use crate::error::OperatorError;
use crate::options::options;
use crate::row_tiles::{check_float, narrowed, program, widened};

/// The elements of a tile: 8 for each of 256 threads.
const TILE: i64 = 2048;

options! {
    /// Dropout: each element of `x` is multiplied by `1 / (1 - probability)`, or becomes 0 with
    /// this probability. The output is `y`. Tensors are contiguous, `N:1`. The seed is a scalar
    /// argument of the launch, `scalar seed: i32`.
    ///
    /// ```
    /// use tilewright_ops::{Dropout, Operator};
    ///
    /// let dropout = Dropout { probability: 0.5, ..Dropout::default() };
    /// let inputs = [("x", vec![1.0; 1000]), ("seed", vec![7.0])];
    /// let results = dropout.forward()?.run(&[("N", 1000)], &inputs)?;
    /// let kept = results[0].1.iter().filter(|value| **value == Some(2.0)).count();
    /// assert!((450..550).contains(&kept));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Dropout("dropout") {
        /// The probability with which an element becomes 0.
        probability: f64 = 0.5,
        /// The type of the elements.
        element: Element = Element::F32,
        /// A power of two that divides the number of elements.
        alignment: i64 = 1,
    }
}

impl Dropout {
    /// The program that reads and writes tensors of these names.
    fn text(&self, name: &str, from: &str, to: &str) -> Result<String, OperatorError> {
        let Dropout { probability, element, alignment } = *self;
        check_float("dropout", "element", element)?;
        if !(0.0..1.0).contains(&probability) {
            return Err(OperatorError::value("dropout", "probability", probability, "it is from 0, and less than 1"));
        }
        if alignment < 1 || alignment.count_ones() != 1 {
            return Err(OperatorError::value("dropout", "alignment", alignment, "an alignment is a power of two"));
        }
        let facts = if alignment == 1 { String::new() } else { format!("{{div={alignment}}}") };
        // The share `probability` of the 2^32 integers is less than the threshold.
        let threshold = (probability * 4_294_967_296.0).round() as i64 - 2_147_483_648;
        let scale = 1.0 / (1.0 - probability);
        let value = widened(element, &format!("load({from}, ({TILE}), (block.x))"));
        Ok(format!(
            "tile {name} {{
    input  {from}: {element} N{facts}:1
    output {to}: {element} N{facts}:1
    scalar seed: i32
    grid ceil(N/{TILE})
    bits = random(index(block.x*{TILE}) + arange(({TILE}), 0), broadcast(seed, ({TILE})), 0)
    kept = select(bits >= {threshold}, {value} * {scale:e}, 0)
    store({to}, (block.x), {})
}}
",
            narrowed(element, "kept")
        ))
    }
}

impl Operator for Dropout {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        Ok(Sequence::new(vec![program(&self.text("dropout", "x", "y")?)?]))
    }

    /// Reads `d_y` and the seed, and writes `d_x`.
    fn backward(&self) -> Result<Sequence, OperatorError> {
        Ok(Sequence::new(vec![program(&self.text("d_dropout", "d_y", "d_x")?)?]))
    }
}
