//! Information for a reader that the text does not contain.

use tilewright_mesh::Mesh;

use crate::system::System;

/// Information for a reader that the text does not contain. Options that are not needed are
/// ignored.
///
/// ```
/// use tilewright_read::{Options, expression};
///
/// let options = Options { element_bits: Some(16), ..Options::default() };
/// assert_eq!(expression("(_4,_8):(_8,_1)", &options).unwrap().to_string(), "(4,8):(8,1)");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The width of an element in bits, if the text lacks it.
    pub element_bits: Option<i64>,
    /// The shape of the tensor, if the text lacks it.
    pub shape: Option<Vec<i64>>,
    /// The mesh of devices, if a sharding lacks it.
    pub mesh: Option<Mesh>,
    /// The system that wrote the text; None tries every system.
    pub system: Option<System>,
}
