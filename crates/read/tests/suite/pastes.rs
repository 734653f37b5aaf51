//! Pastes of the kinds that people have: what prints, dumps and errors show, retold with other
//! numbers. Each is read, asked about, or refused, as `pastes.txt` says.
//!
//! A paste begins at `## name`. The lines behind `=> ` are what comes of it. `PASTES=overwrite`
//! writes them anew; read the difference before you commit it.

use tilewright_layout::{AnyLayout, Refusal as _};
use tilewright_mesh::Mesh;
use tilewright_read::{Options, Refused, document, expression};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pastes.txt");

/// What comes of a paste: a line for each layout.
fn outcome(text: &str) -> Vec<String> {
    let items = document(text, &Options::default()).items;
    let mut lines = Vec::new();
    for item in items {
        let name = item.name.map_or(String::new(), |name| format!("{name}: "));
        lines.push(match item.answer {
            Ok(reading) => format!("{name}{} ({}, {})", reading, reading.what, reading.unit),
            Err(Refused::Question(question)) => format!("{name}asks for {:?}: {}", question.missing, question.message),
            Err(refused) => format!("{name}{}: {refused}", refused.code()),
        });
    }
    if lines.is_empty() {
        lines.push("nothing".to_owned());
    }
    lines
}

#[test]
fn every_paste_comes_out_as_it_should() {
    let file = std::fs::read_to_string(FILE).unwrap();
    let mut written = String::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    for block in file.split("## ").skip(1) {
        let (name, rest) = block.split_once('\n').unwrap();
        let text: Vec<&str> = rest.lines().filter(|line| !line.starts_with("=> ")).collect();
        let expected: Vec<&str> = rest.lines().filter_map(|line| line.strip_prefix("=> ")).collect();
        let text = text.join("\n");
        let found = outcome(text.trim_matches('\n'));
        if found != expected {
            wrong.push(format!("{name}\n  found {found:#?}\n  expected {expected:#?}"));
        }
        written.push_str(&format!("## {name}\n{}\n", text.trim_matches('\n')));
        found.iter().for_each(|line| written.push_str(&format!("=> {line}\n")));
        written.push('\n');
        count += 1;
    }
    if std::env::var("PASTES").as_deref() == Ok("overwrite") {
        std::fs::write(FILE, written.trim_end().to_owned() + "\n").unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 60, "{count}");
}

#[test]
fn a_mesh_answers_for_what_has_none() {
    let mesh: Mesh = "x=2:4,y=4:1".parse().unwrap();
    let told = Options { mesh: Some(mesh), shape: Some(vec![8, 16]), ..Options::default() };
    let read = |text: &str| expression(text, &told).unwrap().meaning;
    let whole = "NamedSharding(mesh=Mesh('x': 2, 'y': 4), spec=PartitionSpec('y', 'x'))";
    let shape = Options { shape: Some(vec![8, 16]), ..Options::default() };
    let named = expression(whole, &shape).unwrap().meaning;
    assert_eq!(read("PartitionSpec('y', 'x')"), named);
    assert_eq!(read("P('y', 'x')"), named);
    assert_eq!(read("[Shard(dim=1), Shard(dim=0)]"), named);
    assert_ne!(read("(Shard(0), Replicate())"), named);
}

/// Layouts of XLA name the fastest dimension first.
#[test]
fn arrays_of_xla_are_in_the_order_of_their_braces() {
    let read = |text: &str| expression(text, &Options::default()).unwrap().to_string();
    assert_eq!(read("f32[8,6,4]{2,1,0}"), "(8,6,4):(24,4,1)");
    assert_eq!(read("f32[8,6,4]{0,2,1}"), "(8,6,4):(1,32,8)");
    assert_eq!(read("bf16[8,6]{1,0:S(1)}"), "(8,6):(6,1)");
    assert_eq!(read("f16[8, 6][1, 8]cuda:0"), "(8,6):(1,8)");
    assert!(document("f32[8,6]{1,1} f32[8,6]{2,1,0} x[3] u8[16][4]", &Options::default()).items.is_empty());
}

/// The integer at an index.
fn at(layout: &AnyLayout, index: i64) -> i64 {
    layout.eval(index).unwrap().to_string().parse().unwrap()
}

/// Every element is on the devices whose cell it is in.
#[test]
fn a_grid_of_devices_is_a_sharding() {
    let told = |shape: &[i64]| Options { shape: Some(shape.to_vec()), ..Options::default() };
    let sharded = |text: &str, shape: &[i64]| match expression(text, &told(shape)).unwrap().meaning {
        tilewright_read::Meaning::Sharded(layout) => layout,
        other => panic!("{other:?}"),
    };
    let grid = "┌───────┬───────┬───────┐\n│ CPU 0 │ CPU 1 │ CPU 2 │\n├───────┼───────┼───────┤\n\
                │ CPU 3 │ CPU 4 │ CPU 5 │\n└───────┴───────┴───────┘\n";
    let layout = sharded(grid, &[8, 6]);
    for row in 0..8_i64 {
        for column in 0..6_i64 {
            let places = layout.places(row + 8 * column).unwrap();
            let device = (row / 4 * 3 + column / 2) as usize;
            assert_eq!(places, [(device, row % 4 * 2 + column % 2)], "{row},{column}");
        }
    }
    let copies = "┌─────────┬─────────┐\n│ CPU 0,1 │ CPU 2,3 │\n└─────────┴─────────┘";
    let layout = sharded(copies, &[8]);
    for index in 0..8_i64 {
        let mut devices: Vec<usize> = layout.places(index).unwrap().iter().map(|place| place.0).collect();
        devices.sort_unstable();
        let first = (index / 4 * 2) as usize;
        assert_eq!(devices, [first, first + 1], "{index}");
    }
    // Other pictures, and a grid that is cut off.
    assert!(document("┌─────┐\n│ hello │\n└─────┘", &Options::default()).items.is_empty());
    let cut = expression("┌───────┬───────┐\n│ CPU 0 │ CPU 1 │\n├───────┼───────┤", &told(&[8, 6]));
    assert_eq!(cut.unwrap_err().code(), "E1302");
}

/// A table is the layout that it shows, whatever layout drew it.
#[test]
fn tables_show_layouts() {
    for (shape, text) in [
        ([4, 8], "(4,8):(8,1)"),
        ([4, 6], "((2,2),6):((1,12),2)"),
        ([8, 8], "S<2,0,3> o 0 o (8,8):(8,1)"),
        ([1, 4], "(1,4):(0,3)"),
        ([3, 1], "(3,1):(5,0)"),
    ] {
        let layout = expression(text, &Options::default()).unwrap();
        let value = |row: i64, column: i64| at(layout.layout().unwrap(), row + shape[0] * column);
        // As `print_layout` draws it.
        let all: Vec<i64> = (0..shape[0])
            .flat_map(|row| (0..shape[1]).map(move |column| (row, column)))
            .map(|(r, c)| value(r, c))
            .collect();
        let width = all.iter().max().unwrap().to_string().len();
        let mut table = String::from("    ");
        (0..shape[1]).for_each(|column| table.push_str(&format!("  {column:width$} ")));
        let rule = format!("    {}+\n", format!("+{}", "-".repeat(width + 2)).repeat(shape[1] as usize));
        table.push('\n');
        for row in 0..shape[0] {
            table.push_str(&rule);
            table.push_str(&format!("{row:2}  "));
            (0..shape[1]).for_each(|column| table.push_str(&format!("| {:width$} ", value(row, column))));
            table.push_str("|\n");
        }
        table.push_str(&rule);
        let found = expression(&table, &Options::default()).unwrap_or_else(|refused| panic!("{refused}\n{table}"));
        for row in 0..shape[0] {
            for column in 0..shape[1] {
                let own = at(found.layout().unwrap(), row + shape[0] * column);
                assert_eq!(own, value(row, column), "{text} at {row},{column}");
            }
        }
        // Below its layout it is the same reading.
        let both = format!("{text}\n{table}");
        assert_eq!(expression(&both, &Options::default()).unwrap().to_string(), layout.to_string());
    }
}
