//! Evaluates each line of standard input and shows errors as the command line does.

use std::io::{BufRead, stdin};

use tilewright_notation::{Environment, evaluate};

fn main() -> std::io::Result<()> {
    for line in stdin().lock().lines() {
        let line = line?;
        match evaluate(&line, &mut Environment::new()) {
            Ok(value) => println!("{value}"),
            Err(error) => print!("{}", error.render(&line, false)),
        }
    }
    Ok(())
}
