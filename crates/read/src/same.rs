//! Whether two layouts of any systems are the same function.
//!
//! Law: distributed layouts, from threads and values or from registers, lanes and warps, are
//! compared at every thread and value by the element of the tile there. Other layouts are compared
//! at every coordinate, in the order of their modes. Sharded tensors are compared at every element.
//! The first difference is reported.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{AnyLayout, Layout, LayoutError, LinearLayout, Tree};
use tilewright_mesh::{MeshError, ShardedLayout};
use tilewright_notation::Value;

use crate::reading::{Meaning, Unit};
use crate::refused::Refused;
use crate::system::System;
use crate::write::thread_value;

/// The number of lanes of a warp for which conversions are planned.
const WARP: i64 = 32;
/// The largest number of values of all threads, or of elements, that are compared.
const MAX_COMPARED: i64 = 1 << 20;

/// The result of comparing two layouts.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// What was compared, as a clause: "128 threads hold 32 values each of the 64x64 tile".
    pub compared: String,
    /// The first difference, as a sentence without a full stop; None if the layouts are the same
    /// function.
    pub difference: Option<String>,
    /// The two layouts for one tile; None unless they have the same number of threads and are given
    /// by strides.
    pub conversion: Option<Conversion>,
    /// Further notes about two layouts that differ. Each is a clause without a full stop.
    pub notes: Vec<String>,
}

/// The conversion of a tile from one distribution among threads to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    /// The shape of the tile.
    pub tile: Tree<i64>,
    /// The current layout, from (thread, value) to elements, numbered first dimension fastest.
    pub from: Layout,
    /// The new layout, in the same form.
    pub to: Layout,
}

/// The element that each thread holds as each of its values, the thread fastest.
struct HeldElements {
    threads: i64,
    values: i64,
    elements: Vec<i64>,
}

/// Whether two layouts are the same function.
///
/// A layout of two modes is read as (thread, value) to the elements of a tile if the other one is a
/// distributed layout, or if the shape of a tile is given.
///
/// Errors: the two cannot be compared, such as a layout and a shape; more than a million values.
///
/// ```
/// use tilewright_read::{Options, compare, expression};
///
/// let read = |text| expression(text, &Options::default()).unwrap().meaning;
/// let (tirx, cute) = (read("S[(4, 8) : (8, 1)]"), read("(_4,_8):(_8,_2)"));
/// let found = compare(&tirx, &cute, None).unwrap();
/// assert_eq!(found.difference.as_deref(), Some("at (0,1) the first has 1 and the second 2"));
/// ```
pub fn compare(left: &Meaning, right: &Meaning, tile: Option<&[i64]>) -> Result<Comparison, Refused> {
    let (left, right) = match (left, right) {
        (Meaning::Value(left), Meaning::Value(right)) => (left, right),
        (Meaning::Sharded(left), Meaning::Sharded(right)) => return sharded(left, right),
        _ => return Err(incomparable("one is a tensor sharded over devices, and the other is not")),
    };
    let own = [left, right].into_iter().find_map(|value| match value {
        Value::Linear(map) if is_distributed(map) => Some(extents(map)),
        _ => None,
    });
    match (own.or_else(|| tile.map(<[i64]>::to_vec)), left, right) {
        (Some(tile), ..) => threads([left, right], &tile),
        (None, Value::Layout(left), Value::Layout(right)) => memory(left, right),
        (None, left, right) if left.kind() == right.kind() => Ok(Comparison {
            compared: String::new(),
            difference: (left != right).then(|| format!("the first is {left}, and the second {right}")),
            conversion: None,
            notes: Vec::new(),
        }),
        (None, left, right) => Err(incomparable(&format!(
            "one is of the kind {}, and the other of the kind {}",
            left.kind(),
            right.kind()
        ))),
    }
}

/// A note for two layouts with different units; None if the units are the same, or if one layout is
/// an expression, which has no unit.
///
/// Errors: one counts bytes and the other elements, so that equal numbers are different positions.
///
/// ```
/// use tilewright_read::{Unit, common_unit};
///
/// let [half, float] = [16, 32].map(|bits| Unit::Elements { bits: Some(bits) });
/// assert_eq!(common_unit(half, half).unwrap(), None);
/// assert!(common_unit(half, float).unwrap().unwrap().contains("16 bits in the first"));
/// assert!(common_unit(half, Unit::Bytes).is_err());
/// ```
pub fn common_unit(first: Unit, second: Unit) -> Result<Option<String>, Refused> {
    match (first, second) {
        (Unit::Elements { bits: Some(first) }, Unit::Elements { bits: Some(second) }) if first != second => {
            Ok(Some(format!(
                "an element has {first} bits in the first and {second} in the second; elements are compared, not bytes"
            )))
        }
        (Unit::Bytes, Unit::Elements { .. }) | (Unit::Elements { .. }, Unit::Bytes) => {
            let because = format!("the first counts {first}, and the second counts {second}");
            Err(incomparable(&because)
                .with_help("make both count the same: say the type beside strides in bytes, such as dtype=float32"))
        }
        (Unit::Elements { bits: Some(_) }, Unit::Coordinates)
        | (Unit::Coordinates, Unit::Elements { bits: Some(_) }) => {
            let because = format!("the first counts {first}, and the second counts {second}");
            let help = "a tensor in memory sends coordinates to offsets, a distributed layout sends threads and values \
                        to coordinates";
            Err(incomparable(&because).with_help(help))
        }
        _ => Ok(None),
    }
}

fn incomparable(because: &str) -> Refused {
    Refused::contradiction(0..0, format!("the layouts are not compared: {because}"))
}

fn is_distributed(map: &LinearLayout) -> bool {
    map.inputs().iter().any(|(name, _)| matches!(name.as_ref(), "register" | "lane" | "warp"))
}

fn extents(map: &LinearLayout) -> Vec<i64> {
    map.outputs().iter().map(|(_, bits)| 1_i64 << bits.min(&62)).collect()
}

fn threads(sides: [&Value; 2], tile: &[i64]) -> Result<Comparison, Refused> {
    let [left, right] = [held(sides[0], tile, "first")?, held(sides[1], tile, "second")?];
    let size = tile.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
    let sizes = |held: &HeldElements| format!("{} threads hold {} values each", held.threads, held.values);
    let compared = format!("{} of the {size} tile", sizes(&left));
    let difference = if (left.threads, left.values) != (right.threads, right.values) {
        Some(format!("in the first {}, in the second {}", sizes(&left), sizes(&right)))
    } else {
        let place = left.elements.iter().zip(&right.elements).position(|(left, right)| left != right);
        place.map(|place| {
            let (thread, value) = (place as i64 % left.threads, place as i64 / left.threads);
            let [first, second] = [&left, &right].map(|held| coordinate(held.elements.get(place).copied(), tile));
            format!("thread {thread} holds {first} as value {value} in the first, and {second} in the second")
        })
    };
    let mut notes = Vec::new();
    let lanes = sides.iter().filter_map(|value| match value {
        Value::Linear(map) => map.bases("lane").map(|bases| 1_i64 << bases.len().min(62)),
        _ => None,
    });
    let conversion = match lanes.max() {
        _ if difference.is_none() => conversion(sides, tile),
        _ if left.threads != right.threads => {
            notes.push("what moves the data is told where as many threads hold it in both".to_owned());
            None
        }
        Some(lanes) if lanes > WARP => {
            notes.push(format!(
                "the cost of moving data is stated for warps of {WARP} lanes only, and a wave here has {lanes}"
            ));
            None
        }
        _ => conversion(sides, tile),
    };
    Ok(Comparison { compared, difference, conversion, notes })
}

/// Compares layouts of memory, or any other layouts, at every coordinate.
fn memory(left: &AnyLayout, right: &AnyLayout) -> Result<Comparison, Refused> {
    let shapes = [left, right].map(AnyLayout::known_shape);
    let [Some(first), Some(second)] = shapes else {
        return Err(incomparable("a number becomes known at launch; `tilewright check` compares such layouts"));
    };
    let modes = |shape: &Tree<i64>| -> Option<Vec<i64>> {
        if shape.is_leaf() {
            return Some(shape.leaves().to_vec());
        }
        (0..shape.rank()).map(|mode| shape.mode(mode)?.product().ok()).collect()
    };
    let (Some(own), Some(other)) = (modes(&first), modes(&second)) else {
        return Err(incomparable("a size is not representable"));
    };
    let size = own.iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent));
    let Some(size) = size.filter(|size| *size <= MAX_COMPARED) else {
        return Err(incomparable("they have more than a million elements; `tilewright check` compares such layouts"));
    };
    let shape = own.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
    let compared = format!("at all {size} coordinates of {shape}");
    if own != other {
        let difference = format!("the first has the modes {first}, and the second {second}");
        let notes = exchanged(left, right, &own, &other)?.into_iter().collect();
        return Ok(Comparison { compared, difference: Some(difference), conversion: None, notes });
    }
    for index in 0..size {
        let [one, two] = [value_at(left, index)?, value_at(right, index)?];
        if one != two {
            let at = coordinate(Some(index), &own);
            let difference = format!("at {at} the first has {one} and the second {two}");
            return Ok(Comparison { compared, difference: Some(difference), conversion: None, notes: Vec::new() });
        }
    }
    Ok(Comparison { compared, difference: None, conversion: None, notes: Vec::new() })
}

/// A note for two matrices whose modes are in the opposite order.
fn exchanged(left: &AnyLayout, right: &AnyLayout, own: &[i64], other: &[i64]) -> Result<Option<String>, Refused> {
    let (&[rows, columns], &[height, width]) = (own, other) else { return Ok(None) };
    if (rows, columns) != (width, height) {
        return Ok(None);
    }
    for row in 0..rows {
        for column in 0..columns {
            if value_at(left, row + rows * column)? != value_at(right, column + columns * row)? {
                return Ok(Some(format!(
                    "with its modes exchanged the second still differs, first at row {row}, column {column}"
                )));
            }
        }
    }
    Ok(Some("with its modes exchanged, select(B,1,0), the second is the same function".to_owned()))
}

/// The value at an index as text, so that values of all kinds can be compared.
fn value_at(layout: &AnyLayout, index: i64) -> Result<String, Refused> {
    let found = match layout {
        AnyLayout::Integer(layout) => layout.eval(&index).map(|value| value.to_string()),
        AnyLayout::Composed(layout) => layout.eval(&index).map(|value| value.to_string()),
        AnyLayout::Coordinate(layout) => layout.eval(&Expr::from(index)).map(|value| value.to_string()),
        _ => return Err(incomparable("`tilewright check` compares layouts of XOR steps, and those known at launch")),
    };
    found.map_err(|error| incomparable(&error.to_string()))
}

/// The coordinate of the element with this number.
fn coordinate(element: Option<i64>, tile: &[i64]) -> String {
    let Some(mut rest) = element else { return "nothing".into() };
    let mut indices = Vec::new();
    for extent in tile {
        indices.push((rest % extent).to_string());
        rest /= extent;
    }
    format!("({})", indices.join(","))
}

fn held(value: &Value, tile: &[i64], side: &str) -> Result<HeldElements, Refused> {
    let size = |threads: i64, values: i64| {
        threads
            .checked_mul(values)
            .filter(|size| *size <= MAX_COMPARED)
            .ok_or_else(|| incomparable("they have more than a million values"))
    };
    let all = |shape: &Layout, element: &dyn Fn(i64) -> Result<i64, LayoutError>| {
        let [threads, values] = [0, 1].map(|mode| shape.mode(mode).map_or(1, |mode| mode.size()));
        let elements = (0..size(threads, values)?).map(element).collect::<Result<Vec<i64>, _>>();
        let elements = elements.map_err(|error| incomparable(&error.to_string()))?;
        inside(&elements, tile, side)?;
        Ok(HeldElements { threads, values, elements })
    };
    match value {
        Value::Linear(map) if is_distributed(map) => {
            if extents(map) != tile {
                return Err(incomparable("they are layouts of tiles of other shapes"));
            }
            let bits = |name: &str| map.bases(name).map_or(0, |bases| bases.len());
            if map
                .inputs()
                .iter()
                .any(|(name, bits)| *bits > 0 && !matches!(name.as_ref(), "register" | "lane" | "warp"))
            {
                return Err(incomparable("one has blocks of a cluster; compare what one block has"));
            }
            let (lanes, warps, registers) = (bits("lane"), bits("warp"), bits("register"));
            let (threads, values) = (1_i64 << (lanes + warps).min(62), 1_i64 << registers.min(62));
            let mut elements = Vec::with_capacity(size(threads, values)? as usize);
            for value in 0..values {
                for thread in 0..threads {
                    let index = |name: &str| match name {
                        "lane" => (thread & ((1 << lanes) - 1)) as u64,
                        "warp" => (thread >> lanes) as u64,
                        _ => value as u64,
                    };
                    let mut whole = 0;
                    let mut below = 0;
                    for (name, bits) in map.inputs() {
                        whole |= index(name) << below;
                        below += bits;
                    }
                    elements.push(map.matrix().apply(whole) as i64);
                }
            }
            Ok(HeldElements { threads, values, elements })
        }
        Value::Layout(AnyLayout::Integer(layout)) if layout.rank() == 2 => all(layout, &|index| layout.eval(&index)),
        Value::Layout(AnyLayout::Composed(layout)) if layout.rank() == 2 => {
            all(layout.inner(), &|index| layout.eval(&index))
        }
        other => Err(incomparable(&format!("the {side}, {other}, does not have two modes, threads and values"))),
    }
}

/// An error if an element is outside the tile.
fn inside(elements: &[i64], tile: &[i64], side: &str) -> Result<(), Refused> {
    let size = tile.iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent)).unwrap_or(i64::MAX);
    match elements.iter().find(|element| !(0..size).contains(*element)) {
        None => Ok(()),
        Some(element) => {
            let extents = tile.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
            let because = format!("the {side} has element {element}, which is not in the {extents} tile");
            let help = "a layout of threads and values numbers the elements of one tile, the first mode fastest";
            Err(incomparable(&because).with_help(help))
        }
    }
}

/// Both layouts with integer strides.
fn conversion(sides: [&Value; 2], tile: &[i64]) -> Option<Conversion> {
    let layout = |value: &Value| match value {
        Value::Linear(map) => thread_value(map, System::CuteCpp).ok(),
        Value::Layout(AnyLayout::Integer(layout)) => Some(layout.clone()),
        _ => None,
    };
    let tile = Tree::flat(tile.iter().copied()).ok()?;
    Some(Conversion { tile, from: layout(sides[0])?, to: layout(sides[1])? })
}

fn sharded(left: &ShardedLayout, right: &ShardedLayout) -> Result<Comparison, Refused> {
    let fail = |error: MeshError| incomparable(&error.to_string());
    if left.mesh().size() != right.mesh().size() || left.size() != right.size() {
        return Err(incomparable("they have other sizes, or meshes of other sizes"));
    }
    if left.size() > MAX_COMPARED {
        return Err(incomparable("they have more than a million elements"));
    }
    let mut difference = None;
    for element in 0..left.size() {
        let places = |side: &ShardedLayout| {
            let mut places = side.places(element)?;
            places.sort_unstable();
            Ok(places)
        };
        let (first, second) = (places(left).map_err(fail)?, places(right).map_err(fail)?);
        if first != second {
            let at = coordinate(Some(element), &left.mode_sizes());
            let devices = |places: &[(usize, i64)]| places.iter().map(|(device, _)| *device).collect::<Vec<_>>();
            let (own, other) = (devices(&first), devices(&second));
            let told = if own == other {
                let apart = first.iter().zip(&second).find(|(first, second)| first != second);
                let Some(((device, first), (_, second))) = apart else { continue };
                format!(
                    "element {at} is at offset {first} of device {device} in the first, and at offset {second} in the second"
                )
            } else {
                format!("element {at} is on {} in the first, and on {} in the second", named(&own), named(&other))
            };
            difference = Some(format!("{told}; `tilewright mesh plan` plans the exchange"));
            break;
        }
    }
    let compared = format!("{} elements on {} devices", left.size(), left.mesh().size());
    Ok(Comparison { compared, difference, conversion: None, notes: Vec::new() })
}

/// Devices as words: `device 3`, `devices 0 and 4`.
fn named(devices: &[usize]) -> String {
    match devices {
        [only] => format!("device {only}"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(usize::to_string).collect();
            format!("devices {} and {last}", first.join(", "))
        }
        [] => "no device".to_owned(),
    }
}
