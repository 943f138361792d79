//! A platform made of loom's primitives: a clock, sleeping workers, a futex and the kernel's
//! priority-inheritance futexes.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, AtomicU64};
use loom::sync::{Condvar, Mutex};
use punctual_core::sync::{AtomicU32, Ordering};
use punctual_core::{Instant, Port, Stamp, Worker};

use super::Model;
use super::awake::Awake;

/// `FUTEX_TID_MASK` and `FUTEX_WAITERS`.
const THREAD: u32 = 0x3fff_ffff;
const WAITERS: u32 = 0x8000_0000;

loom::thread_local! {
    static ME: Cell<u32> = Cell::new(0);
}

std::thread_local! {
    /// Belongs to the current execution; all its threads run on one thread of the operating system.
    static NOW: RefCell<Option<Arc<Awake>>> = const { RefCell::new(None) };
    static PARTITION: Cell<Option<&'static Model>> = const { Cell::new(None) };
}

/// Begins an execution.
pub(super) fn begin() {
    NOW.set(Some(Awake::new()));
    PARTITION.set(None);
}

/// Sets the partition that [`stuck`] reports on.
pub(super) fn is_about(partition: &'static Model) {
    PARTITION.set(Some(partition));
}

/// The threads that are awake in this execution.
pub(super) fn awake() -> Arc<Awake> {
    NOW.with_borrow(|now| now.clone().expect("models run in `check`"))
}

/// Returns `true` if the model's partition is stopping.
fn is_stopping() -> bool {
    PARTITION.get().is_some_and(|partition| partition.is_stopping())
}

/// Reports the omitted action, when no thread is left to perform it.
#[track_caller]
pub(super) fn stuck() -> ! {
    let Some(partition) = PARTITION.get() else { panic!("no thread is awake") };
    let (word, time) = (partition.snapshot(), partition.port().now().as_ticks());
    let due = partition.levels().iter().filter_map(|l| l.next_due()).any(|due| due.as_ticks() <= time);
    let what = match () {
        () if word.must_serve() => "a ready level is free and was not served",
        () if due => "a timer has expired and was not released",
        () if partition.is_stopping() => "the partition stops and a worker was not woken",
        () if word.waiters() != 0 => "a waiting thread was not woken when the level became free",
        () => "a job or a wake was lost",
    };
    panic!("every thread sleeps: {what}; at {time}, {word:?}");
}

pub(super) fn become_thread(thread: u32) {
    ME.with(|me| me.set(thread));
}

/// The sleep state of one worker.
struct Bed {
    state: Mutex<Sleep>,
    ring: Condvar,
}

#[derive(Default)]
struct Sleep {
    woken: bool,
    /// While asleep: the wake-up time.
    asleep: Option<Option<u64>>,
    /// While asleep: true if only the clock and a stop end the sleep.
    heedless: bool,
}

impl Sleep {
    /// Counts the sleeper as awake, if there is one.
    fn rise(&mut self) {
        if self.asleep.take().is_some() {
            awake().more(1);
        }
    }
}

/// The futex of the threads that wait for a level.
#[derive(Default)]
struct Turns {
    wakes: u32,
    asleep: usize,
}

/// The priority-inheritance futexes.
#[derive(Default)]
struct Kernel {
    queue: Vec<Queued>,
    /// The thread that has to lend its priority before the thread waiting for it continues.
    lender: Option<u32>,
    /// The threads that have no need to wait.
    content: Vec<u32>,
}

impl Kernel {
    /// Resumes the thread that waits for `lender`.
    fn lent(&mut self, lender: u32) {
        if self.lender == Some(lender) {
            self.lender = None;
            awake().more(1);
        }
    }
}

/// A thread in `FUTEX_LOCK_PI`.
struct Queued {
    futex: usize,
    thread: u32,
    owns: bool,
}

pub(crate) struct ModelPort {
    now: AtomicU64,
    beds: Vec<Bed>,
    turn: (Mutex<Turns>, Condvar),
    kernel: (Mutex<Kernel>, Condvar),
    boosts: bool,
    spins: bool,
    notified: AtomicBool,
}

impl ModelPort {
    /// Creates a platform for workers of base 0 to `highest`, with or without priority inheritance.
    pub(crate) fn new(highest: u8, boosts: bool) -> Self {
        let bed = |_| Bed { state: Mutex::new(Sleep::default()), ring: Condvar::new() };
        Self {
            now: AtomicU64::new(0),
            beds: (0..=highest).map(bed).collect(),
            turn: (Mutex::new(Turns::default()), Condvar::new()),
            kernel: (Mutex::new(Kernel::default()), Condvar::new()),
            boosts,
            spins: false,
            notified: AtomicBool::new(false),
        }
    }

    /// Makes workers check for work once more before they sleep.
    pub(crate) fn spinning(self) -> Self {
        Self { spins: true, ..self }
    }

    /// Returns `true` if an unwinding critical section was reported, as far as the calling thread
    /// sees.
    pub(crate) fn was_notified(&self) -> bool {
        self.notified.load(Ordering::Relaxed)
    }

    /// Returns `true` if an awake worker was woken.
    pub(crate) fn was_woken(&self, worker: &Worker) -> bool {
        self.bed(worker).state.lock().unwrap().woken
    }

    /// Sets the clock and wakes those of `workers` that sleep until that time or earlier.
    pub(crate) fn advance(&self, now: u64, workers: &[&Worker]) {
        self.now.store(now, Ordering::Release);
        for worker in workers {
            let bed = self.bed(worker);
            let mut state = bed.state.lock().unwrap();
            if matches!(state.asleep, Some(Some(until)) if until <= now) {
                state.rise();
                bed.ring.notify_one();
            }
        }
    }

    /// Blocks until `thread` lends its priority, or [needs nothing](Self::needs_nothing): models a
    /// calling thread that does not run before, because others have higher priorities.
    pub(crate) fn wait_for_lender(&self, thread: u32) {
        let mut kernel = self.kernel.0.lock().unwrap();
        let lends = kernel.queue.iter().any(|queued| queued.thread == thread && !queued.owns);
        if lends || kernel.content.contains(&thread) {
            return;
        }
        kernel.lender = Some(thread);
        if !awake().less() {
            drop(kernel);
            stuck();
        }
        while kernel.lender.is_some() {
            kernel = self.kernel.1.wait(kernel).unwrap();
        }
    }

    /// Records that `thread` no longer waits for any thread.
    pub(crate) fn needs_nothing(&self, thread: u32) {
        let mut kernel = self.kernel.0.lock().unwrap();
        kernel.content.push(thread);
        kernel.lent(thread);
        self.kernel.1.notify_all();
    }

    /// A worker's sleep, which only the clock and a stop end if it is `heedless`.
    fn sleep(&self, worker: &Worker, until: Option<Instant>, heedless: bool) -> bool {
        let bed = self.bed(worker);
        let mut state = bed.state.lock().unwrap();
        state.heedless = heedless && !state.woken;
        let ends = |state: &Sleep| state.woken && (!state.heedless || is_stopping());
        while !ends(&state) && until.is_none_or(|until| self.now() < until) {
            state.asleep = Some(until.map(|until| until.as_ticks()));
            if !awake().less() {
                drop(state);
                stuck();
            }
            state = bed.ring.wait(state).unwrap();
            state.rise();
        }
        let woken = std::mem::take(&mut state.woken);
        until.is_some() && !woken
    }

    fn bed(&self, worker: &Worker) -> &Bed {
        &self.beds[worker.base() as usize]
    }
}

fn futex_of(boost: &AtomicU32) -> usize {
    core::ptr::from_ref(boost).addr()
}

impl Port for ModelPort {
    type Word = AtomicU64;

    fn unwinds(&self) {
        self.notified.store(true, Ordering::Relaxed);
    }

    fn now(&self) -> Instant {
        Instant::from_ticks(self.now.load(Ordering::Acquire))
    }

    fn wake(&self, worker: &Worker) {
        let bed = self.bed(worker);
        let mut state = bed.state.lock().unwrap();
        state.woken = true;
        if !state.heedless || is_stopping() {
            state.rise();
            bed.ring.notify_one();
        }
    }

    fn spin(&self, worker: &Worker, until: impl FnOnce() -> Option<Instant>, is_over: impl Fn() -> bool) {
        if self.spins {
            // More checks would find no more: the observed values affect only the duration of the
            // spin.
            let _ = (until(), self.was_woken(worker) || is_over());
        }
    }

    fn wait(&self, worker: &Worker, until: Option<Instant>, _: Stamp) -> bool {
        self.sleep(worker, until, false)
    }

    fn sleep_until(&self, worker: &Worker, until: Instant, _: Stamp) -> bool {
        self.sleep(worker, Some(until), true)
    }

    fn wait_while(&self, count: &AtomicU32, seen: u32) {
        let mut turns = self.turn.0.lock().unwrap();
        let before = turns.wakes;
        // Under the lock, as the kernel compares under its bucket's lock.
        if count.load(Ordering::Relaxed) == seen {
            turns.asleep += 1;
            if !awake().less() {
                drop(turns);
                stuck();
            }
            while turns.wakes == before {
                turns = self.turn.1.wait(turns).unwrap();
            }
        }
    }

    fn wake_all(&self, _: &AtomicU32) {
        let mut turns = self.turn.0.lock().unwrap();
        turns.wakes += 1;
        awake().more(std::mem::take(&mut turns.asleep));
        self.turn.1.notify_all();
    }

    fn boost(&self, boost: &AtomicU32) -> bool {
        if !self.boosts {
            return false;
        }
        let (me, futex) = (ME.with(Cell::get), futex_of(boost));
        assert_ne!(me, 0, "a thread that lends has a TID");
        let mut kernel = self.kernel.0.lock().unwrap();
        let mut word = boost.load(Ordering::Acquire);
        loop {
            if word & THREAD == me {
                return false;
            }
            let free = word & THREAD == 0;
            let claimed = if free { me } else { word | WAITERS };
            // User space changes the word too, so the kernel uses compare-and-swap.
            match boost.compare_exchange(word, claimed, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) if free => return true,
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        kernel.queue.push(Queued { futex, thread: me, owns: false });
        kernel.lent(me);
        self.kernel.1.notify_all();
        if !awake().less() {
            drop(kernel);
            stuck();
        }
        loop {
            if let Some(place) = kernel.queue.iter().position(|q| q.thread == me && q.owns) {
                kernel.queue.remove(place);
                return true;
            }
            kernel = self.kernel.1.wait(kernel).unwrap();
        }
    }

    fn unboost(&self, boost: &AtomicU32) {
        let (me, futex) = (ME.with(Cell::get), futex_of(boost));
        let mut kernel = self.kernel.0.lock().unwrap();
        let word = boost.load(Ordering::Acquire);
        if word & THREAD != me {
            return;
        }
        let waiting = |q: &&mut Queued| q.futex == futex && !q.owns;
        match kernel.queue.iter_mut().find(waiting) {
            Some(first) => {
                first.owns = true;
                awake().more(1);
                let next = first.thread;
                let more = kernel.queue.iter_mut().any(|q| waiting(&q));
                boost.store(next | if more { WAITERS } else { 0 }, Ordering::Release);
                self.kernel.1.notify_all();
            }
            None => {
                // Fails if user space has just taken it back.
                let _ = boost.compare_exchange(word, 0, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }
}
