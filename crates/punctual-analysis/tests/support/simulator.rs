//! A simulation of one CPU, tick by tick, which shares no code with the analysis.
//!
//! A job is ready from `ready` on, and its response is counted from `nominal`. In each tick, the
//! CPU runs the job that the rules select. Under the Stack Resource Policy, this is the started job
//! with the highest level, unless another job is above that level and above all held ceilings.
//! Without preemption, it is the started job, if any. Jobs of a level run in the order in which
//! they become ready; `rank` decides among jobs of the same instant.

/// A job of `task`, an index by which results are grouped.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) task: usize,
    pub(crate) level: u32,
    pub(crate) nominal: i64,
    pub(crate) ready: i64,
    pub(crate) execution: u64,
    /// Ceilings by ticks executed: from, to, ceiling.
    pub(crate) ceilings: Vec<(u64, u64, u32)>,
    /// The lower rank goes first.
    pub(crate) rank: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    Preemptive,
    RunToEnd,
}

struct Running {
    job: usize,
    executed: u64,
    since: i64,
}

/// Returns the longest response of each task among the jobs that end before `until`.
pub(crate) fn longest_responses(jobs: &[Job], rules: Rules, tasks: usize, until: i64) -> Vec<Option<i64>> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&at| (jobs[at].ready, jobs[at].rank, jobs[at].nominal));
    let mut coming = order.into_iter().peekable();
    let (mut waiting, mut stack): (Vec<usize>, Vec<Running>) = (Vec::new(), Vec::new());
    let mut longest = vec![None; tasks];
    let mut now = jobs.iter().map(|job| job.ready).min().unwrap_or(0);
    while now < until {
        while let Some(at) = coming.next_if(|&at| jobs[at].ready <= now) {
            waiting.push(at);
        }
        let held = |it: &Running| {
            let job = &jobs[it.job];
            let inside = job.ceilings.iter().filter(|(from, to, _)| (*from..*to).contains(&it.executed));
            inside.map(|&(_, _, ceiling)| ceiling).max().unwrap_or(0)
        };
        let level = match rules {
            Rules::Preemptive => stack.iter().map(|it| jobs[it.job].level.max(held(it))).max().unwrap_or(0),
            Rules::RunToEnd => stack.first().map_or(0, |_| u32::MAX),
        };
        let best = waiting.iter().copied().enumerate().filter(|&(_, at)| jobs[at].level > level);
        // At equal levels, the first in the list.
        if let Some((place, at)) = best.max_by_key(|&(place, at)| (jobs[at].level, std::cmp::Reverse(place)))
        {
            waiting.remove(place);
            stack.push(Running { job: at, executed: 0, since: now });
        }
        if let Some(running) = stack.last_mut() {
            running.executed += 1;
            assert!(running.since <= now);
            let job = &jobs[running.job];
            if running.executed == job.execution {
                let response = now + 1 - job.nominal;
                let of_task: &mut Option<i64> = &mut longest[job.task];
                *of_task = Some(of_task.map_or(response, |longest| longest.max(response)));
                stack.pop();
            }
        } else if let Some(&next) = coming.peek() {
            now = now.max(jobs[next].ready - 1);
        } else {
            break;
        }
        now += 1;
    }
    longest
}
