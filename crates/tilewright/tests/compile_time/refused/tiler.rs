//! error: tiler! needs a layout, a shape, '_' or tilers in brackets
//! this program has another value: the truth value true
//! --> user/src/bin/tiler.rs:7:27
use tilewright::tiler;

fn main() {
    println!("{}", tiler!("true"));
}
