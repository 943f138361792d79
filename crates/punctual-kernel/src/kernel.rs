//! Who runs: starting, switching, sleeping, and what interrupts do to that.

use core::cell::Cell;
use core::ptr;

use crate::interrupt::InterruptSlot;
use crate::ready::Ready;
use crate::slot::{Link, State, ThreadSlot, Wake};
use crate::timer::{Owner, Timers};
use crate::{Fault, Port};

/// The state of a kernel. A [port](Port) has one; everything is done through [`Kernel`]'s associated functions, [`Thread`],
/// and the objects that threads share.
///
/// [`Thread`]: crate::Thread
pub struct Kernel<P: Port> {
    pub(crate) threads: &'static [ThreadSlot<P>],
    pub(crate) interrupts: &'static [InterruptSlot<P>],
    pub(crate) ready: Ready<P>,
    pub(crate) timers: Timers<P>,
    /// The running thread. None is whoever has called `run`, or will.
    current: Link<P>,
    /// Where the registers of the caller of `run` are.
    outside: Cell<*mut u8>,
    is_running: Cell<bool>,
    stopping: Cell<bool>,
    /// Whether it is stopping or time is sliced: what a switch has to look at seldom, in one look.
    is_special: Cell<bool>,
    /// How many slots have ever been used, from the first on.
    used: Cell<usize>,
    /// The slots of threads that have ended, the longest ended first.
    free: (Link<P>, Link<P>),
    /// How many threads have not ended.
    alive: Cell<usize>,
    /// How long a thread runs before its peers, in nanoseconds; 0 if that is unlimited.
    slice: Cell<u64>,
}

// SAFETY: the crate accesses it with interrupts masked, on the one core or thread that the port lets in (see `Port`).
unsafe impl<P: Port> Sync for Kernel<P> {}

/// Interrupts are masked, as long as this exists, and the caller may access the kernel and the object it has named.
pub(crate) struct Section<P: Port> {
    pub(crate) kernel: &'static Kernel<P>,
    mask: P::Mask,
}

impl<P: Port> Section<P> {
    #[inline]
    pub(crate) fn enter(home: &P::Home) -> Self {
        // SAFETY: the section ends before the function that the kernel's user calls, or never, if that is of a thread that no kernel
        // runs any more.
        let kernel = unsafe { P::enter(home) };
        Self { kernel, mask: P::mask() }
    }

    /// Whether interrupts were masked before.
    #[inline]
    pub(crate) fn is_nested(&self) -> bool {
        P::was_masked(self.mask)
    }

    /// The thread that calls, if it may block.
    #[inline]
    pub(crate) fn blocker(&self) -> Option<&'static ThreadSlot<P>> {
        if P::was_masked(self.mask) { None } else { self.kernel.current.get() }
    }

    /// Switches to a thread that has become ready, if it goes before the caller and the caller may be preempted. In an interrupt
    /// handler or a masked section that is made good for at its end.
    #[inline]
    pub(crate) fn preempt(&self, by: &'static ThreadSlot<P>) {
        if self.kernel.is_special.get() {
            self.reschedule();
        } else if let Some(me) = self.blocker()
            && by.priority.get() > me.priority.get()
        {
            self.kernel.switch_unsliced(me, by);
        }
    }

    /// As `preempt`, where the caller's priority may have fallen below that of several threads.
    pub(crate) fn reschedule(&self) {
        if !P::was_masked(self.mask) {
            self.kernel.reschedule();
        }
    }
}

impl<P: Port> Drop for Section<P> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: of the `mask` in `enter`; what was masked after that is restored already, since sections end in reverse order.
        unsafe { P::restore(self.mask) };
    }
}

impl<P: Port> Kernel<P> {
    /// A kernel with room for so many threads, and for subscribers of interrupts with numbers below the length of `interrupts`.
    ///
    /// Only that of the [port](Port) ever runs.
    pub const fn new(threads: &'static [ThreadSlot<P>], interrupts: &'static [InterruptSlot<P>]) -> Self {
        assert!(threads.len() <= u16::MAX as usize, "a kernel has at most 65535 threads");
        Self {
            threads,
            interrupts,
            ready: Ready::new(),
            timers: Timers::new(),
            current: Cell::new(None),
            outside: Cell::new(ptr::null_mut()),
            is_running: Cell::new(false),
            stopping: Cell::new(false),
            is_special: Cell::new(false),
            used: Cell::new(0),
            free: (Cell::new(None), Cell::new(None)),
            alive: Cell::new(0),
            slice: Cell::new(0),
        }
    }

    /// Runs the threads that have been spawned, and those they spawn, until all have ended or one calls [`stop`](Self::stop).
    /// When no thread is ready, the core sleeps.
    ///
    /// After a stop the threads are where they were, and go on when this is called again.
    ///
    /// # Panics
    /// If it runs already.
    pub fn run() {
        // SAFETY: used in this function alone, which the kernel's user calls.
        let kernel = unsafe { P::enter(&P::HOME) };
        let mask = P::mask();
        assert!(!kernel.is_running.replace(true), "the kernel runs already");
        while !kernel.has_stopped() && kernel.alive.get() > 0 {
            match kernel.ready.highest() {
                Some(first) => kernel.switch(None, Some(first)),
                // SAFETY: this is the idle loop, and interrupts are masked.
                None => unsafe { P::idle() },
            }
        }
        kernel.is_running.set(false);
        // SAFETY: of `mask` above.
        unsafe { P::restore(mask) };
    }

    /// Has [`run`](Self::run) return: from a thread at once, from an interrupt handler or a masked section at its end.
    pub fn stop() {
        let section = Section::<P>::enter(&P::HOME);
        section.kernel.stopping.set(true);
        section.kernel.is_special.set(true);
        section.reschedule();
    }

    /// The time in nanoseconds, on the port's clock.
    pub fn now() -> u64 {
        P::now()
    }

    /// Runs `f` with interrupts masked, so that no other thread and no interrupt handler comes between. What `f` makes ready
    /// runs afterwards.
    pub fn masked<R>(f: impl FnOnce() -> R) -> R {
        let section = Section::<P>::enter(&P::HOME);
        let result = f();
        section.reschedule();
        result
    }

    /// Lets a thread run for so many nanoseconds at most before the others of its priority; without a limit if it is 0, as it
    /// is at first. It applies from the next switch on.
    pub fn set_time_slice(nanoseconds: u64) {
        let section = Section::<P>::enter(&P::HOME);
        section.kernel.slice.set(nanoseconds);
        section.kernel.is_special.set(nanoseconds != 0 || section.kernel.stopping.get());
    }

    /// Whether it is to stop, which is dealt with then.
    fn has_stopped(&self) -> bool {
        self.is_special.set(self.slice.get() != 0);
        self.stopping.take()
    }

    /// What the port calls for the timer's interrupt.
    ///
    /// # Safety
    /// With interrupts masked, by an interrupt handler that calls [`interrupt_end`](Self::interrupt_end) before it returns.
    pub unsafe fn timer_interrupt(&'static self) {
        self.expire();
    }

    /// What the port calls when it has dealt with all interrupts: switches to another thread if that goes first now.
    ///
    /// # Safety
    /// With interrupts masked, as the last thing that an interrupt handler does on the stack of the thread that it has
    /// interrupted, where everything that the thread may use is saved.
    #[inline]
    pub unsafe fn interrupt_end(&'static self) {
        self.reschedule();
    }

    /// Whether no thread is ready.
    #[cfg(feature = "sim")]
    pub(crate) fn is_idle(&self) -> bool {
        self.ready.highest().is_none() && !self.stopping.get()
    }

    /// Calls an interrupt handler, which is no thread whatever it has interrupted.
    pub(crate) fn outside_of_threads(&self, handler: impl FnOnce()) {
        let interrupted = self.current.take();
        handler();
        self.current.set(interrupted);
    }

    #[inline]
    pub(crate) fn current(&self) -> Option<&'static ThreadSlot<P>> {
        self.current.get()
    }

    #[inline(always)]
    fn reschedule(&'static self) {
        let Some(me) = self.current.get() else { return };
        if self.is_special.get() {
            return self.reschedule_specially(me);
        }
        // The caller is ready, so somebody is.
        if let Some(first) = self.ready.highest()
            && !first.is(me)
        {
            self.switch_unsliced(me, first);
        }
    }

    #[cold]
    #[inline(never)]
    fn reschedule_specially(&'static self, me: &'static ThreadSlot<P>) {
        if self.stopping.get() {
            return self.switch(Some(me), None);
        }
        let first = self.ready.highest();
        if first.is_some_and(|first| !first.is(me)) {
            self.switch(Some(me), first);
        } else if self.slice.get() != 0 {
            self.extend_slice(me);
        }
    }

    /// [`switch`](Self::switch) between threads, without slices.
    #[inline]
    pub(crate) fn switch_unsliced(&'static self, from: &'static ThreadSlot<P>, to: &'static ThreadSlot<P>) {
        self.check_stack(from);
        self.current.set(Some(to));
        // SAFETY: as in `switch`.
        unsafe { P::switch(from.context.as_ptr(), to.context.get()) };
    }

    /// Continues `to`, or the caller of `run`, and returns when somebody continues `from`, which is who calls.
    #[inline]
    pub(crate) fn switch(
        &'static self,
        from: Option<&'static ThreadSlot<P>>,
        to: Option<&'static ThreadSlot<P>>,
    ) {
        let save = match from {
            Some(from) => {
                self.check_stack(from);
                from.context.as_ptr()
            }
            None => self.outside.as_ptr(),
        };
        let context = match to {
            Some(to) => to.context.get(),
            None => self.outside.get(),
        };
        self.current.set(to);
        if self.is_special.get() {
            self.exchange_slices(from, to);
        }
        // SAFETY: interrupts are masked, as in all of this module. A context is saved when its thread is switched from and
        // continued once, when `current` becomes it again; the one of a new thread is prepared.
        unsafe { P::switch(save, context) };
    }

    #[inline]
    fn check_stack(&self, thread: &ThreadSlot<P>) {
        if P::GUARDED {
            return;
        }
        // SAFETY: the lowest word of a stack, which is there for good.
        if unsafe { thread.canary.get().read_volatile() } != CANARY {
            self.overflowed(thread);
        }
    }

    #[cold]
    fn overflowed(&self, thread: &ThreadSlot<P>) -> ! {
        // Once is enough: the port may want to switch once more.
        thread.canary.set(&INTACT);
        P::fault(Fault::StackOverflow(self.index(thread)))
    }

    /// The slot's number.
    pub(crate) fn index(&self, thread: &ThreadSlot<P>) -> usize {
        (ptr::from_ref(thread).addr() - self.threads.as_ptr().addr()) / size_of::<ThreadSlot<P>>()
    }

    /// Lets a thread run that has waited, or is new.
    #[inline]
    pub(crate) fn make_ready(&self, thread: &'static ThreadSlot<P>) {
        thread.state.set(State::Ready);
        self.ready.push_last(thread);
    }

    /// Has the calling thread, which is in no ring but that of what it waits for, wait until somebody makes it ready; or until
    /// its time is over.
    #[inline]
    pub(crate) fn suspend(
        &'static self,
        me: &'static ThreadSlot<P>,
        state: State,
        until: Option<u64>,
    ) -> Wake {
        if let Some(time) = until {
            self.timers.arm(&me.timer, time, Owner::Thread(me));
        }
        me.state.set(state);
        self.switch(Some(me), self.ready.highest());
        me.wake.get()
    }

    /// Ends a thread's wait otherwise than by its time.
    #[inline]
    pub(crate) fn wake(&'static self, thread: &'static ThreadSlot<P>, why: Wake) {
        if thread.timer.is_armed() {
            self.timers.disarm(&thread.timer);
        }
        thread.wake.set(why);
        self.make_ready(thread);
    }

    /// A thread's time is over.
    pub(crate) fn time_out(&self, thread: &'static ThreadSlot<P>) {
        if let Some(queue) = thread.queue.get() {
            queue.remove(thread);
        }
        thread.wake.set(Wake::TimedOut);
        self.make_ready(thread);
    }

    /// A slot without a thread.
    #[inline]
    pub(crate) fn take_slot(&self) -> Option<&'static ThreadSlot<P>> {
        let used = self.used.get();
        if let Some(slot) = self.threads.get(used) {
            self.used.set(used + 1);
            self.alive.set(self.alive.get() + 1);
            return Some(slot);
        }
        let slot = self.free.0.get()?;
        self.free.0.set(slot.next.take());
        self.alive.set(self.alive.get() + 1);
        Some(slot)
    }

    /// Gives back the slot of a thread that has ended. It is used again as late as possible, so that handles tell how the thread
    /// has ended for as long as possible.
    pub(crate) fn give_slot(&self, slot: &'static ThreadSlot<P>) {
        self.alive.set(self.alive.get() - 1);
        slot.next.set(None);
        match self.free.0.get().and(self.free.1.get()) {
            Some(last) => last.next.set(Some(slot)),
            None => self.free.0.set(Some(slot)),
        }
        self.free.1.set(Some(slot));
    }

    #[cold]
    fn exchange_slices(&self, from: Option<&'static ThreadSlot<P>>, to: Option<&'static ThreadSlot<P>>) {
        if self.slice.get() != 0 {
            self.keep_slice(from);
            self.begin_slice(to);
        }
    }

    /// A thread that is preempted goes on with what is left of its slice; any other has a new one next time.
    fn keep_slice(&self, thread: Option<&'static ThreadSlot<P>>) {
        if let Some(thread) = thread {
            let end = self.timers.slice_end.get();
            let goes_on = thread.state.get() == State::Ready && end != u64::MAX;
            thread.slice_left.set(if goes_on { end.saturating_sub(P::now()).max(1) } else { 0 });
        }
    }

    /// The running thread has had its turn.
    #[inline]
    pub(crate) fn forget_slice(&self) {
        if self.slice.get() != 0 {
            self.timers.slice_end.set(u64::MAX);
        }
    }

    #[cold]
    fn begin_slice(&self, thread: Option<&'static ThreadSlot<P>>) {
        let end = match thread.filter(|thread| Ready::has_peers(thread)) {
            Some(thread) => {
                let left = thread.slice_left.take();
                P::now().saturating_add(if left == 0 { self.slice.get() } else { left })
            }
            None => u64::MAX,
        };
        self.timers.slice_end.set(end);
        self.timers.program();
    }

    /// The running thread goes on: it may have to share from now on.
    #[cold]
    fn extend_slice(&self, me: &'static ThreadSlot<P>) {
        if Ready::has_peers(me) && self.timers.slice_end.get() == u64::MAX {
            self.begin_slice(Some(me));
        }
    }

    /// Lets the peers of the running thread go first, if it has run for long enough.
    pub(crate) fn end_slice(&self, now: u64) {
        if now < self.timers.slice_end.get() {
            return;
        }
        self.timers.slice_end.set(u64::MAX);
        // The running thread is the first of its priority, also if a higher one has just become ready.
        if let Some(me) = self.current.get() {
            self.ready.rotate(me);
        }
    }
}

/// For a thread whose overflow has been reported.
static INTACT: usize = CANARY;

/// What is in every byte of a stack below what has been used of it.
pub(crate) const PATTERN: u8 = 0xA5;

/// The same in a word. The lowest of a stack stays so.
pub(crate) const CANARY: usize = usize::from_ne_bytes([PATTERN; size_of::<usize>()]);
