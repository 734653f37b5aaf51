//! The style of an SVG file: a custom property for each role in use, and the rules that use it.

use std::collections::HashMap;

use crate::scene::{Item, Scene};
use crate::theme::{self, Mode, Paint, Theme};

/// How a role is used.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Use {
    tile: bool,
    line: bool,
    text: bool,
    area: bool,
}

/// The roles of a scene and how each is used, in order of their first use.
pub(super) fn used(scene: &Scene) -> Vec<(Paint, Use)> {
    let mut places: HashMap<Paint, usize> = HashMap::new();
    let mut uses: Vec<(Paint, Use)> = Vec::new();
    let mut note = |paint: Paint, set: fn(&mut Use)| {
        let place = *places.entry(paint).or_insert_with(|| {
            uses.push((paint, Use::default()));
            uses.len() - 1
        });
        if let Some((_, usage)) = uses.get_mut(place) {
            set(usage);
        }
    };
    note(Paint::Paper, |usage| usage.area = true);
    let mut last = None;
    for item in scene.items() {
        match item {
            Item::Tile(tile) => {
                if last != Some(tile.fill) {
                    note(tile.fill, |usage| usage.tile = true);
                    last = Some(tile.fill);
                }
                if tile.faint {
                    note(Paint::Faint, |usage| usage.text = true);
                }
                if let Some(border) = tile.border {
                    note(border.paint, |usage| usage.line = true);
                }
            }
            Item::Line { stroke, .. } => note(stroke.paint, |usage| usage.line = true),
            Item::Path { fill, stroke, .. } => {
                if let Some(fill) = fill {
                    note(*fill, |usage| usage.area = true);
                }
                if let Some(stroke) = stroke {
                    note(stroke.paint, |usage| usage.line = true);
                }
            }
            Item::Text { style, .. } => note(style.paint, |usage| usage.text = true),
            Item::Image { .. } | Item::Open { .. } | Item::Close => {}
        }
    }
    uses
}

pub(super) fn style(out: &mut String, uses: &[(Paint, Use)], theme: Theme) {
    out.push_str("<style>\n.tilewright{");
    let base = theme.mode();
    properties(out, uses, base);
    out.push_str("max-width:100%;height:auto;font-family:");
    out.push_str(theme::FONTS);
    out.push_str(";font-variant-numeric:tabular-nums}\n");
    if theme == Theme::Auto {
        out.push_str(".tilewright .dark{display:none}\n@media(prefers-color-scheme:dark){.tilewright{");
        properties(out, uses, Mode::Dark);
        out.push_str("}.tilewright .dark{display:inline}.tilewright .light{display:none}}\n");
    }
    out.push_str(".tilewright .strong{font-weight:600}.tilewright .tiles{text-anchor:middle}\n");
    for (paint, usage) in uses {
        let mut name = String::new();
        paint.write_name(&mut name);
        let mut rule = |selector: String, property: &str, variable: &str, colour: String| {
            for piece in [".tilewright ", &selector, "{", property, ":#", &colour, ";", property, ":var(--"] {
                out.push_str(piece);
            }
            for piece in [variable, &name, ")}\n"] {
                out.push_str(piece);
            }
        };
        let colour = paint.rgb(base).hex();
        if usage.tile {
            rule(format!(".{name}>rect"), "fill", "", colour.clone());
            rule(format!(".{name}>text"), "fill", "on-", paint.text(base).hex());
        }
        if usage.area {
            rule(format!(".{name}"), "fill", "", colour.clone());
        }
        if usage.line {
            rule(format!(".l-{name}"), "stroke", "", colour.clone());
        }
        if usage.text {
            rule(format!("text.t-{name}"), "fill", "", colour);
        }
    }
    out.push_str("</style>\n");
}

fn properties(out: &mut String, uses: &[(Paint, Use)], mode: Mode) {
    for (paint, usage) in uses {
        let mut one = |prefix: &str, colour: String| {
            out.push_str("--");
            out.push_str(prefix);
            paint.write_name(out);
            out.push_str(":#");
            out.push_str(&colour);
            out.push(';');
        };
        one("", paint.rgb(mode).hex());
        if usage.tile {
            one("on-", paint.text(mode).hex());
        }
    }
}
