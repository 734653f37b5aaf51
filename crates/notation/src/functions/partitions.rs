//! Local tiles, and the parts of threads in a tiled copy or a tiled MMA.
//!
//! Law: a part is a map with an offset, `part(c) = A(position of c in A)`, for the requested tile
//! or thread. So a part of a layout that does not begin at 0 is the composed layout `1:1 o offset o
//! part`. Layouts of coordinates have no such form, so their part is the list of part and offset.

use tilewright_layout::atoms::{CopyEnd, Operand, TiledMma};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{AnyCoord, AnyLayout, Extent, Layout, LayoutError, Tree};

use super::tiled::{Tiled, instruction};
use super::{Function, find, function};
use crate::arguments::{Arguments, Fault, is_map};
use crate::reading::tuple_of;
use crate::reading::{coordinate, single};
use crate::value::{Value, list_of};

/// Calls another function of the language with these values. A refusal is about the layout, which
/// is the last argument.
fn call(a: &Arguments<'_>, name: &str, values: &[Value]) -> Result<Value, Fault> {
    let Some(function) = find(name) else { return a.kind(0, "a function of the language") };
    (function.run)(Arguments { function: function.name, values: values.into() }).map_err(|fault| match fault {
        Fault::At(_, error) => Fault::Refused(error),
        Fault::Kind { wanted, .. } => Fault::Kind { argument: a.len().saturating_sub(1), wanted },
        fault => fault,
    })
}

/// The nesting of a value, as a tuple of ones.
fn nesting(a: &Arguments<'_>, value: &Value) -> Result<Tree<i64>, Fault> {
    let profile = Arguments { function: a.function, values: std::slice::from_ref(value).into() }.profile(0)?;
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
            super::composed(Arguments { function: a.function, values: (&values).into() }, 1, 2)
        }
        _ => Ok(list_of(parts)?),
    }
}

/// The value `_`.
pub(super) fn all() -> Value {
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

/// The items whose position in the projection is not `_`.
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
    let map = map_of(&a, 0)?;
    let tiled = call(&a, "zipped_divide", &[map, tuple_of(tiler, true)?])?;
    let ranks: Vec<usize> = nesting(&a, &tiled)?.modes().map(|mode| mode.rank()).collect();
    let [tile, rests] = ranks.as_slice() else { return a.kind(0, "a layout with a mode for each tile") };
    if coord.len() > *rests {
        let (expected, found) = (*rests, coord.len());
        return Err(Fault::At(2, LayoutError::Rank { op: a.function, path: [].into(), expected, found }));
    }
    // Modes without an index in the coordinate stay open.
    coord.resize(*rests, all());
    let side = side_by_side(&a, tiled)?;
    let tile = vec![all(); *tile];
    part_at(&a, side, tuple_of(tile.into_iter().chain(coord).collect(), true)?)
}

/// The parts of all threads in an operand of a tiled MMA: `((thread),(values))`.
fn thrfrg(a: &Arguments<'_>, mma: &TiledMma, operand: Operand, map: Value) -> Result<Value, Fault> {
    let tilers = mma.tilers::<i64>(operand)?;
    let ordered = call(a, "logical_divide", &[map, tilers.order.into()])?;
    let atoms = call(a, "zipped_divide", &[ordered, tilers.atom.into()])?;
    let held = call(a, "composition", &[atoms, tilers.held.into()])?;
    call(a, "zipped_divide", &[held, tilers.rest.into()])
}

/// The partition of an operand for one thread, or for all threads if none is named.
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

/// The part of a thread in the source or destination of a tiled copy, or of all threads if none is
/// named.
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
    map_of(a, 1)
}

/// A layout of any kind, as a value; a shape means its compact layout.
fn map_of(a: &Arguments<'_>, argument: usize) -> Result<Value, Fault> {
    match a.get(argument).filter(|map| is_map(map)) {
        Some(map) => Ok(map.clone()),
        None => Ok(Value::Layout(a.layout(argument)?.into_owned())),
    }
}

/// A fragment with the shape of a part.
fn fragment(a: &Arguments<'_>, part: Value) -> Result<Value, Fault> {
    let part = match part {
        Value::List(parts) => parts.first().cloned().unwrap_or(Value::Bool(false)),
        part => part,
    };
    call(a, "make_fragment_like", &[part])
}

/// The registers of a thread under another partition, in the modes of a tiled copy.
fn retile(a: &Arguments<'_>, end: CopyEnd) -> Result<Value, Fault> {
    let (Tiled::Copy(copy), _) = instruction(a)? else { return a.kind(0, "a tiled copy, or a thread of one") };
    match a.get(1) {
        Some(Value::Layout(AnyLayout::Launch(fragment))) => Ok(copy.retile(end, fragment)?.into()),
        _ => Ok(copy.retile(end, &*a.integer_layout(1)?)?.into()),
    }
}

pub(super) const PARTS: &[Function] = &[
    function("local_tile(A, tiler, coord, proj)", "the tile of A at a coordinate, (tile modes, modes with _); proj selects the modes of tiler and coord that A has")
        .example("local_tile((128,64):(64,1), (32,16,8), (1,0,_), proj=(1,None,1))", "1:1 o 2048 o (32,8,8):(64,1,8)")
        .run(3..=4, local_tile),
    function("partition_A(tiled, A)", "the part of operand A (M,K) of a thread, (values, atoms along M, along K); for the tiled product itself, of all threads")
        .example("partition_A(get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5), (32,32):(32,1))", "1:1 o 34 o ((2,2,2),2,2):((1,256,8),512,16)")
        .run(2..=2, |a| mma_part(&a, Operand::A)),
    function("partition_B(tiled, A)", "the part of operand B (N,K) of a thread, (values, atoms along N, along K); for the tiled product itself, of all threads")
        .example("partition_B(get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5), (32,32):(32,1))", "1:1 o 34 o ((2,2),4,2):((1,8),256,16)")
        .run(2..=2, |a| mma_part(&a, Operand::B)),
    function("partition_C(tiled, A)", "the part of the accumulator C (M,N) of a thread, (values, atoms along M, along N); for the tiled product itself, of all threads")
        .example("partition_C(get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5), (32,32):(32,1))", "1:1 o 34 o ((2,2),2,4):((1,256),512,8)")
        .run(2..=2, |a| mma_part(&a, Operand::C)),
    function("partition_S(tiled, A)", "the source part of a thread, (values, tiles along each mode); for the tiled copy itself, of all threads")
        .example("partition_S(get_slice(make_tiled_copy_tv(UniversalCopy_uint64_t, 16, (8,8):(8,1), (1,4)), 9), (16,64):(64,1))", "1:1 o 68 o ((4,1),2,2):((1,0),512,32)")
        .run(2..=2, |a| copy_part(&a, CopyEnd::Source)),
    function("partition_D(tiled, A)", "the destination part of a thread, (values, tiles along each mode); for the tiled copy itself, of all threads")
        .example("partition_D(get_slice(make_tiled_copy_tv(UniversalCopy_uint64_t, 16, (8,8):(8,1), (1,4)), 9), (16,64):(1,16))", "1:1 o 65 o ((4,1),2,2):((16,0),8,512)")
        .run(2..=2, |a| copy_part(&a, CopyEnd::Destination)),
    function("make_fragment_A(tiled, A)", "the register layout of a thread's part of operand A")
        .example("make_fragment_A(get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5), (32,32):(32,1))", "((2,2,2),2,2):((1,2,4),16,8)")
        .run(2..=2, |a| fragment(&a, mma_part(&a, Operand::A)?)),
    function("make_fragment_B(tiled, A)", "the register layout of a thread's part of operand B")
        .example("make_fragment_B(get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5), (32,32):(32,1))", "((2,2),4,2):((1,2),8,4)")
        .run(2..=2, |a| fragment(&a, mma_part(&a, Operand::B)?)),
    function("make_fragment_C(tiled, A)", "the register layout of a thread's part of the accumulator C")
        .example("make_fragment_C(get_slice(make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN), 5), (32,32):(32,1))", "((2,2),2,4):((1,2),16,4)")
        .run(2..=2, |a| fragment(&a, mma_part(&a, Operand::C)?)),
    function("retile_S(copy, fragment)", "registers of another partition, with the modes of the source part of a thread of the copy, (values, repetitions)")
        .example("retile_S(make_tiled_copy_C(UniversalCopy_uint64_t, make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN)), ((2,2),2,4):((1,2),16,4))", "((2,2),2,4):((1,2),16,4)")
        .run(2..=2, |a| retile(&a, CopyEnd::Source)),
    function("retile_D(copy, fragment)", "registers of another partition, with the modes of the destination part of a thread of the copy, (values, repetitions)")
        .example("retile_D(make_tiled_copy_A(SM75_U32x4_LDSM_N, make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN, (2,2,1))), ((2,2,2),2,2):((1,2,4),16,8))", "(((2,4),1),2,2):(((1,2),0),16,8)")
        .run(2..=2, |a| retile(&a, CopyEnd::Destination)),
];
