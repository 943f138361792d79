//! Chains of tasks: `--chain`.

use std::fmt::Write as _;

use punctual_report::format::{format_clock, format_count, format_counted};
use punctual_report::text::wrapped;
use punctual_trace::jobs::{Actor, Job, Select};
use punctual_trace::names::Names;
use punctual_trace::read::Trace;
use punctual_trace_report::chains::{Chain, Finder};
use punctual_trace_report::explain;
use punctual_trace_report::export;

use super::Failure;
use super::analysis::{Analyzer, called, kernel_name, number};
use super::args::Report;
use super::parse::ChainOf;
use super::reading::{Batch, Reading};
use super::text::width;

/// The requested chains.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    chains: Vec<(Vec<String>, Chain)>,
    /// Crossings as JSON, if requested.
    lines: Option<Vec<String>>,
}

impl Chains {
    /// Creates chains of these tasks; with `lines`, each crossing is stored as a line of JSON.
    pub(crate) fn new(tasks: Vec<Vec<String>>, lines: bool) -> Self {
        let chains = tasks.into_iter().map(|tasks| {
            let chain = Chain::new(tasks.len());
            (tasks, chain)
        });
        Self { chains: chains.collect(), lines: lines.then(Vec::new) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    /// Returns the selection extended by the threads of the chains.
    pub(crate) fn select(&self, mut select: Select) -> Select {
        for task in self.tasks() {
            select.tids.extend(number(task));
            select.names.extend([kernel_name(task).to_owned(), task.to_owned()]);
        }
        select
    }

    /// Returns the tasks of all chains.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = &str> {
        self.chains.iter().flat_map(|(tasks, _)| tasks.iter().map(String::as_str))
    }

    /// Returns each chain and its tasks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[String], &Chain)> {
        self.chains.iter().map(|(tasks, chain)| (tasks.as_slice(), chain))
    }

    /// Processes the next job. It belongs to a stage by any of the names in `chosen`.
    pub(crate) fn job(&mut self, job: &Job, names: &Names, chosen: &Names) {
        let Self { chains, lines } = self;
        for (tasks, chain) in chains {
            let actors = [Some(job.actor), job.task.map(Actor::Task)];
            let is_of =
                |stage: usize| actors.into_iter().flatten().any(|actor| called(actor, &tasks[stage], chosen));
            chain.job(job, is_of, &mut |crossing| {
                if let Some(lines) = lines {
                    lines.push(export::crossing(crossing, names));
                }
            });
        }
    }

    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        self.lines.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// Returns the tasks of each chain requested on the command line. For `auto`, this reads the trace.
pub(crate) fn wanted(
    arguments: &Report,
    trace: &Trace,
    analyzer: impl Fn() -> Analyzer,
) -> Result<Vec<Vec<String>>, Failure> {
    let mut chains = Vec::new();
    for chain in &arguments.chains {
        match chain {
            ChainOf::Tasks(tasks) => chains.push(tasks.clone()),
            ChainOf::Auto => chains.extend(find(trace, analyzer())?),
        }
    }
    Ok(chains)
}

/// Finds the chains of the reported threads, as their IDs. Read errors are reported when the trace
/// is analyzed.
fn find(trace: &Trace, mut analyzer: Analyzer) -> Result<Vec<Vec<String>>, Failure> {
    let mut finder = Finder::default();
    let events = trace.events()?;
    analyzer.learn_listed(events.threads());
    std::thread::scope(|scope| {
        let reading = Reading::start(scope, events)?;
        while let Some(Batch { news, events, .. }) = reading.next() {
            if let Some(news) = &news {
                analyzer.learn(news);
            }
            for event in &events {
                analyzer.feed(event, &mut |job, _| finder.job(job), &mut |_, _| {});
            }
            reading.give_back(events);
        }
        Ok::<_, Failure>(())
    })?;
    let chains = finder.chains();
    if chains.is_empty() {
        return Err("--chain auto: no thread is mostly woken by another one that is reported; name the tasks of a chain, or choose more \
                    threads with --task"
            .into());
    }
    Ok(chains.into_iter().map(|chain| chain.iter().map(u32::to_string).collect()).collect())
}

/// Returns the names of a chain's stages: as in its longest crossing, or as on the command line.
pub(crate) fn stage_names(tasks: &[String], chain: &Chain, names: &Names) -> Vec<String> {
    match chain.longest().first() {
        Some(crossing) => {
            let jobs = crossing.jobs.iter();
            jobs.map(|job| names.at(job.end).of(job.task.map_or(job.actor, Actor::Task))).collect()
        }
        None => tasks.to_vec(),
    }
}

/// Returns each chain with its table and its longest crossing.
pub(crate) fn text(chains: &Chains, names: &Names) -> String {
    let (mut out, width) = (String::new(), width());
    for (tasks, chain) in chains.iter() {
        let stages = stage_names(tasks, chain, names);
        let mut head =
            format!("\nchain {}, {}", stages.join(" → "), format_counted(chain.latency().count, "crossing"));
        for (count, what) in [
            (chain.flawed(), "with flawed jobs left out"),
            (chain.unmatched(), "jobs of the last task not woken along it"),
        ] {
            if count > 0 {
                let _ = write!(head, ", {} {what}", format_count(count));
            }
        }
        out += &wrapped("", &head, 2, width);
        let _ = write!(out, "{}", export::chain_table(chain, &stages).indent(2));
        if let Some(longest) = chain.longest().first() {
            let end = longest.stages.last().map_or(0, |stage| stage.to);
            let _ = writeln!(
                out,
                "\n  longest crossing, {}, ended at {} by the trace's clock",
                explain::value(longest.latency),
                format_clock(end)
            );
            for sentence in explain::crossing(longest, names) {
                out += &wrapped("    ", &sentence, 8, width);
            }
        }
    }
    out
}
