//! A value for each of the two axes, so that pan and tilt are never confused by position.

use serde::Serialize;

/// One value for the pan axis and one for the tilt axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Axes<T> {
    /// The value of the pan axis (rotation about the vertical).
    pub pan: T,
    /// The value of the tilt axis (rotation about the horizontal).
    pub tilt: T,
}

impl<T> Axes<T> {
    /// Pairs a pan value with a tilt value.
    pub const fn new(pan: T, tilt: T) -> Self {
        Self { pan, tilt }
    }

    /// Creates the same value for both axes.
    pub fn both(value: T) -> Self
    where
        T: Clone,
    {
        Self { pan: value.clone(), tilt: value }
    }

    /// Applies `f` to each axis, pan first.
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> Axes<U> {
        Axes { pan: f(self.pan), tilt: f(self.tilt) }
    }

    /// Pairs each value with the one of the same axis in `other`.
    pub fn zip<U>(self, other: Axes<U>) -> Axes<(T, U)> {
        Axes { pan: (self.pan, other.pan), tilt: (self.tilt, other.tilt) }
    }

    /// Borrows the value of each axis.
    pub const fn as_ref(&self) -> Axes<&T> {
        Axes { pan: &self.pan, tilt: &self.tilt }
    }

    /// Mutably borrows the value of each axis.
    pub const fn as_mut(&mut self) -> Axes<&mut T> {
        Axes { pan: &mut self.pan, tilt: &mut self.tilt }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_axes_apart_in_zip() {
        let sums = Axes::new(1, 2).zip(Axes::new(10, 20)).map(|(a, b)| a + b);
        assert_eq!(sums, Axes::new(11, 22));
    }
}
