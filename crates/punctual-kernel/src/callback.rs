//! Callbacks: functions that run at a priority, after a delay, periodically, or on an interrupt.

use core::cell::Cell;

use crate::interrupt::Subscriber;
use crate::kernel::Section;
use crate::timer::{Owner, Timer};
use crate::{Kernel, Port, Semaphore, Stack, SubscribeError, Thread};

type Link<P> = Cell<Option<&'static Callback<P>>>;

/// A thread that runs callbacks, one after the other in the order in which they became due.
///
/// Callbacks of one server do not interrupt each other; a callback that waits delays the others.
///
/// # Examples
///
#[cfg_attr(not(feature = "sim"), doc = "```ignore")]
#[cfg_attr(feature = "sim", doc = "```")]
/// # mod guide { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/guide.rs")); }
/// # use guide::*;
/// # static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
/// type Server = punctual_kernel::Server<Sim>;
/// type Callback = punctual_kernel::Callback<Sim>;
///
/// static EDGES: Semaphore = Semaphore::new(0, 100);
/// static SERVER: Server = Server::new();
/// static BLINK: Callback = Callback::new(&SERVER, |led| assert_eq!(led, 3), 3);
/// static EDGE: Callback = Callback::new(&SERVER, |_| EDGES.v().unwrap(), 0);
///
/// # sim::run(|| {
/// # Thread::spawn(5, &STACKS[1], |()| {
/// SERVER.start(12, &STACKS[0]).unwrap(); // callbacks of this server run at priority 12
/// BLINK.every(1_000, 500).unwrap(); // at 1000, 1500, 2000, … without drift
/// EDGE.subscribe_irq(2).unwrap(); // masked until the callback has run
/// Kernel::subscribe_irq(1, |_| EDGES.v().unwrap()).unwrap(); // in the handler itself
/// # sim::raise(2);
/// # sim::raise(1);
/// EDGES.p().unwrap();
/// EDGES.p().unwrap();
/// Thread::sleep_until(1_600).unwrap();
/// BLINK.cancel();
/// assert_eq!(BLINK.missed(), 0);
/// # Kernel::stop();
/// # }, ()).unwrap();
/// # Kernel::run();
/// # });
/// ```
pub struct Server<P: Port> {
    /// The first and the last due callback.
    due: (Link<P>, Link<P>),
    count: Semaphore<P>,
    is_started: Cell<bool>,
    home: P::Home,
}

// SAFETY: accessed with interrupts masked, on the one core or thread that the port lets in (see
// `Port`).
unsafe impl<P: Port> Sync for Server<P> {}

impl<P: Port> Server<P> {
    /// Creates a server without a thread. Due callbacks wait until it is started.
    pub const fn new() -> Self {
        Self {
            due: (Cell::new(None), Cell::new(None)),
            count: Semaphore::new(0, u32::MAX),
            is_started: Cell::new(false),
            home: P::HOME,
        }
    }

    /// Starts running the callbacks, at this priority.
    ///
    /// # Errors
    /// [`SubscribeError::Started`] if it is running already, [`SubscribeError::Spawn`] if the
    /// thread cannot be spawned.
    pub fn start<const SIZE: usize>(
        &'static self,
        priority: u8,
        stack: &'static Stack<P, SIZE>,
    ) -> Result<Thread<P>, SubscribeError> {
        {
            let _section = Section::<P>::enter(&self.home);
            if self.is_started.replace(true) {
                return Err(SubscribeError::Started);
            }
        }
        Thread::spawn(priority, stack, Self::serve, self).map_err(|error| {
            let _section = Section::<P>::enter(&self.home);
            self.is_started.set(false);
            SubscribeError::Spawn(error)
        })
    }

    fn serve(&'static self) {
        // A thread can wait, so the wait does not fail.
        while self.count.p().is_ok() {
            if let Some(callback) = self.take() {
                (callback.function)(callback.argument);
                callback.finished();
            }
        }
    }

    fn take(&'static self) -> Option<&'static Callback<P>> {
        let _section = Section::<P>::enter(&self.home);
        let first = self.due.0.get()?;
        self.due.0.set(first.next.take());
        first.is_due.set(false);
        Some(first)
    }

    fn push(&'static self, callback: &'static Callback<P>) {
        let _section = Section::<P>::enter(&self.home);
        match self.due.0.get().and(self.due.1.get()) {
            Some(last) => last.next.set(Some(callback)),
            None => self.due.0.set(Some(callback)),
        }
        self.due.1.set(Some(callback));
        // There are fewer callbacks than addresses, and each is in the list once, so this does not
        // overflow.
        let _ = self.count.v();
    }
}

impl<P: Port> Default for Server<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// A function that a [`Server`] calls with its argument.
///
/// If it becomes due again before it has begun to run, it counts one [missed](Self::missed) call,
/// and runs once.
pub struct Callback<P: Port> {
    server: &'static Server<P>,
    function: fn(usize),
    argument: usize,
    next: Link<P>,
    is_due: Cell<bool>,
    missed: Cell<u32>,
    timer: Timer<P>,
    /// 0 if the callback is not periodic.
    period: Cell<u64>,
    /// The interrupt that it is subscribed to, which is disabled until the callback has run.
    interrupt: Cell<Option<u32>>,
    home: P::Home,
}

// SAFETY: accessed with interrupts masked, on the one core or thread that the port lets in (see
// `Port`).
unsafe impl<P: Port> Sync for Callback<P> {}

impl<P: Port> Callback<P> {
    /// Creates a callback without a trigger.
    pub const fn new(server: &'static Server<P>, function: fn(usize), argument: usize) -> Self {
        Self {
            server,
            function,
            argument,
            next: Cell::new(None),
            is_due: Cell::new(false),
            missed: Cell::new(0),
            timer: Timer::new(),
            period: Cell::new(0),
            interrupt: Cell::new(None),
            home: P::HOME,
        }
    }

    /// Makes the callback due once, at `time` in nanoseconds of [`Kernel::now`]. Replaces an
    /// earlier request of this kind.
    pub fn at(&'static self, time: u64) {
        self.set(time, 0);
    }

    /// Makes the callback due once, after `delay` nanoseconds. Replaces an earlier request of this
    /// kind.
    pub fn after(&'static self, delay: u64) {
        self.set(P::now().saturating_add(delay), 0);
    }

    /// Makes the callback due at `first` and every `period` nanoseconds after that, on that grid
    /// even if it runs late. Replaces an earlier request of this kind.
    ///
    /// # Errors
    /// [`SubscribeError::Period`] if `period` is 0.
    pub fn every(&'static self, first: u64, period: u64) -> Result<(), SubscribeError> {
        if period == 0 {
            return Err(SubscribeError::Period);
        }
        self.set(first, period);
        Ok(())
    }

    /// Cancels the request of [`at`](Self::at), [`after`](Self::after) or [`every`](Self::every). A
    /// callback that is due already still runs.
    pub fn cancel(&'static self) {
        let section = Section::enter(&self.home);
        section.kernel.timers.disarm(&self.timer);
    }

    /// Makes the callback due on every interrupt of this number, which the interrupt controller
    /// disables until the callback has run.
    ///
    /// # Errors
    /// [`SubscribeError::NoSuchInterrupt`], [`SubscribeError::Taken`], and
    /// [`SubscribeError::Subscribed`] if it is subscribed to an interrupt already.
    pub fn subscribe_irq(&'static self, number: u32) -> Result<(), SubscribeError> {
        let section = Section::enter(&self.home);
        if let Some(other) = self.interrupt.get() {
            return Err(SubscribeError::Subscribed(other));
        }
        section.kernel.subscribe(number, Subscriber::Callback(self))?;
        self.interrupt.set(Some(number));
        Ok(())
    }

    /// Returns the number of times it became due again before its last start.
    pub fn missed(&'static self) -> u32 {
        let _section = Section::<P>::enter(&self.home);
        self.missed.get()
    }

    fn set(&'static self, time: u64, period: u64) {
        let section = Section::enter(&self.home);
        section.kernel.timers.disarm(&self.timer);
        self.period.set(period);
        section.kernel.timers.arm(&self.timer, time, Owner::Callback(self));
    }

    /// Handles the callback's time. Called with interrupts masked.
    pub(crate) fn expired(&'static self, kernel: &'static Kernel<P>, due: u64) {
        let period = self.period.get();
        if period > 0 {
            // The number of grid points since.
            let late = P::now().saturating_sub(due);
            let skipped = if late < period { 0 } else { late / period };
            self.miss(u32::try_from(skipped).unwrap_or(u32::MAX));
            let next = due.saturating_add(period.saturating_mul(skipped + 1));
            kernel.timers.arm(&self.timer, next, Owner::Callback(self));
        }
        self.make_due();
    }

    /// Handles the callback's interrupt. Called with interrupts masked.
    pub(crate) fn interrupted(&'static self, number: u32) {
        P::disable_interrupt(number);
        self.make_due();
    }

    /// Forgets its interrupt, so that a due call does not enable it again. Called with interrupts
    /// masked.
    pub(crate) fn unsubscribed(&self) {
        self.interrupt.set(None);
    }

    fn make_due(&'static self) {
        if self.is_due.replace(true) {
            self.miss(1);
        } else {
            self.server.push(self);
        }
    }

    fn miss(&self, times: u32) {
        self.missed.set(self.missed.get().saturating_add(times));
    }

    /// Enables the callback's interrupt again after it has run.
    fn finished(&'static self) {
        let _section = Section::<P>::enter(&self.home);
        if let Some(number) = self.interrupt.get() {
            P::enable_interrupt(number);
        }
    }
}
