//! Elementwise activation functions, and gated products of two matrices.
//!
//! Law: an element of the output depends only on the elements of the inputs at the same place.

use tilewright_tile::{Element, GradientOptions, Sequence};

use crate::Operator;
use crate::error::OperatorError;
use crate::options::options;
use crate::row_tiles::{check_float, narrowed, program, widened};

/// The elements of a tile: 8 for each of 256 threads.
const TILE: i64 = 2048;

/// The activation functions, by name: each is an expression of `a` in the language of tile
/// programs.
///
/// `tanh.approx` has 11 bits, so the functions are written with `exp`, which has 22.
const FUNCTIONS: [(&str, &str); 8] = [
    ("identity", "a"),
    // The slope at 0 is 0. The operands of `max` would share it.
    ("relu", "select(a <= 0, 0, a)"),
    ("relu_squared", "max(a, 0) * max(a, 0)"),
    ("sigmoid", "recip(exp(-a) + 1)"),
    ("silu", "a * recip(exp(-a) + 1)"),
    ("tanh", "1 - 2 * recip(exp(a * 2) + 1)"),
    ("gelu", "a * 0.5 * (erf(a * 0.70710678118654752) + 1)"),
    // a (1 + tanh(z)) / 2 is a over 1 + exp(-2 z), where z = sqrt(2/pi) (a + .044715 a^3).
    ("gelu_tanh", "a * recip(exp(a * (a * a * -0.07135481283 - 1.59576912161)) + 1)"),
];

options! {
    /// A function of each element of a matrix `x`; if `gated`, of each element of a matrix `gate`,
    /// times the element of a matrix `up` at the same place. The output is `y`. `swiglu` is gated
    /// `silu`, `geglu` is gated `gelu`.
    ///
    /// Matrices are `(M,N):(x_pitch,1)`: the halves of a packed matrix are two matrices with the
    /// pitch of the whole.
    ///
    /// ```
    /// use tilewright_ops::{Activation, Operator};
    ///
    /// let swiglu = Activation { function: "silu".to_string(), gated: true, ..Activation::default() };
    /// let sizes = [("M", 1), ("N", 2), ("gate_pitch", 2), ("up_pitch", 2), ("y_pitch", 2)];
    /// let results = swiglu.forward()?.run(&sizes, &[("gate", vec![0.0, 20.0]), ("up", vec![5.0, 3.0])])?;
    /// assert_eq!(results[0].1[0], Some(0.0));
    /// assert!((results[0].1[1].unwrap() - 60.0).abs() < 1e-4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Activation("activation") {
        /// The function: `identity`, `relu`, `relu_squared`, `sigmoid`, `silu`, `tanh`, `gelu`
        /// (with the error function) or `gelu_tanh`.
        function: String = "silu".to_string(),
        /// Whether the result of the function is multiplied by the element of a second matrix,
        /// `up`.
        gated: bool = false,
        /// The type of the elements.
        element: Element = Element::F32,
        /// A power of two that divides the pitches of all matrices and `N`, in elements.
        alignment: i64 = 1,
        /// Whether the backward writes `y` too, for a caller that saves the inputs and not `y`.
        with_result: bool = false,
    }
}

impl Activation {
    fn text(&self) -> Result<String, OperatorError> {
        let Activation { function, gated, element, alignment, .. } = self;
        let (element, alignment) = (*element, *alignment);
        check_float("activation", "element", element)?;
        if alignment < 1 || alignment.count_ones() != 1 {
            return Err(OperatorError::value("activation", "alignment", alignment, "an alignment is a power of two"));
        }
        let Some((_, formula)) = FUNCTIONS.iter().find(|(name, _)| name == function) else {
            let names = FUNCTIONS.map(|(name, _)| name).join(", ");
            return Err(OperatorError::value("activation", "function", function, format!("the functions are {names}")));
        };
        let facts = if alignment == 1 { String::new() } else { format!("{{div={alignment}}}") };
        let tensor =
            |role: &str, name: &str| format!("    {role} {name}: {element} (M,N{facts}):({name}_pitch{facts},1)\n");
        let load = |name: &str| widened(element, &format!("load({name}, (1,{TILE}), (block.y, block.x))"));
        let inputs = if *gated { ["gate", "up"].as_slice() } else { ["x"].as_slice() };
        let head: String = inputs.iter().map(|name| tensor("input ", name)).collect();
        let product = if *gated { format!("({formula}) * {}", load("up")) } else { (*formula).to_string() };
        Ok(format!(
            "tile activation {{\n{head}{}    grid ceil(N/{TILE}), M\n    a = {}\n    y = {product}\n    store(y, (block.y, block.x), {})\n}}\n",
            tensor("output", "y"),
            load(inputs[0]),
            narrowed(element, "y")
        ))
    }
}

impl Operator for Activation {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        Ok(Sequence::new(vec![program(&self.text()?)?]))
    }

    /// Reads `x` and `d_y`, and writes `d_x`; if gated, reads `gate`, `up` and `d_y`, and writes
    /// `d_gate` and `d_up`. With `with_result` it writes `y` too.
    fn backward(&self) -> Result<Sequence, OperatorError> {
        let outputs = if self.with_result { vec!["y".to_string()] } else { Vec::new() };
        Ok(program(&self.text()?)?.gradient(&GradientOptions { outputs, ..GradientOptions::default() })?)
    }
}
