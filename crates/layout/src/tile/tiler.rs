//! Tilers: the operands by which layouts are tiled.
//!
//! A tiler is a layout, which tiles the whole domain; or a list of tilers, one for each mode; or
//! `_`, which leaves a mode unchanged. An extent `n` means the layout `n:1`, and a shape tiles by
//! mode: `(2,3)` is `[2:1;3:1]`.
//!
//! # Law
//!
//! An operation that makes a pair `(first, second)` out of a layout and a tile extends to tilers in
//! four forms, which have the same leaves but different nestings (CuTe `logical_`, `zipped_`,
//! `tiled_` and `flat_`). With pairs `(t, r)` and `(u, s)` from modes 0 and 1 and a mode `m` that
//! the tiler does not name:
//!
//! ```text
//! logical   ((t,r),(u,s),m)          each mode stays where it is
//! zipped    ((t,u),(r,s,m))          all that comes first, then all that comes second
//! tiled     ((t,u),r,s,m)
//! flat      (t,u,r,s,m)
//! ```

use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::algebra::compose;
use crate::algebra::inner::Inner;
use crate::ground::words::debug_as_text;
use crate::limits::{MAX_DEPTH, MAX_NODES};
use crate::refusal::error::{LayoutError, Limit};
use crate::text::reading::LayoutLiteral;
use crate::tile::form::DivideForm;
use crate::value::coord::check_extents;
use crate::value::layout::{Layout, Leaf};
use crate::value::number::{Extent, Stride};
use crate::value::pairs::Pairs;
use crate::value::tree::{Gatherer, Tree, TreeRef};

/// A tiler: a layout, a tiler for each mode, or `_`.
///
/// ```
/// use tilewright_layout::{Layout, Tiler, Tree};
///
/// let shape: Tree<i64> = "(2,3)".parse().unwrap();
/// assert_eq!(Tiler::from_shape(&shape).unwrap().to_string(), "[2:1;3:1]");
///
/// // Mode 0 is unchanged; every second position of mode 1 is selected.
/// let tile: Layout = "4:2".parse().unwrap();
/// let tiler = Tiler::modes([Tiler::Keep, Tiler::Layout(tile)]).unwrap();
/// assert_eq!(tiler.to_string(), "[_;4:2]");
/// assert_eq!("[_;4:2]".parse::<Tiler>().unwrap(), tiler);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Tiler<D: Stride = i64> {
    /// `_`: the mode stays unchanged.
    Keep,
    /// The positions of one tile, as a layout into the domain.
    Layout(Layout<D>),
    /// One tiler for each mode, from mode 0 on; made by [`Tiler::modes`].
    Modes(TilerModes<D>),
}

/// Tilers for the modes of a layout, in order.
///
/// Invariant: no deeper than [`MAX_DEPTH`] and no more than [`MAX_NODES`] tilers in all, so that
/// walking it is bounded.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TilerModes<D: Stride = i64> {
    items: Vec<Tiler<D>>,
    depth: usize,
    nodes: usize,
}

impl<D: Stride> TilerModes<D> {
    /// The tiler by mode, without checking the limits.
    pub(crate) fn from_valid(items: Vec<Tiler<D>>, depth: usize, nodes: usize) -> TilerModes<D> {
        debug_assert!(depth <= MAX_DEPTH && nodes <= MAX_NODES);
        TilerModes { items, depth, nodes }
    }

    /// The tilers, mode 0 first.
    #[inline]
    pub fn items(&self) -> &[Tiler<D>] {
        &self.items
    }
}

impl<D: Stride> Tiler<D> {
    /// The tiler with the `i`-th of `items` for mode `i`.
    ///
    /// Errors: nested deeper than [`MAX_DEPTH`], or more than [`MAX_NODES`] tilers in all.
    pub fn modes(items: impl IntoIterator<Item = Tiler<D>>) -> Result<Tiler<D>, LayoutError> {
        let items: Vec<Tiler<D>> = items.into_iter().collect();
        let (mut depth, mut nodes) = (1, 1_usize);
        for item in &items {
            match item {
                Tiler::Modes(modes) => {
                    depth = depth.max(modes.depth + 1);
                    nodes = nodes.saturating_add(modes.nodes);
                }
                _ => nodes = nodes.saturating_add(1),
            }
        }
        if depth > MAX_DEPTH {
            return Err(LayoutError::TooLarge { limit: Limit::Depth, value: depth });
        }
        if nodes > MAX_NODES {
            return Err(LayoutError::TooLarge { limit: Limit::Nodes, value: nodes });
        }
        Ok(Tiler::Modes(TilerModes { items, depth, nodes }))
    }
}

impl<N: Extent> Tiler<N> {
    /// The tiler that a shape represents: a number `n` is the layout `n:1`, a tuple tiles by mode.
    ///
    /// Errors: an extent is not positive.
    pub fn from_shape(shape: &Tree<N>) -> Result<Tiler<N>, LayoutError> {
        check_extents(shape)?;
        tiler_of(shape.as_ref(), &N::one())
    }
}

/// The tiler that a shape represents: a number `n` is the layout `n:unit`.
fn tiler_of<D: Stride>(shape: TreeRef<'_, D::Extent>, unit: &D) -> Result<Tiler<D>, LayoutError> {
    if shape.is_leaf() {
        let extent = shape.leaves.first().cloned().unwrap_or(D::Extent::one());
        return Ok(Tiler::Layout(Layout::mode_of(extent, unit.clone())?));
    }
    Tiler::modes(shape.modes().map(|mode| tiler_of(mode, unit)).collect::<Result<Vec<_>, _>>()?)
}

impl<D: Stride> From<Layout<D>> for Tiler<D> {
    fn from(layout: Layout<D>) -> Tiler<D> {
        Tiler::Layout(layout)
    }
}

impl<D: Stride> From<&Layout<D>> for Tiler<D> {
    fn from(layout: &Layout<D>) -> Tiler<D> {
        Tiler::Layout(layout.clone())
    }
}

impl<D: Stride> Layout<D> {
    /// The composition with a tiler: each mode is composed with its tiler; a mode under `_` stays
    /// unchanged (CuTe `composition(layout, tiler)`).
    ///
    /// Modes that the tiler does not name are dropped.
    /// Errors: as [`Layout::compose`]; the tiler has more modes than the layout, here or in a mode.
    ///
    /// ```
    /// use tilewright_layout::{Layout, Tiler};
    ///
    /// let layout: Layout = "(8,6,2):(6,1,48)".parse().unwrap();
    /// let tiler: Tiler = "[4:2;_]".parse().unwrap();
    /// assert_eq!(layout.compose_tiler(&tiler).unwrap().to_string(), "(4,6):(12,1)");
    /// ```
    pub fn compose_tiler<B: Inner<D>>(&self, tiler: &Tiler<B>) -> Result<Layout<D>, LayoutError> {
        match tiler {
            Tiler::Keep => Ok(self.clone()),
            Tiler::Layout(b) => self.compose(b),
            Tiler::Modes(_) => {
                let mut out = Gatherer::new();
                compose_modes(self.as_ref(), tiler, &mut out)?;
                Layout::from_tree(out.finish()?)
            }
        }
    }
}

fn compose_modes<D: Stride, B: Inner<D>>(
    layout: TreeRef<'_, Leaf<D>>,
    tiler: &Tiler<B>,
    out: &mut Gatherer<Leaf<D>>,
) -> Result<(), LayoutError> {
    match tiler {
        Tiler::Keep => out.append(layout),
        Tiler::Layout(b) => B::compose_into(layout, b, out)?,
        Tiler::Modes(tilers) => {
            check_rank(compose::OP, layout, tilers)?;
            out.open();
            for (position, (mode, tiler)) in layout.modes().zip(tilers.items()).enumerate() {
                compose_modes(mode, tiler, out).map_err(|error| error.in_mode(position))?;
            }
            out.close();
        }
    }
    Ok(())
}

fn check_rank<D: Stride, E: Stride>(
    op: &'static str,
    layout: TreeRef<'_, Leaf<D>>,
    tilers: &TilerModes<E>,
) -> Result<(), LayoutError> {
    if tilers.items().len() > layout.rank() {
        return Err(LayoutError::Tiler { op, path: Vec::new(), what: "has more modes than the layout has there" });
    }
    Ok(())
}

/// Applies a division or a product of a layout and a tiler in the given form.
/// `pair(mode, tile, pairs)` writes the first and the second part for one mode and one layout of
/// the tiler.
#[inline]
pub(crate) fn by_tiler<D: Stride, E: Stride>(
    op: &'static str,
    form: DivideForm,
    layout: &Layout<D>,
    tiler: &Tiler<E>,
    pair: &impl Fn(TreeRef<'_, Leaf<D>>, &Layout<E>, &mut Pairs<D>) -> Result<(), LayoutError>,
) -> Result<Layout<D>, LayoutError> {
    let mut pairs = Pairs::new(form != DivideForm::Logical);
    if form == DivideForm::Zipped || form == DivideForm::Tiled {
        pairs.first.open();
    }
    walk(op, layout.as_ref(), tiler, pair, &mut pairs)?;
    if form == DivideForm::Flat {
        let tiles = core::mem::replace(&mut pairs.first, Gatherer::new());
        pairs.first.open();
        tiles.as_ref().modes().for_each(|mode| pairs.first.append(mode));
    }
    if let Some(second) = &pairs.second {
        if form == DivideForm::Zipped {
            pairs.first.append(second.as_ref());
        } else {
            second.as_ref().modes().for_each(|mode| pairs.first.append(mode));
        }
        pairs.first.close();
    }
    Layout::from_tree(pairs.first.finish()?)
}

fn walk<D: Stride, E: Stride>(
    op: &'static str,
    layout: TreeRef<'_, Leaf<D>>,
    tiler: &Tiler<E>,
    pair: &impl Fn(TreeRef<'_, Leaf<D>>, &Layout<E>, &mut Pairs<D>) -> Result<(), LayoutError>,
    pairs: &mut Pairs<D>,
) -> Result<(), LayoutError> {
    match tiler {
        Tiler::Keep => keep(op, layout, pairs),
        Tiler::Layout(tile) => {
            let logical = pairs.second.is_none();
            if logical {
                pairs.first.open();
            }
            pair(layout, tile, pairs)?;
            if logical {
                pairs.first.close();
            }
            Ok(())
        }
        Tiler::Modes(tilers) => {
            check_rank(op, layout, tilers)?;
            pairs.open();
            let mut tilers = tilers.items().iter();
            for (position, mode) in layout.modes().enumerate() {
                match tilers.next() {
                    Some(tiler) => walk(op, mode, tiler, pair, pairs).map_err(|error| error.in_mode(position))?,
                    None => pairs.second().append(mode),
                }
            }
            pairs.close();
            Ok(())
        }
    }
}

/// Writes a mode under `_`: whole, or its two modes as the first and the second part.
fn keep<D: Stride>(op: &'static str, layout: TreeRef<'_, Leaf<D>>, pairs: &mut Pairs<D>) -> Result<(), LayoutError> {
    let Some(second) = &mut pairs.second else {
        pairs.first.append(layout);
        return Ok(());
    };
    let mut modes = layout.modes();
    match (modes.next(), modes.next(), modes.next()) {
        (Some(tile), Some(rest), None) => {
            pairs.first.append(tile);
            second.append(rest);
            Ok(())
        }
        _ => Err(LayoutError::Tiler { op, path: Vec::new(), what: "is _, but the mode there is not a pair" }),
    }
}

impl<D: Stride> fmt::Display for Tiler<D> {
    /// Prints `_`, the layout, or `[2:1;3:1]` by mode.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tiler::Keep => f.write_str("_"),
            Tiler::Layout(layout) => write!(f, "{layout}"),
            Tiler::Modes(modes) => {
                f.write_str("[")?;
                for (position, item) in modes.items().iter().enumerate() {
                    if position > 0 {
                        f.write_str(";")?;
                    }
                    write!(f, "{item}")?;
                }
                f.write_str("]")
            }
        }
    }
}

debug_as_text!(Tiler<D: Stride>);

impl<D: Stride> fmt::Debug for TilerModes<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.items()).finish()
    }
}

impl<D: LayoutLiteral> FromStr for Tiler<D> {
    type Err = LayoutError;

    /// Parses `[item;item]`, `<item,item>`, `_`, a layout, or a shape, which tiles by mode.
    fn from_str(text: &str) -> Result<Tiler<D>, LayoutError> {
        read_tiler(text, &|value, strides| match strides {
            true => value.parse::<Layout<D>>().map(Tiler::Layout),
            false => {
                let shape = value.parse::<Tree<D::Extent>>()?;
                check_extents(&shape)?;
                let unit = D::of_index(D::Extent::one());
                let unit = unit.ok_or(LayoutError::Syntax { at: value.len(), expected: "':' and the strides" })?;
                tiler_of(shape.as_ref(), &unit)
            }
        })
    }
}

/// A parser of a layout, or of a shape if the second argument says that there are no strides.
type ReadValue<'a, D> = dyn Fn(&str, bool) -> Result<Tiler<D>, LayoutError> + 'a;

/// Parses a tiler; `value` parses its layouts and shapes.
pub(crate) fn read_tiler<D: Stride>(text: &str, value: &ReadValue<'_, D>) -> Result<Tiler<D>, LayoutError> {
    let mut reader = Reader { text, at: 0, value };
    let tiler = reader.item(0, &[])?;
    match reader.peek() {
        None => Ok(tiler),
        Some(_) => reader.fail("the end of the text"),
    }
}

struct Reader<'a, D: Stride> {
    text: &'a str,
    at: usize,
    value: &'a ReadValue<'a, D>,
}

impl<D: Stride> Reader<'_, D> {
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t') = self.text.as_bytes().get(self.at) {
            self.at += 1;
        }
        self.text.as_bytes().get(self.at).copied()
    }

    fn fail<T>(&self, expected: &'static str) -> Result<T, LayoutError> {
        Err(LayoutError::Syntax { at: self.at, expected })
    }

    /// Parses one tiler. It ends before a byte of `ends` that is outside parentheses, or at the end
    /// of the text.
    fn item(&mut self, depth: usize, ends: &[u8]) -> Result<Tiler<D>, LayoutError> {
        match self.peek() {
            Some(b'[') => self.list(depth, b';', b']'),
            Some(b'<') => self.list(depth, b',', b'>'),
            Some(b'_') if !matches!(self.text.as_bytes().get(self.at + 1), Some(b'0'..=b'9')) => {
                self.at += 1;
                Ok(Tiler::Keep)
            }
            _ => self.value(ends),
        }
    }

    fn list(&mut self, depth: usize, separator: u8, end: u8) -> Result<Tiler<D>, LayoutError> {
        if depth == MAX_DEPTH {
            return Err(LayoutError::TooLarge { limit: Limit::Depth, value: depth + 1 });
        }
        self.at += 1;
        let mut items = Vec::new();
        while self.peek() != Some(end) {
            items.push(self.item(depth + 1, &[separator, end])?);
            match self.peek() {
                Some(byte) if byte == separator => self.at += 1,
                Some(byte) if byte == end => break,
                _ if end == b']' => return self.fail("';' or ']'"),
                _ => return self.fail("',' or '>'"),
            }
        }
        self.at += 1;
        Tiler::modes(items)
    }

    /// Parses a layout, or a shape by mode.
    fn value(&mut self, ends: &[u8]) -> Result<Tiler<D>, LayoutError> {
        let start = self.at;
        let mut open = 0_usize;
        let mut strides = false;
        for byte in self.text.as_bytes().iter().skip(start) {
            match byte {
                b'(' | b'{' => open += 1,
                b')' | b'}' => open = open.saturating_sub(1),
                byte if open == 0 && ends.contains(byte) => break,
                byte => strides |= *byte == b':',
            }
            self.at += 1;
        }
        // The scan stops only before ASCII bytes, so it cuts between characters.
        let value = self.text.get(start..self.at).unwrap_or_default();
        (self.value)(value, strides).map_err(|error| match error {
            LayoutError::Syntax { at, expected } => LayoutError::Syntax { at: at + start, expected },
            other => other,
        })
    }
}
