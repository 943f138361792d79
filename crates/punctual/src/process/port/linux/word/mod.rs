//! A partition's word that its own CPU changes without a locked instruction.
//!
//! Threads of a partition share one CPU, and changes by one CPU need no bus lock: between two of
//! its threads there is a context switch. A load, a comparison and a plain store are still not
//! enough, because the thread may be preempted or moved in between, and because threads on other
//! CPUs change the word as well. *Restartable sequences* ([`sequence`]) solve the first problem: if
//! the kernel preempts the thread, moves it or delivers a signal within one, the thread continues
//! at the sequence's abort handler, and nothing has been stored. The *bias state* solves the
//! second.
//!
//! # The bias state
//!
//! | bias state | who changes the word, and how |
//! |---|---|
//! | the home CPU | The word is *biased*: only threads on the home CPU, by sequences that find the bias state equal to their CPU, check the word, and change it by one plain instruction. |
//! | with [`REVOKED`] or a count | Threads on the home CPU by a locked instruction that ends a sequence which has checked the CPU. Others, which the bias state counts, by a locked instruction once `REVOKED` is set. |
//! | with [`PLAIN`] | All threads, by locked instructions: the cell is an atomic, and stays one until it is reset. |
//!
//! The bias state holds the number of the home CPU in its lowest bits, and above them the number of
//! threads that have entered, `REVOKED` and `PLAIN`. So it equals a thread's CPU only if the word
//! is biased *and* this is the home CPU: one comparison checks both.
//!
//! A thread on another CPU *enters* (adds [`ONE`]), and unless it finds `REVOKED` has the kernel
//! abort all sequences on the home CPU ([`barrier`]) and then sets `REVOKED`. It changes the word
//! and leaves (subtracts `ONE`). When the threads on the home CPU have changed the word
//! [`CHANGES_BEFORE_REBIAS`] times since the last thread entered, one of them biases it again: it
//! removes `REVOKED` by a compare-and-swap that finds no thread counted.
//!
//! # The instruction that changes the word
//!
//! The last instruction of a sequence is the only one that changes the word. There are two kinds:
//!
//! * [`swap`](WordCell::swap) and the operations that return the previous word compare the word
//!   with an expected value and store another.
//! * [`set_unless`](WordCell::set_unless) tests the word against a constant mask and then sets one
//!   bit by an OR with memory; [`clear`](WordCell::clear) clears one bit by an AND with memory. One
//!   instruction loads and stores the word, so there is no expected value: the OR would preserve a
//!   change between the test and itself. Such a change would still invalidate the *test*, and so
//!   the same conditions as for a store apply to the whole sequence.
//!
//! `clear` loads the word again after its sequence, where the thread may be preempted first. By
//! coherence this load returns the word that the AND has made or a later one in the modification
//! order. A ready mark or a waiter that was in the word before the AND is therefore seen, or
//! another thread has removed it after the AND, and so after it found the level vacated. A mark
//! that follows the AND was made by a thread that found the level vacated and that serves the mark;
//! seeing such a mark here does no harm.
//!
//! # Why the word is linearizable
//!
//! Let a *store* be the end of a sequence that found the bias state equal to its CPU, and a *locked
//! change* any other change. A locked change is atomic and acts on the memory that all CPUs see. It
//! remains to show that between the first load and the end of a store's sequence no other thread
//! changes the word, and that a locked change never misses a store that is still in a store buffer.
//!
//! * *On the home CPU.* Stores happen only on the home CPU: their sequences read the CPU, compare
//!   the bias state with it, and are aborted when the thread is moved after that. The number in it
//!   is constant from [`begin`] on, before which the word is not biased. Of two threads there, one
//!   has been switched out, which aborted its sequence. So stores, and locked changes on the home
//!   CPU, do not interleave; and each sees those before it, through the CPU's store buffer or its
//!   cache, and a locked instruction drains the buffer first.
//! * *On other CPUs.* Let thread Y change the word while the bias state counts it. The word cannot
//!   become biased during that time, because `REVOKED` is only removed where it is found with no
//!   thread counted. Y has set `REVOKED` after it entered, or found it set when it entered. Let B
//!   be the barrier after which that `REVOKED` was set, by Y or by a thread Z that was counted
//!   since before B. Since then a thread has been counted or `REVOKED` has been set, so the word
//!   has not been biased from Z's entering to Y's leaving. A sequence that ends with a store found
//!   the word biased, and so before Z entered, in the modification order of the state. It ended
//!   before B returned: B aborts the sequence of the thread that runs on the home CPU, and a thread
//!   that was switched out there was aborted by the switch. And its store has left the store
//!   buffer: B is a barrier on the home CPU if a thread of the process runs there, and otherwise
//!   the switch was one. So the store precedes Y's change, and Y sees it.
//! * *Biased again.* `REVOKED` is removed by a locked instruction that finds no thread counted. So
//!   all changes from other CPUs have been made, and a thread that finds the word biased after it
//!   sees them: loads are not reordered with loads. Locked changes on the home CPU, which are not
//!   counted, take place on the home CPU like all stores; this is why they end sequences, without
//!   which a thread could be moved just before.
//! * *The count does not overflow.* A thread that finds half of the possible count ends the
//!   process, so the count overflows only if as many threads again are between two instructions of
//!   `BiasedWord::enter`.
//!
//! # Other locations under the bias
//!
//! [`take`](WordCell::take) changes another location by a sequence, and
//! [`withdraw`](WordCell::withdraw) by a locked instruction between entering and leaving. The proof
//! holds for that location as for the word: two sequences do not interleave, and one that ends with
//! a store has found the word biased, so it is over, and its store visible, before a thread that
//! has entered changes the location. While the bias is revoked, `take` fails. The thread that sets
//! the location does so by a plain store where it has found 0. Other threads do not set it; a
//! `withdraw` in between leaves a mark, which may be lost. So that thread itself
//! [takes](WordCell::take_own) the number that it has set, without comparing it once more.
//!
//! # Jobs that require further checks
//!
//! If the jobs of an app have to be dropped, marked, watched or profiled, the cell is
//! [flagged](set_flagged). The flags follow the bias state in memory. A sequence that starts or
//! ends a job compares its CPU with both, as one number of 64 bits, and so fails unless no flag is
//! set: the check costs no further instruction. Critical sections compare the bias state alone.
//! [`UNBIASED`] is set together with [`PLAIN`], so that one comparison of the flags also shows that
//! the cell is an atomic and jobs require no further checks.
//!
//! A thread whose job has panicked flags the cell before it vacates a level, and no job may start
//! unchecked on what that job has left behind. Let Y flag the cell and then change the word, and
//! let a sequence X find this change. If Y changes the word on the home CPU, the sequence does not
//! interleave with the change. So X began after it, and compares the flags after they were set. If
//! Y is counted, X found the word biased, and a sequence that did before Y entered ended before Y's
//! change. So X found a bias state that follows the one that Y left behind, and loaded the flags
//! with it, after they were set. If the cell is an atomic, the flags are compared again after the
//! locked instruction, which acquires Y's change.
//!
//! # What a sequence leaves behind
//!
//! A sequence of `set_unless` or `clear` leaves its descriptor in the thread's record. The kernel
//! reads it when it next preempts the thread, finds the thread outside the sequence, and forgets
//! it. Only the descriptor's memory has to remain: a library with an app must not be unloaded
//! before. So a thread [forgets](forget_sequence) the descriptor when it leaves the app, and the
//! operations that foreign threads call clear it themselves.
//!
//! *Orderings.* x86-64 does not reorder loads with later accesses, nor stores with earlier ones; so
//! a sequence acquires and releases. It is no barrier between a store and a later load, which no
//! C++ or Rust atomic without a following fence promises either: the protocol has fences where it
//! needs them, and the models in `punctual-core`, in which changes have no more than their declared
//! ordering, verify it.
//!
//! *Progress.* No thread ever waits for another. A sequence may be aborted repeatedly, for example
//! by a debugger that steps through it; after [`ATTEMPTS`] the thread enters like any other.
//!
//! `tests/biased_word` explores a model of all this with store buffers, preemption and migration
//! at every instruction, and finds a lost change as soon as one of these conditions is dropped.
//!
//! # Real-time safety
//!
//! A thread that enters may make a system call that interrupts the home CPU, for about a
//! microsecond, if a thread of the process runs there; in the kernel it may wait for others that
//! make the same call. This happens at most once in `CHANGES_BEFORE_REBIAS` changes from the home
//! CPU. So only an app of one partition has its word biased: there, a thread that enters is a
//! foreign thread, whose spawn enters the kernel anyway to wake a worker, or a thread of the app
//! that an administrator has moved.

mod barrier;
mod sequence;

use std::sync::atomic::{AtomicIsize, AtomicU32, AtomicU64, Ordering};

use punctual_core::{Clearing, Masks, Setting, SharedWord, WordCell};

use sequence::{End, Taken};

/// The cell is an atomic.
const PLAIN: u32 = 1 << 31;
/// No sequence that has found the word biased is in progress.
const REVOKED: u32 = 1 << 30;
/// Flag: as [`PLAIN`].
const UNBIASED: u32 = 1;
/// Flag: jobs require further checks.
const FLAGGED: u32 = 2;
/// One thread that has entered.
const ONE: u32 = 1 << 13;
/// The number of threads that have entered, in units of `ONE`.
const COUNT: u32 = REVOKED - ONE;
/// The home CPU. Linux on x86-64 supports 8192 CPUs.
const HOME: u32 = ONE - 1;
/// Value of the home CPU while none is known.
const NOWHERE: u32 = HOME;
/// Number of changes from the home CPU before the word is biased again.
const CHANGES_BEFORE_REBIAS: u32 = 1024;
/// Number of attempts of a sequence before the thread enters.
const ATTEMPTS: u32 = 16;

/// Cell of a partition's word. See the module.
#[derive(Debug)]
#[repr(C)]
pub struct BiasedWord {
    word: AtomicU64,
    bias_state: AtomicU32,
    /// [`UNBIASED`] and [`FLAGGED`]. Jobs are started and ended by sequences that find the home CPU
    /// and 0 in the bias state and this field, by one comparison.
    flags: AtomicU32,
    /// Number of changes from the home CPU until the word is biased again. Only a hint.
    left: AtomicU32,
    /// Offset of each thread's record from the thread pointer, or 0 if threads have no record.
    /// Constant while threads use the cell.
    rseq: AtomicIsize,
}

// Layout that `sequence` relies on.
const _: () = {
    assert!(std::mem::offset_of!(BiasedWord, word) == 0);
    assert!(std::mem::offset_of!(BiasedWord, bias_state) == 8);
    assert!(std::mem::offset_of!(BiasedWord, flags) == 12);
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
    match (&ready, cell.bias_state.load(Ordering::Relaxed) & PLAIN) {
        // Replaces `NOWHERE`. Relaxed: `bias` publishes it.
        (&Ok(Some(cpu)), 0) => drop(cell.bias_state.fetch_and(!HOME | cpu, Ordering::Relaxed)),
        // Counted threads continue by locked instructions, as all do now, and no thread biases the
        // word again.
        _ => {
            cell.bias_state.fetch_or(PLAIN, Ordering::Relaxed);
            // Release: a thread that finds it finds the cell plain.
            cell.flags.fetch_or(UNBIASED, Ordering::Release);
        }
    }
    ready.map(drop)
}

/// Biases the word to CPU 0, unless `PUNCTUAL_RSEQ` is `0`. The calling thread gets a record that
/// names this CPU and that no kernel reads or updates.
///
/// For `cargo xtask check instructions`, which counts the instructions of a biased word under
/// valgrind and in virtual time. Valgrind has no restartable sequences, and in virtual time one
/// thread runs the app, so no sequence has to be aborted.
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
    let rseq = RECORD.with(|record| sequence::offset_of(record.as_ptr().addr()));
    // SAFETY: by this function's contract; the record of the one thread that uses the cell is
    // there.
    unsafe { cell.allow(rseq) };
    cell.bias_state.fetch_and(!HOME, Ordering::Relaxed);
    cell.bias();
}

/// Has jobs started and ended with further checks. See [`WordCell::CHECKS_JOBS`].
pub(crate) fn set_flagged(cell: &PartitionWord) {
    // Acquire and release: see `Runtime::clear_job_flags`.
    cell.flags.fetch_or(FLAGGED, Ordering::AcqRel);
}

/// Ends the effect of [`set_flagged`].
pub(crate) fn clear_flagged(cell: &PartitionWord) {
    // As in `set_flagged`.
    cell.flags.fetch_and(!FLAGGED, Ordering::AcqRel);
}

/// Removes the descriptor that the calling thread's last sequence may have left behind: for a
/// thread of the partition that leaves the app, since the program may be unloaded afterwards.
pub(crate) fn forget_sequence(cell: &PartitionWord) {
    let rseq = cell.rseq.load(Ordering::Relaxed);
    if rseq != 0 {
        // SAFETY: the record of the calling thread is there.
        unsafe { sequence::forget(rseq) };
    }
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
        self.rseq.store(rseq, Ordering::Relaxed);
        self.left.store(CHANGES_BEFORE_REBIAS, Ordering::Relaxed);
        self.flags.fetch_and(!UNBIASED, Ordering::Relaxed);
        // No sequence is in progress, because none has begun after the last reset.
        self.bias_state.store(REVOKED | NOWHERE, Ordering::Relaxed);
    }

    /// See [`bias`].
    #[cold]
    fn bias(&self) {
        let home = self.bias_state.load(Ordering::Relaxed) & HOME;
        if home == NOWHERE {
            return;
        }
        // Fails if the cell is plain, if it is biased, or if a thread is counted. Acquire: a thread
        // that finds the word biased sees the changes of all that were counted. Release: and those
        // that this thread knows of.
        let _ = self.bias_state.compare_exchange(REVOKED | home, home, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Returns `true` if the cell is an atomic.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        self.bias_state.load(Ordering::Relaxed) & PLAIN != 0
    }

    /// Swaps by a sequence if the word is biased; returns `true` if it has swapped.
    #[inline(always)]
    fn try_store(&self, from: u64, to: u64) -> bool {
        // SAFETY: the cell is not plain, so `allow` was called, with the offset of the records that
        // the C library has registered.
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

    /// Makes `change` in any bias state; returns the previous word, as an error if it was not the
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
        self.bias_state.fetch_sub(ONE, Ordering::Release);
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
        let before = self.bias_state.fetch_add(ONE, Ordering::SeqCst);
        if before & COUNT >= COUNT / 2 {
            barrier::too_many_threads();
        }
        if before & REVOKED == 0 {
            barrier::abort_sequences(before & HOME);
            // Release: a thread that finds it sees the stores before the barrier.
            self.bias_state.fetch_or(REVOKED, Ordering::SeqCst);
        }
        self.left.store(CHANGES_BEFORE_REBIAS, Ordering::Relaxed);
    }
}

/// Returns the offset of a record that names no CPU, so that every sequence with it fails.
///
/// It replaces the C library's before the first reset, or if the library does not support records.
#[cold]
#[inline(never)]
fn no_record() -> isize {
    thread_local! {
        static RECORD: std::cell::Cell<[u32; 8]> = const { std::cell::Cell::new([u32::MAX; 8]) };
    }
    // The thread pointer of the calling thread; another thread's record is elsewhere.
    RECORD.with(|record| sequence::offset_of(record.as_ptr().addr()))
}

// SAFETY: see "Why the word is linearizable".
unsafe impl WordCell for BiasedWord {
    type Dispatch = SharedWord;
    /// Offset of a record of the thread from its thread pointer.
    type Token = isize;

    const CHECKS_JOBS: bool = true;

    const EMPTY: Self = Self {
        word: AtomicU64::new(0),
        bias_state: AtomicU32::new(PLAIN),
        flags: AtomicU32::new(UNBIASED),
        left: AtomicU32::new(0),
        rseq: AtomicIsize::new(0),
    };

    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        self.word.load(order)
    }

    #[inline(always)]
    fn swap(&self, from: u64, to: u64, order: Ordering) -> Result<(), u64> {
        if self.is_plain() {
            return self.word.compare_exchange_weak(from, to, order, Ordering::Relaxed).map(drop);
        }
        if self.try_store(from, to) {
            return Ok(());
        }
        match self.swap_slowly(from, to) {
            word if word == from => Ok(()),
            word => Err(word),
        }
    }

    #[inline(always)]
    fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        if self.is_plain() {
            return self.word.fetch_and(bits, order);
        }
        let word = self.word.load(Ordering::Relaxed);
        if self.try_store(word, word & bits) {
            return word;
        }
        self.and_slowly(bits)
    }

    #[inline(always)]
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        if self.is_plain() {
            return self.word.fetch_or(bits, order);
        }
        let word = self.word.load(Ordering::Relaxed);
        if self.try_store(word, word | bits) {
            return word;
        }
        self.or_slowly(bits)
    }

    #[inline]
    fn fetch_sub(&self, number: u64, order: Ordering) -> u64 {
        if self.is_plain() {
            return self.word.fetch_sub(number, order);
        }
        let (Ok(word) | Err(word)) = self.make(Change::Sub(number));
        word
    }

    #[inline(always)]
    fn token(&self) -> isize {
        match self.rseq.load(Ordering::Relaxed) {
            0 => no_record(),
            rseq => rseq,
        }
    }

    #[inline(always)]
    unsafe fn set_unless<M: Masks>(&self, rseq: isize) -> Setting {
        // SAFETY: a record of the calling thread is there, by this function's contract. If the cell
        // may be biased, the kernel has registered the record, or it names no CPU: then the thread
        // has obtained it before `allow`.
        unsafe { sequence::set_unless::<M>(self, rseq) }
    }

    #[inline(always)]
    unsafe fn clear<M: Masks>(&self, rseq: isize) -> Clearing {
        // SAFETY: as in `set_unless`.
        unsafe { sequence::clear::<M>(self, rseq) }
    }

    #[inline(always)]
    unsafe fn take(&self, number: &AtomicU32, from: u32, rseq: isize) -> bool {
        // SAFETY: as in `set_unless`.
        if unsafe { sequence::take(self, rseq, number, from) } {
            return true;
        }
        let take = || number.compare_exchange(from, 0, Ordering::AcqRel, Ordering::Relaxed);
        sequence::is_plain(self) && take().is_ok()
    }

    #[inline(always)]
    unsafe fn take_own(&self, number: &AtomicU32, from: u32, rseq: isize) -> bool {
        // SAFETY: as in `set_unless`. If the number is positive, it is `from`, by this function's
        // contract.
        match unsafe { sequence::take_own(self, rseq, number) } {
            Taken::Yes => true,
            Taken::No => false,
            Taken::Plain => {
                let take = || number.compare_exchange(from, 0, Ordering::AcqRel, Ordering::Relaxed);
                from.cast_signed() > 0 && take().is_ok()
            }
        }
    }

    #[cold]
    fn withdraw(&self, number: &AtomicU32, to: u32) -> u32 {
        if self.is_plain() {
            return number.swap(to, Ordering::Acquire);
        }
        self.enter();
        let before = number.swap(to, Ordering::Acquire);
        self.bias_state.fetch_sub(ONE, Ordering::Release);
        before
    }

    unsafe fn reset(&self) {
        self.word.store(0, Ordering::Relaxed);
        self.bias_state.store(PLAIN, Ordering::Relaxed);
        self.flags.store(UNBIASED, Ordering::Relaxed);
        self.rseq.store(barrier::records().unwrap_or(0), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
