//! wgmma: MMA of a warpgroup with operands in shared memory, or with A in registers.
//!
//! Law: as for any MMA, `D(v,m,n) = C(v,m,n) + sum over k of A(v,m,k) * B(v,n,k)`, k ascending. The
//! thread-value layout of the atom gives a thread everything that its warpgroup reads. So the part
//! of a tile for a thread is the operand itself, and its layout must be one that a matrix
//! descriptor can express ([`MatrixDescriptor::of_layout`]). A step along M, N or K advances the
//! start address of the descriptor.
//!
//! Accumulators stay in their registers, so D and C are one fragment, or there is no C.

use tilewright_layout::atoms::{
    AtomError, Major, MatrixDescriptor, MmaAtom, Operand, SwizzleMode, TiledMma, ValueType,
};
use tilewright_layout::symbolic::{Expr, Symbolic, Values};
use tilewright_layout::{Composed, Extent, Layout};

use super::Build;
use super::address::constant_term;
use super::bulk::mode_of;
use super::core::Slot;
use super::fragment::Fragment;
use super::tensor::{Cuttable, View};
use crate::element::Element;
use crate::error::Reason;
use crate::program::memory::Access;
use crate::program::operation::{OPERAND_REGISTERS, Operation};
use crate::program::register::{Register, Width};
use crate::program::wgmma::{Described, WgmmaOperands};

/// Threads of a warpgroup.
const GROUP: i64 = 128;

/// The operand types of a wgmma atom, with A in shared memory or in registers; None for other
/// atoms.
fn operands_of(atom: &MmaAtom, in_registers: bool) -> Option<WgmmaOperands> {
    let types = atom.types();
    let held = if in_registers { "_RS" } else { "_SS" };
    if !atom.name().starts_with("SM90_64x")
        || !atom.name().contains(held)
        || types.a != types.b
        || atom.name().contains("SATURATE")
    {
        return None;
    }
    if types.d != if matches!(types.a, ValueType::S8 | ValueType::U8) { ValueType::S32 } else { ValueType::F32 } {
        return None;
    }
    Some(match types.a {
        ValueType::S8 => WgmmaOperands::I8,
        ValueType::U8 => WgmmaOperands::U8,
        ValueType::F16 => WgmmaOperands::F16,
        ValueType::BF16 => WgmmaOperands::Bf16,
        ValueType::TF32 => WgmmaOperands::Tf32,
        ValueType::E4M3 => WgmmaOperands::E4M3,
        ValueType::E5M2 => WgmmaOperands::E5M2,
        _ => return None,
    })
}

/// Whether the element type is the one that an instruction reads.
fn holds(element: Element, wanted: ValueType) -> bool {
    matches!(
        (element, wanted),
        (Element::F16, ValueType::F16)
            | (Element::Bf16, ValueType::BF16)
            | (Element::F32, ValueType::TF32)
            | (Element::E4M3, ValueType::E4M3)
            | (Element::E5M2, ValueType::E5M2)
            | (Element::I8, ValueType::S8)
            | (Element::U8, ValueType::U8)
    )
}

/// An operand: the offset, in elements, for each instruction along its two modes.
struct GroupOperand<'k> {
    view: View<'k>,
    described: Described,
    starts: Vec<Expr>,
    /// The number of instructions along M or N, and along K.
    count: [usize; 2],
}

/// Operand A: a tile in shared memory, or each thread's rows in registers.
pub(super) enum WgmmaA<'v, 'k> {
    Tile(&'v View<'k>),
    Rows(&'v Fragment<'k>),
}

/// The largest argument of `wgmma.wait_group` (PTX ISA).
const MOST_GROUPS: u32 = 7;

impl Build {
    /// Multiplies `(M,K)` by a tile `(N,K)` in shared memory, and adds to a fragment `(V,M,N)`.
    pub(super) fn multiplied_by_groups<'k>(
        &'k self,
        mma: &TiledMma,
        [d, c]: [&Fragment<'k>; 2],
        a: WgmmaA<'_, 'k>,
        b: &View<'k>,
        adds: bool,
    ) -> Result<(), Reason> {
        let atom = mma.atom();
        let because =
            |because: &str| Reason::Instruction { name: atom.name().to_string(), because: because.to_string() };
        let Some(operands) = operands_of(atom, matches!(a, WgmmaA::Rows(_))) else {
            return Err(because(
                "wgmma multiplies tiles in shared memory with f32 accumulators, or i32 for integers: SM90_64xNxK_.._SS, or _RS where A is a fragment",
            ));
        };
        let sum = if operands.is_integer() { Element::I32 } else { Element::F32 };
        if d.element != sum {
            return Err(Reason::Elements { wanted: sum, given: d.element });
        }
        if d.cell != c.cell || d.start != c.start || d.layout != c.layout {
            return Err(because("its accumulators stay in their registers: C and D are one fragment"));
        }
        let mode =
            |fragment: &Fragment<'_>, mode: usize| fragment.layout.mode(mode).map_or(1, |mode| mode.size() as usize);
        let (tile, [m, k]) = match a {
            WgmmaA::Tile(view) => {
                let operand = self.operand(mma, view, Operand::A, operands)?;
                let count = operand.count;
                (Some(operand), count)
            }
            WgmmaA::Rows(rows) if holds(rows.element, atom.types().a) => (None, [mode(rows, 1), mode(rows, 2)]),
            WgmmaA::Rows(_) => return Err(because("the elements of A are of another type")),
        };
        let right = self.operand(mma, b, Operand::B, operands)?;
        let n = right.count[0];
        if [mode(d, 1), mode(d, 2)] != [m, n] || right.count[1] != k {
            return Err(Reason::Sizes {
                left: format!("the sums, {}", d.layout),
                left_size: format!("({},{})", mode(d, 1), mode(d, 2)),
                right: "the product of the operands".to_string(),
                right_size: format!("({m},{n}), over {k} and {} steps", right.count[1]),
            });
        }
        let first = self.core().team.as_ref().map_or(0, |team| team.first);
        if first % GROUP != 0 {
            return Err(because(
                "a whole warpgroup multiplies: its first warp has an index that is a multiple of four",
            ));
        }
        self.prepared(d)?;
        // The registers of A must also be written before the fence.
        let mut rows = Vec::new();
        if let WgmmaA::Rows(fragment) = a {
            for index in 0..m * k {
                rows.push(self.core().words_of(fragment, [index % m, index / m], OPERAND_REGISTERS)?);
            }
        }
        self.set_off((tile.as_ref(), &rows), &right, d, (operands, atom.shape()[1] as u32, adds), [m, n, k])
    }

    /// Issues all instructions of an MMA as one group. A is a tile, or registers by row and k-step.
    fn set_off<'k>(
        &'k self,
        (tile, rows): (Option<&GroupOperand<'k>>, &[Vec<Register>]),
        right: &GroupOperand<'k>,
        d: &Fragment<'k>,
        (operands, columns, adds): (WgmmaOperands, u32, bool),
        [m, n, k]: [usize; 3],
    ) -> Result<(), Reason> {
        self.core().effect(Operation::FenceRegisters, [], &[], None);
        for depth in 0..k {
            for column in 0..n {
                for row in 0..m {
                    let index = row + m * depth;
                    let (a, mut inputs) = match tile {
                        Some(tile) => {
                            let (described, address) = tile.at(self, index)?;
                            (Some(described), address.into_iter().collect())
                        }
                        None => (None, rows[index].clone()),
                    };
                    let (b, address) = right.at(self, column + n * depth)?;
                    let mut core = self.core();
                    let sums = core.words_of(d, [row, column], columns as usize / 2)?;
                    let widths = vec![Width::Bits32; sums.len()];
                    inputs.extend(address.into_iter().chain(sums));
                    // Without an addend, the first k-step overwrites the accumulators.
                    let adds = adds || depth > 0;
                    let operation = Operation::Wgmma { operands, columns, a, b, adds };
                    let results = core.effect(operation, inputs, &widths, None);
                    core.set_words_of(d, [row, column], &results)?;
                    core.sums.extend(results);
                }
            }
        }
        self.core().effect(Operation::CommitMultiply, [], &[], None);
        Ok(())
    }

    /// Copies accumulators to separate registers, unless they already have them: results of an MMA
    /// and loop-carried values do.
    fn prepared(&self, d: &Fragment<'_>) -> Result<(), Reason> {
        let slots = d.slots()?;
        let mut core = self.core();
        let mut foreign = Vec::new();
        for slot in slots {
            let register = core.element_register(d.cell, slot)?;
            if !core.sums.contains(&register) {
                foreign.push((slot, register));
            }
        }
        if foreign.is_empty() {
            return Ok(());
        }
        let widths = vec![Width::Bits32; foreign.len()];
        let inputs: Vec<Register> = foreign.iter().map(|(_, register)| *register).collect();
        let own = core.effect(Operation::Move, inputs, &widths, None);
        for ((slot, _), register) in foreign.into_iter().zip(own) {
            core.cells[d.cell].slots[slot] = Slot::Whole(register);
            core.sums.insert(register);
        }
        Ok(())
    }

    fn operand<'k>(
        &'k self,
        mma: &TiledMma,
        tile: &View<'k>,
        operand: Operand,
        operands: WgmmaOperands,
    ) -> Result<GroupOperand<'k>, Reason> {
        let refuse = |because: &str| Reason::Width {
            tensor: tile.text(),
            atom: mma.atom().name().to_string(),
            elements: operands.depth(),
            because: because.to_string(),
        };
        if !tile.is_shared() {
            return Err(refuse("it is not in shared memory"));
        }
        tile.own_block("an operand")?;
        let bits = i64::from(tile.element.bits());
        let types = mma.atom().types();
        let wanted = if operand == Operand::A { types.a } else { types.b };
        if i64::from(operands.bytes()) * 8 != bits || !holds(tile.element, wanted) {
            return Err(refuse("its elements are of another type"));
        }
        tile.shown_inside()?;
        let part = match tile.own_part() {
            None => tile.partition_of(mma, operand, None)?,
            Some(_) => tile.clone(),
        };
        // An index along K keeps values and rows: one k-step.
        let mode = |number: usize| part.layout.mode(number).unwrap_or(Layout::from(&Layout::unit()));
        let (values, rows, steps) = (mode(0), mode(1), mode(2));
        let values = values.numbers(&Values::new())?;
        let known = |layout: &Layout<Expr>| Ok::<_, Reason>(layout.numbers(&Values::new())?.size() as usize);
        let count = [known(&rows)?, known(&steps)?];
        let mode = mode_of(tile, bits).ok_or_else(|| refuse("its swizzle is none of the instruction"))?;
        let described = described(&values, mode, bits, operands, tile.access(None, 0, 64, 2)).map_err(Reason::from)?;
        let period = mode.period() * 8 / bits;
        let line = 16 * mode.units() * 8 / bits;
        let mut starts = Vec::new();
        for index in 0..count[0] * count[1] {
            let start = part.offset_of(index * values.size() as usize)?;
            // The start must be within the first line of a swizzle pattern, so that the lines of
            // the operand are those of the pattern.
            let known = constant_term(&start).unwrap_or(0);
            let moving = start.minus(&Expr::from(known)).ok_or_else(|| refuse("an offset is too large"))?;
            let unit = Expr::from(if mode == SwizzleMode::None { 128 / bits } else { period });
            let inside = if mode == SwizzleMode::None { known % (128 / bits) == 0 } else { known % period < line };
            if !unit.divides(&moving).proved() || !inside {
                return Err(refuse("it does not begin where its swizzle does"));
            }
            starts.push(start);
        }
        Ok(GroupOperand { view: View { map: None, ..tile.clone() }, described, starts, count })
    }

    /// Waits until at most `groups` of this warp's wgmma groups are in flight: each [`Build::mma`]
    /// with such an atom is one group (`wgmma.wait_group`). Before that, accumulators may not be
    /// read, and operands may not be overwritten. The hardware keeps at most 7 in flight; a kernel
    /// that leaves more is refused.
    #[track_caller]
    pub fn wait_mma(&self, groups: u32) {
        let (mut core, location) = self.begin("wait_mma");
        if groups > MOST_GROUPS {
            drop(core);
            let because = format!("a wait leaves from 0 to {MOST_GROUPS} wgmma groups in flight");
            let refusal = Reason::Instruction { name: format!("wait_mma({groups})"), because };
            return self.complain(refusal.at("wait_mma", location));
        }
        core.effect(Operation::WaitMultiply(groups), [], &[], None);
    }
}

/// The descriptor fields of a layout `(mn, k)`, K-major or MN-major.
fn described(
    values: &Layout,
    mode: SwizzleMode,
    bits: i64,
    operands: WgmmaOperands,
    access: Access,
) -> Result<Described, AtomError> {
    let layout = Composed::new(mode.swizzle(bits)?, 0, values.clone())?;
    let of = |major| MatrixDescriptor::of_layout(&layout, major, bits, 0).map(|found| (major, found));
    let found = match of(Major::K) {
        Err(_) if operands.bytes() == 2 => of(Major::MN).or_else(|_| of(Major::K)),
        found => found,
    };
    let (major, found) = found?;
    Ok(Described { access, major, mode, leading: found.leading() as u32, stride: found.stride() as u32 })
}

impl GroupOperand<'_> {
    /// The descriptor of an instruction, and the register with its address.
    fn at(&self, build: &Build, index: usize) -> Result<(Described, Option<Register>), Reason> {
        let (address, offset) = self.view.address(&mut build.core(), &self.starts[index])?;
        let access = self.view.access(address, offset, 64, 2);
        Ok((Described { access, ..self.described }, address))
    }
}
