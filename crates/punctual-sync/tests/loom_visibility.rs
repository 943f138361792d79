//! Models of what a thread sees of what others did before: every way through `Flag` and `Barrier` that ends a wait orders
//! it after what ended it, also the ways on which nobody really waits.
#![cfg(loom)]

mod model;

use loom::thread::{spawn, yield_now};
use model::{Region, check, lend, looks};
use punctual_sync::shared::model as processes;
use punctual_sync::shared::{Barrier, BarrierError, Flag};

/// Enters after another thread that sets the flag, if `seen` says that it did.
fn flag(seen: fn(&Flag) -> bool) {
    check(2, move || {
        lend((Flag::new(), Region::new()), |(flag, region)| {
            let setting = spawn(|| {
                region.enter();
                flag.set();
            });
            // loom runs no other thread before a plain load.
            yield_now();
            if seen(flag) {
                region.enter();
            }
            setting.join().unwrap();
        });
    });
}

#[test]
fn a_set_flag_shows_what_came_before() {
    flag(Flag::is_set);
}

#[test]
fn a_flag_found_set_shows_what_came_before() {
    flag(|flag| flag.spin_while(looks(0)).is_ok());
}

#[test]
fn a_flag_that_nobody_sleeps_for_shows_what_came_before() {
    flag(|flag| {
        flag.wait();
        true
    });
}

/// Two arrive, and either may find that the phase is over at any of its looks.
#[test]
fn a_phase_found_over_shows_what_came_before() {
    for turns in [0, 2] {
        check(2, move || {
            lend((Barrier::new(2), Region::new()), |(barrier, region)| {
                let other = spawn(move || {
                    region.enter();
                    // Whether or not it gives up: it was there before.
                    let _ = barrier.spin_while(looks(0));
                });
                if barrier.spin_while(looks(turns)).is_ok() {
                    region.enter();
                }
                other.join().unwrap();
            });
        });
    }
}

/// Whoever repairs a barrier sees what those did who had arrived.
#[test]
fn repairing_shows_what_came_before_the_break() {
    check(2, || {
        lend((Barrier::new(3), Region::new()), |(barrier, region)| {
            // Later nobody is a newcomer, whose entry would be seen instead.
            for process in [1, 2, 3] {
                processes::begin(process);
                assert_eq!(barrier.spin_while(looks(0)), Err(BarrierError::TimedOut));
            }
            let other = spawn(|| {
                processes::begin(2);
                region.enter();
                let _ = barrier.spin_while(looks(1));
            });
            yield_now();
            if barrier.arrived() == 1 {
                processes::begin(1);
                processes::die();
                processes::begin(3);
                if barrier.repair() {
                    region.enter();
                }
            }
            other.join().unwrap();
        });
    });
}

/// Whoever passes a barrier that was repaired sees what was done before the repair.
#[test]
fn passing_a_repaired_barrier_shows_what_came_before_the_repair() {
    check(2, || {
        lend((Barrier::new(1), Region::new()), |(barrier, region)| {
            let broken = spawn(|| {
                processes::begin(1);
                let _ = barrier.spin_while(looks(0));
                processes::die();
            });
            broken.join().unwrap();
            let other = spawn(|| {
                processes::begin(2);
                // With a dead member about, it arrives only after the repair.
                if barrier.spin_while(looks(0)).is_ok() {
                    region.enter();
                }
            });
            processes::begin(3);
            region.enter();
            barrier.repair();
            other.join().unwrap();
        });
    });
}

#[test]
fn a_process_that_a_barrier_has_no_room_for_is_told() {
    // In a model there is room for three.
    check(0, || {
        lend(Barrier::new(9), |barrier| {
            for process in 1..=3 {
                processes::begin(process);
                assert_eq!(barrier.spin_while(looks(0)), Err(BarrierError::TimedOut));
            }
            processes::begin(4);
            assert_eq!((barrier.spin_while(looks(0)), barrier.arrived()), (Err(BarrierError::Full), 0));
        });
    });
}
