//! A partition's word that its own CPU changes without a locked instruction.
//!
//! Threads of a partition share one CPU, and changes by one CPU need no bus lock: between two of
//! its threads there is a context switch. A load, a comparison and a plain store are still not
//! enough, because the thread may be preempted or moved in between, and because threads on other
//! CPUs change the word as well. *Restartable sequences* ([`sequence`]) solve the first problem: if
//! the kernel preempts the thread, moves it or delivers a signal within one, the thread continues
//! at the sequence's abort handler, and nothing has been stored. The *gate* solves the second.
//!
//! # The gate
//!
//! | gate | who changes the word, and how |
//! |---|---|
//! | 0 | The word is *biased*: only threads on the home CPU, by sequences that check the CPU, this gate and the expected word, and end with a plain store. |
//! | otherwise | Threads on the home CPU by a locked instruction that ends a sequence which has checked the CPU. Others, which the gate counts, by a locked instruction once [`REVOKED`] is set. |
//! | with [`PLAIN`] | All threads, by locked instructions: the cell is an atomic, and stays one until it is reset. |
//!
//! A thread on another CPU *enters* (adds 1), and unless it finds `REVOKED` has the kernel abort
//! all sequences on the home CPU ([`barrier`]) and then sets `REVOKED`. It changes the word and
//! leaves (subtracts 1). When the threads on the home CPU have changed the word [`PATIENCE`] times
//! since the last thread entered, one of them biases it again: it swaps `REVOKED`, with no thread
//! counted, for 0.
//!
//! # Why the word is linearizable
//!
//! Let a *store* be the end of a sequence that found the gate 0, and a *locked change* any other
//! change. A locked change is atomic and acts on the memory that all CPUs see. It remains to show
//! that between the load and the end of a store's sequence no other thread changes the word, and
//! that a locked change never misses a store that is still in a store buffer.
//!
//! * *On the home CPU.* Stores happen only on the home CPU, because their sequences check the CPU
//!   and are aborted when the thread is moved. Of two threads there, one has been switched out,
//!   which aborted its sequence. So stores, and locked changes on the home CPU, do not interleave;
//!   and each sees those before it, through the CPU's store buffer or its cache, and a locked
//!   instruction drains the buffer first.
//! * *On other CPUs.* Let thread Y change the word while the gate counts it. The gate cannot become
//!   0 during that time, because it is only swapped from exactly `REVOKED`. Y has set `REVOKED`
//!   after it entered, or found it set when it entered. Let B be the barrier after which that
//!   `REVOKED` was set, by Y or by a thread Z that was counted since before B. Since then a thread
//!   has been counted or `REVOKED` has been set, so the gate has not been 0 from Z's entering to
//!   Y's leaving. A sequence that ends with a store found the gate 0, and so before Z entered, in
//!   the modification order of the gate. It ended before B returned: B aborts the sequence of the
//!   thread that runs on the home CPU, and a thread that was switched out there was aborted by the
//!   switch. And its store has left the store buffer: B is a barrier on the home CPU if a thread of
//!   the process runs there, and otherwise the switch was one. So the store precedes Y's change,
//!   and Y sees it.
//! * *Biased again.* The swap of `REVOKED` for 0 is a locked instruction and finds no thread
//!   counted. So all changes from other CPUs have been made, and a thread that finds the gate 0
//!   after it sees them: loads are not reordered with loads. Locked changes on the home CPU, which
//!   are not counted, take place on the home CPU like all stores; this is why they end sequences,
//!   without which a thread could be moved just before.
//!
//! *Orderings.* x86-64 does not reorder loads with later accesses, nor stores with earlier ones; so
//! a sequence acquires and releases. It is no barrier between a store and a later load, which no
//! C++ or Rust atomic without a following fence promises either: the protocol has fences where it
//! needs them, and the models in `punctual-core`, in which changes have no more than their declared
//! ordering, verify it.
//!
//! *Progress.* No thread ever waits for another. A sequence may be aborted repeatedly, for example
//! by a debugger that steps through it; after [`ATTEMPTS`] the thread enters the gate like any
//! other.
//!
//! `tests/it/biased_word` explores a model of all this with store buffers, preemption and migration
//! at every instruction, and finds a lost change as soon as one of these conditions is dropped.
//!
//! # Real-time safety
//!
//! A thread that enters may make a system call that interrupts the home CPU, for about a
//! microsecond, if a thread of the process runs there; in the kernel it may wait for others that
//! make the same call. This happens at most once in `PATIENCE` changes from the home CPU. So only
//! an app of one partition has its word biased: there, a thread that enters is a foreign thread,
//! whose spawn enters the kernel anyway to wake a worker, or a thread of the app that an
//! administrator has moved.

mod barrier;
mod sequence;

use std::sync::atomic::{AtomicIsize, AtomicU32, AtomicU64, Ordering};

use punctual_core::WordCell;

use sequence::{End, FAILED};

/// The cell is an atomic.
const PLAIN: u32 = 1 << 31;
/// No sequence that has found the gate 0 is in progress.
const REVOKED: u32 = 1 << 30;
/// Value of `home` while no CPU is known. A thread's record never contains it.
const NOWHERE: u32 = i32::MAX as u32;
/// Number of changes from the home CPU before the word is biased again.
const PATIENCE: u32 = 1024;
/// Number of attempts of a sequence before the thread enters the gate.
const ATTEMPTS: u32 = 16;

/// Cell of a partition's word. See the module.
#[derive(Debug)]
#[repr(C)]
pub struct BiasedWord {
    word: AtomicU64,
    gate: AtomicU32,
    /// The CPU that may be biased to. Known before the word is first biased, and constant from then
    /// on.
    home: AtomicU32,
    /// Offset of the kernel's record of each thread from the thread pointer. Constant while threads
    /// use the cell.
    rseq: AtomicIsize,
    /// Number of changes from the home CPU until the word is biased again. Only a hint.
    left: AtomicU32,
}

// Layout that `sequence` relies on.
const _: () = {
    assert!(std::mem::offset_of!(BiasedWord, word) == 0);
    assert!(std::mem::offset_of!(BiasedWord, gate) == 8);
    assert!(std::mem::offset_of!(BiasedWord, home) == 12);
    assert!(std::mem::offset_of!(BiasedWord, rseq) == 16);
};

/// A change of the word.
#[derive(Debug, Clone, Copy)]
enum Change {
    Swap(u64, u64),
    And(u64),
    Or(u64),
    Sub(u64),
}

impl Change {
    /// Returns the new word for `word`, if the change applies.
    fn of(self, word: u64) -> Option<u64> {
        match self {
            Self::Swap(from, to) => (word == from).then_some(to),
            Self::And(bits) => Some(word & bits),
            Self::Or(bits) => Some(word | bits),
            Self::Sub(number) => Some(word.wrapping_sub(number)),
        }
    }

    /// Makes the change by a locked instruction; returns the previous word, as an error if it was
    /// not the expected one.
    fn make(self, word: &AtomicU64) -> Result<u64, u64> {
        const ORDER: Ordering = Ordering::AcqRel;
        match self {
            Self::Swap(from, to) => word.compare_exchange(from, to, ORDER, Ordering::Relaxed),
            Self::And(bits) => Ok(word.fetch_and(bits, ORDER)),
            Self::Or(bits) => Ok(word.fetch_or(bits, ORDER)),
            Self::Sub(number) => Ok(word.fetch_sub(number, ORDER)),
        }
    }
}

/// Cell of a partition's word on this target.
pub(crate) type PartitionWord = BiasedWord;

/// Allows the word to be biased, once a CPU is [known](begin), until the cell is reset, if the C
/// library supports it.
///
/// # Safety
/// No other thread uses the cell.
pub(crate) unsafe fn allow(cell: &PartitionWord) {
    if let Some(rseq) = barrier::registered() {
        // SAFETY: by this function's contract; the C library has registered the records.
        unsafe { cell.allow(rseq) };
    }
}

/// Sets the CPU to bias the word to, or none: called once after [`allow`].
///
/// # Errors
/// Returns the reason why the word cannot be biased. Then the cell is an atomic.
pub(crate) fn begin(cell: &PartitionWord, cpu: Option<usize>) -> Result<(), String> {
    let ready = cpu.map(barrier::prepare).transpose();
    match (&ready, cell.gate.load(Ordering::Relaxed) & PLAIN) {
        (&Ok(Some(cpu)), 0) => cell.home.store(cpu, Ordering::Relaxed),
        // Counted threads continue by locked instructions, as all do now, and no thread biases the
        // word again.
        _ => drop(cell.gate.fetch_or(PLAIN, Ordering::Relaxed)),
    }
    ready.map(drop)
}

/// Biases the word to CPU 0, unless `PUNCTUAL_RSEQ` is `0`. The calling thread gets a record that
/// names this CPU and that no kernel reads or updates.
///
/// For `cargo xtask instructions`, which counts the instructions of a biased word under valgrind
/// and in virtual time. Valgrind has no restartable sequences, and in virtual time one thread runs
/// the app, so no sequence has to be aborted.
///
/// # Safety
/// No other thread uses the cell until it is reset.
#[cfg(punctual_counted)]
pub(crate) unsafe fn bias_for_counting(cell: &PartitionWord) {
    use std::cell::Cell;
    thread_local! {
        /// In the layout of the kernel's `struct rseq`: the CPU is 0, and no sequence is announced.
        static RECORD: Cell<[u64; 4]> = const { Cell::new([0; 4]) };
    }
    if std::env::var_os("PUNCTUAL_RSEQ").is_some_and(|rseq| rseq == "0") {
        return;
    }
    let thread: usize;
    // SAFETY: on x86-64 the word that the thread pointer points to is the thread pointer.
    unsafe {
        std::arch::asm!("mov {}, fs:[0]", out(reg) thread, options(nostack, readonly, preserves_flags))
    };
    let record = RECORD.with(|record| record.as_ptr().addr());
    // SAFETY: by this function's contract; the record of the one thread that uses the cell is
    // there.
    unsafe { cell.allow(record.wrapping_sub(thread) as isize) };
    cell.home.store(0, Ordering::Relaxed);
    cell.bias();
}

/// Biases the word if permitted and no thread on another CPU is about to change it.
pub(crate) fn bias(cell: &PartitionWord) {
    cell.bias();
}

impl BiasedWord {
    /// See [`allow`].
    ///
    /// # Safety
    /// As there; the records of all threads are at `rseq`.
    unsafe fn allow(&self, rseq: isize) {
        self.home.store(NOWHERE, Ordering::Relaxed);
        self.rseq.store(rseq, Ordering::Relaxed);
        self.left.store(PATIENCE, Ordering::Relaxed);
        // No sequence is in progress, because none has begun after the last reset.
        self.gate.store(REVOKED, Ordering::Relaxed);
    }

    /// See [`bias`].
    #[cold]
    fn bias(&self) {
        // Fails if the cell is plain, if it is biased, or if a thread is counted. Acquire: a thread
        // that finds the gate 0 sees the changes of all that were counted. Release: and those that
        // this thread knows of.
        let _ = self.gate.compare_exchange(REVOKED, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Swaps by a sequence if the word is biased; returns the previous word, or [`FAILED`].
    #[inline(always)]
    fn try_store(&self, from: u64, to: u64) -> u64 {
        // SAFETY: the gate was 0, so `allow` was called, with the offset of the records that the C
        // library has registered.
        unsafe { sequence::store(self, from, to) }
    }

    // Each is a separate function that takes and returns words in registers, so that its callers
    // keep nothing in memory.

    #[cold]
    #[inline(never)]
    fn swap_slowly(&self, from: u64, to: u64) -> u64 {
        let (Ok(word) | Err(word)) = self.make(Change::Swap(from, to));
        word
    }

    #[cold]
    #[inline(never)]
    fn and_slowly(&self, bits: u64) -> u64 {
        let (Ok(word) | Err(word)) = self.make(Change::And(bits));
        word
    }

    #[cold]
    #[inline(never)]
    fn or_slowly(&self, bits: u64) -> u64 {
        let (Ok(word) | Err(word)) = self.make(Change::Or(bits));
        word
    }

    /// Makes `change` for any gate; returns the previous word, as an error if it was not the
    /// expected one.
    #[cold]
    fn make(&self, change: Change) -> Result<u64, u64> {
        for _ in 0..ATTEMPTS {
            let word = self.word.load(Ordering::Relaxed);
            let Some(to) = change.of(word) else { return Err(word) };
            // SAFETY: the cell is not plain, so `allow` was called, see `try_store`.
            match unsafe { sequence::locked(self, word, to) } {
                End::Done => {
                    self.count();
                    return Ok(word);
                }
                End::Changed | End::Aborted => {}
                End::Elsewhere => break,
            }
        }
        self.enter();
        let made = change.make(&self.word);
        // Release: the thread that biases the word sees the change.
        self.gate.fetch_sub(1, Ordering::Release);
        made
    }

    /// Counts a locked change from the home CPU, and biases the word if no other CPU has changed it
    /// for long.
    fn count(&self) {
        match self.left.load(Ordering::Relaxed) {
            0 => self.bias(),
            left => self.left.store(left - 1, Ordering::Relaxed),
        }
    }

    /// Counts this thread, and ensures that no thread stores.
    fn enter(&self) {
        // Acquire, if it finds `REVOKED`: sees the stores made before it was set. And before the
        // barrier, in the single total order: a sequence that begins later finds the count.
        let before = self.gate.fetch_add(1, Ordering::SeqCst);
        if before & REVOKED == 0 {
            // The home at the last bias, which `before` follows.
            barrier::abort_sequences(self.home.load(Ordering::Relaxed));
            // Release: a thread that finds it sees the stores before the barrier.
            self.gate.fetch_or(REVOKED, Ordering::SeqCst);
        }
        self.left.store(PATIENCE, Ordering::Relaxed);
    }
}

// SAFETY: see "Why the word is linearizable".
unsafe impl WordCell for BiasedWord {
    const EMPTY: Self = Self {
        word: AtomicU64::new(0),
        gate: AtomicU32::new(PLAIN),
        home: AtomicU32::new(0),
        rseq: AtomicIsize::new(0),
        left: AtomicU32::new(0),
    };

    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        self.word.load(order)
    }

    #[inline(always)]
    fn swap(&self, from: u64, to: u64, order: Ordering) -> Result<(), u64> {
        match self.gate.load(Ordering::Relaxed) {
            0 => match self.try_store(from, to) {
                word if word == from => return Ok(()),
                FAILED => {}
                word => return Err(word),
            },
            gate if gate & PLAIN != 0 => {
                return self.word.compare_exchange_weak(from, to, order, Ordering::Relaxed).map(drop);
            }
            _ => {}
        }
        match self.swap_slowly(from, to) {
            word if word == from => Ok(()),
            word => Err(word),
        }
    }

    #[inline(always)]
    fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        match self.gate.load(Ordering::Relaxed) {
            0 => {
                let word = self.word.load(Ordering::Relaxed);
                if self.try_store(word, word & bits) == word {
                    return word;
                }
            }
            gate if gate & PLAIN != 0 => return self.word.fetch_and(bits, order),
            _ => {}
        }
        self.and_slowly(bits)
    }

    #[inline(always)]
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        match self.gate.load(Ordering::Relaxed) {
            0 => {
                let word = self.word.load(Ordering::Relaxed);
                if self.try_store(word, word | bits) == word {
                    return word;
                }
            }
            gate if gate & PLAIN != 0 => return self.word.fetch_or(bits, order),
            _ => {}
        }
        self.or_slowly(bits)
    }

    #[inline]
    fn fetch_sub(&self, number: u64, order: Ordering) -> u64 {
        if self.gate.load(Ordering::Relaxed) & PLAIN != 0 {
            return self.word.fetch_sub(number, order);
        }
        let (Ok(word) | Err(word)) = self.make(Change::Sub(number));
        word
    }

    unsafe fn reset(&self) {
        self.word.store(0, Ordering::Relaxed);
        self.gate.store(PLAIN, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
