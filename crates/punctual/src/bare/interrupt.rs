//! What happens on an interrupt. Why a handler may do it in the midst of anything is argued in `punctual-core`'s module
//! `interrupt`.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

use punctual_core::Port;

use super::bound::{Reaction, Source};
use super::partition::PartitionState;
use super::runtime::Runtime;
use super::{board, clock, current, halves, run, services};

/// How many interrupts there can be. Their numbers are below.
pub(crate) const INTERRUPTS: usize = 192;

/// What the bound tasks of the app that runs do, by the numbers of their interrupts.
struct Sources([Place; INTERRUPTS]);

// SAFETY: written on the first core while no other takes part in the run, and with interrupts masked there; otherwise only read.
unsafe impl Sync for Sources {}

static SOURCES: Sources = Sources([const { Place(Cell::new(None)) }; INTERRUPTS]);

/// What is done about one interrupt; [`prepare`] fills it.
pub(crate) struct Place(Cell<Option<Reaction>>);

impl Place {
    /// The task of the interrupt.
    #[inline(always)]
    pub(crate) fn task(&self) -> *const () {
        self.0.get().map_or(core::ptr::null(), |reaction| reaction.task)
    }

    fn number(&self) -> u32 {
        let places = SOURCES.0.iter();
        places.take_while(|place| !core::ptr::eq(*place, self)).count() as u32
    }
}

/// Interrupts that came and that no task binds, in the current run.
static UNBOUND: AtomicU64 = AtomicU64::new(0);

/// Says what is done on interrupts in a run, on every core. On the first, before [`begin`] on any.
///
/// # Errors
/// The partition and the interrupt of a task that cannot come to its core. What was said of others is to be [forgotten](forget).
pub(crate) fn prepare(runtime: &'static Runtime) -> Result<(), (&'static PartitionState, u32)> {
    UNBOUND.store(0, Ordering::Relaxed);
    SOURCES.0.iter().for_each(|place| place.0.set(Some(UNBOUND_REACTION)));
    board::handle(tick, interrupt, after);
    board::explain(current::level);
    for source in runtime.sources() {
        let (partition, number) = (source.partition(), source.number());
        if !board::route(number, partition.number()) {
            return Err((partition, number));
        }
        SOURCES.0[number as usize].0.set(Some(source.reaction()));
    }
    if let Some(bell) = SOURCES.0.get(board::bell() as usize) {
        bell.0.set(Some(Reaction::of(rung)));
        // It is held back if it has come while there was no run.
        board::enable(board::bell());
    }
    Ok(())
}

/// Lets the core be interrupted from now on, and the interrupts through that its partition binds.
pub(crate) fn begin(partition: &'static PartitionState) {
    for source in of(partition) {
        board::enable(source.number());
    }
    // SAFETY: what a handler does leaves whatever it interrupts as it was: it preserves the registers, and jobs run only at
    // levels that are above the interrupted one's.
    unsafe { board::unmask() };
}

/// Ends that.
pub(crate) fn end(partition: &'static PartitionState) {
    board::mask();
    board::alarm(u64::MAX);
    for source in of(partition) {
        board::disable(source.number());
    }
}

/// Forgets what [`prepare`] has said, on the first core when [`end`] has been called on every one that has [begun](begin); returns
/// how many interrupts came that no task binds.
pub(crate) fn forget(runtime: &'static Runtime) -> u64 {
    for number in runtime.sources().map(Source::number).chain([board::bell()]) {
        if let Some(source) = SOURCES.0.get(number as usize) {
            source.0.set(Some(UNBOUND_REACTION));
        }
    }
    UNBOUND.load(Ordering::Relaxed)
}

fn of(partition: &'static PartitionState) -> impl Iterator<Item = &'static dyn Source> {
    partition.runtime.sources().filter(move |source| core::ptr::eq(source.partition(), partition))
}

/// Another core has released something here, or armed it.
unsafe fn rung(_: &Place) {
    board::rung();
    tick();
}

/// Releases what is due, sets the timer for what is next, and runs what goes before everything else. With interrupts masked.
pub(crate) fn tick() {
    let Some(partition) = current::partition() else { return board::alarm(u64::MAX) };
    clock::look_at_limit();
    // SAFETY: this is a handler, or what the core does before any can come, which does as the thread that it has interrupted.
    let me = unsafe { partition.enter_idle() };
    // While the timer keeps time, what it releases by calls of the user's is released from outside.
    partition.begin_handler();
    // SAFETY: this is the handler of an interrupt, or what the core does before any can come, by its one thread; what has expired has
    // run before the thread goes on.
    let (next, expired) = unsafe { partition.core().tick(me, partition.core.port().now()) };
    let again = partition.end_handler();
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
    // SAFETY: `prepare` has filled every place before it had this function called. This is the handler, as the board calls it, and
    // the app runs, or it would be unbound.
    unsafe { place.0.get().unwrap_unchecked().take_place(place) }
}

/// What has no task, if it is an interrupt.
#[cold]
fn unknown(number: u32) {
    if number == board::STOP {
        halves::end_was_asked_for();
        return services::shutdown();
    }
    count_unbound(number);
}

/// What no task binds.
const UNBOUND_REACTION: Reaction = Reaction::of(unbound);

#[cold]
unsafe fn unbound(place: &Place) {
    count_unbound(place.number());
}

fn count_unbound(number: u32) {
    // There is nothing that could lower its line.
    board::disable(number);
    UNBOUND.fetch_add(1, Ordering::Relaxed);
}

/// Runs what has become ready above the partition's level.
fn after() {
    let Some((partition, me)) = current::get() else { return };
    if partition.core.must_serve(me) {
        // SAFETY: as in `begin`.
        unsafe { board::unmask() };
        partition.core().serve(me, None);
        board::mask();
    }
    run::end_of_handler(partition);
}
