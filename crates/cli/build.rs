//! Puts the playground's page into the command, if it has been built: `scripts/playground` builds
//! it, and `TILEWRIGHT_PLAYGROUND` names the file. A command without it says how to get it.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TILEWRIGHT_PLAYGROUND");
    let folder = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo gives no OUT_DIR"))?;
    let file = PathBuf::from(folder).join("playground.html");
    match env::var_os("TILEWRIGHT_PLAYGROUND") {
        Some(page) => {
            let page = PathBuf::from(page);
            println!("cargo::rerun-if-changed={}", page.display());
            fs::copy(&page, file).map(|_| ()).map_err(|error| {
                let said =
                    format!("TILEWRIGHT_PLAYGROUND={}: {error}; build it with scripts/playground", page.display());
                io::Error::new(error.kind(), said)
            })
        }
        None => fs::write(file, ""),
    }
}
