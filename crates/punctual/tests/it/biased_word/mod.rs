//! Models of the partition's word that its CPU changes without locked instructions
//! (`process/port/linux/word`), and of the spare slot of a task, explored exhaustively.
//!
//! Threads change one word, each its own part of it. A step is one instruction of a thread, or an
//! action of the hardware or the kernel that is possible at any time: drain a store buffer, preempt
//! a thread, switch to another one from any CPU, or execute a barrier. All orders of all steps are
//! explored. In every state, a change has to be based on the word after the previous change, and so
//! has the test that permits it; a thread that looks for work after its change has to see all
//! changes before it; and at the end, the word has to contain all changes. Each of the conditions
//! that the proof in `process/port/linux/word` uses is then dropped, and the model has to find a
//! violation.

mod dropped;
mod explore;
mod hardware;
mod machine;
mod spare;

use std::fmt::Debug;

use dropped::Dropped;
use explore::{Explored, Verdict, explore};
use machine::{Machine, Role};
use spare::Spare;

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
    for load in LOADS {
        let (explored, seen) = match explore(Machine::new(None, load)) {
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
        let models = LOADS.iter().map(|load| Machine::new(Some(dropped), load));
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
