//! Table 5.1 of J. K. Balciunas, *Real-time interrupt-driven concurrency for modern application
//! processors*, University of Twente, 2021: bounded inversion and deadlock prevention with no
//! system call in the best case, one or two in the worst. Calls are counted where the crate enters
//! the kernel.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::pcp_support::{await_asleep, thread_id, watchdog};
use punctual_sync::{PcpGroup, PcpMutex, futex};

/// Returns the number of futex calls that the calling thread makes in `f`.
fn calls<R>(f: impl FnOnce() -> R) -> u64 {
    let before = futex::calls();
    f();
    futex::calls() - before
}

#[test]
fn best_case_no_call() {
    let group = PcpGroup::new();
    let (a, b) = (PcpMutex::new(&group, 3, 0), PcpMutex::new(&group, 5, 0));
    let member = group.join(3).unwrap();
    assert_eq!(calls(|| a.lock(&member, |x| *x += 1).unwrap()), 0);
    assert_eq!(calls(|| a.lock(&member, |_| b.lock(&member, |x| *x += 1).unwrap()).unwrap()), 0);
}

/// A thread whose priority is above all ceilings held by others is not blocked, and the kernel is
/// not involved.
#[test]
fn lock_above_other_ceilings_needs_no_system_call() {
    let _alive = watchdog(Duration::from_secs(120));
    let group = PcpGroup::new();
    let (low, high) = (PcpMutex::new(&group, 1, 0), PcpMutex::new(&group, 2, 0));
    let member = group.join(1).unwrap();
    let all = calls(|| {
        low.lock(&member, |_| {
            thread::scope(|scope| {
                let above = scope.spawn(|| {
                    let member = group.join(2).unwrap();
                    calls(|| high.lock(&member, |x| *x += 1).unwrap())
                });
                assert_eq!(above.join().unwrap(), 0);
            });
        })
        .unwrap();
    });
    assert_eq!(all, 0);
}

#[test]
fn worst_case_one_call_to_wait_and_one_to_hand_over() {
    let _alive = watchdog(Duration::from_secs(120));
    let group = PcpGroup::new();
    let mutex = PcpMutex::new(&group, 2, 0);
    let (waiter, held) = (AtomicU32::new(0), AtomicBool::new(false));
    let (holding, waiting) = thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let member = group.join(2).unwrap();
            while !held.load(Ordering::Acquire) {
                thread::yield_now();
            }
            waiter.store(thread_id(), Ordering::Release);
            calls(|| mutex.lock(&member, |x| *x += 1).unwrap())
        });
        let member = group.join(1).unwrap();
        let holding = calls(|| {
            let section = |x: &mut u32| {
                held.store(true, Ordering::Release);
                await_asleep(&waiter);
                *x += 1;
            };
            mutex.lock(&member, section).unwrap();
        });
        (holding, waiting.join().unwrap())
    });
    assert_eq!((holding, waiting), (1, 1), "unlock; lock");
}

/// A thread that both waits and is waited for: the two calls of the table's worst case.
#[test]
fn worst_case_two_calls_for_one_lock_and_unlock() {
    let _alive = watchdog(Duration::from_secs(120));
    let group = PcpGroup::new();
    let mutex = PcpMutex::new(&group, 2, 0);
    let (held, first, second) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
    let counted = thread::scope(|scope| {
        let middle = scope.spawn(|| {
            let member = group.join(2).unwrap();
            while !held.load(Ordering::Acquire) {
                thread::yield_now();
            }
            first.store(thread_id(), Ordering::Release);
            calls(|| {
                let section = |x: &mut u32| {
                    second.store(1, Ordering::Release);
                    while second.load(Ordering::Acquire) == 1 {
                        thread::yield_now();
                    }
                    await_asleep(&second);
                    *x += 1;
                };
                mutex.lock(&member, section).unwrap();
            })
        });
        scope.spawn(|| {
            let member = group.join(1).unwrap();
            while second.load(Ordering::Acquire) != 1 {
                thread::yield_now();
            }
            second.store(thread_id(), Ordering::Release);
            mutex.lock(&member, |x| *x += 1).unwrap();
        });
        let member = group.join(1).unwrap();
        let section = |x: &mut u32| {
            held.store(true, Ordering::Release);
            await_asleep(&first);
            *x += 1;
        };
        mutex.lock(&member, section).unwrap();
        drop(member);
        middle.join().unwrap()
    });
    assert_eq!(counted, 2);
}

/// Figure 2.2: two threads repeatedly lock two mutexes in opposite orders. With any other lock they
/// deadlock.
#[test]
fn deadlock_prevention_runs_to_completion() {
    const ROUNDS: u32 = 20_000;
    let _alive = watchdog(Duration::from_secs(120));
    let group = PcpGroup::new();
    let (a, b) = (PcpMutex::new(&group, 2, 0), PcpMutex::new(&group, 2, 0));
    thread::scope(|scope| {
        for (priority, outer, inner) in [(1, &a, &b), (2, &b, &a)] {
            let group = &group;
            scope.spawn(move || {
                let member = group.join(priority).unwrap();
                for _ in 0..ROUNDS {
                    let nested = outer.lock(&member, |x| {
                        *x += 1;
                        inner.lock(&member, |y| *y += 1)
                    });
                    assert_eq!(nested, Ok(Ok(())));
                }
            });
        }
    });
    let member = group.join(2).unwrap();
    assert_eq!(a.lock(&member, |x| *x), Ok(2 * ROUNDS));
    assert_eq!(b.lock(&member, |x| *x), Ok(2 * ROUNDS));
}

/// pcp-mutex 0.2: unlock busy-waits through another thread's critical section.
#[test]
fn regression_unlock_does_not_wait_for_higher_holder() {
    let _alive = watchdog(Duration::from_secs(120));
    let group = PcpGroup::new();
    let (low, high) = (PcpMutex::new(&group, 1, ()), PcpMutex::new(&group, 2, ()));
    let (inside, unlocked) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let member = group.join(1).unwrap();
        low.lock(&member, |()| {
            scope.spawn(|| {
                let member = group.join(2).unwrap();
                let section = |(): &mut ()| {
                    inside.store(true, Ordering::Release);
                    // Leaves only after the lower thread has released.
                    while !unlocked.load(Ordering::Acquire) {
                        thread::yield_now();
                    }
                };
                high.lock(&member, section).unwrap();
            });
            while !inside.load(Ordering::Acquire) {
                thread::yield_now();
            }
        })
        .unwrap();
        unlocked.store(true, Ordering::Release);
    });
}

/// Many threads nest at random; every value is counted without an atomic.
#[test]
fn loses_no_update_among_many_threads() {
    const ROUNDS: u32 = 5_000;
    let _alive = watchdog(Duration::from_secs(120));
    let group = PcpGroup::new();
    let mutexes = [3_u8, 4, 4, 5].map(|ceiling| PcpMutex::new(&group, ceiling, 0_u32));
    let total: u32 = thread::scope(|scope| {
        let threads: Vec<_> = [1_u8, 2, 3, 3]
            .into_iter()
            .zip(1_u32..)
            .map(|(priority, mut random)| {
                let (group, mutexes) = (&group, &mutexes);
                scope.spawn(move || {
                    let member = group.join(priority).unwrap();
                    let mut done = 0;
                    for _ in 0..ROUNDS {
                        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let (outer, inner) = (random as usize >> 8 & 3, random as usize >> 16 & 3);
                        let nested = mutexes[outer].lock(&member, |x| {
                            *x += 1;
                            if random >> 24 & 15 == 0 {
                                thread::yield_now();
                            }
                            mutexes[inner].lock(&member, |y| *y += 1).is_ok()
                        });
                        done += 1 + u32::from(nested.unwrap());
                    }
                    done
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(mutexes.map(|mut mutex| *mutex.get_mut()).iter().sum::<u32>(), total);
    assert!(format!("{group:?}").contains("free"));
}
