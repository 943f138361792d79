//! Interrupt handling. The module `interrupt` of `punctual-core` proves that a handler may dispatch
//! at any point of the interrupted code.

use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

use punctual_core::Port;

use super::{end_of_handler, stop_here};
use crate::board::port::{self as board, clock};
use crate::state::partition::PartitionState;
use crate::state::runtime::Runtime;
use crate::state::source::{INTERRUPTS, Place, Reaction, Source};
use crate::state::this_core;
use crate::stop::StopReason;

/// Reactions of the running app's bound tasks, by the numbers of their interrupts.
struct Sources([Place; INTERRUPTS]);

// SAFETY: written on the first core while no other takes part in the run, and with interrupts
// masked there; otherwise only read.
unsafe impl Sync for Sources {}

static SOURCES: Sources = Sources([const { Place::empty() }; INTERRUPTS]);

/// Number of interrupts in the current run that no task binds.
static UNBOUND: AtomicU64 = AtomicU64::new(0);

/// Sets the reactions to interrupts for a run, on every core. Call it on the first core, before
/// [`begin`] on any.
///
/// # Errors
/// Returns the partition and the interrupt of a task that cannot be routed to its core. The
/// reactions set so far have to be removed by [`forget`].
pub(super) fn prepare(runtime: &'static Runtime) -> Result<(), (&'static PartitionState, u32)> {
    UNBOUND.store(0, Ordering::Relaxed);
    SOURCES.0.iter().for_each(|place| place.set(UNBOUND_REACTION));
    board::handle(tick, interrupt, after);
    board::explain(this_core::level);
    for source in runtime.sources() {
        let (partition, number) = (source.partition(), source.number());
        if !board::route(number, partition.number()) {
            return Err((partition, number));
        }
        SOURCES.0[number as usize].set(source.reaction());
    }
    if let Some(bell) = SOURCES.0.get(board::bell() as usize) {
        bell.set(Reaction::of(ptr::null(), rung));
        // It is disabled if it has occurred while there was no run.
        board::enable(board::bell());
    }
    Ok(())
}

/// Unmasks interrupts on the core, and enables those that its partition binds.
pub(super) fn begin(partition: &'static PartitionState) {
    for source in of(partition) {
        board::enable(source.number());
    }
    // SAFETY: a handler leaves the state of the interrupted code unchanged: it preserves the
    // registers, and jobs run only at levels above the interrupted one's.
    unsafe { board::unmask() };
}

/// Undoes [`begin`].
pub(super) fn end(partition: &'static PartitionState) {
    board::mask();
    board::alarm(u64::MAX);
    for source in of(partition) {
        board::disable(source.number());
    }
}

/// Removes the reactions that [`prepare`] has set, on the first core after [`end`] has been called
/// on every core that has [begun](begin); returns the number of interrupts that no task binds.
pub(super) fn forget(runtime: &'static Runtime) -> u64 {
    for number in runtime.sources().map(Source::number).chain([board::bell()]) {
        if let Some(source) = SOURCES.0.get(number as usize) {
            source.set(UNBOUND_REACTION);
        }
    }
    UNBOUND.load(Ordering::Relaxed)
}

fn of(partition: &'static PartitionState) -> impl Iterator<Item = &'static dyn Source> {
    partition.runtime.sources().filter(move |source| core::ptr::eq(source.partition(), partition))
}

/// Another core has released or armed a job here.
unsafe fn rung(_: &Place) {
    board::rung();
    tick();
}

/// Releases due jobs, sets the timer for the next release, and runs the jobs that precede
/// everything else. With interrupts masked.
pub(super) fn tick() {
    let Some(partition) = this_core::partition() else { return board::alarm(u64::MAX) };
    if clock::takes_limit() {
        partition.runtime.stop(&StopReason::TimeUp);
    }
    // SAFETY: this is a handler, or code that runs before any can occur; a handler acts as the
    // thread that it has interrupted.
    let me = unsafe { partition.enter_idle() };
    // While the timers are processed, releases by calls into user code are foreign releases.
    partition.core.port().begin_handler();
    // SAFETY: this is the handler of an interrupt, or code that runs before any can occur, on the
    // core's only thread; expired jobs have run before the thread continues.
    let (next, expired) = unsafe { partition.core().tick(me, partition.core.port().now()) };
    let again = partition.core.port().end_handler();
    clock::alarm(next.map_or(u64::MAX, |time| time.as_ticks()));
    if again {
        clock::alarm(0);
    }
    if let Some(expired) = expired {
        // SAFETY: as in `begin`.
        unsafe { board::unmask() };
        expired.run();
        board::mask();
    }
}

fn interrupt(number: u32) {
    let Some(place) = SOURCES.0.get(number as usize) else { return unknown(number) };
    // SAFETY: `prepare` has filled every entry before it installed this function. This is the
    // handler, as the board calls it, and the app runs, because otherwise the entry would be
    // unbound.
    unsafe { place.get().unwrap_unchecked().take_place(place) }
}

/// Handles an interrupt without a task.
#[cold]
fn unknown(number: u32) {
    if number == board::STOP {
        return stop_here(&StopReason::Shutdown);
    }
    count_unbound(number);
}

/// Reaction to an interrupt that no task binds.
const UNBOUND_REACTION: Reaction = Reaction::of(ptr::null(), unbound);

#[cold]
unsafe fn unbound(place: &Place) {
    let before = SOURCES.0.iter().take_while(|other| !ptr::eq(*other, place));
    count_unbound(before.count() as u32);
}

fn count_unbound(number: u32) {
    // No code could lower its line.
    board::disable(number);
    UNBOUND.fetch_add(1, Ordering::Relaxed);
}

/// Runs the jobs that have become ready above the partition's level.
fn after() {
    let Some((partition, me)) = this_core::get() else { return };
    if partition.core.must_serve(me) {
        // SAFETY: as in `begin`.
        unsafe { board::unmask() };
        partition.core().serve(me, None);
        board::mask();
    }
    end_of_handler(partition);
}
