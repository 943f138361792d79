//! Scheduling: starting, switching, sleeping, and the effects of interrupts.

use core::cell::Cell;
use core::ptr;

use crate::interrupt::InterruptSlot;
use crate::rank::Rank;
use crate::ready::Ready;
use crate::slot::{Link, State, ThreadSlot, Wake};
use crate::timer::{Owner, Timers};
use crate::{Fault, Port};

/// The state of a kernel. A [port](Port) has one; programs use [`Kernel`]'s associated functions,
/// [`Thread`], and the objects that threads share.
///
/// [`Thread`]: crate::Thread
// The order of the fields matters: see `Ready`.
#[repr(C)]
pub struct Kernel<P: Port> {
    pub(crate) ready: Ready<P>,
    /// The running thread, on the fast path: a switch checks this field only. `None` if no thread
    /// runs or a special condition holds, and at times spuriously.
    plain: Link<P>,
    /// The running thread. `None` stands for the caller of `run`, before, during and after it.
    current: Link<P>,
    /// The slots without a thread, those whose threads ended longest ago first. Initially empty.
    free: (Link<P>, Link<P>),
    are_slots_linked: Cell<bool>,
    /// `true` if all threads may have ended.
    has_thread_ended: Cell<bool>,
    threads: &'static [ThreadSlot<P>],
    pub(crate) interrupts: &'static [InterruptSlot<P>],
    pub(crate) timers: Timers<P>,
    /// The saved context of the caller of `run`.
    outside: Cell<*mut u8>,
    is_running: Cell<bool>,
    stopping: Cell<bool>,
    /// The time slice among threads of equal priority, in nanoseconds; 0 if unlimited.
    slice: Cell<u64>,
}

// SAFETY: the crate accesses it with interrupts masked, on the one core or thread that the port
// lets in (see `Port`).
unsafe impl<P: Port> Sync for Kernel<P> {}

/// Masks interrupts as long as it exists; the caller may access the kernel and the given object.
pub(crate) struct Section<P: Port> {
    pub(crate) kernel: &'static Kernel<P>,
    mask: P::Mask,
}

impl<P: Port> Section<P> {
    #[inline]
    pub(crate) fn enter(home: &P::Home) -> Self {
        // SAFETY: the section ends before the function that the kernel's user calls, or never, if
        // it belongs to a thread that no kernel runs any longer.
        let kernel = unsafe { P::enter(home) };
        Self { kernel, mask: P::mask() }
    }

    /// Returns `true` if interrupts were masked before.
    #[inline]
    pub(crate) fn is_nested(&self) -> bool {
        P::was_masked(self.mask)
    }

    /// Returns the calling thread, if it may block.
    #[inline]
    pub(crate) fn blocker(&self) -> Option<&'static ThreadSlot<P>> {
        if P::was_masked(self.mask) { None } else { self.kernel.current.get() }
    }

    /// Switches to a thread of this rank that has become ready, if it precedes the caller and the
    /// caller may be preempted. In an interrupt handler or a masked section the switch is postponed
    /// to its end.
    #[inline]
    pub(crate) fn preempt(&self, by: &'static ThreadSlot<P>, rank: Rank) {
        if self.is_nested() {
            return;
        }
        match self.kernel.plain.get() {
            Some(me) if rank < me.rank.get() => self.kernel.switch_plainly(me, by),
            Some(_) => {}
            None => self.kernel.reschedule_specially(),
        }
    }

    /// As `preempt`, for a caller whose priority may have fallen below that of several threads.
    pub(crate) fn reschedule(&self) {
        if !P::was_masked(self.mask) {
            self.kernel.reschedule();
        }
    }
}

impl<P: Port> Drop for Section<P> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the value of the `mask` in `enter`; later masks are restored already, since
        // sections end in reverse order.
        unsafe { P::restore(self.mask) };
    }
}

impl<P: Port> Kernel<P> {
    /// Creates a kernel with slots for threads, and for subscribers of interrupts with numbers
    /// below the length of `interrupts`.
    ///
    /// Only the [port](Port)'s kernel ever runs.
    pub const fn new(threads: &'static [ThreadSlot<P>], interrupts: &'static [InterruptSlot<P>]) -> Self {
        assert!(threads.len() <= u16::MAX as usize, "a kernel has at most 65535 threads");
        Self {
            ready: Ready::new(),
            plain: Cell::new(None),
            current: Cell::new(None),
            free: (Cell::new(None), Cell::new(None)),
            are_slots_linked: Cell::new(false),
            has_thread_ended: Cell::new(true),
            threads,
            interrupts,
            timers: Timers::new(),
            outside: Cell::new(ptr::null_mut()),
            is_running: Cell::new(false),
            stopping: Cell::new(false),
            slice: Cell::new(0),
        }
    }

    /// Runs the threads that have been spawned, and those they spawn, until all have ended or one
    /// calls [`stop`](Self::stop). When no thread is ready, the core sleeps.
    ///
    /// After a stop the threads keep their state, and continue when this is called again.
    ///
    /// # Panics
    /// If the kernel is running already.
    pub fn run() {
        // SAFETY: used in this function only, which the kernel's user calls.
        let kernel = unsafe { P::enter(&P::HOME) };
        // Unmasked: a caller that survives the panic can still wait.
        assert!(!kernel.is_running.replace(true), "the kernel runs already");
        let mask = P::mask();
        while !kernel.has_stopped() {
            match kernel.ready.highest() {
                Some(first) => kernel.switch(None, Some(first)),
                None if kernel.have_all_ended() => break,
                // SAFETY: this is the idle loop, and interrupts are masked.
                None => unsafe { P::idle() },
            }
        }
        kernel.is_running.set(false);
        // SAFETY: the value of `mask` above.
        unsafe { P::restore(mask) };
    }

    /// Makes [`run`](Self::run) return: from a thread at once, from an interrupt handler or a
    /// masked section at its end.
    pub fn stop() {
        let section = Section::<P>::enter(&P::HOME);
        section.kernel.stopping.set(true);
        section.kernel.plain.set(None);
        section.reschedule();
    }

    /// Returns the time in nanoseconds, on the port's clock.
    pub fn now() -> u64 {
        P::now()
    }

    /// Runs `f` with interrupts masked, so that no other thread and no interrupt handler runs in
    /// between. Threads that `f` makes ready run afterwards.
    pub fn masked<R>(f: impl FnOnce() -> R) -> R {
        let section = Section::<P>::enter(&P::HOME);
        let result = f();
        section.reschedule();
        result
    }

    /// Limits the time for which a thread runs before the others of its priority, in nanoseconds; 0
    /// means unlimited, the default. Applies from the next switch on.
    pub fn set_time_slice(nanoseconds: u64) {
        let section = Section::<P>::enter(&P::HOME);
        section.kernel.slice.set(nanoseconds);
        section.kernel.plain.set(None);
    }

    /// Returns `true` if a stop was requested, and clears the request.
    fn has_stopped(&self) -> bool {
        self.stopping.take()
    }

    /// Returns `true` if there is no thread. Takes a step for each slot, once after a thread has
    /// ended.
    fn have_all_ended(&self) -> bool {
        let all =
            self.has_thread_ended.get() && self.threads.iter().all(|slot| slot.state.get() == State::Ended);
        self.has_thread_ended.set(all);
        all
    }

    /// Handles the timer interrupt; called by the port.
    ///
    /// # Safety
    /// Called with interrupts masked, by an interrupt handler that calls
    /// [`interrupt_end`](Self::interrupt_end) before it returns.
    pub unsafe fn timer_interrupt(&'static self) {
        self.expire();
    }

    /// Switches to another thread if it goes first now; called by the port once all interrupts are
    /// handled.
    ///
    /// # Safety
    /// Called with interrupts masked, as the last action of an interrupt handler on the stack of
    /// the interrupted thread, with all state saved that the thread may use.
    #[inline]
    pub unsafe fn interrupt_end(&'static self) {
        self.reschedule();
    }

    /// Returns `true` if no thread is ready.
    #[cfg(feature = "sim")]
    pub(crate) fn is_idle(&self) -> bool {
        self.ready.highest().is_none() && !self.stopping.get()
    }

    /// Calls an interrupt handler, which is not a thread, whatever it has interrupted.
    pub(crate) fn outside_of_threads(&self, handler: impl FnOnce()) {
        struct Interrupted<'a, P: Port>(&'a Link<P>, Option<&'static ThreadSlot<P>>);

        // Also if the handler panics, which in a simulation ends the interrupted thread.
        impl<P: Port> Drop for Interrupted<'_, P> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }

        let _interrupted = Interrupted(&self.current, self.current.take());
        handler();
    }

    #[inline]
    pub(crate) fn current(&self) -> Option<&'static ThreadSlot<P>> {
        self.current.get()
    }

    #[inline(always)]
    fn reschedule(&'static self) {
        let Some(me) = self.plain.get() else { return self.reschedule_specially() };
        // The caller is ready, so there is a ready thread.
        if let Some(first) = self.ready.highest()
            && !first.is(me)
        {
            self.switch_plainly(me, first);
        }
    }

    #[cold]
    #[inline(never)]
    fn reschedule_specially(&'static self) {
        let Some(me) = self.current.get() else { return };
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

    /// Returns `true` if a thread runs, time is not sliced, and no stop was requested.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.plain.get().is_some()
    }

    /// [`switch`](Self::switch) between threads without special conditions.
    #[inline]
    pub(crate) fn switch_plainly(&'static self, from: &'static ThreadSlot<P>, to: &'static ThreadSlot<P>) {
        self.check_stack(from);
        self.plain.set(Some(to));
        self.current.set(Some(to));
        // SAFETY: as in `switch`.
        unsafe { P::switch(from.context.as_ptr(), to.context.get()) };
    }

    /// Continues `to`, or the caller of `run`, and returns when `from`, which is the caller, is
    /// continued.
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
        if self.slice.get() != 0 {
            self.exchange_slices(from, to);
        } else {
            // `None` after a call of `stop`.
            self.plain.set(to);
        }
        // SAFETY: interrupts are masked, as in all of this module. A context is saved when the
        // kernel switches away from its thread and continued once, when `current` becomes that
        // thread again; the context of a new thread is prepared.
        unsafe { P::switch(save, context) };
    }

    #[inline]
    fn check_stack(&self, thread: &ThreadSlot<P>) {
        if P::GUARDED {
            return;
        }
        // SAFETY: the lowest word of a stack, which is a static.
        if unsafe { thread.canary.get().read_volatile() } != CANARY {
            self.overflowed(thread);
        }
    }

    #[cold]
    fn overflowed(&self, thread: &ThreadSlot<P>) -> ! {
        // Reports once: the port may need to switch once more.
        thread.canary.set(&INTACT);
        P::fault(Fault::StackOverflow(self.index(thread)))
    }

    /// Returns the slot's number.
    fn index(&self, thread: &ThreadSlot<P>) -> usize {
        (ptr::from_ref(thread).addr() - self.threads.as_ptr().addr()) / size_of::<ThreadSlot<P>>()
    }

    /// Returns the number of the running thread's slot, if this address is in the `below` bytes
    /// below its stack or the lowest `within` bytes of it.
    #[cfg(feature = "linux")]
    pub(crate) fn overflowed_slot(&self, address: usize, below: usize, within: usize) -> Option<usize> {
        let thread = self.current.get()?;
        let bottom = thread.canary.get().addr();
        (bottom.wrapping_sub(below)..bottom.wrapping_add(within))
            .contains(&address)
            .then(|| self.index(thread))
    }

    /// Returns the slot with this address, if any.
    pub(crate) fn slot_at(&self, address: usize) -> Option<&'static ThreadSlot<P>> {
        let offset = address.wrapping_sub(self.threads.as_ptr().addr());
        if !offset.is_multiple_of(size_of::<ThreadSlot<P>>()) {
            return None;
        }
        self.threads.get(offset / size_of::<ThreadSlot<P>>())
    }

    /// Makes a thread ready that has waited, or is new.
    #[inline]
    pub(crate) fn make_ready(&self, thread: &'static ThreadSlot<P>) {
        thread.state.set(State::Ready);
        self.ready.push_last(thread);
    }

    /// Suspends the calling thread, which is in no ring but that of its wait queue, until another
    /// one makes it ready or its timeout expires.
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

    /// Ends a thread's wait for a reason other than its timeout.
    #[inline]
    pub(crate) fn wake(&'static self, thread: &'static ThreadSlot<P>, why: Wake) {
        if thread.timer.is_armed() {
            self.timers.disarm(&thread.timer);
        }
        thread.wake.set(why);
        self.make_ready(thread);
    }

    /// Ends a thread's wait by its timeout.
    pub(crate) fn time_out(&self, thread: &'static ThreadSlot<P>) {
        if let Some(queue) = thread.queue.get() {
            queue.remove(thread);
        }
        thread.wake.set(Wake::TimedOut);
        self.make_ready(thread);
    }

    /// Takes a slot without a thread. Also returns `None` before `link_slots`.
    #[inline]
    pub(crate) fn take_slot(&self) -> Option<&'static ThreadSlot<P>> {
        let slot = self.free.0.get()?;
        self.free.0.set(slot.lower.take());
        Some(slot)
    }

    /// Links all slots, if that has not been done. Returns `true` if it did.
    pub(crate) fn link_slots(&self) -> bool {
        let is_first = !self.are_slots_linked.replace(true);
        if is_first {
            self.threads.iter().for_each(|slot| self.give_slot(slot));
        }
        is_first
    }

    /// Returns the slot of a thread that has ended. It is reused as late as possible, so that
    /// handles report the thread's result for as long as possible.
    pub(crate) fn give_slot(&self, slot: &'static ThreadSlot<P>) {
        self.has_thread_ended.set(true);
        match self.free.0.get().and(self.free.1.get()) {
            Some(last) => last.lower.set(Some(slot)),
            None => self.free.0.set(Some(slot)),
        }
        self.free.1.set(Some(slot));
    }

    #[cold]
    fn exchange_slices(&self, from: Option<&'static ThreadSlot<P>>, to: Option<&'static ThreadSlot<P>>) {
        self.keep_slice(from);
        self.begin_slice(to);
    }

    /// Saves the rest of a preempted thread's slice; any other thread gets a new slice next time.
    fn keep_slice(&self, thread: Option<&'static ThreadSlot<P>>) {
        if let Some(thread) = thread {
            let end = self.timers.slice_end.get();
            let goes_on = thread.state.get() == State::Ready && end != u64::MAX;
            thread.slice_left.set(if goes_on { end.saturating_sub(P::now()).max(1) } else { 0 });
        }
    }

    /// Runs the next thread of the running one's priority, if any. Called by a thread that may be
    /// preempted.
    #[inline]
    pub(crate) fn pass_on(&'static self) {
        let Some(me) = self.plain.get() else { return self.pass_on_specially() };
        let next = self.ready.rotate(me);
        if !next.is(me) {
            self.switch_plainly(me, next);
        }
    }

    #[cold]
    #[inline(never)]
    fn pass_on_specially(&'static self) {
        let Some(me) = self.current.get() else { return };
        let next = self.ready.rotate(me);
        if !next.is(me) {
            // The running thread has had its turn.
            if self.slice.get() != 0 {
                self.timers.slice_end.set(u64::MAX);
            }
            self.switch(Some(me), Some(next));
        }
    }

    #[cold]
    fn begin_slice(&self, thread: Option<&'static ThreadSlot<P>>) {
        let end = match thread.filter(|thread| !Ready::is_alone(thread)) {
            Some(thread) => {
                let left = thread.slice_left.take();
                P::now().saturating_add(if left == 0 { self.slice.get() } else { left })
            }
            None => u64::MAX,
        };
        self.timers.slice_end.set(end);
        self.timers.program();
    }

    /// Extends the slice of the running thread, which may have to share from now on.
    #[cold]
    fn extend_slice(&self, me: &'static ThreadSlot<P>) {
        if !Ready::is_alone(me) && self.timers.slice_end.get() == u64::MAX {
            self.begin_slice(Some(me));
        }
    }

    /// Lets the peers of the running thread go first, if its slice has ended.
    pub(crate) fn end_slice(&self, now: u64) {
        if now < self.timers.slice_end.get() {
            return;
        }
        self.timers.slice_end.set(u64::MAX);
        // The running thread is the first of its priority, even if a higher one has just become
        // ready.
        if let Some(me) = self.current.get() {
            self.ready.rotate(me);
        }
    }
}

/// The canary of a thread whose overflow has been reported.
static INTACT: usize = CANARY;

/// The value of every unused byte of a stack.
pub(crate) const PATTERN: u8 = 0xA5;

/// The same value in a word. The lowest word of a stack retains it.
pub(crate) const CANARY: usize = usize::from_ne_bytes([PATTERN; size_of::<usize>()]);
