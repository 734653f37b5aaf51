//! Embeds the source of the library's kernels into the workshop, which shows the current statement
//! of a block.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The Rust files in a folder and its subfolders, sorted.
fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for path in entries.into_iter().map(|entry| entry.path()) {
        if path.is_dir() {
            files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let kernels = Path::new("../../crates/planners/src").canonicalize()?;
    println!("cargo::rerun-if-changed={}", kernels.display());
    let mut found = Vec::new();
    files(&kernels, &mut found)?;
    let mut table = String::from("pub const SOURCES: &[(&str, &str)] = &[\n");
    for path in found {
        let name = path.strip_prefix(&kernels)?;
        table.push_str(&format!(
            "    ({:?}, include_str!({:?})),\n",
            format!("crates/planners/src/{}", name.display()),
            path
        ));
    }
    table.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("sources.rs"), table)?;
    Ok(())
}
