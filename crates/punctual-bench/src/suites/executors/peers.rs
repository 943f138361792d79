//! The same operations in other crates: linux-rtic, embassy-executor, tokio, crossbeam, rtrb,
//! heapless, futex-queue.

use std::future::poll_fn;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use super::plain::{ping_pong, until};
use super::{Group, Peer, timed};
use crate::clock;
use crate::rt::Lack;

/// The second CPU, for operations with two.
pub(super) static OTHER_CPU: AtomicUsize = AtomicUsize::new(0);

/// Returns the other crates' subjects for a group.
pub(super) fn others(group: Group) -> Vec<Peer> {
    const RTIC: (&str, &str) = ("linux-rtic", "linux-rtic 0.1.1");
    match group {
        Group::SameLevel => vec![
            Peer::new(RTIC, |cpu, operations| {
                rtic_app::measure(cpu, rtic_app::Operation::SameLevel, operations)
            }),
            Peer::threaded(("futex-queue", "futex-queue 0.1.1"), futex_queue),
        ],
        Group::HigherLevel => {
            vec![Peer::new(RTIC, |cpu, operations| {
                rtic_app::measure(cpu, rtic_app::Operation::HigherLevel, operations)
            })]
        }
        Group::Lock => vec![Peer::new(RTIC, |cpu, operations| {
            rtic_app::measure(cpu, rtic_app::Operation::Lock, operations)
        })],
        Group::Wake => vec![
            Peer::threaded(("embassy", "embassy-executor 0.10"), embassy),
            Peer::threaded(("tokio", "tokio 1, one thread"), tokio_wake),
        ],
        Group::Queue => vec![
            Peer::threaded(("rtrb", "rtrb 0.4"), rtrb_queue),
            Peer::threaded(("heapless", "heapless 0.9, spsc"), heapless_queue),
            Peer::threaded(("array-queue", "crossbeam ArrayQueue"), array_queue),
            Peer::threaded(("futex-queue", "futex-queue 0.1.1"), futex_queue),
        ],
        Group::Channel => {
            let cpus = |cpu| [cpu, OTHER_CPU.load(Ordering::Relaxed)];
            vec![
                Peer::new(("rtrb", "rtrb 0.4"), move |cpu, operations| {
                    Ok((rtrb_ping_pong(cpus(cpu), operations), Lack::new()))
                }),
                Peer::new(("crossbeam-channel", "crossbeam-channel 0.5"), move |cpu, operations| {
                    Ok((channel_ping_pong(cpus(cpu), operations), Lack::new()))
                }),
            ]
        }
    }
}

fn futex_queue(operations: u32) -> u64 {
    let (sender, mut receiver) = futex_queue::FutexQueue::<u64, 8>::new();
    timed(operations, |item| {
        assert!(sender.send(black_box(u64::from(item))).is_ok(), "one item at a time");
        black_box(receiver.recv().into_value());
    })
}

fn rtrb_queue(operations: u32) -> u64 {
    let (mut writer, mut reader) = rtrb::RingBuffer::<u64>::new(8);
    timed(operations, |item| {
        writer.push(black_box(u64::from(item))).expect("there is room");
        let _ = black_box(reader.pop());
    })
}

fn heapless_queue(operations: u32) -> u64 {
    let mut queue = heapless::spsc::Queue::<u64, 8>::new();
    let (mut writer, mut reader) = queue.split();
    timed(operations, |item| {
        writer.enqueue(black_box(u64::from(item))).expect("there is room");
        black_box(reader.dequeue());
    })
}

fn array_queue(operations: u32) -> u64 {
    let queue = crossbeam_queue::ArrayQueue::<u64>::new(8);
    timed(operations, |item| {
        queue.push(black_box(u64::from(item))).expect("there is room");
        black_box(queue.pop());
    })
}

fn rtrb_ping_pong(cpus: [usize; 2], operations: u32) -> u64 {
    let (mut out, mut far) = rtrb::RingBuffer::<u64>::new(8);
    let (mut answer, mut home) = rtrb::RingBuffer::<u64>::new(8);
    ping_pong(
        cpus,
        operations,
        move |item| {
            out.push(item).expect("one item at a time");
            until(|| home.pop().ok());
        },
        move || {
            let item = until(|| far.pop().ok());
            answer.push(item).expect("one item at a time");
        },
    )
}

/// `recv` spins for a while before it sleeps, so both threads stay awake.
fn channel_ping_pong(cpus: [usize; 2], operations: u32) -> u64 {
    let (out, far) = crossbeam_channel::bounded::<u64>(8);
    let (answer, home) = crossbeam_channel::bounded::<u64>(8);
    ping_pong(
        cpus,
        operations,
        move |item| {
            out.send(item).expect("the other receives");
            home.recv().expect("the other sends");
        },
        move || {
            let item = far.recv().expect("the other sends");
            answer.send(item).expect("the other receives");
        },
    )
}

/// A task that waits forever and counts; sends its waker.
async fn waits(waker: std::sync::mpsc::Sender<Waker>) {
    let mut polls = 0_u64;
    poll_fn(|context| {
        polls += 1;
        if black_box(polls) == 1 {
            // If the receiver is gone, the waker is not needed.
            let _ = waker.send(context.waker().clone());
        }
        Poll::<()>::Pending
    })
    .await;
}

/// Called by embassy's executor when a task is ready. The loop polls anyway.
#[unsafe(export_name = "__pender")]
fn pender(_: *mut ()) {}

/// Wakes a task and lets the executor poll it.
fn embassy(operations: u32) -> u64 {
    use embassy_executor::raw::{Executor, TaskStorage};

    // `'static`, as the executor requires: some hundred bytes leaked per window.
    let executor: &'static Executor = Box::leak(Box::new(Executor::new(std::ptr::null_mut())));
    let (sender, waker) = std::sync::mpsc::channel();
    let future = move || waits(sender);
    let token = storage_of(&future).spawn(future);
    executor.spawner().spawn(token.expect("it is spawned once"));
    // SAFETY: one thread polls, never from within a poll, and `pender` does not poll either.
    let poll = || unsafe { executor.poll() };
    poll();
    let waker = waker.recv().expect("the first poll sends it");
    return timed(operations, |_| {
        waker.wake_by_ref();
        poll();
    });

    /// Allocates static storage for a future that `make` returns.
    fn storage_of<F: Future + 'static>(_make: &impl FnOnce() -> F) -> &'static TaskStorage<F> {
        Box::leak(Box::new(TaskStorage::new()))
    }
}

/// Wakes a task and lets the runtime's thread poll it, by yielding the waking task.
fn tokio_wake(operations: u32) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it needs no driver");
    let (sender, waker) = std::sync::mpsc::channel();
    runtime.block_on(async move {
        tokio::spawn(waits(sender));
        tokio::task::yield_now().await;
        let waker = waker.recv().expect("the first poll sends it");
        let from = clock::now();
        for _ in 0..operations {
            waker.wake_by_ref();
            tokio::task::yield_now().await;
        }
        clock::now() - from
    })
}

/// An app of linux-rtic, which can be started only once in a process and does not end: its threads
/// sleep between measurements.
#[allow(warnings, clippy::all, reason = "most of it is generated by another crate")]
mod rtic_app {
    use std::sync::OnceLock;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use crate::rt::{self, Lack};

    #[derive(Debug, Clone, Copy)]
    pub(super) enum Operation {
        SameLevel,
        HigherLevel,
        Lock,
    }

    /// The destination of the jobs' answers.
    static ANSWER: OnceLock<SyncSender<u64>> = OnceLock::new();
    static ANSWERS: OnceLock<Mutex<Receiver<u64>>> = OnceLock::new();

    /// Long, since a window takes milliseconds.
    const PEER_TIMEOUT: Duration = Duration::from_secs(20);

    pub(super) fn measure(cpu: usize, operation: Operation, operations: u32) -> Result<(u64, Lack), String> {
        // Without SCHED_FIFO its threads panic.
        if let Some(why) = rt::fifo_refused() {
            return Err(format!("linux-rtic does not run: {why}"));
        }
        let answers = ANSWERS.get_or_init(|| {
            let (sender, receiver) = sync_channel(1);
            ANSWER.get_or_init(|| sender);
            // Pinned like the thread that starts them.
            let start = move || {
                let _ = rt::pin(cpu);
                // SAFETY: called once, by `get_or_init`.
                unsafe { app::run() }
            };
            let _ = std::thread::Builder::new().name("linux-rtic".into()).spawn(start);
            Mutex::new(receiver)
        });
        let answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        app::measure::spawn(operation, operations).map_err(|_| "linux-rtic takes no job".to_owned())?;
        let ticks = answers.recv_timeout(PEER_TIMEOUT).map_err(|_| "linux-rtic gave no answer".to_owned())?;
        Ok((ticks, Lack::new()))
    }

    pub(super) fn answer(ticks: u64) {
        if let Some(answer) = ANSWER.get() {
            let _ = answer.try_send(ticks);
        }
    }

    #[rtic::app]
    mod app {
        use std::hint::black_box;

        use super::{Operation, answer};
        use crate::clock;

        #[shared]
        struct Shared {
            counter: u64,
        }

        #[local]
        struct Local {
            from: u64,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local, init::Monotonics) {
            (Shared { counter: 0 }, Local { from: 0 }, init::Monotonics())
        }

        #[idle]
        fn idle(_: idle::Context) -> ! {
            loop {
                std::thread::park();
            }
        }

        #[task(priority = 1, shared = [counter])]
        fn measure(cx: measure::Context, operation: Operation, operations: u32) {
            let from = clock::now();
            match operation {
                Operation::SameLevel => {
                    link::spawn(from, operations).ok().unwrap();
                    return;
                }
                Operation::HigherLevel => {
                    for i in 0..operations {
                        high::spawn(i).ok().unwrap();
                    }
                }
                Operation::Lock => {
                    let mut counter = cx.shared.counter;
                    for i in 0..operations {
                        counter.lock(|counter| *counter ^= black_box(u64::from(i)));
                    }
                }
            }
            answer(clock::now() - from);
        }

        #[task(priority = 1, capacity = 4)]
        fn link(_: link::Context, from: u64, left: u32) {
            match left {
                0 => answer(clock::now() - from),
                left => {
                    link::spawn(from, left - 1).ok().unwrap();
                }
            }
        }

        #[task(priority = 2, capacity = 4, shared = [counter])]
        fn high(_: high::Context, i: u32) {
            black_box(i);
        }
    }
}
