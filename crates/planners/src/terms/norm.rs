//! What a norm takes besides its rows.
//!
//! Law: a norm adds `epsilon` below the root; weights multiply columns, and a bias is added to
//! them.

/// What a norm takes besides its rows.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::{Norm, layer_norm};
///
/// let h200 = Machine::named("H200").unwrap();
/// let norm = Norm::new(1e-5).without_weights().without_bias();
/// let plan = layer_norm(&h200, (1000, Element::F32), norm).unwrap();
/// // The rows and the result.
/// assert_eq!(plan.kernel().program().tensors().count(), 2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Norm {
    /// What is added below the root.
    pub epsilon: f64,
    /// Whether there are weights, by which each column is multiplied.
    pub weights: bool,
    /// Whether there is a bias, which is added to each column. `rms_norm` has none.
    pub bias: bool,
}

/// The number that is added below the root: a norm with weights, and with a bias where it has one.
impl From<f64> for Norm {
    fn from(epsilon: f64) -> Norm {
        Norm::new(epsilon)
    }
}

impl Norm {
    /// With weights, and with a bias where the norm has one.
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
