//! Arrows: a line and a filled triangle whose tip is the end of the arrow.

use crate::scene::{Point, Scene, Step, Stroke};

impl Scene {
    /// Adds a straight line through these points with an arrowhead at the last.
    pub fn arrow(&mut self, points: &[Point], stroke: Stroke) {
        let [front @ .., before, tip] = points else { return };
        let mut steps: Vec<Step> = Vec::with_capacity(points.len());
        let neck = arrow_neck(*before, *tip, stroke.width);
        let all = front.iter().chain([before]).copied().chain([neck]);
        steps.extend(all.enumerate().map(|(at, point)| if at == 0 { Step::Move(point) } else { Step::Line(point) }));
        self.path(&steps, None, Some(stroke));
        self.arrowhead(*before, *tip, stroke);
    }

    /// Adds a curve from one point to another, with control points, and an arrowhead at its end.
    pub fn curved_arrow(&mut self, [from, first, second, tip]: [Point; 4], stroke: Stroke) {
        let neck = arrow_neck(second, tip, stroke.width);
        self.path(&[Step::Move(from), Step::Curve(first, second, neck)], None, Some(stroke));
        self.arrowhead(second, tip, stroke);
    }

    fn arrowhead(&mut self, from: Point, tip: Point, stroke: Stroke) {
        let Some((along, length)) = direction(from, tip, stroke.width) else { return };
        let half = length * 0.42;
        let back = Point::new(tip.x - along.x * length, tip.y - along.y * length);
        let side = |sign: f64| Point::new(back.x - along.y * half * sign, back.y + along.x * half * sign);
        self.path(
            &[Step::Move(tip), Step::Line(side(1.0)), Step::Line(side(-1.0)), Step::Close],
            Some(stroke.paint),
            None,
        );
    }
}

/// The direction from one point to another, and the length of an arrowhead there; None if the
/// points are equal.
fn direction(from: Point, tip: Point, width: f64) -> Option<(Point, f64)> {
    let (x, y) = (tip.x - from.x, tip.y - from.y);
    let length = x.hypot(y);
    (length > 0.0).then(|| (Point::new(x / length, y / length), 4.0 + 2.6 * width))
}

/// The end of an arrow's line, short of the tip so that the line does not show beyond it.
fn arrow_neck(from: Point, tip: Point, width: f64) -> Point {
    direction(from, tip, width)
        .map_or(tip, |(along, length)| Point::new(tip.x - along.x * length * 0.8, tip.y - along.y * length * 0.8))
}
