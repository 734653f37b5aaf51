//! What other crates reach without AVX-512.

fn main() {
    tilewright_peers::run();
}
