//! Matrices of 8 x 8 elements that a warp loads or stores.
//!
//! Law: the lane that supplies the address of a row accesses that row.

use super::{addresses, read_bytes, write_bytes};
use crate::interpret::machine::{InterpretedRun, Stop};
use crate::interpret::touch::{AccessKind, Memory, Span};
use crate::interpret::warp::Warp;
use crate::program::Instruction;
use crate::program::WARP_LANES;
use crate::program::memory::Access;

/// Bytes of a row of a matrix.
const ROW: u32 = 16;

impl InterpretedRun<'_> {
    /// The lanes that supply the row addresses of `count` matrices, if they may proceed.
    fn rows(
        &mut self,
        warp: &Warp,
        place: usize,
        count: usize,
        access: &Access,
        addresses: &[i64; WARP_LANES],
        kind: AccessKind,
    ) -> Result<u32, Stop> {
        let whole = Access { bits: 32, count: ROW / 4, ..*access };
        let givers = ((1_u64 << (8 * count)) - 1) as u32;
        self.admit(warp, place, warp.mask & givers, &whole, (addresses, &[warp.rank; WARP_LANES]), kind)
    }

    pub(in crate::interpret) fn load_matrix(
        &mut self,
        warp: &mut Warp,
        place: usize,
        instruction: &Instruction,
        access: &Access,
        transposed: bool,
    ) -> Result<(), Stop> {
        let addresses = addresses(warp, instruction, access, false, &mut 0);
        let count = instruction.outputs.len();
        let admitted = self.rows(warp, place, count, access, &addresses, AccessKind::Read)?;
        for (matrix, output) in instruction.outputs.iter().enumerate() {
            let mut elements = [[0_u64; 8]; 8];
            for (row, elements) in elements.iter_mut().enumerate() {
                let giver = 8 * matrix + row;
                if admitted >> giver & 1 == 1 {
                    let memory = Memory { buffer: access.buffer, rank: warp.rank };
                    let bytes = self.bytes_of(Span { memory, address: addresses[giver], bytes: ROW.into() });
                    for (element, bytes) in elements.iter_mut().zip(bytes.chunks_exact(2)) {
                        *element = read_bytes(bytes);
                    }
                }
            }
            let at = |row: usize, column: usize| if transposed { elements[column][row] } else { elements[row][column] };
            warp.registers[output.index()] =
                std::array::from_fn(|lane| at(lane / 4, 2 * (lane % 4)) | at(lane / 4, 2 * (lane % 4) + 1) << 16);
        }
        Ok(())
    }

    pub(in crate::interpret) fn store_matrix(
        &mut self,
        warp: &Warp,
        place: usize,
        instruction: &Instruction,
        access: &Access,
        transposed: bool,
    ) -> Result<(), Stop> {
        let mut input = 0;
        let addresses = addresses(warp, instruction, access, false, &mut input);
        let count = instruction.inputs.len() - input;
        let admitted = self.rows(warp, place, count, access, &addresses, AccessKind::Write)?;
        for (matrix, register) in instruction.inputs[input..].iter().enumerate() {
            let values = &warp.registers[register.index()];
            // The element in a row and a column, from the values of the lanes.
            let at = |row: usize, column: usize| values[4 * row + column / 2] >> (16 * (column % 2)) & 0xffff;
            for row in 0..8 {
                let giver = 8 * matrix + row;
                if admitted >> giver & 1 == 1 {
                    let memory = Memory { buffer: access.buffer, rank: warp.rank };
                    let bytes = self.bytes_of(Span { memory, address: addresses[giver], bytes: ROW.into() });
                    for (column, bytes) in bytes.chunks_exact_mut(2).enumerate() {
                        write_bytes(bytes, if transposed { at(column, row) } else { at(row, column) });
                    }
                }
            }
        }
        Ok(())
    }
}
