//! The style of an SVG file: a custom property for each role in use, and the rules that use it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

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

/// A cheap hash of roles, because every tile has one. Nobody chooses roles to provoke collisions.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value.unsigned_abs() as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        // A hash table uses the low bits, and multiplication mixes the high ones.
        self.0.rotate_left(26)
    }
}

/// The roles of a scene and how each is used, in order of their first use.
pub(super) fn used(scene: &Scene) -> Vec<(Paint, Use)> {
    let mut places: HashMap<Paint, usize, BuildHasherDefault<Mixer>> = HashMap::default();
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

/// A role with its name and its colours in hexadecimal: the fill, and the text on it if there is
/// any.
struct RoleColours {
    name: String,
    usage: Use,
    light: [String; 2],
    dark: [String; 2],
}

impl RoleColours {
    fn of(paint: Paint, usage: Use, theme: Theme) -> RoleColours {
        let mut name = String::new();
        paint.write_name(&mut name);
        // Computing a colour takes long, so each colour in use is computed once.
        let form = |mode: Mode, wanted: bool| {
            let text = if wanted && usage.tile { paint.text(mode).hex() } else { String::new() };
            [if wanted { paint.rgb(mode).hex() } else { String::new() }, text]
        };
        let (light, dark) = (form(Mode::Light, theme != Theme::Dark), form(Mode::Dark, theme != Theme::Light));
        RoleColours { name, usage, light, dark }
    }

    fn in_mode(&self, mode: Mode) -> &[String; 2] {
        match mode {
            Mode::Light => &self.light,
            Mode::Dark => &self.dark,
        }
    }
}

pub(super) fn style(out: &mut String, uses: &[(Paint, Use)], theme: Theme) {
    let colours: Vec<RoleColours> = uses.iter().map(|(paint, usage)| RoleColours::of(*paint, *usage, theme)).collect();
    out.push_str("<style>\n.tilewright{");
    let base = theme.mode();
    properties(out, &colours, base);
    out.push_str("max-width:100%;height:auto;font-family:");
    out.push_str(theme::FONTS);
    out.push_str(";font-variant-numeric:tabular-nums}\n");
    if theme == Theme::Auto {
        out.push_str(".tilewright .dark{display:none}\n@media(prefers-color-scheme:dark){.tilewright{");
        properties(out, &colours, Mode::Dark);
        out.push_str("}.tilewright .dark{display:inline}.tilewright .light{display:none}}\n");
    }
    out.push_str(".tilewright .strong{font-weight:600}.tilewright .tiles{text-anchor:middle}\n");
    for role in &colours {
        let (name, usage, [fill, text]) = (&role.name, role.usage, role.in_mode(base));
        let mut rule = |before: &str, after: &str, property: &str, variable: &str, colour: &str| {
            let selector = [".tilewright ", before, name, after, "{"];
            let plain = [property, ":#", colour, ";"];
            let variable = [property, ":var(--", variable, name, ")}\n"];
            for piece in selector.iter().chain(&plain).chain(&variable) {
                out.push_str(piece);
            }
        };
        if usage.tile {
            rule(".", ">rect", "fill", "", fill);
            rule(".", ">text", "fill", "on-", text);
        }
        if usage.area {
            rule(".", "", "fill", "", fill);
        }
        if usage.line {
            rule(".l-", "", "stroke", "", fill);
        }
        if usage.text {
            rule("text.t-", "", "fill", "", fill);
        }
    }
    out.push_str("</style>\n");
}

fn properties(out: &mut String, colours: &[RoleColours], mode: Mode) {
    for role in colours {
        let mut one = |prefix: &str, colour: &str| {
            for piece in ["--", prefix, &role.name, ":#", colour, ";"] {
                out.push_str(piece);
            }
        };
        let [fill, text] = role.in_mode(mode);
        one("", fill);
        if role.usage.tile {
            one("on-", text);
        }
    }
}
