//! A small real-time kernel: threads that block, with fixed priorities, on one core.
//!
//! It is `no_std` and never allocates: threads, stacks, mutexes, semaphores and callbacks are
//! statics of the program. It runs on a [port](Port); the feature `sim` provides one that simulates
//! a processor on the host, with its clock and its interrupts, so that a program can be tested with
//! an interrupt at every point.
//!
#![cfg_attr(not(feature = "sim"), doc = "```ignore")]
#![cfg_attr(feature = "sim", doc = "```")]
//! use punctual_kernel::sim::{self, Sim};
//!
//! type Kernel = punctual_kernel::Kernel<Sim>;
//! type Thread = punctual_kernel::Thread<Sim>;
//! type Mutex<T> = punctual_kernel::Mutex<Sim, T>;
//! type Semaphore = punctual_kernel::Semaphore<Sim>;
//! type Stack = punctual_kernel::Stack<Sim, 65536>;
//!
//! static SAMPLES: Mutex<u32> = Mutex::new("samples", 0);
//! static READY: Semaphore = Semaphore::new(0, 1);
//! static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
//!
//! fn control(rounds: u32) {
//!     for _ in 0..rounds {
//!         READY.p().unwrap();
//!         *SAMPLES.lock().unwrap() += 1;
//!     }
//!     Kernel::stop();
//! }
//!
//! fn sample(period: u64) {
//!     for round in 1.. {
//!         Thread::sleep_until(round * period).unwrap();
//!         READY.v().unwrap();
//!     }
//! }
//!
//! sim::run(|| {
//!     Thread::spawn(20, &STACKS[0], control, 3).unwrap();
//!     Thread::spawn(10, &STACKS[1], sample, 1_000_000).unwrap();
//!     Kernel::run();
//!     assert_eq!(Kernel::now(), 3_000_000);
//! });
//! ```
//!
//! # Scheduling
//!
//! Priorities are 1 to 32, and 32 is the highest. The ready thread of the highest priority runs; of
//! several, the one that became ready first. A preempted thread keeps its position; a thread that
//! waits, yields or has used up its [slice](Kernel::set_time_slice) goes to the end. Waiting
//! threads are served in the same order.
//!
//! # Bounds
//!
//! With interrupts masked, the only searches are over: the up to 31 priorities above that of a
//! thread that begins to wait; the chain of threads that wait for each other, when a mutex is
//! contended; the mutexes that a thread holds, when it unlocks one with waiters; the timers that
//! are due earlier, when one is armed.
//!
//! # Interrupts
//!
//! A handler, see [`Kernel::subscribe_irq`], may call every operation that does not wait: threads
//! that it makes ready run when it returns. A wait in a handler is an error.
#![no_std]

#[cfg(any(feature = "linux", feature = "sim"))]
extern crate std;

mod callback;
mod error;
mod interrupt;
mod kernel;
#[cfg(feature = "linux")]
pub mod linux;
mod mutex;
mod ordered;
mod port;
mod rank;
mod ready;
mod semaphore;
#[cfg(feature = "sim")]
pub mod sim;
mod slot;
mod stack;
mod switch;
mod thread;
mod timer;
mod wait_queue;

pub use callback::{Callback, Server};
pub use error::{
    Fault, JoinError, LockError, SignalError, SpawnError, SubscribeError, UnlockError, WaitError,
};
pub use interrupt::InterruptSlot;
pub use kernel::Kernel;
pub use mutex::{Mutex, MutexGuard, RawMutex};
pub use ordered::{Exclusion, Group, OrderedGuard, OrderedGuards, OrderedMutex, OrderedMutexes, lock_all};
pub use port::Port;
pub use semaphore::Semaphore;
pub use slot::{State, ThreadSlot};
pub use stack::Stack;
pub use switch::{prepare, switch};
pub use thread::Thread;

/// The example of the kernel guide is a test.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/book/src/guides/kernel.md")]
    struct Kernel;
}
