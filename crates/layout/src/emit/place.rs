//! The variables over which a layout is evaluated.
//!
//! Law: a coordinate has a variable for every leaf of its profile, and each variable is an index
//! into the corresponding part of the shape, first mode fastest. A single variable is an index into
//! the whole shape; one variable for each leaf is a natural coordinate. Only what is promised about
//! the variables is assumed.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::emit::error::EmitError;
use crate::{Layout, LayoutError, Profile, Stride, Tree};

/// The variables of a computation: the coordinate that they form, their names, and the promise
/// about them.
///
/// ```
/// use tilewright_layout::emit::{Language, Map, Promise, Style, Variables, value};
///
/// let map = Map::from("(4,8):(8,1)".parse::<tilewright_layout::Layout>().unwrap());
/// let text = |place: &Variables| value(&map, place).unwrap().expression(Style::new(Language::C)).unwrap();
/// assert_eq!(text(&Variables::index()), "(i & 3) * 8 + (i >> 2)");
/// assert_eq!(text(&Variables::leaves()), "i0 * 8 + i1");
/// assert_eq!(text(&Variables::leaves().named(["row", "col"])), "row * 8 + col");
/// assert_eq!(text(&Variables::index().promised(Promise::Nothing)), "i % 4 * 8 + i / 4");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variables {
    form: PlaceForm,
    names: Option<Vec<String>>,
    promise: Promise,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PlaceForm {
    Index,
    Modes,
    Leaves,
    Profile(Profile),
}

/// A promise about the variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Promise {
    /// Each variable is within its part of the shape: from 0 to its size minus one.
    #[default]
    Inside,
    /// No variable is negative. Past its end, the last mode of the layout continues.
    NotNegative,
    /// Nothing is promised. At negative indices, `L(-i) = -L(i)`.
    Nothing,
}

impl Variables {
    /// One variable `i`: an index into the whole shape, first mode fastest.
    pub fn index() -> Variables {
        Variables::of(PlaceForm::Index)
    }

    /// A variable for each top-level mode: `i0`, `i1`, ..
    pub fn modes() -> Variables {
        Variables::of(PlaceForm::Modes)
    }

    /// A variable for each leaf of the shape: `i0`, `i1`, .., and `i0_1` for mode 1 of mode 0.
    pub fn leaves() -> Variables {
        Variables::of(PlaceForm::Leaves)
    }

    /// A variable for each leaf of a profile, to which the shape must be weakly congruent.
    pub fn profile(profile: Profile) -> Variables {
        Variables::of(PlaceForm::Profile(profile))
    }

    fn of(form: PlaceForm) -> Variables {
        Variables { form, names: None, promise: Promise::Inside }
    }

    /// The same variables with these names, one for each.
    pub fn named<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Variables {
        Variables { names: Some(names.into_iter().map(Into::into).collect()), ..self }
    }

    /// The same variables with another promise.
    pub fn promised(self, promise: Promise) -> Variables {
        Variables { promise, ..self }
    }

    /// The promise.
    pub fn promise(&self) -> Promise {
        self.promise
    }

    /// The profile of the coordinate in a shape of the given profile.
    pub(crate) fn in_shape(&self, shape: &Profile) -> Result<Profile, LayoutError> {
        Ok(match &self.form {
            PlaceForm::Index => Profile::leaf(),
            PlaceForm::Modes if shape.is_leaf() => Profile::leaf(),
            PlaceForm::Modes => Profile::flat(shape.rank())?,
            PlaceForm::Leaves => shape.clone(),
            PlaceForm::Profile(profile) => profile.clone(),
        })
    }

    /// The names of the variables of a coordinate.
    pub(crate) fn names(&self, profile: &Profile) -> Result<Vec<String>, EmitError> {
        let variables = profile.leaves();
        match &self.names {
            Some(names) if names.len() == variables => Ok(names.clone()),
            Some(names) => Err(EmitError::Names { given: names.len(), variables }),
            None => Ok((0..variables).map(|leaf| named_by_path("i", &profile.path(leaf))).collect()),
        }
    }
}

/// `i`, `i0`, `i0_1`.
pub(crate) fn named_by_path(stem: &str, path: &[usize]) -> String {
    let modes: Vec<String> = path.iter().map(usize::to_string).collect();
    format!("{stem}{}", modes.join("_"))
}

/// For each leaf of a coordinate, the part of a layout that it indexes.
pub(crate) fn pieces<D: Stride>(layout: &Layout<D>, coordinate: &Profile) -> Result<Vec<Layout<D>>, EmitError> {
    let mut out = Vec::new();
    let tree = Tree::new(coordinate.clone(), (0..coordinate.leaves()).map(|_| ()))?;
    each_piece(layout, &tree, &mut Vec::new(), &mut out)?;
    Ok(out)
}

fn each_piece<D: Stride>(
    layout: &Layout<D>,
    coordinate: &Tree<()>,
    path: &mut Vec<usize>,
    out: &mut Vec<Layout<D>>,
) -> Result<(), EmitError> {
    if coordinate.is_leaf() {
        out.push(layout.clone());
        return Ok(());
    }
    if layout.profile().is_leaf() || layout.rank() != coordinate.rank() {
        let path = path.to_vec();
        let shape = Box::new(layout.profile().clone());
        return Err(LayoutError::Coordinate { op: "emit", path, shape }.into());
    }
    for (position, (mode, coordinate)) in layout.modes().zip(coordinate.modes()).enumerate() {
        path.push(position);
        each_piece(&mode, &coordinate, path, out)?;
        path.pop();
    }
    Ok(())
}
