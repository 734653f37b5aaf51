//! How long pictures take: a grid of 64 x 64 offsets, and 128 x 128 places of threads and values,
//! as SVG.

use tilewright_draw::{Map, Style, Theme, offsets, thread_value};
use tilewright_layout::Layout;

fn main() {
    divan::main();
}

fn map(text: &str) -> Map {
    let layout: Result<Layout, _> = text.parse();
    Map::from(&layout.unwrap_or_else(|_| Layout::unit()))
}

#[divan::bench]
fn svg_of_a_grid_of_64_by_64(bencher: divan::Bencher<'_, '_>) {
    let map = map("(64,64):(64,1)");
    bencher.bench(|| offsets("rows", &map, Style::default()).svg(Theme::Auto));
}

#[divan::bench]
fn svg_of_threads_and_values_of_128_by_128(bencher: divan::Bencher<'_, '_>) {
    let (map, tile) = (map("((4,8,4),(2,2,16,2)):((256,1,16),(128,8,1024,64))"), "(128,128)".parse());
    let Ok(tile) = tile else { return };
    bencher.bench(|| thread_value("C", &map, &tile, Style::default()).map(|figure| figure.svg(Theme::Auto)));
}
