//! Tensors that are sharded over devices, as JAX and PyTorch print them: who holds what.
//!
//! Law: the cell of an element names the devices that hold it, copies side by side and summands
//! with `+`. Its colour is that of the first of them.

use tilewright_draw::{Axis, Cell, Figure, Palette, Panel};
use tilewright_layout::Tree;
use tilewright_read::ShardedLayout;

use crate::failure::Failure;

/// The most elements that are drawn.
const MOST_DRAWN: i64 = 1 << 14;
/// How many devices are named in a cell.
const NAMED: usize = 4;

/// The first mode of a tensor downward, the others to the right, with the devices of each element.
///
/// Errors: the tensor has more elements than are drawn.
pub fn holders(layout: &ShardedLayout) -> Result<Figure<'static>, Failure> {
    let size = layout.size();
    if size > MOST_DRAWN {
        let advice = "a smaller shape in the line above the text, such as # shape: (16,12), shows the same pattern";
        return Err(Failure::choice(format!(
            "a picture has at most {MOST_DRAWN} elements, and this has {size}: {advice}"
        )));
    }
    let shape = layout.shape();
    let modes: Vec<Tree<i64>> = shape.modes().collect();
    let (rows, columns) =
        modes.split_first().map_or((Axis::flat(1), &[] as &[_]), |(first, rest)| (Axis::of(first), rest));
    let (height, devices) = (rows.len(), layout.mesh().size() as i64);
    let copies = usize::try_from(layout.copies()).unwrap_or(1).max(1);
    let own = layout.clone();
    let panel = Panel::grid(layout.to_string(), rows, Axis::of_modes(columns), move |row, column, cell: &mut Cell| {
        // Every cell is an element, so its places exist.
        let Ok(places) = own.places(row + height * column) else { return };
        let named = (0..copies.min(NAMED + 1)).map(|copy| {
            let summands = places.iter().skip(copy).step_by(copies);
            shortened(summands.take(NAMED + 1).map(|(rank, _)| rank.to_string()), "+")
        });
        cell.label = shortened(named, " ");
        if let Some((rank, offset)) = places.first() {
            cell.fill = Palette::Distinct.paint(*rank as i64, devices);
            cell.title = format!("element ({row},{column}) is element {offset} in the memory of device {}", cell.label);
        }
    });
    let caption = format!("The devices that hold each element, on the mesh {}.", layout.mesh());
    Ok(Figure::row([panel]).captioned(caption))
}

/// As many parts as a cell shows.
fn shortened(parts: impl Iterator<Item = String>, between: &str) -> String {
    let mut parts: Vec<String> = parts.collect();
    if parts.len() > NAMED {
        parts.truncate(NAMED);
        parts.push("..".to_owned());
    }
    parts.join(between)
}
