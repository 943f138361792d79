//! Attributes each tick to every job's activity in it.

use super::{Actor, HolderState, Machine, Mode, State, TICK};

impl Machine {
    /// Returns the occupant of a CPU.
    fn occupant(&self, cpu: usize) -> Actor {
        let thread = self.cpus[cpu].current.map_or(0, |thread| self.threads[thread].tid);
        self.cpus[cpu].handlers.last().map_or(Actor::Thread(thread), |handler| handler.0.actor)
    }

    /// Returns a holder's activity, or `None` if it sleeps.
    pub(super) fn doing(&self, holder: usize) -> Option<HolderState> {
        let thread = &self.threads[holder];
        if thread.state == State::Asleep {
            return None;
        }
        let by = self.occupant(thread.cpu);
        Some(if by == Actor::Thread(thread.tid) {
            HolderState::Running
        } else {
            HolderState::Preempted { by }
        })
    }

    pub(super) fn count(&mut self) {
        for index in 0..self.threads.len() {
            let by = self.occupant(self.threads[index].cpu);
            self.count_wait(index);
            let cpu = self.threads[index].cpu;
            let (mode, handled) = (self.cpus[cpu].mode, !self.cpus[cpu].handlers.is_empty());
            let thread = &mut self.threads[index];
            let Some(job) = thread.job.as_mut() else { continue };
            if thread.waits.is_some() {
                job.blocking += TICK;
            } else if thread.state == State::Ready && job.start == 0 {
                *job.jitter_causes.entry(by).or_default() += TICK;
            } else if thread.state == State::Ready || handled {
                job.interference += TICK;
                *job.interference_causes.entry(by).or_default() += TICK;
            } else if mode == Mode::Normal {
                job.execution += TICK;
            } else {
                job.overhead += TICK;
            }
        }
        for cpu in &mut self.cpus {
            if let Some(((_, left), outer)) = cpu.handlers.split_last_mut() {
                *left -= 1;
                outer.iter_mut().for_each(|(handler, _)| handler.interference += TICK);
                continue;
            }
            match &mut cpu.mode {
                Mode::Exiting(left, _) | Mode::Entering(left) | Mode::Contending(left) => *left -= 1,
                Mode::Normal => {
                    if let Some(thread) = cpu.current {
                        let thread = &mut self.threads[thread];
                        thread.left = thread.left.saturating_sub(1);
                    }
                }
            }
        }
    }
}
