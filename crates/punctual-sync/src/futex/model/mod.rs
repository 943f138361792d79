//! A kernel made of loom's primitives: threads with identities, a clock, futexes and
//! priority-inheritance futexes.
//!
//! The clock stands still as long as any thread is awake. When every thread sleeps, it advances to
//! the next timeout; without a timeout, a wake was lost, and the model reports that.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use loom::sync::{Condvar, Mutex};
use rustix::io::{Errno, Result};

use super::THREAD;
use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::time::Instant;

/// `FUTEX_WAITERS`.
const WAITERS: u32 = 0x8000_0000;

loom::thread_local! {
    static ME: Cell<u32> = Cell::new(0);
    static CALLS: Cell<u64> = Cell::new(0);
}

std::thread_local! {
    /// Belongs to the current execution; all its threads run on one thread of the operating system.
    static KERNEL: RefCell<Option<Arc<Kernel>>> = const { RefCell::new(None) };
}

struct Sleeper {
    thread: u32,
    word: usize,
    until: Option<u64>,
    /// For a priority-inheritance futex: the thread that this one waits for.
    owner: Option<u32>,
    woken: bool,
}

struct State {
    awake: usize,
    sleepers: Vec<Sleeper>,
    ended: Vec<u32>,
}

struct Kernel {
    now: AtomicU64,
    state: Mutex<State>,
    ring: Condvar,
}

fn kernel() -> Arc<Kernel> {
    KERNEL.with_borrow(|kernel| kernel.clone().expect("models run in `check`"))
}

fn me() -> u32 {
    ME.with(Cell::get)
}

fn address(word: &AtomicU32) -> usize {
    core::ptr::from_ref(word).addr()
}

/// Explores every execution of `model` with at most `preemptions` preemptions, or with the value of
/// `LOOM_MAX_PREEMPTIONS` if that is lower: two in the merge gate, and three in the nightly run.
/// The model's first thread is thread 1.
pub fn check(preemptions: usize, model: impl Fn(&Arena) + Sync + Send + 'static) {
    // One at a time: loom maps and unmaps a stack for each thread of each execution, and in two
    // threads of one process that takes ten times as long.
    static ONE: StdMutex<()> = StdMutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.map_or(preemptions, |b| b.min(preemptions)));
    builder.max_branches = 5_000;
    builder.check(move || {
        KERNEL.set(Some(Arc::new(Kernel {
            now: AtomicU64::new(0),
            state: Mutex::new(State { awake: 1, sleepers: Vec::new(), ended: Vec::new() }),
            ring: Condvar::new(),
        })));
        ME.with(|me| me.set(1));
        model(&Arena::new());
    });
}

/// Starts a thread whose TID in the kernel is `thread`.
pub fn start(thread: u32, body: impl FnOnce() + 'static) -> Started {
    kernel().state.lock().unwrap().awake += 1;
    let handle = loom::thread::spawn(move || {
        ME.with(|me| me.set(thread));
        body();
        let kernel = kernel();
        let mut state = kernel.state.lock().unwrap();
        state.ended.push(thread);
        kernel.rouse(&mut state, |s| s.word == thread as usize, 1);
        kernel.less(&mut state);
    });
    Started { thread, handle }
}

/// A started thread.
pub struct Started {
    thread: u32,
    handle: loom::thread::JoinHandle<()>,
}

impl Started {
    /// Waits for the thread's end.
    pub fn join(self) {
        let kernel = kernel();
        let state = kernel.state.lock().unwrap();
        if !state.ended.contains(&self.thread) {
            // Below the address of any futex.
            kernel.sleep(state, self.thread as usize, None, None);
        } else {
            drop(state);
        }
        self.handle.join().unwrap();
    }
}

/// Returns the current time.
pub fn now() -> Instant {
    Instant::from_ticks(kernel().now.load(Ordering::Acquire))
}

/// Advances the clock, and wakes the threads that sleep until that time or earlier.
pub fn advance(now: u64) {
    let kernel = kernel();
    let mut state = kernel.state.lock().unwrap();
    kernel.now.store(now, Ordering::Release);
    kernel.rouse(&mut state, |s| s.until.is_some_and(|until| until <= now), usize::MAX);
}

/// Returns the number of futex system calls that the calling thread has made.
pub fn calls() -> u64 {
    CALLS.with(Cell::get)
}

fn count() {
    CALLS.with(|calls| calls.set(calls.get() + 1));
}

pub(crate) fn thread_id() -> u32 {
    me()
}

pub(crate) fn wait(word: &AtomicU32, expected: u32, until: Option<Instant>) {
    count();
    let kernel = kernel();
    let state = kernel.state.lock().unwrap();
    let until = until.map(|until| until.as_ticks());
    // Under the lock, as the kernel compares under its bucket's lock.
    let due = until.is_some_and(|until| until <= kernel.now.load(Ordering::Acquire));
    if word.load(Ordering::Relaxed) == expected && !due {
        kernel.sleep(state, address(word), until, None);
    }
}

pub(crate) fn wake(word: &AtomicU32, threads: u32) {
    count();
    let (kernel, word) = (kernel(), address(word));
    let mut state = kernel.state.lock().unwrap();
    kernel.rouse(&mut state, |s| s.word == word, threads as usize);
}

pub(crate) fn lock_pi(word: &AtomicU32) -> Result<()> {
    count();
    let (kernel, me) = (kernel(), me());
    assert_ne!(me, 0, "a thread has a TID");
    let state = kernel.state.lock().unwrap();
    let mut now = word.load(Ordering::Acquire);
    let owner = loop {
        let owner = now & THREAD;
        if owner == me || owner != 0 && state.waits_for(owner, me) {
            return Err(Errno::DEADLK);
        }
        let claimed = if owner == 0 { me | now } else { now | WAITERS };
        // User space changes the word too, so the kernel uses compare-and-swap.
        match word.compare_exchange(now, claimed, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) if owner == 0 => return Ok(()),
            Ok(_) => break owner,
            Err(changed) => now = changed,
        }
    };
    kernel.sleep(state, address(word), None, Some(owner));
    word.load(Ordering::Acquire);
    Ok(())
}

pub(crate) fn unlock_pi(word: &AtomicU32) -> Result<()> {
    count();
    let (kernel, me, futex) = (kernel(), me(), address(word));
    let mut state = kernel.state.lock().unwrap();
    let now = word.load(Ordering::Acquire);
    if now & THREAD != me {
        return Err(Errno::PERM);
    }
    let first = state.sleepers.iter().find(|s| s.word == futex && !s.woken).map(|s| s.thread);
    match first {
        Some(next) => {
            // The kernel leaves the flag set, regardless of other waiters.
            word.store(next | WAITERS, Ordering::Release);
            for other in state.sleepers.iter_mut().filter(|s| s.word == futex) {
                other.owner = Some(next);
            }
            kernel.rouse(&mut state, |s| s.thread == next, 1);
        }
        None => {
            // Fails if user space has just changed it.
            let _ = word.compare_exchange(now, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
    Ok(())
}

impl State {
    /// Returns `true` if `thread` waits for `other`, directly or along a chain.
    fn waits_for(&self, thread: u32, other: u32) -> bool {
        let mut at = thread;
        while let Some(owner) =
            self.sleepers.iter().find(|s| s.thread == at && !s.woken).and_then(|s| s.owner)
        {
            if owner == other {
                return true;
            }
            at = owner;
        }
        false
    }
}

impl Kernel {
    fn sleep(
        &self,
        mut state: loom::sync::MutexGuard<'_, State>,
        word: usize,
        until: Option<u64>,
        owner: Option<u32>,
    ) {
        let thread = me();
        state.sleepers.push(Sleeper { thread, word, until, owner, woken: false });
        self.less(&mut state);
        loop {
            if let Some(place) = state.sleepers.iter().position(|s| s.thread == thread && s.woken) {
                state.sleepers.remove(place);
                return;
            }
            state = self.ring.wait(state).unwrap();
        }
    }

    /// Wakes up to `most` of the selected sleepers.
    fn rouse(&self, state: &mut State, which: impl Fn(&Sleeper) -> bool, most: usize) {
        let mut woken = 0;
        for sleeper in state.sleepers.iter_mut().filter(|s| !s.woken && which(s)).take(most) {
            sleeper.woken = true;
            woken += 1;
        }
        state.awake += woken;
        self.ring.notify_all();
    }

    /// Records that the calling thread is about to sleep or to end.
    fn less(&self, state: &mut State) {
        state.awake -= 1;
        if state.awake > 0 || state.sleepers.is_empty() {
            return;
        }
        let next = state.sleepers.iter().filter_map(|s| s.until).min();
        let Some(next) = next else {
            let of = |s: &Sleeper| match s.owner {
                Some(owner) => format!("thread {} waits for thread {owner}", s.thread),
                None => format!("thread {} sleeps", s.thread),
            };
            let all = state.sleepers.iter().map(of).collect::<Vec<_>>().join(", ");
            panic!("every thread sleeps, so a wake was lost: {all}");
        };
        self.now.store(next, Ordering::Release);
        self.rouse(state, |s| s.until.is_some_and(|until| until <= next), usize::MAX);
    }
}

/// Owns the values of a model, and frees them when the execution has ended.
///
/// A model joins every thread it starts before it returns and retains no reference, so no use
/// outlives the arena.
pub struct Arena(RefCell<Vec<Box<dyn FnOnce()>>>);

impl Arena {
    fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// Stores `value` until the end of the execution.
    pub fn put<T: 'static>(&self, value: T) -> &'static T {
        let place = Box::into_raw(Box::new(value));
        self.0.borrow_mut().push(Box::new(move || {
            // SAFETY: `place` was made by `Box::into_raw` above and is freed once, after its last
            // use.
            drop(unsafe { Box::from_raw(place) });
        }));
        // SAFETY: `place` is valid until the arena is dropped, and a model uses none of its values
        // after that.
        unsafe { &*place }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // A model that failed may have left threads behind: then everything is leaked.
        if !std::thread::panicking() {
            // In reverse, since later values refer to earlier ones.
            self.0.get_mut().drain(..).rev().for_each(|free| free());
        }
    }
}
