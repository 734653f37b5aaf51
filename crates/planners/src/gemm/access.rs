//! How TMA reads the operands of a problem, and how D is stored.
//!
//! Law: TMA reads a matrix with one contiguous mode whose other strides and whose base address are
//! multiples of 16 bytes. An operand that it cannot read is copied before the GEMM (`prepare.rs`),
//! and the plan prints the reason.

use crate::gemm::implicit;
use crate::gemm::problem::gated::Pairs;
use crate::gemm::problem::matrix::{Contiguous, Matrix};
use crate::gemm::problem::{LINE_BYTES, Problem};
use crate::units::VECTOR;
use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;
use tilewright_layout::Layout;

/// The first columns of all gated pairs as a matrix, and the offset from there to the second
/// columns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Firsts {
    pub(crate) matrix: Matrix,
    pub(crate) apart: i64,
}

impl Firsts {
    /// The layout that a kernel declares: columns, K, the member of the pair, and the batch if
    /// there is one.
    pub(crate) fn declared(&self) -> Option<Layout> {
        let [rows, columns, matrices] = self.matrix.declared_extents();
        let [down, across, step] = self.matrix.declared_strides()?;
        let modes = [(rows, down), (columns, across), (2, self.apart), (matrices, step)];
        Layout::of_modes(modes.into_iter().take(if self.matrix.is_batch() { 4 } else { 3 })).ok()
    }
}
/// Whether instructions for a type take operands whose rows are contiguous. `ldmatrix` and wgmma
/// transpose elements of 16 bits alone, and threads load those of 64 bits one by one.
pub(crate) fn takes_rows(element: Element) -> bool {
    matches!(element.bytes(), 2 | 8)
}

impl Problem {
    /// The contiguous mode of an operand as TMA reads it, or why it must be copied first.
    pub(crate) fn readable(&self, operand: &Matrix) -> Result<Contiguous, &'static str> {
        match operand.bulk()? {
            Contiguous::Rows if !takes_rows(operand.element()) => {
                Err("instructions for its type take K contiguous alone")
            }
            contiguous => Ok(contiguous),
        }
    }

    /// The contiguous mode of A, whose rows may be in groups, or why it must be copied first.
    pub(crate) fn readable_a(&self) -> Result<Contiguous, &'static str> {
        if let Some(fold) = implicit::of(self) {
            let more = "windows with a stride and padding have more dimensions than a tensor map";
            return if fold.is_mapped() { Ok(Contiguous::Columns) } else { Err(more) };
        }
        if self.images().is_some() {
            return Err("windows go past its edges, or its channels are not contiguous");
        }
        match self.readable(self.a())? {
            Contiguous::Rows if self.group_ends().is_some() => {
                Err("row groups begin anywhere, and its rows are contiguous")
            }
            contiguous => Ok(contiguous),
        }
    }

    /// The contiguous modes of A and of B as the kernels of a machine read them, or why they must
    /// be copied first.
    pub(crate) fn readable_on(&self, machine: &Machine) -> [Result<Contiguous, &'static str>; 2] {
        if self.is_by_warpgroups(machine) {
            return [self.readable_a(), self.readable_b()];
        }
        self.copied_by_threads().map(|found| found.map(|(contiguous, _)| contiguous))
    }

    /// The contiguous modes in which threads copy A and B by cp.async, and the elements of a copy,
    /// or why they must be copied first.
    pub(crate) fn copied_by_threads(&self) -> [Result<(Contiguous, i64), &'static str>; 2] {
        if let Some(fold) = implicit::of(self) {
            let width = fold.width(self.operand_type().bytes().into());
            let found = width.map(|width| (Contiguous::Columns, width));
            return [found.ok_or("its folded lines are no multiples of 4 bytes"); 2];
        }
        let of = |matrix: &Matrix| match matrix.copied_by_threads()? {
            (Contiguous::Rows, _) if !takes_rows(matrix.element()) || self.int4_scales().is_some() => {
                Err("instructions for its type take K contiguous alone")
            }
            found => Ok(found),
        };
        let a = match of(self.a()) {
            _ if self.images().is_some() => Err("windows go past its edges, or its channels are not contiguous"),
            Ok((Contiguous::Rows, _)) if self.group_ends().is_some() => {
                Err("row groups begin anywhere, and its rows are contiguous")
            }
            found => found,
        };
        let b = match (self.pairs(), self.firsts()) {
            (None, _) => of(self.b()),
            (Some(_), None) => Err("its modes are folded"),
            (Some(_), _) if self.b().offset() != 0 => Err("the columns of pairs begin behind its first element"),
            (Some(_), Some(firsts)) => of(&firsts.matrix).and_then(|(contiguous, width)| {
                // The second columns of pairs have the same distance from the first ones, which
                // must be a multiple of the width too.
                let divides = firsts.apart % width == 0;
                if divides {
                    Ok((contiguous, width))
                } else {
                    Err("the columns of a pair are apart by no whole copies")
                }
            }),
        };
        [a, b]
    }

    /// The contiguous mode of D as TMA stores it, or why it cannot.
    pub(crate) fn stored(&self) -> Result<Contiguous, &'static str> {
        if self.group_ends().is_some() {
            return Err("a group may end within a tile");
        }
        if !matches!(self.d().element().bytes(), 2 | 4) {
            return Err("its elements have 8 bits");
        }
        let contiguous = self.d().stored_in_bulk()?;
        // Folded rows are several modes, the first of which is contiguous.
        let first =
            if contiguous == Contiguous::Rows { implicit::of(self).and_then(|fold| fold.first_row()) } else { None };
        match first.is_some_and(|rows| rows * i64::from(self.d().element().bytes()) % 16 != 0) {
            true => Err("its folded lines end inside a chunk of 16 bytes, which bulk stores write whole"),
            false => Ok(contiguous),
        }
    }

    /// The contiguous mode of D if D is staged in shared memory, for TMA stores or thread stores;
    /// None if it is stored from registers.
    pub(crate) fn staged(&self) -> Option<Contiguous> {
        if let Ok(contiguous) = self.stored() {
            return Some(contiguous);
        }
        match self.d().strides() {
            Some([_, 1, _]) if self.group_ends().is_some() && self.spread() > 1 => Some(Contiguous::Columns),
            Some([_, 1, _]) if self.d().element().bytes() == 2 => Some(Contiguous::Columns),
            Some([1, _, _]) if self.d().element().bytes() == 2 => Some(Contiguous::Rows),
            _ => None,
        }
    }

    /// The contiguous mode of D if warps stage it in shared memory: elements of 16 bits alone. A
    /// warp writes whole sectors of wider elements from registers.
    pub(crate) fn staged_by_warps(&self) -> Option<Contiguous> {
        let d = self.d();
        let [rows, columns, _] = d.strides()?;
        let wide = |contiguous| self.stored_together(contiguous) > 1;
        match (d.element().bytes(), columns, rows) {
            (2, 1, _) if wide(Contiguous::Columns) => Some(Contiguous::Columns),
            (2, _, 1) if wide(Contiguous::Rows) => Some(Contiguous::Rows),
            _ => None,
        }
    }

    /// How many elements along the contiguous mode of D a thread may store by one access, up to 16
    /// bytes.
    pub(crate) fn stored_together(&self, contiguous: Contiguous) -> i64 {
        let (d, bytes) = (self.d(), i64::from(self.d().element().bytes()));
        let Some([rows, columns, matrices]) = d.strides() else { return 1 };
        let [m, n, _] = self.sizes();
        let (extent, other) = match contiguous {
            Contiguous::Columns => (n, rows),
            // Groups begin at any row.
            Contiguous::Rows if self.group_ends().is_some() => return 1,
            Contiguous::Rows => (m, columns),
        };
        let whole = |width: &i64| [extent, other, matrices, d.offset()].iter().all(|number| number % width == 0);
        [8, 4, 2].into_iter().filter(|width| width * bytes <= VECTOR).find(whole).unwrap_or(1)
    }

    /// Contiguous elements of D that a thread stores by one access, if threads store D.
    pub(crate) fn spread(&self) -> i64 {
        let bytes = i64::from(self.d().element().bytes());
        let widest = [16 / bytes, 8 / bytes, 4 / bytes].into_iter().filter(|width| *width > 1 && bytes > 1);
        let whole = |width: &i64| {
            let strides = self.d().strides().unwrap_or([1; 3]);
            let lines = strides[0] % width == 0 && strides[1] == 1 && strides[2] % width == 0;
            lines && self.sizes()[1] % width == 0 && self.d().offset() % width == 0
        };
        if self.group_ends().is_some() { widest.into_iter().find(whole).unwrap_or(1) } else { 1 }
    }

    /// Whether all rows of both operands begin at cache lines.
    pub(crate) fn begins_at_lines(&self) -> bool {
        let whole = |operand: &Matrix| {
            let strides = operand.strides().unwrap_or([1; 3]);
            let bytes = i64::from(operand.element().bytes());
            strides.into_iter().all(|stride| stride == 1 || stride * bytes % LINE_BYTES == 0)
        };
        whole(self.a()) && whole(self.b())
    }

    /// The first columns of the gated pairs of B, unless its modes are folded.
    pub(crate) fn firsts(&self) -> Option<Firsts> {
        let (b, [down, across, step]) = (self.b(), self.b().strides()?);
        let [rows, columns, matrices] = b.extents();
        let (stride, apart) = match self.pairs()? {
            Pairs::Neighbours => (2 * down, down),
            Pairs::Halves => (down, rows / 2 * down),
        };
        let matrix = Matrix::strided(b.element(), [rows / 2, columns, matrices], [stride, across, step]).ok()?;
        let matrix = matrix.at(b.offset()).ok()?;
        let matrix = if b.is_in_whole_rows() { matrix.in_whole_rows() } else { matrix };
        Some(Firsts { matrix, apart })
    }

    /// The contiguous mode of B as TMA reads it, or why it must be copied first.
    pub(crate) fn readable_b(&self) -> Result<Contiguous, &'static str> {
        if implicit::of(self).is_some() {
            return Ok(Contiguous::Columns);
        }
        if self.pairs().is_none() {
            return self.readable(self.b());
        }
        let firsts = self.firsts().ok_or("its modes are folded")?;
        let found = self.readable(&firsts.matrix)?;
        match firsts.apart * i64::from(self.operand_type().bytes()) % 16 {
            0 => Ok(found),
            _ => Err("the columns of a pair are no multiples of 16 bytes apart"),
        }
    }
}
