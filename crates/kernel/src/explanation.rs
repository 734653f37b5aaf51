//! Pages about error codes.

tilewright_layout::error_pages! {
    /// The page about an error of building or printing a kernel: the condition, an example, and
    /// what to do. None for another code.
    pub fn explanation in "error.rs" "ptx.rs":
        "E0901" "E0902" "E0903" "E0904" "E0905" "E0906" "E0907" "E0908"
        "E0909" "E0910" "E0911" "E0912" "E0913" "E0914" "E0915" "E0916"
        "E0917" "E0918" "E0919" "E0921" "E0922" "E0923" "E0924" "E0925" "E0926"
        "E0927"
}
