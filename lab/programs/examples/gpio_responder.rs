//! A task bound to a GPIO line answers each of its rising edges by a pulse on another line: the
//! user-space form of the latency test in section 6.1 of Balciunas.
//!
//!     gpio_responder CHIP IN OUT COUNT
//!
//! It prints "ready" once edges are detected, and ends after COUNT. The shortest and the longest
//! time between two edges, according to the kernel, go to stderr: the subject of table 3 of
//! Cunningham, if the edges have a fixed period.

use std::env;
use std::process::ExitCode;

use gpiocdev::Request;
use gpiocdev::line::{EdgeDetection, Value};
use punctual::Config;

use punctual_lab::{Result, end, word};

const USAGE: &str = "CHIP IN OUT COUNT, as in /dev/gpiochip0 17 27 100";

fn main() -> Result<ExitCode> {
    let mut words = env::args().skip(1);
    let chip: String = word(USAGE, &mut words)?;
    let (input, output, count) =
        (word(USAGE, &mut words)?, word(USAGE, &mut words)?, word(USAGE, &mut words)?);
    end(USAGE, words)?;
    if count == 0 {
        return Err("COUNT is at least 1".into());
    }

    let mut wanted = Request::builder();
    wanted.with_consumer("gpio_responder").on_chip(&chip).with_line(input).as_input();
    let edges = wanted.with_edge_detection(EdgeDetection::RisingEdge).request()?;
    let mut wanted = Request::builder();
    wanted.with_consumer("gpio_responder").on_chip(&chip).with_line(output).as_output(Value::Inactive);
    let answers = Answers { line: wanted.request()?, number: output };

    let report = app::run(Config::from_env(), edges, answers, count)?;
    println!("{} after {} edges", report.outcome, report.tasks[0].jobs);
    Ok(ExitCode::from(report.exit_code()))
}

/// The answering line.
struct Answers {
    line: Request,
    number: u32,
}

impl Answers {
    fn pulse(&self) -> gpiocdev::Result<()> {
        self.line.set_value(self.number, Value::Active)?;
        self.line.set_value(self.number, Value::Inactive)?;
        Ok(())
    }
}

#[punctual::app]
mod app {
    use super::{Answers, Request};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        edges: Request,
        answers: Answers,
        left: u64,
        last_ns: Option<u64>,
        /// The shortest and the longest time between two edges.
        between_ns: (u64, u64),
    }

    #[init]
    fn init(_: init::Context, edges: Request, answers: Answers, count: u64) -> (Shared, Local) {
        println!("ready");
        (Shared {}, Local { edges, answers, left: count, last_ns: None, between_ns: (u64::MAX, 0) })
    }

    #[task(binds = edges, priority = 3, local = [edges, answers, left, last_ns, between_ns])]
    fn answer(cx: answer::Context) {
        let edge = cx.local.edges.read_edge_event().expect("an edge is there");
        cx.local.answers.pulse().expect("the line is an output of ours");

        if let Some(last_ns) = cx.local.last_ns.replace(edge.timestamp_ns) {
            let ns = edge.timestamp_ns - last_ns;
            let (shortest, longest) = *cx.local.between_ns;
            *cx.local.between_ns = (shortest.min(ns), longest.max(ns));
        }
        *cx.local.left -= 1;
        if *cx.local.left == 0 {
            let (shortest, longest) = *cx.local.between_ns;
            eprintln!("between edges: longest {} us, shortest {} us", longest / 1000, shortest / 1000);
            punctual::shutdown();
        }
    }
}
