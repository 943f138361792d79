//! What happens on an interrupt. Why a handler may do it in the midst of anything is argued in `punctual-core`'s module
//! `interrupt`.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

use punctual_core::Port;

use super::bound::Reaction;
use super::{board, current, run, services};

/// How many interrupts there can be. Their numbers are below.
pub(crate) const INTERRUPTS: usize = 192;

/// What the bound tasks of the app that runs do, by the numbers of their interrupts.
struct Sources([Cell<Option<Reaction>>; INTERRUPTS]);

// SAFETY: written with interrupts masked, and otherwise only read, by the handler on the same core.
unsafe impl Sync for Sources {}

static SOURCES: Sources = Sources([const { Cell::new(None) }; INTERRUPTS]);

/// Interrupts that came and that no task binds, in the current run.
static UNBOUND: AtomicU64 = AtomicU64::new(0);

/// Lets the core be interrupted from now on, and the bound interrupts through.
pub(crate) fn begin() {
    UNBOUND.store(0, Ordering::Relaxed);
    board::handle(tick, interrupt, after);
    if let Some(partition) = current::partition() {
        for source in partition.runtime.sources() {
            SOURCES.0[source.number() as usize].set(Some(source.reaction()));
            board::enable(source.number());
        }
    }
    // SAFETY: what a handler does leaves whatever it interrupts as it was: it preserves the registers, and jobs run only at
    // levels that are above the interrupted one's.
    unsafe { board::unmask() };
}

/// Ends that; returns how many interrupts came that no task binds.
pub(crate) fn end() -> u64 {
    board::mask();
    board::alarm(u64::MAX);
    if let Some(partition) = current::partition() {
        for source in partition.runtime.sources() {
            board::disable(source.number());
            SOURCES.0[source.number() as usize].set(None);
        }
    }
    UNBOUND.load(Ordering::Relaxed)
}

/// Releases what is due and sets the timer for what is next. With interrupts masked.
pub(crate) fn tick() {
    let Some((partition, me)) = current::get() else { return board::alarm(u64::MAX) };
    // While the timer keeps time, what it releases by calls of the user's is released from outside.
    current::set_in_handler(true);
    let next = partition.core.tick(me, partition.core.port().now());
    board::alarm(next.map_or(u64::MAX, |time| time.as_ticks()));
    current::set_in_handler(false);
}

fn interrupt(number: u32) {
    if number == board::STOP {
        return services::shutdown();
    }
    // Enabled again when the job has ended; without a job there is nothing that could clear it.
    board::disable(number);
    match SOURCES.0.get(number as usize).and_then(Cell::get) {
        // SAFETY: this is the handler, as the board calls it, and the app runs, or there would be no reaction.
        Some(reaction) => unsafe { reaction.take_place() },
        None => unbound(),
    }
}

#[cold]
fn unbound() {
    UNBOUND.fetch_add(1, Ordering::Relaxed);
}

/// Runs what has become ready above the partition's level.
fn after() {
    let Some((partition, me)) = current::get() else { return };
    if partition.core.snapshot().must_serve() {
        // SAFETY: as in `begin`.
        unsafe { board::unmask() };
        partition.core().serve(me, None);
        board::mask();
    }
    run::end_of_handler(partition);
}
