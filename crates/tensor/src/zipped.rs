//! Zipped tensors: several tensors of the same shape, as one tensor of tuples.
//!
//! Law: element `c` of the zip is the tuple of the tensors' elements at `c`. Writing to it writes
//! to them. A rearrangement of the zip is the zip of the tensors with the same rearrangement.

use tilewright_layout::{LayoutError, Tree};

use crate::coordinates::CoordinateTensor;
use crate::elements::{Elements, ElementsMut};
use crate::error::TensorError;
use crate::offsets::Offsets;
use crate::position::Position;
use crate::rearrange::Rearrangement;
use crate::tiling::Tiling;
use crate::view::{TensorView, TensorViewMut};

/// Tensors of the same shape (CuTe `make_zip_tensor`, except that it can be written).
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Tensor, Zipped};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let x = Tensor::from_vec(vec![1.0, 2.0, 3.0, 4.0], "(2,2):(1,2)".parse::<Layout>()?)?;
/// let mut y = Tensor::from_vec(vec![10.0, 20.0, 30.0, 40.0], "(2,2):(2,1)".parse::<Layout>()?)?;
/// Zipped::new((x.view(), y.view_mut()))?.for_each(|(x, y)| *y += x);
/// assert_eq!(y.as_slice(), [11.0, 23.0, 32.0, 44.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Zipped<V>(V);

/// A tensor that can be part of a zip: a view, or an identity tensor.
pub trait Member: Sized {
    /// The type of an element that is read.
    type Item<'m>
    where
        Self: 'm;
    /// The type of an element of a mutable zip: a mutable reference, if the member is a mutable
    /// view.
    type ItemMut<'m>
    where
        Self: 'm;
    /// An iterator over all elements, in index order.
    type Stream<'m>: Iterator<Item = Self::ItemMut<'m>>
    where
        Self: 'm;
    /// The type of the member after a rearrangement.
    type Output;

    /// The extents.
    fn extents(&self) -> Tree<i64>;

    /// The element at a position, for reading.
    ///
    /// Errors: it is outside the shape.
    fn item(&self, position: impl Position) -> Result<Self::Item<'_>, TensorError>;

    /// The element at a position, for writing.
    ///
    /// Errors: it is outside the shape.
    fn item_mut(&mut self, position: impl Position) -> Result<Self::ItemMut<'_>, TensorError>;

    /// All elements, in index order.
    fn stream(&mut self) -> Self::Stream<'_>;

    /// The member after some rearrangements.
    ///
    /// Errors: as [`Tiling::rearranged`].
    fn after(self, steps: &[Rearrangement]) -> Result<Self::Output, TensorError>;
}

impl<'a, T, L: Offsets> Member for TensorView<'a, T, L> {
    type Item<'m>
        = &'a T
    where
        Self: 'm;
    type ItemMut<'m>
        = &'a T
    where
        Self: 'm;
    type Stream<'m>
        = Elements<'a, T, L>
    where
        Self: 'm;
    type Output = TensorView<'a, T, L::Derived>;

    fn extents(&self) -> Tree<i64> {
        self.shape()
    }

    fn item(&self, position: impl Position) -> Result<&'a T, TensorError> {
        self.get(position)
    }

    fn item_mut(&mut self, position: impl Position) -> Result<&'a T, TensorError> {
        self.get(position)
    }

    #[inline]
    fn stream(&mut self) -> Elements<'a, T, L> {
        self.iter()
    }

    fn after(self, steps: &[Rearrangement]) -> Result<Self::Output, TensorError> {
        self.rearranged(steps)
    }
}

impl<'a, T, L: Offsets> Member for TensorViewMut<'a, T, L> {
    type Item<'m>
        = &'m T
    where
        Self: 'm;
    type ItemMut<'m>
        = &'m mut T
    where
        Self: 'm;
    type Stream<'m>
        = ElementsMut<'m, T, L>
    where
        Self: 'm;
    type Output = TensorViewMut<'a, T, L::Derived>;

    fn extents(&self) -> Tree<i64> {
        self.shape()
    }

    fn item(&self, position: impl Position) -> Result<&T, TensorError> {
        self.get(position)
    }

    fn item_mut(&mut self, position: impl Position) -> Result<&mut T, TensorError> {
        self.get_mut(position)
    }

    #[inline]
    fn stream(&mut self) -> ElementsMut<'_, T, L> {
        self.iter_mut()
    }

    fn after(self, steps: &[Rearrangement]) -> Result<Self::Output, TensorError> {
        self.rearranged(steps)
    }
}

impl Member for CoordinateTensor {
    type Item<'m> = Tree<i64>;
    type ItemMut<'m> = Tree<i64>;
    type Stream<'m> = Box<dyn Iterator<Item = Tree<i64>> + 'm>;
    type Output = CoordinateTensor;

    fn extents(&self) -> Tree<i64> {
        self.shape()
    }

    fn item(&self, position: impl Position) -> Result<Tree<i64>, TensorError> {
        self.get(position)
    }

    fn item_mut(&mut self, position: impl Position) -> Result<Tree<i64>, TensorError> {
        self.get(position)
    }

    fn stream(&mut self) -> Box<dyn Iterator<Item = Tree<i64>> + '_> {
        Box::new(self.iter())
    }

    fn after(self, steps: &[Rearrangement]) -> Result<CoordinateTensor, TensorError> {
        self.rearranged(steps)
    }
}

/// Two to four members.
pub trait Members: Sized {
    /// The type of an element that is read: a tuple.
    type Items<'m>
    where
        Self: 'm;
    /// The type of an element of a mutable zip: a tuple.
    type ItemsMut<'m>
    where
        Self: 'm;
    /// The type of the members after a rearrangement.
    type Output;

    /// The shape of each member.
    fn extents(&self) -> Vec<Tree<i64>>;

    /// The elements at a position, for reading.
    ///
    /// Errors: it is outside the shape.
    fn items(&self, position: impl Position) -> Result<Self::Items<'_>, TensorError>;

    /// The elements at a position, for writing.
    ///
    /// Errors: it is outside the shape.
    fn items_mut(&mut self, position: impl Position) -> Result<Self::ItemsMut<'_>, TensorError>;

    /// Calls `f` with the elements at each coordinate, in index order.
    fn each<'m>(&'m mut self, f: impl FnMut(Self::ItemsMut<'m>));

    /// The members after some rearrangements.
    ///
    /// Errors: as [`Tiling::rearranged`].
    fn after(self, steps: &[Rearrangement]) -> Result<Self::Output, TensorError>;
}

impl<V: Members> Zipped<V> {
    /// The zip of these tensors.
    ///
    /// Errors: the shapes differ.
    #[doc(alias = "make_zip_tensor")]
    pub fn new(members: V) -> Result<Zipped<V>, TensorError> {
        let mut shapes = members.extents().into_iter();
        let first = shapes.next().ok_or(LayoutError::Overflow { op: "zip" })?;
        if let Some(second) = shapes.find(|shape| *shape != first) {
            return Err(TensorError::Shapes { first: Box::new(first), second: Box::new(second) });
        }
        Ok(Zipped(members))
    }

    /// The elements at a position.
    ///
    /// Errors: it is outside the shape.
    pub fn get(&self, position: impl Position) -> Result<V::Items<'_>, TensorError> {
        self.0.items(position)
    }

    /// The elements at a position; those of mutable views can be written.
    ///
    /// Errors: it is outside the shape.
    pub fn get_mut(&mut self, position: impl Position) -> Result<V::ItemsMut<'_>, TensorError> {
        self.0.items_mut(position)
    }

    /// Calls `f` with the elements at each coordinate, in index order.
    #[inline]
    pub fn for_each<'m>(&'m mut self, f: impl FnMut(V::ItemsMut<'m>)) {
        self.0.each(f);
    }
}

impl<V: Members> Tiling for Zipped<V> {
    type Output = Zipped<V::Output>;

    fn rearranged(self, steps: &[Rearrangement]) -> Result<Zipped<V::Output>, TensorError> {
        Ok(Zipped(self.0.after(steps)?))
    }
}

/// Implements [`Members`] for tuples.
macro_rules! members {
    (A a 0, $($member:ident $value:ident $at:tt),*) => {
        impl<A: Member, $($member: Member),*> Members for (A, $($member),*) {
            type Items<'m> = (A::Item<'m>, $($member::Item<'m>),*) where Self: 'm;
            type ItemsMut<'m> = (A::ItemMut<'m>, $($member::ItemMut<'m>),*) where Self: 'm;
            type Output = (A::Output, $($member::Output),*);

            fn extents(&self) -> Vec<Tree<i64>> {
                vec![self.0.extents(), $(self.$at.extents()),*]
            }

            fn items(&self, position: impl Position) -> Result<Self::Items<'_>, TensorError> {
                Ok((self.0.item(position)?, $(self.$at.item(position)?),*))
            }

            fn items_mut(&mut self, position: impl Position) -> Result<Self::ItemsMut<'_>, TensorError> {
                Ok((self.0.item_mut(position)?, $(self.$at.item_mut(position)?),*))
            }

            #[inline]
            fn each<'m>(&'m mut self, mut f: impl FnMut(Self::ItemsMut<'m>)) {
                // The first member is visited in loops, the others step by step: all have the same
                // number of elements.
                $(let mut $value = self.$at.stream();)*
                self.0.stream().for_each(|a| {
                    if let ($(Some($value),)*) = ($($value.next(),)*) {
                        f((a, $($value),*));
                    }
                });
            }

            fn after(self, steps: &[Rearrangement]) -> Result<Self::Output, TensorError> {
                Ok((self.0.after(steps)?, $(self.$at.after(steps)?),*))
            }
        }
    };
}

members!(A a 0, B b 1);
members!(A a 0, B b 1, C c 2);
members!(A a 0, B b 1, C c 2, D d 3);

/// Methods that write tuples.
macro_rules! written {
    ($($element:ident $map:ident $value:ident $at:tt),*) => {
        impl<$($element, $map: Offsets),*> Zipped<($(TensorViewMut<'_, $element, $map>,)*)> {
            /// Writes the elements at a position.
            ///
            /// Errors: it is outside the shape.
            pub fn set(&mut self, position: impl Position, ($($value,)*): ($($element,)*)) -> Result<(), TensorError> {
                $(self.0.$at.set(position, $value)?;)*
                Ok(())
            }
        }
    };
}

written!(A L a 0, B M b 1);
written!(A L a 0, B M b 1, C N c 2);
written!(A L a 0, B M b 1, C N c 2, D O d 3);
