//! Formatting keeps the meaning and the remarks, and is done once.

use tilewright_lsp::formatted;
use tilewright_tile::{LIBRARY, Program};

use crate::Random;

fn meaning(text: &str) -> String {
    text.parse::<Program>().unwrap().to_string()
}

fn remarks(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.split_once('#')).map(|(_, remark)| remark.trim().to_owned()).collect()
}

#[test]
fn programs_of_the_library_stand_as_they_are() {
    for entry in LIBRARY {
        assert_eq!(formatted(entry.text).as_deref().map(str::trim), Some(entry.text.trim()), "{}", entry.name);
    }
}

#[test]
fn blanks_alone_change() {
    let mut random = Random::new(3);
    for entry in LIBRARY {
        for _ in 0..20 {
            let mut text = String::new();
            for line in entry.text.lines() {
                text.extend(std::iter::repeat_n([" ", "\t"][random.below(2)], random.below(9)));
                let words = line.trim_start().replace(" = ", "  =\t");
                text.push_str(if random.below(2) == 0 { &words } else { line.trim_start() });
                if random.below(4) == 0 && !line.contains('#') {
                    text.push_str(" # a { remark }  with \"braces\" ");
                }
                text.push_str(["\n", "\n\n\n", "  \n"][random.below(3)]);
            }
            let neat = formatted(&text).expect(entry.name);
            assert_eq!(meaning(&neat), meaning(&text), "{}", entry.name);
            assert_eq!(remarks(&neat), remarks(&text), "{}", entry.name);
            assert_eq!(formatted(&neat).as_ref(), Some(&neat), "{}", entry.name);
            let solid = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(solid(&neat), solid(&text), "{}", entry.name);
            // The braces alone say how far a line is indented.
            let plain: Vec<&str> = entry.text.lines().filter(|line| !line.trim().is_empty()).collect();
            let lines: Vec<&str> = neat.lines().filter(|line| !line.is_empty()).collect();
            let indents =
                |lines: &[&str]| lines.iter().map(|line| line.len() - line.trim_start().len()).collect::<Vec<_>>();
            assert_eq!(indents(&lines), indents(&plain), "{}", entry.name);
        }
    }
}

#[test]
fn what_is_no_program_is_refused() {
    for text in ["", "tile", "tile a { grid 1\n", "tile a {\n y = z\n}", "hello"] {
        assert_eq!(formatted(text), None, "{text:?}");
    }
}
