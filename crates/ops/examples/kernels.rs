//! Writes kernels of operators as PTX for a card, into a folder.
//!
//! ```text
//! cargo run -p tilewright-ops --example kernels -- FOLDER [MACHINE] < crates/ops/kernels.txt
//! ```
//!
//! The machine is an H200 unless it is named, as `A100` or `RTX 4090`; the text is for its target.
//! Each line of the input is `forward` or `both`, the name of an operator and its options,
//! `name=value`; lines that begin with `#` say nothing. A file is named by its line, the pass and
//! the number of the launch. A line that the card cannot carry out is printed with the reason, and
//! the kernels of the others are written.

use std::error::Error;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx;
use tilewright_ops::{OptionValue, Options, operator_kernels};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::args().nth(1).ok_or("the folder of the kernels is missing")?);
    fs::create_dir_all(&folder)?;
    let mut lines = String::new();
    io::stdin().read_to_string(&mut lines)?;
    let machine: Machine = env::args().nth(2).unwrap_or("H200".into()).parse()?;
    for line in lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Err(error) = write(&folder, line, &machine) {
            println!("{line}: {error}");
        }
    }
    Ok(())
}

/// Writes the kernels of a line.
fn write(folder: &Path, line: &str, machine: &Machine) -> Result<(), Box<dyn Error>> {
    let mut words = line.split_whitespace();
    let (passes, name) = (words.next().unwrap_or(""), words.next().ok_or("an operator is missing")?);
    let has_backward = match passes {
        "forward" => false,
        "both" => true,
        _ => return Err(format!("a line begins with `forward` or `both`, not `{passes}`").into()),
    };
    let given: Vec<&str> = words.collect();
    let options: Options = given.iter().map(|word| option(word)).collect::<Result<_, _>>()?;
    for is_backward in [false, true] {
        if is_backward && !has_backward {
            continue;
        }
        let made = operator_kernels(name, &options, is_backward, machine)?;
        for (number, kernel) in made.kernels.iter().enumerate() {
            let text = ptx::write(kernel.program(), machine.target)?;
            let pass = if is_backward { "backward" } else { "forward" };
            let file = [name, &given.join(","), pass, &(number + 1).to_string()].join(" ");
            fs::write(folder.join(file + ".ptx"), text)?;
        }
    }
    Ok(())
}

/// An option of a word `name=value`.
fn option(word: &str) -> Result<(String, OptionValue), String> {
    let (name, value) = word.split_once('=').ok_or_else(|| format!("an option is `name=value`, not `{word}`"))?;
    let value = match value {
        "true" => OptionValue::Switch(true),
        "false" => OptionValue::Switch(false),
        _ => match (value.parse(), value.parse()) {
            (Ok(integer), _) => OptionValue::Integer(integer),
            (_, Ok(number)) => OptionValue::Number(number),
            _ => OptionValue::Text(value.to_string()),
        },
    };
    Ok((name.to_string(), value))
}
