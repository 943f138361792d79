//! A model of the spare slot of a task: a second location under the bias of a biased word.
//!
//! Two threads on the home CPU occupy the level in turn, run jobs, and spawn jobs of the same task.
//! A foreign thread on another CPU spawns one, too. The free bits, the queue of the level and the
//! bias state change atomically, which `machine` and the models in `punctual-core` check; the level
//! and the spare are stored plainly.
//!
//! No slot may be handed out twice or be lost, and the foreign thread may be refused only if at one
//! time during its call no slot was free or another thread claimed one.

use super::explore::{Explored, Step};
use super::hardware::{Action, CPUS, Cpu, HOME, THREADS};

const SLOTS: usize = 2;
/// The foreign thread, on the other CPU.
const FOREIGN: usize = 2;
/// Values of the spare that are no slot plus 1.
const NONE: u8 = 0;
const WITHHELD: u8 = u8::MAX;

/// A violated condition of the proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Dropped {
    /// A job frees its slot after it has vacated the level.
    FreedWhileOccupied,
    /// A job makes its slot the spare although there is one.
    OneSpare,
    /// A thread takes the spare without comparing the bias state.
    BiasWithinSequence,
    /// A thread takes the spare that it has loaded without testing whether there still is one.
    SpareWithinSequence,
    /// A thread loads the spare within the sequence, tests it there, but continues after a
    /// preemption.
    TakeIsRestarted,
    /// A thread withdraws the spare without entering.
    WithdrawEnters,
    /// The barrier drains no store buffer.
    BarrierEmpties,
    /// The barrier aborts no sequence.
    BarrierAborts,
    /// A thread withdraws the spare by a load and a store.
    WithdrawIsOneStep,
    /// A thread that finds neither a free bit nor a spare does not look for a free bit again.
    LooksAgain,
}

impl Dropped {
    pub(crate) const ALL: [Self; 10] = [
        Self::FreedWhileOccupied,
        Self::OneSpare,
        Self::BiasWithinSequence,
        Self::SpareWithinSequence,
        Self::TakeIsRestarted,
        Self::WithdrawEnters,
        Self::BarrierEmpties,
        Self::BarrierAborts,
        Self::WithdrawIsOneStep,
        Self::LooksAgain,
    ];
}

/// The next instruction of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum At {
    /// Occupy the level, and pop a job.
    Occupy,
    /// Load the spare, to free the slot of the job.
    FreeLooks,
    Free,
    /// Spawn a job, or not.
    Choose,
    /// Load the spare, to spawn a job.
    SpawnLooks,
    /// Begin the sequence that takes the spare: compare the bias state.
    CompareBias,
    CompareSpare,
    Take,
    /// Claim a free bit; whether it is the second attempt.
    Claim(bool),
    /// Load the spare, to withdraw it.
    ReclaimLooks,
    Enter,
    BarrierInterrupts,
    Revoke,
    Withdraw,
    /// The store of a withdrawal that is not one step.
    WithdrawStores,
    Leave,
    /// Make the withdrawn slot a free bit.
    SetBit,
    /// Put the job into the queue.
    Queue,
    Vacate,
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Thread {
    at: At,
    /// Number of jobs that it still runs, and of those that it still spawns.
    jobs: u8,
    spawns: u8,
    /// The spare that it has loaded.
    loaded: u8,
    /// The slot that it owns, plus 1.
    slot: u8,
}

/// A location that is stored plainly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Location {
    Spare,
    Level,
}

/// A complete state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Spare {
    dropped: Option<Dropped>,
    cpus: [Cpu<(Location, u8)>; CPUS],
    threads: [Thread; THREADS],
    /// Contents of memory: the spare slot plus 1 or another value, and 1 if the level is occupied.
    spare: u8,
    level: u8,
    /// Sets of slots: free bits, and jobs in the queue.
    free: u8,
    queued: u8,
    /// Number of threads that the bias state counts, and whether it is revoked.
    counted: u8,
    revoked: bool,
    /// During the call of the foreign thread no slot was free, or another thread claimed a bit.
    may_refuse: bool,
}

/// Events seen somewhere in an exploration.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    taken: bool,
    withdrawn: bool,
    aborted: bool,
    refused: bool,
    passed_on: bool,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { taken, withdrawn, aborted, refused, passed_on } = other;
        self.taken |= taken;
        self.withdrawn |= withdrawn;
        self.aborted |= aborted;
        self.refused |= refused;
        self.passed_on |= passed_on;
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.taken && self.withdrawn && self.aborted && self.refused && self.passed_on
    }
}

/// Returns the slot for a value of the spare, plus 1.
fn slot(spare: u8) -> Option<u8> {
    (1..=SLOTS as u8).contains(&spare).then_some(spare)
}

fn bit(slot: u8) -> u8 {
    1 << (slot - 1)
}

impl Spare {
    /// `jobs` and `spawns` of the two threads on the home CPU; all slots but the last hold jobs.
    pub(crate) fn new(dropped: Option<Dropped>, [first, second]: [(u8, u8); 2], queued: u8) -> Self {
        let thread = |at, (jobs, spawns)| Thread { at, jobs, spawns, loaded: NONE, slot: 0 };
        let home = |load: (u8, u8)| thread(if load.0 == 0 { At::Over } else { At::Occupy }, load);
        Self {
            dropped,
            cpus: [Cpu::IDLE; CPUS],
            threads: [home(first), home(second), thread(At::Claim(false), (0, 0))],
            spare: NONE,
            level: 0,
            free: !queued & ((1 << SLOTS) - 1),
            queued,
            counted: 0,
            revoked: false,
            may_refuse: false,
        }
    }

    fn without(&self, condition: Dropped) -> bool {
        self.dropped == Some(condition)
    }

    fn load(&self, cpu: usize, of: Location) -> u8 {
        let newest = self.cpus[cpu].buffer.newest(|(location, value)| (location == of).then_some(value));
        newest.unwrap_or(match of {
            Location::Spare => self.spare,
            Location::Level => self.level,
        })
    }

    fn store_oldest(&mut self, cpu: usize) -> bool {
        match self.cpus[cpu].buffer.take_oldest() {
            Some((Location::Spare, value)) => self.spare = value,
            Some((Location::Level, value)) => self.level = value,
            None => return false,
        }
        true
    }

    fn empty(&mut self, cpu: usize) {
        while self.store_oldest(cpu) {}
    }

    /// Makes the slot the thread's, which must be no other's.
    fn own(&mut self, thread: usize, slot: u8) -> Result<(), String> {
        let others = self.threads.iter().any(|other| other.slot == slot);
        if others || self.queued & bit(slot) != 0 {
            return Err(format!("thread {thread} gets slot {slot}, which is in use"));
        }
        self.threads[thread].slot = slot;
        Ok(())
    }

    /// Checks a new state: at the end, each slot is a free bit or the spare.
    fn checked(mut self) -> Result<Self, String> {
        self.may_refuse |= self.free == 0 && slot(self.spare).is_none();
        let spare = slot(self.spare).map_or(0, bit);
        if self.is_over() && (self.free | spare | self.queued) != (1 << SLOTS) - 1 {
            return Err("a slot is lost".to_owned());
        }
        Ok(self)
    }

    /// Aborts the sequence of a thread, if it is in one.
    fn abort(&mut self, thread: usize, seen: &mut Seen) {
        let is_sequence = matches!(self.threads[thread].at, At::CompareSpare | At::Take);
        if is_sequence && !self.without(Dropped::TakeIsRestarted) {
            seen.aborted = true;
            self.threads[thread].at = At::Claim(false);
        }
    }

    /// Returns the next instruction of a thread that has freed its slot.
    fn freed(&self, thread: usize) -> At {
        match self.dropped {
            Some(Dropped::FreedWhileOccupied) if self.threads[thread].jobs > 0 => At::Occupy,
            Some(Dropped::FreedWhileOccupied) => At::Over,
            _ => At::Choose,
        }
    }

    /// Executes the next instruction of a thread.
    fn step(&mut self, cpu: usize, thread: usize, seen: &mut Seen) -> Result<At, String> {
        let Thread { at, loaded, slot: owned, .. } = self.threads[thread];
        let spare = self.load(cpu, Location::Spare);
        Ok(match at {
            At::Occupy => {
                self.cpus[cpu].buffer.push((Location::Level, 1));
                self.threads[thread].jobs -= 1;
                let job = (1..=SLOTS as u8).find(|&slot| self.queued & bit(slot) != 0);
                let Some(job) = job else { return Ok(At::Vacate) };
                self.queued &= !bit(job);
                self.threads[thread].slot = job;
                if self.without(Dropped::FreedWhileOccupied) { At::Vacate } else { At::FreeLooks }
            }
            At::FreeLooks => {
                seen.passed_on |= thread == 1 && slot(spare).is_some();
                self.threads[thread].loaded = spare;
                At::Free
            }
            At::Free => {
                self.threads[thread].slot = 0;
                if loaded == NONE || self.without(Dropped::OneSpare) {
                    self.cpus[cpu].buffer.push((Location::Spare, owned));
                } else {
                    self.empty(cpu);
                    self.free |= bit(owned);
                }
                self.freed(thread)
            }
            At::SpawnLooks => {
                self.threads[thread].loaded = spare;
                At::CompareBias
            }
            At::CompareBias => {
                let is_biased = self.counted == 0 && !self.revoked;
                let goes_on = is_biased || self.without(Dropped::BiasWithinSequence);
                if goes_on { At::CompareSpare } else { At::Claim(false) }
            }
            At::CompareSpare => {
                let tested = if self.without(Dropped::SpareWithinSequence) { loaded } else { spare };
                if slot(tested).is_some() { At::Take } else { At::Claim(false) }
            }
            At::Take => {
                seen.taken = true;
                self.cpus[cpu].buffer.push((Location::Spare, NONE));
                self.own(thread, loaded)?;
                At::Queue
            }
            At::Claim(again) => {
                self.empty(cpu);
                // The call of the foreign thread begins.
                self.may_refuse &= thread != FOREIGN || again;
                match (1..=SLOTS as u8).find(|&slot| self.free & bit(slot) != 0) {
                    Some(slot) => {
                        self.free &= !bit(slot);
                        self.may_refuse |= thread != FOREIGN;
                        self.own(thread, slot)?;
                        At::Queue
                    }
                    None if again => self.refused(thread, seen)?,
                    None => At::ReclaimLooks,
                }
            }
            At::ReclaimLooks => match slot(spare) {
                Some(_) if self.without(Dropped::WithdrawEnters) => At::Withdraw,
                Some(_) => At::Enter,
                None if self.without(Dropped::LooksAgain) => self.refused(thread, seen)?,
                None => At::Claim(true),
            },
            At::Enter => {
                self.empty(cpu);
                self.counted += 1;
                if self.revoked { At::Withdraw } else { At::BarrierInterrupts }
            }
            At::BarrierInterrupts => {
                self.empty(cpu);
                if !self.without(Dropped::BarrierEmpties) {
                    self.empty(HOME);
                }
                if let Some(interrupted) = self.cpus[HOME].running
                    && interrupted != thread
                    && !self.without(Dropped::BarrierAborts)
                {
                    self.abort(interrupted, seen);
                }
                At::Revoke
            }
            At::Revoke => {
                self.revoked = true;
                At::Withdraw
            }
            At::Withdraw if self.without(Dropped::WithdrawIsOneStep) => {
                self.threads[thread].loaded = spare;
                At::WithdrawStores
            }
            At::Withdraw | At::WithdrawStores => {
                self.empty(cpu);
                let found = if at == At::Withdraw { self.spare } else { loaded };
                self.spare = WITHHELD;
                if let Some(slot) = slot(found) {
                    seen.withdrawn = true;
                    self.own(thread, slot)?;
                }
                if self.without(Dropped::WithdrawEnters) { At::SetBit } else { At::Leave }
            }
            At::Leave => {
                self.counted -= 1;
                At::SetBit
            }
            At::SetBit => {
                if owned != 0 {
                    self.free |= bit(owned);
                    self.threads[thread].slot = 0;
                }
                At::Claim(true)
            }
            At::Queue => {
                self.empty(cpu);
                self.queued |= bit(owned);
                self.threads[thread].slot = 0;
                if thread == FOREIGN { At::Over } else { At::Choose }
            }
            At::Vacate => {
                self.cpus[cpu].buffer.push((Location::Level, 0));
                match self.threads[thread].jobs {
                    _ if owned != 0 => At::FreeLooks,
                    0 => At::Over,
                    _ => At::Occupy,
                }
            }
            At::Choose | At::Over => unreachable!("it is no instruction"),
        })
    }

    /// Returns the next instruction of a thread that has found no slot.
    fn refused(&mut self, thread: usize, seen: &mut Seen) -> Result<At, String> {
        if thread != FOREIGN {
            return Ok(At::Choose);
        }
        seen.refused = true;
        if self.may_refuse {
            Ok(At::Over)
        } else {
            Err("the foreign thread is refused although a slot was free throughout".to_owned())
        }
    }

    fn run(&self, cpu: usize, thread: usize, seen: &mut Seen) -> Result<Self, String> {
        let mut next = *self;
        next.threads[thread].at = next.step(cpu, thread, seen)?;
        if next.threads[thread].at == At::Over {
            next.empty(cpu);
            next.cpus[cpu].running = None;
        }
        next.checked()
    }
}

impl Explored for Spare {
    type Action = Action<At>;
    type Seen = Seen;

    fn is_over(&self) -> bool {
        self.threads.iter().all(|thread| thread.at == At::Over)
            && self.cpus.iter().all(|cpu| cpu.buffer.is_empty())
    }

    fn steps(&self, seen: &mut Seen) -> Vec<Step<Self>> {
        let mut steps = Vec::new();
        for cpu in 0..CPUS {
            let mut next = *self;
            if next.store_oldest(cpu) {
                steps.push(((cpu, Action::StoreReachesMemory), next.checked()));
            }
            if cpu == HOME && self.revoked && self.counted == 0 {
                let mut next = *self;
                next.empty(cpu);
                next.revoked = false;
                steps.push(((cpu, Action::BiasesAgain), next.checked()));
            }
            let Some(thread) = self.cpus[cpu].running else {
                let here = if cpu == HOME { 0..FOREIGN } else { FOREIGN..THREADS };
                for thread in here.filter(|&thread| self.threads[thread].at != At::Over) {
                    let mut next = *self;
                    next.cpus[cpu].running = Some(thread);
                    steps.push(((cpu, Action::SwitchIn(thread)), Ok(next)));
                }
                continue;
            };
            let at = self.threads[thread].at;
            let waits = at == At::Occupy && self.load(cpu, Location::Level) != 0;
            if at == At::Choose {
                for spawns in 0..=self.threads[thread].spawns.min(1) {
                    let mut next = *self;
                    next.threads[thread].spawns -= spawns;
                    next.threads[thread].at = if spawns == 0 { At::Vacate } else { At::SpawnLooks };
                    steps.push(((cpu, Action::Run(thread, at)), Ok(next)));
                }
            } else if !waits {
                steps.push(((cpu, Action::Run(thread, at)), self.run(cpu, thread, seen)));
            }
            let mut next = *self;
            next.empty(cpu);
            next.cpus[cpu].running = None;
            next.abort(thread, seen);
            steps.push(((cpu, Action::SwitchOut(thread)), next.checked()));
        }
        steps
    }
}
