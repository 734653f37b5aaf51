//! Damaged, long and hostile texts: what is whole is read, and nothing else.

use std::time::Instant;

use tilewright_read::{Options, document, expression, failures};

/// Texts of every reader.
const TEXTS: &[&str] = &[
    "sA:\tSw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)",
    "Sw<3,4,3>_smem_ptr[16b](0x7f3a00000480) o ((_8,_1),_64):((_64,_0),_1)",
    "cute::ComposedLayout<cute::Swizzle<3, 4, 3>, cute::smem_ptr_flag_bits<16>, cute::Layout<cute::tuple<cute::C<8>, \
     cute::C<64>>, cute::tuple<cute::C<64>, cute::C<1>>>>",
    "auto l = make_layout(make_shape(M, Int<8>{}), make_stride(_8{}, _1{}));",
    "%3 = f() : !cute.memref<f16, smem, align<1024>, S<3,4,3>, \"((8,16),(64,1)):((64,512),(1,0))\">",
    "tensor<ptr<f16, smem, align<1024>> o S<3,4,3> o 0 o (8,64):(64,1)>",
    "cute.make_layout((4, (2, 8)), stride=(8, (4, 1)))",
    "TiledMMA\n  ThrLayoutVMNK:  (_32,_2,_2,_1):(_1,_32,_64,_0)\n  PermutationMNK: (_32,_32,_16)\nMMA_Atom\n  ThrID:      \
     _32:_1\n  Shape_MNK:  (_16,_8,_16)\n  LayoutA_TV: ((_4,_8),(_2,_2,_2)):((_32,_1),(_16,_8,_128))\n",
    "error: static assertion failed with \"Stride Divisibility Condition\"\n instantiation of \"auto cute::composition(A) \
     [with LShape=cute::_6, LStride=cute::_1, RShape=cute::_4, RStride=cute::_1]\" at line 4 of k.cu",
];

/// Every beginning of every text is read or refused, and no layout appears that the whole has not.
#[test]
fn every_beginning_and_every_damage() {
    for text in TEXTS {
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            let part = &text[..end];
            let _ = expression(part, &Options::default());
            let _ = document(part, &Options::default());
            let _ = failures(part, &Options::default());
        }
        for at in 0..text.len() {
            for byte in [b'(', b'<', b'"', b'9', b' '] {
                let mut damaged = text.as_bytes().to_vec();
                damaged[at] = byte;
                let damaged = String::from_utf8_lossy(&damaged);
                let _ = document(&damaged, &Options::default());
                let _ = failures(&damaged, &Options::default());
            }
        }
    }
}

#[test]
fn a_type_that_is_cut_off_is_refused() {
    let whole = TEXTS[2];
    for end in "cute::ComposedLayout<".len()..whole.len() {
        let found = document(&whole[..end], &Options::default());
        for reading in found.readings() {
            // What stands whole inside of the piece is a layout of its own.
            assert!(whole[..end].contains("cute::Layout<"), "{reading}");
        }
        assert!(found.items.iter().any(|item| item.answer.is_err()), "{end}");
    }
}

/// Comments are passed in source, and none makes a reader look far ahead.
#[test]
fn comments_are_passed() {
    for (text, wanted) in [
        ("cute.make_layout(  # rows, (columns\n    (4, 8),\n    stride=(8, 1),  # of floats\n)", "(4,8):(8,1)"),
        (
            "make_layout(make_shape(Int<4>{}, /* columns, ( */ Int<8>{}), // strides\n  make_stride(_8{}, _1{}))",
            "(4,8):(8,1)",
        ),
    ] {
        assert_eq!(expression(text, &Options::default()).unwrap().to_string(), wanted);
    }
    for sign in ["make_layout(# ", "Tile</* ", "Tile<// ", "gl.BlockedLayout(# ", "cute.make_layout((# "] {
        let _ = document(&sign.repeat(2_000), &Options::default());
    }
}

/// The rest of a text counts, too: a layout on a later line, and words before a damaged one.
#[test]
fn a_damaged_text_is_refused_as_a_whole() {
    let why = |text: &str| expression(text, &Options::default()).unwrap_err().to_string();
    let cut = "cute::Layout<cute::tuple<cute::C<4>, cute::tuple<cute::C<8>>";
    assert_eq!(why(cut), "the type is cut off");
    let attribute = "#ttg.slice<{dim = ;, parent = #ttg.linear<{register = [[1]], lane = [], warp = [], block = []}>}>";
    assert!(why(attribute).contains("damaged"), "{}", why(attribute));
    assert_eq!(why(&format!("{attribute}\nsB: (_8,_64):(_64,_1)")), "the text holds more than one layout");
    assert_eq!(why(&format!("what is this? {attribute}")), "no reader knows the text before the layout");
}

/// A table or a printed linear layout from which lines are missing is not read as a smaller one.
#[test]
fn missing_lines_are_noticed() {
    let why = |text: &str| match expression(text, &Options::default()) {
        Ok(reading) => format!("read as {reading}"),
        Err(refused) => refused.to_string(),
    };
    let rule = "    +---+---+\n";
    let row = |row: i64| format!(" {row}  | {} | {} |\n{rule}", 2 * row, 2 * row + 1);
    let table = |rows: &[&str]| format!("      0   1 \n{rule}{}", rows.concat());
    let [first, second, third] = [row(0), row(1), row(2)];
    assert_eq!(why(&table(&[&first, &second, &third])), "read as (3,2):(2,1)");
    assert!(why(&table(&[&first, &third])).contains("missing"), "{}", why(&table(&[&first, &third])));
    let between = table(&[&first, "step 3 of 10\n", &second]);
    assert!(why(&between).contains("missing"), "{}", why(&between));

    let lines = ["register=1 -> (0, 1)", "lane=1 -> (0, 2)", "lane=2 -> (0, 4)", "lane=4 -> (1, 0)"];
    let printed = |kept: &[usize]| {
        let lines: Vec<String> =
            kept.iter().map(|at| format!("{}{}\n", if *at < 2 { " - " } else { "   " }, lines[*at])).collect();
        format!("{}where out dims are: [dim0 (size 2), dim1 (size 8)]", lines.concat())
    };
    assert!(why(&printed(&[0, 1, 2, 3])).starts_with("read as register=[(0,1)]"), "{}", why(&printed(&[0, 1, 2, 3])));
    assert!(why(&printed(&[0, 1, 3])).contains("damaged"), "{}", why(&printed(&[0, 1, 3])));
}

#[test]
fn deep_nests_and_long_texts_take_linear_time() {
    let size = 1 << 17;
    let hostile = [
        "(".repeat(size),
        "((1,".repeat(size / 4),
        "(1,2):(1,".repeat(size / 9),
        "cute::Layout<".repeat(size / 13),
        "cute::Layout<cute::tuple<".repeat(size / 25),
        "Layout<C<".repeat(size / 9),
        "Sw<3,4,3> o ".repeat(size / 12),
        "!cute.layout<\"".repeat(size / 14),
        "tensor<ptr<".repeat(size / 11),
        "make_layout(".repeat(size / 12),
        "TiledMMA\n".repeat(size / 9),
        "error: static assertion failed\n".repeat(size / 31),
        "é(_4,_8):(_8,_1)".repeat(size / 17),
    ];
    for text in &hostile {
        let begin = Instant::now();
        let _ = document(text, &Options::default());
        let _ = failures(text, &Options::default());
        let took = begin.elapsed().as_secs_f64();
        // A hundred times what it takes: only a quadratic reader fails.
        assert!(took < 30.0, "{took} s for {}", &text[..12]);
    }
}

/// How long ten megabytes of a log take: the pastes of `pastes.txt` between lines of a program.
///
/// `cargo test --release -p tilewright-read --test suite -- --ignored --nocapture ten_megabytes`
#[test]
#[ignore = "a measurement"]
fn ten_megabytes_of_a_log() {
    let pastes = include_str!("../pastes.txt");
    let line = "[ 12:30:01.123 worker 3 ] step 1204 loss=2.71828 lr=3e-4 tokens/s=104857 mem=61.2GiB (ok) [rank 7]\n";
    for (name, quiet) in [("dense with layouts", 0), ("one paste in a hundred lines", 100 * 40)] {
        let mut log = String::new();
        while log.len() < 10 << 20 {
            log.push_str(pastes);
            log.push_str(&line.repeat(quiet));
        }
        let begun = std::time::Instant::now();
        let found = document(&log, &Options::default());
        let seconds = begun.elapsed().as_secs_f64();
        println!("{name}: {} layouts in {} MiB, {seconds:.2} s", found.items.len(), log.len() >> 20);
    }
}

/// How long sixteen megabytes of types that nest without end take.
///
/// `cargo test --release -p tilewright-read --test suite -- --ignored --nocapture deep_nests`
#[test]
#[ignore = "a measurement"]
fn deep_nests() {
    for piece in [
        "Layout<tuple<",
        "Layout<C<",
        "Layout<",
        "cute::Layout<cute::tuple<",
        "Tensor<",
        "make_layout(",
        "((1,",
        "[[",
        "(Swizzle(",
    ] {
        let text = piece.repeat((16 << 20) / piece.len());
        let begun = Instant::now();
        let found = document(&text, &Options::default());
        let read = begun.elapsed().as_secs_f64();
        let failed = failures(&text, &Options::default());
        let both = begun.elapsed().as_secs_f64();
        println!(
            "{piece}: {} refused in {read:.2} s, {} failures in {:.2} s",
            found.items.len(),
            failed.len(),
            both - read
        );
    }
}
