//! The pages about error codes: every line of their examples yields what it says.
//!
//! In a `text` block each line is a program and, after the last `#`, the code that it is refused
//! with or the text of its value.

use tilewright_notation::{Environment, evaluate};

/// The page about a code of the algebra or of the language.
pub(crate) fn explanation(code: &str) -> Option<&'static str> {
    tilewright_layout::explanation(code).or_else(|| tilewright_notation::explanation(code))
}

/// Every code that has a page.
fn codes() -> Vec<String> {
    let codes = (101..300).map(|number| format!("E0{number}"));
    codes.filter(|code| explanation(code).is_some()).collect()
}

/// The programs of a page and what each should come to.
fn examples(page: &str) -> Vec<(&str, &str)> {
    let mut inside = false;
    let mut examples = Vec::new();
    for line in page.lines() {
        match line {
            "```text" => inside = true,
            "```" => inside = false,
            "" => {}
            line if inside => examples.push(line.rsplit_once('#').map(|(a, b)| (a, b.trim())).unwrap()),
            line => assert!(line.len() <= 140, "{line}"),
        }
    }
    examples
}

#[test]
fn examples_do_what_they_say() {
    assert_eq!(codes().len(), 30 + 17);
    let mut wrong = Vec::new();
    for code in codes() {
        let page = explanation(&code).unwrap();
        assert!(page.starts_with(&format!("# {code}: ")), "{code}");
        for (program, expected) in examples(page) {
            let found = match evaluate(program, &mut Environment::new()) {
                Ok(value) => value.to_string(),
                Err(error) => error.code.to_string(),
            };
            if found != expected {
                wrong.push(format!("{code}: {program} gives {found}, not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_fails_as_it_says_first_and_then_shows_what_works() {
    for code in codes() {
        let examples = examples(explanation(&code).unwrap());
        let shown = match code.as_str() {
            // The library's parser is not reached from a program.
            "E0122" => "E0201",
            // What is interrupted would have come to its limit.
            "E0129" => "E0110",
            // A program's argument of the wrong kind.
            "E0130" => "E0208",
            // The sides of a check are no one program.
            "E0215" => "E0123",
            // A program says nothing of how strictly it is evaluated.
            "E0217" => "E0109",
            code => code,
        };
        assert_eq!(examples.first().map(|(_, found)| *found), Some(shown), "{code}");
        assert!(examples.iter().any(|(_, found)| !found.starts_with("E0")), "{code} shows nothing that works");
    }
}

#[test]
fn the_page_about_text_shows_what_the_library_says() {
    let error = "(4,8):".parse::<tilewright_layout::Layout>().unwrap_err();
    assert_eq!(error.code(), "E0122");
}
