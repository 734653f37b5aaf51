//! Scenes in the terminal, drawn on a canvas of characters.
//!
//! Law: a character corresponds to a fixed rectangle of the scene, and each item is drawn on the
//! characters that it crosses. Borders and lines become box-drawing characters that join where
//! lines meet; arrowheads become triangles; text is never overwritten. A scene wider than the
//! window is narrowed until it fits.

use std::f64::consts::PI;

use crate::scene::{Anchor, Frame, Item, Point, Scene, Step, Tile};
use crate::terminal::{Ink, Line, Picture, Window, width_of};
use crate::theme::Paint;

/// The width and height of a character in the scene, in CSS pixels.
pub(crate) const ACROSS: f64 = 7.0;
pub(crate) const DOWN: f64 = 16.0;
/// The largest number of characters of a canvas, in each direction.
const MAX_SIDE: usize = 4000;

/// Bits for the lines that leave the middle of a character: upward, to the right, downward, to the
/// left.
const UP: u8 = 1;
const RIGHT: u8 = 2;
const BELOW: u8 = 4;
const LEFT: u8 = 8;

#[derive(Debug, Clone, Copy, Default)]
struct Spot {
    lines: u8,
    sign: Option<char>,
    ink: Ink,
    /// Whether the character is text, which lines do not overwrite.
    text: bool,
}

struct Canvas {
    origin: Point,
    across: f64,
    width: usize,
    spots: Vec<Spot>,
}

pub(crate) fn picture(scene: &Scene, window: Window) -> Picture {
    let bounds = scene.bounds();
    let room = window.columns.clamp(8, MAX_SIDE) - 1;
    let across = ACROSS.max(bounds.width / room as f64);
    let width = ((bounds.width / across).ceil() as usize + 1).min(MAX_SIDE);
    let height = ((bounds.height / DOWN).ceil() as usize + 1).min(MAX_SIDE);
    let mut canvas = Canvas {
        origin: Point::new(bounds.x, bounds.y),
        across,
        width,
        spots: vec![Spot::default(); width.saturating_mul(height)],
    };
    for item in scene.items() {
        match item {
            Item::Tile(tile) => canvas.tile(scene, tile),
            Item::Line { from, to, stroke } => canvas.line(*from, *to, Ink::Text(stroke.paint)),
            Item::Path { steps, fill, stroke } => {
                let steps = scene.steps(steps.clone());
                match (stroke, fill) {
                    (Some(stroke), _) => canvas.path(steps, Ink::Text(stroke.paint)),
                    (None, Some(fill)) => canvas.arrowhead(steps, *fill),
                    (None, None) => {}
                }
            }
            Item::Text { at, text, style } => {
                let text = scene.text_of(*text);
                let ink = if style.strong { Ink::Strong } else { Ink::Text(style.paint) };
                canvas.text(*at, text, style.anchor, ink);
            }
            Item::Image { .. } | Item::Open { .. } | Item::Close => {}
        }
    }
    canvas.picture()
}

impl Canvas {
    fn column(&self, x: f64) -> i64 {
        ((x - self.origin.x) / self.across).round() as i64
    }

    fn row(&self, y: f64) -> i64 {
        ((y - self.origin.y) / DOWN).round() as i64
    }

    fn spot(&mut self, row: i64, column: i64) -> Option<&mut Spot> {
        let (row, column) = (usize::try_from(row).ok()?, usize::try_from(column).ok()?);
        if column < self.width { self.spots.get_mut(row.checked_mul(self.width)?.checked_add(column)?) } else { None }
    }

    fn join(&mut self, row: i64, column: i64, lines: u8, ink: Ink) {
        if let Some(spot) = self.spot(row, column)
            && !spot.text
        {
            spot.lines |= lines;
            spot.ink = ink;
        }
    }

    fn line(&mut self, from: Point, to: Point, ink: Ink) {
        let (mut row, mut column) = (self.row(from.y), self.column(from.x));
        let (last_row, last_column) = (self.row(to.y), self.column(to.x));
        let (rows, columns) = ((last_row - row).abs(), (last_column - column).abs());
        if rows == 0 || columns == 0 {
            // Along a row or a column, each character joins the previous one.
            let (down, right) = ((last_row - row).signum(), (last_column - column).signum());
            for _ in 0..rows.max(columns) {
                let (out, into) = match (down, right) {
                    (1, _) => (BELOW, UP),
                    (-1, _) => (UP, BELOW),
                    (_, 1) => (RIGHT, LEFT),
                    _ => (LEFT, RIGHT),
                };
                self.join(row, column, out, ink);
                (row, column) = (row + down, column + right);
                self.join(row, column, into, ink);
            }
            return;
        }
        let steps = rows.max(columns);
        let sign = if (last_row > row) == (last_column > column) { '╲' } else { '╱' };
        for step in 0..=steps {
            let part = |from: i64, to: i64| from + ((to - from) as f64 * step as f64 / steps as f64).round() as i64;
            let (row, column) = (part(row, last_row), part(column, last_column));
            if let Some(spot) = self.spot(row, column)
                && !spot.text
                && spot.lines == 0
            {
                (spot.sign, spot.ink) = (Some(sign), ink);
            }
        }
    }

    fn path(&mut self, steps: &[Step], ink: Ink) {
        let (mut start, mut here) = (Point::default(), Point::default());
        for step in steps {
            match *step {
                Step::Move(a) => (start, here) = (a, a),
                Step::Line(a) => {
                    self.line(here, a, ink);
                    here = a;
                }
                Step::Curve(a, b, c) => {
                    let from = here;
                    for piece in 1..=8 {
                        let t = f64::from(piece) / 8.0;
                        let mix = |p: f64, q: f64, r: f64, s: f64| {
                            let u = 1.0 - t;
                            u * u * u * p + 3.0 * u * u * t * q + 3.0 * u * t * t * r + t * t * t * s
                        };
                        let next = Point::new(mix(from.x, a.x, b.x, c.x), mix(from.y, a.y, b.y, c.y));
                        self.line(here, next, ink);
                        here = next;
                    }
                }
                Step::Close => {
                    self.line(here, start, ink);
                    here = start;
                }
            }
        }
    }

    /// Draws a filled triangle as an arrowhead, whose first point is the tip.
    fn arrowhead(&mut self, steps: &[Step], paint: Paint) {
        let [Step::Move(tip), Step::Line(a), Step::Line(b), Step::Close] = steps else { return };
        let back = Point::new((a.x + b.x) / 2.0, (a.y + b.y) / 2.0);
        let angle = (tip.y - back.y).atan2(tip.x - back.x) / PI;
        let sign = match angle {
            angle if angle.abs() <= 0.25 => '▶',
            angle if angle.abs() >= 0.75 => '◀',
            angle if angle > 0.0 => '▼',
            _ => '▲',
        };
        let (row, column) = (self.row(tip.y), self.column(tip.x));
        if let Some(spot) = self.spot(row, column)
            && !spot.text
        {
            (spot.sign, spot.ink, spot.text) = (Some(sign), Ink::Text(paint), true);
        }
    }

    fn text(&mut self, at: Point, text: &str, anchor: Anchor, ink: Ink) {
        let width = i64::try_from(width_of(text)).unwrap_or(i64::MAX);
        let begin = match anchor {
            Anchor::Start => self.column(at.x),
            Anchor::Middle => self.column(at.x) - width / 2,
            Anchor::End => self.column(at.x) - width,
        };
        let row = self.row(at.y);
        for (column, sign) in (begin..).zip(text.chars()) {
            if let Some(spot) = self.spot(row, column) {
                *spot = Spot { lines: 0, sign: Some(sign), ink, text: true };
            }
        }
    }

    fn tile(&mut self, scene: &Scene, tile: &Tile) {
        let Frame { x, y, width, height } = tile.frame;
        let (top, left) = (self.row(y), self.column(x));
        let (bottom, right) = (self.row(y + height), self.column(x + width));
        let wide = i64::try_from(self.width).unwrap_or(i64::MAX);
        for row in top..bottom.max(top + 1).min(top + i64::try_from(MAX_SIDE).unwrap_or(0)) {
            for column in left.max(0)..right.min(wide) {
                if let Some(spot) = self.spot(row, column) {
                    *spot = Spot { lines: 0, sign: Some(' '), ink: Ink::On(tile.fill), text: false };
                }
            }
        }
        if let Some(border) = tile.border {
            let corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)];
            for pair in corners.windows(2) {
                if let [(x1, y1), (x2, y2)] = *pair {
                    self.line(Point::new(x1, y1), Point::new(x2, y2), Ink::Text(border.paint));
                }
            }
        }
        let ink = if tile.faint { Ink::Faint } else { Ink::On(tile.fill) };
        let lines: Vec<&str> = [tile.label, tile.second]
            .map(|span| scene.text_of(span))
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect();
        let middle = tile.frame.middle();
        let start = middle.y - (lines.len() as f64 - 1.0) / 2.0 * DOWN;
        for (line, text) in lines.into_iter().enumerate() {
            self.text(Point::new(middle.x, start + line as f64 * DOWN), text, Anchor::Middle, ink);
        }
    }

    fn picture(&self) -> Picture {
        let mut picture = Picture::default();
        for row in self.spots.chunks(self.width.max(1)) {
            let mut line = Line::default();
            for run in row.chunk_by(|a, b| a.ink == b.ink) {
                let text: String = run.iter().map(|spot| sign_of(*spot)).collect();
                line.push(text, run.first().map_or(Ink::Plain, |spot| spot.ink));
            }
            picture.lines.push(line);
        }
        // Removes empty lines at the end of the scene.
        while picture
            .lines
            .last()
            .is_some_and(|line| line.0.iter().all(|(text, ink)| text.trim().is_empty() && !matches!(ink, Ink::On(_))))
        {
            picture.lines.pop();
        }
        picture
    }
}

fn sign_of(spot: Spot) -> char {
    if spot.text || spot.lines == 0 {
        return spot.sign.unwrap_or(' ');
    }
    const JOINED: [char; 16] = [' ', '│', '─', '└', '│', '│', '┌', '├', '─', '┘', '─', '┴', '┐', '┤', '┬', '┼'];
    JOINED.get(usize::from(spot.lines)).copied().unwrap_or('┼')
}
