//! Files are well formed, and say what the scene says.

use std::collections::HashSet;

use tilewright_draw::{
    Anchor, Document, Figure, Item, Map, Mode, Paint, Point, Scene, Side, Stroke, Style, TextStyle, Theme, Tile,
    divide, html, mma, offsets, slices, svg, thread_value, tikz,
};
use tilewright_layout::{DivideForm, Layout, Tree};

fn map(text: &str) -> Map {
    Map::from(&text.parse::<Layout>().unwrap())
}

fn fragments() -> Figure<'static> {
    let (a, b, c) = (
        map("((4,8),(2,2,2)):((32,1),(16,8,128))"),
        map("((4,8),(2,2)):((16,1),(8,64))"),
        map("((4,8),(2,2)):((32,1),(16,8))"),
    );
    mma([&a, &b, &c], [16, 8, 16], Style::default()).unwrap().titled("m16n8k16")
}

/// A diagram as those of categories are: nodes, arrows and nesting trees.
fn diagram() -> Scene {
    let mut scene = Scene::new();
    let shape: Tree<i64> = "((2,3),4)".parse().unwrap();
    let mut row = 0.0;
    let places = shape.map(|extent| {
        let tile = Tile::at(0.0, 44.0 * row, 44.0, 28.0).rounded(6.0).bordered(Stroke::new(Paint::Border, 1.0));
        scene.tile(tile, &extent.to_string(), "", &format!("extent {extent}"));
        row += 1.0;
        Point::new(0.0, 44.0 * (row - 1.0) + 14.0)
    });
    scene.nesting(&places, Side::Left, 18.0, Stroke::new(Paint::Faint, 1.25));
    scene.group("a morphism", Some(7), |scene| {
        for (from, to) in [(0.0, 1.0), (1.0, 0.0), (2.0, 2.0)] {
            let (start, end) = (Point::new(50.0, 44.0 * from + 14.0), Point::new(150.0, 44.0 * to + 14.0));
            let bend = |x: f64, y: f64| Point::new(x, y);
            scene.curved_arrow([start, bend(95.0, start.y), bend(105.0, end.y), end], Stroke::new(Paint::Accent, 1.5));
        }
    });
    scene.text(Point::new(160.0, 14.0), "f & g < h", TextStyle::plain().anchored(Anchor::Start));
    scene
}

fn figures() -> Vec<(&'static str, Figure<'static>)> {
    let style = Style::default();
    let layout = |text: &str| text.parse::<Layout>().unwrap();
    vec![
        ("nested", offsets("L", &map("((2,2),(2,4)):((1,4),(2,8))"), style).captioned("a < b & c")),
        ("rank 4", offsets("L", &map("(2,3,2,2):(1,2,6,12)"), style)),
        ("fragments", fragments()),
        ("cut", offsets("L", &map("(4,100000):(100000,1)"), style)),
        ("image", offsets("L", &map("(600,600):(600,1)"), style)),
        ("division", divide(&layout("(4,6):(6,1)"), &"[2:1;3:1]".parse().unwrap(), DivideForm::Zipped, style).unwrap()),
        ("slices", slices("L", &map("(8,8):(8,1)"), &["(2,_)".parse().unwrap()], style).unwrap()),
        ("diagram", Figure::of_scene(diagram()).titled("A \"diagram\" -- of arrows")),
        ("empty", Figure::default()),
    ]
}

#[test]
fn svg_is_well_formed_and_whole() {
    for (name, figure) in figures() {
        for theme in [Theme::Auto, Theme::Light, Theme::Dark] {
            let text = figure.svg(theme);
            let document = roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let root = document.root_element();
            assert!(root.attribute("viewBox").is_some() && root.attribute("role") == Some("img"), "{name}");
            let first = |tag: &str| root.children().find(|node| node.has_tag_name(tag));
            assert!(first("title").is_some_and(|title| !title.text().unwrap_or_default().is_empty()), "{name}");
            assert!(first("desc").is_some(), "{name}");
            // The page loads nothing from the network.
            for node in document.descendants() {
                let outside = node.attributes().filter(|attribute| attribute.name() == "href");
                assert!(outside.into_iter().all(|attribute| attribute.value().starts_with("data:")), "{name}");
            }
            assert!(!text.contains("url(") && !text.contains("@import"), "{name}");
            // Every class that is used has its rule, and its colour in each form.
            let style = first("style").and_then(|style| style.text()).unwrap();
            let classes: HashSet<&str> = document
                .descendants()
                .filter_map(|node| node.attribute("class"))
                .flat_map(str::split_whitespace)
                .collect();
            for class in classes.difference(&HashSet::from(["tilewright", "tiles", "light", "dark", "strong", ""])) {
                assert!(style.contains(&format!(".{class}")), "{name}: {class} in {style}");
            }
            assert_eq!(style.contains("prefers-color-scheme"), theme == Theme::Auto, "{name}");
        }
    }
}

#[test]
fn svg_has_a_group_for_each_tile_with_its_text_and_title() {
    for (name, figure) in figures() {
        let scene = figure.scene();
        let text = svg(&scene, &figure.document(Theme::Auto));
        let document = roxmltree::Document::parse(&text).unwrap();
        let groups: Vec<_> = document
            .descendants()
            .filter(|node| node.parent().is_some_and(|parent| parent.attribute("class") == Some("tiles")))
            .filter(|node| node.is_element())
            .collect();
        assert_eq!(groups.len(), scene.tiles(), "{name}");
        let tiles = scene.items().iter().filter_map(|item| if let Item::Tile(tile) = item { Some(tile) } else { None });
        for (group, tile) in groups.into_iter().zip(tiles) {
            let texts: Vec<&str> =
                group.children().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text()).collect();
            let expected = [tile.label, tile.second].map(|span| scene.text_of(span));
            assert_eq!(texts, expected.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>(), "{name}");
            let title = group.children().find(|node| node.has_tag_name("title")).and_then(|node| node.text());
            assert_eq!(title.unwrap_or_default(), scene.text_of(tile.title), "{name}");
            let rect = group.children().find(|node| node.has_tag_name("rect")).unwrap();
            let near = |text: &str, length: f64| (text.parse::<f64>().unwrap() - length).abs() < 0.01;
            assert!(near(rect.attribute("width").unwrap(), tile.frame.width), "{name}");
            assert!(near(rect.attribute("height").unwrap(), tile.frame.height), "{name}");
            let moved = group.attribute("transform").unwrap().strip_prefix("translate(").unwrap().strip_suffix(')');
            let (x, y) = moved.unwrap().split_once(',').unwrap();
            assert!(near(x, tile.frame.x) && near(y, tile.frame.y), "{name}");
            let link = group.attribute("data-t").map(|link| link.parse::<u32>().unwrap());
            assert_eq!(link, tile.link, "{name}");
        }
    }
}

/// A line for each element that is drawn: tag, place, size, class and text.
fn structure(svg: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let drawn = document
        .descendants()
        .filter(|node| ["rect", "text", "path", "line", "image"].iter().any(|tag| node.has_tag_name(*tag)));
    let lines = drawn.map(|node| {
        let mut parts = vec![node.tag_name().name().to_owned()];
        for name in ["class", "x", "y", "width", "height", "d"] {
            parts.extend(node.attribute(name).map(str::to_owned));
        }
        if let Some(parent) =
            node.parent().filter(|parent| node.tag_name().name() == "rect" && parent.has_tag_name("g"))
        {
            parts.extend(["class", "transform"].iter().filter_map(|name| parent.attribute(*name)).map(str::to_owned));
        }
        parts.extend(node.text().map(|text| format!("`{text}`")));
        parts.join(" ")
    });
    lines.collect()
}

/// `TILEWRIGHT_GOLDEN=overwrite` writes the files anew; read the difference before it is committed.
#[test]
fn golden_pictures_are_as_they_were() {
    let style = Style::default();
    let golden = [
        ("nested", offsets("((2,2),(2,4)):((1,4),(2,8))", &map("((2,2),(2,4)):((1,4),(2,8))"), style)),
        (
            "accumulator",
            thread_value("C", &map("((4,8),(2,2)):((32,1),(16,8))"), &"(16,8)".parse().unwrap(), style).unwrap(),
        ),
        ("division", figures().swap_remove(5).1),
        ("diagram", Figure::of_scene(diagram())),
    ];
    for (name, figure) in golden {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/suite/golden/{name}.svg"));
        let text = figure.svg(Theme::Auto);
        if std::env::var_os("TILEWRIGHT_GOLDEN").is_some_and(|told| told == "overwrite") {
            std::fs::write(&path, &text).unwrap();
        }
        let known = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(!known.is_empty(), "{name} has no golden file");
        let (found, expected) = (structure(&text), structure(&known));
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(found.len(), expected.len(), "{name}");
    }
}

#[test]
fn tikz_is_balanced_and_defines_its_colours() {
    for (name, figure) in figures() {
        let text = figure.tikz(Theme::Light);
        let mut depth = 0;
        let mut escaped = false;
        for c in text.chars() {
            match c {
                _ if escaped => {}
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            assert!(depth >= 0, "{name}");
            escaped = c == '\\' && !escaped;
        }
        assert_eq!(depth, 0, "{name}");
        for pair in [("\\begin{", "\\end{"), ("\\twbegin", "\\twend")] {
            let count = |piece: &str| text.matches(piece).count();
            assert_eq!(count(pair.0), count(pair.1), "{name}: {}", pair.0);
        }
        let known: HashSet<&str> = text
            .match_indices("\\definecolor{")
            .filter_map(|(at, piece)| text[at + piece.len()..].split('}').next())
            .collect();
        for piece in ["fill=", "draw=", "\\twf{"] {
            for (at, _) in text.match_indices(piece) {
                let name_of = text[at + piece.len()..].split([',', '}', ']']).next().unwrap();
                assert!(known.contains(name_of) || name_of.contains('#'), "{name}: {name_of}");
            }
        }
        assert!(text.is_ascii(), "{name}: a standard TeX reads ASCII");
    }
    // Thousands of cells: a call or two for each, and no path of its own.
    let figure = thread_value("", &map("(128,72):(72,1)"), &"(96,96)".parse().unwrap(), Style::default()).unwrap();
    let text = figure.tikz(Theme::Light);
    assert_eq!(text.matches("\\twr{").count() - 1, 96 * 96);
    assert!(text.matches("\\path").count() < 20);
    assert!(tikz(&Scene::new(), &Document::default()).contains("\\begin{tikzpicture}"));
}

#[test]
fn the_page_isolates_threads_by_script_alone() {
    let page = fragments().html(Theme::Auto);
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    for thread in 0..32 {
        // Eight values of A, four of B and of C.
        assert_eq!(page.matches(&format!("data-t=\"{thread}\"")).count(), 16, "{thread}");
    }
    assert!(
        !page.contains("http://") || page.matches("http").count() == page.matches("http://www.w3.org/2000/svg").count()
    );
    assert!(html(&Scene::new(), &Document::default()).contains("<svg"));
}

#[test]
fn text_that_could_break_a_file_is_written_out() {
    let hostile = "</text><script>&\"\u{0}\u{1b}]]> -- --> \\end{document} %#_^~{}$ \u{fffe}";
    let mut scene = Scene::new();
    scene.text(Point::new(0.0, 0.0), hostile, TextStyle::plain());
    scene.tile(Tile::at(0.0, 0.0, 10.0, 10.0), hostile, hostile, hostile);
    let document = Document {
        title: hostile.to_owned(),
        description: hostile.to_owned(),
        source: vec![hostile.to_owned(), "two\nlines".to_owned()],
        theme: Theme::Auto,
    };
    let text = svg(&scene, &document);
    assert!(roxmltree::Document::parse(&text).is_ok(), "{text}");
    let tex = tikz(&scene, &document);
    assert_eq!(tex.matches("\\end{document}").count() - tex.matches("% ").count().min(2), 1, "{tex}");
    assert!(!tex.contains("\ntwo\nlines"));
}

#[test]
fn scenes_hold_their_items_and_move_them() {
    let scene = diagram();
    let mut moved = Scene::new();
    moved.insert(&scene, Point::new(100.0, 50.0));
    assert_eq!(moved.items().len(), scene.items().len());
    let (before, after) = (scene.bounds(), moved.bounds());
    assert!((after.x - before.x - 100.0).abs() < 1e-9 && (after.height - before.height).abs() < 1e-9);
    for (a, b) in scene.items().iter().zip(moved.items()) {
        if let (Item::Tile(a), Item::Tile(b)) = (a, b) {
            assert_eq!(scene.text_of(a.label), moved.text_of(b.label));
            assert_eq!(a.frame.y + 50.0, b.frame.y);
        }
    }
}

#[test]
fn colours_repeat_what_the_text_says() {
    use tilewright_draw::terminal::{Colours, Window};

    for (name, figure) in figures() {
        let window = Window { columns: 100, rows: 24 };
        let plain = figure.picture(window, Colours::None).text(0, Colours::None, Mode::Light);
        assert!(!plain.contains('\x1b'), "{name}");
        for line in plain.lines() {
            assert!(line.chars().count() <= 100, "{name}: {line}");
        }
        for colours in [Colours::Indexed, Colours::True] {
            let painted = figure.picture(window, Colours::None).text(0, colours, Mode::Dark);
            let mut bare = String::new();
            let mut inside = false;
            for c in painted.chars() {
                match c {
                    '\x1b' => inside = true,
                    'm' if inside => inside = false,
                    c if !inside => bare.push(c),
                    _ => {}
                }
            }
            let trimmed = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
            assert_eq!(trimmed(&bare), trimmed(&plain), "{name}");
        }
    }
}

#[cfg(feature = "png")]
#[test]
fn pixels_are_those_of_the_scene() {
    let mut scene = Scene::new();
    scene.tile(Tile::at(0.0, 0.0, 40.0, 20.0).filled(Paint::Accent), "", "", "");
    let file = tilewright_draw::png(&scene, Mode::Light, 1.0);
    assert!(file.starts_with(b"\x89PNG\r\n\x1a\n"));
    let side = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap());
    // 21 pixels of space on each side.
    assert_eq!((side(16), side(20)), (82, 62));
    // There is always a file.
    scene.tile(Tile::at(1e7, 0.0, 40.0, 20.0), "far", "", "");
    assert!(tilewright_draw::png(&scene, Mode::Dark, f64::NAN).len() > 100);
}

#[cfg(all(feature = "png", feature = "pdf"))]
#[test]
fn a_letter_is_shown_or_refused() {
    use tilewright_draw::Format;
    // Titles, the text of tiles, and their second lines.
    let mut tile = Scene::new();
    tile.tile(Tile::at(0.0, 0.0, 40.0, 20.0), "0", "行", "");
    let titled = |title: &str| Figure::of_scene(diagram()).titled(title);
    let file = |figure: &Figure<'_>, format| figure.file(format, Theme::Light, 1.0).map_err(|error| error.code());
    for format in [Format::Png, Format::Pdf] {
        for text in ["漢字", "한", "a שלום", "سلام", "\u{1f980}"] {
            assert_eq!(file(&titled(text), format), Err("E0509"), "{text} in {format}");
        }
        assert_eq!(file(&Figure::of_scene(tile.clone()), format), Err("E0509"));
        for text in ["Größe", "Привет", "α → β", "a\tb \u{2003}c", "≤ ½ × n²"] {
            assert!(file(&titled(text), format).is_ok(), "{text} in {format}");
        }
    }
    for format in [Format::Svg, Format::Html] {
        let text = String::from_utf8(file(&titled("漢字"), format).unwrap()).unwrap();
        assert!(text.contains("漢字"), "{format}");
    }
}

#[cfg(feature = "pdf")]
#[test]
fn a_page_holds_its_text_and_fonts() {
    for (name, figure) in figures() {
        let file = figure.pdf(Theme::Light);
        assert!(file.starts_with(b"%PDF-") && file.trim_ascii_end().ends_with(b"%%EOF"), "{name}");
        let has = |piece: &[u8]| file.windows(piece.len()).any(|window| window == piece);
        assert!(has(b"/MediaBox") && (name == "empty" || has(b"/FontFile2")), "{name}");
    }
}
