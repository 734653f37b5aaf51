//! Encodings of tensors in registers: the elements that each thread holds.
//!
//! Law: each encoding has a tile that the registers, lanes and warps of one block hold; the tensor
//! consists of such tiles. If the tensor is larger, registers repeat the tile, along the dimensions
//! in the encoding's order. If it is smaller, the tile wraps around and threads hold copies. The
//! blocks of a cluster have parts of the tensor. Dimensions are numbered as in the tensor's shape,
//! `dim0` first.

use super::attribute::{Encoding, Fields, Refusal};
use super::bases::{Bases, Input};
use crate::term::Term;

/// A tile, and the order of dimensions in which registers repeat it.
struct Tile {
    bases: Bases,
    order: Vec<usize>,
}

/// The order of the dimensions of a matrix: the last is the fastest, or the last but one.
fn matrix_order(rank: usize, is_row_major: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rank).rev().collect();
    if !is_row_major && rank > 1 {
        order.swap(0, 1);
    }
    order
}

/// The order of an operand: its K dimension is fastest.
fn operand_order(operand: usize, rank: usize) -> Vec<usize> {
    matrix_order(rank, operand == 0)
}

/// The map of an encoding for a tensor of this shape.
pub(super) fn bases(encoding: &Encoding, shape: &[u64]) -> Result<Bases, Refusal> {
    let fields = Fields { encoding };
    match encoding.name.as_str() {
        "blocked" => {
            let order = fields.order("order", shape.len())?;
            let mut bases = Bases::new(shape.len());
            for (name, input) in
                [("sizePerThread", Input::Register), ("threadsPerWarp", Input::Lane), ("warpsPerCTA", Input::Warp)]
            {
                bases.steps(input, &fields.extents(name, shape.len())?, &order, None);
            }
            let mut bases = finish(Tile { bases, order }, shape, &fields.cluster(shape.len())?)?;
            // Registers past the tensor are dropped; in other encodings they would hold copies.
            bases.images[Input::Register as usize].retain(|image| image.iter().any(|index| *index != 0));
            Ok(bases)
        }
        "nvidia_mma" => {
            let tile = nvidia(&fields, shape.len())?;
            finish(tile, shape, &fields.cluster(shape.len())?)
        }
        "amd_mfma" => mfma(&fields, shape),
        "amd_wmma" => wmma(&fields, shape),
        "dot_op" => operand(&fields, shape),
        "slice" => {
            let dimension = fields.number("dim")?;
            let dimension = usize::try_from(dimension).ok().filter(|dimension| *dimension <= shape.len());
            let dimension = dimension.ok_or_else(|| fields.refuse("dim is no dimension of the parent"))?;
            let mut whole = shape.to_vec();
            whole.insert(dimension, 1);
            Ok(bases_of_parent(&fields, &whole)?.without(dimension))
        }
        "linear" => linear(&fields, shape),
        _ => Err(fields.refuse("this encoding is not known as one of tensors in registers")),
    }
}

fn bases_of_parent(fields: &Fields<'_>, shape: &[u64]) -> Result<Bases, Refusal> {
    bases(fields.parent()?, shape)
}

/// The map of a tile over a tensor: repeated, wrapped, and divided among blocks.
fn finish(tile: Tile, shape: &[u64], cluster: &[Vec<u64>]) -> Result<Bases, Refusal> {
    let Tile { mut bases, order } = tile;
    let part = part(shape, cluster);
    for dimension in order {
        bases.fill(dimension, part.get(dimension).copied().unwrap_or(1));
    }
    bases.cut(&part);
    bases.blocks(cluster, &part);
    bases.cut(shape);
    bases.size = shape.to_vec();
    Ok(bases)
}

/// The shape of the part of a tensor that one block has.
pub(super) fn part(shape: &[u64], cluster: &[Vec<u64>]) -> Vec<u64> {
    let mut part = shape.to_vec();
    for image in cluster {
        for (extent, own) in part.iter_mut().zip(image) {
            if *own != 0 {
                *extent = (*extent / 2).max(1);
            }
        }
    }
    part
}

/// The tile of `mma.sync` and `wgmma`: 8 rows of 4 lanes, each with `width` adjacent elements along
/// the fast dimension; registers hold further rows, and then further columns.
fn nvidia_tile(bases: &mut Bases, [slow, fast]: [usize; 2], [rows, columns]: [u64; 2], width: u64) {
    bases.step(Input::Register, fast, width);
    bases.step(Input::Lane, fast, 4);
    bases.step(Input::Lane, slow, 8);
    bases.step(Input::Register, slow, rows / 8);
    bases.step(Input::Register, fast, columns / (4 * width));
}

/// The accumulator of an NVIDIA MMA, and the warps over it.
fn nvidia(fields: &Fields<'_>, rank: usize) -> Result<Tile, Refusal> {
    let version = fields.mma_version()?;
    let instruction = fields.extents_of_any_rank("instrShape")?;
    let (rows, columns) = match (version, instruction.as_slice()) {
        (2, [.., rows, columns]) if rank >= 2 && instruction.len() == rank => (*rows, *columns),
        (3, [rows, columns] | [rows, columns, _]) if rank >= 2 => (*rows, *columns),
        _ => return Err(fields.refuse("instrShape does not belong to this version and rank")),
    };
    if rows < 8 || columns < 8 {
        return Err(fields.refuse("an instruction has at least 8 rows and 8 columns"));
    }
    let mut bases = Bases::new(rank);
    nvidia_tile(&mut bases, [rank - 2, rank - 1], [rows, columns], 2);
    let warps = fields.extents("warpsPerCTA", rank)?;
    bases.steps(Input::Warp, &warps, &matrix_order(rank, version != 3), None);
    Ok(Tile { bases, order: matrix_order(rank, true) })
}

/// An operand of an MMA: as its parent, but along K every warp holds all elements.
fn operand(fields: &Fields<'_>, shape: &[u64]) -> Result<Bases, Refusal> {
    let rank = shape.len();
    let which = match fields.number("opIdx")? {
        0 => 0,
        1 => 1,
        _ => return Err(fields.refuse("opIdx is 0 or 1")),
    };
    if rank < 2 {
        return Err(fields.refuse("an operand has two dimensions or three"));
    }
    let (depth, own) = if which == 0 { (rank - 1, rank - 2) } else { (rank - 2, rank - 1) };
    let parent = fields.parent()?;
    let of = Fields { encoding: parent };
    let mut cluster = of.cluster(rank)?;
    for image in &mut cluster {
        if let Some(index) = image.get_mut(depth) {
            *index = 0;
        }
    }
    let order = operand_order(which, rank);
    match parent.name.as_str() {
        "nvidia_mma" => {
            let version = of.mma_version()?;
            if version == 3 && which == 1 {
                return Err(fields.refuse("wgmma reads operand B from shared memory, not from registers"));
            }
            let width = fields.power("kWidth")?;
            let mut bases = Bases::new(rank);
            let rows = if which == 0 { 16 } else { 8 };
            nvidia_tile(&mut bases, [own, depth], [rows, 8 * width], width);
            let warps = of.extents("warpsPerCTA", rank)?;
            bases.steps(Input::Warp, &warps, &matrix_order(rank, version != 3), Some(depth));
            finish(Tile { bases, order }, shape, &cluster)
        }
        "blocked" => {
            let along = of.order("order", rank)?;
            let mut each = of.extents("sizePerThread", rank)?;
            if let (Some(each), Some(whole)) = (each.get_mut(depth), shape.get(depth)) {
                *each = *whole;
            }
            let mut bases = Bases::new(rank);
            // Registers along K come first, whatever the order of the threads is.
            bases.steps(Input::Register, &each, &along, None);
            bases.steps(Input::Lane, &of.extents("threadsPerWarp", rank)?, &along, Some(depth));
            bases.steps(Input::Warp, &of.extents("warpsPerCTA", rank)?, &along, Some(depth));
            finish(Tile { bases, order: along }, shape, &cluster)
        }
        "amd_mfma" => mfma_operand(fields, &of, [depth, own], shape, &cluster),
        "amd_wmma" => wmma_operand(fields, &of, [depth, own], shape, &cluster),
        _ => Err(fields.refuse("the parent of an operand is blocked or an encoding of an instruction")),
    }
}

/// The accumulator of an MFMA: lanes along one dimension; the other lanes and the registers along
/// the other one, with four adjacent elements in a lane (one if they have 64 bits).
fn mfma(fields: &Fields<'_>, shape: &[u64]) -> Result<Bases, Refusal> {
    let rank = shape.len();
    let ([rows, columns], turned) = (fields.instruction(rank)?, fields.truth("isTransposed")?);
    let wide = fields.optional_number("elementBitWidth")? == Some(64);
    if rows == 64 && columns == 4 && !turned {
        return Err(fields.refuse("an MFMA of 64x4 is transposed"));
    }
    let [m, n] = [rank - 2, rank - 1];
    let ([across, along], [wide_extent, long_extent]) =
        if turned { ([m, n], [rows, columns]) } else { ([n, m], [columns, rows]) };
    let mut bases = Bases::new(rank);
    let beside = if wide { 1 } else { 4 };
    let groups = (64 / wide_extent.max(1)).max(1);
    bases.step(Input::Register, along, beside);
    bases.step(Input::Lane, across, wide_extent);
    bases.step(Input::Lane, along, groups);
    bases.step(Input::Register, along, long_extent / (beside * groups).max(1));
    tiles(fields, bases, shape, None, &fields.cluster(rank)?)
}

/// Adds the tiles of a warp, the warps and the repetitions, dimension by dimension, the last one
/// first.
fn tiles(
    fields: &Fields<'_>,
    mut bases: Bases,
    shape: &[u64],
    operand: Option<usize>,
    cluster: &[Vec<u64>],
) -> Result<Bases, Refusal> {
    let rank = shape.len();
    let each = fields.optional_extents("tilesPerWarp", rank)?;
    let warps = fields.extents("warpsPerCTA", rank)?;
    let part = part(shape, cluster);
    let order = match operand {
        Some(0) | None => matrix_order(rank, true),
        Some(_) => matrix_order(rank, false),
    };
    let depth = operand.map(|operand| if operand == 0 { rank - 1 } else { rank - 2 });
    for dimension in &order {
        let tiles = each.as_ref().and_then(|each| each.get(*dimension)).copied().unwrap_or(1);
        let warps = warps.get(*dimension).copied().unwrap_or(1);
        if depth != Some(*dimension) {
            bases.step(Input::Register, *dimension, tiles);
            bases.step(Input::Warp, *dimension, warps);
        }
        bases.fill(*dimension, part.get(*dimension).copied().unwrap_or(1));
    }
    // Warps are numbered along the last dimension first.
    let images = std::mem::take(&mut bases.images[Input::Warp as usize]);
    let along = |dimension: usize| {
        images.iter().filter(move |image| image.get(dimension).is_some_and(|index| *index != 0)).cloned()
    };
    let mut found = Vec::new();
    for dimension in matrix_order(rank, true) {
        let warps = warps.get(dimension).copied().unwrap_or(1);
        match depth {
            Some(depth) if depth == dimension => found.extend(vec![vec![0; rank]; warps.max(1).ilog2() as usize]),
            _ => found.extend(along(dimension)),
        }
    }
    bases.images[Input::Warp as usize] = found;
    bases.cut(&part);
    bases.blocks(cluster, &part);
    bases.cut(shape);
    Ok(bases)
}

/// An operand of an MFMA: `kWidth` elements of a lane along K, then lanes across, then lanes along
/// K.
fn mfma_operand(
    fields: &Fields<'_>,
    parent: &Fields<'_>,
    [depth, own]: [usize; 2],
    shape: &[u64],
    cluster: &[Vec<u64>],
) -> Result<Bases, Refusal> {
    let rank = shape.len();
    let [rows, columns] = parent.instruction(rank)?;
    let across = if own < depth { rows } else { columns };
    let width = fields.power("kWidth")?;
    let mut bases = Bases::new(rank);
    bases.step(Input::Register, depth, width);
    bases.step(Input::Lane, own, across);
    bases.step(Input::Lane, depth, (64 / across.max(1)).max(1));
    if across == 64 {
        // A 4x64 instruction has sixteen groups of four along K, all in one lane here.
        bases.step(Input::Register, depth, 16);
    }
    tiles(parent, bases, shape, Some(usize::from(own > depth)), cluster)
}

/// The accumulator of a 16 x 16 WMMA: 16 lanes across. Along the other dimension, the second half
/// of the lanes holds every other element (version 1), or the second eight (versions 2 and 3). A
/// 32 x 16 WMMA is two of them, in registers.
fn wmma(fields: &Fields<'_>, shape: &[u64]) -> Result<Bases, Refusal> {
    let rank = shape.len();
    let (version, turned) = (fields.number("version")?, fields.truth("isTranspose")?);
    if !(1..=3).contains(&version) || rank < 2 {
        return Err(fields.refuse("versions 1, 2 and 3 are known, of two dimensions or three"));
    }
    let [m, n] = [rank - 2, rank - 1];
    let [across, along] = if turned { [m, n] } else { [n, m] };
    let mut bases = Bases::new(rank);
    bases.step(Input::Lane, across, 16);
    if version == 1 {
        bases.step(Input::Lane, along, 2);
        bases.step(Input::Register, along, 8);
    } else {
        bases.step(Input::Register, along, 8);
        bases.step(Input::Lane, along, 2);
    }
    let order = matrix_order(rank, true);
    let tile = fields.wmma_tile()?;
    bases.step(Input::Register, along, tile[0].max(tile[1]) / 16);
    warp_tiles(fields, &mut bases, tile, None)?;
    finish(Tile { bases, order }, shape, &fields.cluster(rank)?)
}

/// Registers and warps in units of the instruction's tiles, with the bases in `ctaLayout`.
fn warp_tiles(fields: &Fields<'_>, bases: &mut Bases, tile: [u64; 2], depth: Option<usize>) -> Result<(), Refusal> {
    let rank = bases.size.len();
    let [registers, warps] = fields.warp_bases(rank)?;
    for (input, images) in [(Input::Register, registers), (Input::Warp, warps)] {
        for mut image in images {
            let mut scaled = vec![0; rank];
            if let Some(depth) = depth
                && let Some(index) = image.get_mut(depth)
            {
                // Registers that would repeat along K are not registers of the operand.
                if *index != 0 && input == Input::Register {
                    continue;
                }
                *index = 0;
            }
            for (dimension, index) in image.iter().enumerate() {
                let unit = match rank - dimension {
                    1 => tile[1],
                    2 => tile[0],
                    _ => 1,
                };
                if let Some(own) = scaled.get_mut(dimension) {
                    *own = index.saturating_mul(unit);
                }
                if let Some(size) = bases.size.get_mut(dimension)
                    && *index != 0
                {
                    *size = (*size).max(index.saturating_mul(unit).saturating_mul(2));
                }
            }
            bases.images[input as usize].push(scaled);
        }
    }
    Ok(())
}

fn wmma_operand(
    fields: &Fields<'_>,
    parent: &Fields<'_>,
    [depth, own]: [usize; 2],
    shape: &[u64],
    cluster: &[Vec<u64>],
) -> Result<Bases, Refusal> {
    let rank = shape.len();
    let version = parent.number("version")?;
    let width = fields.power("kWidth")?;
    let tile = parent.wmma_tile()?;
    let deep = match parent.get("instrShape").and_then(Term::numbers).as_deref() {
        Some([_, _, deep]) => deep.unsigned_abs(),
        _ => 16,
    };
    let mut bases = Bases::new(rank);
    bases.step(Input::Register, depth, width);
    bases.step(Input::Lane, own, 16);
    if version == 1 {
        bases.copies(Input::Lane, 2);
    } else {
        bases.step(Input::Lane, depth, 2);
    }
    // Counted as if the two halves of the lanes held different elements, also in version 1.
    bases.step(Input::Register, depth, deep / (2 * width));
    bases.step(Input::Register, own, tile[usize::from(own > depth)] / 16);
    warp_tiles(parent, &mut bases, tile, Some(depth))?;
    finish(Tile { bases, order: operand_order(usize::from(own > depth), rank) }, shape, cluster)
}

/// The bases as written. If the tensor is larger, the rest is in registers; if it is smaller, the
/// map wraps around.
fn linear(fields: &Fields<'_>, shape: &[u64]) -> Result<Bases, Refusal> {
    let rank = shape.len();
    let mut bases = Bases::new(rank);
    for (name, input) in
        [("register", Input::Register), ("lane", Input::Lane), ("warp", Input::Warp), ("block", Input::Block)]
    {
        bases.images[input as usize] = fields.images(name, rank)?;
    }
    for (dimension, size) in bases.size.iter_mut().enumerate() {
        let most = bases.images.iter().flatten().filter_map(|image| image.get(dimension)).max();
        *size = most.filter(|most| **most > 0).map_or(1, |most| 2 << most.ilog2());
    }
    let is_composite = |image: &Vec<u64>| image.iter().map(|index| index.count_ones()).sum::<u32>() > 1;
    let composite = bases.images.iter().flatten().any(is_composite);
    if composite && bases.size.iter().zip(shape).any(|(own, whole)| own > whole) {
        return Err(fields.refuse("the bases reach past the shape, and not each of them along one dimension"));
    }
    for dimension in 0..rank {
        bases.fill(dimension, shape.get(dimension).copied().unwrap_or(1));
    }
    bases.cut(shape);
    Ok(bases)
}
