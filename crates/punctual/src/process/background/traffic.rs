//! Message traffic outside the tasks, as counted by its carriers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of counts that are kept, since their names may come from other processes.
const MAX_COUNTS: usize = 1_024;

/// Counts the messages that ordinary threads carry, in or out, under one name; `punctual top` shows
/// them.
///
/// A process can have 32 of these. A name that was used before continues its counts.
///
/// ```
/// use punctual::background::Traffic;
///
/// let setpoints = Traffic::new("/setpoint");
/// let (carried, lost, refused) = (100, 0, 1);
/// setpoints.set(carried, lost, refused);
/// ```
#[derive(Debug)]
pub struct Traffic(Arc<Counts>);

impl Traffic {
    /// Creates counts with this name, of which 64 bytes are shown. The counts stay visible after a
    /// drop.
    ///
    /// Real-time safety: allocates and locks; for ordinary threads.
    pub fn new(name: &str) -> Self {
        let counts =
            Arc::new(Counts { name: name.to_owned(), carried: 0.into(), lost: 0.into(), refused: 0.into() });
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        match all.iter().position(|other| other.name == name && Arc::strong_count(other) == 1) {
            Some(place) => all[place] = Arc::clone(&counts),
            None if all.len() < MAX_COUNTS => all.push(Arc::clone(&counts)),
            None => {}
        }
        Self(counts)
    }

    /// Sets the total numbers of messages carried, lost on the way, and received but rejected.
    ///
    /// Real-time safety: three stores.
    pub fn set(&self, carried: u64, lost: u64, refused: u64) {
        let Counts { carried: c, lost: l, refused: r, .. } = &*self.0;
        // Relaxed: they are counts for people.
        c.store(carried, Ordering::Relaxed);
        l.store(lost, Ordering::Relaxed);
        r.store(refused, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Counts {
    name: String,
    carried: AtomicU64,
    lost: AtomicU64,
    refused: AtomicU64,
}

/// The counts of the process; each keeps its index.
static ALL: Mutex<Vec<Arc<Counts>>> = Mutex::new(Vec::new());

/// Calls `visit` for each entry with its index, its name, and the numbers carried, lost and
/// rejected. For ordinary threads.
pub(crate) fn each(mut visit: impl FnMut(usize, &str, [u64; 3])) {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    for (place, counts) in all.iter().enumerate() {
        let values = [&counts.carried, &counts.lost, &counts.refused];
        visit(place, &counts.name, values.map(|value| value.load(Ordering::Relaxed)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_name_keeps_its_slot() {
        let positions = || {
            let mut found = Vec::new();
            each(|place, name, values| {
                if name.starts_with("/traffic-test") {
                    found.push((place, name.to_owned(), values));
                }
            });
            found
        };
        let (first, second) = (Traffic::new("/traffic-test"), Traffic::new("/traffic-test-2"));
        first.set(7, 1, 0);
        second.set(5, 0, 2);
        drop(first);
        let before = positions();
        assert_eq!(before.iter().map(|(.., values)| *values).collect::<Vec<_>>(), [[7, 1, 0], [5, 0, 2]]);
        let again = Traffic::new("/traffic-test");
        again.set(1, 0, 0);
        let other = Traffic::new("/traffic-test-2");
        let after = positions();
        assert_eq!((after.len(), after[0].0, after[0].2), (3, before[0].0, [1, 0, 0]), "two have one name");
        drop((again, other, second));
        // Such as the names of transports that attach and detach without end.
        (0..2 * MAX_COUNTS).for_each(|number| drop(Traffic::new(&format!("/traffic-test-flood-{number}"))));
        let mut count = 0;
        each(|_, _, _| count += 1);
        assert_eq!(count, MAX_COUNTS);
    }
}
