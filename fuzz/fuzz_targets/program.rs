//! A program ends with a value whose text evaluates to itself where its names mean the same, or
//! with an error that points into the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_notation::{Environment, derive, evaluate, explanation, is_incomplete};

fuzz_target!(|source: &str| {
    let _ = is_incomplete(source);
    let mut names = Environment::new();
    match evaluate(source, &mut names) {
        Ok(value) => {
            let text = value.to_string();
            let again = evaluate(&text, &mut names).expect("what prints evaluates");
            assert_eq!(again.to_string(), text);
            let derived = derive(source, &mut Environment::new());
            assert!(derived.value.is_ok(), "what evaluates has a derivation");
            assert!(!derived.to_string().is_empty());
        }
        Err(error) => {
            assert!(error.span.start <= error.span.end && error.span.end <= source.len(), "{error:?}");
            assert!(source.get(error.span.clone()).is_some(), "{error:?} splits a character");
            assert!(!error.one_line().contains('\n'));
            assert!(!error.render(source, false).is_empty());
            let page = explanation(error.code)
                .or_else(|| tilewright_layout::explanation(error.code))
                .or_else(|| tilewright_layout::morphism::explanation(error.code));
            assert!(page.is_some(), "{} has no page", error.code);
        }
    }
});
