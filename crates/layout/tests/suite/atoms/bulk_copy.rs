//! Bulk copies: which tensor maps and bytes each name takes, against the rules of PTX, for every
//! name and every map.

use std::collections::HashSet;

use tilewright_layout::atoms::{Arch, BulkCopy, BulkDirection, BulkMode, CopyAtom, SwizzleMode, TensorMap};
use tilewright_layout::{Layout, Tree};

/// Maps of 1 to 5 dimensions, with boxes of several rows and of one.
fn maps() -> Vec<TensorMap> {
    let mut maps = Vec::new();
    for dimensions in 1..=5_usize {
        for rows in [1, 8] {
            let extents = (0..dimensions).map(|mode| if mode == 0 { 64 } else { 16 });
            let tile = (0..dimensions).map(|mode| if mode == 0 { 64 } else { rows });
            let global = Layout::compact(&Tree::flat(extents).unwrap()).unwrap();
            let tile = Tree::flat(tile).unwrap();
            let shared = Layout::compact(&tile).unwrap();
            let map = TensorMap::new(&global, &tile, &shared, 16, SwizzleMode::None).unwrap();
            assert_eq!(map.dimensions().len(), dimensions);
            maps.push(map);
        }
    }
    maps
}

#[test]
fn a_name_says_what_is_taken() {
    let (maps, mut names, mut taken) = (maps(), HashSet::new(), 0);
    for family in BulkCopy::families() {
        for name in family.names() {
            let copy = family.member(&name).unwrap();
            assert!(copy.name() == name && names.insert(name.clone()), "{name}");
            assert_eq!(BulkCopy::named(&name).unwrap(), copy);
            assert!(CopyAtom::named(&name).is_err(), "{name} is two things");
            assert_eq!(copy.arch(), if name.starts_with("SM90_") { Arch::Sm90 } else { Arch::Sm100 });
            // The words in the name.
            let has = |word: &str| name.split(['_', ':']).any(|part| part == word);
            let said: Vec<usize> = (1..=5).filter(|d| has(&format!("{d}D"))).collect();
            assert_eq!(copy.is_multicast(), has("MULTICAST"), "{name}");
            assert_eq!(copy.ctas(), if has("2SM") { 2 } else { 1 }, "{name}");
            let direction = match () {
                () if has("PREFETCH") => BulkDirection::Prefetch,
                () if has("ADD") => BulkDirection::Add,
                () if has("STORE") || has("S2G") => BulkDirection::Store,
                () if has("AUTO") => BulkDirection::Either,
                () => BulkDirection::Load,
            };
            assert_eq!(copy.direction(), direction, "{name}");
            let mode = match () {
                () if has("BULK") => BulkMode::Bytes,
                () if has("IM2COL") => BulkMode::Im2col,
                () if has("GATHER4") || has("SCATTER4") => BulkMode::FourRows,
                () => BulkMode::Tile,
            };
            assert_eq!(copy.mode(), mode, "{name}");
            for map in &maps {
                let dimensions = map.dimensions().len();
                let fits = said.is_empty() || said == [dimensions];
                let one_row = map.dimensions().get(1).is_none_or(|rows| rows.boxed == 1);
                let expected = match mode {
                    BulkMode::Tile => fits,
                    BulkMode::FourRows => fits && one_row,
                    BulkMode::Bytes | BulkMode::Im2col => false,
                };
                let answer = copy.takes(map);
                assert_eq!(answer.is_ok(), expected, "{name} {dimensions}");
                assert!(answer.is_ok_and(|()| true) || copy.takes(map).unwrap_err().code() == "E0328");
                taken += i64::from(expected);
            }
            let (fewest, most) = copy.dimensions();
            for dimensions in fewest.max(1)..=most {
                let expected = match mode {
                    BulkMode::Im2col => 2 * dimensions - 2,
                    BulkMode::FourRows => 1 + 4,
                    _ => dimensions,
                };
                assert_eq!(copy.coordinates(dimensions), expected, "{name}");
            }
            let needs = copy.needs();
            assert_eq!(needs.iter().any(|need| need.contains("mask of 16 bits")), copy.is_multicast());
            assert_eq!(needs.iter().any(|need| need.contains("tensor map")), mode != BulkMode::Bytes);
        }
    }
    // Boxes with 6 names, of im2col with 4: one without a number of dimensions, and one for each.
    assert_eq!(names.len(), 7 * 6 + 6 * 4 + 3 + 3);
    assert!(taken > 100, "{taken}");
    let near = BulkCopy::named("SM90_TMA_LOAD_6D").unwrap_err();
    assert!(near.code() == "E0316" && near.help().unwrap().contains("SM90_TMA_LOAD_"));
}
