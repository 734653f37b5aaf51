//! Stacks of entries, and the arrows and refinements between them.
//!
//! Law: a stack is drawn upward, the first entry, the fastest, at the bottom, as memory grows; a
//! row of the board is one leaf. An entry of a coarse tuple is a block as tall as the leaves over
//! it. Equal entries that an arrow joins have the same fill; entries without an arrow are pale.
//!
//! Lengths are multiples of the size of a terminal character, so that stacks look the same in a
//! terminal.

use tilewright_layout::{Profile, Tree};

use crate::measure::text_width;
use crate::nesting::Side;
use crate::scene::{Anchor, Point, Scene, Stroke, TextStyle, Tile};
use crate::terminal::{ACROSS, DOWN};
use crate::theme::{self, Paint};

/// The distance from one row to the next, which is also the height of a tile.
const PITCH: f64 = 3.0 * DOWN;
const HEIGHT: f64 = 2.0 * DOWN;
/// The smallest width of a tile; widths are multiples of it.
const WIDTH: f64 = 7.0 * UNIT;
const UNIT: f64 = ACROSS;
/// The distance from one stack to the next, across arrows, and across refinements.
const GULF: f64 = 15.0 * UNIT;
const JOINT: f64 = 4.0 * UNIT;
/// The distance from a tuple's bracket to that of the enclosing tuple.
const STEP: f64 = 2.0 * UNIT;

/// An entry: its number, its rows, and its fill.
pub(super) struct Block {
    pub(super) label: i64,
    pub(super) start: usize,
    pub(super) rows: usize,
    pub(super) fill: Paint,
}

impl Block {
    /// The entries of a tuple with these fills, each one row tall.
    pub(super) fn leaves(entries: &[i64], fills: &[Paint]) -> Vec<Block> {
        let fill = |row: usize| fills.get(row).copied().unwrap_or(Paint::Void);
        entries
            .iter()
            .enumerate()
            .map(|(row, label)| Block { label: *label, start: row, rows: 1, fill: fill(row) })
            .collect()
    }

    /// The entries of a tuple, each as tall as its part of the refinement.
    pub(super) fn over(entries: &[i64], parts: &[Tree<i64>], fills: &[Paint]) -> Vec<Block> {
        let mut start = 0;
        let mut blocks = Vec::new();
        for (place, (label, part)) in entries.iter().zip(parts).enumerate() {
            let rows = part.leaves().len();
            blocks.push(Block { label: *label, start, rows, fill: fills.get(place).copied().unwrap_or(Paint::Void) });
            start += rows;
        }
        blocks
    }
}

/// The part of a picture that is drawn so far, from left to right.
#[derive(Default)]
pub(super) struct Board {
    scene: Scene,
    /// The right edge of the part that is drawn.
    edge: f64,
}

/// The position of a stack.
#[derive(Clone, Copy)]
pub(super) struct Stack {
    pub(super) left: f64,
    pub(super) right: f64,
}

/// The middle of a row, or of a range of rows.
fn middle(start: usize, rows: usize) -> f64 {
    -(start as f64 + rows as f64 / 2.0) * PITCH
}

impl Board {
    /// The width of the space to the left of a stack for its nesting; 0 if it has none.
    pub(super) fn tree_before(&mut self, profile: &Profile) -> f64 {
        let depth = profile.depth();
        if depth > 1 || profile.leaves() != profile.rank() { depth as f64 * STEP + UNIT } else { 0.0 }
    }

    /// Draws the nesting of rows, beside a stack.
    pub(super) fn tree(&mut self, profile: &Profile, blocks: &[Block], at: f64, side: Side) {
        if profile.depth() < 2 {
            return;
        }
        let places = blocks.iter().map(|block| Point::new(at, middle(block.start, block.rows)));
        if let Ok(places) = Tree::new(profile.clone(), places) {
            self.scene.nesting(&places, side, STEP, Stroke::new(Paint::Faint, theme::BORDER));
        }
        let reach = profile.depth() as f64 * STEP;
        if side == Side::Right {
            self.edge = self.edge.max(at + reach);
        }
    }

    /// A stack whose left edge is `gap` to the right of the part that is drawn, with its name
    /// below.
    pub(super) fn stack(&mut self, gap: f64, blocks: &[Block], name: &str) -> Stack {
        let text =
            |block: &Block| text_width(&block.label.to_string(), theme::CELL_TEXT, false) * theme::OTHER_FONTS + 14.0;
        let wide = blocks.iter().map(text).fold(WIDTH, f64::max);
        let wide = (wide / UNIT).ceil() * UNIT;
        let left = self.edge + gap;
        for block in blocks.iter().filter(|block| block.rows > 0) {
            let height = block.rows as f64 * PITCH - (PITCH - HEIGHT);
            let tile = Tile::at(left, middle(block.start, block.rows) - height / 2.0, wide, height);
            let border = if block.fill == Paint::Void { Paint::Faint } else { Paint::Border };
            let tile = tile.filled(block.fill).rounded(5.0).bordered(Stroke::new(border, 1.0));
            self.scene.tile(tile, &block.label.to_string(), "", &format!("{name}: entry {}", block.label));
        }
        let centre = left + wide / 2.0;
        if blocks.iter().all(|block| block.rows == 0) {
            self.scene.text(Point::new(centre, middle(0, 1)), "()", TextStyle::caption().anchored(Anchor::Middle));
        }
        self.scene.text(Point::new(centre, PITCH / 3.0), name, TextStyle::caption().anchored(Anchor::Middle));
        self.edge = left + wide;
        Stack { left, right: left + wide }
    }

    /// As [`Board::stack`], with space for arrows.
    pub(super) fn beyond_arrows(&mut self, blocks: &[Block], name: &str) -> Stack {
        self.stack(GULF, blocks, name)
    }

    /// As [`Board::stack`], with space for the lines of a refinement.
    pub(super) fn beyond_joints(&mut self, blocks: &[Block], name: &str) -> Stack {
        self.stack(JOINT, blocks, name)
    }

    /// The arrows between two stacks, from each row of the first to its image; rows that are sent
    /// to the base point end in `*`.
    pub(super) fn arrows(&mut self, from: Stack, to: Stack, images: impl Iterator<Item = Option<usize>>) {
        let stroke = Stroke::new(Paint::Ink, 1.5);
        for (row, image) in images.enumerate() {
            let start = Point::new(from.right + 3.0, middle(row, 1));
            match image {
                Some(target) => {
                    let tip = Point::new(to.left - 3.0, middle(target, 1));
                    if target == row {
                        self.scene.arrow(&[start, tip], stroke);
                    } else {
                        let bend = (tip.x - start.x) * 0.45;
                        let controls = [Point::new(start.x + bend, start.y), Point::new(tip.x - bend, tip.y)];
                        self.scene.curved_arrow([start, controls[0], controls[1], tip], stroke);
                    }
                }
                None => {
                    let end = Point::new(start.x + 3.0 * UNIT, start.y);
                    self.scene.line(start, end, Stroke::new(Paint::Faint, 1.25).dashed());
                    self.scene.text(
                        Point::new(end.x + UNIT, end.y),
                        "*",
                        TextStyle::heading().anchored(Anchor::Middle),
                    );
                }
            }
        }
    }

    /// The lines of a refinement: from each block to the rows of its leaves, if it has several.
    pub(super) fn joints(&mut self, blocks: &[Block], coarse: f64, fine: f64) {
        let stroke = Stroke::new(Paint::Faint, theme::BORDER);
        let turn = (coarse + fine) / 2.0;
        for block in blocks.iter().filter(|block| block.rows > 0) {
            let own = Point::new(coarse, middle(block.start, block.rows));
            if block.rows == 1 {
                self.scene.line(own, Point::new(fine, own.y), stroke);
                continue;
            }
            self.scene.line(own, Point::new(turn, own.y), stroke);
            let (low, high) = (middle(block.start, 1), middle(block.start + block.rows - 1, 1));
            self.scene.line(Point::new(turn, high), Point::new(turn, low), stroke);
            for row in block.start..block.start + block.rows {
                self.scene.line(Point::new(turn, middle(row, 1)), Point::new(fine, middle(row, 1)), stroke);
            }
        }
    }

    /// Writes beside each row of a stack the product of the rows below: the stride of entries that
    /// are sent there.
    pub(super) fn strides(&mut self, at: Stack, entries: &[i64]) {
        let mut step = Some(1_i64);
        let mut widest: f64 = 0.0;
        for (row, extent) in entries.iter().enumerate() {
            let text = step.map_or_else(|| "past 64 bits".to_owned(), |step| step.to_string());
            widest = widest.max(text_width(&text, theme::TEXT, false) * theme::OTHER_FONTS);
            self.scene.text(Point::new(at.right + 1.5 * UNIT, middle(row, 1)), &text, TextStyle::caption());
            step = step.and_then(|step| step.checked_mul(*extent));
        }
        let name = "stride";
        self.scene.text(Point::new(at.right + 1.5 * UNIT, PITCH / 3.0), name, TextStyle::caption());
        let name = text_width(name, theme::TEXT, false) * theme::OTHER_FONTS;
        self.edge = at.right + ((widest.max(name) + 1.5 * UNIT) / UNIT).ceil() * UNIT;
    }

    /// The right edge of the part that is drawn.
    pub(super) fn right(&self) -> f64 {
        self.edge
    }

    /// Moves to the right without drawing.
    pub(super) fn skip(&mut self, width: f64) {
        self.edge += width;
    }

    /// The scene.
    pub(super) fn finish(self) -> Scene {
        self.scene
    }
}
