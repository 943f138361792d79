//! The partitions besides the first, each on a core of its own.

use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};
use core::{hint, ptr};

use punctual_core::{Duration, Instant, Port};

use super::runtime::Runtime;
use super::start_error::StartError;
use super::{board, current, interrupt, run};

/// How long a core may take to start.
const PATIENCE: Duration = Duration::from_millis(100);

/// The app whose partitions the other cores run; null if they run none.
static APP: AtomicPtr<Runtime> = AtomicPtr::new(ptr::null_mut());

/// How many of them hold their partition, or have run it.
static READY: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicU32 = AtomicU32::new(0);

/// What those that are ready do next.
static STAGE: AtomicU8 = AtomicU8::new(WAIT);
const WAIT: u8 = 0;
const RUN: u8 = 1;
const CANCEL: u8 = 2;

/// Has the other cores hold the other partitions of `runtime`.
///
/// # Errors
/// If there is no core for one; then none holds anything.
pub(crate) fn start(runtime: &'static Runtime) -> Result<(), StartError> {
    STAGE.store(WAIT, Ordering::Relaxed);
    READY.store(0, Ordering::Relaxed);
    ENDED.store(0, Ordering::Relaxed);
    // The release of `board::start` has the core see all of it.
    APP.store(ptr::from_ref(runtime).cast_mut(), Ordering::Relaxed);
    for (started, partition) in (0..).zip(runtime.others()) {
        let core = partition.number();
        let begin = runtime.home.core.port().now();
        let mut comes = board::start(core, work);
        while comes && READY.load(Ordering::Acquire) == started {
            hint::spin_loop();
            comes = runtime.home.core.port().now().as_ticks() - begin.as_ticks() < PATIENCE.as_ticks();
        }
        if !comes {
            leave(runtime, CANCEL, started);
            wait_for(started);
            return Err(StartError::NoCore { app: runtime.name, partition: partition.name(), core });
        }
    }
    Ok(())
}

/// Lets the other partitions run, which began at [`Runtime::started`].
pub(crate) fn go(runtime: &'static Runtime) {
    leave(runtime, RUN, runtime.others().count() as u32);
}

/// Waits until the other partitions of an app that is stopping have run all of their jobs.
pub(crate) fn wait_until_ended(runtime: &'static Runtime) {
    wait_for(runtime.others().count() as u32);
}

fn wait_for(count: u32) {
    // Acquire: what the jobs of the others did.
    while ENDED.load(Ordering::Acquire) < count {
        hint::spin_loop();
    }
}

/// Says what the first `count` of the other cores do, and wakes them.
fn leave(runtime: &'static Runtime, stage: u8, count: u32) {
    STAGE.store(stage, Ordering::Release);
    runtime.others().take(count as usize).for_each(|partition| board::ring(partition.number()));
}

/// What another core does in a run. With interrupts masked.
fn work() {
    // SAFETY: `start` has stored it, from a reference that lasts.
    let runtime: &'static Runtime = unsafe { &*APP.load(Ordering::Relaxed) };
    let Some(partition) = runtime.others().find(|partition| partition.number() == board::core()) else {
        return;
    };
    // SAFETY: the app is taken, and this is the core that runs the partition.
    let me = unsafe { run::hold(partition) };
    current::set(Some(partition));
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
    // SAFETY: this core holds everything of the partition, and `init` is over.
    unsafe { run::begin(partition, me, Instant::from_ticks(runtime.started())) };
    while !partition.core.is_stopping() {
        run::wait(partition);
    }
    partition.core().serve(me, None);
    interrupt::end(partition);
    current::set(None);
    ENDED.fetch_add(1, Ordering::Release);
}
