//! The integer type of a text.

/// The signed integer type of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Integer {
    /// 32 bits. No text is written unless the facts prove that every intermediate value fits.
    I32,
    /// 64 bits, as in the library. The caller must avoid larger numbers, at which the layout itself
    /// has no offsets. Python's integers are unbounded.
    #[default]
    I64,
}

impl Integer {
    /// The number of bits.
    pub fn bits(self) -> u32 {
        match self {
            Integer::I32 => 32,
            Integer::I64 => 64,
        }
    }
}
