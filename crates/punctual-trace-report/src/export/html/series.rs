//! Values of all jobs over the time of a recording, in constant memory, without losing an extreme.
//!
//! Time is divided into slots of equal width, each of which stores the minimum and the maximum of
//! the jobs that ended in it. When a recording outgrows the slots, neighbors are merged and the
//! width doubles. Widths are powers of two and slots start at multiples of them, so the slots of
//! all tasks share their edges.

use punctual_trace::jobs::{Bounds, Job, Term};

/// Drawn value of a job: a term, or a part of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Track {
    index: usize,
    /// Name of the part, empty for the whole term.
    pub(super) part: &'static str,
    value: fn(&Job) -> Bounds,
}

const TRACKS: usize = {
    let (mut count, mut index) = (0, 0);
    while index < Term::ALL.len() {
        let parts = Term::ALL[index].definition().parts.len();
        count += if parts == 0 { 1 } else { parts };
        index += 1;
    }
    count
};

impl Track {
    /// Returns the tracks of all terms, in order.
    fn all() -> impl Iterator<Item = (Term, Self)> {
        let drawn = Term::ALL.into_iter().flat_map(|term| {
            let row = term.definition();
            let whole = row.parts.is_empty().then_some(("", row.value));
            let parts = row.parts.iter().map(|part| (part.name, part.value));
            whole.into_iter().chain(parts).map(move |drawn| (term, drawn))
        });
        drawn.enumerate().map(|(index, (term, (part, value)))| (term, Self { index, part, value }))
    }

    /// Returns the tracks of a term: its parts, or else itself.
    pub(super) fn of_term(term: Term) -> Vec<Self> {
        Self::all().filter(|(of, _)| *of == term).map(|(_, track)| track).collect()
    }

    /// Returns the value of a job: of a bounded value the upper bound, as in statistics, or else
    /// the lower.
    pub(super) fn of(self, job: &Job) -> Option<u64> {
        let value = (self.value)(job);
        value.hi().or(value.lo())
    }
}

/// Number of slots of a task. Since the width doubles when they are full, a long recording uses at
/// least half of them.
pub(super) const SLOTS: usize = 512;

/// Initial width, 2^10 ns: about a microsecond, so that few jobs share a slot.
const FIRST_SHIFT: u32 = 10;

/// Minimum and maximum of some values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extremes {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Extremes {
    /// Extremes of no values.
    const NONE: Self = Self { min: u64::MAX, max: 0 };

    fn add(&mut self, other: Self) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    fn some(self) -> Option<Self> {
        (self.min <= self.max).then_some(self)
    }
}

#[derive(Debug, Clone, Copy)]
struct Slot([Extremes; TRACKS]);

impl Slot {
    const EMPTY: Self = Self([Extremes::NONE; TRACKS]);

    fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(one, other)| one.add(other));
    }
}

/// The jobs of a task over time.
#[derive(Debug, Clone)]
pub(super) struct Series {
    shift: u32,
    /// Index of the first slot, counted from time 0.
    first: u64,
    slots: Vec<Slot>,
}

impl Default for Series {
    fn default() -> Self {
        Self { shift: FIRST_SHIFT, first: 0, slots: Vec::new() }
    }
}

impl Series {
    /// Adds a job.
    pub(super) fn record(&mut self, job: &Job) {
        let mut values = [None; TRACKS];
        values.iter_mut().zip(Track::all()).for_each(|(value, (_, track))| *value = track.of(job));
        self.add(job.end, values);
    }

    fn add(&mut self, time: u64, values: [Option<u64>; TRACKS]) {
        if self.slots.is_empty() {
            self.first = time >> self.shift;
        }
        // Jobs arrive in the order of their ends. One out of order would be counted in the first
        // slot.
        let place = |this: &Self| (time >> this.shift).saturating_sub(this.first) as usize;
        while place(self) >= SLOTS {
            self.halve();
        }
        let place = place(self);
        if place >= self.slots.len() {
            self.slots.resize(place + 1, Slot::EMPTY);
        }
        for (extremes, value) in self.slots[place].0.iter_mut().zip(values) {
            if let Some(value) = value {
                extremes.add(Extremes { min: value, max: value });
            }
        }
    }

    /// Merges neighboring slots.
    fn halve(&mut self) {
        let first = self.first >> 1;
        let mut merged: Vec<Slot> = Vec::with_capacity(SLOTS);
        for (index, slot) in self.slots.iter().enumerate() {
            let place = (((self.first + index as u64) >> 1) - first) as usize;
            match merged.get_mut(place) {
                Some(into) => into.merge(slot),
                None => merged.push(*slot),
            }
        }
        (self.shift, self.first, self.slots) = (self.shift + 1, first, merged);
    }

    /// Returns the same series in at most `slots` slots.
    pub(super) fn within(&self, slots: usize) -> Self {
        let mut coarser = self.clone();
        while coarser.slots.len() > slots.max(1) {
            coarser.halve();
        }
        coarser
    }

    /// Returns the slots in which jobs with a value ended: the start of the slot and its extremes.
    pub(super) fn of(&self, track: Track) -> impl Iterator<Item = (u64, Extremes)> {
        let slots = self.slots.iter().zip(self.first..);
        slots.filter_map(move |(slot, number)| Some((number << self.shift, slot.0[track.index].some()?)))
    }

    /// The width of a slot, in ns.
    pub(super) fn width(&self) -> u64 {
        1 << self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(term: Term) -> Track {
        Track::of_term(term)[0]
    }

    fn values(ns: u64) -> [Option<u64>; TRACKS] {
        let mut values = [None; TRACKS];
        values[track(Term::Response).index] = Some(ns);
        values
    }

    const JOBS: u64 = 100_000;

    /// Jobs a millisecond apart, with single spikes: every slot stores its longest and its shortest
    /// job.
    #[test]
    fn keeps_extremes_in_bounded_memory() {
        let mut series = Series::default();
        let length = |n: u64| match n {
            7_777 => 9_000_000,
            50_001 => 1,
            n => 1_000 + n * 7_919 % 500,
        };
        for n in 0..JOBS {
            series.add(5_000_000_000 + n * 1_000_000, values(length(n)));
            assert!(series.slots.len() <= SLOTS && series.slots.capacity() <= 2 * SLOTS);
        }
        for series in [series.clone(), series.within(100), series.within(1)] {
            let slots: Vec<_> = series.of(track(Term::Response)).collect();
            let mut seen = 0;
            for (start, extremes) in slots {
                let end = start + series.width();
                let inside = |n: &u64| (start..end).contains(&(5_000_000_000 + n * 1_000_000));
                let numbers = (0..JOBS).skip_while(|n| !inside(n)).take_while(inside);
                let lengths: Vec<_> = numbers.map(length).collect();
                seen += lengths.len();
                assert_eq!(Some(&extremes.max), lengths.iter().max());
                assert_eq!(Some(&extremes.min), lengths.iter().min());
            }
            assert_eq!(seen as u64, JOBS);
        }
        assert!((SLOTS / 2..=SLOTS).contains(&series.of(track(Term::Response)).count()));
    }

    #[test]
    fn accepts_any_times_and_values() {
        let mut series = Series::default();
        for (time, value) in [(u64::MAX / 2, 5), (u64::MAX, u64::MAX), (0, 0), (u64::MAX, 7)] {
            series.add(time, values(value));
        }
        let slots: Vec<_> = series.of(track(Term::Response)).map(|(_, extremes)| extremes).collect();
        assert_eq!(slots.iter().map(|slot| slot.max).max(), Some(u64::MAX));
        assert_eq!(slots.iter().map(|slot| slot.min).min(), Some(0));
        assert_eq!(series.of(track(Term::Jitter)).count(), 0);
    }

    #[test]
    fn yields_no_slots_when_empty() {
        assert_eq!(Series::default().within(64).of(track(Term::Response)).count(), 0);
    }
}
