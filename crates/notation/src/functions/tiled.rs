//! Tiled copies and tiled MMAs as values of the language.
//!
//! Law: a tiled MMA is the list of the name of its atom, the layout of its atoms and its
//! permutation. A tiled copy is the list of the name of its atom, the bits of an element, the
//! thread-value layout and the shape of the tile. A tiled copy for an operand of a tiled MMA is the
//! list of the name, the MMA and the index of the operand. A thread of a tiled copy or MMA is the
//! list of that and the thread's index. All are parsed again from their printed form in each call.

use tilewright_layout::atoms::{AtomError, CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, Tiler};

use super::partitions::all;
use super::{Function, function};
use crate::arguments::{Arguments, Fault};
use crate::reading::single;
use crate::value::{Value, list_of};

/// A tiled instruction.
pub(super) enum Tiled {
    Mma(Box<TiledMma>),
    Copy(Box<TiledCopy>),
}

/// The word that names an atom: a name to which no value is bound.
fn atom_word(a: &Arguments<'_>, argument: usize) -> Result<String, Fault> {
    a.wanted(argument, a.word(argument), "the name of an instruction, such as SM80_16x8x16_F32F16F16F32_TN")
}

/// A tiler without parameters.
fn known_tiler(a: &Arguments<'_>, argument: usize) -> Result<Tiler, Fault> {
    match a.tiler(argument)?.integer() {
        Some(tiler) => Ok(tiler.clone()),
        None => a.kind(argument, "a tiler whose numbers are known"),
    }
}

/// The tiled MMA of an atom, the layout of its atoms and a permutation.
fn mma(a: &Arguments<'_>) -> Result<TiledMma, Fault> {
    let atom = MmaAtom::named(&atom_word(a, 0)?)?;
    let layout = if a.len() > 1 { a.integer_layout(1)?.into_owned() } else { Layout::unit() };
    let permutation = if a.len() > 2 { known_tiler(a, 2)? } else { Tiler::Keep };
    Ok(TiledMma::new(atom, &layout, &permutation)?)
}

/// The operands for which a tiled copy can be made, by index.
const OPERANDS: [Operand; 3] = [Operand::A, Operand::B, Operand::C];

/// The tiled copy of an atom for an operand of a tiled MMA, given by its index.
fn copy_of_operand(a: &Arguments<'_>) -> Result<TiledCopy, Fault> {
    let atom = CopyAtom::named(&atom_word(a, 0)?)?;
    let Some(Value::List(parts)) = a.get(1) else { return a.kind(1, "a tiled product") };
    let Tiled::Mma(mma) = tiled(a, parts)? else { return a.kind(1, "a tiled product") };
    let operand = usize::try_from(a.int(2)?).ok().and_then(|number| OPERANDS.get(number));
    match operand {
        Some(operand) => Ok(TiledCopy::of_operand(atom, &mma, *operand)?),
        None => a.kind(2, "0, 1 or 2, for A, B or C"),
    }
}

/// The tiled copy of an atom, the bits of an element, a thread-value layout and the shape of the
/// tile.
fn copy(a: &Arguments<'_>) -> Result<TiledCopy, Fault> {
    let atom = CopyAtom::named(&atom_word(a, 0)?)?;
    Ok(TiledCopy::of_thread_values(atom, a.int(1)?, a.integer_layout(2)?.into_owned(), known_tiler(a, 3)?)?)
}

/// The tiled instruction that a list describes.
fn tiled(a: &Arguments<'_>, parts: &[Value]) -> Result<Tiled, Fault> {
    let own = Arguments { function: a.function, values: parts.into() };
    match parts.len() {
        3 if matches!(parts.get(1), Some(Value::List(_))) => Ok(Tiled::Copy(Box::new(copy_of_operand(&own)?))),
        3 => Ok(Tiled::Mma(Box::new(mma(&own)?))),
        4 => Ok(Tiled::Copy(Box::new(copy(&own)?))),
        _ => a.kind(0, "a tiled copy or a tiled product"),
    }
}

/// The tiled instruction that the first argument describes, and the thread's index if it is that of
/// one thread.
pub(super) fn instruction(a: &Arguments<'_>) -> Result<(Tiled, Option<Expr>), Fault> {
    match a.get(0) {
        Some(Value::List(parts)) => match parts.as_slice() {
            [Value::List(parts), thread] => Ok((tiled(a, parts)?, single(thread))),
            parts => Ok((tiled(a, parts)?, None)),
        },
        _ => a.kind(0, "a tiled copy or a tiled product, or a thread of one"),
    }
}

fn get_slice(a: Arguments<'_>) -> Result<Value, Fault> {
    let (tiled, None) = instruction(&a)? else { return a.kind(0, "a tiled copy or a tiled product") };
    let Some(thread) = a.get(1).and_then(single) else { return a.kind(1, "the number of a thread") };
    match tiled {
        Tiled::Mma(mma) => mma.get_slice(&thread).map(|_| ())?,
        Tiled::Copy(copy) => copy.get_slice(&thread).map(|_| ())?,
    }
    Ok(list_of(a.values.iter().cloned().collect())?)
}

fn make_tiled_mma(a: Arguments<'_>) -> Result<Value, Fault> {
    let mma = mma(&a)?;
    let permutation = a.get(2).cloned().unwrap_or(all());
    Ok(list_of(vec![a.get(0).cloned().unwrap_or(Value::Bool(false)), mma.atom_layout().clone().into(), permutation])?)
}

fn make_tiled_copy_tv(a: Arguments<'_>) -> Result<Value, Fault> {
    let atom = CopyAtom::named(&atom_word(&a, 0)?)?;
    let bits = a.int(1)?;
    let (tile, owned) = tilewright_layout::make_layout_tv(&*a.integer_layout(2)?, &*a.integer_layout(3)?)?;
    TiledCopy::of_thread_values(atom, bits, owned.clone(), Tiler::from_shape(&tile)?)?;
    Ok(list_of(vec![a.get(0).cloned().unwrap_or(Value::Bool(false)), bits.into(), owned.into(), tile.into()])?)
}

/// The copy of an operand of a tiled MMA: its atom, the MMA and the operand's index.
fn make_tiled_copy(a: Arguments<'_>, operand: i64) -> Result<Value, Fault> {
    let mut parts: Vec<Value> = a.values.iter().cloned().collect();
    parts.push(operand.into());
    copy_of_operand(&Arguments { function: a.function, values: (&parts).into() })?;
    Ok(list_of(parts)?)
}

/// The thread-value layout of the tile.
fn thread_values(a: &Arguments<'_>, operand: Result<Operand, CopyEnd>) -> Result<Value, Fault> {
    match (instruction(a)?.0, operand) {
        (Tiled::Mma(mma), Ok(operand)) => Ok(mma.thread_values(operand)?.into()),
        (Tiled::Copy(copy), Err(end)) => Ok(copy.thread_values(end)?.into()),
        (_, Ok(_)) => a.kind(0, "a tiled product"),
        (_, Err(_)) => a.kind(0, "a tiled copy"),
    }
}

impl From<AtomError> for Fault {
    fn from(error: AtomError) -> Fault {
        match error {
            AtomError::Layout(error) => error.into(),
            error => Fault::Atom(error.in_words()),
        }
    }
}

pub(super) const PARTS: &[Function] = &[
    function("make_tiled_mma(atom, atom_layout_mnk, permutation_mnk)", "an instruction repeated over threads and values; UniversalFMA<F32,F32,F32,F32> is written UniversalFMA_F32_F32_F32_F32")
        .example("make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN, (2,2,1))", "(SM80_16x8x16_F32F16F16F32_TN,(2,2,1):(1,2,0),_)")
        .run(1..=3, make_tiled_mma),
    function("make_tiled_copy_tv(atom, bits, thr_layout, val_layout)", "a copy of elements of so many bits repeated over threads and values; <uint128_t> is written _uint128_t")
        .example("make_tiled_copy_tv(UniversalCopy_uint64_t, 16, (32,8):(8,1), (1,4))", "(UniversalCopy_uint64_t,16,((8,32),4):((128,1),32),(32,32))")
        .run(4..=4, make_tiled_copy_tv),
    function("make_tiled_copy_A(atom, mma)", "a tiled copy with the thread-value layout of operand A of a tiled product")
        .example("make_tiled_copy_A(SM75_U32x4_LDSM_N, make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN))", "(SM75_U32x4_LDSM_N,(SM80_16x8x16_F32F16F16F32_TN,(1,1,1):(0,0,0),_),0)")
        .run(2..=2, |a| make_tiled_copy(a, 0)),
    function("make_tiled_copy_B(atom, mma)", "a tiled copy with the thread-value layout of operand B of a tiled product")
        .example("make_tiled_copy_B(SM75_U32x2_LDSM_N, make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN))", "(SM75_U32x2_LDSM_N,(SM80_16x8x16_F32F16F16F32_TN,(1,1,1):(0,0,0),_),1)")
        .run(2..=2, |a| make_tiled_copy(a, 1)),
    function("make_tiled_copy_C(atom, mma)", "a tiled copy with the thread-value layout of the accumulator C of a tiled product")
        .example("make_tiled_copy_C(UniversalCopy_uint32_t, make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN))", "(UniversalCopy_uint32_t,(SM80_16x8x16_F32F16F16F32_TN,(1,1,1):(0,0,0),_),2)")
        .run(2..=2, |a| make_tiled_copy(a, 2)),
    function("get_slice(tiled, thread)", "a thread of a tiled copy or product")
        .example("get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5)", "((SM80_16x8x16_F32F16F16F32_TN,(1,1,1):(0,0,0),_),5)")
        .run(2..=2, get_slice),
    function("layoutA_TV(mma)", "the thread-value layout of operand A: from (thread, value) to the index in its tile")
        .example("layoutA_TV(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN))", "((4,8),((2,2,2),(1,1))):((32,1),((16,8,128),(0,0)))")
        .run(1..=1, |a| thread_values(&a, Ok(Operand::A))),
    function("layoutB_TV(mma)", "the thread-value layout of operand B: from (thread, value) to the index in its tile")
        .example("layoutB_TV(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN))", "((4,8),((2,2),(1,1))):((16,1),((8,64),(0,0)))")
        .run(1..=1, |a| thread_values(&a, Ok(Operand::B))),
    function("layoutC_TV(mma)", "the thread-value layout of the accumulator C: from (thread, value) to the index in its tile")
        .example("layoutC_TV(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN))", "((4,8),((2,2),(1,1))):((32,1),((16,8),(0,0)))")
        .run(1..=1, |a| thread_values(&a, Ok(Operand::C))),
    function("layoutS_TV(copy)", "the source layout of a tiled copy: from (thread, value) to the index in the tile")
        .example("layoutS_TV(make_tiled_copy_tv(UniversalCopy_uint64_t, 16, (32,8):(8,1), (1,4)))", "((1,(8,32)),(4,1)):((0,(128,1)),(32,0))")
        .run(1..=1, |a| thread_values(&a, Err(CopyEnd::Source))),
    function("layoutD_TV(copy)", "the destination layout of a tiled copy: from (thread, value) to the index in the tile")
        .example("layoutD_TV(make_tiled_copy_tv(UniversalCopy_uint64_t, 16, (32,8):(8,1), (1,4)))", "((1,(8,32)),(4,1)):((0,(128,1)),(32,0))")
        .run(1..=1, |a| thread_values(&a, Err(CopyEnd::Destination))),
];
