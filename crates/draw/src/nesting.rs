//! Nesting trees: the profile of a tuple, drawn as lines that join its leaves.
//!
//! Law: every inner node of the profile becomes one bracket, which joins exactly its modes, in
//! order. The brackets of deeper tuples are nearer to the leaves.

use tilewright_layout::Tree;

use crate::scene::{Point, Scene, Step, Stroke};

/// On which side of its leaves a tree grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// To the left.
    Left,
    /// To the right.
    Right,
    /// Upward.
    Above,
    /// Downward.
    Below,
}

impl Side {
    /// The distance of a point outward, and its position across.
    fn split(self, at: Point) -> (f64, f64) {
        match self {
            Side::Left => (-at.x, at.y),
            Side::Right => (at.x, at.y),
            Side::Above => (-at.y, at.x),
            Side::Below => (at.y, at.x),
        }
    }

    fn joined(self, out: f64, across: f64) -> Point {
        match self {
            Side::Left => Point::new(-out, across),
            Side::Right => Point::new(out, across),
            Side::Above => Point::new(across, -out),
            Side::Below => Point::new(across, out),
        }
    }
}

impl Scene {
    /// Draws the nesting of `leaves`, a tree whose leaves are points, on one side of them. Each
    /// tuple becomes a bracket `step` further out than its deepest mode. Returns the point of the
    /// root.
    ///
    /// ```
    /// use tilewright_draw::{Paint, Point, Scene, Side, Stroke};
    /// use tilewright_layout::Tree;
    ///
    /// // ((a,b),c), the leaves below one another.
    /// let shape: Tree<i64> = "((0,1),2)".parse().unwrap();
    /// let places = shape.map(|row| Point::new(0.0, 20.0 * *row as f64));
    /// let mut scene = Scene::new();
    /// let root = scene.nesting(&places, Side::Left, 12.0, Stroke::new(Paint::Faint, 1.0));
    /// assert_eq!(root, Point::new(-24.0, 25.0));
    /// ```
    pub fn nesting(&mut self, leaves: &Tree<Point>, side: Side, step: f64, stroke: Stroke) -> Point {
        if leaves.is_leaf() {
            return leaves.leaves().first().copied().unwrap_or_default();
        }
        let ends: Vec<Point> = leaves.modes().map(|mode| self.nesting(&mode, side, step, stroke)).collect();
        let places = || ends.iter().map(|end| side.split(*end));
        let out = places().map(|(out, _)| out).fold(f64::NEG_INFINITY, f64::max) + step;
        let least = places().map(|(_, across)| across).fold(f64::INFINITY, f64::min);
        let most = places().map(|(_, across)| across).fold(f64::NEG_INFINITY, f64::max);
        if ends.is_empty() {
            return Point::default();
        }
        let mut steps = vec![Step::Move(side.joined(out, least)), Step::Line(side.joined(out, most))];
        for (far, across) in places() {
            steps.extend([Step::Move(side.joined(out, across)), Step::Line(side.joined(far, across))]);
        }
        self.path(&steps, None, Some(stroke));
        side.joined(out, (least + most) / 2.0)
    }
}
