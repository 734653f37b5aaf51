//! Tiles of blocks and parts of threads: local tiles, tiled copies and products, and what a thread
//! has of an operand.
//!
//! Law: a part is a map with the offset at which it begins, `part(c) = A(where c lies in A)`, for
//! the tile or the thread that was asked for. So a part of a layout that begins elsewhere than at 0
//! is the composed layout `1:1 o offset o part`; of a layout of coordinates, which has no such
//! form, it is the list of part and offset.
//!
//! A tiled product is the list of the name of its atom, the layout of its atoms and its
//! permutation; a tiled copy that of the name of its atom, the bits of an element, the thread-value
//! layout and the shape of the tile; a thread of one is the list of it and the number. They are
//! read anew each time, from what is printed.

use tilewright_atoms::{AtomError, CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_layout::symbolic::{Expr, Symbolic};
use tilewright_layout::{AnyCoord, AnyLayout, AnyTree, Extent, Layout, LayoutError, Tiler, Tree};

use super::{Function, find};
use crate::arguments::{Arguments, Fault, is_map};
use crate::reading::{coordinate, single};
use crate::value::{Value, list_of, tuple_of};

const PARTS: &str = "Tiles of blocks and parts of threads";

/// What a tiled instruction is.
enum Tiled {
    Mma(Box<TiledMma>),
    Copy(Box<TiledCopy>),
}

/// Another function of the language, of these values; what it refuses is about the layout that is
/// the last argument.
fn call(a: &Arguments<'_>, name: &str, values: &[Value]) -> Result<Value, Fault> {
    let Some(function) = find(name) else { return a.kind(0, "a function of the language") };
    (function.run)(Arguments { function: function.name, values }).map_err(|fault| match fault {
        Fault::At(_, error) => Fault::Refused(error),
        Fault::Kind { wanted, .. } => Fault::Kind { argument: a.len().saturating_sub(1), wanted },
        fault => fault,
    })
}

/// The name of an atom as the table has it, from one that is a word:
/// `SM80_CP_ASYNC_CACHEALWAYS_uint128_t`, `UniversalFMA_F32_F32_F32_F32`.
fn atom_name(word: &str) -> String {
    if let Some(types) = word.strip_prefix("UniversalFMA_") {
        return format!("UniversalFMA<{}>", types.replace('_', ","));
    }
    match word.rsplit_once("_uint") {
        Some((stem, bits)) if bits.ends_with("_t") => format!("{stem}<uint{bits}>"),
        _ => word.to_owned(),
    }
}

/// The word that names an atom: a name that nothing is bound to.
fn atom_word(a: &Arguments<'_>, argument: usize) -> Result<String, Fault> {
    const WANTED: &str = "the name of an instruction, such as SM80_16x8x16_F32F16F16F32_TN";
    let Some(Value::Tree(AnyTree::Launch(name))) = a.get(argument) else { return a.kind(argument, WANTED) };
    let [name] = name.leaves() else { return a.kind(argument, WANTED) };
    match name.parameters().as_slice() {
        [parameter] if Expr::from(parameter.clone()) == *name => match parameter.name() {
            Some(word) => Ok(atom_name(word)),
            None => a.kind(argument, WANTED),
        },
        _ => a.kind(argument, WANTED),
    }
}

/// A tiler of known numbers.
fn known_tiler(a: &Arguments<'_>, argument: usize) -> Result<Tiler, Fault> {
    match a.tiler(argument)?.integer() {
        Some(tiler) => Ok(tiler.clone()),
        None => a.kind(argument, "a tiler whose numbers are known"),
    }
}

/// The tiled product of an atom, the layout of its atoms and a permutation.
fn mma(a: &Arguments<'_>) -> Result<TiledMma, Fault> {
    let atom = MmaAtom::named(&atom_word(a, 0)?)?;
    let layout = if a.len() > 1 { a.integer_layout(1)?.into_owned() } else { Layout::unit() };
    let permutation = if a.len() > 2 { known_tiler(a, 2)? } else { Tiler::Keep };
    Ok(TiledMma::new(atom, &layout, &permutation)?)
}

/// The tiled copy of an atom, the bits of an element, a thread-value layout and the shape of the
/// tile.
fn copy(a: &Arguments<'_>) -> Result<TiledCopy, Fault> {
    let atom = CopyAtom::named(&atom_word(a, 0)?)?;
    Ok(TiledCopy::of_thread_values(atom, a.int(1)?, a.integer_layout(2)?.into_owned(), known_tiler(a, 3)?)?)
}

/// The tiled instruction that a list is.
fn tiled(a: &Arguments<'_>, parts: &[Value]) -> Result<Tiled, Fault> {
    let own = Arguments { function: a.function, values: parts };
    match parts.len() {
        3 => Ok(Tiled::Mma(Box::new(mma(&own)?))),
        4 => Ok(Tiled::Copy(Box::new(copy(&own)?))),
        _ => a.kind(0, "a tiled copy or a tiled product"),
    }
}

/// The tiled instruction that the first argument is, and the number of the thread where it is one
/// of a thread.
fn instruction(a: &Arguments<'_>) -> Result<(Tiled, Option<Expr>), Fault> {
    match a.get(0) {
        Some(Value::List(parts)) => match parts.as_slice() {
            [Value::List(parts), thread] => Ok((tiled(a, parts)?, single(thread))),
            parts => Ok((tiled(a, parts)?, None)),
        },
        _ => a.kind(0, "a tiled copy or a tiled product, or a thread of one"),
    }
}

/// How a value nests: a tuple of ones.
fn nesting(a: &Arguments<'_>, value: &Value) -> Result<Tree<i64>, Fault> {
    let profile = Arguments { function: a.function, values: std::slice::from_ref(value) }.profile(0)?;
    let ones = (0..profile.leaves()).map(|_| 1);
    Ok(Tree::new(profile, ones)?)
}

/// `((a,b,..),(c,d,..))` as `(a,b,..,c,d,..)`.
fn side_by_side(a: &Arguments<'_>, value: Value) -> Result<Value, Fault> {
    let modes: Vec<Tree<i64>> = nesting(a, &value)?.modes().flat_map(|mode| mode.modes().collect::<Vec<_>>()).collect();
    call(a, "unflatten", &[value, Tree::tuple(modes.iter())?.into()])
}

/// The part of a map at a coordinate, with the offset at which it begins.
fn part_at(a: &Arguments<'_>, map: Value, coord: Value) -> Result<Value, Fault> {
    if matches!(&map, Value::Layout(layout) if layout.is_composed()) {
        return call(a, "slice", &[map, coord]);
    }
    let both = call(a, "slice_and_offset", &[map, coord])?;
    let Value::List(parts) = both else { return Ok(both) };
    match parts.as_slice() {
        [part, offset] if single(offset).is_some_and(|offset| offset.known() == Some(0)) => Ok(part.clone()),
        [part @ Value::Layout(AnyLayout::Integer(_) | AnyLayout::Launch(_)), offset] => {
            let values = [Layout::mode_of(1, 1)?.into(), offset.clone(), part.clone()];
            super::composed(Arguments { function: a.function, values: &values }, 1, 2)
        }
        _ => Ok(list_of(parts)?),
    }
}

/// `_`
fn all() -> Value {
    Value::Coord(AnyCoord::open())
}

/// The values in a tuple, a list or a tiler, one for each mode.
fn items(a: &Arguments<'_>, argument: usize) -> Result<Vec<Value>, Fault> {
    let value = a.get(argument).cloned().unwrap_or(Value::Bool(false));
    if let Value::List(values) = value {
        return Ok(values);
    }
    if let Value::Tiler(tiler) = &value {
        return Ok((0..tiler.rank()).filter_map(|mode| tiler.mode(mode)).map(Value::from).collect());
    }
    let Some(coord) = coordinate(&value) else {
        return a.kind(argument, "a tuple with an item for each mode");
    };
    let coord = coord.launch();
    if coord.is_leaf() {
        return Ok(vec![value]);
    }
    Ok(coord.modes().map(Value::from).collect())
}

/// The items whose place in the projection is not `_`.
fn projected(items: Vec<Value>, projection: &[Value]) -> Vec<Value> {
    let kept = |place: usize| projection.get(place).is_none_or(|item| single(item).is_some());
    items.into_iter().enumerate().filter(|(place, _)| kept(*place)).map(|(_, item)| item).collect()
}

fn local_tile(a: Arguments<'_>) -> Result<Value, Fault> {
    let (mut tiler, mut coord) = (items(&a, 1)?, items(&a, 2)?);
    if a.len() > 3 {
        let projection = items(&a, 3)?;
        (tiler, coord) = (projected(tiler, &projection), projected(coord, &projection));
    }
    let map = a.get(0).filter(|map| is_map(map)).cloned();
    let Some(map) = map else { return a.kind(0, "a layout") };
    let tiled = call(&a, "zipped_divide", &[map, tuple_of(tiler, true)?])?;
    let ranks: Vec<usize> = nesting(&a, &tiled)?.modes().map(|mode| mode.rank()).collect();
    let [tile, rests] = ranks.as_slice() else { return a.kind(0, "a layout with a mode for each tile") };
    if coord.len() > *rests {
        let (expected, found) = (*rests, coord.len());
        return Err(Fault::At(2, LayoutError::Rank { op: a.function, path: [].into(), expected, found }));
    }
    // Modes that the coordinate does not name stay open.
    coord.resize(*rests, all());
    let side = side_by_side(&a, tiled)?;
    let tile = vec![all(); *tile];
    part_at(&a, side, tuple_of(tile.into_iter().chain(coord).collect(), true)?)
}

/// What all threads have of an operand of a tiled product: `((thread),(values))`.
fn thrfrg(a: &Arguments<'_>, mma: &TiledMma, operand: Operand, map: Value) -> Result<Value, Fault> {
    let tilers = mma.tilers::<i64>(operand)?;
    let ordered = call(a, "logical_divide", &[map, tilers.order.into()])?;
    let atoms = call(a, "zipped_divide", &[ordered, tilers.atom.into()])?;
    let held = call(a, "composition", &[atoms, tilers.held.into()])?;
    call(a, "zipped_divide", &[held, tilers.dealt.into()])
}

/// What a thread has of an operand, or all have where none is named.
fn mma_part(a: &Arguments<'_>, operand: Operand) -> Result<Value, Fault> {
    let (Tiled::Mma(mma), thread) = instruction(a)? else { return a.kind(0, "a tiled product, or a thread of one") };
    let map = operand_of(a)?;
    let parts = thrfrg(a, &mma, operand, map)?;
    let Some(thread) = thread else { return Ok(parts) };
    let number = mma.thread_coordinate(&thread)?;
    let at = |mode: usize| Tree::leaf(number.leaves().get(mode).cloned().unwrap_or(Expr::from(0)));
    let [first, second] = operand.modes().map(|mode| at(mode + 1));
    let place = Tree::tuple([&at(0), &Tree::tuple([&first, &second])?])?;
    let values = nesting(a, &parts)?.modes().nth(1);
    let rests = values.and_then(|values| values.modes().nth(1)).map_or(0, |rests| rests.rank());
    let inner = tuple_of(vec![all(), tuple_of(vec![all(); rests], true)?], true)?;
    let part = part_at(a, parts, tuple_of(vec![place.into(), inner], true)?)?;
    flat_part(a, part)
}

/// `((v,(r,s)))` as `(v,r,s)`: the values of an atom, then the atoms along each mode.
fn flat_part(a: &Arguments<'_>, part: Value) -> Result<Value, Fault> {
    if let Value::List(parts) = part {
        let [layout, offset] = parts.as_slice() else { return Ok(list_of(parts)?) };
        return Ok(list_of(vec![flat_part(a, layout.clone())?, offset.clone()])?);
    }
    let mut tree = nesting(a, &part)?;
    while let (1, false, Some(only)) = (tree.rank(), tree.is_leaf(), tree.mode(0)) {
        tree = only;
    }
    let modes = tree.modes().enumerate();
    let modes: Vec<Tree<i64>> =
        modes.flat_map(|(at, mode)| if at == 0 { vec![mode] } else { mode.modes().collect() }).collect();
    call(a, "unflatten", &[part, Tree::tuple(modes.iter())?.into()])
}

/// What a thread has of what a tiled copy reads or writes, or all have where none is named.
fn copy_part(a: &Arguments<'_>, end: CopyEnd) -> Result<Value, Fault> {
    let (Tiled::Copy(copy), thread) = instruction(a)? else { return a.kind(0, "a tiled copy, or a thread of one") };
    let tilers = copy.tilers::<i64>(end)?;
    let tiles = call(a, "zipped_divide", &[operand_of(a)?, tilers.tile.into()])?;
    let parts = side_by_side(a, call(a, "composition", &[tiles, tilers.held.into()])?)?;
    let Some(thread) = thread else { return Ok(parts) };
    copy.get_slice(&thread)?;
    let open = vec![all(); nesting(a, &parts)?.rank().saturating_sub(1)];
    part_at(a, parts, tuple_of([thread.into()].into_iter().chain(open).collect(), true)?)
}

/// The layout that is partitioned.
fn operand_of(a: &Arguments<'_>) -> Result<Value, Fault> {
    match a.get(1).filter(|map| is_map(map)) {
        Some(map) => Ok(map.clone()),
        None => a.kind(1, "a layout"),
    }
}

/// A fragment with the modes of a part.
fn fragment(a: &Arguments<'_>, part: Value) -> Result<Value, Fault> {
    let part = match part {
        Value::List(parts) => parts.first().cloned().unwrap_or(Value::Bool(false)),
        part => part,
    };
    call(a, "make_fragment_like", &[part])
}

fn get_slice(a: Arguments<'_>) -> Result<Value, Fault> {
    let (tiled, None) = instruction(&a)? else { return a.kind(0, "a tiled copy or a tiled product") };
    let Some(thread) = a.get(1).and_then(single) else { return a.kind(1, "the number of a thread") };
    match tiled {
        Tiled::Mma(mma) => mma.get_slice(&thread).map(|_| ())?,
        Tiled::Copy(copy) => copy.get_slice(&thread).map(|_| ())?,
    }
    Ok(list_of(a.values.to_vec())?)
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

/// Who holds what of the tile, by thread and value.
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
            error => Fault::Atom(error),
        }
    }
}

/// A row of the table.
const fn row(
    name: &'static str,
    signature: &'static str,
    summary: &'static str,
    (example, result): (&'static str, &'static str),
    (least, most): (usize, usize),
    run: fn(Arguments<'_>) -> Result<Value, Fault>,
) -> Function {
    Function { name, signature, summary, example, result, section: PARTS, least, most, run }
}

pub(super) const FUNCTIONS: &[Function] = &[
    row(
        "local_tile",
        "local_tile(A, tiler, coord, proj)",
        "the tile of A at a coordinate, (tile modes, modes left open by _); proj picks the modes of tiler and coord that A has",
        ("local_tile((128,64):(64,1), (32,16,8), (1,0,_), proj=(1,None,1))", "1:1 o 2048 o (32,8,8):(64,1,8)"),
        (3, 4),
        local_tile,
    ),
    row(
        "make_tiled_mma",
        "make_tiled_mma(atom, atom_layout_mnk, permutation_mnk)",
        "an instruction repeated over threads and values; UniversalFMA<F32,F32,F32,F32> is written UniversalFMA_F32_F32_F32_F32",
        ("make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN, (2,2,1))", "(SM80_16x8x16_F32F16F16F32_TN,(2,2,1):(1,2,0),_)"),
        (1, 3),
        make_tiled_mma,
    ),
    row(
        "make_tiled_copy_tv",
        "make_tiled_copy_tv(atom, bits, thr_layout, val_layout)",
        "a copy of elements of so many bits repeated over threads and values; <uint128_t> is written _uint128_t",
        (
            "make_tiled_copy_tv(UniversalCopy_uint64_t, 16, (32,8):(8,1), (1,4))",
            "(UniversalCopy_uint64_t,16,((8,32),4):((128,1),32),(32,32))",
        ),
        (4, 4),
        make_tiled_copy_tv,
    ),
    row(
        "get_slice",
        "get_slice(tiled, thread)",
        "a thread of a tiled copy or product",
        (
            "get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5)",
            "((SM80_16x8x16_F32F16F16F32_TN,(1,1,1):(0,0,0),_),5)",
        ),
        (2, 2),
        get_slice,
    ),
    row(
        "partition_A",
        "partition_A(tiled, A)",
        "what a thread has of the first factor, (values, atoms along M, along K); of the tiled product itself, what all have",
        (
            "partition_A(get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5), (32,32):(32,1))",
            "1:1 o 34 o ((2,2,2),2,2):((1,256,8),512,16)",
        ),
        (2, 2),
        |a| mma_part(&a, Operand::A),
    ),
    row(
        "partition_B",
        "partition_B(tiled, A)",
        "what a thread has of the second factor, (values, atoms along N, along K); of the tiled product itself, what all have",
        (
            "partition_B(get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5), (32,32):(32,1))",
            "1:1 o 34 o ((2,2),4,2):((1,8),256,16)",
        ),
        (2, 2),
        |a| mma_part(&a, Operand::B),
    ),
    row(
        "partition_C",
        "partition_C(tiled, A)",
        "what a thread has of the sum, (values, atoms along M, along N); of the tiled product itself, what all have",
        (
            "partition_C(get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5), (32,32):(32,1))",
            "1:1 o 34 o ((2,2),2,4):((1,256),512,8)",
        ),
        (2, 2),
        |a| mma_part(&a, Operand::C),
    ),
    row(
        "partition_S",
        "partition_S(tiled, A)",
        "what a thread reads, (values, tiles along each mode); of the tiled copy itself, what all read",
        (
            "partition_S(get_slice(make_tiled_copy_tv(UniversalCopy_uint64_t, 16, (8,8):(8,1), (1,4)), 9), (16,64):(64,1))",
            "1:1 o 68 o ((4,1),2,2):((1,0),512,32)",
        ),
        (2, 2),
        |a| copy_part(&a, CopyEnd::Source),
    ),
    row(
        "partition_D",
        "partition_D(tiled, A)",
        "what a thread writes, (values, tiles along each mode); of the tiled copy itself, what all write",
        (
            "partition_D(get_slice(make_tiled_copy_tv(UniversalCopy_uint64_t, 16, (8,8):(8,1), (1,4)), 9), (16,64):(1,16))",
            "1:1 o 65 o ((4,1),2,2):((16,0),8,512)",
        ),
        (2, 2),
        |a| copy_part(&a, CopyEnd::Destination),
    ),
    row(
        "make_fragment_A",
        "make_fragment_A(tiled, A)",
        "registers for what a thread has of the first factor",
        (
            "make_fragment_A(get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5), (32,32):(32,1))",
            "((2,2,2),2,2):((1,2,4),16,8)",
        ),
        (2, 2),
        |a| fragment(&a, mma_part(&a, Operand::A)?),
    ),
    row(
        "make_fragment_B",
        "make_fragment_B(tiled, A)",
        "registers for what a thread has of the second factor",
        (
            "make_fragment_B(get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5), (32,32):(32,1))",
            "((2,2),4,2):((1,2),8,4)",
        ),
        (2, 2),
        |a| fragment(&a, mma_part(&a, Operand::B)?),
    ),
    row(
        "make_fragment_C",
        "make_fragment_C(tiled, A)",
        "registers for what a thread has of the sum",
        (
            "make_fragment_C(get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5), (32,32):(32,1))",
            "((2,2),2,4):((1,2),16,4)",
        ),
        (2, 2),
        |a| fragment(&a, mma_part(&a, Operand::C)?),
    ),
    row(
        "layoutA_TV",
        "layoutA_TV(mma)",
        "who holds what of the first factor's tile: (thread, value) to the index in the tile",
        (
            "layoutA_TV(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN))",
            "((4,8),((2,2,2),(1,1))):((32,1),((16,8,128),(0,0)))",
        ),
        (1, 1),
        |a| thread_values(&a, Ok(Operand::A)),
    ),
    row(
        "layoutB_TV",
        "layoutB_TV(mma)",
        "who holds what of the second factor's tile: (thread, value) to the index in the tile",
        ("layoutB_TV(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN))", "((4,8),((2,2),(1,1))):((16,1),((8,64),(0,0)))"),
        (1, 1),
        |a| thread_values(&a, Ok(Operand::B)),
    ),
    row(
        "layoutC_TV",
        "layoutC_TV(mma)",
        "who holds what of the sum's tile: (thread, value) to the index in the tile",
        ("layoutC_TV(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN))", "((4,8),((2,2),(1,1))):((32,1),((16,8),(0,0)))"),
        (1, 1),
        |a| thread_values(&a, Ok(Operand::C)),
    ),
    row(
        "layoutS_TV",
        "layoutS_TV(copy)",
        "who reads what of a tile: (thread, value) to the index in the tile",
        (
            "layoutS_TV(make_tiled_copy_tv(UniversalCopy_uint64_t, 16, (32,8):(8,1), (1,4)))",
            "((1,(8,32)),(4,1)):((0,(128,1)),(32,0))",
        ),
        (1, 1),
        |a| thread_values(&a, Err(CopyEnd::Source)),
    ),
    row(
        "layoutD_TV",
        "layoutD_TV(copy)",
        "who writes what of a tile: (thread, value) to the index in the tile",
        (
            "layoutD_TV(make_tiled_copy_tv(UniversalCopy_uint64_t, 16, (32,8):(8,1), (1,4)))",
            "((1,(8,32)),(4,1)):((0,(128,1)),(32,0))",
        ),
        (1, 1),
        |a| thread_values(&a, Err(CopyEnd::Destination)),
    ),
];
