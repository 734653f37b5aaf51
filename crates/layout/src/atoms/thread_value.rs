//! Thread-value layouts of instructions: the elements that each thread holds.
//!
//! # Law
//!
//! A thread-value layout maps (thread, value) to a position in a tile, counted colexicographically:
//! first mode of the tile fastest. Exactly `holders` threads hold each position, and each of them
//! holds it as one value. So the value mode has no repetitions, the thread mode repeats every
//! position `holders` times, and without the repetitions the layout is a bijection onto the tile.
//!
//! For a copy that replicates its source, a thread holds each position `copies` times, and the
//! positions are the first `1/copies` of the tile: the value mode repeats every position `copies`
//! times.
//!
//! (CuTe `MMA_Traits::{A,B,C}Layout`, `Copy_Traits::{Src,Dst}Layout`; this module adds the check
//! that they are bijections.)

use alloc::boxed::Box;
use alloc::string::ToString;

use crate::atoms::evidence::Flaw;
use crate::{Layout, Leaf};

/// A thread-value layout, and the number of threads that hold each position of its tile.
///
/// The conversion from a layout states that one thread holds each position; the constructors that
/// take it check this.
///
/// ```
/// use tilewright_layout::atoms::{Arch, MmaAtom, MmaTypes, ThreadValue, ValueType};
///
/// let types = MmaTypes::uniform(ValueType::F64);
/// let layout = |text: &str| text.parse::<tilewright_layout::Layout>().unwrap();
/// let both = layout("((4,8),1):((8,1),0)");
/// let atom = |c| {
///     let operands = [ThreadValue::from(both.clone()), both.clone().into(), layout(c).into()];
///     MmaAtom::new("MINE_8x8x4", Arch::Sm80, [8, 8, 4], types, layout("32:1"), operands)
/// };
/// assert!(atom("((4,8),2):((16,1),8)").is_ok());
///
/// // Two values of a thread have the same position, and no thread holds half of the tile.
/// let refusal = atom("((4,8),2):((8,1),0)").unwrap_err();
/// assert_eq!(refusal.code(), "E0315");
/// assert_eq!(
///     refusal.to_string(),
///     "MINE_8x8x4: operand C, ((4,8),2):((8,1),0): a thread holds a place more than once, in value mode 2:0"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ThreadValue {
    layout: Layout,
    holders: i64,
    copies: i64,
}

impl ThreadValue {
    /// A broadcast: `holders` threads hold each position.
    pub fn shared(layout: Layout, holders: i64) -> ThreadValue {
        ThreadValue { layout, holders, copies: 1 }
    }

    /// The source of a copy that replicates: only the first `1/copies` of the positions are held,
    /// each by one thread, `copies` times.
    pub fn multiplied(layout: Layout, copies: i64) -> ThreadValue {
        ThreadValue { layout, holders: 1, copies }
    }

    /// The layout from (thread, value) to the position in the tile.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The number of threads that hold each position.
    pub fn holders(&self) -> i64 {
        self.holders
    }

    /// The number of times that a thread holds each of its positions.
    pub fn copies(&self) -> i64 {
        self.copies
    }

    /// The number of values that a thread holds.
    pub fn values(&self) -> i64 {
        self.layout.mode(1).map_or(1, |values| values.size())
    }

    /// Checks the law for a number of threads and a size of the tile; the error is the flaw.
    pub(crate) fn check(&self, threads: i64, places: i64) -> Result<(), Flaw> {
        let (2, Some(thread), Some(value)) = (self.layout.rank(), self.layout.mode(0), self.layout.mode(1)) else {
            return Err(Flaw::Rank { found: self.layout.rank() });
        };
        if thread.size() != threads {
            return Err(Flaw::Threads { found: thread.size(), wanted: threads });
        }
        if let (1, Some(leaf)) = (self.copies, value.leaves().iter().find(|leaf| repeats(leaf))) {
            let mode: Box<str> = alloc::format!("{}:{}", leaf.extent, leaf.stride).into();
            return Err(Flaw::Repeated { mode });
        }
        // The products divide the size of the layout, so they are representable.
        let times =
            |part: &Layout| part.leaves().iter().filter(|leaf| repeats(leaf)).fold(1, |n: i64, leaf| n * leaf.extent);
        let (copies, holders) = (times(&value), times(&thread));
        if copies != self.copies || places % copies != 0 {
            return Err(Flaw::Copies { found: copies, stated: self.copies });
        }
        let places = places / copies;
        if holders != self.holders {
            return Err(Flaw::Holders { found: holders, stated: self.holders });
        }
        let moving = self.layout.filter().map_err(|_| Flaw::Onto { found: "?".into(), wanted: places })?;
        if moving.size() != places || !moving.is_bijective() {
            return Err(Flaw::Onto { found: moving.to_string().into(), wanted: places });
        }
        Ok(())
    }
}

/// Whether the leaf does not change the position.
fn repeats(leaf: &Leaf) -> bool {
    leaf.extent > 1 && leaf.stride == 0
}

impl From<Layout> for ThreadValue {
    /// One thread holds each position.
    fn from(layout: Layout) -> ThreadValue {
        ThreadValue { layout, holders: 1, copies: 1 }
    }
}
