//! From the edge of a GPIO line to its handler (section 6.1 of Balciunas): in the kernel, in a
//! thread, and in a task.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Condition, Contender, Window, alternate, row};
use crate::clock::monotonic_ns;
use crate::gpio::{self, Input, Output};
use crate::model::Row;
use crate::published;
use crate::recorder::Recorder;
use crate::rt::{self, Lack};
use crate::session::{Measured, Session, Step, Unit};
use crate::subject::{Subject, outcome};

/// The time limit for an edge.
const EDGE_TIMEOUT: Duration = Duration::from_secs(1);

/// The interval at which a waiting handler checks whether it is still needed.
const LOOK: Duration = Duration::from_millis(50);

pub(super) fn steps(condition: Condition) -> Vec<Step> {
    vec![Step::new(format!("GPIO edge to handler, {}", condition.name()), move |session| {
        edges(session, condition);
    })]
}

fn edges(session: &mut Session<'_>, condition: Condition) {
    let operation = "GPIO: from the edge to the handler";
    let row = |subject| row("gpio", operation, subject).under(condition.name());
    let posix = row(Subject::Posix).published(published::edges());
    let in_kernel = Row {
        id: posix.id.replace("/posix", "/kernel"),
        subject: "kernel's interrupt".into(),
        ..posix.clone()
    };
    let (output, input) = match gpio::open(session.plan.gpio.as_ref()) {
        Ok(lines) => lines,
        Err(why) => {
            for row in [row(Subject::Punctual), posix, in_kernel] {
                session.add_unmeasured(row, why.as_str());
            }
            return;
        }
    };
    let _load = condition.begin(session);
    let input = Arc::new(input);
    let (cpu, samples) = (session.plan.cpu, session.samples());
    let kernel = Arc::new(Recorder::new(samples));
    let contenders = vec![
        Contender::new(row(Subject::Punctual), Unit::Nanos, |window| {
            let edge = Edge::new(window, None, &input);
            let config = punctual::Config::new().cpu(cpu);
            std::thread::scope(|scope| {
                let source = rt::spawn(scope, || edge.make(&output));
                let report = app::run(config, edge.clone(), input.clone());
                edge.ended.store(true, Ordering::Release);
                rt::join(source)?;
                outcome(report)
            })
        }),
        Contender::new(posix, Unit::Nanos, |window| {
            let edge = Edge::new(window, Some(&kernel), &input);
            std::thread::scope(|scope| {
                let handler = rt::spawn(scope, || {
                    let lack = rt::enter(cpu, rt::PRIORITY);
                    while !edge.ended.load(Ordering::Acquire) {
                        if input.wait(LOOK) {
                            edge.handle();
                        }
                    }
                    lack
                });
                let made = edge.make(&output);
                let lack = rt::join(handler);
                made.map(|()| lack)
            })
        }),
    ];
    alternate(session, samples, contenders);
    session.add(in_kernel, &Measured { recorder: kernel, lack: Lack::new(), unit: Unit::Nanos });
}

/// State shared by the source of edges and their handler.
#[derive(Debug)]
struct Edge {
    window: Window,
    /// The recorder for the kernel's part, if requested.
    kernel: Option<Arc<Recorder>>,
    input: Arc<Input>,
    /// The time of the last edge; 0 while edges only determine whether the handler runs.
    mark_ns: AtomicU64,
    /// `true` if the handler runs.
    is_up: AtomicBool,
    ended: AtomicBool,
}

impl Edge {
    fn new(window: &Window, kernel: Option<&Arc<Recorder>>, input: &Arc<Input>) -> Arc<Self> {
        Arc::new(Self {
            window: window.clone(),
            kernel: kernel.cloned(),
            input: input.clone(),
            mark_ns: AtomicU64::new(0),
            is_up: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        })
    }

    /// Handles an edge that has arrived.
    fn handle(&self) {
        let Some(kernel_ns) = self.input.read_ns() else { return };
        let now_ns = monotonic_ns();
        let mark_ns = self.mark_ns.load(Ordering::Acquire);
        if mark_ns == 0 {
            return self.is_up.store(true, Ordering::Release);
        }
        if let Some(kernel) = &self.kernel {
            kernel.push(kernel_ns.saturating_sub(mark_ns));
        }
        self.window.recorder.push(now_ns.saturating_sub(mark_ns));
    }

    /// Generates edges, on the calling ordinary thread, until there are enough samples; then
    /// releases the waiting handlers.
    ///
    /// It sleeps between edges: the kernel may handle an edge on a thread with a lower priority
    /// than the measured ones.
    fn make(&self, output: &Output) -> Result<(), String> {
        let made = self.make_edges(output);
        self.ended.store(true, Ordering::Release);
        made
    }

    fn make_edges(&self, output: &Output) -> Result<(), String> {
        let wanted = || !self.window.stop.is_requested() && !self.ended.load(Ordering::Acquire);
        let one = |mark_ns: &dyn Fn() -> u64, arrived: &dyn Fn() -> bool| {
            let refused = |error| format!("the line could not be set: {error}");
            output.set(false).map_err(refused)?;
            self.mark_ns.store(mark_ns(), Ordering::Release);
            output.set(true).map_err(refused)?;
            let deadline = Instant::now() + EDGE_TIMEOUT;
            while !arrived() && wanted() {
                if Instant::now() > deadline {
                    return Err("no edge arrived: the lines may not be connected".to_owned());
                }
                rt::sleep(Duration::from_micros(20));
            }
            Ok(())
        };
        // An app takes time to start, which is not part of the latency of an edge.
        one(&|| 0, &|| self.is_up.load(Ordering::Acquire))?;
        let recorder = &self.window.recorder;
        while recorder.len() < self.window.until && wanted() {
            let before = recorder.len();
            one(&monotonic_ns, &|| recorder.len() > before)?;
        }
        Ok(())
    }
}

#[punctual::app(main = false, monitor = false)]
mod app {
    use super::*;
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        edge: Arc<Edge>,
    }

    #[local]
    struct Local {
        line: Arc<Input>,
    }

    #[init]
    fn init(_: init::Context, edge: Arc<Edge>, line: Arc<Input>) -> (Shared, Local) {
        polls::spawn().expect("it is spawned once");
        (Shared { edge }, Local { line })
    }

    #[task(binds = line, priority = 2, shared = [&edge], local = [line])]
    fn handles(cx: handles::Context) {
        cx.shared.edge.handle();
    }

    /// Ends the app when no more edges come.
    #[task(priority = 1, capacity = 2, shared = [&edge])]
    fn polls(cx: polls::Context) {
        if cx.shared.edge.ended.load(Ordering::Acquire) {
            return punctual::shutdown();
        }
        polls::spawn_after(5.millis()).expect("one waits at a time");
    }
}
