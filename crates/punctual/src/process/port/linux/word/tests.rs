use std::mem::MaybeUninit;
use std::os::unix::thread::JoinHandleExt;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::thread::{JoinHandle, yield_now};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

use super::*;
use crate::port::linux::cpu::{Allowed, pin};

const ORDER: Ordering = Ordering::AcqRel;

/// Returns a CPU that a word can be biased to, and another if there is one; `None` if words are
/// atomics.
fn cpus() -> Option<(usize, Option<usize>)> {
    let allowed = Allowed::of_this_thread().unwrap();
    let mut cpus = allowed.iter().collect::<Vec<_>>().into_iter().rev();
    let home = cpus.next().unwrap();
    match barrier::prepare(home) {
        Ok(_) => Some((home, cpus.next())),
        Err(why) => {
            println!("not tried: {why}");
            None
        }
    }
}

/// Returns a word that can be biased to `cpu`, and is not yet.
fn revoked(cpu: usize) -> BiasedWord {
    let cell = BiasedWord::EMPTY;
    // SAFETY: no other thread uses it so far.
    unsafe { allow(&cell) };
    begin(&cell, Some(cpu)).expect("it is possible");
    cell
}

/// The bias state without the home CPU: 0 while the word is biased.
fn bias_state(cell: &BiasedWord) -> u32 {
    cell.bias_state.load(Ordering::Relaxed) & !HOME
}

/// Checks the effect of each operation on 0b0110, and its return value.
fn operations(cell: &BiasedWord) {
    let word = || cell.load(Ordering::Acquire);
    let set = |to: u64| {
        cell.fetch_and(0, ORDER);
        cell.fetch_or(to, ORDER);
    };
    set(0b0110);
    assert_eq!((cell.fetch_or(0b1010, ORDER), word()), (0b0110, 0b1110));
    assert_eq!((cell.fetch_and(0b0101, ORDER), word()), (0b1110, 0b0100));
    assert_eq!((cell.fetch_sub(1, ORDER), word()), (0b0100, 0b0011));
    assert_eq!((cell.fetch_sub(1_u64.wrapping_neg(), ORDER), word()), (0b0011, 0b0100));
    assert_eq!((cell.swap(0b0101, 7, ORDER), word()), (Err(0b0100), 0b0100));
    // It may fail, for example if the thread is preempted.
    while cell.swap(0b0100, 1 << 63 | 7, ORDER).is_err() {}
    assert_eq!(word(), 1 << 63 | 7);
    // The value that also reports a failed sequence.
    set(u64::MAX);
    assert_eq!((cell.fetch_or(1, ORDER), cell.fetch_and(u64::MAX, ORDER)), (u64::MAX, u64::MAX));
    while cell.swap(u64::MAX, 5, ORDER).is_err() {}
    assert_eq!(word(), 5);
    occupies_and_vacates::<Low>(cell);
    occupies_and_vacates::<High>(cell);
}

/// Starts and ends jobs next to each other bit of the word.
fn jobs(cell: &BiasedWord) {
    occupies_and_vacates::<Job<false>>(cell);
    occupies_and_vacates::<Job<true>>(cell);
}

fn set_unless<M: Masks>(cell: &BiasedWord) -> bool {
    // SAFETY: the token is that of this thread.
    unsafe { cell.set_unless::<M>(cell.token()) != Setting::Refused }
}

/// Clears the bit, as the partition does if the cell refuses.
fn clear<M: Masks>(cell: &BiasedWord) -> bool {
    // SAFETY: the token is that of this thread.
    match unsafe { cell.clear::<M>(cell.token()) } {
        Clearing::Idle => false,
        Clearing::Work => true,
        Clearing::Refused => cell.fetch_and(!u64::from(M::BIT), ORDER) & M::WORK != 0,
    }
}

/// Level 3 to the ceiling 4.
struct Low;

impl Masks for Low {
    const BIT: u32 = 0b1000;
    const BLOCKERS: u64 = 0xfff_fff8;
    const WORK: u64 = u64::MAX << 31;
}

/// Level 20, if it is not ready.
struct High;

impl Masks for High {
    const BIT: u32 = 1 << 19;
    const BLOCKERS: u64 = 1 << 47 | 0xff8_0000;
    const WORK: u64 = u64::MAX << 48;
}

/// A job of level 20, started with a word that is mostly biased, or mostly an atomic.
struct Job<const IS_PLAIN_FIRST: bool>;

impl<const IS_PLAIN_FIRST: bool> Masks for Job<IS_PLAIN_FIRST> {
    const BIT: u32 = High::BIT;
    const BLOCKERS: u64 = High::BLOCKERS;
    const WORK: u64 = High::WORK;
    const IS_JOB: bool = true;
    const IS_PLAIN_FIRST: bool = IS_PLAIN_FIRST;
}

/// Checks `set_unless` and `clear` next to each other bit of the word.
fn occupies_and_vacates<M: Masks>(cell: &BiasedWord) {
    let word = || cell.load(Ordering::Acquire);
    let set = |to: u64| {
        cell.fetch_and(0, ORDER);
        cell.fetch_or(to, ORDER);
    };
    let bit = u64::from(M::BIT);
    for other in (0..64).map(|place| 1 << place).filter(|other| other & bit == 0) {
        set(other);
        if M::BLOCKERS & other != 0 {
            assert!(!set_unless::<M>(cell), "{other:#x} is in the way");
            assert_eq!(word(), other);
            cell.fetch_or(bit, ORDER);
        } else if !set_unless::<M>(cell) {
            // `set_unless` may fail, and does so unless the word is biased to this CPU.
            cell.fetch_or(bit, ORDER);
        }
        assert_eq!(word(), other | bit);
        assert_eq!(clear::<M>(cell), M::WORK & other != 0, "{other:#x} is left");
        assert_eq!(word(), other);
    }
    set(bit);
    assert_eq!(set_unless::<M>(cell), M::BLOCKERS & bit == 0, "it is occupied");
    set(0);
}

/// Runs `f` on a new thread on `cpu`.
fn on<R: Send>(cpu: usize, f: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            pin(cpu).unwrap();
            f()
        });
        thread.join().unwrap()
    })
}

/// Checks that jobs are not started or ended, and no spare is taken, while the cell is flagged.
fn flagged_cell_refuses<M: Masks>(cell: &BiasedWord) {
    let (word, number) = (|| cell.load(Ordering::Acquire), AtomicU32::new(3));
    // SAFETY: the token is that of this thread, which alone sets the number.
    let take_own = || unsafe { cell.take_own(&number, 3, cell.token()) };
    set_flagged(cell);
    // SAFETY: the token is that of this thread.
    assert_eq!(unsafe { cell.set_unless::<M>(cell.token()) }, Setting::Refused);
    assert_eq!(word(), 0);
    cell.fetch_or(M::BIT.into(), ORDER);
    // SAFETY: the token is that of this thread.
    assert_eq!(unsafe { cell.clear::<M>(cell.token()) }, Clearing::Refused);
    assert_eq!((word(), take_own(), number.load(Ordering::Relaxed)), (M::BIT.into(), false, 3));
    clear_flagged(cell);
    // Each may fail, for example if the thread is preempted.
    clear::<M>(cell);
    while !set_unless::<M>(cell) {}
    clear::<M>(cell);
    while !take_own() {}
    assert_eq!((word(), number.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn flagged_cell_neither_starts_nor_ends_jobs() {
    let plain = BiasedWord::EMPTY;
    flagged_cell_refuses::<Job<false>>(&plain);
    flagged_cell_refuses::<Job<true>>(&plain);
    let Some((home, _)) = cpus() else { return };
    let cell = revoked(home);
    on(home, || {
        cell.bias();
        flagged_cell_refuses::<Job<false>>(&cell);
        flagged_cell_refuses::<Job<true>>(&cell);
        assert_eq!(bias_state(&cell), 0, "nobody has entered");
        set_flagged(&cell);
        occupies_and_vacates::<High>(&cell);
        assert_eq!(bias_state(&cell), 0, "critical sections ignore the flag");
    });
}

#[test]
fn plain_cell_is_an_atomic() {
    let cell = BiasedWord::EMPTY;
    operations(&cell);
    jobs(&cell);
    cell.bias();
    assert_eq!(bias_state(&cell), PLAIN, "nobody has allowed it");
}

#[test]
fn every_change_enters_before_first_bias() {
    let Some((home, _)) = cpus() else { return };
    let cell = BiasedWord::EMPTY;
    // SAFETY: no other thread uses it.
    unsafe { allow(&cell) };
    on(home, || {
        operations(&cell);
        jobs(&cell);
    });
    assert_eq!((bias_state(&cell), cell.left.load(Ordering::Relaxed)), (REVOKED, CHANGES_BEFORE_REBIAS));
    // One thread is counted.
    cell.bias_state.fetch_add(ONE, ORDER);
    assert_eq!(begin(&cell, None), Ok(()));
    cell.bias_state.fetch_sub(ONE, ORDER);
    cell.bias();
    operations(&cell);
    assert_eq!(bias_state(&cell), PLAIN | REVOKED, "it is not to be biased");
}

#[test]
fn biased_word_changes_on_home_cpu() {
    let Some((home, _)) = cpus() else { return };
    let cell = revoked(home);
    on(home, || {
        operations(&cell);
        assert_eq!(bias_state(&cell), REVOKED, "by locked instructions");
        cell.bias();
        assert_eq!(bias_state(&cell), 0);
        operations(&cell);
        jobs(&cell);
        assert_eq!(bias_state(&cell), 0, "nobody has entered");
    });
    // SAFETY: the thread has ended.
    unsafe { cell.reset() };
    assert_eq!((bias_state(&cell), cell.load(Ordering::Relaxed)), (PLAIN, 0));
}

#[test]
fn change_from_another_cpu_revokes_the_bias() {
    let Some((home, _)) = cpus() else { return };
    // No thread runs on this CPU.
    let cell = revoked(8_190);
    cell.bias();
    assert_eq!((bias_state(&cell), cell.fetch_or(4, ORDER), bias_state(&cell)), (0, 0, REVOKED));
    operations(&cell);
    assert_eq!(bias_state(&cell), REVOKED, "everybody has left");
    // And on this one only the thread there.
    let cell = revoked(home);
    cell.bias();
    let Some(other) = cpus().and_then(|cpus| cpus.1) else { return };
    on(home, || assert_eq!((cell.fetch_or(1, ORDER), bias_state(&cell)), (0, 0)));
    on(other, || assert_eq!((cell.fetch_or(2, ORDER), bias_state(&cell)), (1, REVOKED)));
    on(home, || assert_eq!((cell.fetch_or(4, ORDER), bias_state(&cell)), (3, REVOKED)));
}

#[test]
fn word_is_biased_again_after_changes_from_home() {
    let Some((home, _)) = cpus() else { return };
    let cell = revoked(home);
    on(home, || {
        for _ in 0..CHANGES_BEFORE_REBIAS {
            cell.fetch_or(1, ORDER);
            assert_eq!(bias_state(&cell), REVOKED);
        }
        // One thread is counted.
        cell.bias_state.fetch_add(ONE, ORDER);
        cell.fetch_or(1, ORDER);
        assert_eq!(bias_state(&cell), REVOKED | ONE);
        cell.bias_state.fetch_sub(ONE, ORDER);
        // One more than necessary, because one may be preempted.
        for _ in 0..2 {
            cell.fetch_or(1, ORDER);
        }
        assert_eq!(bias_state(&cell), 0);
    });
}

#[test]
fn rejects_cpu_above_supported_range() {
    let cell = BiasedWord::EMPTY;
    // SAFETY: no other thread uses it.
    unsafe { allow(&cell) };
    assert!(begin(&cell, Some(8_191)).is_err());
    cell.bias();
    assert_ne!(bias_state(&cell) & PLAIN, 0, "it stays an atomic");
    operations(&cell);
}

/// Returns the descriptor in the calling thread's record.
fn announced(rseq: isize) -> usize {
    let announced: usize;
    // SAFETY: the record of the calling thread is there.
    unsafe { std::arch::asm!("mov {}, fs:[{} + 8]", out(reg) announced, in(reg) rseq) };
    announced
}

#[test]
fn leaving_and_foreign_threads_clear_descriptor() {
    let Some((home, _)) = cpus() else { return };
    let cell = revoked(home);
    cell.bias();
    let rseq = cell.token();
    assert_ne!(rseq, 0);
    on(home, || {
        // The kernel clears the descriptor if it preempts the thread in between.
        let left = (0..1_000).any(|_| {
            set_unless::<Low>(&cell);
            announced(rseq) != 0
        });
        assert!(left, "a sequence leaves its descriptor");
        forget_sequence(&cell);
        assert_eq!(announced(rseq), 0);
        set_unless::<Low>(&cell);
        cell.fetch_or(1, ORDER);
        assert_eq!(announced(rseq), 0, "a spawn of a foreign thread");
        clear::<Low>(&cell);
        while cell.swap(1, 2, ORDER).is_err() {}
        assert_eq!((announced(rseq), bias_state(&cell)), (0, 0));
    });
}

#[test]
fn fresh_cell_has_record_without_cpu() {
    let cell = BiasedWord::EMPTY;
    operations(&cell);
    let rseq = cell.token();
    let cpu: u32;
    // SAFETY: the record of the calling thread is there.
    unsafe { std::arch::asm!("mov {:e}, fs:[{} + 4]", out(reg) cpu, in(reg) rseq) };
    assert_eq!(cpu, u32::MAX);
    assert_ne!(announced(rseq), 0, "sequences use this record");
}

#[test]
fn entering_restarts_rebias_count() {
    let Some((home, _)) = cpus() else { return };
    let cell = revoked(home);
    cell.left.store(3, Ordering::Relaxed);
    cell.enter();
    assert_eq!(
        (bias_state(&cell), cell.left.load(Ordering::Relaxed)),
        (REVOKED | ONE, CHANGES_BEFORE_REBIAS)
    );
}

// ---- real threads -------------------------------------------------------------------------------

/// Threads that change one word.
struct Load {
    cell: BiasedWord,
    ends: OnceLock<Instant>,
    over: AtomicBool,
    /// Protected by the lowest bit of the word.
    protected: std::cell::UnsafeCell<u64>,
    /// 1 if set by the thread that has set the lowest bit, or [`WITHDRAWN`].
    number: AtomicU32,
    /// Number of times that `number` was set, taken and withdrawn.
    set: AtomicU64,
    taken: AtomicU64,
    withdrawn: AtomicU64,
    /// Number of times that the word was found biased and not.
    found: [AtomicU64; 2],
}

const WITHDRAWN: u32 = u32::MAX;

// SAFETY: `protected` is used by the thread that has set the lowest bit, one at a time; this is
// what the test checks.
unsafe impl Sync for Load {}

const LOCK: u64 = 1;

/// The lowest bit; the bits of all threads are work.
struct Lock;

impl Masks for Lock {
    const BIT: u32 = LOCK as u32;
    const BLOCKERS: u64 = LOCK;
    const WORK: u64 = !LOCK;
}

/// Number of bits of each thread.
const FIELD: u32 = 7;

impl Load {
    /// Changes the word as thread `number`, `rounds` times or until the end; returns how often it
    /// held the lock.
    fn run(&self, number: u32, rounds: u64, mut now_and_then: impl FnMut(u64)) -> u64 {
        let mine = ((1 << FIELD) - 1) << (1 + number * FIELD);
        let (mut held, mut locked) = (0, 0);
        let mut random = u64::from(number) + 1;
        let check = |before: u64, held: u64| {
            assert_eq!(
                before & mine,
                held,
                "a change of thread {number} was lost, or another thread made one"
            );
        };
        for round in 0.. {
            let over = match self.ends.get() {
                Some(end) => round % 64 == 0 && Instant::now() >= *end,
                None => round >= rounds,
            };
            if over || self.over.load(Ordering::Relaxed) {
                break;
            }
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let bits = random & mine;
            match random >> 61 {
                0..3 => {
                    check(self.cell.fetch_or(bits, ORDER), held);
                    held |= bits;
                }
                3..6 => {
                    check(self.cell.fetch_and(!bits, ORDER), held);
                    held &= !bits;
                }
                6 => {
                    check(self.cell.fetch_sub(held, ORDER), held);
                    held = 0;
                }
                _ if random >> 60 & 1 == 0 => {
                    if set_unless::<Lock>(&self.cell) {
                        check(self.cell.load(Ordering::Relaxed), held);
                        // SAFETY: this thread has set the bit, see `Load`.
                        unsafe { *self.protected.get() += 1 };
                        locked += 1;
                        // SAFETY: this thread has set the bit.
                        unsafe { self.set_or_take() };
                        let work = clear::<Lock>(&self.cell);
                        assert!(work || held == 0, "`clear` missed bits that were set before");
                        check(self.cell.load(Ordering::Relaxed), held);
                    }
                }
                _ => {
                    let word = self.cell.load(Ordering::Relaxed);
                    if word & LOCK == 0 && self.cell.swap(word, word | LOCK, ORDER).is_ok() {
                        check(word, held);
                        // SAFETY: this thread has set the bit, see `Load`.
                        unsafe { *self.protected.get() += 1 };
                        locked += 1;
                        let before = self.cell.fetch_and(!LOCK, ORDER);
                        assert_eq!(before & LOCK, LOCK, "another thread has unlocked");
                        check(before, held);
                    }
                }
            }
            // Without the lock, as a thread of the partition that needs the slot.
            // SAFETY: the token is that of this thread.
            if number == 1 && round % 64 == 0 && unsafe { self.cell.take(&self.number, 1, self.cell.token()) }
            {
                self.taken.fetch_add(1, Ordering::Relaxed);
            }
            if number == 3 && self.cell.withdraw(&self.number, WITHDRAWN) == 1 {
                self.withdrawn.fetch_add(1, Ordering::Relaxed);
            }
            self.found[usize::from(bias_state(&self.cell) == 0)].fetch_add(1, Ordering::Relaxed);
            now_and_then(round);
        }
        locked
    }

    /// Sets the number, or takes it if it is set.
    ///
    /// # Safety
    /// The calling thread has set the lowest bit of the word.
    unsafe fn set_or_take(&self) {
        if self.number.load(Ordering::Relaxed) != 1 {
            self.number.store(1, Ordering::Release);
            self.set.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the token is that of this thread, and only the thread that has set the bit makes
        // the number positive.
        } else if unsafe { self.cell.take_own(&self.number, 1, self.cell.token()) } {
            self.taken.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Makes the kernel abort the sequences that the signal interrupts.
extern "C" fn ignore(_: libc::c_int) {}

fn interrupt_by_signals(threads: &[&JoinHandle<u64>], over: impl Fn() -> bool) {
    let signal = libc::SIGRTMAX() - 3;
    // SAFETY: all-zero is a valid value; the handler does nothing; no other code uses the signal.
    unsafe {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        action.sa_sigaction = ignore as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
    while !over() {
        for thread in threads {
            // SAFETY: the thread has not been joined.
            unsafe { libc::pthread_kill(thread.as_pthread_t(), signal) };
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Two threads on the home CPU, one that moves all the time, and an occasional one on another CPU;
/// signals interrupt all of them. Runs for a number of changes, or for `PUNCTUAL_STRESS_SECONDS`.
#[test]
fn no_change_is_lost_however_threads_are_moved() {
    let Some((home, other)) = cpus() else { return };
    let other = other.unwrap_or(home);
    let load: &'static Load = Box::leak(Box::new(Load {
        cell: revoked(home),
        ends: OnceLock::new(),
        over: AtomicBool::new(false),
        protected: std::cell::UnsafeCell::new(0),
        number: AtomicU32::new(0),
        set: AtomicU64::new(0),
        taken: AtomicU64::new(0),
        withdrawn: AtomicU64::new(0),
        found: [const { AtomicU64::new(0) }; 2],
    }));
    let rounds = match std::env::var("PUNCTUAL_STRESS_SECONDS") {
        Ok(seconds) => {
            let seconds = Duration::from_secs(seconds.parse().expect("a number of seconds"));
            load.ends.set(Instant::now() + seconds).expect("it is set once");
            u64::MAX
        }
        Err(_) => 300_000,
    };
    let start = move |number: u32, rounds: u64, cpu: usize, now_and_then: fn(u64, [usize; 2])| {
        std::thread::spawn(move || {
            // Even if it panics, because the others would run forever.
            struct Over(&'static Load);
            impl Drop for Over {
                fn drop(&mut self) {
                    if std::thread::panicking() {
                        self.0.over.store(true, Ordering::Relaxed);
                    }
                }
            }
            let _over = Over(load);
            pin(cpu).unwrap();
            load.run(number, rounds, |round| now_and_then(round, [home, other]))
        })
    };
    let threads = [
        start(0, rounds, home, |round, _| {
            if round % 509 == 0 {
                yield_now()
            }
        }),
        start(1, rounds, home, |round, _| {
            if round % 263 == 0 {
                yield_now()
            }
        }),
        start(2, rounds / 100, home, |round, [home, other]| match round % 200 {
            0 => pin(other).unwrap(),
            20 => pin(home).unwrap(),
            40 => {
                // On any CPU that the kernel chooses.
                let mut both = CpuSet::new();
                [home, other].into_iter().for_each(|cpu| both.set(cpu));
                sched_setaffinity(None, &both).unwrap();
            }
            50 => std::thread::sleep(Duration::from_micros(300)),
            _ => {}
        }),
        start(3, rounds / 300, other, |round, _| {
            if round % 5 == 0 {
                std::thread::sleep(Duration::from_micros(100));
            }
        }),
    ];
    interrupt_by_signals(&threads.each_ref(), || threads.iter().any(JoinHandle::is_finished));
    let locked: u64 = threads.into_iter().map(|thread| thread.join().expect("it found no fault")).sum();
    // SAFETY: all threads have ended.
    assert_eq!(unsafe { *load.protected.get() }, locked, "two threads held the lock at the same time");
    let [set, taken, withdrawn] =
        [&load.set, &load.taken, &load.withdrawn].map(|count| count.load(Ordering::Relaxed));
    let left = u64::from(load.number.load(Ordering::Relaxed) == 1);
    assert_eq!(set, taken + withdrawn + left, "a number was lost, or two threads have it");
    println!("a number was taken {taken} times and withdrawn {withdrawn} times");
    let [revoked, biased] = load.found.each_ref().map(|found| found.load(Ordering::Relaxed));
    println!("found biased {biased} times, otherwise {revoked} times");
    assert!(biased > 0 && revoked > 0, "both happen: {biased}, {revoked}");
}
