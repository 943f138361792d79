//! Running an app: what the generated `run` and the program's entry call.

use core::alloc::Layout;
use core::fmt::{self, Write};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use punctual_core::{CurrentWorker, Duration, Instant, Port};

use super::config::Config;
use super::partition::PartitionState;
use super::report::Report;
use super::runtime::Runtime;
use super::start_error::StartError;
use super::{board, cores, current, halves, interrupt};

/// The user's functions, as the generated code provides them. A value of it holds `init`'s arguments.
pub trait App: Sized {
    /// What `init` returned and no static holds: `idle`'s own locals, and those nobody uses.
    type Kept;
    /// Whether there is an `#[idle]` function.
    const HAS_IDLE: bool;
    /// Whether there is a `#[shutdown]` function.
    const HAS_SHUTDOWN: bool;
    /// What both `#[idle]` and `#[shutdown]` use, unless both only read it: resources by name.
    const IDLE_AND_SHUTDOWN: &'static [&'static str];

    /// Runs `#[init]` and fills every resource.
    ///
    /// # Safety
    /// No task runs, and the resources are not filled.
    unsafe fn init(self, worker: CurrentWorker) -> Self::Kept;

    /// Runs `#[idle]`.
    ///
    /// # Safety
    /// The resources are filled, and this is called once.
    unsafe fn idle(worker: CurrentWorker, kept: &mut Self::Kept);

    /// Runs `#[shutdown]`.
    ///
    /// # Safety
    /// The resources are filled. No job runs or will; `idle` has ended, or does not go on, or
    /// [`IDLE_AND_SHUTDOWN`](Self::IDLE_AND_SHUTDOWN) is empty.
    unsafe fn shutdown();

    /// Drops every resource, and what no static holds, each in a call of `drops`.
    ///
    /// # Safety
    /// The resources are filled, and nothing uses them afterwards.
    unsafe fn drop_resources(kept: Self::Kept, drops: &Drops);
}

/// Drops resources one by one.
pub struct Drops(());

impl Drops {
    /// Runs the destructor of a resource.
    pub fn resource(&self, _: &'static str, drop: impl FnOnce()) {
        drop();
    }
}

/// Runs an app until it is shut down.
pub fn run<A: App>(runtime: &'static Runtime, config: Config, app: A) -> Result<Report, StartError> {
    config.check(runtime)?;
    runtime.take()?;
    let home = runtime.home;
    if let Err(error) = prepare(runtime) {
        interrupt::forget(runtime);
        runtime.give_back();
        return Err(error);
    }
    // SAFETY: the app is taken, and this is the first core, which runs the partition.
    let me = unsafe { hold(home) };
    current::set(Some(home));
    config.begin();
    // SAFETY: everything is held, and a taken app has no resources filled.
    let mut kept = unsafe { app.init(me) };

    let start = home.core.port().now();
    runtime.set_started(start);
    config.started(start);
    HAS_BEGUN.store(true, Ordering::Relaxed);
    cores::go(runtime);
    interrupt::begin(home);
    // SAFETY: this thread holds everything, and `init` is over.
    unsafe {
        match config.is_virtual() {
            #[cfg(feature = "virtual-time")]
            true => super::virtual_time::open(home, me),
            _ => begin(home, me, start),
        }
    }
    if A::HAS_IDLE && !runtime.is_stopping() {
        IDLE.store(ptr::from_ref(const { &Idle::of::<A>() }).cast_mut(), Ordering::Relaxed);
        // SAFETY: the resources are filled, and this is the only call.
        unsafe { A::idle(me, &mut kept) };
        IDLE.store(ptr::null_mut(), Ordering::Relaxed);
    }
    while !runtime.is_stopping() {
        wait(home);
    }
    home.core().serve(me, None);
    cores::wait_until_ended(runtime);
    // What the others have still released here.
    home.core().serve(me, None);
    let report = finish::<A>(runtime);
    // SAFETY: the resources are filled, no job can run, and nothing uses them afterwards.
    unsafe { A::drop_resources(kept, &Drops(())) };
    current::set(None);
    HAS_BEGUN.store(false, Ordering::Relaxed);
    config.end();
    runtime.give_back();
    Ok(report)
}

/// Has every interrupt handled, and the other partitions held by their cores.
fn prepare(runtime: &'static Runtime) -> Result<(), StartError> {
    interrupt::prepare(runtime).map_err(|(partition, interrupt)| StartError::NotRouted {
        app: runtime.name,
        partition: partition.name(),
        interrupt,
    })?;
    cores::start(runtime)
}

/// Holds everything of a partition back; returns its worker.
///
/// # Safety
/// The app is taken, and this is the core of the partition, with interrupts masked until [`interrupt::begin`]; from then on
/// `interrupt` in the core says why.
pub(crate) unsafe fn hold(partition: &'static PartitionState) -> CurrentWorker {
    // SAFETY: nothing else uses the worker, by this function's contract.
    let me = unsafe { partition.enter_idle() };
    me.enter(0, true);
    // SAFETY: one core runs everything of the partition.
    unsafe { me.set_alone() };
    partition.core.hold_everything(me);
    me
}

/// Lays the grids of a partition and lets its jobs run: first what is due at the start, so that what `init` has spawned does not go before it.
///
/// # Safety
/// As for [`Partition::go`](punctual_core::Partition::go).
pub(crate) unsafe fn begin(partition: &'static PartitionState, me: CurrentWorker, start: Instant) {
    board::mask();
    partition.core.lay_grids_here(start);
    interrupt::tick();
    // SAFETY: interrupts were unmasked before.
    unsafe { board::unmask() };
    // SAFETY: this thread holds everything, by this function's contract.
    unsafe { partition.core().abandon(me) };
}

/// Sleeps until the next interrupt, unless the app is stopping. What it releases has run when this returns. In virtual time, goes on to
/// the next event.
pub(crate) fn wait(partition: &'static PartitionState) {
    #[cfg(feature = "virtual-time")]
    if super::virtual_time::is_on() {
        if let Some((_, me)) = current::get() {
            super::virtual_time::step(partition, me);
        }
        return;
    }
    // Masked, so that the interrupt does not come between the look and the sleep, from which it wakes all the same.
    board::mask();
    if !partition.core.is_stopping() {
        board::wait();
    }
    // SAFETY: interrupts were unmasked before.
    unsafe { board::unmask() };
}

/// Whether `init` of the app that runs is over.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// Whether `init` of the app that runs is over.
pub(crate) fn has_begun() -> bool {
    HAS_BEGUN.load(Ordering::Relaxed)
}

/// How to end an app whose `idle` does not.
struct Idle {
    /// Whether it may be ended anywhere: `idle` and `#[shutdown]` have nothing in common.
    anywhere: bool,
    finish: fn(&'static Runtime) -> Report,
}

impl Idle {
    const fn of<A: App>() -> Self {
        Self { anywhere: A::IDLE_AND_SHUTDOWN.is_empty(), finish: finish::<A> }
    }

    /// The one that runs, if one does.
    fn current() -> Option<&'static Self> {
        // SAFETY: null, or from a reference to a constant.
        unsafe { IDLE.load(Ordering::Relaxed).cast_const().as_ref() }
    }

    /// Ends the program.
    fn leave(&self, runtime: &'static Runtime) -> ! {
        end(&(self.finish)(runtime))
    }
}

static IDLE: AtomicPtr<Idle> = AtomicPtr::new(ptr::null_mut());

/// Ends the program if the app is stopping, in an `idle` that has called us.
pub(crate) fn leave_idle(partition: &'static PartitionState) {
    if partition.core.is_stopping()
        && let Some(idle) = Idle::current()
    {
        idle.leave(partition.runtime);
    }
}

/// Ends the program if the app is stopping and this handler has interrupted an `idle` that need not go on.
pub(crate) fn end_of_handler(partition: &'static PartitionState) {
    let word = partition.core.snapshot();
    if partition.core.is_stopping()
        && core::ptr::eq(partition, partition.runtime.home)
        && word.level() == 0
        && !word.must_serve()
        && let Some(idle) = Idle::current().filter(|idle| idle.anywhere)
    {
        idle.leave(partition.runtime);
    }
}

/// Ends the interrupts, runs the hook, and reports.
fn finish<A: App>(runtime: &'static Runtime) -> Report {
    let elapsed = Duration::from_ticks(runtime.elapsed());
    interrupt::end(runtime.home);
    cores::wait_until_ended(runtime);
    let unbound_interrupts = interrupt::forget(runtime);
    runtime.set_ending();
    for level in runtime.home.core.levels().iter().filter(|level| level.is_local()) {
        // SAFETY: the last job has run, and the app is stopping.
        runtime.tasks.iter().for_each(|task| unsafe { task.retire(level) });
    }
    // SAFETY: as above.
    let waiting = runtime.tasks.iter().map(|task| u64::from(unsafe { task.end() }.1)).sum::<u64>();
    // SAFETY: the resources are filled; no job can run, and an `idle` that has not ended does not go on.
    unsafe { A::shutdown() };
    // Last, for the hook may spawn.
    let dropped_jobs = waiting + runtime.dropped();
    let report = Report::new(runtime, elapsed, dropped_jobs, unbound_interrupts);
    halves::publish(&report);
    report
}

/// Storage for ever, for what `init` and `idle` own; taken before the app starts.
///
/// # Panics
/// If the board has no more memory.
pub fn leak<T>(value: T) -> &'static mut T {
    let layout = Layout::new::<T>();
    let place = match layout.size() {
        0 => NonNull::dangling(),
        _ => board::memory(layout).expect("the board has memory for what `init` and `idle` own").cast(),
    };
    // SAFETY: it is memory for a `T` that nothing else ever uses; a type without size needs none.
    unsafe {
        place.write(value);
        &mut *place.as_ptr()
    }
}

/// The generated entry.
pub fn main(run: impl FnOnce(Config) -> Result<Report, StartError>) -> ! {
    match run(Config::new()) {
        Ok(report) => end(&report),
        Err(error) => {
            say(format_args!("{error}\n"));
            board::exit(2)
        }
    }
}

/// Prints the report, if the app says so or something went wrong, and ends the program.
fn end(report: &Report) -> ! {
    let wrong = || report.tasks().any(|task| task.misses > 0 || task.overruns > 0);
    let wanted = match report.runtime.options.report {
        Some("always") => true,
        Some("never") => false,
        _ => report.exit_code() != 0 || wrong(),
    };
    if wanted && !halves::is_reported_by_linux() {
        say(format_args!("{report}"));
    }
    board::exit(report.exit_code())
}

/// Prints to the board's console.
fn say(text: fmt::Arguments<'_>) {
    struct Console;

    impl Write for Console {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            board::print(text);
            Ok(())
        }
    }
    // The console does not fail.
    let _ = Console.write_fmt(text);
}
