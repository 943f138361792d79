//! Runs an app on a board.
//!
//! One core runs one partition, and a single thread, which on the first core begins as `main`, runs
//! every level of it. Jobs preempt it from interrupts: a handler runs or releases the job that its
//! interrupt is bound to, or the timed jobs that are due. If a level above the partition's is then
//! ready, the handler runs it on the stack of the interrupted code, with interrupts unmasked. So
//! neither the interrupt controller nor a critical section needs priorities, and interrupts are
//! never masked for long.
//!
//! The functions that a board has to provide are in [`board`]; `punctual-bare` implements them.

mod cores;
mod interrupt;

use core::alloc::Layout;
use core::fmt::{self, Write};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use punctual_core::{CurrentWorker, Duration, Instant, Port};

use crate::board::port::{self as board, clock};
use crate::config::Config;
use crate::report::{Outcome, Report};
use crate::run::services::Services;
use crate::run::{App, Drops};
use crate::start_error::StartError;
use crate::state::partition::PartitionState;
use crate::state::runtime::Runtime;
use crate::state::{Host, this_core, virtual_time};
use crate::stop::StopReason;

/// Runs an app until it is shut down.
///
/// # Errors
/// Returns an error if it cannot start; then no code of it has run.
pub fn run<A: App>(runtime: &'static Runtime, config: Config, app: A) -> Result<Report, StartError> {
    if config.virtual_time && runtime.partitions.len() > 1 {
        return Err(StartError::VirtualPartitions(runtime.name));
    }
    runtime.take()?;
    let home = runtime.home;
    // SAFETY: the app is taken and does not run yet.
    unsafe { remote::begin(runtime) };
    if let Err(error) = prepare(runtime) {
        interrupt::forget(runtime);
        runtime.give_back();
        return Err(error);
    }
    // SAFETY: the app is taken, and this is the first core, which runs the partition.
    let me = unsafe { hold(home) };
    this_core::set(Some(home));
    clock::begin(config.virtual_time);
    virtual_time::begin();
    // SAFETY: everything is held, and a taken app has no resources filled.
    let mut owned = unsafe { app.init(me) };

    let start = home.core.port().now();
    runtime.set_started(start);
    remote::started(start.as_ticks());
    clock::set_limit(config.until.map(|until| start + until));
    HAS_BEGUN.store(true, Ordering::Relaxed);
    cores::go(runtime);
    interrupt::begin(home);
    // SAFETY: this thread holds everything, and `init` has ended.
    unsafe {
        match clock::is_virtual() {
            true => virtual_time::open(home, me),
            false => begin(home, me, start),
        }
    }
    if A::HAS_IDLE && !runtime.is_stopping() {
        IDLE.store(ptr::from_ref(const { &Idle::of::<A>() }).cast_mut(), Ordering::Relaxed);
        // SAFETY: the resources are filled, and this is the only call.
        unsafe { A::idle(me, &mut owned) };
        IDLE.store(ptr::null_mut(), Ordering::Relaxed);
    }
    while !runtime.is_stopping() {
        wait(home);
    }
    home.core().serve(me, None);
    cores::wait_until_ended(runtime);
    // Jobs that other partitions have released here in the end.
    home.core().serve(me, None);
    let report = finish::<A>(runtime);
    // SAFETY: the resources are filled, no job can run, and nothing uses them afterwards.
    unsafe { A::drop_resources(owned, &Drops(runtime)) };
    this_core::set(None);
    HAS_BEGUN.store(false, Ordering::Relaxed);
    clock::end();
    runtime.give_back();
    if config.is_program {
        print_if_wanted(runtime, &report);
    }
    Ok(report)
}

/// Sets the handlers of all interrupts, and makes the other cores hold their partitions.
fn prepare(runtime: &'static Runtime) -> Result<(), StartError> {
    interrupt::prepare(runtime).map_err(|(partition, interrupt)| StartError::NotRouted {
        app: runtime.name,
        partition: partition.name,
        interrupt,
    })?;
    cores::start(runtime)
}

/// Holds all levels of a partition; returns its worker.
///
/// # Safety
/// The app is taken, and this is the core of the partition, with interrupts masked until
/// [`interrupt::begin`]; from then on the argument in the core's module `interrupt` applies.
pub(super) unsafe fn hold(partition: &'static PartitionState) -> CurrentWorker {
    // SAFETY: nothing else uses the worker, by this function's contract.
    let me = unsafe { partition.enter_idle() };
    me.enter(0, true);
    // SAFETY: one core runs everything of the partition.
    unsafe { me.set_alone() };
    partition.core.hold_all_jobs(me);
    me
}

/// Starts the grids of a partition and lets its jobs run: first those due at the start, so that
/// jobs spawned by `init` do not precede them.
///
/// # Safety
/// As for [`Partition::go`](punctual_core::Partition::go).
pub(super) unsafe fn begin(partition: &'static PartitionState, me: CurrentWorker, start: Instant) {
    board::mask();
    partition.core.lay_grids_here(start);
    interrupt::tick();
    // SAFETY: interrupts were unmasked before.
    unsafe { board::unmask() };
    // SAFETY: this thread holds everything, by this function's contract.
    unsafe { partition.core().abandon(me) };
}

/// Sleeps until the next interrupt, unless the app is stopping. The jobs that it releases have run
/// when this returns. In virtual time, advances to the next event.
pub(super) fn wait(partition: &'static PartitionState) {
    if clock::is_virtual() {
        if let Some((_, me)) = this_core::get() {
            virtual_time::step(partition, me);
        }
        return;
    }
    // Masked, so that the interrupt does not occur between the check and the sleep, which it ends
    // even when masked.
    board::mask();
    if !partition.core.is_stopping() {
        board::wait();
    }
    // SAFETY: interrupts were unmasked before.
    unsafe { board::unmask() };
}

/// True if `init` of the running app has ended.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// Returns whether `init` of the running app has ended.
pub(super) fn has_begun() -> bool {
    HAS_BEGUN.load(Ordering::Relaxed)
}

/// The permission to end an app whose `idle` does not return.
struct Idle {
    /// True if it may be ended anywhere: `idle` and `#[shutdown]` share no resource.
    anywhere: bool,
    finish: fn(&'static Runtime) -> Report,
}

impl Idle {
    const fn of<A: App>() -> Self {
        Self { anywhere: A::IDLE_AND_SHUTDOWN.is_empty(), finish: finish::<A> }
    }

    /// Returns the `idle` that runs, if any.
    fn current() -> Option<&'static Self> {
        // SAFETY: null, or from a reference to a constant.
        unsafe { IDLE.load(Ordering::Relaxed).cast_const().as_ref() }
    }

    /// Ends the program.
    fn leave(&self, runtime: &'static Runtime) -> ! {
        let report = (self.finish)(runtime);
        print_if_wanted(runtime, &report);
        board::exit(report.exit_code())
    }
}

static IDLE: AtomicPtr<Idle> = AtomicPtr::new(ptr::null_mut());

/// Ends the program if the app is stopping, in an `idle` that has called us.
pub(super) fn leave_idle(partition: &'static PartitionState) {
    if partition.core.is_stopping()
        && let Some(idle) = Idle::current()
    {
        idle.leave(partition.runtime);
    }
}

/// Ends the program if the app is stopping and this handler has interrupted an `idle` that need not
/// continue.
pub(super) fn end_of_handler(partition: &'static PartitionState) {
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

/// Disables the interrupts, runs the hook, and reports.
fn finish<A: App>(runtime: &'static Runtime) -> Report {
    let elapsed = core::time::Duration::from_nanos(runtime.elapsed());
    interrupt::end(runtime.home);
    cores::wait_until_ended(runtime);
    let unbound_interrupts = interrupt::forget(runtime);
    runtime.set_ending();
    for level in runtime.home.core.levels().iter().filter(|level| level.is_local()) {
        // SAFETY: the last job has run, and the app is stopping.
        runtime.tasks.iter().for_each(|task| unsafe { task.retire(level) });
    }
    // SAFETY: as above.
    let waiting = runtime.tasks.iter().map(|task| u64::from(unsafe { task.end() })).sum::<u64>();
    // SAFETY: the resources are filled; no job can run, and an `idle` that has not ended does not
    // continue.
    unsafe { A::shutdown() };
    // Last, because the hook may spawn.
    let dropped_jobs = waiting + runtime.dropped();
    let report = Report {
        app: runtime.name,
        virtual_time: clock::is_virtual(),
        outcome: runtime.stop_reason.get().map_or(Outcome::Shutdown, Outcome::from),
        elapsed,
        // SAFETY: no job can run, and none can be spawned.
        tasks: unsafe { runtime.reports() },
        dropped_jobs,
        unbound_interrupts,
    };
    remote::end(&report);
    report
}

/// Allocates permanent storage for values that `init` and `idle` own, before the app starts.
///
/// # Panics
/// Panics if the board has no memory left.
pub fn leak<T>(value: T) -> &'static mut T {
    let layout = Layout::new::<T>();
    let place = match layout.size() {
        0 => NonNull::dangling(),
        _ => board::memory(layout).expect("the board has memory for what `init` and `idle` own").cast(),
    };
    // SAFETY: it is memory for a `T` that is never used for anything else; a zero-sized type needs
    // none.
    unsafe {
        place.write(value);
        &mut *place.as_ptr()
    }
}

/// The generated entry.
pub fn main(run: impl FnOnce(Config) -> Result<Report, StartError>) -> ! {
    match run(Config { is_program: true, ..Config::new() }) {
        Ok(report) => board::exit(report.exit_code()),
        Err(error) => {
            print_line(format_args!("{error}\n"));
            board::exit(2)
        }
    }
}

/// Prints the report, if the app requests it or a problem occurred.
fn print_if_wanted(runtime: &Runtime, report: &Report) {
    let wrong = || report.tasks.iter().any(|task| task.misses > 0 || task.overruns > 0);
    let wanted = match runtime.options.report {
        Some("always") => true,
        Some("never") => false,
        _ => report.exit_code() != 0 || wrong(),
    };
    if wanted {
        print_line(format_args!("{report}"));
    }
}

/// Prints to the board's console.
fn print_line(text: fmt::Arguments<'_>) {
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

/// Stops the app that runs on the core, also in a handler.
fn stop_here(reason: &'static StopReason) {
    if let Some(partition) = this_core::partition() {
        partition.runtime.stop(reason);
    }
}

impl Services for Host {
    #[inline]
    fn now() -> Instant {
        Instant::from_ticks(clock::now())
    }

    fn stop_all(reason: &'static StopReason) {
        stop_here(reason);
    }

    fn spend_here(duration: Duration) {
        if clock::is_virtual() {
            if let Some((partition, me)) = this_core::get() {
                virtual_time::spend(partition, me, duration);
            }
            return;
        }
        let executed = || this_core::partition().map_or(0, |partition| partition.executed());
        let (begin, before) = (clock::now(), executed());
        let duration = duration.as_ticks();
        while clock::now().saturating_sub(begin).saturating_sub(executed() - before) < duration {
            core::hint::spin_loop();
        }
    }

    fn is_idle(_: &'static PartitionState, me: CurrentWorker) -> bool {
        me.level() == 0 && has_begun()
    }

    fn wait_in_idle(partition: &'static PartitionState, _: CurrentWorker) {
        wait(partition);
        leave_idle(partition);
    }
}

/// Places of the tasks' figures, and the declaration of an app to Linux on a board that shares
/// memory with it: see [`punctual_core::remote`].
mod remote {
    use core::sync::atomic::Ordering;

    use crate::cells::{Shared, area, make_ring};
    use crate::report::Report;
    use crate::state::runtime::Runtime;

    /// Gives every measured task of `runtime` a place for its figures: a row, declared to Linux, as
    /// long as there are rows, otherwise memory of the board.
    ///
    /// # Safety
    /// No job can run, and none can be spawned.
    pub(super) unsafe fn begin(runtime: &'static Runtime) {
        let area = area();
        if let Some((area, uninterrupted)) = area {
            make_ring(area, uninterrupted);
            area.declare(runtime.name, runtime.home.name);
        }
        let mut rows = 0;
        for task in runtime.tasks {
            // SAFETY: no job of the task can run and none can be spawned, by this function's
            // contract.
            let (Some(info), Some(report)) = (task.info(), unsafe { task.report() }) else { continue };
            let row =
                area.and_then(|(area, uninterrupted)| Some((area, area.all_rows.get(rows)?, uninterrupted)));
            let Some((area, row, uninterrupted)) = row else {
                // SAFETY: as above.
                unsafe { info.cells.count() };
                continue;
            };
            let nanos =
                |duration: Option<punctual_core::Duration>| duration.map(|duration| duration.as_ticks());
            row.declare(info.name, info.level, report.measured, nanos(report.period), nanos(report.deadline));
            // SAFETY: as above.
            unsafe { info.cells.count_in(Shared { area, row, index: rows as u16, uninterrupted }) };
            rows += 1;
        }
        if let Some((area, _)) = area {
            area.publish(rows);
        }
    }

    /// Shows when the app started, in ns.
    pub(super) fn started(start: u64) {
        if let Some((area, _)) = area() {
            area.header.started.store(start, Ordering::Relaxed);
        }
    }

    /// Shows that the run has ended.
    pub(super) fn end(report: &Report) {
        if let Some((area, _)) = area() {
            area.header.dropped.store(report.dropped_jobs, Ordering::Relaxed);
            area.header.stopping.store(1, Ordering::Relaxed);
        }
    }
}
