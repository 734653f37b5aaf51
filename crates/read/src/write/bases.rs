//! Linear maps between threads and elements, and bases in Triton's notation.
//!
//! Law: a warp has 32 threads. Bit `i` of a thread's number is bit `i` of the lane, and from the
//! fifth bit on a bit of the warp. A value of a thread is a register. The number of an element is
//! its index in the tile, the first dimension fastest.

use tilewright_layout::{AnyLayout, BitMatrix, Layout, LayoutError, LinearLayout, Tree};
use tilewright_notation::Value;

use super::{ask_shape, cannot};
use crate::document::expression;
use crate::options::Options;
use crate::refused::Refused;
use crate::system::System;

/// The number of bits of a lane number.
const LANE_BITS: usize = 5;

/// The linear map `register lane warp -> dim0 dim1 ..` of a layout (thread, value) to the elements
/// of a tile, numbered first dimension fastest. A linear map that already has these names is
/// unchanged.
///
/// Errors: the value is not such a layout; an extent is not a power of two, or the layout is not
/// linear over bits; an element is outside the tile (E1304).
///
/// ```
/// use tilewright_notation::{Environment, evaluate};
/// use tilewright_read::distributed;
///
/// let accumulator = evaluate("((4,8),(2,2)):((32,1),(16,8))", &mut Environment::new()).unwrap();
/// let map = distributed(&accumulator, &[16, 8]).unwrap();
/// assert_eq!(map.to_string(), "register=[(0,1),(8,0)] lane=[(0,2),(0,4),(1,0),(2,0),(4,0)] warp=[] -> dim0:16 dim1:8");
/// ```
pub fn distributed(value: &Value, tile: &[i64]) -> Result<LinearLayout, Refused> {
    let system = System::Triton;
    let fail = |error: LayoutError| cannot(system, error);
    let layout = match value {
        Value::Linear(map) => return Ok((**map).clone()),
        Value::Layout(AnyLayout::Integer(layout)) if layout.rank() == 2 => layout,
        Value::Layout(AnyLayout::Composed(layout)) if layout.rank() == 2 => {
            let matrix = layout.bit_matrix().map_err(fail)?;
            let sizes: Vec<usize> = layout.inner().modes().map(|mode| mode.size().trailing_zeros() as usize).collect();
            return named(&matrix, sizes.first().copied().unwrap_or(0), tile);
        }
        other => {
            let because = format_args!("{other} is not a layout with two modes, threads and values");
            return Err(cannot(system, because));
        }
    };
    let matrix = BitMatrix::of_layout(layout).map_err(fail)?;
    let threads = layout.mode(0).map_or(1, |mode| mode.size()).trailing_zeros() as usize;
    named(&matrix, threads, tile)
}

fn named(matrix: &BitMatrix, threads: usize, tile: &[i64]) -> Result<LinearLayout, Refused> {
    let system = System::Triton;
    let power = |extent: &i64| (*extent > 0 && extent & (extent - 1) == 0).then(|| extent.trailing_zeros() as usize);
    let Some(bits) = tile.iter().map(power).collect::<Option<Vec<usize>>>() else {
        return Err(cannot(system, "an extent of the tile is no power of two"));
    };
    let columns = matrix.columns();
    let (lanes, warps) = (threads.min(LANE_BITS), threads.saturating_sub(LANE_BITS));
    let order = columns.iter().skip(threads).chain(columns.iter().take(threads)).copied();
    let total: usize = bits.iter().sum();
    let whole = BitMatrix::new(total, order).map_err(|_| cannot(system, "an element lies past the end of the tile"))?;
    let names: Vec<String> = (0..bits.len()).map(|dimension| format!("dim{dimension}")).collect();
    let inputs = [("register", columns.len().saturating_sub(threads)), ("lane", lanes), ("warp", warps)];
    LinearLayout::of_matrix(inputs, names.iter().map(String::as_str).zip(bits), whole)
        .map_err(|error| cannot(system, error))
}

/// The layout (thread, value) of a distributed map, whose value numbers the elements of the tile,
/// the first dimension fastest.
///
/// Errors: it has inputs other than registers, lanes and warps; elements are XORs of bits, so that
/// no strides give them (E1304).
pub fn thread_value(map: &LinearLayout, system: System) -> Result<Layout, Refused> {
    let known = ["register", "lane", "warp"];
    if let Some((name, _)) = map.inputs().iter().find(|(name, bits)| *bits > 0 && !known.contains(&name.as_ref())) {
        return Err(cannot(system, format_args!("it has the input {name}, besides registers, lanes and warps")));
    }
    let mut columns = Vec::new();
    for name in ["lane", "warp", "register"] {
        let mut first = 0;
        for (own, bits) in map.inputs() {
            if own.as_ref() == name {
                columns.extend(map.matrix().columns().iter().skip(first).take(*bits).copied());
            }
            first += bits;
        }
    }
    let bits = |name: &str| map.inputs().iter().find(|(own, _)| own.as_ref() == name).map_or(0, |(_, bits)| *bits);
    let shape = [1_i64 << (bits("lane") + bits("warp")).min(62), 1_i64 << bits("register").min(62)];
    let layout = || -> Result<Layout, LayoutError> {
        BitMatrix::new(map.matrix().outputs(), columns)?.to_layout(&Tree::flat(shape)?)
    };
    layout().map_err(|error| cannot(system, error))
}

/// Numbers in brackets.
fn list(images: &[Vec<u64>]) -> String {
    let image = |image: &Vec<u64>| format!("[{}]", image.iter().map(u64::to_string).collect::<Vec<_>>().join(", "));
    format!("[{}]", images.iter().map(image).collect::<Vec<_>>().join(", "))
}

pub(super) fn write(value: &Value, system: System, options: &Options) -> Result<String, Refused> {
    match (value, &options.shape) {
        (Value::Linear(map), _) => of_registers(map, system),
        (Value::Layout(_), Some(tile)) => of_registers(&distributed(value, tile)?, system),
        (Value::Layout(layout), None) => shared(layout, system),
        (Value::Tree(_) | Value::Int(_), None) => Err(ask_shape(system)),
        (value, _) => Err(cannot(system, format_args!("{value} is a {}", value.kind()))),
    }
}

fn of_registers(map: &LinearLayout, system: System) -> Result<String, Refused> {
    let names = ["register", "lane", "warp", "block"];
    if map.inputs().iter().any(|(name, _)| !names.contains(&name.as_ref())) {
        return Err(cannot(system, "its inputs are not registers, lanes, warps and blocks"));
    }
    let mut seen = Vec::new();
    let mut written = Vec::new();
    for name in names {
        let images = map.bases(name).unwrap_or_default();
        for image in &images {
            let bits: u32 = image.iter().map(|index| index.count_ones()).sum();
            if bits > 1 || (bits == 1 && seen.contains(image)) {
                let because = "there each bit of a register, lane or warp moves along one dimension, or holds copies";
                return Err(cannot(system, because));
            }
            if bits == 1 {
                seen.push(image.clone());
            }
        }
        written.push(list(&images));
    }
    if seen.len() != map.matrix().outputs() {
        return Err(cannot(system, "no thread holds some element of the tile"));
    }
    let [register, lane, warp, block] = written.as_slice() else { return Err(cannot(system, "")) };
    let shape: Vec<String> = map.outputs().iter().map(|(_, bits)| (1_u64 << bits).to_string()).collect();
    Ok(match system {
        System::Gluon => format!(
            "gl.DistributedLinearLayout(reg_bases={register}, lane_bases={lane}, warp_bases={warp}, block_bases={block}, shape=[{}])",
            shape.join(", ")
        ),
        _ => format!("#ttg.linear<{{register = {register}, lane = {lane}, warp = {warp}, block = {block}}}>"),
    })
}

/// A layout of shared memory: as a swizzle if possible, else as bases.
fn shared(layout: &AnyLayout, system: System) -> Result<String, Refused> {
    let fail = |error: LayoutError| cannot(system, error);
    let matrix = match layout {
        AnyLayout::Integer(layout) => BitMatrix::of_layout(layout).map_err(fail)?,
        AnyLayout::Composed(layout) => layout.bit_matrix().map_err(fail)?,
        other => return Err(cannot(system, format_args!("{other} has no offsets that are known integers"))),
    };
    let shape = layout.known_shape().ok_or_else(|| cannot(system, "an extent becomes known at launch"))?;
    let extents: Vec<i64> = if shape.is_leaf() {
        shape.leaves().to_vec()
    } else {
        (0..shape.rank()).filter_map(|mode| shape.mode(mode)?.product().ok()).collect()
    };
    if matrix.inputs() != matrix.outputs() || !matrix.is_bijective() {
        return Err(cannot(system, "its offsets are not all the numbers from 0 to its size"));
    }
    for text in swizzles(&extents, system) {
        let options = Options { shape: Some(extents.clone()), ..Options::default() };
        if let Ok(reading) = expression(&text, &options)
            && let Some(found) = reading.layout()
            && same_offsets(found, &matrix)
        {
            return Ok(text);
        }
    }
    let names: Vec<String> = (0..extents.len()).map(|dimension| format!("dim{dimension}")).collect();
    let bits = extents.iter().map(|extent| extent.trailing_zeros() as usize);
    let map =
        LinearLayout::of_matrix(names.iter().map(String::as_str).zip(bits), [("offset", matrix.outputs())], matrix)
            .and_then(|map| map.invert())
            .map_err(fail)?;
    let offsets = list(&map.bases("offset").unwrap_or_default());
    Ok(match system {
        System::Gluon => format!("gl.SharedLinearLayout(offset_bases={offsets}, block_bases=[], alignment=16)"),
        _ => format!("#ttg.shared_linear<{{offset = {offsets}}}, alignment = 16>"),
    })
}

fn same_offsets(layout: &AnyLayout, matrix: &BitMatrix) -> bool {
    let own = match layout {
        AnyLayout::Integer(layout) => BitMatrix::of_layout(layout),
        AnyLayout::Composed(layout) => layout.bit_matrix(),
        _ => return false,
    };
    own.is_ok_and(|own| own.columns() == matrix.columns())
}

/// The possible swizzles of a tensor of this shape, the plain order first.
fn swizzles(extents: &[i64], system: System) -> Vec<String> {
    let rank = extents.len();
    let mut orders: Vec<Vec<usize>> = vec![(0..rank).rev().collect(), (0..rank).collect()];
    orders.dedup();
    let mut found = Vec::new();
    for order in orders {
        let columns = order.first().and_then(|fast| extents.get(*fast)).copied().unwrap_or(1).max(1);
        let order = order.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let mut add = |vec: i64, each: i64, phases: i64| {
            found.push(match system {
                System::Gluon => {
                    format!("gl.SwizzledSharedLayout(vec={vec}, per_phase={each}, max_phase={phases}, order=[{order}])")
                }
                _ => format!(
                    "#ttg.swizzled_shared<{{vec = {vec}, perPhase = {each}, maxPhase = {phases}, order = [{order}]}}>"
                ),
            });
        };
        add(1, 1, 1);
        for phases in [2, 4, 8, 16, 32] {
            for vec in [1, 2, 4, 8, 16, 32] {
                for each in [1, 2, 4, 8] {
                    if rank > 1 && vec * phases <= columns {
                        add(vec, each, phases);
                    }
                }
            }
        }
    }
    found
}
