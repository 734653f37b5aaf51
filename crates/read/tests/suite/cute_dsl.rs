//! CuTe's Python: its source, its prints and the types of its IR.

use tilewright_layout::Refusal;
use tilewright_read::{Missing, Options, Refused, Unit, document, expression};

/// The recorded facts, or those of the file that `CUTE_DSL_FACTS` names.
fn facts() -> String {
    match std::env::var("CUTE_DSL_FACTS") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => include_str!("../cute-dsl.tsv").to_owned(),
    }
}

fn read(text: &str) -> String {
    match expression(text, &Options::default()) {
        Ok(reading) => reading.to_string(),
        Err(refused) => format!("{}: {refused}", refused.code()),
    }
}

/// Recorded texts and values (`scripts/read-cute-dsl`).
#[test]
fn values_are_those_that_the_package_computes() {
    let mut count = 0;
    for line in facts().lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [_, text, values] = fields.as_slice() else { panic!("{line}") };
        let reading = expression(text, &Options::default()).unwrap_or_else(|refused| panic!("{text}: {refused}"));
        let layout = reading.layout().unwrap_or_else(|| panic!("{text}: {reading}"));
        for (index, expected) in values.split(',').enumerate() {
            assert_eq!(layout.eval(index as i64).unwrap().to_string(), expected, "{text} at {index}");
        }
        count += 1;
    }
    assert!(count >= 140, "{count}");
}

#[test]
fn a_swizzle_beside_the_alignment_counts_bytes() {
    for (text, meaning) in [
        ("!cute.memref<f16, smem, align<1024>, S<3,4,3>, \"(8,64):(64,1)\">", "S<3,3,3> o 0 o (8,64):(64,1)"),
        ("!cute.memref<f16, smem, align<1024>, \"S<3,3,3> o 0 o (8,64):(64,1)\">", "S<3,3,3> o 0 o (8,64):(64,1)"),
        ("!cute.memref<f32, smem, align<1024>, S<3,4,3>, \"(8,32):(32,1)\">", "S<3,2,3> o 0 o (8,32):(32,1)"),
        ("tensor<ptr<f16, smem, align<1024>, S<3,4,3>> o (8,64):(64,1)>", "S<3,3,3> o 0 o (8,64):(64,1)"),
        ("tensor<ptr<f16, smem, align<1024>> o S<3,4,3> o 0 o (8,64):(64,1)>", "S<3,4,3> o 0 o (8,64):(64,1)"),
        ("tensor<ptr<f32, rmem, align<32>> o (4,8):(1,4)>", "(4,8):(1,4)"),
        ("tensor<(0,0) o (4,8):(1@0,1@1)>", "(4,8):(1@0,1@1)"),
        ("!cute.coord_tensor<\"(0,0)\", \"(4,8):(1@0,1@1)\">", "(4,8):(1@0,1@1)"),
        ("!cute.ptr<f16, smem, align<1024>, S<3,4,3>>", "S<3,3,3>"),
        ("!cute.layout<\"(?,?{div=16}):(?{i64 div=8},1)\">", "(?,?{div=16}):(?{div=8},1)"),
        ("!cute.layout<\"(2,3):(4,1)\">", "(2,3):(4,1)"),
        ("!cute.tile<\"[128:1;64:1]\">", "[128:1;64:1]"),
        ("!cute.shape<\"(1,((2,3),(4,5)))\">", "(1,((2,3),(4,5)))"),
        ("cute.make_layout((4,8), stride=(8,1))", "(4,8):(8,1)"),
        ("cute.make_ordered_layout((4, 8, 2), order=(2, 1, 0))", "(4,8,2):(16,2,1)"),
        (
            "cute.make_composed_layout(cute.make_swizzle(3,4,3), 0, cute.make_layout((8,64), stride=(64,1)))",
            "S<3,4,3> o 0 o (8,64):(64,1)",
        ),
        ("layout = cute.make_layout((M, 8), stride=(8, 1))", "(M,8):(8,1)"),
    ] {
        assert_eq!(read(text), meaning, "{text}");
    }
}

#[test]
fn a_width_that_is_missing_is_asked_for() {
    let text = "!cute.ptr<!my.type, smem, align<1024>, S<3,4,3>>";
    let refused = expression(text, &Options::default()).unwrap_err();
    let Refused::Question(question) = &refused else { panic!("{refused}") };
    assert_eq!(question.missing, Missing::Width);
    assert_eq!(refused.code(), "E1305");
    let told = Options { element_bits: Some(16), ..Options::default() };
    let reading = expression(text, &told).unwrap();
    assert_eq!((reading.to_string().as_str(), reading.unit), ("S<3,3,3>", Unit::Elements { bits: Some(16) }));
}

#[test]
fn an_element_is_not_cut() {
    // Chunks of two bytes move, and an element has four.
    assert!(read("tensor<ptr<f32, smem, align<1024>, S<3,1,3>> o (8,64):(64,1)>").starts_with("E1303"));
}

/// Which of two swizzles counts is not guessed, and nothing beside a layout is passed over.
#[test]
fn a_type_with_other_parts_is_not_read() {
    for text in [
        "!cute.memref<f16, smem, align<1024>, S<3,4,3>, S<2,4,3>, \"(8,64):(64,1)\">",
        "!cute.layout<\"(4,8):(8,1)\", \"(8,4):(1,8)\">",
    ] {
        assert_eq!(read(text), "E1304: a part of the type is not known", "{text}");
    }
}

#[test]
fn blocks_of_the_package() {
    let log = "Tiled MMA\n  Thr Layout VMNK: (32,2,2,1):(1,32,64,0)\n  Permutation MNK: (32:1,32:1,16:1)\nMMA Atom\n  \
               ThrID:           32:1\n  Shape MNK:       (16,8,16)\n  TV Layout A:     \
               ((4,8),(2,2,2)):((32,1),(16,8,128))\n  TV Layout B:     ((4,8),(2,2)):((16,1),(8,64))\n  TV Layout C:     \
               ((4,8),(2,2)):((32,1),(16,8))\n<class 'cutlass.cute.atom.TiledMma'>\nTiled Copy\n  Tiler MN:        \
               (16:1,64:1)\n  TV Layout tiled: ((8,16),8):((128,1),16)\nCopy Atom\n  ThrID:           1:0\n  TV Layout \
               Src:   (1,8):(0,1)\n  TV Layout Dst:   (1,8):(0,1)\n  Value type:      f16\n(?,8):(8,1)\n";
    let found = document(log, &Options::default());
    let told: Vec<_> = found.readings().map(|reading| (reading.what, reading.parts.len())).collect();
    assert_eq!(told, [("tiled product", 10), ("tiled copy", 5), ("layout", 0)]);
    let copy = found.readings().nth(1).unwrap();
    assert_eq!(copy.to_string(), "((8,16),8):((128,1),16)");
    let product = found.readings().next().unwrap();
    let tile = product.parts.iter().find(|part| part.name == "tile C").unwrap();
    assert_eq!(tile.value.to_string(), "((4,8,2,2),((2,2),(1,2))):((64,1,16,256),((32,8),(0,512)))");
}
