//! Predicates of the elements of a tensor, in registers.
//!
//! Law: if the predicate of an element is false, a copy skips the element: `cp.async` fills its
//! place with zeros, and any other destination is unchanged. A predicate applies to one element, or
//! to all values of one execution of the instruction, as in CuTe.
//!
//! (CuTe `copy_if(tiled_copy, pred, src, dst)`; `copy(.., pred=)` of the DSL, with predicates
//! computed from identity tensors by `elem_less`.)

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Extent, Layout, Slot as At, Tree};

use super::Build;
use super::access::{EdgeCondition, Piece};
use super::core::Slot;
use super::fragment::is_inside;
use super::number::Flag;
use super::tensor::View;
use crate::error::{KernelError, Reason};
use crate::program::operation::{Binary, Number, Operation};
use crate::program::register::{Register, Width};
use crate::program::{Location, Source};

/// Predicates with a layout, like the numbers of a fragment (CuTe `make_tensor<bool>(..)`).
///
/// ```
/// use tilewright_layout::atoms::{CopyAtom, CopyEnd, TiledCopy};
/// use tilewright_kernel::{Kernel, interpret};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let atom = CopyAtom::named("UniversalCopy<uint32_t>")?;
/// let copy = TiledCopy::new(atom, 32, &"(8,4):(4,1)".parse()?, &"(1,1)".parse()?)?;
/// // The first ten rows and three columns of a tensor of any size, and -1 elsewhere.
/// let kernel = Kernel::build("corner", |k| {
///     let (x, y) = (k.input::<f32>("x", "(16,4):(4,1)")?, k.tensor::<f32>("y", "(16,4):(4,1)")?);
///     let at = k.coordinates((16, 4))?.partition(&copy, CopyEnd::Source)?;
///     let (from, to) = (x.partition(&copy, CopyEnd::Source)?, y.partition(&copy, CopyEnd::Destination)?);
///     let inside = k.predicates(&"(1,2,1)".parse()?)?;
///     let end = "(10,3)".parse::<tilewright_layout::Tree<i64>>()?.map(|n| (*n).into());
///     for index in 0..2 {
///         inside.set_at(index, k.elem_less(&at.at(index)?, &end)?)?;
///     }
///     k.copy_if(&copy, &inside, &from, &to)
/// })?;
/// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[])?;
/// interpreter.tensor(0, &[2.0_f32; 64])?.tensor(1, &[-1.0_f32; 64])?;
/// let y = interpreter.check()?.run.tensor::<f32>(1)?;
/// assert_eq!(y[..4], [2.0, 2.0, 2.0, -1.0]);
/// assert_eq!(y.iter().filter(|y| **y == 2.0).count(), 30);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Predicates<'k> {
    build: &'k Build,
    cell: usize,
    start: usize,
    layout: Layout,
}

impl std::fmt::Debug for Predicates<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Predicates({})", self.layout)
    }
}

impl<'k> Predicates<'k> {
    /// The layout: from coordinates to registers.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The shape.
    pub fn shape(&self) -> Tree<i64> {
        self.layout.shape()
    }

    fn part(&self, at: &Coord) -> Result<Predicates<'k>, Reason> {
        is_inside(&self.layout.shape(), at, &self.layout)?;
        let (layout, offset) = self.layout.slice_and_offset(at)?;
        Ok(Predicates { start: self.start + offset as usize, layout, ..self.clone() })
    }

    /// The slice at a coordinate, in which `_` keeps a mode. It uses the same registers.
    ///
    /// Errors: there is no such slice.
    #[track_caller]
    pub fn slice(&self, at: impl Into<Coord>) -> Result<Predicates<'k>, KernelError> {
        KernelError::within("slice", || self.part(&at.into()))
    }

    /// Sets the predicate with an index.
    ///
    /// Errors: there is no such predicate.
    #[track_caller]
    pub fn set_at(&self, index: i64, value: Flag<'k>) -> Result<(), KernelError> {
        KernelError::within("set_at", || self.part(&Tree::leaf(At::At(index)))?.put(value.register))
    }

    /// Sets all predicates to this value.
    ///
    /// Errors: the layout of the predicates cannot be evaluated.
    #[track_caller]
    pub fn fill(&self, value: Flag<'k>) -> Result<(), KernelError> {
        KernelError::within("fill", || self.put(value.register))
    }

    fn put(&self, value: Register) -> Result<(), Reason> {
        let slots = self.slots()?;
        let mut core = self.build.core();
        for slot in slots {
            core.cells[self.cell].slots[slot] = Slot::Whole(value);
        }
        Ok(())
    }

    /// The predicate with an index.
    ///
    /// Errors: there is no such predicate, or it has no value yet.
    #[track_caller]
    pub fn at(&self, index: i64) -> Result<Flag<'k>, KernelError> {
        KernelError::within("at", || {
            let slots = self.part(&Tree::leaf(At::At(index)))?.slots()?;
            let register = self.build.core().element_register(self.cell, slots[0])?;
            Ok(Flag { build: self.build, register })
        })
    }

    fn slots(&self) -> Result<Vec<usize>, Reason> {
        (0..self.layout.size()).map(|index| Ok(self.start + self.layout.eval(&index)? as usize)).collect()
    }
}

impl Build {
    /// Predicates without values yet, with a layout; elements with equal offsets share a predicate
    /// (CuTe `make_tensor<bool>(layout)`; `make_rmem_tensor(layout, Boolean)` of the DSL).
    ///
    /// Errors: there are too many predicates; the layout has negative offsets.
    #[track_caller]
    pub fn predicates(&self, layout: &Layout) -> Result<Predicates<'_>, KernelError> {
        KernelError::within("predicates", || {
            let (least, greatest) = layout.range()?;
            if least < 0 {
                let step = "a stride".to_string();
                return Err(Reason::Backwards { layout: layout.to_string(), step });
            }
            super::elements_of_thread(layout.size())?;
            let cell = self.core().new_cell(1, greatest.saturating_add(1))?;
            Ok(Predicates { build: self, cell, start: 0, layout: layout.clone() })
        })
    }

    /// Whether each component of a coordinate is less than that of another (CuTe `elem_less`).
    ///
    /// Errors: the coordinates have different profiles; a component has too many terms.
    #[track_caller]
    pub fn elem_less(&self, at: &Tree<Expr>, bound: &Tree<Expr>) -> Result<Flag<'_>, KernelError> {
        let location = Location::caller();
        let compare = || {
            if at.profile() != bound.profile() {
                return Err(Reason::Sizes {
                    left: format!("the coordinate {at}"),
                    left_size: at.leaves().len().to_string(),
                    right: format!("the bound {bound}"),
                    right_size: bound.leaves().len().to_string(),
                });
            }
            let mut core = self.core_for(Source { statement: "elem_less", location });
            let mut both = None;
            let mut compared = Vec::new();
            for (a, b) in at.leaves().iter().zip(bound.leaves()) {
                if core.is_less(a, b) {
                    continue;
                }
                let less = core.less(a, b)?;
                compared.push((a.clone(), b.clone()));
                both = Some(match both {
                    None => less,
                    Some(both) => {
                        core.pure(Operation::Binary(Binary::And, Number::U16), [both, less], Width::Predicate)
                    }
                });
            }
            let register = match both {
                Some(both) => both,
                None => core.constant(1, Width::Predicate),
            };
            core.compared.insert(register, compared);
            Ok(register)
        };
        let register = compare().map_err(|refusal: Reason| refusal.at("elem_less", location))?;
        Ok(Flag { build: self, register })
    }
}

/// The predicate of each element of a view.
pub(super) struct Conditions(Vec<Register>);

impl Conditions {
    /// The predicates of a view, if an instruction moves `values` values at once: one for each
    /// element, or for each execution of the instruction.
    ///
    /// Errors: the shapes differ; a predicate has no value.
    pub(super) fn of(predicates: &Predicates<'_>, view: &View<'_>, values: i64) -> Result<Conditions, Reason> {
        let count = view.count()? as i64;
        let sizes = |modes: Vec<i64>| {
            let end = modes.iter().rposition(|size| *size != 1).map_or(0, |last| last + 1);
            modes[..end].to_vec()
        };
        let of_view: Option<Vec<i64>> = view.layout.modes().map(|mode| mode.size().known()).collect();
        let of_view = of_view.unwrap_or_default();
        let own = sizes(predicates.layout.modes().map(|mode| mode.size()).collect());
        let runs = match of_view.split_first() {
            Some((first, rest)) if first % values == 0 => [&[first / values], rest].concat(),
            _ => Vec::new(),
        };
        let each = if own == sizes(of_view.clone()) {
            1
        } else if own == sizes(runs.clone()) {
            values
        } else {
            let text = |sizes: &[i64]| sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
            return Err(Reason::Sizes {
                left: format!("the predicate {}", predicates.layout),
                left_size: predicates.layout.size().to_string(),
                right: format!("the copy, of ({}) elements in runs of the instruction,", text(&of_view)),
                right_size: format!("({})", text(&runs)),
            });
        };
        let slots = predicates.slots()?;
        let mut core = predicates.build.core();
        let register = |index: i64| core.element_register(predicates.cell, slots[(index / each) as usize]);
        Ok(Conditions((0..count).map(register).collect::<Result<_, _>>()?))
    }

    /// The same predicate for all elements of a view.
    ///
    /// Errors: the number of elements is not known.
    pub(super) fn one(condition: Flag<'_>, view: &View<'_>) -> Result<Conditions, Reason> {
        Ok(Conditions(vec![condition.register; view.count()?]))
    }

    /// The predicate of an access, if all of its elements have the same one.
    pub(super) fn of_piece(&self, piece: &Piece) -> Option<Register> {
        let mut all = piece.elements.iter().map(|element| self.0[*element]);
        let first = all.next()?;
        all.all(|register| register == first).then_some(first)
    }

    /// Splits accesses until all elements of each have one predicate.
    pub(super) fn apart(&self, pieces: Vec<Piece>) -> Result<Vec<Piece>, Reason> {
        let mut found = Vec::new();
        for piece in pieces {
            if self.of_piece(&piece).is_some() {
                found.push(piece);
                continue;
            }
            for (at, element) in piece.elements.iter().enumerate() {
                found.push(Piece { elements: vec![*element], offset: piece.offset_at(at)?, again: piece.again });
            }
        }
        Ok(found)
    }

    /// The elements by their predicates, in the order in which the predicates first occur.
    pub(super) fn groups(&self) -> Vec<(Register, Vec<usize>)> {
        let mut groups: Vec<(Register, Vec<usize>)> = Vec::new();
        for (element, register) in self.0.iter().enumerate() {
            match groups.iter_mut().find(|(own, _)| own == register) {
                Some((_, elements)) => elements.push(element),
                None => groups.push((*register, vec![element])),
            }
        }
        groups
    }
}

impl super::core::Core {
    /// Whether a condition is equivalent to the access being inside the tensor: each of its
    /// comparisons has the same difference as one of the edge conditions.
    pub(super) fn says_inside(&self, condition: Register, edges: &[EdgeCondition]) -> bool {
        let apart = |a: &Expr, b: &Expr| b.minus(a);
        let Some(compared) = self.compared.get(&condition) else { return false };
        let one = |(a, b): &(Expr, Expr)| {
            let own = apart(a, b);
            own.is_some() && edges.iter().any(|(_, at, extent)| apart(at, extent) == own)
        };
        compared.iter().all(one)
    }
}
