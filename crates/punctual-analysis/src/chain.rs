//! Cause-effect chains: the time from an external event until it has passed through a sequence of
//! tasks.
//!
//! Spawned chains: each task is released by the job before it, so the reaction is at most the sum
//! of the responses (Tindell & Clark 1994). A job that is called within a partition ends before its
//! caller does. A job that follows higher levels of its partition shares one busy window with them,
//! and its response already contains theirs (González Harbour & Palencia 1999).
//!
//! Sampled chains: each task runs at its own releases, reads the latest value, and writes at its
//! end. *Dürr, von der Brüggen, Chen, Chen, "End-to-End Timing Analysis of Sporadic Cause-Effect
//! Chains in Distributed Systems", ACM TECS 18(5s), 2019*: an event waits for at most one period of
//! the first task. From the release of a job to the release of the job of the next task that first
//! reads its value takes at most the longer of two times: its response, and the period plus the
//! response of the next task. The response counts only if the next task could start before the
//! first has ended, that is, on another CPU or at a level that is not lower. *Günzel, Teper, Chen,
//! von der Brüggen, Chen, "On the Equivalence of Maximum Reaction Time and Maximum Data Age for
//! Cause-Effect Chains", ECRTS 2023*: the data age of the last value has the same maximum.
//! Sufficient.
//!
//! Sampled chains need a longest time between releases, which only periodic tasks have: a task
//! released by events may never be released.

use crate::bound::Analysis;
use crate::release::end_of_chain;
use crate::system::{Chain, Executor, Link, System};
use crate::time::Nanos;

/// Returns the longest reaction time of a chain: from an event to the end of the first job of the
/// last task that it affects, in ns.
///
/// # Errors
/// Returns a sentence with the reason if the reaction time is unbounded or unknown.
pub fn reaction(system: &System, analysis: &Analysis, chain: &Chain) -> Result<Nanos, String> {
    let too_long = || format!("`{}` has no bound: it takes longer than can be expressed.", chain.name);
    let mut bounds = Vec::with_capacity(chain.tasks.len());
    for &at in &chain.tasks {
        match &analysis.tasks[at] {
            Ok(bound) => bounds.push(bound),
            Err(_) => {
                return Err(format!(
                    "`{}` has no bound, since `{}` has none.",
                    chain.name, system.tasks[at].name
                ));
            }
        }
    }
    if chain.link == Link::Spawned {
        spawned_sequence(system, chain)?;
        return Ok(end_of_chain(system, &chain.tasks, &bounds));
    }
    let mut total = longest_gap(system, chain, chain.tasks[0])?;
    for (place, pair) in chain.tasks.windows(2).enumerate() {
        let response = bounds[place].response;
        let period = longest_gap(system, chain, pair[1])?;
        let waits = if ends_first(system, pair[0], pair[1]) { 0 } else { response };
        let step = response.max(period.checked_add(waits).ok_or_else(too_long)?);
        total = total.checked_add(step).ok_or_else(too_long)?;
    }
    total.checked_add(bounds.last().map_or(0, |last| last.response)).ok_or_else(too_long)
}

/// Checks that every task of the chain spawns the next.
fn spawned_sequence(system: &System, chain: &Chain) -> Result<(), String> {
    for pair in chain.tasks.windows(2) {
        let [first, next] = [pair[0], pair[1]].map(|at| &system.tasks[at]);
        if !first.spawns.iter().any(|spawn| spawn.task == pair[1]) {
            return Err(format!(
                "`{}` has no bound: `{}` does not spawn `{}`.",
                chain.name, first.name, next.name
            ));
        }
    }
    Ok(())
}

/// Returns the longest time between two releases of a periodic task, jitter included.
fn longest_gap(system: &System, chain: &Chain, at: usize) -> Result<Nanos, String> {
    let task = &system.tasks[at];
    let period = task.arrivals.as_ref().filter(|arrivals| task.is_periodic && arrivals.is_sporadic());
    match period.and_then(|arrivals| arrivals.window().checked_add(task.jitter)) {
        Some(gap) => Ok(gap),
        None => Err(format!(
            "`{}` has no bound: `{}` is not released by the clock, so it may never read what is written.",
            chain.name, task.name
        )),
    }
}

/// Returns whether a job that is released after a job of `first` starts only after that job has
/// ended.
fn ends_first(system: &System, first: usize, next: usize) -> bool {
    let [first, next] = [first, next].map(|at| &system.tasks[at]);
    first.partition == next.partition
        && first.level > next.level
        && first.suspension.is_none()
        && first.jitter == 0
        && !matches!(system.partitions[first.partition].executor, Executor::Global { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{analyze, schema};

    fn reaction_of(text: &str) -> Result<Nanos, String> {
        let system = schema::read("t", &format!("schema = \"punctual-taskset/1\"\n{text}")).unwrap();
        reaction(&system, &analyze(&system), &system.chains[0])
    }

    const SAMPLED: &str = "
        [[task]]\nname = \"a\"\nlevel = 2\nperiod = \"10ns\"\nexecution = \"2ns\"
        [[task]]\nname = \"b\"\nlevel = 1\nperiod = \"40ns\"\nexecution = \"5ns\"
        [[chain]]\nname = \"c\"\n";

    #[test]
    fn adds_up_periods_and_responses() {
        // R = 2 and 7. Downwards, b starts after a has ended; upwards, a may just miss the value of
        // b.
        assert_eq!(reaction_of(&format!("{SAMPLED}tasks = [\"a\", \"b\"]")), Ok(10 + 40 + 7));
        assert_eq!(reaction_of(&format!("{SAMPLED}tasks = [\"b\", \"a\"]")), Ok(40 + (10 + 7) + 2));
        assert_eq!(reaction_of(&format!("{SAMPLED}tasks = [\"b\"]")), Ok(40 + 7));
    }

    #[test]
    fn adds_up_responses_of_spawned_tasks() {
        let spawned = SAMPLED
            .replace("2ns\"\n", "2ns\"\nspawns = [{ task = \"b\" }]\n")
            .replace("period = \"40ns\"\n", "");
        // The window of b contains the job of a that spawns it: 2 + 5 in total.
        assert_eq!(reaction_of(&format!("{spawned}tasks = [\"a\", \"b\"]\nlink = \"spawned\"")), Ok(7));
        // At a level above a, b is called and ends first. The window of each contains the 5 of the
        // other.
        let above = spawned.replace("level = 1", "level = 3");
        assert_eq!(reaction_of(&format!("{above}tasks = [\"a\", \"b\"]\nlink = \"spawned\"")), Ok(7));
        // On another CPU, b follows a.
        let partitions = "[[partition]]\nname = \"x\"\n[[partition]]\nname = \"y\"\n";
        let elsewhere = spawned
            .replacen("level = 2", "level = 2\npartition = \"x\"", 1)
            .replace("level = 1", "level = 1\npartition = \"y\"");
        let elsewhere = format!("{partitions}{elsewhere}tasks = [\"a\", \"b\"]\nlink = \"spawned\"");
        assert_eq!(reaction_of(&elsewhere), Ok(2 + 5));
        let error = reaction_of(&format!("{SAMPLED}tasks = [\"a\", \"b\"]\nlink = \"spawned\"")).unwrap_err();
        assert!(error.contains("`a` does not spawn `b`"), "{error}");
        let error = reaction_of(&format!("{spawned}tasks = [\"a\", \"b\"]")).unwrap_err();
        assert!(error.contains("`b` is not released by the clock"), "{error}");
    }
}
