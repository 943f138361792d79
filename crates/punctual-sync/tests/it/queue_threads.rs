//! Wakes of the receiver, and many concurrent senders.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration as StdDuration;

use crate::pcp_support::{await_asleep, thread_id, watchdog};
use punctual_sync::{Duration, TimedQueue, futex, now};

/// Returns the number of futex calls that the calling thread makes in `f`.
fn calls(f: impl FnOnce()) -> u64 {
    let before = futex::calls();
    f();
    futex::calls() - before
}

/// futex-queue 0.1: spurious wakes of the receiver.
///
/// Here the receiver sleeps through items that do not concern it, and enters the kernel once.
#[test]
fn regression_sender_wakes_only_if_needed() {
    let _alive = watchdog(StdDuration::from_secs(120));
    let queue = TimedQueue::<u32, 8>::new();
    let hour = |n: u64| now() + Duration::from_secs(3600 * n);
    let (first, second) = (AtomicU32::new(0), AtomicU32::new(0));
    queue.send_at(10, hour(2)).unwrap();
    thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut receiver = queue.receiver().unwrap();
            first.store(thread_id(), Ordering::Release);
            let before = futex::calls();
            let value = receiver.recv().value;
            (value, futex::calls() - before, receiver.len())
        });
        await_asleep(&first);
        assert_eq!(
            calls(|| queue.send_at(20, hour(3)).unwrap()),
            0,
            "later than the receiver's wake-up time"
        );
        assert_eq!(calls(|| queue.send_at(21, hour(4)).unwrap()), 0, "also with an item in the inbox");
        assert_eq!(calls(|| queue.send(1).unwrap()), 1, "ready now");
        assert_eq!(receiver.join().unwrap(), (1, 1, 3), "one sleep");

        let receiver = scope.spawn(|| {
            let mut receiver = queue.receiver().unwrap();
            second.store(thread_id(), Ordering::Release);
            receiver.recv().value
        });
        await_asleep(&second);
        assert_eq!(calls(|| queue.send_at(2, now()).unwrap()), 1, "earlier than the receiver's wake-up time");
        assert_eq!(receiver.join().unwrap(), 2);
    });
    assert_eq!(calls(|| queue.send(3).unwrap()), 0, "no receiver sleeps");
}

/// A receiver that has been woken and has not run yet is awake: no sender wakes it again.
#[test]
fn burst_wakes_at_most_once_per_sleep() {
    let _alive = watchdog(StdDuration::from_secs(120));
    let queue = TimedQueue::<u32, 8>::new();
    let sleeper = AtomicU32::new(0);
    thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut receiver = queue.receiver().unwrap();
            sleeper.store(thread_id(), Ordering::Release);
            let before = futex::calls();
            ([(); 8].map(|()| receiver.recv().value), futex::calls() - before)
        });
        await_asleep(&sleeper);
        let woken = calls(|| (0..8).for_each(|i| queue.send(i).unwrap()));
        let (received, slept) = receiver.join().unwrap();
        assert_eq!(received, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!((1..=slept).contains(&woken), "woken {woken} times, went to sleep {slept} times");
    });
}

/// Returns the number of times the calling thread has given up the CPU to wait.
fn waits() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` is valid for writes, and a successful call has written all of it.
    let usage = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    usage.ru_nvcsw
}

/// futex-queue 0.1: a non-PI mutex on the hot path, which senders wait for. Here no sender ever
/// waits, for the others or for the receiver, and each one's items stay in order.
#[test]
fn regression_senders_do_not_wait() {
    const SENDERS: u32 = 3;
    const ITEMS: u32 = 20_000;
    let _alive = watchdog(StdDuration::from_secs(120));
    let queue = TimedQueue::<(u32, u32), 16>::new();
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let queue = &queue;
            scope.spawn(move || {
                let mut waited = 0;
                for item in 0..ITEMS {
                    loop {
                        let before = waits();
                        let sent = match item % 3 {
                            0 => queue.send_at((sender, item), now()),
                            _ => queue.send((sender, item)),
                        };
                        waited += waits() - before;
                        if sent.is_ok() {
                            break;
                        }
                        thread::yield_now();
                    }
                }
                // A page fault may wait for another; with a mutex it would be thousands.
                assert!(waited < 20, "{waited} sends waited");
            });
        }
        let mut receiver = queue.receiver().unwrap();
        let mut count = 0;
        let mut immediate = [None; SENDERS as usize];
        let mut scheduled = [None; SENDERS as usize];
        while count < SENDERS * ITEMS {
            let item = receiver.recv();
            let (sender, number) = item.value;
            let last = match item.due {
                Some(_) => &mut scheduled[sender as usize],
                None => &mut immediate[sender as usize],
            };
            assert!(last.is_none_or(|last| last < number), "{last:?} before {number}");
            *last = Some(number);
            count += 1;
        }
        assert!(receiver.is_empty());
    });
}

/// The receiver sleeps repeatedly, and no item is lost or too early.
#[test]
fn sleeping_receiver_loses_no_item() {
    const ITEMS: u64 = 2_000;
    let _alive = watchdog(StdDuration::from_secs(120));
    let queue = TimedQueue::<u64, 64>::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            for item in 0..ITEMS {
                let nap = Duration::from_nanos(item * 7919 % 30_000);
                while queue.send_at(item, now() + nap).is_err() {
                    thread::yield_now();
                }
            }
        });
        let mut receiver = queue.receiver().unwrap();
        let mut seen = vec![false; ITEMS as usize];
        for _ in 0..ITEMS {
            let item = receiver.recv();
            assert!(now() >= item.due.unwrap());
            assert!(!std::mem::replace(&mut seen[item.value as usize], true));
        }
        assert!(seen.into_iter().all(|seen| seen));
    });
}
