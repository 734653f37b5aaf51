//! Every console block of `tests/cmd` prints what it says.
//!
//! `TRYCMD=overwrite cargo test -p tilewright-laboratory --test suite console` writes down what is
//! printed now.

#[test]
fn console_blocks() {
    trycmd::TestCases::new()
        .register_bin("tilewright-lab", trycmd::cargo::cargo_bin!("tilewright-lab"))
        .env("NO_COLOR", "1")
        .case("tests/cmd/*.md");
}
