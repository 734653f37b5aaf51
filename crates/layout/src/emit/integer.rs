//! The integer type of a text.

/// The signed integer type of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Integer {
    /// 32 bits. The facts must show that every number on the way fits; otherwise no text is
    /// written.
    I32,
    /// 64 bits, as the library computes. Numbers beyond that are the caller's concern, as they are
    /// with the layout itself: it has no offsets there. Python's integers have no end.
    #[default]
    I64,
}

impl Integer {
    /// How many bits it has.
    pub fn bits(self) -> u32 {
        match self {
            Integer::I32 => 32,
            Integer::I64 => 64,
        }
    }
}
