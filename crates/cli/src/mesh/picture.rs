//! Pictures of the devices that hold each element.
//!
//! Law: the cell of an element names the devices that hold it: `0 4` are two copies, `0+2` two
//! summands. It has the colour of the first of them.

use tilewright::Tree;
use tilewright::draw::{Axis, Cell, Figure, Medium, Palette, Panel};
use tilewright::mesh::{MeshError, ShardedLayout};

/// The largest number of devices that are named in a cell.
const NAMED: usize = 8;

/// The devices that hold each element: the first mode downward, the others to the right.
pub fn holders(layout: &ShardedLayout, medium: Medium) -> Result<Figure<'_>, MeshError> {
    let shape = layout.shape();
    let modes: Vec<Tree<i64>> = shape.modes().collect();
    let (rows, columns) =
        modes.split_first().map_or((Axis::flat(1), &[] as &[_]), |(first, rest)| (Axis::of(first), rest));
    let height = rows.len();
    let devices = layout.mesh().size() as i64;
    let panel = Panel::grid(layout.to_string(), rows, Axis::of_modes(columns), move |row, column, cell: &mut Cell| {
        // Every cell is an element, so its positions exist.
        let Ok(places) = layout.places(row + height * column) else { return };
        let copies = usize::try_from(layout.copies()).unwrap_or(1);
        let of_copy = |copy: usize| {
            let summands = places.iter().skip(copy).step_by(copies).take(NAMED + 1);
            let ranks: Vec<String> = summands.map(|(rank, _)| rank.to_string()).collect();
            short(&ranks, "+")
        };
        let named: Vec<String> = (0..copies.min(NAMED + 1)).map(of_copy).collect();
        cell.label = short(&named, " ");
        if let Some((rank, offset)) = places.first() {
            cell.fill = Palette::Distinct.paint(*rank as i64, devices);
            if medium == Medium::Page {
                cell.title = format!("element ({row},{column}) at offset {offset} of rank {}", cell.label);
            }
        }
    });
    let caption =
        format!("The ranks that hold each element, over {}: copies side by side, summands with +.", layout.mesh());
    Ok(Figure::row([panel]).captioned(caption))
}

/// The parts joined, as many as a cell can show.
fn short(parts: &[String], between: &str) -> String {
    match parts.get(..NAMED) {
        Some(shown) if parts.len() > NAMED => format!("{}{between}..", shown.join(between)),
        _ => parts.join(between),
    }
}
