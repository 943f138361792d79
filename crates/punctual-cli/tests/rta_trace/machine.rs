//! A simulated CPU with threads of fixed priorities, a timer interrupt for each release, and a
//! tick: its behavior is known, and it is traced as by a kernel.
#![allow(unreachable_pub)]

use punctual_trace::event::{Event, Kind, SwitchOut, Task};

use crate::traces::{IDLE, Script, task};

/// From the interrupt that releases a job to the switch, and from the end of its work to the
/// switch, in ns.
pub const SWITCH: u64 = 2_000;
/// Duration of the timer interrupt.
const INTERRUPT: u64 = 3_000;
/// From the due time of a timer to its interrupt.
const LATE: u64 = 1_000;
const VECTOR: u16 = 236;

struct Thread {
    task: Task,
    /// `None` if it is woken by the thread before it.
    period: Option<u64>,
    next: u64,
    work: u64,
    /// Remaining work of the current job, if there is one.
    left: Option<u64>,
    /// Release of the current job, until it runs.
    released: u64,
}

/// The machine.
pub struct Machine {
    script: Script,
    threads: Vec<Thread>,
    tick: u64,
    /// True if the threads mark their jobs, as those of Punctual apps do.
    pub marks: bool,
}

impl Machine {
    /// Control at 1 ms, vision at 5 ms, and a log that vision wakes. The most urgent first.
    pub fn new() -> Self {
        let thread = |id, priority, period, work| Thread {
            task: task(id, priority),
            period,
            next: period.unwrap_or(u64::MAX),
            work,
            left: None,
            released: 0,
        };
        let threads = vec![
            thread(101, 49, Some(1_000_000), 200_000),
            thread(102, 59, Some(5_000_000), 1_500_000),
            thread(103, 69, None, 300_000),
        ];
        Self { script: Script::new(), threads, tick: 4_000_000 - 400_000, marks: false }
    }

    /// From then on a thread above vision runs and does not end.
    pub fn hog_from(&mut self, time: u64) {
        let hog = Thread {
            task: task(104, 55),
            period: Some(u64::MAX / 4),
            next: time,
            work: u64::MAX / 4,
            left: None,
            released: 0,
        };
        self.threads.insert(1, hog);
    }

    pub fn events(self) -> Vec<Event> {
        self.script.events
    }

    /// Runs it for `length` ns.
    pub fn run(&mut self, length: u64) {
        let mut now = 0;
        for thread in &self.threads {
            self.script.at(
                0,
                0,
                Kind::TimerStart { timer: thread.task.id.into(), expires: thread.next.min(length * 2) },
            );
        }
        while now < length {
            let due = self.threads.iter().map(|thread| thread.next).min().unwrap_or(u64::MAX);
            let next = (due.saturating_add(LATE)).min(self.tick);
            let running = self.threads.iter().position(|thread| thread.left.is_some());
            let ends = running.and_then(|at| now.checked_add(self.threads[at].left?));
            match (running, ends) {
                (Some(at), Some(ends)) if ends <= next => now = self.end(at, ends),
                _ => {
                    let from = now;
                    now = next.max(now);
                    if let Some(left) = running.and_then(|at| self.threads[at].left.as_mut()) {
                        *left -= now - from;
                    }
                    now = self.interrupt(now);
                }
            }
        }
    }

    fn switch(&mut self, time: u64, reason: SwitchOut) {
        let next =
            self.threads.iter().find(|thread| thread.left.is_some()).map_or(IDLE, |thread| thread.task);
        if self.script.on(0).id != next.id {
            self.script.switch(time, 0, reason, next);
            self.mark(time);
        }
    }

    /// The running thread marks the start of its job, if it marks jobs.
    fn mark(&mut self, time: u64) {
        let running = self.script.on(0).id;
        if let Some(thread) = self.threads.iter_mut().find(|thread| self.marks && thread.task.id == running)
            && thread.released > 0
        {
            let released = std::mem::take(&mut thread.released);
            self.script.at(time, 0, Kind::JobStart { task: (running - 100) as u16, released });
        }
    }

    /// The job ends: the switch away is part of it.
    fn end(&mut self, at: usize, time: u64) -> u64 {
        let time = time + SWITCH;
        self.threads[at].left = None;
        if self.marks {
            let task = (self.threads[at].task.id - 100) as u16;
            self.script.at(time - SWITCH, 0, Kind::JobEnd { task });
        }
        if let Some(woken) = self.threads.get_mut(at + 1).filter(|thread| thread.period.is_none() && at > 0) {
            (woken.left, woken.released) = (Some(woken.work), time - SWITCH);
            let task = woken.task;
            self.script.waking(time - SWITCH, 0, task, 0);
            self.script.wakeup(time - SWITCH, 0, task, 0);
        }
        let Thread { task, period, next, .. } = self.threads[at];
        if period.is_some() {
            self.script.at(time - SWITCH / 2, 0, Kind::TimerStart { timer: task.id.into(), expires: next });
        }
        self.switch(time, SwitchOut::Sleeping);
        time
    }

    fn interrupt(&mut self, time: u64) -> u64 {
        self.script.at(time, 0, Kind::VectorEntry { vector: VECTOR });
        if time >= self.tick {
            self.tick += 4_000_000;
        }
        let mut within = time;
        let mut soon = || {
            within += 200;
            within
        };
        for at in 0..self.threads.len() {
            let Thread { task, period, next, work, .. } = self.threads[at];
            let Some(period) = period.filter(|_| next + LATE <= time) else { continue };
            let timer = task.id.into();
            let now = soon();
            self.script.at(now, 0, Kind::TimerExpire { timer, now });
            self.script.waking(soon(), 0, task, 0);
            self.script.wakeup(soon(), 0, task, 0);
            self.script.at(soon(), 0, Kind::TimerExpired { timer });
            self.threads[at].next = next.saturating_add(period);
            (self.threads[at].left, self.threads[at].released) = (Some(work), next);
        }
        let time = time + INTERRUPT;
        self.script.at(time, 0, Kind::VectorExit { vector: VECTOR });
        let time = time + SWITCH;
        self.switch(time, SwitchOut::Runnable);
        time
    }
}

/// Returns whether it is an event of the scheduler.
pub fn is_sched(event: &Event) -> bool {
    matches!(event.kind, Kind::Waking { .. } | Kind::Wakeup { .. } | Kind::Switch { .. })
}
