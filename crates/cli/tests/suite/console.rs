//! Every console block of the documents, of the book and of `tests/cmd` prints what it says.
//!
//! `TRYCMD=overwrite cargo test -p tilewright-cli --test suite console` writes down what is printed
//! now.

#[test]
fn console_blocks() {
    trycmd::TestCases::new()
        .register_bin("tilewright", trycmd::cargo::cargo_bin!("tilewright"))
        .env("NO_COLOR", "1")
        .case("../../*.md")
        .case("../../docs/*.md")
        .case("../../docs/book/src/*.md")
        .case("tests/cmd/*.md");
}
