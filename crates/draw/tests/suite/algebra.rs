//! Pictures of compositions and complements say what the layouts say, at every cell.

use std::collections::{HashMap, HashSet};

use tilewright_draw::{
    Body, Cell, Figure, Grid, Medium, Paint, Style, Theme, composition, composition_by_mode, filled, over_indices,
};
use tilewright_layout::Layout;

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn grids<'a, 'b>(figure: &'a Figure<'b>) -> Vec<&'a Grid<'b>> {
    figure.panels().filter_map(|panel| if let Body::Grid(grid) = &panel.body { Some(grid) } else { None }).collect()
}

fn cells(grid: &Grid<'_>) -> Vec<Cell> {
    let places = (0..grid.columns.len()).flat_map(|column| (0..grid.rows.len()).map(move |row| (row, column)));
    places.map(|(row, column)| grid.cell(row, column)).collect()
}

const COMPOSED: [(&str, &str); 6] = [
    ("(6,2):(8,2)", "(4,3):(3,1)"),
    ("(4,6):(6,1)", "(6,2):(4,2)"),
    ("20:2", "(5,4):(4,1)"),
    ("(10,2):(16,4)", "(5,4):(1,5)"),
    ("12:1", "4:3"),
    ("(4,8):(8,1)", "((2,2),2):((1,8),2)"),
];

#[test]
fn a_composition_has_the_colour_of_the_index_that_it_reads() {
    for (a, b) in COMPOSED.map(|(a, b)| (layout(a), layout(b))) {
        let figure = composition(&a, &b, Style::default()).unwrap();
        let [left, middle, right] = grids(&figure)[..] else { panic!("{} panels", grids(&figure).len()) };
        let (left, middle, right) = (cells(left), cells(middle), cells(right));
        let mut first: HashMap<i64, Paint> = HashMap::new();
        for (c, (picked, result)) in middle.iter().zip(&right).enumerate() {
            let index = b.eval(&i64::try_from(c).unwrap()).unwrap();
            assert_eq!((&picked.label, &result.label), (&index.to_string(), &a.eval(&index).unwrap().to_string()));
            assert_eq!((picked.fill, picked.region), (result.fill, result.region), "{a} o {b} at {c}");
            first.entry(index).or_insert(picked.fill);
        }
        for (index, cell) in left.iter().enumerate() {
            let by = first.get(&i64::try_from(index).unwrap());
            assert_eq!((cell.fill, cell.faint), (by.copied().unwrap_or_default(), by.is_none()), "{a} o {b}: {index}");
        }
    }
    assert_eq!(
        composition(&layout("(6,2):(1,7)"), &layout("(3,2):(2,3)"), Style::default()).unwrap_err().code(),
        "E0107"
    );
}

#[test]
fn modes_are_followed_whether_or_not_they_compose() {
    let refused = [("(6,2):(1,7)", "(3,2):(2,3)"), ("(4,6,8):(2,3,5)", "6:3")];
    for (a, b) in COMPOSED.into_iter().chain(refused).map(|(a, b)| (layout(a), layout(b))) {
        let figure = composition_by_mode(&a, &b, Style::default()).unwrap();
        for (mode, grid) in b.modes().zip(grids(&figure)) {
            assert_eq!((grid.rows.len(), grid.columns.len()), (2, mode.size()));
            for c in 0..mode.size() {
                let index = mode.eval(&c).unwrap();
                assert_eq!(grid.cell(0, c).label, index.to_string());
                assert_eq!(grid.cell(1, c).label, a.eval(&index).unwrap().to_string());
            }
        }
        assert_eq!(grids(&figure).len(), b.rank());
    }
}

#[test]
fn what_is_pointed_out_over_indices_stands_at_its_index() {
    let a = layout("(6,2):(1,7)");
    let marks = [
        (4, Paint::Accent, "one".to_owned()),
        (3, Paint::Void, "other".to_owned()),
        (7, Paint::Warn, "both".to_owned()),
    ];
    for medium in [Medium::Page, Medium::Terminal] {
        let style = Style { medium, ..Style::default() };
        let figure = over_indices("A", &a, &marks, style).unwrap().unwrap();
        for (index, cell) in cells(grids(&figure)[0]).iter().enumerate() {
            let index = i64::try_from(index).unwrap();
            assert_eq!(cell.label, a.eval(&index).unwrap().to_string());
            let fill = marks.iter().find(|mark| mark.0 == index).map_or(Paint::Paper, |mark| mark.1);
            assert_eq!(cell.fill, fill);
        }
        assert_eq!(figure.caption.contains("A(7): both"), medium == Medium::Terminal);
        assert_eq!(figure.legend.is_some(), medium == Medium::Page);
    }
    // A line ends with a whole run; what does not fit one has no picture.
    let past = [(13, Paint::Warn, String::new())];
    assert_eq!(grids(&over_indices("A", &a, &past, Style::default()).unwrap().unwrap())[0].columns.len(), 18);
    for far in [-1, 32, i64::MAX] {
        assert!(over_indices("A", &a, &[(far, Paint::Warn, String::new())], Style::default()).unwrap().is_none());
    }
}

#[test]
fn a_complement_fills_every_gap_with_a_copy() {
    for (a, target) in [("4:2", 24), ("(2,2):(1,8)", 32), ("(2,4):(1,16)", 128), ("(4,3):(0,1)", 12), ("8:1", 8)] {
        let a = layout(a);
        let rest = a.complement(&target).unwrap();
        let figure = filled(&a, &rest, Style::default()).unwrap();
        let [before, after] = grids(&figure)[..] else { panic!("two panels") };
        let own: HashSet<i64> = (0..a.size()).map(|index| a.eval(&index).unwrap()).collect();
        for row in 0..after.rows.len() {
            for column in 0..after.columns.len() {
                let offset = row * after.columns.len() + column;
                let (alone, all) = (before.cell(row, column), after.cell(row, column));
                if offset >= target {
                    assert_eq!((&alone.label, &all.label), (&String::new(), &String::new()));
                    continue;
                }
                // The copy of an offset, by trying all.
                let copy = (0..rest.size()).find(|copy| own.contains(&(offset - rest.eval(copy).unwrap()))).unwrap();
                assert_eq!(all.title, format!("offset {offset}: copy {copy}"), "{a}");
                assert_eq!(all.region == 1, own.contains(&offset), "{a} at {offset}");
                assert_eq!(alone.fill == Paint::Void, !own.contains(&offset), "{a} at {offset}");
            }
        }
        assert!(figure.svg(Theme::Auto).contains("</svg>"));
    }
}

#[test]
fn what_a_weak_complement_leaves_is_a_hole() {
    let a = layout("(4,6):(1,6)");
    let figure = filled(&a, &a.weak_complement(&72).unwrap(), Style::default()).unwrap();
    assert!(figure.caption.ends_with("leave 22 holes"), "{}", figure.caption);
    let huge = filled(&layout("1:0"), &layout("1099511627776:1"), Style::default()).unwrap_err();
    assert_eq!(huge.code(), "E0503");
}
