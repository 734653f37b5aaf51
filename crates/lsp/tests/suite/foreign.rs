//! Layouts in files of any language.

use tilewright_layout::Layout;
use tilewright_lsp::{Position, Text, layout_at, layouts};
use tilewright_notation::{Environment, evaluate};

fn expression(text: &str, what: &str) -> Option<String> {
    let own = Text::new(text.to_owned());
    layout_at(&own, own.position(text.find(what).unwrap() + what.len() / 2))?.expression
}

#[test]
fn each_language_has_its_layouts() {
    let same = [
        ("a = cute.make_layout((4, 8), stride=(8, 1))", "stride", "(4,8):(8,1)"),
        ("b = Layout((4, (2, 2)), (1, (16, 4)))", "Layout", "(4,(2,2)):(1,(16,4))"),
        ("c = Layout(shape=(4, 8), stride=(8, 1))", "shape=", "(4,8):(8,1)"),
        ("let d = layout!((6,2):(1,7));", "6,2", "(6,2):(1,7)"),
        ("let e: Layout = \"(6,2):(8,2) o (4,3):(3,1)\".parse()?;", "o (4", "(6,2):(8,2) o (4,3):(3,1)"),
        ("sA: (_8,_64):(_64,_1)", "_64", "(8,64):(64,1)"),
        ("// stored as (8,64):(64,1), see below", "8,64", "(8,64):(64,1)"),
        (
            "using L = cute::Layout<cute::Shape<cute::_4, cute::_8>, cute::Stride<cute::_8, cute::_1>>;",
            "Shape",
            "(4,8):(8,1)",
        ),
    ];
    for (text, at, wanted) in same {
        let found = expression(text, at).unwrap_or_else(|| panic!("nothing in {text}"));
        let value = |text: &str| evaluate(text, &mut Environment::new()).unwrap().to_string();
        assert_eq!(value(&found), value(wanted), "{text}");
    }
    let gluon = "layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])";
    let own = Text::new(gluon.to_owned());
    let found = layout_at(&own, Position { line: 0, character: 30 }).unwrap();
    assert!(found.text.contains("shape"), "{}", found.text);
}

/// A text of the notation is taken whole, and only where it stands.
#[test]
fn the_notation_is_read_where_it_stands() {
    for (line, at, wanted) in [
        ("// nested: ((2,2),N):((1,4),2), see below", "2,2", "((2,2),N):((1,4),2)"),
        ("let a = layout!((4,8):(8,1) o 32:1);", "32", "(4,8):(8,1) o 32:1"),
        // A definition and a number are no layouts; what they hold is one.
        ("a = \"b = (4,8):(8,1)\"", "4,8", "(4,8):(8,1)"),
        ("a = \"size((4,8):(8,1))\"", "4,8", "(4,8):(8,1)"),
    ] {
        assert_eq!(expression(line, at).as_deref(), Some(wanted), "{line}");
    }
    for (line, at) in [
        ("a \"(6,2):(8,2) o (4,3):(3,1)\" there", "there"),
        ("first(x); layout!((4,8):(8,1) o 32:1)", "first"),
        ("first(x), (4,8):(8,1)", "first"),
    ] {
        assert_eq!(expression(line, at), None, "{line}");
    }
}

/// The name, the unit, the notes, the parts and the help are shown.
#[test]
fn a_hover_has_all_of_the_reading() {
    let block = "TiledMMA\n  ThrLayoutVMNK:  (_32,_2,_2,_1):(_1,_32,_64,_0)\n  PermutationMNK: (_32,_32,_16)\n\
                 MMA_Atom\n  ThrID:      _32:_1\n  Shape_MNK:  (_16,_8,_16)\n  LayoutA_TV: \
                 ((_4,_8),(_2,_2,_2)):((_32,_1),(_16,_8,_128))\n  LayoutB_TV: ((_4,_8),(_2,_2)):((_16,_1),(_8,_64))\n  \
                 LayoutC_TV: ((_4,_8),(_2,_2)):((_32,_1),(_16,_8))\n";
    for (text, parts) in [
        (
            "sA_layout: Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)",
            &["`sA_layout`", "in elements of 16 bits", "* Sw<3,4,3> acts on byte addresses"][..],
        ),
        (block, &["* `LayoutC_TV`: `((4,8),(2,2)):((32,1),(16,8))`"]),
        ("!cute.ptr<!my.type, smem, align<1024>, S<3,4,3>>", &["how wide is !my.type?", "* help: say the width"]),
    ] {
        // A layout stands behind its name.
        let own = Text::new(text.to_owned());
        let found = layout_at(&own, own.position(text.find("Sw<").map_or(4, |at| at + 1))).unwrap();
        for part in parts {
            assert!(found.text.contains(part), "{part} in {}", found.text);
        }
    }
}

/// Literal arguments go over lines and have comments and names, whichever line is pointed at.
#[test]
fn literals_of_python_are_read_by_syntax() {
    let calls = [
        ("make_layout(\n    (4, 8),  # rows (of 8)\n    stride=(8, 1),\n)", "(4,8):(8,1)"),
        ("cute.make_layout((4, (2, 4)), stride=(1, (16, 4)))", "(4,(2,4)):(1,(16,4))"),
        ("Layout(\n    shape=(4, 8),  # rows\n    stride=(8, 1),\n)", "(4,8):(8,1)"),
        ("pycute.Layout([4, 8], [8, 1])", "(4,8):(8,1)"),
        ("Layout(1_024, 2)", "1024:2"),
        ("cute.make_layout(\n    (M, 8), stride=(8, 1)\n)", "(M,8):(8,1)"),
    ];
    for (call, wanted) in calls {
        let own = Text::new(format!("import cute\n\nx = {call}  # (1,2):(3,4) is said\ny = 3\n"));
        for at in 0..call.lines().count() {
            let line: usize = call.lines().take(at).map(|line| line.len() + 1).sum();
            let place = own.position("import cute\n\nx = ".len() + line + 1);
            let found = layout_at(&own, place).unwrap_or_else(|| panic!("nothing at {place:?} of {call}"));
            let value = |text: &str| evaluate(text, &mut Environment::new()).unwrap().to_string();
            assert_eq!(value(&found.expression.unwrap()), value(wanted), "{call}");
        }
    }
    let blocked =
        "gl.BlockedLayout(\n    [1, 8],  # of a thread\n    [4, 8],\n    warps_per_cta=[4, 1],\n    order=[1, 0],\n)";
    let own = Text::new(format!("layout: gl.constexpr = {blocked}\n"));
    for line in 0..6 {
        let found = layout_at(&own, Position { line, character: 1 + 24 * u32::from(line == 0) });
        assert!(found.as_ref().is_some_and(|found| found.text.contains("shape")), "line {line}: {found:?}");
    }
}

/// A call is read from its module's name to its end, and calls of other classes are none.
#[test]
fn a_call_is_read_where_it_stands() {
    for (line, at) in [
        ("y = MyLayout([4, 8], [8, 1])", "[4, 8]"),
        ("y = 3; z = Layout([4, 8], [8, 1])", "y ="),
        ("Layout([4, 8], [8, 1]); print(\"done\")", "done"),
    ] {
        assert_eq!(expression(line, at), None, "{line}");
    }
    let own = Text::new("z = pycute.Layout([4, 8], [8, 1]); print()".to_owned());
    for character in [5, 20] {
        let span = layout_at(&own, Position { line: 0, character }).unwrap().span;
        assert_eq!((span.start.character, span.end.character), (4, 33));
    }
}

/// What only the program knows says nothing, and nothing is executed.
#[test]
fn what_is_computed_says_nothing() {
    for call in [
        "Layout(f\"{(4, 8)}\")",
        "Layout((M, 8), (8, 1))",
        "Layout((4 * 2, 8), (8, 1))",
        "Layout(make_shape(4, 8))",
        "Layout(__import__('os').system('false'))",
        "make_layout(f\"(4,8)\")",
        "make_layout(shape, stride=stride)",
        "gl.BlockedLayout(f\"{x}\", [4, 8], [4, 1], [1, 0])",
        "gl.BlockedLayout(per_thread, [4, 8], [4, 1], [1, 0])",
        "gl.BlockedLayout([1, n], [4, 8], [4, 1], [1, 0])",
    ] {
        let own = Text::new(format!("x = {call}\n"));
        for character in 0..=call.len() as u32 + 4 {
            let found = layout_at(&own, Position { line: 0, character });
            assert_eq!(found.and_then(|found| found.expression), None, "{call} at {character}");
        }
    }
}

#[test]
fn what_is_no_layout_says_nothing() {
    for line in
        ["at 12:30 (see page 3:4)", "x = f(a, b)[1:2]", "Layout(shape, stride)", "\"a:b\"", "os.system(\"(1:2)\")", ""]
    {
        let own = Text::new(line.to_owned());
        for character in 0..=line.len() as u32 {
            assert_eq!(layout_at(&own, Position { line: 0, character }).and_then(|own| own.expression), None, "{line}");
        }
    }
}

/// The lines around a place tell what the whole file tells.
#[test]
fn a_place_is_read_as_in_the_whole_file() {
    let mut source = String::from(
        "#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>\n",
    );
    for line in 0..600_i64 {
        let (rows, columns) = (1 << (line % 5), 1 << (line % 7));
        source.push_str(&match line % 6 {
            0 => format!("s{line}: (_{rows},_{columns}):(_{columns},_1)\n"),
            1 => format!("    t = cute.make_layout(({rows}, {columns}), stride=({columns}, 1)) # größe\n"),
            2 => format!("%{line} = tt.load %p : tensor<{}x{}x!tt.ptr<f16>, #mma>\n", 64 * rows, 8 * columns),
            3 => format!("Layout<Shape<_{rows},\n    _{columns}>,\n  Stride<_{columns}, _1>>\n"),
            _ => "nothing to see here: 3\n".to_owned(),
        });
    }
    let own = Text::new(source);
    let all = layouts(&own);
    assert!(all.len() >= 400, "{}", all.len());
    for found in &all {
        let here = layout_at(&own, found.span.start).unwrap();
        assert_eq!(&here, found);
    }
    let first = all.iter().find_map(|own| own.expression.as_deref()?.parse::<Layout>().ok()).unwrap();
    assert_eq!(first.size(), 1);
}

/// The lines before a place are cut at a limit in bytes, which may be in the middle of a character.
#[test]
fn a_long_line_of_wide_characters_is_read() {
    for blanks in 0..2 {
        let before = "é".repeat(5_000) + &" ".repeat(1 + blanks);
        for text in ["(_4,_8):(_8,_1)", "Layout([4, 8], [8, 1])"] {
            let own = Text::new(format!("{before}{text}"));
            let found = layout_at(&own, own.position(before.len() + 2)).unwrap();
            assert_eq!(found.expression.as_deref(), Some("(4,8):(8,1)"), "{text}");
        }
    }
}

#[test]
fn hostile_lines_end() {
    for text in [
        "(".repeat(100_000),
        "((".repeat(50_000) + "):(",
        "\"".repeat(9_999),
        "layout!(".repeat(9_999),
        "Layout<".repeat(20_000),
        "):(".repeat(30_000),
        "Layout(".repeat(30_000),
        "Layout((".repeat(30_000),
        "Layout(1, # é\n".repeat(10_000),
    ] {
        let own = Text::new(text);
        for character in [0, 1, 50, 4_999, 49_999] {
            let _ = layout_at(&own, Position { line: 0, character });
        }
    }
}
