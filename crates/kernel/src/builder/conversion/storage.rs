//! The layout of a tile in shared memory between two distributions.
//!
//! Law: the layout is the one of the candidates with the fewest wavefronts of stores and loads
//! together. The candidates are the order of the tile and the orders of both distributions, each
//! without a swizzle and with the best swizzle that keeps accesses as wide
//! ([`tilewright_layout::analysis::suggest_swizzle`]).

use tilewright_layout::analysis::{Access, Banks, suggest_swizzle};
use tilewright_layout::{Coordinate, Layout};

use crate::distribution::Distribution;
use crate::error::Reason;

/// The layout of the array, from elements of the tile to offsets, as text.
pub(super) fn storage(from: &Distribution, to: &Distribution, bits: u32) -> Result<String, Reason> {
    let size = from.tile().product()?;
    let plain = Layout::mode_of(size, i64::from(size > 1))?;
    let candidates = [Some(plain.clone()), in_order_of(to), in_order_of(from)];
    let mut best: Option<(i64, String)> = None;
    for candidate in candidates.into_iter().flatten() {
        let Some((wavefronts, text)) = considered(&candidate, [from, to], bits) else { continue };
        if best.as_ref().is_none_or(|(least, _)| wavefronts < *least) {
            best = Some((wavefronts, text));
        }
    }
    Ok(best.map_or(plain.to_string(), |(_, text)| text))
}

/// The layout in which the values of each thread are contiguous.
fn in_order_of(held: &Distribution) -> Option<Layout> {
    let leaves = [1, 0].into_iter().filter_map(|mode| held.layout().mode(mode));
    let leaves: Vec<_> = leaves.flat_map(|part| part.leaves().to_vec()).filter(|leaf| leaf.stride != 0).collect();
    let modes: Vec<Layout> =
        leaves.iter().map(|leaf| Layout::mode_of(leaf.extent, leaf.stride)).collect::<Result<_, _>>().ok()?;
    Layout::tuple(&modes).ok()?.right_inverse().ok()
}

/// The wavefronts of both sides with the best swizzle, and the layout with that swizzle.
fn considered(storage: &Layout, sides: [&Distribution; 2], bits: u32) -> Option<(i64, String)> {
    let mut accesses = Vec::new();
    for held in sides {
        let (_, layout) = held.first_copies().ok()?;
        // The view that a thread reads, and the view of its coordinates, must exist.
        Layout::<Coordinate>::identity(&storage.shape()).ok()?.compose(&layout).ok()?;
        accesses.push(access(storage, &layout, bits)?);
    }
    let advice = suggest_swizzle(storage, &accesses, Banks::NVIDIA).ok()?;
    Some(match advice.suggestions.first() {
        Some(better) if better.wavefronts() < advice.wavefronts() => (better.wavefronts(), better.text()),
        _ => (advice.wavefronts(), storage.to_string()),
    })
}

/// The access of one side, with the widest vectors that the layout allows.
fn access(storage: &Layout, layout: &Layout, bits: u32) -> Option<Access> {
    let (threads, values) = (layout.mode(0)?, layout.mode(1)?);
    let values = values.flatten().ok()?;
    let places = storage.compose(&values).ok()?;
    // The values in memory order: each part of a value's number with its offset.
    let parts = places.modes().zip(values.modes());
    let mut leaves: Vec<(i64, i64, i64)> = Vec::new();
    for (place, value) in parts {
        let (place, value) = (place.flatten().ok()?, value.flatten().ok()?);
        let step = value.leaves().first()?.stride;
        let mut below = 1;
        for leaf in place.leaves() {
            leaves.push((leaf.stride, leaf.extent, step * below));
            below *= leaf.extent;
        }
    }
    leaves.sort_unstable();
    let mut vector = 1;
    for (stride, extent, _) in &leaves {
        if *stride != vector {
            break;
        }
        vector *= extent;
    }
    let at = storage.compose(&threads.flatten().ok()?).ok()?;
    let others = leaves.iter().map(|leaf| leaf.0).filter(|stride| *stride >= vector);
    let others: Vec<i64> = at.leaves().iter().map(|leaf| leaf.stride).chain(others).collect();
    let most = i64::from(128 / bits);
    let mut width = 1;
    while width < most && vector % (2 * width) == 0 && others.iter().all(|stride| stride % (2 * width) == 0) {
        width *= 2;
    }
    let modes: Vec<Layout> =
        leaves.iter().map(|(_, extent, step)| Layout::mode_of(*extent, *step)).collect::<Result<_, _>>().ok()?;
    let values = if modes.is_empty() { Layout::mode_of(1, 0).ok()? } else { Layout::tuple(&modes).ok()? };
    Access::new("side", &Layout::tuple([&threads, &values]).ok()?, i64::from(bits), width).ok()
}
