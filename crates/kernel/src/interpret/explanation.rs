//! Pages about the findings of the interpreter.

tilewright_layout::error_pages! {
    /// The page about a code of [`super::SetupError`] or [`super::Finding`]: the condition, an
    /// example, and what to do. None for another code.
    ///
    /// ```
    /// use tilewright_kernel::interpret::explanation;
    ///
    /// assert!(explanation("E1016").is_some_and(|page| page.contains("barrier")));
    /// assert!(explanation("E0903").is_none());
    /// ```
    pub fn explanation in "../launch.rs" "finding.rs":
        "E1001" "E1002" "E1003" "E1004" "E1010" "E1011" "E1012" "E1013"
        "E1014" "E1015" "E1016" "E1017" "E1018" "E1019" "E1020" "E1021"
        "E1022" "E1023" "E1024" "E1025" "E1026" "E1027" "E1028" "E1029"
        "E1030" "E1031" "E1032" "E1033" "E1034" "E1035" "E1036"
        "E1037" "E1038" "E1039" "E1040" "E1041" "E1042" "E1043"
}
