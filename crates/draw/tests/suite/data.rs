//! What pictures say is what layouts say, at every cell.

use std::collections::HashMap;

use tilewright_draw::{
    Banks, Body, Cell, Figure, Grid, Item, Label, Map, Medium, Multiplication, Paint, Palette, Style, copy, divide,
    memory, mma, offsets, product, slices, swizzle, thread_value, tiles,
};
use tilewright_layout::{Composed, DivideForm, Layout, Tiler, Tree};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn map(text: &str) -> Map {
    Map::from(&layout(text))
}

fn shape(text: &str) -> Tree<i64> {
    text.parse().unwrap()
}

/// The grids of a figure, in order.
fn grids<'a, 'b>(figure: &'a Figure<'b>) -> Vec<&'a Grid<'b>> {
    let grids = figure.panels().filter_map(|panel| if let Body::Grid(grid) = &panel.body { Some(grid) } else { None });
    grids.collect()
}

/// Row, column and cell of every cell of a grid.
fn cells(grid: &Grid<'_>) -> Vec<(i64, i64, Cell)> {
    let places = (0..grid.rows.len()).flat_map(|row| (0..grid.columns.len()).map(move |column| (row, column)));
    places.map(|(row, column)| (row, column, grid.cell(row, column))).collect()
}

/// Layouts of many shapes, some of which repeat, run backwards or have gaps.
fn zoo() -> Vec<Layout> {
    let extents = [1, 2, 3, 4];
    let mut all = Vec::new();
    for a in extents {
        for b in extents {
            for (stride_a, stride_b) in [(1, a), (b, 1), (0, 2), (-3, 5)] {
                all.push(layout(&format!("({a},{b}):({stride_a},{stride_b})")));
                all.push(layout(&format!("(({a},2),({b},3)):(({stride_a},7),({stride_b},11))")));
                all.push(layout(&format!("({a},{b},2):({stride_a},{stride_b},13)")));
                all.push(layout(&format!("({a},{b},2,3):({stride_a},{stride_b},13,40)")));
            }
        }
    }
    all.push(layout("7:3"));
    all.push(layout("(2,2,2,2,2):(1,2,4,8,16)"));
    all
}

#[test]
fn every_cell_of_a_grid_is_the_layout_at_its_own_index() {
    let mut seen = 0;
    for layout in zoo() {
        for (label, medium) in
            [(Label::Offset, Medium::Page), (Label::Index, Medium::Page), (Label::Offset, Medium::Terminal)]
        {
            let style = Style { label, medium, ..Style::default() };
            let figure = offsets("", &Map::from(&layout), style);
            let mut start = 0;
            for grid in grids(&figure) {
                for (row, column, cell) in cells(grid) {
                    let index = start + row + grid.rows.len() * column;
                    let offset = layout.eval(&index).unwrap();
                    let expected = if label == Label::Index { index } else { offset };
                    assert_eq!(cell.label, expected.to_string(), "{layout} at ({row},{column})");
                    assert_eq!(cell.fill, Paint::grey(offset), "{layout}");
                    seen += 1;
                }
                start += grid.rows.len() * grid.columns.len();
            }
            assert_eq!(start, layout.size(), "{layout}");
        }
    }
    assert!(seen > 10_000);
}

#[test]
fn titles_name_the_coordinate_that_has_the_offset() {
    for layout in zoo() {
        let figure = offsets("", &Map::from(&layout), Style::default());
        for grid in grids(&figure) {
            for (_, _, cell) in cells(grid) {
                let (coordinate, offset) = cell.title.split_once(" → ").unwrap();
                if layout.rank() > 4 {
                    continue;
                }
                let coordinate: Tree<i64> = coordinate.parse().unwrap();
                let coordinate = if layout.rank() == 1 { coordinate.mode(0).unwrap() } else { coordinate };
                assert_eq!(layout.eval_at(&coordinate).unwrap().to_string(), offset, "{layout}: {}", cell.title);
            }
        }
    }
}

#[test]
fn every_thread_value_cell_says_who_holds_it() {
    for (tv, tile) in [
        ("((4,8),(2,2)):((32,1),(16,8))", "(16,8)"),
        ("((4,8),(2,2,2)):((32,1),(16,8,128))", "(16,16)"),
        ("(32,4):(4,1)", "(8,16)"),
        // Each place held by four threads, and a hole.
        ("((4,8),2):((0,1),8)", "(16,2)"),
    ] {
        let (tv, tile) = (layout(tv), shape(tile));
        let figure = thread_value("", &Map::from(&tv), &tile, Style::default()).unwrap();
        let [grid] = grids(&figure)[..] else { panic!("one grid") };
        let threads = tv.mode(0).unwrap().size();
        let mut owners: HashMap<i64, Vec<(i64, i64)>> = HashMap::new();
        for thread in 0..threads {
            for value in 0..tv.mode(1).unwrap().size() {
                let at = tv.eval(&(thread + threads * value)).unwrap();
                owners.entry(at).or_default().push((value, thread));
            }
        }
        for (row, column, cell) in cells(grid) {
            let place = row + grid.rows.len() * column;
            match owners.get(&place).and_then(|all| all.iter().min().map(|first| (first, all.len()))) {
                None => assert_eq!((cell.fill, cell.label.as_str()), (Paint::Void, "")),
                Some(((value, thread), count)) => {
                    assert_eq!((cell.label, cell.second), (format!("T{thread}"), format!("V{value}")), "{tv}");
                    assert_eq!(cell.fill, Palette::Distinct.paint(*thread, threads));
                    assert_eq!(cell.link, u32::try_from(*thread).ok());
                    assert_eq!(cell.title.contains(&format!("and {} more", count - 1)), count > 1);
                }
            }
        }
    }
}

#[test]
fn what_leads_outside_its_tile_is_refused() {
    let error = thread_value("", &map("(4,2):(1,4)"), &shape("(2,3)"), Style::default()).unwrap_err();
    assert_eq!(error.code(), "E0501");
    assert_eq!(error.to_string(), "thread 2, value 1 is at 6, outside the tile of 6 places");
    let error = thread_value("", &map("(4,2,2):(1,4,8)"), &shape("(4,4)"), Style::default()).unwrap_err();
    assert_eq!(error.code(), "E0502");
    let error = thread_value("", &map("4:-1"), &shape("4"), Style::default()).unwrap_err();
    assert_eq!(error.code(), "E0501");
}

#[test]
fn operands_stand_in_the_standard_arrangement() {
    let (a, b, c) = (
        map("((4,8),(2,2,2)):((32,1),(16,8,128))"),
        map("((4,8),(2,2)):((16,1),(8,64))"),
        map("((4,8),(2,2)):((32,1),(16,8))"),
    );
    let figure = mma([&a, &b, &c], [16, 8, 16], Style::default()).unwrap();
    assert!(figure.table[0][0].is_none());
    let panel = |row: usize, column: usize| figure.table[row][column].as_ref().unwrap();
    for (row, column, operand, size, turned) in
        [(0, 1, &b, (16, 8), true), (1, 0, &a, (16, 16), false), (1, 1, &c, (16, 8), false)]
    {
        let Body::Grid(grid) = &panel(row, column).body else { panic!("a grid") };
        assert_eq!((grid.rows.len(), grid.columns.len()), size);
        for index in 0..operand.size() {
            let place = operand.at(index).unwrap();
            let height = if turned { 8 } else { 16 };
            let (first, second) = (place % height, place / height);
            let cell = if turned { grid.cell(second, first) } else { grid.cell(first, second) };
            assert_eq!(cell.label, format!("T{}", index % 32));
            assert_eq!(cell.second, format!("V{}", index / 32));
        }
    }
    // B and C begin at one distance from the left, A and C at one height.
    let frames = |label: &str| -> Vec<(f64, f64)> {
        let scene = figure.scene();
        let firsts = scene.items().iter().filter_map(|item| match item {
            Item::Tile(tile) if scene.text_of(tile.title).contains(label) => Some((tile.frame.x, tile.frame.y)),
            _ => None,
        });
        firsts.collect()
    };
    let corners = frames("value 0 at (0,0)");
    let [top, left, right] = corners[..] else { panic!("three corners: {corners:?}") };
    assert_eq!((top.0, left.1), (right.0, right.1));
    assert!(left.0 < right.0 && top.1 < right.1);
}

/// Where one operand has too many places for words, all are images at one scale, so that the axes
/// that they share are aligned, and the picture is one that can be looked at.
#[test]
fn large_operands_are_images_at_one_scale() {
    let [m, n, k] = [128, 256, 16];
    // 128 threads, each with a row of A and of C, and with two columns of B.
    let (a, b, c) = (map("(128,16):(1,128)"), map("(128,(2,16)):(2,(1,256))"), map("(128,256):(1,128)"));
    let figure = mma([&a, &b, &c], [m, n, k], Style::default()).unwrap();
    for panel in figure.panels() {
        assert!(matches!(panel.body, Body::Image { .. }), "{} is drawn cell by cell", panel.heading);
    }
    let scene = figure.scene();
    let images = scene.items().iter().filter_map(|item| match item {
        Item::Image { frame, image } => {
            let image = &scene.images()[*image];
            Some((*frame, image.width() as i64, image.height() as i64))
        }
        _ => None,
    });
    let images: Vec<_> = images.collect();
    let [(top, ..), (left, ..), (right, ..)] = images[..] else { panic!("three images: {images:?}") };
    assert_eq!(images.iter().map(|(_, width, height)| [*height, *width]).collect::<Vec<_>>(), [[k, n], [m, k], [m, n]]);
    let pixels: Vec<f64> = images.iter().map(|(frame, width, _)| frame.width / *width as f64).collect();
    assert!(pixels.iter().all(|pixel| *pixel == pixels[0] && *pixel >= 2.0), "{pixels:?}");
    assert_eq!((top.x, top.width, left.y, left.height), (right.x, right.width, right.y, right.height));
    // Ticks that would meet are left out: of the 16 rows of B and the 16 columns of A.
    let ticks = |wanted: &str| {
        let is = |item: &&Item| matches!(item, Item::Text { text, .. } if scene.text_of(*text) == wanted);
        scene.items().iter().filter(is).count()
    };
    assert_eq!((ticks("0"), ticks("64"), ticks("32"), ticks("4")), (6, 4, 2, 0));
    // A tile that has room keeps its words.
    let figure =
        mma([&map("(32,4):(1,32)"), &map("(32,2):(1,32)"), &map("(32,4):(1,32)")], [16, 8, 8], Style::default());
    assert_eq!(grids(&figure.unwrap()).len(), 3);
    let scene_bounds = scene.bounds();
    assert!(scene_bounds.width < 1200.0 && scene_bounds.height < 800.0, "{scene_bounds:?}");
}

#[test]
fn both_sides_of_a_copy_have_the_colours_of_their_threads() {
    let (source, target) = (map("(8,4):(4,1)"), map("(8,4):(1,8)"));
    let figure = copy(&source, &target, &shape("(4,8)"), Style::default()).unwrap();
    for (grid, side) in grids(&figure).into_iter().zip([&source, &target]) {
        for index in 0..32 {
            let place = side.at(index).unwrap();
            assert_eq!(grid.cell(place % 4, place / 4).fill, Palette::Distinct.paint(index % 8, 8));
        }
    }
}

#[test]
fn a_colour_is_a_bank_before_and_after() {
    let composed: Composed = "S<3,3,3> o 0 o (8,64):(64,1)".parse().unwrap();
    let banks = Banks::of_elements(16);
    let figure = swizzle(&composed, banks, Style::default());
    let [before, after] = grids(&figure)[..] else { panic!("two grids") };
    for (row, column, cell) in cells(before) {
        let plain = 64 * row + column;
        assert_eq!(
            (cell.label.as_str(), cell.fill),
            (plain.to_string().as_str(), Palette::Distinct.paint(plain / 2 % 32, 32))
        );
        let index = row + 8 * column;
        let offset = composed.eval(&index).unwrap();
        let cell = after.cell(row, column);
        assert_eq!((cell.label, cell.fill), (offset.to_string(), Palette::Distinct.paint(offset / 2 % 32, 32)));
    }
    // Down a column, eight rows are in one bank before and in eight after.
    let colours =
        |grid: &Grid<'_>| (0..8).map(|row| grid.cell(row, 0).fill).collect::<std::collections::HashSet<_>>().len();
    assert_eq!((colours(before), colours(after)), (1, 8));
}

#[test]
fn tiles_keep_their_colours_through_a_division() {
    for (matrix, tiler) in [
        ("(4,6):(6,1)", "[2:1;3:1]"),
        ("(8,8):(8,1)", "[2:4;4:1]"),
        ("(4,6):(1,8)", "[2:1;6:1]"),
        ("24:1", "[4:1]"),
        ("(4,2,3):(2,1,8)", "[2:2]"),
    ] {
        let matrix = layout(matrix);
        let tiler: Tiler = tiler.parse().unwrap();
        let zipped = matrix.zipped_divide(&tiler).unwrap();
        let count = zipped.mode(0).unwrap().size();
        for form in [DivideForm::Logical, DivideForm::Zipped, DivideForm::Tiled, DivideForm::Flat] {
            let figure = divide(&matrix, &tiler, form, Style::default()).unwrap();
            // The strides of these matrices are one-to-one, so an offset tells its element.
            let mut colours: HashMap<String, Paint> = HashMap::new();
            let mut regions: HashMap<String, u32> = HashMap::new();
            let mut cells_seen = 0;
            for grid in grids(&figure) {
                for (_, _, cell) in cells(grid) {
                    cells_seen += 1;
                    assert_eq!(*colours.entry(cell.label.clone()).or_insert(cell.fill), cell.fill, "{matrix} {form:?}");
                    regions.insert(cell.label, cell.region);
                }
            }
            assert_eq!(cells_seen, 2 * matrix.size());
            for index in 0..zipped.size() {
                let offset = zipped.eval(&index).unwrap().to_string();
                assert_eq!(i64::from(regions[&offset]), index / count + 1, "{matrix} {form:?}");
            }
        }
    }
}

#[test]
fn what_a_ragged_tiler_adds_has_no_tile_of_another_element() {
    // Tiles of 3 x 2 over 4 x 5: two by three, of which the last reach past the ends.
    let (matrix, tiler) = (layout("(4,5):(5,1)"), "[3:1;2:1]".parse::<Tiler>().unwrap());
    for form in [DivideForm::Logical, DivideForm::Zipped] {
        let figure = divide(&matrix, &tiler, form, Style::default()).unwrap();
        let [input, result] = grids(&figure)[..] else { panic!("two grids") };
        for (row, column, cell) in cells(input) {
            assert_eq!(i64::from(cell.region), row / 3 + 2 * (column / 2) + 1);
        }
        let mut pale = 0;
        for (row, column, cell) in cells(result) {
            let (i, j) = match form {
                DivideForm::Logical => (row, column),
                _ => (row % 3 + 3 * (column % 2), row / 3 + 2 * (column / 2)),
            };
            assert_eq!(cell.faint, i >= 4 || j >= 5, "{form:?} ({i},{j})");
            pale += i32::from(cell.faint);
            if !cell.faint {
                assert_eq!((cell.label, i64::from(cell.region)), ((5 * i + j).to_string(), i / 3 + 2 * (j / 2) + 1));
            }
        }
        assert_eq!(pale, 36 - 20);
    }
}

#[test]
fn copies_keep_their_colours_through_a_product() {
    let (block, copies) = (layout("(2,2):(1,2)"), layout("(2,3):(3,1)"));
    let logical = block.logical_product(&Tiler::from(copies.clone())).unwrap();
    for form in [Multiplication::Logical, Multiplication::Blocked, Multiplication::Raked] {
        let figure = product(&block, &copies, form, Style::default()).unwrap();
        let [_, second, result] = grids(&figure)[..] else { panic!("three grids") };
        for index in 0..logical.size() {
            let (offset, copy) = (logical.eval(&index).unwrap().to_string(), index / 4);
            let here = cells(result).into_iter().find(|(_, _, cell)| cell.label == offset).unwrap().2;
            assert_eq!(here.fill, second.cell(copy % 2, copy / 2).fill, "{form:?}");
        }
    }
}

#[test]
fn slices_and_tiles_are_pointed_out_and_nothing_else() {
    let style = Style::default();
    let matrix = map("(4,8):(8,1)");
    let figure = slices("", &matrix, &["(2,_)".parse().unwrap(), "(_,5)".parse().unwrap()], style).unwrap();
    for (row, column, cell) in cells(grids(&figure)[0]) {
        let region = if row == 2 { 1 } else { u32::from(column == 5) * 2 };
        assert_eq!((cell.region, cell.faint), (region, region == 0), "({row},{column})");
    }
    let figure = tiles("", &matrix, &"[2:1;4:1]".parse().unwrap(), &[1, 2], style).unwrap();
    for (row, column, cell) in cells(grids(&figure)[0]) {
        let region = match (row / 2, column / 4) {
            (1, 0) => 1,
            (0, 1) => 2,
            _ => 0,
        };
        assert_eq!(cell.region, region, "({row},{column})");
    }
    let error = tiles("", &matrix, &"[2:1;4:1]".parse().unwrap(), &[4], style).unwrap_err();
    assert_eq!(error.code(), "E0506");
}

#[test]
fn memory_shows_who_has_each_address() {
    for layout in zoo() {
        for width in [1, 8, 32] {
            let figure = memory("", &Map::from(&layout), width, Style::default()).unwrap();
            let mut held: HashMap<i64, Vec<i64>> = HashMap::new();
            for index in 0..layout.size() {
                held.entry(layout.eval(&index).unwrap()).or_default().push(index);
            }
            let (least, most) = (*held.keys().min().unwrap(), *held.keys().max().unwrap());
            let grid = grids(&figure)[0];
            let begin = least.min(0).div_euclid(width) * width;
            assert_eq!(grid.rows.tick(0, 0), begin);
            for (row, column, cell) in cells(grid) {
                let address = begin + row * width + column;
                let expected = match held.get(&address).map(Vec::as_slice) {
                    None if address > most || address < least.min(0) => (String::new(), Paint::Paper),
                    None => (String::new(), Paint::Void),
                    Some([index]) => (index.to_string(), cell.fill),
                    Some(several) => (format!("×{}", several.len()), Paint::Warn),
                };
                assert_eq!((cell.label, cell.fill), expected, "{layout}, address {address}");
            }
        }
    }
}
