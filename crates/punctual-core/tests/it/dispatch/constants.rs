//! Calls at constant levels, which one instruction starts and ends: each of its masks is necessary.

use punctual_core::Word;

use super::rig::{NOTHING, Rig, rig};

/// Levels 1 and 2 with a worker each, and the idle thread, which may call both.
fn two_levels() -> &'static Rig {
    rig(&[0, 1, 2], &[(1, 1, NOTHING), (2, 2, NOTHING)])
}

#[test]
fn does_not_start_while_another_thread_occupies_the_level() {
    let rig = two_levels();
    let (idle, worker) = (rig.worker(0), rig.worker(2));
    assert!(rig.call(worker, 2, || {
        assert!(!rig.call(idle, 2, || unreachable!("two threads would run one level")));
        assert!(!rig.call(idle, 1, || unreachable!("it is below the partition's level")));
    }));
    assert!(rig.call(idle, 2, || {}));
}

#[test]
fn serves_the_levels_that_became_ready_below_it() {
    let rig = two_levels();
    assert!(rig.call(rig.worker(0), 2, || rig.spawn_from_outside(1, 0)));
    assert_eq!(rig.ran(), [(1, 0, 0)]);
}

#[test]
fn does_not_overtake_a_job_in_the_inbox_of_a_polled_level() {
    let rig = two_levels();
    let idle = rig.worker(0);
    // SAFETY: there is one thread.
    unsafe { idle.set_polling() };
    rig.partition.begin_polling();
    assert!(rig.call(idle, 1, || {
        rig.spawn_from_outside(2, 0);
        assert!(!rig.call(idle, 2, || unreachable!("it would overtake the first job")));
    }));
}

#[test]
fn restores_the_record_of_the_thread() {
    let rig = two_levels();
    let idle = rig.worker(0);
    assert!(rig.call(idle, 1, || {
        assert!(rig.call(idle, 2, || assert_eq!((idle.level(), idle.running()), (2, 2))));
        assert_eq!((idle.level(), idle.running()), (1, 1));
    }));
    assert_eq!((idle.level(), idle.running(), rig.partition.snapshot()), (0, 0, Word::EMPTY));
}
