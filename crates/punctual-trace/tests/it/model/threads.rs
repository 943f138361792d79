//! Threads, their scripts, and their locks.

use super::{Random, Truth, WaitTruth};

/// A step of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    Compute(u64),
    Lock(usize),
    Unlock(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Asleep,
    Ready,
    Running,
}

/// Way in which a lock waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// FUTEX_LOCK_PI.
    PiFutex,
    /// FUTEX_WAIT.
    PlainFutex,
    /// An RT mutex of the kernel.
    RtMutex,
}

pub struct Lock {
    pub kind: Kind,
    pub owner: Option<usize>,
}

pub struct Thread {
    pub tid: u32,
    /// As the kernel counts: lower is more urgent.
    pub base: i32,
    pub shown: i32,
    pub pinned: bool,
    pub cpu: usize,
    pub state: State,
    pub script: Vec<Step>,
    pub step: usize,
    pub left: u64,
    /// The lock it waits for, from the attempt until its return.
    pub waits: Option<usize>,
    /// That lock has been granted to the thread.
    pub granted: bool,
    pub job: Option<Truth>,
    pub wait: Option<WaitTruth>,
}

impl Thread {
    pub fn new(index: usize, random: &mut Random, cpus: usize) -> Self {
        Self {
            tid: 100 + index as u32,
            base: 80 - 7 * index as i32,
            shown: 80 - 7 * index as i32,
            pinned: random.once_in(2),
            cpu: random.range(0, cpus as u64 - 1) as usize,
            state: State::Asleep,
            script: Vec::new(),
            step: 0,
            left: 0,
            waits: None,
            granted: false,
            job: None,
            wait: None,
        }
    }

    /// Plans the next job. Locks are taken in ascending order, so no thread waits forever.
    pub fn plan(&mut self, random: &mut Random, locks: usize) {
        self.script.clear();
        self.script.push(Step::Compute(random.range(1, 12)));
        let mut held = Vec::new();
        for lock in 0..locks {
            if random.once_in(2) {
                self.script.push(Step::Lock(lock));
                self.script.push(Step::Compute(random.range(1, 15)));
                held.push(lock);
            }
            if random.once_in(3)
                && let Some(lock) = held.pop()
            {
                self.script.push(Step::Unlock(lock));
                self.script.push(Step::Compute(random.range(1, 6)));
            }
        }
        while let Some(lock) = held.pop() {
            self.script.push(Step::Unlock(lock));
            self.script.push(Step::Compute(random.range(1, 6)));
        }
        (self.step, self.left) = (0, self.first_length());
    }

    fn first_length(&self) -> u64 {
        self.length()
    }

    pub fn length(&self) -> u64 {
        match self.script.get(self.step) {
            Some(Step::Compute(ticks)) => *ticks,
            _ => 0,
        }
    }

    pub fn advance(&mut self) {
        self.step += 1;
        self.left = self.length();
    }
}

/// Returns the priority a thread runs with: its own or the highest of those that wait for it.
pub fn effective(threads: &[Thread], locks: &[Lock], index: usize) -> i32 {
    let held = |lock: usize| locks[lock].owner == Some(index) && locks[lock].kind != Kind::PlainFutex;
    threads
        .iter()
        .enumerate()
        .filter(|(_, t)| !t.granted && t.waits.is_some_and(held))
        .map(|(waiter, _)| effective(threads, locks, waiter))
        .fold(threads[index].base, i32::min)
}
