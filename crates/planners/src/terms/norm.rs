//! The options of a norm.
//!
//! Law: a norm adds `epsilon` under the root; weights multiply columns, and a bias is added to
//! them.

/// The options of a norm: epsilon, weights and bias.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::{Norm, layer_norm};
///
/// let h200 = Machine::named("H200").unwrap();
/// let norm = Norm::new(1e-5).without_weights().without_bias();
/// let plan = layer_norm(&h200, (1000, Element::F32), norm).unwrap();
/// // The input and the result.
/// assert_eq!(plan.kernel().program().tensors().count(), 2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Norm {
    /// The number that is added under the root.
    pub epsilon: f64,
    /// Whether there are weights, by which each column is multiplied.
    pub weights: bool,
    /// Whether there is a bias, which is added to each column. `rms_norm` has none.
    pub bias: bool,
}

/// A norm with this epsilon, with weights, and with a bias if the norm has one.
impl From<f64> for Norm {
    fn from(epsilon: f64) -> Norm {
        Norm::new(epsilon)
    }
}

impl Norm {
    /// With weights, and with a bias if the norm has one.
    pub fn new(epsilon: f64) -> Norm {
        Norm { epsilon, weights: true, bias: true }
    }

    /// Without weights.
    pub fn without_weights(self) -> Norm {
        Norm { weights: false, ..self }
    }

    /// Without a bias.
    pub fn without_bias(self) -> Norm {
        Norm { bias: false, ..self }
    }
}
