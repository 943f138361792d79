//! Job slots: the storage for the arguments of jobs that are spawned and not yet started.
//!
//! A task with `capacity = N` has N slots, each with a [`Node`](crate::Node) in its level's queue.
//! Claiming a slot and freeing it take one atomic instruction each on a bit set. The lowest free
//! slot is claimed first, so a task that is spawned and run alternately stays in one cache line.
//!
//! Real-time safety: nothing here allocates, blocks or enters the kernel.

mod spare;

use core::mem::{ManuallyDrop, MaybeUninit};

use crate::Instant;
#[cfg(any(loom, target_pointer_width = "64"))]
use crate::atomic::AtomicU64;
use crate::atomic::{AtomicU32, Ordering, UnsafeCell};
use crate::current::CurrentWorker;
use crate::jobs::Popped;
use crate::level::Level;
use crate::timer::Node;
use crate::word_cell::WordCell;

/// A register of free bits, the unit of an atomic change.
#[cfg(any(loom, target_pointer_width = "64"))]
type Bits = AtomicU64;
#[cfg(not(any(loom, target_pointer_width = "64")))]
type Bits = AtomicU32;

/// The number of bits in a register.
const WIDTH: usize = Register::BITS as usize;
#[cfg(any(loom, target_pointer_width = "64"))]
type Register = u64;
#[cfg(not(any(loom, target_pointer_width = "64")))]
type Register = u32;

/// Returns the bits of register `word` that correspond to one of `slots` slots.
const fn bits(slots: usize, word: usize) -> Register {
    match slots.saturating_sub(word * WIDTH) {
        some if some < WIDTH => (1 << some) - 1,
        _ => Register::MAX,
    }
}

/// The `N` job slots of one task, with `W = N.div_ceil(64)` words of free bits.
///
/// Aligned, so that a spawn on another CPU transfers a single cache line for bits and arguments, if
/// the arguments are small. The spare comes first, so that its address, of which a sequence needs a
/// register, is also the base of the arguments.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Slots<A, const N: usize, const W: usize> {
    /// The [link](Popped::link) of the spare slot's node, 0 for no spare, or
    /// [`WITHHELD`](spare::WITHHELD).
    spare: AtomicU32,
    /// The node of slot 0; the nodes of a task are adjacent.
    base: u32,
    /// One bit per slot, set if the slot is free.
    free: [[Bits; 64 / WIDTH]; W],
    level: &'static Level,
    args: [UnsafeCell<MaybeUninit<A>>; N],
}

// SAFETY: a slot's arguments are accessed only by the thread that claimed the slot and by the
// thread that received the slot's node through the queue or the timer, never at the same time. The
// arguments move between threads: `A: Send`.
unsafe impl<A: Send, const N: usize, const W: usize> Sync for Slots<A, N, W> {}

/// Identifies one armed job: its node, which belongs to one task's slots, and the arming of that
/// node.
///
/// Other slots reject the handle:
///
/// ```
/// use punctual_core::{Instant, Jobs, Level, Node, Queue, Slots, Worker};
///
/// static WORKER: Worker = Worker::new(1);
/// static QUEUE: Queue = Queue::new();
/// static NODES: [Node; 3] = [const { Node::new() }; 3];
/// static LEVEL: Level = Level::new(1, &WORKER, &QUEUE, &NODES, &[], Jobs::of(&|_, _, _| None));
/// // SAFETY: nodes 0 and 1 belong to these slots alone.
/// static SPEEDS: Slots<f32, 2, 1> = unsafe { Slots::new(&LEVEL, 0) };
/// // SAFETY: node 2 belongs to these slots alone.
/// static NAMES: Slots<&str, 1, 1> = unsafe { Slots::new(&LEVEL, 2) };
///
/// let armed = SPEEDS.arm(0.5, Instant::from_ticks(1_000)).unwrap();
/// assert_eq!(NAMES.cancel(armed), None);
/// assert_eq!(SPEEDS.cancel(armed), Some(0.5));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Armed {
    node: &'static Node,
    key: u32,
}

impl Armed {
    /// Returns whether the job still waits for its time: it has not been released or canceled, and
    /// the run in which it was armed has not ended. A job that another thread moves to another time
    /// may count as released.
    #[inline]
    pub fn is_waiting(self) -> bool {
        self.node.is_armed(self.key)
    }
}

/// Arguments of a job, in the place where they wait: a slot, or a variable of the thread that
/// spawns the job.
///
/// The job reads them from there, so that a large message is copied once.
// Two words, which are passed in registers.
#[derive(Debug, Clone, Copy)]
pub struct Arguments {
    place: *mut (),
    /// The [link](Popped::link) of the slot's node; 0 outside of the slots.
    link: usize,
}

impl Arguments {
    /// Arguments at `place`, outside of the slots.
    #[inline(always)]
    pub const fn at(place: *mut ()) -> Self {
        Self { place, link: 0 }
    }

    /// Arguments of a task without parameters.
    #[inline(always)]
    pub const fn none() -> Self {
        Self::at(core::ptr::dangling_mut())
    }

    /// Returns a pointer to the arguments, whose type the caller knows.
    #[inline(always)]
    pub const fn place(self) -> *mut () {
        self.place
    }
}

impl<A, const N: usize, const W: usize> Slots<A, N, W> {
    /// Creates slots whose nodes start at `base` in `level`.
    ///
    /// # Safety
    /// The `N` nodes from `base` on belong to these slots alone: no other level has them, and
    /// neither do other slots, an [`Activation`](crate::Activation) or a
    /// [`Periodic`](crate::Periodic).
    ///
    /// # Panics
    /// If the level has fewer nodes, or `W` is not `N.div_ceil(64)`.
    #[cfg(not(loom))]
    pub const unsafe fn new(level: &'static Level, base: u32) -> Self {
        assert!(W == N.div_ceil(64), "W is the number of 64-bit words for N slots");
        assert!(base as usize + N <= level.capacity(), "the level has a node for each slot");
        Self {
            level,
            base,
            free: {
                let mut free = [const { [const { Bits::new(0) }; 64 / WIDTH] }; W];
                let (mut word, mut part) = (0, 0);
                while word < W {
                    free[word][part] = Bits::new(bits(N, word * 64 / WIDTH + part));
                    part += 1;
                    if part == 64 / WIDTH {
                        (word, part) = (word + 1, 0);
                    }
                }
                free
            },
            spare: AtomicU32::new(0),
            args: [const { UnsafeCell::new(MaybeUninit::uninit()) }; N],
        }
    }

    /// Creates slots whose nodes start at `base` in `level`.
    ///
    /// # Safety
    /// As without loom.
    #[cfg(loom)]
    pub unsafe fn new(level: &'static Level, base: u32) -> Self {
        assert!(base as usize + N <= level.capacity(), "the level has a node for each slot");
        Self {
            level,
            base,
            free: core::array::from_fn(|word| [Bits::new(bits(N, word))]),
            spare: AtomicU32::new(0),
            args: core::array::from_fn(|_| UnsafeCell::new(MaybeUninit::uninit())),
        }
    }

    /// Returns the level these jobs run at.
    #[inline]
    pub fn level(&self) -> &'static Level {
        self.level
    }

    /// Returns `true` if these are the slots whose nodes start at `base` in `level`.
    #[inline]
    pub fn are_at(&self, level: &'static Level, base: u32) -> bool {
        core::ptr::eq(self.level, level) && self.base == base
    }

    /// Stores the arguments of a job released at `release` (ns, 0 if the clock was not read);
    /// returns its node.
    ///
    /// # Errors
    /// Returns the arguments if every slot is taken.
    #[inline]
    pub fn put(&self, args: A, release: u64) -> Result<u32, A> {
        let args = ManuallyDrop::new(args);
        // SAFETY: they are used again only if they have not been moved.
        unsafe { self.put_from(&raw const *args, release) }.ok_or_else(|| ManuallyDrop::into_inner(args))
    }

    /// [`put`](Self::put) of the arguments at `args`, which are moved into the slot; `None` if
    /// every slot is taken.
    ///
    /// # Safety
    /// `args` is valid for reads, and the arguments there are not used again if they have been
    /// moved.
    #[inline]
    pub unsafe fn put_from(&self, args: *const A, release: u64) -> Option<u32> {
        // Read before the slot is claimed, so that both may be constants.
        let (level, base) = (self.level, self.base);
        let slot = self.claim()?;
        let node = base as usize + slot;
        // SAFETY: by this function's contract, and this thread has just claimed the slot. The level
        // has a node for each slot, as `new` has checked.
        unsafe {
            self.write(slot, args);
            level.linked(node + 1).set_time(release);
        }
        Some(node as u32)
    }

    /// [`put_from`](Self::put_from) from a job of the level, in the spare slot or the only one;
    /// `None` if that is not free. `release` is called if it is; without one, [`take`](Self::take)
    /// returns an arbitrary time.
    ///
    /// # Safety
    /// As for [`put_from`](Self::put_from). The calling thread, `me`, has
    /// [joined](crate::Partition::join) the partition of the level, whose cell is `cell`, and runs
    /// a job of the level.
    #[inline(always)]
    pub unsafe fn put_in_spare(
        &self,
        args: *const A,
        release: Option<impl FnOnce() -> u64>,
        cell: &impl WordCell,
        me: CurrentWorker,
    ) -> Option<u32> {
        // As in `put_from`.
        let (level, base) = (self.level, self.base);
        // SAFETY: by this function's contract.
        let link = unsafe {
            match N {
                1 => self.claim().map(|slot| slot + base as usize + 1),
                _ => self.claim_spare(cell, me),
            }
        }?;
        // SAFETY: by this function's contract, and this thread has just claimed the slot.
        Some(unsafe { self.place((level, base), link, args, release) })
    }

    /// [`put_in_spare`](Self::put_in_spare) in any free slot.
    ///
    /// # Safety
    /// As for [`put_in_spare`](Self::put_in_spare).
    #[inline]
    pub unsafe fn put_here(&self, args: *const A, release: Option<u64>) -> Option<u32> {
        // As in `put_from`.
        let (level, base) = (self.level, self.base);
        let slot = self.claim()?;
        if N > 1 {
            self.allow_spares();
        }
        let link = slot + base as usize + 1;
        // SAFETY: by this function's contract, and this thread has just claimed the slot.
        Some(unsafe { self.place((level, base), link, args, release.map(|release| move || release)) })
    }

    /// Fills the slot of the node with a [link](Popped::link); returns the node. Calls `release`
    /// after that, when nothing else has to be kept.
    ///
    /// # Safety
    /// As for [`put_from`](Self::put_from). This thread owns the slot; level and base are those of
    /// these slots.
    #[inline(always)]
    unsafe fn place(
        &self,
        (level, base): (&'static Level, u32),
        link: usize,
        args: *const A,
        release: Option<impl FnOnce() -> u64>,
    ) -> u32 {
        // SAFETY: by this function's contract. The level has a node for each slot, as `new` has
        // checked.
        unsafe {
            self.write(link.unchecked_sub(base as usize + 1), args);
            if let Some(release) = release {
                level.linked(link).write_time(release());
            }
        }
        (link as u32).wrapping_sub(1)
    }

    /// Stores the arguments of a job to be released at `time`.
    ///
    /// The caller then notifies the level's worker, see
    /// [`Partition::armed`](crate::Partition::armed).
    ///
    /// # Errors
    /// Returns the arguments if every slot is taken.
    pub fn arm(&self, args: A, time: Instant) -> Result<Armed, A> {
        let args = ManuallyDrop::new(args);
        // SAFETY: they are used again only if they have not been moved.
        unsafe { self.arm_from(&raw const *args, time) }.ok_or_else(|| ManuallyDrop::into_inner(args))
    }

    /// [`arm`](Self::arm) of the arguments at `args`, which are moved into the slot; `None` if
    /// every slot is taken.
    ///
    /// # Safety
    /// As for [`put_from`](Self::put_from).
    #[inline]
    pub unsafe fn arm_from(&self, args: *const A, time: Instant) -> Option<Armed> {
        // SAFETY: by this function's contract.
        let (armed, first) = unsafe { self.arm_unnoted(args, time) }?;
        if first {
            self.note(armed);
        }
        Some(armed)
    }

    /// [`arm_from`](Self::arm_from); returns `true` as well if the caller has to
    /// [note](Self::note) the job.
    ///
    /// # Safety
    /// As for [`put_from`](Self::put_from).
    #[inline(always)]
    pub unsafe fn arm_unnoted(&self, args: *const A, time: Instant) -> Option<(Armed, bool)> {
        // As in `put_from`.
        let (level, base) = (self.level, self.base);
        let slot = self.claim()?;
        // SAFETY: this thread has just claimed the slot, and may move the arguments, by this
        // function's contract.
        unsafe { self.write(slot, args) };
        // SAFETY: the level has a node for each slot, as `new` has checked.
        let node = unsafe { level.linked(base as usize + slot + 1) };
        let (key, first) = level.arm(node, time);
        Some((Armed { node, key }, first))
    }

    /// Lets the timekeeper of the level find an armed job.
    pub fn note(&self, armed: Armed) {
        if self.has_armed(armed) {
            self.level.note(armed.node);
        }
    }

    /// Cancels an armed job that has not been released yet. Returns `None` for a job of other
    /// slots.
    pub fn cancel(&self, armed: Armed) -> Option<A> {
        if !self.has_armed(armed) {
            return None;
        }
        let mut args = MaybeUninit::uninit();
        // SAFETY: the job was armed in these slots; there is room, and if the job was taken back,
        // its arguments are there.
        unsafe { self.cancel_into(armed, args.as_mut_ptr()).then(|| args.assume_init()) }
    }

    /// [`cancel`](Self::cancel) that moves the arguments to `args`; `false` if the job has been
    /// released or canceled.
    ///
    /// # Safety
    /// The job was armed in these slots, and `args` is valid for writes.
    pub unsafe fn cancel_into(&self, armed: Armed, args: *mut A) -> bool {
        // As in `put_from`.
        let (level, base) = (self.level, self.base as usize);
        if !level.disarm(armed.node, armed.key) {
            return false;
        }
        let node = level.position(armed.node);
        // SAFETY: disarming made this thread the owner of the slot, which holds arguments; the node
        // is one of this task's, and there is room for the arguments, by this function's contract.
        unsafe { self.read(node.unchecked_sub(base), args) };
        true
    }

    /// Moves an armed job to another time. Returns `false` if it has been released or canceled, or
    /// is a job of other slots.
    ///
    /// Two threads must not use copies of one `armed` at once: if one thread cancels the job while
    /// the other moves it, the next job armed in the slot may be released late.
    pub fn reschedule(&self, armed: Armed, time: Instant) -> bool {
        self.has_armed(armed) && self.level.rearm(armed.node, armed.key, time)
    }

    /// Returns whether the job was armed in these slots.
    #[inline]
    fn has_armed(&self, armed: Armed) -> bool {
        self.slot_of(armed) < N
    }

    /// Returns the slot of an armed job, or a number above those of all slots for a job of others.
    #[inline]
    fn slot_of(&self, armed: Armed) -> usize {
        // The task's nodes are contiguous.
        self.level.position(armed.node).wrapping_sub(self.base as usize)
    }

    /// Returns whether at most `limit` jobs are armed. A change by another thread in between may be
    /// missed.
    ///
    /// Fast if only the first `limit` slots are taken; they are claimed first.
    #[inline]
    pub fn has_at_most(&self, limit: usize) -> bool {
        self.are_free_from(limit) || self.armed() <= limit
    }

    /// Returns whether this slot and those above it are free.
    #[inline]
    fn are_free_from(&self, slot: usize) -> bool {
        let (first, below) = (slot / WIDTH, slot % WIDTH);
        (first..N.div_ceil(WIDTH)).all(|word| {
            let above = if word == first { Register::MAX << below } else { Register::MAX };
            let wanted = bits(N, word) & above;
            self.free.as_flattened()[word].load(Ordering::Relaxed) & wanted == wanted
        })
    }

    /// Returns the number of armed jobs. A change by another thread in between may be missed.
    pub fn armed(&self) -> usize {
        (self.base..self.base + N as u32).filter(|&node| self.level.node(node).due().is_some()).count()
    }

    /// Removes `job` from its slot: returns its arguments and its release time (ns, 0 if the clock
    /// was not read).
    ///
    /// # Safety
    /// The level's [`Run`](crate::Run) was called with `job`, whose node is one of this task's, and
    /// takes it once.
    #[inline]
    pub unsafe fn take(&self, job: Popped) -> (A, u64) {
        // SAFETY: the node is one of this task's, by this function's contract, and popping it hands
        // its slot over to the thread that popped it.
        unsafe {
            // Before the slot is freed: its next owner writes the time.
            let release = self.released(job);
            let mut args = MaybeUninit::uninit();
            self.read(self.slot_at(job.link().get()), args.as_mut_ptr());
            (args.assume_init(), release)
        }
    }

    /// Returns the arguments of `job` in their slot, which stays taken until it is
    /// [freed](Self::free).
    ///
    /// # Safety
    /// As for [`take`](Self::take).
    #[inline(always)]
    pub unsafe fn arguments(&self, job: Popped) -> Arguments {
        let link = job.link().get();
        // SAFETY: as in `take`.
        Arguments { place: unsafe { self.place_of(self.slot_at(link)) }.cast(), link }
    }

    /// Returns the release time of `job`, as [`take`](Self::take) does.
    ///
    /// # Safety
    /// As for [`take`](Self::take). The slot has not been freed: its next owner writes the time.
    #[inline]
    pub unsafe fn released(&self, job: Popped) -> u64 {
        // SAFETY: the node is one of this task's, by this function's contract.
        unsafe { self.level.linked(job.link().get()) }.time()
    }

    /// Returns the slot of the node with a [link](Popped::link).
    ///
    /// # Safety
    /// The node is one of this task's.
    #[inline(always)]
    unsafe fn slot_at(&self, link: usize) -> usize {
        // SAFETY: the link is the number of the node plus 1, and the task's nodes begin at `base`.
        unsafe { link.unchecked_sub(self.base as usize + 1) }
    }

    /// Returns `true` if `node` is one of this task's.
    #[inline]
    pub fn owns(&self, node: u32) -> bool {
        (self.base..self.base + N as u32).contains(&node)
    }

    /// Removes every waiting job and passes a pointer to its arguments to `each`, which moves them
    /// out or drops them; returns the number of jobs.
    ///
    /// # Safety
    /// No other thread uses the task or its level.
    pub unsafe fn clear(&self, mut each: impl FnMut(*mut A)) -> u32 {
        // SAFETY: by this function's contract.
        unsafe { self.clear_spare() };
        let mut cleared = 0;
        for slot in 0..N {
            let free = &self.free.as_flattened()[slot / WIDTH];
            if free.load(Ordering::Relaxed) & (1 << (slot % WIDTH)) == 0 {
                // SAFETY: with no spawn in progress a taken slot holds arguments, which `each`
                // moves or drops. The level has a node for each slot, as `new` has checked.
                unsafe {
                    // Before `each`: the destructor of the arguments may cancel the job.
                    self.level.linked(self.base as usize + slot + 1).forget();
                    each(self.place_of(slot));
                    self.free_slot(slot);
                }
                cleared += 1;
            }
        }
        cleared
    }

    #[inline(always)]
    fn claim(&self) -> Option<usize> {
        if N == 1 {
            // Acquire: as below. If the slot is taken, the swap leaves it taken.
            return (self.free[0][0].swap(0, Ordering::Acquire) != 0).then_some(0);
        }
        for word in 0..N.div_ceil(WIDTH) {
            let bits = &self.free.as_flattened()[word];
            let mut free = bits.load(Ordering::Relaxed);
            while free != 0 {
                // Acquire: the previous owner has finished reading the slot.
                match bits.compare_exchange_weak(
                    free,
                    free & (free - 1),
                    Ordering::Acquire,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => return Some(word * WIDTH + free.trailing_zeros() as usize),
                    Err(now) => free = now,
                }
            }
        }
        None
    }

    /// # Safety
    /// The calling thread has claimed the slot and may move the arguments out of `args`.
    #[inline(always)]
    unsafe fn write(&self, slot: usize, args: *const A) {
        // SAFETY: a claimed slot is in range, and this thread is its only user.
        unsafe {
            let place = self.args.get_unchecked(slot);
            place.with_mut(|cell| cell.cast::<A>().copy_from_nonoverlapping(args, 1));
        }
    }

    /// Moves the arguments out of a slot to `args`, and frees the slot.
    ///
    /// # Safety
    /// The calling thread owns the slot, the slot holds arguments, and `args` is valid for writes.
    #[inline]
    unsafe fn read(&self, slot: usize, args: *mut A) {
        // SAFETY: this thread owns the slot, which is in range and holds arguments, and there is
        // room for them, by this function's contract.
        unsafe {
            let place = self.args.get_unchecked(slot);
            place.with(|cell| args.copy_from_nonoverlapping(cell.cast(), 1));
            self.free_slot(slot);
        }
    }

    /// Returns a pointer to the arguments in a slot.
    ///
    /// # Safety
    /// The slot is in range, and the calling thread owns it.
    #[inline(always)]
    unsafe fn place_of(&self, slot: usize) -> *mut A {
        // SAFETY: by this function's contract.
        unsafe { self.args.get_unchecked(slot) }.with_mut(|cell| cell.cast())
    }

    /// # Safety
    /// The slot is in range, and the calling thread owns it and has moved the arguments out.
    #[inline(always)]
    unsafe fn free_slot(&self, slot: usize) {
        // SAFETY: the slot is in range, by this function's contract, so a word with its bit exists.
        let free = unsafe { self.free.as_flattened().get_unchecked(slot / WIDTH) };
        // Release: the next owner writes the slot after this one has read it.
        if N == 1 {
            // Only the owner changes the word while the slot is taken.
            free.store(1, Ordering::Release);
        } else {
            free.fetch_or(1 << (slot % WIDTH), Ordering::Release);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
