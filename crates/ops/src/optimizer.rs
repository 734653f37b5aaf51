//! Steps of optimizers on flat arrays.
//!
//! Law: with `g` the gradient, times the clip factor if there is one, a step of AdamW is
//!
//! ```text
//! m = m + (1 - beta1) (g - m)
//! v = v + (1 - beta2) (g^2 - v)
//! p = p - lr decay p - lr (m / correction1) / (sqrt(v / correction2) + epsilon)
//! ```
//!
//! in f32; results are rounded to the types of their tensors. `correction1` is `1 - beta1^step`,
//! and `correction2` is `1 - beta2^step`.

use tilewright_tile::{Element, Sequence};

use crate::Operator;
use crate::error::OperatorError;
use crate::options::options;
use crate::row_tiles::{check_float, narrowed, program, widened};

/// The elements of a tile: 8 for each of 256 threads.
const TILE: i64 = 2048;

options! {
    /// A step of AdamW, with decoupled weight decay, in place. Tensors, all `N:1`: the gradients
    /// `g`, which are read; and the parameters `p` and the moments `m` and `v`, which are updated.
    /// Scalar arguments of the launch, of f32: `lr`, `beta1`, `beta2`, `epsilon`, `decay`,
    /// `correction1` and `correction2`.
    ///
    /// ```
    /// use tilewright_ops::{AdamW, Operator};
    ///
    /// let numbers = [("lr", 0.5), ("beta1", 0.0), ("beta2", 0.0), ("epsilon", 0.0), ("decay", 0.5)];
    /// let mut inputs = numbers.map(|(name, value)| (name, vec![value])).to_vec();
    /// inputs.extend([("correction1", vec![1.0]), ("correction2", vec![1.0])]);
    /// inputs.extend([("p", vec![4.0]), ("g", vec![-3.0]), ("m", vec![0.0]), ("v", vec![0.0])]);
    /// let results = AdamW::default().forward()?.run(&[("N", 1)], &inputs)?;
    /// // A quarter of it decays, and a whole step goes against the gradient.
    /// assert_eq!(results[0], ("p".to_string(), vec![Some(3.5)]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct AdamW("adamw") {
        /// The type of the parameters.
        element: Element = Element::F32,
        /// The type of the gradients.
        gradient_element: Element = Element::F32,
        /// The type of `m` and `v`.
        state_element: Element = Element::F32,
        /// Whether there are master weights, `master`, a copy of the parameters in f32 that is
        /// updated. `p` is then only an output: the rounded master weights.
        master: bool = false,
        /// Whether gradients are multiplied by `clip`, a tensor of one f32, `1:1`: the factor that
        /// limits their norm.
        clip: bool = false,
        /// A power of two that divides the number of elements.
        alignment: i64 = 1,
    }
}

impl Operator for AdamW {
    fn forward(&self) -> Result<Sequence, OperatorError> {
        let AdamW { element, gradient_element, state_element, master, clip, alignment } = *self;
        for (name, own) in
            [("element", element), ("gradient_element", gradient_element), ("state_element", state_element)]
        {
            check_float("adamw", name, own)?;
        }
        if alignment < 1 || alignment.count_ones() != 1 {
            return Err(OperatorError::value("adamw", "alignment", alignment, "an alignment is a power of two"));
        }
        let facts = if alignment == 1 { String::new() } else { format!("{{div={alignment}}}") };
        let tensor = |role: &str, name: &str, own: Element| format!("    {role} {name}: {own} N{facts}:1\n");
        let load = |name: &str, own: Element| widened(own, &format!("load({name}, ({TILE}), (block.x))"));
        let store =
            |name: &str, own: Element, value: &str| format!("    store({name}, (block.x), {})\n", narrowed(own, value));
        let (source, of_source) = if master { ("master", Element::F32) } else { ("p", element) };
        let mut head = tensor("input ", "g", gradient_element);
        if clip {
            head += "    input  clip: f32 1:1\n";
        }
        if master {
            head += &tensor("output", "p", element);
        }
        head += &(tensor("inout ", source, of_source) + &tensor("inout ", "m", state_element));
        head += &tensor("inout ", "v", state_element);
        for name in ["lr", "beta1", "beta2", "epsilon", "decay", "correction1", "correction2"] {
            head += &format!("    scalar {name}: f32\n");
        }
        let clipped = if clip { " * load(clip, (1), (0))" } else { "" };
        let mut stores = store("p", element, "after");
        if master {
            stores += &store("master", Element::F32, "after");
        }
        stores += &(store("m", state_element, "first") + &store("v", state_element, "second"));
        let text = format!(
            "tile adamw {{
{head}    grid ceil(N/{TILE})
    own = {}
    d = {}{clipped}
    first = {}
    first = fma(d - first, broadcast(1 - beta1, ({TILE})), first)
    second = {}
    second = fma(d * d - second, broadcast(1 - beta2, ({TILE})), second)
    length = sqrt(second / correction2) + epsilon
    after = own - own * (lr * decay) - first / correction1 * lr / length
{stores}}}
",
            load(source, of_source),
            load("g", gradient_element),
            load("m", state_element),
            load("v", state_element),
        );
        Ok(Sequence::new(vec![program(&text)?]))
    }

    fn backward(&self) -> Result<Sequence, OperatorError> {
        Err(OperatorError::NoBackward { operator: "adamw", because: "a step is not derived by its parameters" })
    }
}
