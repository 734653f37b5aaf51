//! The explanation pages of error codes.

tilewright_layout::error_pages! {
    /// The page about an error code of this crate: the condition, an example, and what to do. None
    /// for a code that is not one of the language's own; those of the algebra have theirs in
    /// [`tilewright_layout::explanation`].
    ///
    /// ```
    /// assert!(tilewright_notation::explanation("E0205").is_some_and(|page| page.contains("not bound")));
    /// assert!(tilewright_notation::explanation("E0107").is_none());
    /// ```
    pub fn explanation in "lex.rs" "parse.rs" "parse/numbers.rs" "parse/swizzles.rs" "eval.rs" "eval/keywords.rs" "eval/literals.rs" "eval/pair.rs" "eval/foreign.rs" "notes.rs" "blame.rs" "diagnostic.rs":
        "E0201" "E0202" "E0203" "E0204" "E0205" "E0206" "E0207" "E0208" "E0209" "E0210"
        "E0211" "E0212" "E0213" "E0214" "E0215" "E0216" "E0217"
}
