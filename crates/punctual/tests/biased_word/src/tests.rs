//! Loads, and the conditions that each exploration has to need.

use std::fmt::Debug;
use std::thread;

use crate::dropped::Dropped;
use crate::explore::{Explored, Verdict, explore};
use crate::machine::{Machine, Role};
use crate::spare::{self, Spare};

use Role::{Anywhere, Elsewhere, Home};

/// Explored loads: the more threads, the fewer changes of each. The first ones have the fewest
/// states, and most violations occur in them.
const LOADS: [&[(Role, u8)]; 4] = [
    &[(Anywhere, 2), (Home, 2)],
    &[(Anywhere, 2), (Elsewhere, 2)],
    &[(Home, 3), (Elsewhere, 1), (Elsewhere, 1)],
    &[(Home, 2), (Home, 1), (Elsewhere, 1)],
];

#[test]
fn no_change_is_lost() {
    let mut states = 0;
    let loads = [false, true].map(|is_flagged| LOADS.map(|load| (load, is_flagged)));
    let verdicts = thread::scope(|scope| {
        let run = |(load, is_flagged)| scope.spawn(move || explore(Machine::new(None, load, is_flagged)));
        let running = loads.map(|loads| loads.map(run));
        running.map(|running| running.map(|running| running.join().expect("an exploration does not panic")))
    });
    for ((load, _), verdict) in loads.into_iter().flatten().zip(verdicts.into_iter().flatten()) {
        let (explored, seen) = match verdict {
            Verdict::Sound { explored, seen } => (explored, seen),
            Verdict::Wrong { what, trace } => panic!("{load:?}: {what}\n{trace}"),
        };
        // The exploration covers the relevant cases.
        assert!(seen.stored, "{load:?}: nobody stores");
        assert!(seen.changed, "{load:?}: no thread changes the word by one plain instruction");
        assert!(seen.locked_elsewhere, "{load:?}: no other CPU changes the word");
        assert!(seen.aborted, "{load:?}: no sequence is aborted");
        assert!(seen.biased_again, "{load:?}: the word is never biased again");
        assert!(seen.barrier, "{load:?}: no thread executes a barrier");
        states += explored;
    }
    println!("{states} states");
    assert!(states > 200_000, "the model explored only {states} states");
}

#[test]
fn every_condition_is_needed() {
    for dropped in Dropped::ALL {
        let models =
            [false, true].map(|is_flagged| LOADS.map(|load| Machine::new(Some(dropped), load, is_flagged)));
        let models = models.into_iter().flatten();
        println!("{dropped:?}: {}", violation(models, dropped));
    }
}

/// Returns the first violation in one of the models, which lack a condition.
fn violation<S: Explored>(models: impl Iterator<Item = S>, dropped: impl Debug) -> String {
    let mut violations = models.filter_map(|model| match explore(model) {
        Verdict::Wrong { what, .. } => Some(what),
        Verdict::Sound { .. } => None,
    });
    violations.next().unwrap_or_else(|| panic!("without {dropped:?} nothing goes wrong"))
}

/// Explored loads of the two threads that occupy the level, in jobs and spawns, and the slots with
/// jobs at the beginning.
const SPARE_LOADS: [([(u8, u8); 2], u8); 4] =
    [([(2, 2), (1, 1)], 0b11), ([(2, 1), (2, 1)], 0b01), ([(3, 2), (0, 0)], 0b01), ([(1, 0), (2, 2)], 0b11)];

#[test]
fn no_slot_is_lost_or_handed_out_twice() {
    let mut all = spare::Seen::default();
    for (load, queued) in SPARE_LOADS {
        match explore(Spare::new(None, load, queued)) {
            Verdict::Sound { explored, seen } => {
                println!("{load:?}: {explored} states");
                all.add(&seen);
            }
            Verdict::Wrong { what, trace } => panic!("{load:?}: {what}\n{trace}"),
        }
    }
    assert!(all.is_complete(), "the model does not cover everything: {all:?}");
}

#[test]
fn every_condition_of_the_spare_slot_is_needed() {
    for dropped in spare::Dropped::ALL {
        let models = SPARE_LOADS.iter().map(|&(load, queued)| Spare::new(Some(dropped), load, queued));
        println!("{dropped:?}: {}", violation(models, dropped));
    }
}
