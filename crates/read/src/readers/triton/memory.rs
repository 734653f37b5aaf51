//! Encodings of shared memory and of tensor memory: the offset of each element of a tensor.
//!
//! Law: a layout of shared memory sends the coordinate of an element, `(dim0, dim1, ..)`, to its
//! offset, counted in elements from the start of the allocation. Rows are along the second fastest
//! dimension. A swizzle permutes groups of `vec` columns by an XOR with the phase of the row, `(row
//! / perPhase) % maxPhase`. `nvmma_shared` is the same in bytes: groups of 16 bytes, rows of
//! `swizzlingByteWidth` bytes, phases over eight rows of 16 bytes. Such rows, at most 256 along
//! each dimension, are a box, as one TMA copy writes it, and boxes are contiguous. Padding inserts
//! elements between the offsets. Tensor memory is a map from lanes (`row`) and 32-bit columns to
//! coordinates.

use tilewright_layout::{AnyLayout, Composed, Layout, LinearLayout, Tree};
use tilewright_notation::Value;

use super::attribute::{Encoding, Fields, Refusal, images_of};
use super::bases::linear;
use super::registers::part;
use crate::term::{Term, TermKind};

/// The layout from the coordinates of a tensor of this shape to offsets, in elements.
pub(super) fn layout(encoding: &Encoding, shape: &[u64]) -> Result<Value, Refusal> {
    let fields = Fields { encoding };
    let rank = shape.len();
    let cluster = fields.cluster(rank)?;
    let own = part(shape, &cluster);
    let images = match encoding.name.as_str() {
        "amd_rotating_shared" => {
            return Err(fields.refuse("rotating phases are not read: the package gives no linear layout for them"));
        }
        "partitioned_shared" => {
            return Err(fields.refuse("the tensor is in several allocations, which are no one layout"));
        }
        "swizzled_shared" => swizzled(&fields, &own)?,
        "nvmma_shared" => nvmma(&fields, &own)?,
        "padded_shared" => padded_images(&fields, &own)?,
        _ => fields.images("offset", rank)?,
    };
    let blocks = match encoding.name.as_str() {
        "shared_linear" => fields.images("block", rank)?,
        "padded_shared" if fields.get("block").is_some() => fields.images("block", rank)?,
        _ => scaled(&cluster, &own),
    };
    let blocks: Vec<Vec<u64>> = blocks.into_iter().filter(|image| image.iter().any(|index| *index != 0)).collect();
    let inputs = [("offset", images), ("block", blocks.clone())];
    let inputs = inputs.into_iter().filter(|(name, images)| *name == "offset" || !images.is_empty());
    let map = linear(inputs, shape)
        .map_err(|error| fields.refuse(&format!("its bases are not those of this shape: {error}")))?;
    let back = map
        .invert()
        .map_err(|error| fields.refuse(&format!("not every element has one place in this shape: {error}")))?;
    let padding = match encoding.name.as_str() {
        "padded_shared" => intervals(&fields)?,
        // Eight bytes of packed numbers are followed by eight of padding.
        "nvmma_shared" if fields.truth("fp4Padded")? => vec![(FP4_GROUP as i64, FP4_GROUP as i64)],
        _ => Vec::new(),
    };
    if !padding.is_empty() {
        if !blocks.is_empty() {
            return Err(fields.refuse("padding in the memory of several blocks is not read"));
        }
        return padded(&fields, &back, padding);
    }
    if blocks.is_empty() {
        let composed = back.to_composed().map_err(|error| fields.refuse(&error.to_string()))?;
        return Ok(Value::Layout(AnyLayout::from(composed)));
    }
    Ok(Value::Linear(Box::new(back)))
}

/// Images in units of parts, scaled to elements.
fn scaled(cluster: &[Vec<u64>], part: &[u64]) -> Vec<Vec<u64>> {
    let scale = |image: &Vec<u64>| image.iter().zip(part).map(|(index, part)| index.saturating_mul(*part)).collect();
    cluster.iter().map(scale).collect()
}

/// Appends bits along a dimension, for the extents from `from` up to `to`.
fn along(images: &mut Vec<Vec<u64>>, rank: usize, dimension: usize, from: u64, to: u64) {
    let mut bit = from;
    while bit < to {
        let mut image = vec![0; rank];
        if let Some(index) = image.get_mut(dimension) {
            *index = bit;
        }
        images.push(image);
        bit *= 2;
    }
}

fn swizzled(fields: &Fields<'_>, shape: &[u64]) -> Result<Vec<Vec<u64>>, Refusal> {
    let rank = shape.len();
    if fields.truth("hasLeadingOffset")? {
        return Err(fields
            .refuse("hasLeadingOffset is what nvmma_shared is today, and its swizzle depends on the element type"));
    }
    let order = fields.order("order", rank)?;
    let [vec, each, phases] = [fields.power("vec")?, fields.power("perPhase")?, fields.power("maxPhase")?];
    let extent = |dimension: usize| shape.get(dimension).copied().unwrap_or(1);
    let mut images = Vec::new();
    for (position, dimension) in order.iter().enumerate() {
        let first = images.len();
        along(&mut images, rank, *dimension, 1, extent(*dimension));
        if position == 1
            && let Some(fast) = order.first()
        {
            for (bit, image) in images.iter_mut().skip(first).enumerate() {
                let phase = ((1_u64 << bit) / each) % phases;
                if let Some(index) = image.get_mut(*fast) {
                    *index = (vec * phase) % extent(*fast).max(1);
                }
            }
        }
    }
    Ok(images)
}

/// The number of bytes of packed 4-bit numbers between two paddings, and of each padding.
const FP4_GROUP: u64 = 8;

/// The largest number of elements of a TMA copy along a dimension.
const BOX: u64 = 256;

fn nvmma(fields: &Fields<'_>, shape: &[u64]) -> Result<Vec<Vec<u64>>, Refusal> {
    let rank = shape.len();
    if let Some(written) = fields.optional_number("rank")?
        && usize::try_from(written) != Ok(rank)
    {
        return Err(fields.refuse(&format!("rank is {written}, and the shape has {rank} dimensions")));
    }
    let (width, turned, bits) =
        (fields.number("swizzlingByteWidth")?, fields.truth("transposed")?, fields.power("elementBitWidth")?);
    let fp4 = fields.truth("fp4Padded")?;
    if fp4 && (bits != 8 || width != 128) {
        return Err(fields.refuse("fp4Padded is defined for bytes and a swizzle of 128 bytes"));
    }
    // Padding is half of each row, and of each group of 16 bytes.
    let [row, group] = if fp4 { [1024 / bits / 2, FP4_GROUP] } else { [width.unsigned_abs() * 8 / bits, 128 / bits] };
    if turned && rank != 2 {
        return Err(fields.refuse("transposed is defined for two dimensions"));
    }
    if rank < 2 && width != 0 {
        return Err(fields.refuse("a swizzle needs two dimensions"));
    }
    let fast = if turned { 0 } else { rank.saturating_sub(1) };
    let slow: Vec<usize> = (0..rank).rev().filter(|dimension| *dimension != fast).collect();
    let extent = |dimension: usize| shape.get(dimension).copied().unwrap_or(1);
    let rows: u64 = slow.iter().map(|dimension| extent(*dimension)).product();
    let (columns, [each, phases]) = match width {
        0 => (extent(fast).min(BOX), [1, 1]),
        32 | 64 | 128 => {
            let width = width.unsigned_abs();
            (row, [128 / width, width / 16])
        }
        _ => return Err(fields.refuse("swizzlingByteWidth is 0, 32, 64 or 128")),
    };
    if extent(fast) < columns || (width != 0 && rows < 8) {
        let message =
            format!("a tile of 8 rows of {columns} elements is larger than this tensor of {rows} by {}", extent(fast));
        return Err(fields.refuse(&message));
    }
    let mut images = Vec::new();
    along(&mut images, rank, fast, 1, columns);
    let first = images.len();
    for dimension in slow {
        along(&mut images, rank, dimension, 1, extent(dimension).min(BOX));
    }
    for (bit, image) in images.iter_mut().skip(first).enumerate() {
        let phase = (1_u64.checked_shl(bit as u32).unwrap_or(0) / each) % phases;
        if let Some(index) = image.get_mut(fast) {
            *index = group * phase;
        }
    }
    // The order of the boxes after the first: the first dimension is the fastest if they are
    // swizzled, else the last one.
    let mut order: Vec<usize> = (0..rank).collect();
    if width == 0 {
        order.reverse();
    }
    for dimension in order {
        let first = if dimension == fast { columns } else { extent(dimension).min(BOX) };
        along(&mut images, rank, dimension, first, extent(dimension));
    }
    Ok(images)
}

/// The order of the elements before padding.
fn padded_images(fields: &Fields<'_>, shape: &[u64]) -> Result<Vec<Vec<u64>>, Refusal> {
    let rank = shape.len();
    if let Some(term) = fields.get("offset") {
        return images_of(term, rank).ok_or_else(|| fields.refuse("offset is a list of bases"));
    }
    let order = fields.get("order").and_then(Term::numbers).unwrap_or_default();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted != (0..rank as i64).collect::<Vec<i64>>() {
        return Err(fields.refuse(&format!("order is an order of the {rank} dimensions of the shape")));
    }
    if let Some(own) = fields.get("shape").and_then(Term::numbers)
        && own.iter().map(|extent| extent.unsigned_abs()).ne(shape.iter().copied())
    {
        return Err(fields.refuse("its own shape is another than that of the tensor"));
    }
    let mut images = Vec::new();
    for dimension in order {
        let dimension = usize::try_from(dimension).unwrap_or(usize::MAX);
        along(&mut images, rank, dimension, 1, shape.get(dimension).copied().unwrap_or(1));
    }
    Ok(images)
}

/// The intervals and their paddings, `[512:+16, 4096:+32]`.
fn intervals(fields: &Fields<'_>) -> Result<Vec<(i64, i64)>, Refusal> {
    let mut found = Vec::new();
    if let Some(pairs) = fields.get("pairs").and_then(Term::list) {
        for pair in pairs {
            match pair.numbers().as_deref() {
                Some([interval, padding]) => found.push((*interval, *padding)),
                _ => return Err(fields.refuse("a pair of an interval and its padding is wanted")),
            }
        }
    }
    for term in fields.encoding.others.iter().flat_map(|argument| &argument.values) {
        let TermKind::List('[', pairs) = &term.kind else { continue };
        for pair in pairs {
            let padding = pair.values.iter().filter_map(Term::number).next();
            match (pair.name.as_deref().and_then(|name| name.parse::<i64>().ok()), padding) {
                (Some(interval), Some(padding)) => found.push((interval, padding)),
                _ => return Err(fields.refuse("an interval and its padding are written 512:+16")),
            }
        }
    }
    found.sort_unstable();
    let is_power = |number: i64| number > 0 && number & (number - 1) == 0;
    let distinct = found.windows(2).all(|pair| pair[0].0 != pair[1].0);
    if found.is_empty() || !distinct || found.iter().any(|(interval, padding)| !is_power(*interval) || *padding < 0) {
        return Err(fields.refuse("intervals are different powers of two, and paddings are not negative"));
    }
    Ok(found)
}

/// The layout with padding: for each of the intervals, its padding is inserted after each multiple
/// of it.
fn padded(fields: &Fields<'_>, back: &LinearLayout, intervals: Vec<(i64, i64)>) -> Result<Value, Refusal> {
    let fail = |error: tilewright_layout::LayoutError| fields.refuse(&error.to_string());
    let size = 1_i64 << back.matrix().inputs().min(40);
    let mut modes = Vec::new();
    let (mut below, mut stride) = (1_i64, 1_i64);
    for (interval, padding) in intervals {
        if interval >= size {
            break;
        }
        modes.push((interval / below, stride));
        stride = stride
            .checked_mul(interval / below)
            .and_then(|stride| stride.checked_add(padding))
            .ok_or_else(|| fields.refuse("the padding is too large"))?;
        below = interval;
    }
    modes.push((size / below, stride));
    let shape = Tree::flat(modes.iter().map(|(extent, _)| *extent)).map_err(fail)?;
    let strides = Tree::flat(modes.iter().map(|(_, stride)| *stride)).map_err(fail)?;
    let outer = Layout::new(&shape, &strides).map_err(fail)?;
    let inner = back.to_composed().map_err(fail)?;
    if let Some(inner) = inner.as_layout()
        && let Ok(layout) = outer.compose(inner)
    {
        return Ok(Value::Layout(AnyLayout::from(layout)));
    }
    let composed: Composed = inner.then(outer).map_err(fail)?;
    Ok(Value::Layout(AnyLayout::from(composed)))
}

/// The linear map from a lane and a column of tensor memory to the element there.
pub(super) fn tensor_memory(encoding: &Encoding, shape: &[u64]) -> Result<LinearLayout, Refusal> {
    let fields = Fields { encoding };
    if fields.truth("twoCTAs")? || fields.get("CGALayout").is_some_and(is_not_empty) {
        return Err(fields.refuse("tensor memory of two blocks is not read"));
    }
    if encoding.name == "tensor_memory_scales_encoding" {
        return scales(&fields, shape);
    }
    for name in ["CTASplitM", "CTASplitN"] {
        if fields.optional_number(name)?.is_some_and(|split| split != 1) {
            return Err(fields.refuse("tensor memory of several blocks is not read"));
        }
    }
    let [rows, columns] = match fields.get("block").and_then(Term::numbers).as_deref() {
        Some([rows, columns]) => [*rows, *columns],
        _ => [fields.number("blockM")?, fields.number("blockN")?],
    };
    let stride = match fields.optional_number("colStride")? {
        Some(stride) => stride,
        None if fields.get("unpacked").is_some() => {
            return Err(fields.refuse("the older field unpacked is not read; its columns depend on the element type"));
        }
        None => 1,
    };
    let is_power = |number: i64| number > 0 && number & (number - 1) == 0;
    let (&[height, width], true) = (shape, [columns, stride].into_iter().all(is_power)) else {
        return Err(fields.refuse("a matrix is wanted, with blockN and colStride powers of two"));
    };
    // Each byte of packed 4-bit numbers is followed by a byte of padding.
    let stride = if fields.truth("fp4Padded")? { stride.saturating_mul(2) } else { stride };
    let (columns, stride) = (columns.unsigned_abs(), stride.unsigned_abs());
    if (rows != 64 && rows != 128) || height < rows.unsigned_abs() || width < columns {
        return Err(fields.refuse("blockM is 64 or 128, and the tensor holds at least one such block"));
    }
    let (mut lanes, mut images) = (Vec::new(), Vec::new());
    for _ in 0..stride.ilog2() {
        images.push(vec![0, 0]);
    }
    along(&mut lanes, 2, 0, 1, 16);
    let (mut down, mut across) = (rows.unsigned_abs(), columns);
    if rows == 128 {
        along(&mut lanes, 2, 0, 16, 128);
    } else {
        // Sixteen lanes of each warp hold the first block, the other sixteen a second one.
        let mut second = vec![0, 0];
        if height > down {
            second[0] = down;
            down *= 2;
        } else if width > across {
            second[1] = across;
            across *= 2;
        }
        lanes.push(second);
        along(&mut lanes, 2, 0, 16, 64);
    }
    along(&mut images, 2, 1, 1, columns);
    along(&mut images, 2, 0, down, height);
    along(&mut images, 2, 1, across, width);
    linear([("row", lanes), ("column", images)], shape).map_err(|error| fields.refuse(&error.to_string()))
}

/// One-byte scale factors: 32 rows in the lanes of each warp, then four adjacent factors of a row,
/// then further rows, then further factors.
fn scales(fields: &Fields<'_>, shape: &[u64]) -> Result<LinearLayout, Refusal> {
    let &[rows, factors] = shape else {
        return Err(fields.refuse("scale factors are a matrix of rows and factors along K"));
    };
    if rows < 32 {
        return Err(fields.refuse("scale factors have at least 32 rows"));
    }
    let (mut lanes, mut images) = (Vec::new(), Vec::new());
    along(&mut lanes, 2, 0, 1, 32);
    lanes.extend([vec![0, 0], vec![0, 0]]);
    along(&mut images, 2, 1, 1, factors.min(4));
    images.resize(2, vec![0, 0]);
    along(&mut images, 2, 0, 32, rows);
    if rows == 32 {
        images.push(vec![0, 0]);
    }
    along(&mut images, 2, 1, 4, factors);
    linear([("row", lanes), ("column", images)], shape).map_err(|error| fields.refuse(&error.to_string()))
}

fn is_not_empty(term: &Term) -> bool {
    term.list().is_none_or(|list| !list.is_empty())
}
