//! What CuTe prints in C++.

use tilewright_layout::Refusal;
use tilewright_read::{Options, Unit, document, expression};

/// The meaning of a text.
fn read(text: &str) -> String {
    match expression(text, &Options::default()) {
        Ok(reading) => reading.to_string(),
        Err(refused) => format!("{}: {refused}", refused.code()),
    }
}

#[test]
fn printed_layouts() {
    for (text, meaning) in [
        ("(_8,_64):(_64,_1)", "(8,64):(64,1)"),
        ("_32:_1", "32:1"),
        ("((_8,_1),_4,_1):((_1,_0),?,_0)", "((8,1),4,1):((1,0),?,0)"),
        ("sA: (4096,4096):(4096,_1)", "(4096,4096):(4096,1)"),
        ("Sw<3,4,3> o _0 o (_8,_64):(_64,_1)", "S<3,4,3> o 0 o (8,64):(64,1)"),
        ("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)", "S<3,3,3> o 0 o (8,64):(64,1)"),
        ("Sw<3,4,3> o smem_ptr[8b](unset) o (_8,_64):(_64,_1)", "S<3,4,3> o 0 o (8,64):(64,1)"),
        ("Sw<3,4,3> o smem_ptr[32b](unset) o (_8,_64):(_64,_1)", "S<3,2,3> o 0 o (8,64):(64,1)"),
        ("smem_ptr[16b](0x7f3a00000400) o (_128,_64):(_64,_1)", "(128,64):(64,1)"),
        ("ptr[32b]((nil)) o (_4,_2):(_2,_1)", "(4,2):(2,1)"),
        ("Sw<3,4,3>_smem_ptr[16b](0x7f3a00000400) o (_8,_64):(_64,_1)", "S<3,3,3> o 0 o (8,64):(64,1)"),
        ("Sw<3,4,3>_smem_ptr[16b](0x7f3a00000480) o (_8,_64):(_64,_1)", "S<3,3,3> o 64 o (8,64):(64,1)"),
        ("ArithTuple(0,_0) o (_128,_64):(_1@0,_1@1)", "(128,64):(1@0,1@1)"),
    ] {
        assert_eq!(read(text), meaning, "{text}");
    }
}

#[test]
fn names_and_lines_of_a_log() {
    let log = "[12:30:05] file.cu:12:30 began\nsA_layout:\tSw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)\n\
               tAgA: gmem_ptr[16b](0x7f00) o ((_8,_1),_4):((_1,_0),512)  (done)\nfoo((4,8):(8,1), 3)\n";
    let found = document(log, &Options::default());
    let told: Vec<_> = found
        .readings()
        .map(|reading| (reading.place.to_string(), reading.name.clone().unwrap_or_default(), reading.to_string()))
        .collect();
    let told: Vec<_> = told.iter().map(|(place, name, text)| (place.as_str(), name.as_str(), text.as_str())).collect();
    assert_eq!(
        told,
        [
            ("2:12", "sA_layout", "S<3,3,3> o 0 o (8,64):(64,1)"),
            ("3:7", "tAgA", "((8,1),4):((1,0),512)"),
            ("4:5", "", "(4,8):(8,1)"),
        ]
    );
}

#[test]
fn units() {
    let unit = |text: &str| expression(text, &Options::default()).unwrap().unit;
    assert_eq!(unit("(_8,_64):(_64,_1)"), Unit::Elements { bits: None });
    assert_eq!(unit("gmem_ptr[32b](0x10) o (_8,_64):(_64,_1)"), Unit::Elements { bits: Some(32) });
    assert_eq!(unit("ArithTuple(0,_0) o (_128,_64):(_1@0,_1@1)"), Unit::Coordinates);
}
