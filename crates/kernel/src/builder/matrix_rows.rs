//! Matrices of 8 rows of 16 bytes, between shared memory and the registers of a warp (`ldmatrix`,
//! `stmatrix`).
//!
//! Law: an instruction moves 1, 2 or 4 matrices. A lane supplies the address of one row of 16
//! bytes, and holds 32 bits of each matrix: word `n` of instruction `i` is the part of the fragment
//! that begins at `(i * count + n) * elements in a word`.

use super::Build;
use super::access::Edge;
use super::fragment::Fragment;
use super::tensor::View;
use crate::error::Reason;
use crate::program::memory::{Access, Space};
use crate::program::operation::Operation;
use crate::program::register::{Register, Width};

/// One instruction: the row whose address this lane supplies, and the elements of each word that it
/// holds.
struct Matrices<'s> {
    access: Access,
    address: Option<Register>,
    words: std::slice::Chunks<'s, usize>,
}

impl Build {
    pub(super) fn load_matrix<'k>(
        &'k self,
        from: &View<'k>,
        to: &Fragment<'k>,
        count: u32,
        transposed: bool,
    ) -> Result<(), Reason> {
        let slots = to.slots()?;
        for Matrices { access, address, words } in self.matrices(from, to, &slots, count)? {
            let mut core = self.core();
            let outputs = vec![Width::Bits32; count as usize];
            let registers = core.effect(Operation::LoadMatrix { access, transposed }, address, &outputs, None);
            for (part, register) in words.zip(registers) {
                core.set_word(to.cell, part, register);
            }
        }
        Ok(())
    }

    pub(super) fn store_matrix<'k>(
        &'k self,
        from: &Fragment<'k>,
        to: &View<'k>,
        count: u32,
        transposed: bool,
    ) -> Result<(), Reason> {
        let slots = from.slots()?;
        for Matrices { access, address, words } in self.matrices(to, from, &slots, count)? {
            let mut core = self.core();
            let mut inputs: Vec<Register> = address.into_iter().collect();
            for part in words {
                inputs.push(core.word_of(from.cell, part)?);
            }
            core.effect(Operation::StoreMatrix { access, transposed }, inputs, &[], None);
        }
        Ok(())
    }

    /// The instructions that move a whole fragment.
    fn matrices<'k, 's>(
        &'k self,
        view: &View<'k>,
        fragment: &Fragment<'k>,
        slots: &'s [usize],
        count: u32,
    ) -> Result<Vec<Matrices<'s>>, Reason> {
        let refusal = |because: &str| Reason::Width {
            tensor: view.text(),
            atom: "a matrix instruction".to_string(),
            elements: 128 / view.element.bits(),
            because: because.to_string(),
        };
        if self.core().buffers[view.buffer.index()].space != Space::Shared {
            return Err(refusal("it is not in shared memory"));
        }
        if view.element != fragment.element {
            return Err(Reason::Elements { wanted: fragment.element, given: view.element });
        }
        let in_word = (32 / view.element.bits()) as usize;
        if in_word == 0 {
            return Err(refusal("an element has more than 32 bits"));
        }
        let (in_row, in_lane) = (4 * in_word, in_word * count as usize);
        let rows = view.count()? / in_row;
        if slots.len() != rows * in_lane {
            return Err(Reason::Sizes {
                left: view.text(),
                left_size: format!("{rows} rows of 16 bytes"),
                right: fragment.layout.to_string(),
                right_size: format!("{} elements, not {}", slots.len(), rows * in_lane),
            });
        }
        let mut found = Vec::new();
        for (number, (piece, lane)) in view.pieces(in_row as u32)?.iter().zip(slots.chunks(in_lane)).enumerate() {
            let first = number * in_row;
            if piece.elements.iter().copied().ne(first..first + in_row) {
                return Err(refusal("a row is not 16 bytes side by side at a multiple of 16"));
            }
            let conditions = view.conditions(piece, Edge::Proved)?;
            let mut core = self.core();
            core.guard(view, &conditions, Edge::Proved)?;
            let (address, offset) = view.address(&mut core, &piece.offset)?;
            drop(core);
            let access = view.access(address, offset, 32, count);
            found.push(Matrices { access, address, words: lane.chunks(in_word) });
        }
        Ok(found)
    }
}
