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

#[test]
fn hostile_lines_end() {
    for text in [
        "(".repeat(100_000),
        "((".repeat(50_000) + "):(",
        "\"".repeat(9_999),
        "layout!(".repeat(9_999),
        "Layout<".repeat(20_000),
        "):(".repeat(30_000),
    ] {
        let own = Text::new(text);
        for character in [0, 1, 50, 4_999, 49_999] {
            let _ = layout_at(&own, Position { line: 0, character });
        }
    }
}
