//! What a reader is told beside the text.

use tilewright_mesh::Mesh;

use crate::system::System;

/// What a reader is told beside the text. What is not needed is ignored.
///
/// ```
/// use tilewright_read::{Options, expression};
///
/// let options = Options { element_bits: Some(16), ..Options::default() };
/// assert_eq!(expression("(_4,_8):(_8,_1)", &options).unwrap().to_string(), "(4,8):(8,1)");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The width of an element in bits, where the text does not say it.
    pub element_bits: Option<i64>,
    /// The shape of the tensor, where the text does not say it.
    pub shape: Option<Vec<i64>>,
    /// The mesh of devices, where a sharding does not say it.
    pub mesh: Option<Mesh>,
    /// The system that wrote the text; without it every system is tried.
    pub system: Option<System>,
}
