//! error: E0103:
//! --> user/src/bin/offsets.rs:6:28
use tilewright::layout;

fn main() {
    println!("{}", layout!("4:9223372036854775807"));
}
