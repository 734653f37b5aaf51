//! What an editor shows about tile programs, on every program of the library.

use std::collections::BTreeSet;

use tilewright_layout::Layout;
use tilewright_lsp::{Assigned, Kind, Position, Text, Tile, WORDS};
use tilewright_tile::{LIBRARY, Program, Subject};

fn tile(text: &str) -> Tile {
    Tile::new(Text::new(text.to_owned()))
}

/// A text in which `«` and `»` stand around the culprit: without them, and the culprit.
fn marked(text: &str) -> (String, String) {
    let inner = text.split_once('«').and_then(|(_, rest)| rest.split_once('»')).unwrap().0.to_owned();
    (text.replace(['«', '»'], ""), inner)
}

#[test]
fn problems_stand_at_their_culprit() {
    let head = "tile t {\n    input x: f32 (8,8):(8,1) # größe 𝄞\n    output y: f32 (8,8):(8,1)\n    grid 1\n";
    let wrong = [
        ("a = «lod»(x, (8,8), (0,0))", "E1203"),
        ("a = load(«z», (8,8), (0,0))", "E1203"),
        ("a = load(x, (8,8), (0,0))\n    b = exp(a) + «c»", "E1203"),
        ("a = load(x, (8,8), (0,0)) «+» load(x, (4,8), (0,0))", "E1201"),
        ("a = «reshape(load(x, (8,8), (0,0)), (8,4))»", "E1201"),
        ("a = load(x, (8,8)«)»", "E1204"),
        ("a = load(x, (8,8), (block.«w»,0))", "E1203"),
        ("a = load(x, (8,8), (0,0))\n    «grid» 2", "E1204"),
        ("«a b»", "E1204"),
    ];
    for (line, code) in wrong {
        let line = line.replace("«a b»", "a «b»");
        let (text, culprit) = marked(&format!("{head}    {line}\n}}\n"));
        let own = tile(&text);
        let [problem] = own.problems() else { panic!("{text}: {:?}", own.problems()) };
        assert_eq!(problem.code, code, "{line}: {}", problem.message);
        let span = own.text().offset(problem.span.start)..own.text().offset(problem.span.end);
        let found = &text[span];
        let wanted = if line.contains("block.") { ["w", "block.w"].as_slice() } else { &[culprit.as_str()] };
        assert!(wanted.contains(&found), "{line}: {found:?} is marked");
    }
    for text in ["", "tile", "tile t {", "tile t {\n grid 1\n a = ", "größe"] {
        let own = tile(text);
        let [problem] = own.problems() else { panic!("{text}") };
        assert!(problem.span.start < problem.span.end || text.is_empty(), "{text:?}: {problem:?}");
    }
}

/// Renames what stands at a place everywhere; the text behind is read as the same program.
#[test]
fn a_name_is_given_where_it_is_defined() {
    let mut renamed = 0;
    for entry in LIBRARY {
        let own = tile(entry.text);
        let (program, outline) = Program::outline(entry.text);
        let wanted = program.unwrap().to_string();
        for mention in &outline.mentions {
            let place = Position { line: mention.place.line() - 1, character: mention.place.column() - 1 };
            let given = own.definition(place).unwrap();
            let references = own.references(place);
            assert!(references.contains(&given), "{}: {}", entry.name, mention.name);
            if mention.is_given && matches!(mention.of, Subject::Value(_)) {
                assert_eq!(given.start, place, "{}: {}", entry.name, mention.name);
            }
            let mut text = own.text().clone();
            for span in references.iter().rev() {
                let bytes = text.offset(span.start)..text.offset(span.end);
                assert_eq!(text.as_str()[bytes], mention.name, "{}", entry.name);
                text = text.changed(*span, "fresh_name");
            }
            let read: Program = text.as_str().parse().unwrap_or_else(|error| panic!("{}: {error}", entry.name));
            // Tensors keep their names in print.
            let printed = match mention.of {
                Subject::Tensor(_) => continue,
                _ => read.to_string(),
            };
            assert_eq!(printed, wanted, "{}: {}", entry.name, mention.name);
            renamed += 1;
        }
    }
    assert!(renamed > 100, "{renamed} names");
}

/// Whatever a program says at a place is offered there.
#[test]
fn what_a_program_uses_is_offered() {
    for entry in LIBRARY {
        let own = tile(entry.text);
        let (_, outline) = Program::outline(entry.text);
        for mention in outline.mentions.iter().filter(|own| !own.is_given) {
            // A name of the same line is not known yet where lines are whole statements.
            let same = |other: &&tilewright_tile::Mention| other.of == mention.of && other.is_given;
            let given = outline.mentions.iter().find(same).map(|own| own.place.line());
            if given == Some(mention.place.line()) {
                continue;
            }
            let place = Position { line: mention.place.line() - 1, character: mention.place.column() - 1 };
            let offered = own.completions(place);
            let found = offered.iter().find(|own| own.label == mention.name && own.kind == Kind::Name);
            let detail = &found.unwrap_or_else(|| panic!("{}: {} is not offered", entry.name, mention.name)).detail;
            if let Some(ty) = &mention.ty {
                assert!(detail.contains(&ty.element.to_string()), "{}: {} is {detail}", entry.name, mention.name);
            }
        }
    }
}

/// The functions of the reader, from its source: the words of its match.
fn functions_of_the_reader() -> BTreeSet<String> {
    let source = include_str!("../../../tile/src/read/expression.rs");
    let body = source.split_once("Ok(match name {").unwrap().1.split_once("other =>").unwrap().0;
    let arms = body.lines().filter(|line| line.trim_start().starts_with('"') && line.contains("=>"));
    let head = |line: &str| line.split("=>").next().unwrap_or("").to_owned();
    let words = arms.flat_map(|line| head(line).split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>());
    words.collect()
}

#[test]
fn the_table_has_the_functions_of_the_reader() {
    let listed: BTreeSet<&str> = WORDS.iter().filter(|word| word.is_function).map(|word| word.name).collect();
    let mut known = functions_of_the_reader();
    assert!(known.len() > 20, "{known:?}");
    known.extend(tilewright_tile::Unary::NAMES.iter().map(|(name, _)| (*name).to_owned()));
    known.extend(tilewright_tile::Binary::NAMES.iter().map(|(name, _)| (*name).to_owned()));
    for (name, _) in tilewright_tile::Reduction::NAMES {
        known.extend(["reduce_", "scan_", "scan_before_"].map(|before| format!("{before}{name}")));
    }
    for name in &known {
        assert!(listed.contains(name.as_str()), "{name} is not in the table");
    }
    for name in listed.iter().filter(|name| !known.contains(**name)) {
        // Statements.
        let text = format!("tile t {{\n grid 1\n {name}(x)\n}}");
        let error = text.parse::<Program>().unwrap_err().to_string();
        assert!(error.contains("tensor"), "{name}: {error}");
    }
    let text = "tile t {\n grid 1\n a = no_function(x)\n}";
    assert!(text.parse::<Program>().unwrap_err().to_string().contains("function"));
}

/// The layout beside each value has all its elements, in the threads of the block.
#[test]
fn the_layout_of_each_value_covers_its_tile() {
    let mut seen = 0;
    let names = ["softmax", "layer_norm_residual", "prefix_sum"];
    for entry in LIBRARY.iter().filter(|entry| names.contains(&entry.name)) {
        let own = tile(entry.text);
        let program = own.program().unwrap();
        let assigned = Assigned::of(program, None, own.text()).unwrap();
        let hints = own.hints(&assigned, 0..own.text().lines());
        let (_, outline) = Program::outline(entry.text);
        for hint in hints {
            let label = hint.label.trim_start_matches(": ");
            let text = label.split(" · ").next().unwrap();
            let layout: Layout = text.parse().unwrap();
            let is_own = |own: &&tilewright_tile::Mention| {
                let end = own.place.column() - 1 + own.name.len() as u32;
                own.place.line() - 1 == hint.place.line && end == hint.place.character
            };
            let mention = outline.mentions.iter().find(is_own).unwrap();
            let size = mention.ty.as_ref().unwrap().size();
            let offsets: BTreeSet<i64> = (0..layout.size()).map(|index| layout.eval(&index).unwrap()).collect();
            assert!(offsets.into_iter().eq(0..size), "{}: {label}", entry.name);
            let threads: i64 = layout.shape().modes().next().unwrap().leaves().iter().product();
            assert_eq!(threads, 32 * assigned.warps, "{}: {label}", entry.name);
            seen += 1;
        }
        let costs: f64 = program.values().map(|value| assigned.cost(value)).sum();
        assert!(costs > 0.0 && costs <= assigned.cycles + 0.01, "{}", entry.name);
    }
    assert!(seen >= 6, "{seen} values");
}

#[test]
fn hover_says_what_a_name_is() {
    let text = LIBRARY.iter().find(|entry| entry.name == "softmax").unwrap().text;
    let own = tile(text);
    let at = |what: &str| own.text().position(text.find(what).unwrap());
    let said = |what: &str| own.hover(at(what), None).map(|(_, said)| said);
    assert!(said("x:").unwrap().contains("input tensor of"), "{:?}", said("x:"));
    assert!(said("reduce_max").unwrap().contains("The maximum along modes"));
    assert!(said("grid").unwrap().contains("How many blocks"));
    let assigned = Assigned::of(own.program().unwrap(), None, own.text()).unwrap();
    let (_, told) = own.hover(at("e = "), Some(&assigned)).unwrap();
    assert!(told.contains("tile of f32 (1,4096)") && told.contains("cycles of a multiprocessor"), "{told}");
}

#[test]
fn large_texts_are_not_read_as_they_are_typed() {
    let own = tile(&"# line\n".repeat(tilewright_lsp::MAX_TILE / 6));
    assert_eq!(own.problems().len(), 1);
    assert_eq!(own.problems()[0].code, "E1206");
}
