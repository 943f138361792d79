//! The priority ceiling protocol under every interleaving: a mutex has one holder at a time, every
//! waiter is woken, and there is no deadlock.
//!
//! loom panics if two threads access a mutex's value at once, or in turn without the second seeing
//! the first one's writes. The kernel's model panics if every thread sleeps.
//!
//! Bound: four preemptions; the nightly run explores three, and the merge gate two. A second holder
//! needs one, between a thread's test of the ceilings and its change of the word. A lost wake needs
//! one of the waiting thread, between its registration and its sleep, and one of the holder,
//! between the grant and the wake. The others let each thread lock or unlock a second, nested mutex
//! in between.

use punctual_sync::futex::model::{Arena, check, start};
use punctual_sync::{Member, PcpGroup, PcpLockError, PcpMutex};

type Mutex = PcpMutex<'static, u32>;

fn add(mutex: &Mutex, member: &Member<'static>) {
    mutex.lock(member, |value| *value += 1).unwrap();
}

/// Locks both, one inside the other.
fn nest(outer: &Mutex, inner: &Mutex, member: &Member<'static>) {
    let nested = outer.lock(member, |value| {
        *value += 1;
        inner.lock(member, |value| *value += 1)
    });
    assert_eq!(nested, Ok(Ok(())));
}

fn group(arena: &Arena) -> (&'static PcpGroup, impl Fn(u8) -> &'static Mutex) {
    let group = arena.put(PcpGroup::new());
    (group, move |ceiling| arena.put(PcpMutex::new(group, ceiling, 0)))
}

/// Bound: five preemptions; the nightly run explores three, and the merge gate two. Two suffice for
/// a lost wake, as above; the model has one mutex and is small enough for more.
#[test]
fn two_threads_exclude_each_other() {
    check(5, |arena| {
        let (group, mutex) = group(arena);
        let shared = mutex(2);
        let low = start(2, || {
            let member = group.join(1).unwrap();
            add(shared, &member);
        });
        let member = group.join(2).unwrap();
        add(shared, &member);
        low.join();
        assert_eq!(shared.lock(&member, |value| *value), Ok(2));
    });
}

/// Bound: two preemptions. One stops the holder between the grant and the wake, and one stops a
/// waiting thread between its registration and its sleep. The third thread arrives where another
/// waits or ends.
#[test]
fn three_threads_take_turns() {
    check(2, |arena| {
        let (group, mutex) = group(arena);
        let shared = mutex(3);
        let others = [1, 3].map(|priority| {
            start(priority as u32 + 1, move || {
                let member = group.join(priority).unwrap();
                add(shared, &member);
            })
        });
        let member = group.join(2).unwrap();
        add(shared, &member);
        others.into_iter().for_each(|other| other.join());
        assert_eq!(shared.lock(&member, |value| *value), Ok(3));
    });
}

#[test]
fn opposite_orders_end() {
    check(4, |arena| {
        let (group, mutex) = group(arena);
        let (a, b) = (mutex(2), mutex(2));
        let low = start(2, || {
            let member = group.join(1).unwrap();
            nest(a, b, &member);
        });
        let member = group.join(2).unwrap();
        nest(b, a, &member);
        low.join();
        assert_eq!(a.lock(&member, |value| *value), Ok(2));
        assert_eq!(b.lock(&member, |value| *value), Ok(2));
    });
}

/// The higher thread passes the lower one's ceiling, so both hold a mutex; then the lower one has
/// to wait for it.
#[test]
fn nested_lock_waits_for_higher_holder() {
    check(4, |arena| {
        let (group, mutex) = group(arena);
        let (low, high) = (mutex(1), mutex(2));
        let lower = start(2, || {
            let member = group.join(1).unwrap();
            nest(low, high, &member);
        });
        let member = group.join(2).unwrap();
        add(high, &member);
        lower.join();
        assert_eq!(high.lock(&member, |value| *value), Ok(2));
    });
}

/// A thread that releases the inner mutex admits the one whose priority is above the outer one's
/// ceiling.
#[test]
fn inner_unlock_admits_waiter() {
    check(4, |arena| {
        let (group, mutex) = group(arena);
        let (outer, inner) = (mutex(1), mutex(2));
        let low = start(2, || {
            let member = group.join(1).unwrap();
            nest(outer, inner, &member);
        });
        let member = group.join(2).unwrap();
        add(inner, &member);
        let above = outer.lock(&member, |_| ());
        assert_eq!(above, Err(PcpLockError::AboveCeiling { priority: 2, ceiling: 1 }));
        low.join();
        assert_eq!(inner.lock(&member, |value| *value), Ok(2));
    });
}

/// A mutex of a low ceiling inside one of a high ceiling does not lower the thread's ceiling.
#[test]
fn nested_lower_mutex_keeps_ceiling() {
    check(4, |arena| {
        let (group, mutex) = group(arena);
        let (low, high) = (mutex(1), mutex(2));
        let lower = start(2, || {
            let member = group.join(1).unwrap();
            let nested = high.lock(&member, |value| {
                low.lock(&member, |value| *value += 1).unwrap();
                *value += 1;
            });
            assert_eq!(nested, Ok(()));
        });
        let member = group.join(2).unwrap();
        add(high, &member);
        lower.join();
        assert_eq!(high.lock(&member, |value| *value), Ok(2));
    });
}

/// Two groups are independent of each other, so their locks can form a cycle: the kernel detects
/// it, and one thread gets an error instead of waiting. The mutex it gave up stays usable.
///
/// Bound: two preemptions. The cycle needs one, after the first thread has locked its outer mutex.
/// One more stops the second thread before it waits.
#[test]
fn deadlock_across_two_groups_is_an_error() {
    check(2, |arena| {
        let ((g, in_g), (h, in_h)) = (group(arena), group(arena));
        let (a, b) = (in_g(2), in_h(2));
        let crossed = |priority: u8, first: &'static Mutex, second: &'static Mutex, first_is_g: bool| {
            let (of_g, of_h) = (g.join(priority).unwrap(), h.join(priority).unwrap());
            let (one, two) = if first_is_g { (&of_g, &of_h) } else { (&of_h, &of_g) };
            first.lock(one, |value| {
                let inner = second.lock(two, |value| *value += 1);
                assert!(matches!(inner, Ok(()) | Err(PcpLockError::Deadlock)));
                *value += 1;
            })
        };
        let low = start(2, move || crossed(1, a, b, true).unwrap());
        crossed(2, b, a, false).unwrap();
        low.join();
        let member = g.join(2).unwrap();
        assert!(a.lock(&member, |value| *value).unwrap() >= 1);
    });
}
