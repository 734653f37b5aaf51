//! A linear map under construction, from registers, lanes, warps and blocks to elements.
//!
//! Law: the inputs are registers, lanes, warps and blocks; each bit of an input moves along the
//! dimensions of the tensor. A *step* adds new bits of an input above all bits that a dimension has
//! so far. A map that is smaller than the tensor repeats in registers ([`Bases::fill`]). A larger
//! map wraps around: the bits past the end of a dimension hold copies ([`Bases::cut`]).

use tilewright_layout::{LayoutError, LinearLayout};

/// The inputs of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    Register,
    Lane,
    Warp,
    Block,
}

const NAMES: [&str; 4] = ["register", "lane", "warp", "block"];

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bases {
    /// The images of each input's bits.
    pub images: [Vec<Vec<u64>>; 4],
    /// The extent that the map covers along each dimension.
    pub size: Vec<u64>,
}

impl Bases {
    pub fn new(rank: usize) -> Bases {
        Bases { images: Default::default(), size: vec![1; rank] }
    }

    /// Adds bits of an input along a dimension, above the bits that it has.
    pub fn step(&mut self, input: Input, dimension: usize, extent: u64) {
        let rank = self.size.len();
        let Some(size) = self.size.get_mut(dimension) else { return };
        for _ in 0..extent.max(1).ilog2() {
            let mut image = vec![0; rank];
            if let Some(own) = image.get_mut(dimension) {
                *own = *size;
            }
            *size *= 2;
            self.images[input as usize].push(image);
        }
    }

    /// Adds bits of an input that do not move: copies.
    pub fn copies(&mut self, input: Input, extent: u64) {
        let image = vec![0; self.size.len()];
        for _ in 0..extent.max(1).ilog2() {
            self.images[input as usize].push(image.clone());
        }
    }

    /// Adds steps along several dimensions, the first of the order fastest; copies along `except`.
    pub fn steps(&mut self, input: Input, extents: &[u64], order: &[usize], except: Option<usize>) {
        for dimension in order {
            let extent = extents.get(*dimension).copied().unwrap_or(1);
            if except == Some(*dimension) {
                self.copies(input, extent);
            } else {
                self.step(input, *dimension, extent);
            }
        }
    }

    /// Repeats the map in registers along a dimension, up to an extent.
    pub fn fill(&mut self, dimension: usize, extent: u64) {
        let size = self.size.get(dimension).copied().unwrap_or(1);
        self.step(Input::Register, dimension, (extent / size.max(1)).max(1));
    }

    /// Wraps the map around at these extents: the bits past them hold copies.
    pub fn cut(&mut self, extents: &[u64]) {
        for image in self.images.iter_mut().flatten() {
            for (own, extent) in image.iter_mut().zip(extents) {
                if *own >= *extent {
                    *own = 0;
                }
            }
        }
        for (size, extent) in self.size.iter_mut().zip(extents) {
            *size = (*size).min(*extent);
        }
    }

    /// Adds blocks, whose images are in units of `part`, the part of the tensor that one block has.
    pub fn blocks(&mut self, cluster: &[Vec<u64>], part: &[u64]) {
        for image in cluster {
            self.images[Input::Block as usize]
                .push(image.iter().zip(part).map(|(image, part)| image.saturating_mul(*part)).collect());
        }
    }

    /// The map without a dimension; registers that then duplicate others are left out.
    pub fn without(&self, dimension: usize) -> Bases {
        let remove = |image: &Vec<u64>| {
            let mut image = image.clone();
            if dimension < image.len() {
                image.remove(dimension);
            }
            image
        };
        let mut images: [Vec<Vec<u64>>; 4] = Default::default();
        for (own, parent) in images.iter_mut().zip(&self.images) {
            *own = parent.iter().map(remove).collect();
        }
        images[Input::Register as usize].retain(|image| image.iter().any(|index| *index != 0));
        let mut size = self.size.clone();
        if dimension < size.len() {
            size.remove(dimension);
        }
        Bases { images, size }
    }

    /// The linear layout `register lane warp [block] -> dim0 dim1 ..` of a tensor of these extents.
    pub fn linear(&self, extents: &[u64]) -> Result<LinearLayout, LayoutError> {
        let inputs = NAMES.into_iter().zip(self.images.iter().cloned());
        linear(inputs.filter(|(name, images)| *name != "block" || !images.is_empty()), extents)
    }
}

/// The linear layout of named bases to the dimensions of a tensor.
pub(super) fn linear(
    inputs: impl IntoIterator<Item = (&'static str, Vec<Vec<u64>>)>,
    extents: &[u64],
) -> Result<LinearLayout, LayoutError> {
    let names: Vec<String> = (0..extents.len()).map(|dimension| format!("dim{dimension}")).collect();
    let bits = extents.iter().map(|extent| extent.max(&1).ilog2() as usize);
    let inputs: Vec<(&str, Vec<Vec<u64>>)> = inputs.into_iter().collect();
    LinearLayout::new(inputs, names.iter().map(String::as_str).zip(bits))
}
