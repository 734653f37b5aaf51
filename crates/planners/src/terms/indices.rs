//! The elements of a mode that are on a device.

/// The elements of a mode that are on a device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Indices {
    /// The index of the first element of the device.
    pub first: i64,
    /// The digits of a position, the first one fastest: the extent of each digit, and its stride in
    /// the index.
    pub digits: Vec<(i64, i64)>,
}

impl Indices {
    /// The index of the element at a position.
    ///
    /// ```
    /// use tilewright_planners::Indices;
    ///
    /// // Every second pair of elements, from the second pair on.
    /// let indices = Indices { first: 2, digits: vec![(2, 1), (3, 4)] };
    /// assert_eq!((0..6).map(|place| indices.at(place)).collect::<Vec<_>>(), [2, 3, 6, 7, 10, 11]);
    /// ```
    pub fn at(&self, place: i64) -> i64 {
        let mut rest = place;
        self.digits.iter().fold(self.first, |index, (extent, weight)| {
            let digit = rest % extent.max(&1);
            rest /= extent.max(&1);
            index + digit * weight
        })
    }
}
