//! A simulated processor on the host: its clock stands still while threads compute, and interrupts
//! come where an [`Environment`] generates them.
//!
//! All threads run on one thread of the host, so a run with the same environment is reproducible.
//! Between two calls of the kernel, and at each of them, there is a [`Point`] where an interrupt
//! may come; since a thread shares state with others only by such calls, these are all the
//! distinguishable points.
//!
//! A panic in a thread ends the simulation and propagates out of [`run`].

use core::any::Any;
use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicU64, Ordering};
use std::boxed::Box;
use std::panic::{self, AssertUnwindSafe};
use std::thread_local;
use std::vec::Vec;

use crate::{InterruptSlot, Kernel, Port, ThreadSlot};

/// The number of threads that a simulated kernel has slots for.
pub const THREADS: usize = 16;

/// The number of interrupts that a simulated kernel has slots for.
pub const INTERRUPTS: usize = 8;

/// The port: a simulated processor.
#[derive(Debug)]
pub struct Sim;

/// A point where an interrupt may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Just before the kernel masks interrupts, or when a thread calls [`point`].
    Before,
    /// Just after the kernel unmasks interrupts.
    After,
    /// No thread is ready.
    Idle,
}

/// An event at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// No further event. At [`Point::Idle`], the clock advances to the alarm.
    Nothing,
    /// An interrupt other than the timer's.
    Interrupt(u32),
    /// The clock advances by this number of nanoseconds. If the alarm is due then, the timer
    /// interrupts.
    Advance(u64),
}

/// The environment of the processor.
pub trait Environment {
    /// Returns the next event. Called repeatedly until it returns [`Event::Nothing`].
    fn next(&mut self, point: Point) -> Event;

    /// Called when a thread's call of the kernel takes effect: interrupts have been masked.
    fn takes_effect(&mut self) {}

    /// Called when no thread is ready.
    fn idles(&mut self) {}
}

/// An environment without events, except that time passes while no thread is ready.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Environment for Quiet {
    fn next(&mut self, _: Point) -> Event {
        Event::Nothing
    }
}

struct World {
    /// Distinguishes this simulation from all others, earlier and concurrent.
    id: u64,
    kernel: Kernel<Sim>,
    is_masked: Cell<bool>,
    clock: Cell<u64>,
    alarm: Cell<u64>,
    /// The enabled interrupts, one bit each, and those pending while disabled.
    enabled: Cell<u32>,
    raised: Cell<u32>,
    environment: RefCell<Box<dyn Environment>>,
    panic: RefCell<Option<Box<dyn Any + Send>>>,
}

thread_local! {
    static WORLD: Cell<Option<&'static World>> = const { Cell::new(None) };
}

/// Returns the simulation that runs on this thread of the host.
fn world() -> &'static World {
    WORLD.get().expect("no simulation runs on this thread: call punctual_kernel::sim::run")
}

/// Simulates a processor with a new kernel, and runs `f` on it. `f` spawns threads and calls
/// [`Kernel::run`].
///
/// # Panics
/// If `f` or a thread panics, or if no thread can ever run again while the kernel runs.
pub fn run<R>(f: impl FnOnce() -> R) -> R {
    run_in(Quiet, f)
}

/// As [`run`], in an environment.
///
/// # Panics
/// As [`run`], and if a simulation runs already on this thread of the host.
pub fn run_in<R>(environment: impl Environment + 'static, f: impl FnOnce() -> R) -> R {
    static NEXT_ID: AtomicU64 = AtomicU64::new(1);

    assert!(WORLD.get().is_none(), "a simulation runs already on this thread");
    let threads: &'static mut [ThreadSlot<Sim>] =
        Vec::leak((0..THREADS).map(|_| ThreadSlot::new()).collect::<Vec<_>>());
    let interrupts: &'static mut [InterruptSlot<Sim>] =
        Vec::leak((0..INTERRUPTS).map(|_| InterruptSlot::new()).collect::<Vec<_>>());
    let memory = (&raw mut *threads, &raw mut *interrupts);
    // SAFETY: just leaked. The mutable references are no longer used.
    let (threads, interrupts) = unsafe { (&*memory.0, &*memory.1) };
    let world = Box::into_raw(Box::new(World {
        id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        kernel: Kernel::new(threads, interrupts),
        is_masked: Cell::new(false),
        clock: Cell::new(0),
        alarm: Cell::new(u64::MAX),
        enabled: Cell::new(0),
        raised: Cell::new(0),
        environment: RefCell::new(Box::new(environment)),
        panic: RefCell::new(None),
    }));
    // SAFETY: it lives until the end of this function.
    WORLD.set(Some(unsafe { &*world }));
    let outcome = panic::catch_unwind(AssertUnwindSafe(f));
    WORLD.set(None);
    // SAFETY: no thread of this simulation runs any longer, `enter` admits no code to its kernel
    // since `WORLD` no longer refers to it, and objects that refer to the slots have the id of this
    // simulation, which `enter` never admits again.
    let world = unsafe {
        let world = Box::from_raw(world);
        drop((Box::from_raw(memory.0), Box::from_raw(memory.1)));
        world
    };
    match (world.panic.into_inner(), outcome) {
        (Some(payload), _) | (None, Err(payload)) => panic::resume_unwind(payload),
        (None, Ok(result)) => result,
    }
}

/// A point where interrupts may come, for a thread that computes for long.
pub fn point() {
    world().point(Point::Before);
}

/// Raises an interrupt, like a device started by a thread.
pub fn raise(number: u32) {
    let world = world();
    world.raised.set(world.raised.get() | 1 << number);
    if !world.is_masked.get() {
        world.deliver_raised();
    }
}

impl World {
    fn point(&'static self, point: Point) {
        // No events after a panic.
        while !self.has_panicked() {
            self.deliver_raised();
            let event = self.environment.borrow_mut().next(point);
            match event {
                Event::Nothing => return,
                Event::Interrupt(number) => self.raised.set(self.raised.get() | 1 << number),
                Event::Advance(time) => self.advance(self.clock.get().saturating_add(time)),
            }
        }
    }

    fn has_panicked(&self) -> bool {
        std::thread::panicking() || self.panic.borrow().is_some()
    }

    fn advance(&'static self, to: u64) {
        self.clock.set(to);
        if self.alarm.get() <= to {
            self.alarm.set(u64::MAX);
            // SAFETY: called in an interrupt, as `interrupt` simulates it.
            self.interrupt(|| unsafe { self.kernel.timer_interrupt() });
        }
    }

    fn deliver_raised(&'static self) {
        loop {
            let pending = self.raised.get() & self.enabled.get();
            if pending == 0 {
                return;
            }
            let number = pending.trailing_zeros();
            self.raised.set(self.raised.get() & !(1 << number));
            self.interrupt(|| {
                // SAFETY: as above.
                unsafe { self.kernel.interrupt(number) };
            });
        }
    }

    /// Simulates the processor's response to an interrupt, on the stack of the interrupted code,
    /// which is preserved.
    fn interrupt(&'static self, handle: impl FnOnce()) {
        self.is_masked.set(true);
        handle();
        // SAFETY: interrupts are masked, and this is on the stack of the interrupted thread, whose
        // registers are those of a caller.
        unsafe { self.kernel.interrupt_end() };
        self.is_masked.set(false);
    }
}

/// The simulation to which an object belongs; 0 before its first use.
#[derive(Debug)]
pub struct Home(AtomicU64);

// SAFETY: `enter` admits only code on the host thread of a simulation, and objects only in the
// simulation in which they were used first; ids are not reused. No other kernel gets the slots,
// which `run_in` creates. All of a simulation runs on one thread of the host, and nothing
// interrupts it between `mask` and `restore`, since interrupts are calls at points. `switch` and
// `prepare` are those of the processor.
unsafe impl Port for Sim {
    type Home = Home;
    const HOME: Home = Home(AtomicU64::new(0));
    type Mask = bool;
    // The standard library needs this much for a panic.
    const MIN_STACK: usize = 32 * 1024;

    type Guard = ();
    const GUARD: () = ();
    const GUARDED: bool = false;

    fn guard((): &()) {}

    unsafe fn enter(home: &Home) -> &'static Kernel<Self> {
        let world = world();
        // Relaxed: an object whose first user is another simulation is not used further.
        match home.0.compare_exchange(0, world.id, Ordering::Relaxed, Ordering::Relaxed) {
            Err(id) if id != world.id => panic!("this object belongs to another simulation"),
            _ => &world.kernel,
        }
    }

    fn mask() -> bool {
        let world = world();
        if world.is_masked.get() {
            return true;
        }
        world.point(Point::Before);
        world.is_masked.set(true);
        if !world.has_panicked() {
            world.environment.borrow_mut().takes_effect();
        }
        false
    }

    fn was_masked(mask: bool) -> bool {
        mask
    }

    unsafe fn restore(was_masked: bool) {
        if !was_masked {
            let world = world();
            world.is_masked.set(false);
            world.point(Point::After);
        }
    }

    unsafe fn unmask() {
        let world = world();
        world.is_masked.set(false);
        world.point(Point::After);
    }

    unsafe fn prepare(top: *mut u8, entry: unsafe extern "C" fn()) -> *mut u8 {
        // SAFETY: the stack below `top` is unused and long enough, by this function's contract.
        unsafe { crate::prepare(top, entry) }
    }

    unsafe fn switch(from: *mut *mut u8, to: *mut u8) {
        // SAFETY: interrupts are masked, `from` is writable, and `to` was saved or prepared and not
        // continued since, by this function's contract.
        unsafe { crate::switch(from, to) }
    }

    fn now() -> u64 {
        world().clock.get()
    }

    fn alarm(time: u64) {
        world().alarm.set(time);
    }

    unsafe fn idle() {
        let world = world();
        world.environment.borrow_mut().idles();
        world.is_masked.set(false);
        let before = world.clock.get();
        world.point(Point::Idle);
        if world.clock.get() == before && world.kernel.is_idle() {
            let alarm = world.alarm.get();
            assert!(alarm != u64::MAX, "every thread waits and no timer is armed: none can ever run again");
            world.advance(alarm.max(before));
        }
        world.is_masked.set(true);
    }

    fn enable_interrupt(number: u32) {
        let world = world();
        world.enabled.set(world.enabled.get() | 1 << number);
    }

    fn disable_interrupt(number: u32) {
        let world = world();
        world.enabled.set(world.enabled.get() & !(1 << number));
    }

    fn call<A>(entry: fn(A), argument: A) {
        if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| entry(argument))) {
            *world().panic.borrow_mut() = Some(payload);
            // Set if the environment panicked at the start of a section.
            world().is_masked.set(false);
            // Does not return.
            Kernel::<Self>::stop();
        }
    }
}
