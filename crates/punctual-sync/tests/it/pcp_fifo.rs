//! The order in which `SCHED_FIFO` threads on one CPU run: figure 2.1 of J. K. Balciunas
//! (University of Twente, 2021), and bounded priority inversion.
//!
//! The tests check only the order of events, never a time. Every thread is bounded by count, by
//! `RLIMIT_RTTIME` and by a watchdog. Without the privilege for `SCHED_FIFO` a line reports that
//! nothing was checked.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::pcp_support::{Events, Release, become_fifo, real_time, running_priority};
use punctual_sync::{Member, PcpGroup, PcpMutex, TimedQueue};

/// Kernel priorities, lowest first, which are also the members' declared priorities.
const LOW: u8 = 11;
const MEDIUM: u8 = 12;
const HIGH: u8 = 13;

/// τ3 holds s1, which τ2 never locks; τ2 locks s2, which is free. The ceiling of s1 makes it wait,
/// and τ3 run in its place until τ1 arrives, which waits for s1.
#[test]
fn figure_2_1_in_order() {
    let Some(rt) = real_time("figure_2_1_in_order") else { return };
    let cpu = rt.cpu;
    let group = PcpGroup::new();
    let (s1, s2) = (PcpMutex::new(&group, HIGH, ()), PcpMutex::new(&group, HIGH, ()));
    let (t1, t2, t3) = (Release::default(), Release::default(), Release::default());
    let events = Events::new();
    let member = |priority: u8, release: &Release| -> Member<'_> {
        become_fifo(Some(cpu), priority.into()).expect("allowed before");
        let member = group.join(priority).unwrap();
        release.wait();
        member
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let member = member(HIGH, &t1);
            events.add("1 wants s1");
            s1.lock(&member, |()| events.add("1 in s1")).unwrap();
            events.add("1 ends");
        });
        scope.spawn(|| {
            let member = member(MEDIUM, &t2);
            events.add("2 wants s2");
            s2.lock(&member, |()| events.add("2 in s2")).unwrap();
            events.add("2 ends");
        });
        scope.spawn(|| {
            let member = member(LOW, &t3);
            let in_s1 = |(): &mut ()| {
                events.add("3 in s1");
                t2.release();
                assert_eq!(running_priority(), MEDIUM.into(), "inherited from 2");
                events.add("3 goes on for 2");
                t1.release();
                assert_eq!(running_priority(), HIGH.into(), "inherited from 1");
                events.add("3 goes on for 1");
            };
            s1.lock(&member, in_s1).unwrap();
            assert_eq!(running_priority(), LOW.into(), "priority restored");
            events.add("3 ends");
        });
        [&t1, &t2, &t3].into_iter().for_each(Release::await_asleep);
        t3.release();
    });
    let expected = [
        "3 in s1",
        "2 wants s2",
        "3 goes on for 2",
        "1 wants s1",
        "3 goes on for 1",
        "1 in s1",
        "1 ends",
        "2 in s2",
        "2 ends",
        "3 ends",
    ];
    assert_eq!(events.list(), expected);
}

/// A low thread holds a lock that a high one needs, and a medium one becomes ready. Returns the
/// order of events under a lock, given as a function that runs a critical section for a thread of
/// this priority.
fn inversion(
    cpu: usize,
    lock: impl Fn(Option<&Member<'_>>, &dyn Fn()) + Sync,
    group: &PcpGroup,
) -> Vec<&'static str> {
    let (low, medium, high) = (Release::default(), Release::default(), Release::default());
    let events = Events::new();
    let become_ready = |priority: u8, release: &Release| {
        become_fifo(Some(cpu), priority.into()).expect("allowed before");
        release.wait();
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let member = group.join(HIGH).unwrap();
            become_ready(HIGH, &high);
            events.add("high wants");
            lock(Some(&member), &|| events.add("high has"));
        });
        scope.spawn(|| {
            become_ready(MEDIUM, &medium);
            events.add("medium begins");
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
            events.add("medium ends");
        });
        scope.spawn(|| {
            let member = group.join(LOW).unwrap();
            become_ready(LOW, &low);
            let section = || {
                events.add("low has");
                high.release();
                medium.release();
                events.add("low leaves");
            };
            lock(Some(&member), &section);
        });
        [&low, &medium, &high].into_iter().for_each(Release::await_asleep);
        low.release();
    });
    events.list()
}

#[test]
fn priority_inversion_is_bounded() {
    let Some(rt) = real_time("priority_inversion_is_bounded") else { return };
    let cpu = rt.cpu;
    let group = PcpGroup::new();

    let ordinary = Mutex::new(());
    let unbounded = inversion(cpu, |_, section| drop((ordinary.lock().unwrap(), section())), &group);
    let expected = ["low has", "high wants", "medium begins", "medium ends", "low leaves", "high has"];
    assert_eq!(unbounded, expected, "with an ordinary mutex the high thread waits for the medium one");

    let ceiling = PcpMutex::new(&group, HIGH, ());
    let lock = |member: Option<&Member<'_>>, section: &dyn Fn()| {
        ceiling.lock(member.expect("both lockers are members"), |()| section()).unwrap();
    };
    let bounded = inversion(cpu, lock, &group);
    let expected = ["low has", "high wants", "low leaves", "high has", "medium begins", "medium ends"];
    assert_eq!(bounded, expected, "the high thread waits only for the low one's critical section");
}

/// The high thread waits for the medium one in one group, which waits for the low one in another:
/// the low one inherits from both.
#[test]
fn inheritance_is_transitive() {
    let Some(rt) = real_time("inheritance_is_transitive") else { return };
    let (one, other) = (PcpGroup::new(), PcpGroup::new());
    let (a, b) = (PcpMutex::new(&one, HIGH, ()), PcpMutex::new(&other, HIGH, ()));
    let (low, medium, high) = (Release::default(), Release::default(), Release::default());
    let become_ready = |priority: u8, release: &Release| {
        become_fifo(Some(rt.cpu), priority.into()).expect("allowed before");
        release.wait();
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let of_other = other.join(HIGH).unwrap();
            become_ready(HIGH, &high);
            b.lock(&of_other, |()| ()).unwrap();
        });
        scope.spawn(|| {
            let (of_one, of_other) = (one.join(MEDIUM).unwrap(), other.join(MEDIUM).unwrap());
            become_ready(MEDIUM, &medium);
            b.lock(&of_other, |()| a.lock(&of_one, |()| ())).unwrap().unwrap();
        });
        scope.spawn(|| {
            let of_one = one.join(LOW).unwrap();
            become_ready(LOW, &low);
            let section = |(): &mut ()| {
                medium.release();
                assert_eq!(running_priority(), MEDIUM.into());
                high.release();
                assert_eq!(running_priority(), HIGH.into(), "through the medium thread");
            };
            a.lock(&of_one, section).unwrap();
            assert_eq!(running_priority(), LOW.into());
        });
        [&low, &medium, &high].into_iter().for_each(Release::await_asleep);
        low.release();
    });
}

/// pcp-mutex 0.2: a high thread spins for a preempted low one, so that on one CPU neither
/// continues.
///
/// The low thread is interrupted at a different point of its lock and unlock each time, by a thread
/// that the clock wakes.
#[test]
fn regression_no_livelock_on_one_cpu() {
    let Some(rt) = real_time("regression_no_livelock_on_one_cpu") else { return };
    let cpu = rt.cpu;
    let group = PcpGroup::new();
    let (shared, other) = (PcpMutex::new(&group, HIGH, 0_u64), PcpMutex::new(&group, HIGH, 0_u64));
    let queue = TimedQueue::<(), 1>::new();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            become_fifo(Some(cpu), HIGH.into()).expect("allowed before");
            let member = group.join(HIGH).unwrap();
            let mut clock = queue.receiver().unwrap();
            for round in 0..2_000_u64 {
                let nap = punctual_sync::Duration::from_nanos(20_000 + round * 7 % 1_000);
                assert_eq!(clock.recv_deadline(punctual_sync::now() + nap), None);
                let (outer, inner) = if round % 2 == 0 { (&shared, &other) } else { (&other, &shared) };
                outer
                    .lock(&member, |x| inner.lock(&member, |y| (*x, *y) = (*x + 1, *y + 1)).unwrap())
                    .unwrap();
            }
            done.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            become_fifo(Some(cpu), LOW.into()).expect("allowed before");
            let member = group.join(LOW).unwrap();
            let end = Instant::now() + Duration::from_secs(1);
            while !done.load(Ordering::Acquire) && Instant::now() < end {
                shared
                    .lock(&member, |x| other.lock(&member, |y| (*x, *y) = (*x + 1, *y + 1)).unwrap())
                    .unwrap();
            }
        });
    });
    let member = group.join(HIGH).unwrap();
    let sums = (shared.lock(&member, |x| *x).unwrap(), other.lock(&member, |y| *y).unwrap());
    assert_eq!(sums.0, sums.1);
    assert!(done.into_inner() && sums.0 >= 2_000);
}
