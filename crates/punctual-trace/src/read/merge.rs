//! Merges several sources of events, each in order, into one order: by time, then by the source's
//! rank.
//!
//! Each source returns a batch at a time, so the memory use does not depend on the length of the
//! trace.
//!
//! ```
//! use punctual_trace::event::{Event, Kind};
//! use punctual_trace::read::merge::{Merge, Source};
//!
//! struct Once(Vec<Event>);
//! impl Source for Once {
//!     type Context = ();
//!     type Error = std::convert::Infallible;
//!     fn refill(&mut self, _: &mut (), into: &mut Vec<Event>) -> Result<(), Self::Error> {
//!         into.append(&mut self.0);
//!         Ok(())
//!     }
//! }
//!
//! let at = |time, cpu| Event { time, cpu, by: 0, kind: Kind::IrqEntry { irq: 1 } };
//! let sources = [Once(vec![at(1, 0), at(4, 0)]), Once(vec![at(1, 1), at(2, 1)])];
//! let merged: Vec<_> = Merge::new((), sources).map(|event| event.unwrap().time).collect();
//! assert_eq!(merged, [1, 1, 2, 4]);
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::event::Event;

/// The number of events that a source delivers per batch.
pub const BATCH: usize = 512;

/// The number of consecutive errors after which a source is abandoned.
const RETRIES: usize = 16;

/// A source of events, in order of time.
pub trait Source {
    /// State shared by all sources of a merge.
    type Context;
    /// The error of a source.
    type Error;

    /// Appends about [`BATCH`] of the next events to `into`, which is empty; none if there are no
    /// more.
    ///
    /// With an error it appends nothing. It is then called again, and ends or continues after the
    /// unreadable part.
    fn refill(&mut self, context: &mut Self::Context, into: &mut Vec<Event>) -> Result<(), Self::Error>;
}

/// The time of a source's next event, in the upper half, and the source's rank. A single number
/// makes comparisons fast.
type Key = u128;

const NEVER: Key = Key::MAX;

#[inline]
fn key(time: u64, lane: usize) -> Key {
    Key::from(time) << 64 | lane as Key
}

#[inline]
fn lane_of(key: Key) -> usize {
    key as u64 as usize
}

struct Lane<S> {
    source: S,
    batch: Vec<Event>,
    at: usize,
}

/// Merges the events of several sources.
pub struct Merge<S: Source> {
    context: S::Context,
    lanes: Vec<Lane<S>>,
    /// The lane that currently delivers events.
    current: usize,
    /// The key at which another lane takes over.
    bound: Key,
    /// The other lanes that have events.
    waiting: BinaryHeap<Reverse<Key>>,
    started: bool,
    /// True if no lane is current, because all have ended.
    ended: bool,
    failed: VecDeque<S::Error>,
}

impl<S: Source> Merge<S> {
    /// Merges `sources`, given in order of rank.
    pub fn new(context: S::Context, sources: impl IntoIterator<Item = S>) -> Self {
        let lane = |source| Lane { source, batch: Vec::new(), at: 0 };
        Self {
            context,
            lanes: sources.into_iter().map(lane).collect(),
            current: 0,
            bound: NEVER,
            waiting: BinaryHeap::new(),
            started: false,
            ended: false,
            failed: VecDeque::new(),
        }
    }

    /// Returns the shared state of the sources.
    pub fn context(&self) -> &S::Context {
        &self.context
    }

    /// Returns the shared state of the sources, mutably.
    pub fn context_mut(&mut self) -> &mut S::Context {
        &mut self.context
    }

    /// Fills the batch of a lane and returns the key of its first event. Stores errors for the
    /// caller of `next`.
    fn refill(&mut self, lane: usize) -> Option<Key> {
        let Lane { source, batch, at } = &mut self.lanes[lane];
        batch.clear();
        *at = 0;
        // A source that keeps failing is abandoned, so that it cannot stall the others.
        for _ in 0..RETRIES {
            match source.refill(&mut self.context, batch) {
                Ok(()) => break,
                Err(error) => self.failed.push_back(error),
            }
        }
        batch.first().map(|event| key(event.time, lane))
    }

    #[cold]
    fn start(&mut self) {
        self.started = true;
        for lane in 0..self.lanes.len() {
            if let Some(key) = self.refill(lane) {
                self.waiting.push(Reverse(key));
            }
        }
        self.take_next();
    }

    /// Makes the lane with the earliest event current, after the one before has ended.
    fn take_next(&mut self) {
        match self.waiting.pop() {
            Some(Reverse(first)) => self.current = lane_of(first),
            None => self.ended = true,
        }
        self.bound = self.waiting.peek().map_or(NEVER, |&Reverse(key)| key);
    }

    /// Replaces the current lane, whose next event is at `key`, by the one with the earliest event.
    fn change(&mut self, key: Key) {
        if let Some(mut first) = self.waiting.peek_mut() {
            let Reverse(first) = std::mem::replace(&mut *first, Reverse(key));
            self.current = lane_of(first);
        }
        self.bound = self.waiting.peek().map_or(NEVER, |&Reverse(key)| key);
    }

    /// Makes the lane with the next event current, if there is one and no error precedes it.
    #[inline]
    fn advance(&mut self) -> Option<Result<(), S::Error>> {
        loop {
            if let Some(lane) = self.lanes.get(self.current)
                && let Some(event) = lane.batch.get(lane.at)
            {
                let key = key(event.time, self.current);
                if key >= self.bound {
                    self.change(key);
                }
                return Some(Ok(()));
            }
            if let Some(end) = self.more() {
                return end;
            }
        }
    }

    /// Returns the next events, all of one source: as many as precede the events of the others.
    /// Cheaper than iterating over single events.
    #[inline]
    pub fn next_run(&mut self) -> Option<Result<&[Event], S::Error>> {
        if let Err(error) = self.advance()? {
            return Some(Err(error));
        }
        let (current, bound) = (self.current, self.bound);
        let lane = &mut self.lanes[current];
        let rest = &lane.batch[lane.at..];
        let later = rest.iter().skip(1).position(|event| key(event.time, current) >= bound);
        let count = later.map_or(rest.len(), |later| later + 1);
        lane.at += count;
        Some(Ok(&rest[..count]))
    }
}

impl<S: Source> Iterator for Merge<S> {
    type Item = Result<Event, S::Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.advance()? {
            return Some(Err(error));
        }
        let lane = &mut self.lanes[self.current];
        let event = lane.batch[lane.at];
        lane.at += 1;
        Some(Ok(event))
    }
}

impl<S: Source> Merge<S> {
    /// Performs the work per batch: returns `Some` for the answer, `None` if there is an event
    /// again.
    #[cold]
    fn more(&mut self) -> Option<Option<Result<(), S::Error>>> {
        if !self.started {
            self.start();
        } else if !self.ended && self.refill(self.current).is_none() {
            self.take_next();
        }
        if let Some(error) = self.failed.pop_front() {
            return Some(Some(Err(error)));
        }
        self.ended.then_some(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Kind;

    /// Returns batches, or an error for `None`.
    struct Batches(VecDeque<Option<Vec<u64>>>, u16);

    impl Source for Batches {
        type Context = usize;
        type Error = u16;

        fn refill(&mut self, calls: &mut usize, into: &mut Vec<Event>) -> Result<(), u16> {
            *calls += 1;
            let kind = Kind::IrqEntry { irq: 0 };
            let event = |time| Event { time, cpu: self.1, by: 0, kind };
            match self.0.pop_front() {
                Some(Some(times)) => into.extend(times.into_iter().map(event)),
                Some(None) => return Err(self.1),
                None => {}
            }
            Ok(())
        }
    }

    fn merging(lanes: &[&[Option<&[u64]>]]) -> Merge<Batches> {
        let lane = |lane: &&[Option<&[u64]>]| lane.iter().map(|batch| batch.map(<[u64]>::to_vec)).collect();
        Merge::new(0, lanes.iter().zip(0..).map(|(batches, cpu)| Batches(lane(batches), cpu)))
    }

    fn merge(lanes: &[&[Option<&[u64]>]]) -> Vec<Result<(u64, u16), u16>> {
        merging(lanes).map(|item| item.map(|event| (event.time, event.cpu))).collect()
    }

    #[test]
    fn orders_by_time_then_by_rank() {
        let merged =
            merge(&[&[Some(&[1, 5]), Some(&[5, 9])], &[], &[Some(&[1, 5, 6]), Some(&[7])], &[Some(&[5])]]);
        let expected = [(1, 0), (1, 2), (5, 0), (5, 0), (5, 2), (5, 3), (6, 2), (7, 2), (9, 0)];
        assert_eq!(merged, expected.map(Ok));
        assert_eq!(merge(&[]), []);
        assert_eq!(merge(&[&[], &[]]), []);
    }

    #[test]
    fn reports_errors_in_place_and_continues_other_streams() {
        let merged = merge(&[&[Some(&[1]), None, Some(&[8])], &[None, Some(&[2, 9])], &[None; 40]]);
        let errors = merged.iter().filter(|item| item.is_err()).count();
        assert_eq!(errors, 2 + RETRIES);
        let events: Vec<_> = merged.into_iter().flatten().collect();
        assert_eq!(events, [(1, 0), (2, 1), (8, 0), (9, 1)]);
    }

    #[test]
    fn merges_in_sorted_order() {
        let mut seed = 1u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        };
        for _ in 0..200 {
            let lanes: Vec<Vec<Vec<u64>>> = (0..random() % 6)
                .map(|_| {
                    let mut time = 0;
                    (0..random() % 5)
                        .map(|_| {
                            (0..1 + random() % 4)
                                .map(|_| {
                                    time += random() % 3;
                                    time
                                })
                                .collect()
                        })
                        .collect()
                })
                .collect();
            let mut expected: Vec<_> = lanes
                .iter()
                .zip(0..)
                .flat_map(|(lane, cpu)| lane.iter().flatten().map(move |&time| (time, cpu)))
                .collect();
            expected.sort();
            let borrowed: Vec<Vec<Option<&[u64]>>> =
                lanes.iter().map(|lane| lane.iter().map(|batch| Some(&batch[..])).collect()).collect();
            let slices: Vec<_> = borrowed.iter().map(|lane| &lane[..]).collect();
            let merged: Vec<_> = merge(&slices).into_iter().map(Result::unwrap).collect();
            assert_eq!(merged, expected);
            let (mut merge, mut runs) = (merging(&slices), Vec::new());
            while let Some(run) = merge.next_run() {
                let run = run.unwrap();
                assert!(!run.is_empty() && run.iter().all(|event| event.cpu == run[0].cpu));
                runs.extend(run.iter().map(|event| (event.time, event.cpu)));
            }
            assert_eq!(runs, expected);
        }
    }
}
