//! Draws a scene item by item on a surface that supports paths, texts and filled rectangles.

use super::parts::rounded;
use super::{Anchor, Frame, Item, Point, Scene, Step, Stroke, Tile};
use crate::colour::Rgb;
use crate::theme::{Mode, Paint};

/// The drawing operations of such a surface.
pub(crate) trait Pen {
    fn mode(&self) -> Mode;

    /// Draws a path, filled or with a line, or both.
    fn path(&mut self, steps: &[Step], fill: Option<Paint>, stroke: Option<Stroke>);

    /// Fills a rectangle without a border.
    fn fill(&mut self, frame: Frame, rgb: Rgb);

    /// Draws a text of this size.
    fn text(&mut self, at: Point, text: &str, size: f64, strong: bool, anchor: Anchor, rgb: Rgb);

    /// Draws the image with this index.
    fn image(&mut self, scene: &Scene, frame: Frame, image: usize);

    /// Draws all items, in order.
    fn scene(&mut self, scene: &Scene) {
        for item in scene.items() {
            match item {
                Item::Tile(tile) => self.tile(scene, tile),
                Item::Line { from, to, stroke } => {
                    self.path(&[Step::Move(*from), Step::Line(*to)], None, Some(*stroke));
                }
                Item::Path { steps, fill, stroke } => self.path(scene.steps(steps.clone()), *fill, *stroke),
                Item::Text { at, text, style } => {
                    let rgb = style.paint.rgb(self.mode());
                    self.text(*at, scene.text_of(*text), style.size, style.strong, style.anchor, rgb);
                }
                Item::Image { frame, image } => self.image(scene, *frame, *image),
                Item::Open { .. } | Item::Close => {}
            }
        }
    }

    /// Draws a tile and its lines of text.
    fn tile(&mut self, scene: &Scene, tile: &Tile) {
        if tile.radius > 0.0 || tile.border.is_some() {
            self.path(&rounded(tile.frame, tile.radius), Some(tile.fill), tile.border);
        } else {
            self.fill(tile.frame, tile.fill.rgb(self.mode()));
        }
        let rgb = if tile.faint { Paint::Faint.rgb(self.mode()) } else { tile.fill.text(self.mode()) };
        for (span, at, size) in tile.lines() {
            self.text(at, scene.text_of(span), size, false, Anchor::Middle, rgb);
        }
    }
}
