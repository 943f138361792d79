//! What happens on an interrupt. Why a handler may do it in the midst of anything is argued in `punctual-core`'s module
//! `interrupt`.

use core::sync::atomic::{AtomicU64, Ordering};

use punctual_core::Port;

use super::{board, current, run};

/// Interrupts that came and that no task binds, in the current run.
static UNBOUND: AtomicU64 = AtomicU64::new(0);

/// Lets the core be interrupted from now on, and the bound interrupts through.
pub(crate) fn begin() {
    UNBOUND.store(0, Ordering::Relaxed);
    board::handle(tick, interrupt, after);
    if let Some(partition) = current::partition() {
        partition.runtime.sources().for_each(|source| board::enable(source.number()));
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
        partition.runtime.sources().for_each(|source| board::disable(source.number()));
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
    // Enabled again when the job has ended; without a job there is nothing that could clear it.
    board::disable(number);
    let source = current::partition()
        .and_then(|partition| partition.runtime.sources().find(|source| source.number() == number));
    match source {
        Some(source) => {
            current::set_in_handler(true);
            source.release();
            current::set_in_handler(false);
        }
        None => {
            UNBOUND.fetch_add(1, Ordering::Relaxed);
        }
    }
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
