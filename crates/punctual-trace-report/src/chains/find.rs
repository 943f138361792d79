//! Finds the threads that wake each other.

use std::collections::HashMap;

use punctual_trace::event::Tid;
use punctual_trace::jobs::{Actor, Job};

use super::woken_by;

/// Maximum length of a chain, and maximum number of chains.
const MAX_LENGTH: usize = 16;
const MAX_CHAINS: usize = 8;
/// Maximum number of thread pairs that are counted.
const MAX_PAIRS: usize = 65_536;
/// Minimum number of jobs of a thread in a chain.
const FEWEST: u64 = 2;

/// Finds chains: sequences of threads in which most jobs of each thread are woken by the previous
/// one.
#[derive(Debug, Default)]
pub struct Finder {
    jobs: HashMap<Tid, u64>,
    woken: HashMap<(Tid, Tid), u64>,
}

impl Finder {
    /// Processes the next job.
    pub fn job(&mut self, job: &Job) {
        let Actor::Thread(thread) = job.actor else { return };
        if self.jobs.len() < MAX_PAIRS || self.jobs.contains_key(&thread) {
            *self.jobs.entry(thread).or_default() += 1;
        }
        if let Some((Actor::Thread(waker), _)) = woken_by(job) {
            let pair = (waker, thread);
            if waker != thread && (self.woken.len() < MAX_PAIRS || self.woken.contains_key(&pair)) {
                *self.woken.entry(pair).or_default() += 1;
            }
        }
    }

    /// Returns the chains, the most used first, each as thread numbers in wake-up order.
    #[must_use]
    pub fn chains(&self) -> Vec<Vec<Tid>> {
        let jobs = |thread: Tid| self.jobs.get(&thread).copied().unwrap_or(0);
        let mut before: HashMap<Tid, (u64, Tid)> = HashMap::new();
        for (&(waker, thread), &count) in &self.woken {
            // Both have jobs, and the earlier one woke more than half of the later one's.
            if jobs(waker) >= FEWEST && count >= FEWEST && 2 * count > jobs(thread) {
                before.insert(thread, (count, waker));
            }
        }
        let is_last = |thread: &Tid| before.values().all(|(_, waker)| waker != thread);
        let mut chains: Vec<(u64, Vec<Tid>)> = Vec::new();
        for &last in before.keys().filter(|thread| is_last(thread)) {
            let (mut chain, mut least) = (vec![last], u64::MAX);
            while let Some(&(count, waker)) = chain.last().and_then(|thread| before.get(thread)) {
                if chain.contains(&waker) || chain.len() >= MAX_LENGTH {
                    break;
                }
                chain.push(waker);
                least = least.min(count);
            }
            chain.reverse();
            chains.push((least, chain));
        }
        chains.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.cmp(b)));
        chains.into_iter().take(MAX_CHAINS).map(|(_, chain)| chain).collect()
    }
}
