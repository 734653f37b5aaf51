//! What other crates reach with all instructions of this machine.

fn main() {
    tilewright_peers::run();
}
