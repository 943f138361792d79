//! `punctual trace report`: from a trace to tables, sentences and files.

use punctual_trace::jobs::Select;
use punctual_trace::read::Trace;

use super::analysis::Analyst;
use super::args::Report;
use super::{FAILED, Failure, text};
use crate::output::print;

pub(crate) fn run(arguments: &Report) -> Result<u8, Failure> {
    let trace = Trace::open(&arguments.trace)?;
    let select = Select { marked: true, ..Select::real_time() };
    let mut analyst = Analyst::new(&arguments.analysis, select, trace.clock() == "mono", false);
    let mut code = 0;
    let mut events = trace.events()?;
    while let Some(event) = events.next() {
        analyst.learn(events.threads(), events.tasks());
        match event {
            Ok(event) => analyst.feed(&event, &mut |_, _| {}, &mut |_, _| {}),
            Err(error) => {
                eprintln!("warning: {error}");
                code = FAILED;
            }
        }
    }
    analyst.finish(&mut |_, _| {});
    for name in analyst.unknown() {
        eprintln!("error: no job of `{name}` is in {}", arguments.trace.display());
        code = FAILED;
    }
    if analyst.watch().left_out() > 0 {
        eprintln!("warning: there are more tasks than can be shown; choose some with --task");
    }
    print(&text::tasks(&analyst, usize::from(arguments.analysis.worst)));
    Ok(code)
}
