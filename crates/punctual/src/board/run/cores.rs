//! Partitions other than the first, each on its own core.

use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};
use core::{hint, ptr};

use punctual_core::{Duration, Instant, Port};

use super::{begin as begin_partition, hold, interrupt, wait};
use crate::board::port as board;
use crate::start_error::StartError;
use crate::state::runtime::Runtime;
use crate::state::this_core;

/// Time limit for the start of a core.
const START_TIMEOUT: Duration = Duration::from_millis(100);

/// The app whose partitions the other cores run; null if none exists.
static APP: AtomicPtr<Runtime> = AtomicPtr::new(ptr::null_mut());

/// Number of these cores that hold their partition, or have run it.
static READY: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicU32 = AtomicU32::new(0);

/// Next action of the cores that are ready.
static STAGE: AtomicU8 = AtomicU8::new(WAIT);
const WAIT: u8 = 0;
const RUN: u8 = 1;
const CANCEL: u8 = 2;

/// Makes the other cores hold the other partitions of `runtime`.
///
/// # Errors
/// Returns an error if there is no core for a partition; then no core holds anything.
pub(super) fn start(runtime: &'static Runtime) -> Result<(), StartError> {
    STAGE.store(WAIT, Ordering::Relaxed);
    READY.store(0, Ordering::Relaxed);
    ENDED.store(0, Ordering::Relaxed);
    // The release in `board::start` makes all of it visible to the core.
    APP.store(ptr::from_ref(runtime).cast_mut(), Ordering::Relaxed);
    for (started, partition) in (0..).zip(runtime.away()) {
        let core = partition.number();
        let begin = runtime.home.core.port().now();
        let mut comes = board::start(core, work);
        while comes && READY.load(Ordering::Acquire) == started {
            hint::spin_loop();
            comes = runtime.home.core.port().now().as_ticks() - begin.as_ticks() < START_TIMEOUT.as_ticks();
        }
        if !comes {
            leave(runtime, CANCEL, started);
            wait_for(started);
            return Err(StartError::NoCore { app: runtime.name, partition: partition.name, core });
        }
    }
    Ok(())
}

/// Lets the other partitions run, whose time started at [`Runtime::started`].
pub(super) fn go(runtime: &'static Runtime) {
    leave(runtime, RUN, runtime.away().count() as u32);
}

/// Waits until the other partitions of an app that is stopping have run all of their jobs.
pub(super) fn wait_until_ended(runtime: &'static Runtime) {
    wait_for(runtime.away().count() as u32);
}

fn wait_for(count: u32) {
    // Acquire: sees the effects of the other cores' jobs.
    while ENDED.load(Ordering::Acquire) < count {
        hint::spin_loop();
    }
}

/// Sets the action of the first `count` of the other cores, and wakes them.
fn leave(runtime: &'static Runtime, stage: u8, count: u32) {
    STAGE.store(stage, Ordering::Release);
    runtime.away().take(count as usize).for_each(|partition| board::ring(partition.number()));
}

/// Body of another core in a run. With interrupts masked.
fn work() {
    // SAFETY: `start` has stored it, from a `'static` reference.
    let runtime: &'static Runtime = unsafe { &*APP.load(Ordering::Relaxed) };
    let Some(partition) = runtime.away().find(|partition| partition.number() == board::core()) else {
        return;
    };
    // SAFETY: the app is taken, and this is the core that runs the partition.
    let me = unsafe { hold(partition) };
    this_core::set(Some(partition));
    READY.fetch_add(1, Ordering::Release);
    let stage = loop {
        match STAGE.load(Ordering::Acquire) {
            WAIT => hint::spin_loop(),
            stage => break stage,
        }
    };
    if stage == CANCEL {
        partition.core.stop();
    }
    board::join();
    interrupt::begin(partition);
    // SAFETY: this core holds everything of the partition, and `init` has ended.
    unsafe { begin_partition(partition, me, Instant::from_ticks(runtime.started())) };
    while !partition.core.is_stopping() {
        wait(partition);
    }
    partition.core().serve(me, None);
    interrupt::end(partition);
    this_core::set(None);
    ENDED.fetch_add(1, Ordering::Release);
}
