//! What is large fits on a page: images, bands, lines, words.

use std::collections::{HashMap, HashSet};

use tilewright_draw::{
    Body, DrawError, Figure, Format, Grid, Image, Item, MAX_CELLS, MAX_LINE, MAX_SIDE, Map, Paint, Scene, Shade, Style,
    Theme, morphism, offsets, side_by_side, slices,
};
use tilewright_layout::morphism::standard_representation;
use tilewright_layout::{Composed, Layout};

fn map(text: &str) -> Map {
    Map::from(&text.parse::<Layout>().unwrap())
}

/// The grids of a figure, in order.
fn grids<'a, 'b>(figure: &'a Figure<'b>) -> Vec<&'a Grid<'b>> {
    let grids = figure.panels().filter_map(|panel| if let Body::Grid(grid) = &panel.body { Some(grid) } else { None });
    grids.collect()
}

#[test]
fn large_grids_become_images_or_are_cut_and_never_fail() {
    let scene_of = |text: &str| offsets("", &map(text), Style::default()).scene();
    let drawn = |scene: &Scene| (scene.tiles(), scene.images().len());
    // All cells.
    assert_eq!(drawn(&scene_of("(128,128):(128,1)")).0, 128 * 128);
    // An image, its corner and the ramp of its legend.
    assert_eq!(drawn(&scene_of("(4096,4096):(4096,1)")), (0, 3));
    let thin = scene_of("(4,100000):(100000,1)");
    assert_eq!(thin.images().len(), 0);
    assert!(thin.tiles() > 100 && i64::try_from(thin.tiles()).unwrap() <= 4 * MAX_SIDE);
    for text in [
        "(1000000000,1000000000):(1,1000000000)",
        "4611686018427387904:1",
        "(2,2,1000000):(1,2,4)",
        "(300,300,300,300):(1,2,3,4)",
    ] {
        let scene = scene_of(text);
        assert!(i64::try_from(scene.tiles()).unwrap() <= 2 * MAX_CELLS, "{text}");
        assert!(scene.bounds().width > 0.0);
    }
    // Values that overflow are said in their cells.
    let figure = offsets("", &map("(2,2):(9223372036854775807,9223372036854775807)"), Style::default());
    let last = grids(&figure)[0].cell(1, 1);
    assert_eq!((last.label.as_str(), last.fill), ("?", Paint::Warn));
    assert!(figure.svg(Theme::Auto).contains("</svg>"));
}

#[test]
fn an_image_shows_the_first_of_each_block() {
    let figure = offsets("", &map("(1024,1024):(1024,1)"), Style { shade: Shade::Heat, ..Style::default() });
    let Some(Body::Image { image, block: (2, 2) }) = figure.panels().next().map(|panel| &panel.body) else {
        panic!("an image of blocks of 2 x 2")
    };
    assert_eq!((image.height(), image.width()), (512, 512));
    let place = |at: i64| usize::try_from(at).unwrap();
    for row in (0..512).step_by(37) {
        for column in (0..512).step_by(41) {
            let corner = 2048 * row + 2 * column;
            assert_eq!(image.pixel(place(row), place(column)), Some(Paint::heat(corner, 0, 1024 * 1024 - 1)));
        }
    }
}

/// Blocks of eight rows begin where the swizzle does nothing, so the image alone would not tell it
/// from the plain layout.
#[test]
fn the_corner_of_an_image_shows_a_swizzle() {
    let plain: Layout = "(4096,64):(64,1)".parse().unwrap();
    let swizzled: Composed = "S<3,3,3> o 0 o (4096,64):(64,1)".parse().unwrap();
    let pictures = [Map::from(&plain), Map::from(&swizzled)].map(|map| offsets("", &map, Style::default()));
    let images = pictures.each_ref().map(|figure| {
        let images = figure.panels().map(|panel| match &panel.body {
            Body::Image { image, .. } => image.clone(),
            _ => panic!("an image"),
        });
        images.collect::<Vec<Image>>()
    });
    let [plain, swizzled] = &images;
    assert_eq!((plain.len(), &plain[0]), (2, &swizzled[0]));
    assert_ne!(plain[1], swizzled[1]);
    for row in 0..64 {
        for column in 0..64 {
            // S<3,3,3> adds the low bits of the row to bits 3 to 5 of the column.
            let offset = 64 * row + (column ^ ((row % 8) << 3));
            let at = |side: i64| usize::try_from(side).unwrap();
            assert_eq!(swizzled[1].pixel(at(row), at(column)), Some(Paint::heat(offset % 128, 0, 127)));
        }
    }
}

#[test]
fn many_columns_are_broken_into_bands_that_show_all_cells() {
    for (text, columns) in [("200:1", 32), ("(1,200):(1,1)", 32), ("(2,64):(64,1)", 64), ("(4,(6,40)):(1,(4,24))", 30)]
    {
        let scene = offsets("", &map(text), Style::default()).scene();
        let layout: Layout = text.parse().unwrap();
        let mut labels = HashMap::new();
        let mut places = HashSet::new();
        for item in scene.items() {
            if let Item::Tile(tile) = item {
                *labels.entry(scene.text_of(tile.label).to_owned()).or_insert(0) += 1;
                places.insert((tile.frame.x.to_bits(), tile.frame.y.to_bits()));
            }
        }
        // Every value once, and no cell on another.
        assert!((0..layout.size()).all(|offset| labels.get(&offset.to_string()) == Some(&1)), "{text}");
        assert_eq!(i64::try_from(places.len()).unwrap(), layout.size(), "{text}");
        let across = places.iter().map(|place| place.0).collect::<HashSet<u64>>().len();
        assert_eq!(across, columns, "{text}");
    }
    // Many rows and columns are cut.
    let scene = offsets("", &map("(64,256):(256,1)"), Style::default()).scene();
    assert_eq!(scene.tiles(), 64 * 63);
}

#[test]
fn figures_side_by_side_are_broken_into_lines() {
    let maps: Vec<(String, Map)> = (0..10).map(|at| (format!("L{at}"), map("(8,16):(16,1)"))).collect();
    let scene = side_by_side(&maps, Style::default()).scene();
    assert_eq!(scene.tiles(), 10 * 128);
    assert!(scene.bounds().width <= MAX_LINE + 100.0, "{}", scene.bounds().width);
    let headings: Vec<(f64, f64)> = scene
        .items()
        .iter()
        .filter_map(|item| match item {
            Item::Text { at, text, .. } if scene.text_of(*text).starts_with('L') => Some((at.x, at.y)),
            _ => None,
        })
        .collect();
    let lines: HashSet<u64> = headings.iter().map(|place| place.1.to_bits()).collect();
    assert_eq!((headings.len(), lines.len()), (10, 5));
    // An arrow keeps its two sides together.
    let wide = || offsets("", &map("(24,32):(32,1)"), Style::default());
    assert!(wide().followed_by(wide()).scene().bounds().width > wide().scene().bounds().width * 1.9);
}

#[test]
fn titles_and_notes_are_broken_into_lines() {
    let words = "a title that goes on for much longer than the picture below it is wide ".repeat(4);
    let scene = offsets("", &map("(2,2):(2,1)"), Style::default()).titled(words).scene();
    assert!(scene.bounds().width < 400.0, "{}", scene.bounds().width);
    let layout = "(2,3,5,7,2,3,5,7,2,3):(1,2,6,30,210,420,1260,6300,44100,88200)";
    let f = standard_representation(&layout.parse().unwrap()).unwrap();
    let scene = morphism(&f).unwrap().scene();
    assert!(scene.bounds().width < 500.0, "{}", scene.bounds().width);
    let texts = scene.items().iter().filter_map(|item| match item {
        Item::Text { text, .. } => Some(scene.text_of(*text)),
        _ => None,
    });
    assert!(texts.collect::<String>().replace(' ', "").contains(&format!("encodes{layout}")));
}

#[test]
fn slices_and_scales_that_show_nothing_are_refused() {
    let rows = map("(4,8):(8,1)");
    let cut = |coord: &str| slices("", &rows, &[coord.parse().unwrap()], Style::default()).map(|_| ());
    for (coord, index, extent) in [("(9,_)", 9, 4), ("(4,_)", 4, 4), ("(_,8)", 8, 8), ("(5,0)", 5, 4), ("32", 32, 32)] {
        assert_eq!(cut(coord), Err(DrawError::PastEnd { index, extent }), "{coord}");
    }
    for coord in ["(3,_)", "(_,7)", "31", "_"] {
        assert_eq!(cut(coord), Ok(()), "{coord}");
    }
    let figure = offsets("", &rows, Style::default());
    for scale in [0.0, -1.0, 0.01, 100.0, f64::NAN, f64::INFINITY] {
        let refused = figure.file(Format::Svg, Theme::Light, scale).unwrap_err();
        assert_eq!(refused.code(), "E0508", "{scale}");
    }
    assert!(figure.file(Format::Svg, Theme::Light, 2.0).is_ok());
}
