//! The checks of a lock, and the state after a panic. One thread at a time, so no test waits.

use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_sync::{JoinError, PcpGroup, PcpLockError, PcpMutex, futex};

#[test]
fn priority_above_ceiling_error_names_both() {
    let group = PcpGroup::new();
    let mutex = PcpMutex::new(&group, 3, ());
    let member = group.join(5).unwrap();
    let error = mutex.lock(&member, |()| unreachable!()).unwrap_err();
    assert_eq!(error, PcpLockError::AboveCeiling { priority: 5, ceiling: 3 });
    let text = error.to_string();
    assert!(text.contains("priority 5") && text.contains("ceiling 3"), "{text}");
}

#[test]
fn accepts_ceiling_and_all_lower_priorities() {
    let group = PcpGroup::new();
    for (priority, ceiling) in [(0, 0), (0, 255), (255, 255), (7, 7)] {
        let mutex = PcpMutex::new(&group, ceiling, 1);
        let member = group.join(priority).unwrap();
        assert_eq!(mutex.lock(&member, |value| *value), Ok(1));
    }
}

/// pcp-mutex 0.2: `a.lock(|x| b.lock(|_| a.lock(|y| …)))` yields two `&mut` to one value.
#[test]
fn regression_nested_lock_gives_no_second_reference() {
    let group = PcpGroup::new();
    let (a, b) = (PcpMutex::new(&group, 3, 0), PcpMutex::new(&group, 5, 0));
    let member = group.join(1).unwrap();
    let innermost = a.lock(&member, |x| {
        *x = 1;
        b.lock(&member, |_| a.lock(&member, |y| *y = 2))
    });
    assert_eq!(innermost, Ok(Ok(Err(PcpLockError::Reentrant))));
    assert_eq!(a.lock(&member, |x| *x), Ok(1), "unlocked again");
}

/// pcp-mutex 0.2: after a panic the next locker fails.
#[test]
fn regression_panic_unlocks() {
    let group = PcpGroup::new();
    let (a, b) = (PcpMutex::new(&group, 3, 0), PcpMutex::new(&group, 9, 0));
    let member = group.join(1).unwrap();
    let panics = catch_unwind(AssertUnwindSafe(|| {
        a.lock(&member, |x| {
            *x = 1;
            b.lock(&member, |_| panic!("in a critical section"))
        })
    }));
    assert!(panics.is_err());
    assert_eq!(a.lock(&member, |x| *x), Ok(1), "no poison: the value is as the panic left it");
    let other =
        std::thread::scope(|scope| scope.spawn(|| b.lock(&group.join(9).unwrap(), |x| *x)).join().unwrap());
    assert_eq!(other, Ok(0));
    drop(member);
    assert!(format!("{group:?}").contains("free"));
}

/// pcp-mutex 0.2: one process-wide futex serializes every group.
#[test]
fn regression_groups_do_not_meet() {
    let (one, other) = (PcpGroup::new(), PcpGroup::new());
    let (held, free) = (PcpMutex::new(&one, 9, ()), PcpMutex::new(&other, 2, 0));
    let member = one.join(1).unwrap();
    held.lock(&member, |()| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let member = other.join(1).unwrap();
                let before = futex::calls();
                free.lock(&member, |value| *value += 1).unwrap();
                assert_eq!(futex::calls() - before, 0, "a ceiling of another group does not count");
            });
        });
    })
    .unwrap();
}

#[test]
fn rejects_member_of_another_group() {
    let (one, other) = (PcpGroup::new(), PcpGroup::new());
    let mutex = PcpMutex::new(&one, 9, ());
    let member = other.join(1).unwrap();
    assert_eq!(mutex.lock(&member, |()| ()), Err(PcpLockError::ForeignMember));
}

#[test]
fn thread_rejoins_after_leaving() {
    let group = PcpGroup::new();
    let member = group.join(1).unwrap();
    assert_eq!(group.join(2).unwrap_err(), JoinError::AlreadyMember);
    drop(member);
    assert_eq!(group.join(2).unwrap().priority(), 2);
}

#[test]
fn leaked_member_blocks_no_other() {
    let group = PcpGroup::new();
    let mutex = PcpMutex::new(&group, 9, 0);
    std::mem::forget(group.join(1).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| mutex.lock(&group.join(9).unwrap(), |value| *value += 1).unwrap());
    });
}

#[test]
fn nested_locks_in_any_order_of_ceilings() {
    let group = PcpGroup::new();
    let mutexes = [4, 2, 9, 2, 4].map(|ceiling| PcpMutex::new(&group, ceiling, 0));
    let member = group.join(2).unwrap();
    let before = futex::calls();
    fn nest<'g>(mutexes: &[PcpMutex<'g, i32>], member: &punctual_sync::Member<'g>) {
        if let [first, rest @ ..] = mutexes {
            first
                .lock(member, |value| {
                    *value += 1;
                    nest(rest, member);
                })
                .unwrap();
        }
    }
    nest(&mutexes, &member);
    assert_eq!(futex::calls() - before, 0);
    drop(member);
    assert_eq!(mutexes.map(|mut mutex| *mutex.get_mut()), [1; 5]);
}

/// The child of a fork can lock mutexes that were free at that moment. It has one thread, so it
/// never needs the kernel.
#[test]
fn forked_child_locks_free_mutex() {
    let group = PcpGroup::new();
    let mutex = PcpMutex::new(&group, 9, 1);
    let member = group.join(1).unwrap();
    // SAFETY: the child only locks, which neither allocates nor takes any other lock, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let locked = mutex.lock(&member, |value| *value);
        // SAFETY: ends the process without running any other code of it.
        unsafe { libc::_exit(if locked == Ok(1) { 0 } else { 1 }) };
    }
    assert!(child > 0, "{}", std::io::Error::last_os_error());
    let status = punctual_process::child::wait_for_fork(child, punctual_process::child::TEST_LIMIT);
    assert_eq!(status.expect("the child ends"), 0);
}
