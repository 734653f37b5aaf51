//! Example programs.
//!
//! Law: every program has sizes at which a check reports no defect, and large sizes at which it is
//! timed.

/// A program of the library.
///
/// ```
/// use tilewright_tile::{LIBRARY, Program};
///
/// for entry in &LIBRARY {
///     assert_eq!(Program::read(entry.name, entry.text)?.name(), entry.name);
///     assert!(entry.text.lines().count() < 40); // on one screen
///     assert_eq!(entry.sizes.len(), entry.large.len());
/// }
/// # Ok::<(), tilewright_tile::TileError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// The default sizes of a check, with their names.
    pub sizes: &'static [(&'static str, i64)],
    /// The default sizes of a measurement, in the same order.
    pub large: &'static [i64],
}

impl Entry {
    /// A summary: the first sentence of its text, without a full stop.
    ///
    /// ```
    /// assert_eq!(
    ///     tilewright_tile::LIBRARY[0].summary(),
    ///     "The softmax of each row: powers against the greatest, over their sum"
    /// );
    /// ```
    pub fn summary(&self) -> String {
        let remarks = self.text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
        let all = remarks.collect::<Vec<_>>().join(" ");
        let end = all.find(". ").unwrap_or(all.trim_end_matches('.').len());
        all[..end].to_string()
    }
}

/// The programs.
pub const LIBRARY: [Entry; 21] = [
    Entry { name: "softmax", text: include_str!("../programs/softmax.tile"), sizes: &[("M", 3)], large: &[32768] },
    Entry {
        name: "layer_norm_residual",
        text: include_str!("../programs/layer_norm_residual.tile"),
        sizes: &[("M", 2)],
        large: &[32768],
    },
    Entry {
        name: "rms_norm_gate",
        text: include_str!("../programs/rms_norm_gate.tile"),
        sizes: &[("M", 2)],
        large: &[32768],
    },
    Entry {
        name: "product",
        text: include_str!("../programs/product.tile"),
        sizes: &[("M", 20), ("N", 24), ("K", 24)],
        large: &[8192, 8192, 8192],
    },
    Entry {
        name: "attention",
        text: include_str!("../programs/attention.tile"),
        sizes: &[("S", 40), ("G", 1), ("H", 1)],
        large: &[8192, 4, 8],
    },
    Entry {
        name: "attention_e4m3",
        text: include_str!("../programs/attention_e4m3.tile"),
        sizes: &[("S", 80), ("G", 1), ("H", 1)],
        large: &[8192, 4, 8],
    },
    Entry {
        name: "int4_product",
        text: include_str!("../programs/int4_product.tile"),
        sizes: &[("N", 16), ("M", 3)],
        large: &[16384, 16],
    },
    Entry { name: "top_rows", text: include_str!("../programs/top_rows.tile"), sizes: &[("M", 1)], large: &[32768] },
    Entry {
        name: "histogram",
        text: include_str!("../programs/histogram.tile"),
        sizes: &[("N", 9000)],
        large: &[1 << 28],
    },
    Entry {
        name: "chunk_sums",
        text: include_str!("../programs/chunk_sums.tile"),
        sizes: &[("N", 5000), ("C", 2)],
        large: &[1 << 28, 1 << 16],
    },
    Entry {
        name: "sums_before",
        text: include_str!("../programs/sums_before.tile"),
        sizes: &[("C", 9000)],
        large: &[1 << 16],
    },
    Entry {
        name: "prefix_sum",
        text: include_str!("../programs/prefix_sum.tile"),
        sizes: &[("N", 5000), ("C", 2)],
        large: &[1 << 28, 1 << 16],
    },
    Entry {
        name: "prefix_rows",
        text: include_str!("../programs/prefix_rows.tile"),
        sizes: &[("M", 2)],
        large: &[32768],
    },
    Entry {
        name: "gather_rows",
        text: include_str!("../programs/gather_rows.tile"),
        sizes: &[("T", 5), ("M", 3)],
        large: &[32768, 32768],
    },
    Entry {
        name: "scatter_rows",
        text: include_str!("../programs/scatter_rows.tile"),
        sizes: &[("M", 3), ("T", 5)],
        large: &[32768, 32768],
    },
    Entry { name: "route", text: include_str!("../programs/route.tile"), sizes: &[("T", 9)], large: &[1 << 20] },
    Entry {
        name: "expert_counts",
        text: include_str!("../programs/expert_counts.tile"),
        sizes: &[("A", 300), ("C", 2), ("P", 512)],
        large: &[1 << 20, 4096, 1 << 21],
    },
    Entry {
        name: "expert_starts",
        text: include_str!("../programs/expert_starts.tile"),
        sizes: &[("C", 2), ("M", 4)],
        large: &[4096, 16384],
    },
    Entry {
        name: "expert_places",
        text: include_str!("../programs/expert_places.tile"),
        sizes: &[("A", 60), ("C", 1), ("P", 128)],
        large: &[1 << 20, 4096, 1 << 21],
    },
    Entry {
        name: "expert_product",
        text: include_str!("../programs/expert_product.tile"),
        sizes: &[("P", 20), ("K", 24), ("N", 24), ("M", 1)],
        large: &[32768, 4096, 4096, 256],
    },
    Entry {
        name: "combine_rows",
        text: include_str!("../programs/combine_rows.tile"),
        sizes: &[("P", 20), ("T", 2)],
        large: &[1 << 18, 32768],
    },
];
