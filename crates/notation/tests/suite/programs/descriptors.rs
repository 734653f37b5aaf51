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

#[test]
fn what_one_reads_the_other_reads() {
    // All entries of some counts, denominators and paths, whole and broken, in two nestings.
    let mut entries = Vec::new();
    for count in ["0", "1", "-2", "4", "-9223372036854775807", "-9223372036854775808"] {
        for denominator in ["", "/1", "/-2", "/3", "/0", "/"] {
            for path in ["@0", "@1", "@0@2", "@2@2", "@", "@-1", "@x"] {
                entries.push(format!("{count}{denominator}{path}"));
            }
        }
    }
    let (mut read, mut refused) = (0, 0);
    for entry in &entries {
        for (shape, text) in [("(2,3)", format!("({entry},1@1)")), ("((2,2),3)", format!("(({entry},3@1),1@3)"))] {
            let library = text.parse::<Descriptor>();
            let language = evaluate(&format!("{shape}:{text}"), &mut Environment::new());
            match (&library, &language) {
                (Ok(strides), Ok(value)) => {
                    assert_eq!(value.to_string(), format!("{shape}:{strides}"), "{text}");
                    read += 1;
                }
                (Err(_), Err(_)) => refused += 1,
                _ => panic!("{text}: {library:?} but {language:?}"),
            }
        }
    }
    println!("{read} read, {refused} refused by both");
    assert!(read > 40 && refused > 200, "{read} {refused}");
}
