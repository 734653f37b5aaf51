//! Linear layouts: maps over bits whose inputs and outputs have names (Triton).
//!
//! Law: a [`LinearLayout`] maps one index for each input, such as `register`, `lane`, `warp` and
//! `block`, to one index for each output, such as the dimensions of a tensor. Every index has a
//! fixed number of bits, and the image of an XOR is the XOR of the images. So the map is determined
//! by the images of the powers of two of each input, its *bases*. Concatenating the inputs, the
//! bits of the first one lowest, and the outputs in the same way makes it a [`BitMatrix`].
//!
//! Operations match names. Composition connects the outputs of the first map with the inputs of the
//! second of the same name; a product puts the bits of the second operand above those of the first,
//! for each name separately.

mod names;
mod text;

use alloc::boxed::Box;
use alloc::vec::Vec;

use self::names::{both, check, field, join, part, reorder};
use crate::bits::matrix::{BitMatrix, Columns};
use crate::composed::Composed;
use crate::limits::MAX_BITS;
use crate::refusal::error::LayoutError;
use crate::value::layout::Layout;
use crate::value::tree::Tree;

const OP: &str = "linear layout";

/// The name of an input or output, and the number of bits of its index.
pub type Named = (Box<str>, usize);

/// A linear map over bits with named inputs and outputs (Triton's linear layout).
///
/// ```
/// use tilewright_layout::LinearLayout;
///
/// // Two registers of four lanes hold a tile of 4 x 2: a register holds a column.
/// let tile: LinearLayout = "register=[(0,1)] lane=[(1,0),(2,0)] -> row:4 column:2".parse().unwrap();
/// assert_eq!(tile.apply(&[1, 3]).unwrap(), [3, 1]);
/// let home = tile.invert().unwrap(); // the register and lane of an element
/// assert_eq!(home.apply(&[3, 1]).unwrap(), [1, 3]);
/// assert_eq!(home.to_string(), "row=[(0,1),(0,2)] column=[(1,0)] -> register:2 lane:4");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LinearLayout {
    inputs: Vec<Named>,
    outputs: Vec<Named>,
    matrix: BitMatrix,
}

impl LinearLayout {
    /// The map with these bases: for each input, its name and the images of its powers of two; an
    /// image has one index for every output.
    ///
    /// Errors: a name repeats, or is not a valid name; an image does not have one index for each
    /// output, or an index has too many bits; more than [`MAX_BITS`] bits in all, or 62 in one
    /// name.
    ///
    /// ```
    /// use tilewright_layout::LinearLayout;
    ///
    /// let map = LinearLayout::new([("lane", vec![vec![1, 0], vec![1, 1]])], [("row", 1), ("column", 1)]).unwrap();
    /// assert_eq!(map.to_string(), "lane=[(1,0),(1,1)] -> row:2 column:2");
    /// ```
    pub fn new<'a>(
        inputs: impl IntoIterator<Item = (&'a str, Vec<Vec<u64>>)>,
        outputs: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> Result<LinearLayout, LayoutError> {
        let outputs: Vec<Named> = outputs.into_iter().map(|(name, bits)| (name.into(), bits)).collect();
        let total = check(&outputs)?;
        let mut named = Vec::new();
        let mut columns = Columns::new();
        for (name, bases) in inputs {
            named.push((name.into(), bases.len()));
            check(&named)?;
            for image in bases {
                columns.push(join(&outputs, &image)?);
            }
        }
        Ok(LinearLayout { inputs: named, outputs, matrix: BitMatrix::new(total, columns)? })
    }

    /// The map of a matrix: the bits of the first input are the lowest, and so for the outputs.
    ///
    /// Errors: as [`LinearLayout::new`]; the numbers of bits do not add up to those of the matrix
    /// ([`LayoutError::Size`]).
    pub fn of_matrix<'a>(
        inputs: impl IntoIterator<Item = (&'a str, usize)>,
        outputs: impl IntoIterator<Item = (&'a str, usize)>,
        matrix: BitMatrix,
    ) -> Result<LinearLayout, LayoutError> {
        let named = |names: Vec<(&str, usize)>, bits: usize| {
            let names: Vec<Named> = names.into_iter().map(|(name, bits)| (name.into(), bits)).collect();
            let total = check(&names)?;
            if total != bits {
                return Err(LayoutError::Size { op: OP, left: total as i64, right: bits as i64 });
            }
            Ok(names)
        };
        let inputs = named(inputs.into_iter().take(MAX_BITS + 1).collect(), matrix.inputs())?;
        let outputs = named(outputs.into_iter().take(MAX_BITS + 1).collect(), matrix.outputs())?;
        Ok(LinearLayout { inputs, outputs, matrix })
    }

    /// The map of a composed layout, or of a layout: an input for each of its modes, and the value
    /// as the only output.
    ///
    /// Errors: as [`Composed::bit_matrix`]; there is not one name for each mode; a value is
    /// negative.
    ///
    /// ```
    /// use tilewright_layout::{Composed, LinearLayout};
    ///
    /// let tile: Composed = "S<1,0,2> o 0 o (2,4):(4,1)".parse().unwrap();
    /// let map = LinearLayout::of_composed(["row", "column"], "offset", &tile).unwrap();
    /// assert_eq!(map.to_string(), "row=[(5)] column=[(1),(2)] -> offset:8");
    /// assert_eq!(map.to_composed().unwrap().to_string(), "S<1,0,2> o 0 o (2,4):(4,1)");
    /// ```
    pub fn of_composed<'a>(
        inputs: impl IntoIterator<Item = &'a str>,
        output: &'a str,
        composed: &Composed,
    ) -> Result<LinearLayout, LayoutError> {
        let names: Vec<&str> = inputs.into_iter().take(MAX_BITS + 1).collect();
        let (expected, found) = (composed.rank(), names.len());
        if expected != found {
            return Err(LayoutError::Rank { op: OP, path: Default::default(), expected, found });
        }
        let matrix = composed.bit_matrix()?;
        let bits = composed.inner().modes().map(|mode| mode.size().trailing_zeros() as usize);
        let outputs = matrix.outputs();
        LinearLayout::of_matrix(names.into_iter().zip(bits), [(output, outputs)], matrix)
    }

    /// As [`LinearLayout::of_composed`], for a layout.
    pub fn of_layout<'a>(
        inputs: impl IntoIterator<Item = &'a str>,
        output: &'a str,
        layout: &Layout,
    ) -> Result<LinearLayout, LayoutError> {
        LinearLayout::of_composed(inputs, output, &Composed::from(layout))
    }

    /// The inputs with their numbers of bits; the first has the lowest bits.
    pub fn inputs(&self) -> &[Named] {
        &self.inputs
    }

    /// The outputs with their numbers of bits; the first has the lowest bits.
    pub fn outputs(&self) -> &[Named] {
        &self.outputs
    }

    /// The matrix of the concatenated indices.
    pub fn matrix(&self) -> &BitMatrix {
        &self.matrix
    }

    /// The images of the powers of two of an input, each with one index for every output; None for
    /// a name that is not an input.
    pub fn bases(&self, input: &str) -> Option<Vec<Vec<u64>>> {
        let (first, bits) = field(&self.inputs, input)?;
        let columns = self.matrix.columns().iter().skip(first).take(bits);
        Some(columns.map(|column| part(&self.outputs, *column)).collect())
    }

    /// The indices of the outputs, from one index for each input.
    ///
    /// Errors: there are not as many indices as inputs; an index has too many bits.
    pub fn apply(&self, indices: &[u64]) -> Result<Vec<u64>, LayoutError> {
        Ok(part(&self.outputs, self.matrix.apply(join(&self.inputs, indices)?)))
    }

    /// This map after `first`, whose outputs are the inputs of this one, in any order.
    ///
    /// Errors: a name is missing on one side ([`LayoutError::NoName`]); the numbers of bits of a
    /// name differ ([`LayoutError::Size`]).
    ///
    /// ```
    /// use tilewright_layout::LinearLayout;
    ///
    /// let map = |text: &str| text.parse::<LinearLayout>().unwrap();
    /// let (tile, memory) = (map("lane=[(0,1),(1,0)] -> row:2 column:2"), map("column=[(1)] row=[(2)] -> offset:4"));
    /// assert_eq!(memory.compose(&tile).unwrap().to_string(), "lane=[(1),(2)] -> offset:4");
    /// ```
    pub fn compose(&self, first: &LinearLayout) -> Result<LinearLayout, LayoutError> {
        let order = reorder("composition", &first.outputs, &self.inputs)?;
        let matrix = self.matrix.compose(&order.compose(&first.matrix)?)?;
        Ok(LinearLayout { inputs: first.inputs.clone(), outputs: self.outputs.clone(), matrix })
    }

    /// The inverse map: outputs become inputs.
    ///
    /// Errors: two indices have the same image ([`LayoutError::Collapse`]), or an index is not an
    /// image ([`LayoutError::NoPreimage`]).
    pub fn invert(&self) -> Result<LinearLayout, LayoutError> {
        Ok(self.backwards(self.matrix.inverse()?))
    }

    /// The map `X` with `X(self(i)) = i` for all indices; outputs become inputs.
    ///
    /// Errors: two indices have the same image ([`LayoutError::Collapse`]).
    ///
    /// ```
    /// use tilewright_layout::LinearLayout;
    ///
    /// let wide: LinearLayout = "lane=[(1,0),(1,1)] -> row:4 column:2".parse().unwrap();
    /// let back = wide.left_inverse().unwrap();
    /// assert!(back.compose(&wide).unwrap().matrix().is_identity());
    /// assert_eq!(wide.right_inverse().unwrap_err().code(), "E0114");
    /// ```
    pub fn left_inverse(&self) -> Result<LinearLayout, LayoutError> {
        Ok(self.backwards(self.matrix.left_inverse()?))
    }

    /// A map `X` with `self(X(j)) = j` for all indices of the outputs.
    ///
    /// Errors: an index is not an image ([`LayoutError::NoPreimage`]).
    pub fn right_inverse(&self) -> Result<LinearLayout, LayoutError> {
        Ok(self.backwards(self.matrix.right_inverse()?))
    }

    /// A map from every image to indices that have it: [`BitMatrix::pseudo_inverse`]. It is the
    /// inverse if there is one.
    pub fn pseudo_inverse(&self) -> LinearLayout {
        self.backwards(self.matrix.pseudo_inverse())
    }

    fn backwards(&self, matrix: BitMatrix) -> LinearLayout {
        LinearLayout { inputs: self.outputs.clone(), outputs: self.inputs.clone(), matrix }
    }

    /// The map `X` with `self(X(i)) = b(i)`: `b` in terms of the inputs of this one. If `self` is
    /// the current distribution of a tensor over registers and lanes and `b` the wanted one, it
    /// gives the source of each element.
    ///
    /// Errors: the outputs are not the same; an image under `b` is not an image under this map
    /// ([`LayoutError::NoPreimage`]).
    pub fn left_divide(&self, b: &LinearLayout) -> Result<LinearLayout, LayoutError> {
        let order = reorder("left_divide", &b.outputs, &self.outputs)?;
        let matrix = self.matrix.left_divide(&order.compose(&b.matrix)?)?;
        Ok(LinearLayout { inputs: b.inputs.clone(), outputs: self.inputs.clone(), matrix })
    }

    /// This map on the low bits of each name, and another one on the bits above them (Triton's
    /// product).
    ///
    /// Errors: more than [`MAX_BITS`] bits in all, or 62 in one name.
    ///
    /// ```
    /// use tilewright_layout::LinearLayout;
    ///
    /// let map = |text: &str| text.parse::<LinearLayout>().unwrap();
    /// let (registers, lanes) = (map("register=[(1)] -> row:2"), map("lane=[(1,0),(0,1)] -> row:2 column:2"));
    /// assert_eq!(registers.product(&lanes).unwrap().to_string(), "register=[(1,0)] lane=[(2,0),(0,1)] -> row:4 column:2");
    /// ```
    pub fn product(&self, other: &LinearLayout) -> Result<LinearLayout, LayoutError> {
        let (inputs, outputs) = (both(&self.inputs, &other.inputs), both(&self.outputs, &other.outputs));
        let total = check(&outputs)?;
        check(&inputs)?;
        let mut columns = Columns::new();
        for (name, _) in &inputs {
            for (map, above) in [(self, false), (other, true)] {
                for image in map.bases(name).unwrap_or_default() {
                    let mut whole = alloc::vec![0; outputs.len()];
                    for ((output, _), index) in map.outputs.iter().zip(image) {
                        // The bits of the first operand in that output are below.
                        let below = if above { field(&self.outputs, output).map_or(0, |(_, bits)| bits) } else { 0 };
                        let place = outputs.iter().position(|(name, _)| name == output);
                        if let Some(slot) = place.and_then(|place| whole.get_mut(place)) {
                            *slot = index << below;
                        }
                    }
                    columns.push(join(&outputs, &whole)?);
                }
            }
        }
        Ok(LinearLayout { inputs, outputs, matrix: BitMatrix::new(total, columns)? })
    }

    /// The map `X` with `tile.product(X) = self`; None if there is none (Triton's left division,
    /// for example by the tile of an instruction). It has those names without bits that the tile
    /// does not have.
    ///
    /// ```
    /// use tilewright_layout::LinearLayout;
    ///
    /// let map = |text: &str| text.parse::<LinearLayout>().unwrap();
    /// let whole = map("register=[(1,0),(0,1)] lane=[(2,0)] -> row:4 column:2");
    /// let rest = whole.quotient(&map("register=[(1)] -> row:2")).unwrap();
    /// assert_eq!(rest.to_string(), "register=[(0,1)] lane=[(1,0)] -> row:2 column:2");
    /// assert!(whole.quotient(&map("lane=[(1)] -> row:2")).is_none());
    /// let rest = map("register=[(1,0)] -> row:2 column:1").quotient(&map("register=[(1)] -> row:2")).unwrap();
    /// assert_eq!(rest.to_string(), "-> column:1");
    /// ```
    pub fn quotient(&self, tile: &LinearLayout) -> Option<LinearLayout> {
        let rest = |whole: &[Named], part: &[Named]| {
            let part_fits = part.iter().all(|(name, bits)| *bits == 0 || field(whole, name).is_some());
            let left = whole.iter().map(|(name, bits)| {
                Some((name.clone(), bits.checked_sub(field(part, name).map_or(0, |(_, bits)| bits))?))
            });
            left.collect::<Option<Vec<Named>>>().filter(|_| part_fits)
        };
        let (mut inputs, mut outputs) = (rest(&self.inputs, &tile.inputs)?, rest(&self.outputs, &tile.outputs)?);
        inputs.retain(|(name, bits)| *bits > 0 || field(&tile.inputs, name).is_none());
        outputs.retain(|(name, bits)| *bits > 0 || field(&tile.outputs, name).is_none());
        let mut bases = Vec::new();
        for (name, bits) in &inputs {
            let images = self.bases(name)?;
            let mut above = Vec::new();
            for image in images.iter().skip(images.len().checked_sub(*bits)?) {
                let index = |name: &str| {
                    let place = self.outputs.iter().position(|(output, _)| output.as_ref() == name)?;
                    let below = field(&tile.outputs, name).map_or(0, |(_, bits)| bits);
                    Some(image.get(place)? >> below)
                };
                above.push(outputs.iter().map(|(name, _)| index(name)).collect::<Option<Vec<u64>>>()?);
            }
            bases.push((name.as_ref(), above));
        }
        let quotient = LinearLayout::new(bases, outputs.iter().map(|(name, bits)| (name.as_ref(), *bits))).ok()?;
        let product = tile.product(&quotient).ok()?;
        // The order of names may differ, and names without bits are ignored.
        let moving = |names: &[Named]| names.iter().filter(|(_, bits)| *bits > 0).cloned().collect::<Vec<Named>>();
        let inputs = reorder(OP, &moving(&self.inputs), &moving(&product.inputs)).ok()?;
        let outputs = reorder(OP, &moving(&product.outputs), &moving(&self.outputs)).ok()?;
        let again = outputs.compose(&product.matrix.compose(&inputs).ok()?).ok()?;
        (again == self.matrix).then_some(quotient)
    }

    /// The layout with integer strides that has this function: a mode for each input; the value is
    /// the concatenated index of the outputs, the first one fastest.
    ///
    /// Errors: there is none ([`LayoutError::NotAdditive`]); the size is not representable.
    pub fn to_layout(&self) -> Result<Layout, LayoutError> {
        self.matrix.to_layout(&self.shape()?)
    }

    /// The same as a composed layout, which always exists: a plain layout if possible, else a
    /// swizzled one, else this matrix.
    ///
    /// Errors: the size is not representable.
    pub fn to_composed(&self) -> Result<Composed, LayoutError> {
        self.matrix.to_composed(&self.shape()?)
    }

    /// The extents of the inputs.
    fn shape(&self) -> Result<Tree<i64>, LayoutError> {
        Tree::flat(self.inputs.iter().map(|(_, bits)| 1 << bits))
    }
}
