//! Pictures that `scripts/peer-pictures` makes beside those of the Python package `tensor-layouts`.
//!
//! Writes them to the folder that it is given, and a line for each, with tabs between:
//!
//! ```text
//! what   layout   tile   nanoseconds, from the text of the layout to that of the picture   file
//! ```

use std::path::PathBuf;
use std::time::Instant;

use tilewright_draw::{DrawError, Map, Style, Theme, offsets, thread_value};
use tilewright_layout::{Composed, Layout};

/// What is drawn, of which layout, over which tile.
const CASES: [(&str, &str, &str); 5] = [
    ("grid", "(64,64):(64,1)", "(64,64)"),
    ("grid", "((8,8),(8,8)):((8,512),(1,64))", "(64,64)"),
    ("grid", "S<3,3,3> o 0 o (64,64):(64,1)", "(64,64)"),
    ("threads", "((4,8),(2,2)):((32,1),(16,8))", "(16,8)"),
    ("threads", "((4,8,4),(2,2,16,2)):((256,1,16),(128,8,1024,64))", "(128,128)"),
];

fn picture(what: &str, text: &str, tile: &str) -> Result<String, DrawError> {
    let map = match text.parse::<Layout>() {
        Ok(layout) => Map::from(&layout),
        Err(_) => Map::from(&text.parse::<Composed>()?),
    };
    let figure = match what {
        "grid" => offsets(text, &map, Style::default()),
        _ => thread_value(text, &map, &tile.parse()?, Style::default())?,
    };
    Ok(figure.svg(Theme::Auto))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("name a folder for the pictures")?);
    for (number, (what, text, tile)) in CASES.into_iter().enumerate() {
        let svg = picture(what, text, tile)?;
        let file = folder.join(format!("{number}.svg"));
        std::fs::write(&file, &svg)?;
        // The fastest of many, as other programs only ever add to a time.
        let mut least = u128::MAX;
        for _ in 0..100 {
            let start = Instant::now();
            let again = picture(what, text, tile)?;
            least = least.min(start.elapsed().as_nanos());
            assert_eq!(again.len(), svg.len());
        }
        println!("{what}\t{text}\t{tile}\t{least}\t{}", file.display());
    }
    Ok(())
}
