//! Operations of threads with `punctual-sync`, POSIX and the predecessor's crate; each function
//! returns the ticks of this many operations.

use std::hint::black_box;
use std::sync::Barrier;

use punctual::sync::TimedQueue;
use punctual::sync::shared::Ring;

use super::timed;
use crate::contend::{self, Lock};
use crate::peers::Semaphore;
use crate::{clock, rt};

pub(super) fn pcp_mutex(operations: u32) -> u64 {
    lock(&contend::pcp(), operations)
}

pub(super) fn posix_mutex(operations: u32) -> u64 {
    lock(&contend::posix(), operations)
}

pub(super) fn predecessors_mutex(operations: u32) -> u64 {
    lock(&contend::predecessor(), operations)
}

fn lock(lock: &impl Lock, operations: u32) -> u64 {
    let member = lock.join(contend::CEILING - 1);
    let mut count = 0_u32;
    timed(operations, |_| black_box(lock).with(&member, || count = black_box(count + 1)))
}

/// Sends and receives an item on one thread.
pub(super) fn ring(operations: u32) -> u64 {
    let ring = Ring::<u64, 8>::new();
    let (mut writer, mut reader) = ring.split().expect("nobody else has its ends");
    timed(operations, |item| {
        writer.push(black_box(u64::from(item))).expect("there is room");
        black_box(reader.pop());
    })
}

pub(super) fn timed_queue(operations: u32) -> u64 {
    let queue = TimedQueue::<u64, 8>::new();
    let mut receiver = queue.receiver().expect("nobody else receives");
    timed(operations, |item| {
        queue.send(black_box(u64::from(item))).expect("there is room");
        black_box(receiver.recv().value);
    })
}

/// From one CPU to the other and back; returns the time of one way.
pub(super) fn ring_ping_pong(cpus: [usize; 2], operations: u32) -> u64 {
    let (there, back) = (Ring::<u64, 8>::new(), Ring::<u64, 8>::new());
    let (mut out, mut far) = there.split().expect("nobody else has its ends");
    let (mut answer, mut home) = back.split().expect("nobody else has its ends");
    ping_pong(
        cpus,
        operations,
        move |item| {
            out.push(item).expect("one item at a time");
            until(|| home.pop());
        },
        move || {
            let item = until(|| far.pop());
            answer.push(item).expect("one item at a time");
        },
    )
}

/// Polls until a value is available.
pub(super) fn until<T>(mut poll: impl FnMut() -> Option<T>) -> T {
    loop {
        match poll() {
            Some(value) => return value,
            None => std::hint::spin_loop(),
        }
    }
}

/// State of one thread, on its own cache lines: two, since processors fetch lines in pairs.
#[repr(align(128))]
struct Apart<T>(T);

/// Runs two ordinary, spinning threads; returns half of the time of this many round trips.
pub(super) fn ping_pong(
    cpus: [usize; 2],
    operations: u32,
    here: impl FnMut(u64) + Send,
    away: impl FnMut() + Send,
) -> u64 {
    let ready = &Barrier::new(2);
    // Each thread writes to its ends of the channels, which are small: side by side, the channel
    // with the smallest ends would be measured as the slowest.
    let (mut here, mut away) = (Apart(here), Apart(away));
    std::thread::scope(|scope| {
        let away = rt::spawn(scope, move || {
            let Apart(away) = &mut away;
            // If refused, it runs on arbitrary CPUs.
            let _ = rt::pin(cpus[1]);
            ready.wait();
            (0..operations).for_each(|_| away());
        });
        let here = rt::spawn(scope, move || {
            let Apart(here) = &mut here;
            let _ = rt::pin(cpus[0]);
            ready.wait();
            let from = clock::now();
            (0..operations).for_each(|operation| here(u64::from(operation)));
            (clock::now() - from) / 2
        });
        rt::join(away);
        rt::join(here)
    })
}

/// From a thread to a higher one on the same CPU and back, by semaphores; returns the time of one
/// way.
pub(super) fn hand_over(operations: u32) -> u64 {
    let (there, back) = (Semaphore::new(0), Semaphore::new(0));
    let ready = Barrier::new(2);
    std::thread::scope(|scope| {
        // Starts on this CPU and above this thread's priority.
        let answers = rt::spawn(scope, || {
            // If refused, the row reports that there is no SCHED_FIFO.
            let _ = rt::set_fifo(rt::PRIORITY + 1);
            ready.wait();
            for _ in 0..operations {
                there.acquire();
                back.signal();
            }
        });
        ready.wait();
        let ticks = timed(operations, |_| {
            there.signal();
            back.acquire();
        });
        rt::join(answers);
        ticks / 2
    })
}
