//! Descriptors, the strides of a layout as a list of basis steps: the language and the library read
//! the same texts as the same strides.

use tilewright_layout::Descriptor;
use tilewright_notation::{Environment, evaluate};

#[test]
fn the_language_and_the_library_agree() {
    for (text, strides) in [
        ("((1@0,8@1),1@2)", "((1@0,8@1),1@2)"),
        ("(4/2@0,8@1)", "(2@0,8@1)"),
        ("(4/-2@0,1@1)", "(-2@0,1@1)"),
        ("(-4/-2@0,1@1)", "(2@0,1@1)"),
        ("(1@0,1@1,)", "(1@0,1@1)"),
        ("(1@0@1,1@1@1)", "(1@0@1,1@1@1)"),
        ("(0,1@0)", "(0,1@0)"),
        ("(0/4@3,1@0)", "(0,1@0)"),
        ("( 1@0 , ( 3@1 ) )", "(1@0,(3@1))"),
    ] {
        let read: Descriptor = text.parse().unwrap();
        let value = evaluate(text, &mut Environment::new()).unwrap();
        assert_eq!((read.to_string(), value.to_string()), (strides.into(), strides.into()), "{text}");
        let layout = format!("{}:{text}", read.strides().map(|_| 4_i64));
        assert!(evaluate(&layout, &mut Environment::new()).is_ok(), "{layout}");
    }
    // What no layout can have is refused by both, as strides, for the same reason.
    for (shape, text, code) in [
        ("(4,4)", "(1/2@0,4@1)", "E0128"),
        ("(4,4)", "(1@0,1@0@0)", "E0125"),
        ("(4,4)", "(1@0,3@)", "E0201"),
        ("(4,4)", "(1/0@0,1@1)", "E0214"),
    ] {
        let read = text.parse::<Descriptor>().unwrap_err();
        let refused = evaluate(&format!("{shape}:{text}"), &mut Environment::new()).unwrap_err();
        assert_eq!(refused.code, code, "{text}");
        assert!(read.code() == code || read.code() == "E0122", "{text}: {read}");
    }
}
