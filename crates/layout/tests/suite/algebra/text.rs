//! Law: a space before a text changes nothing but the positions in errors. Texts that begin with a
//! space are read by the general reader alone, so this compares it with the short way for layouts
//! as they are printed.

use tilewright_layout::{Layout, LayoutError};

/// Checks the law, and says whether the text is a layout.
fn check(text: &str) -> bool {
    let general = format!(" {text}").parse::<Layout>();
    match (text.parse::<Layout>(), general) {
        (Ok(layout), Ok(general)) => {
            assert_eq!(layout, general, "{text:?}");
            // A value that was read prints as a text of the same value.
            assert_eq!(layout.to_string().parse::<Layout>(), Ok(general), "{text:?}");
            true
        }
        (Err(LayoutError::Syntax { at, expected }), Err(general)) => {
            assert_eq!(LayoutError::Syntax { at: at + 1, expected }, general, "{text:?}");
            false
        }
        (Err(error), Err(general)) => {
            assert_eq!(error, general, "{text:?}");
            false
        }
        (found, general) => panic!("{text:?}: {found:?}, with a space before it {general:?}"),
    }
}

#[test]
fn every_short_text() {
    let (mut texts, mut layouts) = (vec![String::new()], 0);
    for _ in 0..8 {
        let longer = |text: &String| "(),:-2".chars().map(|mark| format!("{text}{mark}")).collect::<Vec<_>>();
        texts = texts.iter().flat_map(longer).collect();
        layouts += texts.iter().filter(|text| check(text)).count();
    }
    assert!(layouts > 100, "{layouts} of the texts are layouts");
}

#[test]
fn changed_texts() {
    let texts = [
        "4:1",
        "(4,8):(8,1)",
        "((16,8),(8,8)):((64,1),(1024,8))",
        "((8,16),(64,2),(1,2)):((64,512),(1,8192),(0,16384))",
        "(1,1,1,1,1,1,1,1):(1,2,3,4,5,6,7,-8)",
        "(1,1,1,1,1,1,1,1,1):(1,2,3,4,5,6,7,8,9)",
        "((((((((((((((((5)))))))))))))))):((((((((((((((((7))))))))))))))))",
        "(((((((((((((((5))))))))))))))):(((((((((((((((7)))))))))))))))",
        "(((1,2),(3,4)),((5,6),(7,8))):(((-1,-2),(-3,-4)),((-5,-6),(-7,-8)))",
        "(2147483647,3):(2147483648,21474836479)",
        "(2,3):(9223372036854775807,-9223372036854775808)",
        "(4294967296,2147483648):(0,1)",
        "(4294967296,1073741824):(99999999999,100000000000)",
    ];
    let marks = [
        "(",
        ")",
        ",",
        ":",
        "-",
        "0",
        "1",
        "9",
        "_",
        "x",
        " ",
        "\0",
        "\u{ff}",
        "(((((((((",
        ")))))))))",
        "00000000000000000000",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut layouts, mut refused) = (0, 0);
    for text in texts {
        assert!(check(text) || text.contains("2147483648):(0"), "{text}");
        for length in 0..text.len() {
            check(&text[..length]);
        }
        for _ in 0..20_000 {
            let mut changed = text.to_string();
            for _ in 0..=random(2) {
                let at = random(changed.chars().count() + 1);
                let at = changed.char_indices().nth(at).map_or(changed.len(), |(at, _)| at);
                let mark = marks[random(marks.len())];
                if random(2) == 0 || at == changed.len() {
                    changed.insert_str(at, mark);
                } else {
                    let width = changed[at..].chars().next().map_or(0, char::len_utf8);
                    changed.replace_range(at..at + width, mark);
                }
            }
            if check(&changed) {
                layouts += 1;
            } else {
                refused += 1;
            }
        }
    }
    assert!(layouts > 10_000 && refused > 10_000, "{layouts} layouts, {refused} refused");
}

#[test]
fn long_runs_of_brackets() {
    for length in [15, 16, 17, 31, 32, 33, 62, 63, 64, 65, 66, 128, 1000] {
        let (open, close) = ("(".repeat(length), ")".repeat(length));
        for text in [
            format!("{open}2{close}:{open}3{close}"),
            format!("2:{open}3{close}"),
            format!("2:{open}3"),
            format!("2:3{close}"),
            format!("(2):{open}(3)"),
            format!("(2,2):{open}(3,3)"),
            format!("{open}(2):(3)"),
            format!("(2{close}:(3)"),
            format!("(2):(3{close}"),
            format!("(2,2):(3,{open}3))"),
            format!("(2,2):3{close},(3,3)"),
            format!("(2,2,2):{open}3{close},(3,3)"),
            format!("(2,2,2):(3{close},(3,3)"),
        ] {
            check(&text);
        }
    }
}
