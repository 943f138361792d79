//! A kernel that preempts, moves and aborts, and threads that change the word like
//! `process/port/linux/word`.

use super::dropped::Dropped;
use super::explore::{Explored, Step};
use super::hardware::{Action, CPUS, Cpu, HOME, THREADS};

/// Number of bits in which a thread counts its changes.
const FIELD: usize = 2;

/// Placement of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Home,
    Elsewhere,
    Anywhere,
}

/// The change that ends a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum By {
    /// A store of a word that follows from an expected one.
    Store,
    /// A test of the word, and an instruction that loads, changes and stores it: of one bit in
    /// `process/port/linux/word`, and here of one number, so that each change is visible.
    Instruction,
}

/// The next instruction of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum At {
    /// Set the flag, before the first change of the thread that does.
    Flag,
    /// Choose the kind of the change.
    Begin,
    /// Load the expected word.
    Expect,
    /// Load the CPU or the flag, test the word, or look for work, where a violated condition
    /// permits it.
    Early(By),
    /// Announce the following sequence to the kernel.
    Announce(By),
    /// Load the CPU from the thread's record.
    LoadCpu(By),
    /// Compare the bias state with it and, to start a job by an instruction, the flag with 0.
    CompareBias(By),
    StoreWord,
    Store,
    Test,
    Change,
    /// Look for work in the word after the change.
    Check,
    /// Load the expected word of a locked change.
    ExpectLocked,
    LockedCpu,
    Locked,
    /// Bias the word, or not yet.
    MayBias,
    Enter,
    /// Determine the thread that runs on the home CPU.
    BarrierLooks,
    /// Interrupt that thread.
    BarrierInterrupts,
    Revoke,
    ChangeElsewhere,
    Leave,
    Over,
}

impl At {
    /// Returns whether it is within the sequence that ends with a store, or with a locked change.
    fn sequence(self) -> Option<bool> {
        match self {
            Self::LoadCpu(_) | Self::CompareBias(_) => Some(true),
            Self::StoreWord | Self::Store | Self::Test | Self::Change => Some(true),
            Self::LockedCpu | Self::Locked => Some(false),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Thread {
    role: Role,
    at: At,
    /// Number of changes still to be made.
    left: u8,
    /// The word that its change has to find.
    expected: u8,
    /// The CPU that it has loaded.
    cpu: usize,
    /// The flag that it has loaded early.
    flag: bool,
    /// The word that it has made, or found when it looked for work.
    made: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct BiasState {
    counted: u8,
    revoked: bool,
}

/// A complete state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Machine {
    dropped: Option<Dropped>,
    /// Only words are stored plainly.
    cpus: [Cpu<u8>; CPUS],
    threads: [Thread; THREADS],
    /// Contents of memory.
    word: u8,
    bias_state: BiasState,
    /// Set by a locked instruction.
    flag: bool,
    /// The thread that sets the flag, as one whose job has panicked.
    flags: Option<usize>,
    /// That thread has changed the word.
    has_faulted: bool,
    /// The word after the last change.
    truth: u8,
}

/// Events seen somewhere in an exploration.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) stored: bool,
    pub(crate) changed: bool,
    pub(crate) locked_elsewhere: bool,
    pub(crate) aborted: bool,
    pub(crate) biased_again: bool,
    pub(crate) barrier: bool,
}

impl Explored for Machine {
    type Action = Action<At>;
    type Seen = Seen;

    /// All threads have made their changes, and these are in memory.
    fn is_over(&self) -> bool {
        self.threads.iter().all(|thread| thread.at == At::Over)
            && self.cpus.iter().all(|cpu| cpu.buffer.is_empty())
    }

    fn steps(&self, seen: &mut Seen) -> Vec<Step<Self>> {
        let mut steps = Vec::new();
        for cpu in 0..CPUS {
            let mut next = *self;
            if let Some(word) = next.cpus[cpu].buffer.take_oldest() {
                next.word = word;
                steps.push(((cpu, Action::StoreReachesMemory), next.checked()));
            }
            match self.cpus[cpu].running {
                Some(thread) => {
                    self.run(cpu, thread, seen, &mut steps);
                    self.switch_out(cpu, thread, seen, &mut steps);
                }
                None => self.switch_in(cpu, &mut steps),
            }
        }
        steps
    }
}

impl Machine {
    /// The last thread sets the flag if `is_flagged`.
    pub(crate) fn new(dropped: Option<Dropped>, roles: &[(Role, u8)], is_flagged: bool) -> Self {
        assert!(
            roles.len() <= THREADS && roles.iter().all(|(_, left)| *left < 1 << FIELD),
            "a word has a field for each thread"
        );
        let thread = |number| {
            let (role, left) = roles.get(number).copied().unwrap_or((Role::Anywhere, 0));
            let at = if left == 0 { At::Over } else { At::Begin };
            Thread { role, at, left, expected: 0, cpu: 0, flag: false, made: 0 }
        };
        Self {
            dropped,
            cpus: [Cpu::IDLE; CPUS],
            threads: std::array::from_fn(thread),
            word: 0,
            bias_state: BiasState::default(),
            flag: false,
            flags: is_flagged.then(|| roles.len() - 1),
            has_faulted: false,
            truth: 0,
        }
    }

    /// At the end, checks that all changes are in the word.
    fn checked(self) -> Result<Self, String> {
        match self.is_over() && self.word != self.truth {
            true => Err(format!("the word is {:#b} and should be {:#b}", self.word, self.truth)),
            false => Ok(self),
        }
    }

    fn switch_in(&self, cpu: usize, steps: &mut Vec<Step<Self>>) {
        for (number, thread) in self.threads.iter().enumerate() {
            let may = match thread.role {
                Role::Home => cpu == HOME,
                Role::Elsewhere => cpu != HOME,
                Role::Anywhere => true,
            };
            let runs = self.cpus.iter().any(|cpu| cpu.running == Some(number));
            if may && !runs && thread.at != At::Over {
                let mut next = *self;
                next.cpus[cpu].running = Some(number);
                steps.push(((cpu, Action::SwitchIn(number)), Ok(next)));
            }
        }
    }

    /// Preempts a thread: its stores reach memory, and a sequence is aborted.
    fn switch_out(&self, cpu: usize, thread: usize, seen: &mut Seen, steps: &mut Vec<Step<Self>>) {
        let mut next = *self;
        next.empty(cpu);
        next.cpus[cpu].running = None;
        for next in next.aborted(thread, seen) {
            steps.push(((cpu, Action::SwitchOut(thread)), next.checked()));
        }
    }

    /// Returns the states after an abort of a thread's sequence, if any: it begins another, or
    /// enters.
    fn aborted(self, thread: usize, seen: &mut Seen) -> Vec<Self> {
        let restarts = match self.threads[thread].at.sequence() {
            Some(true) => self.dropped != Some(Dropped::StoreIsRestarted),
            Some(false) => self.dropped != Some(Dropped::LockedIsRestarted),
            None => false,
        };
        if !restarts {
            return vec![self];
        }
        seen.aborted = true;
        let go_on = |at| {
            let mut next = self;
            next.threads[thread].at = at;
            next
        };
        vec![go_on(At::ExpectLocked), go_on(At::Enter)]
    }

    fn empty(&mut self, cpu: usize) {
        while let Some(word) = self.cpus[cpu].buffer.take_oldest() {
            self.word = word;
        }
    }

    /// Returns the word as a load on `cpu` sees it.
    fn load(&self, cpu: usize) -> u8 {
        self.cpus[cpu].buffer.newest(Some).unwrap_or(self.word)
    }

    /// Records a change based on `before`, and returns the new word.
    fn change(&mut self, thread: usize, before: u8) -> Result<u8, String> {
        if before != self.truth {
            return Err(format!("thread {thread} changes {before:#b} where the word is {:#b}", self.truth));
        }
        self.threads[thread].left -= 1;
        self.truth += 1 << (thread * FIELD);
        self.has_faulted |= self.flags == Some(thread);
        Ok(self.truth)
    }

    /// Returns the next instruction of a thread that has made a change.
    fn next_change(&mut self, thread: usize) -> At {
        let flags = self.flags == Some(thread) && !self.flag;
        let thread = &mut self.threads[thread];
        (thread.expected, thread.cpu, thread.flag, thread.made) = (0, 0, false, 0);
        match thread.left {
            _ if flags => At::Flag,
            0 => At::Over,
            _ => At::Begin,
        }
    }

    /// Checks that `found`, in which a thread looks for work, contains all changes that other
    /// threads made before the thread's change `made`.
    fn sees(&self, thread: usize, found: u8, made: u8) -> Result<(), String> {
        let count = |word: u8, of: usize| word >> (of * FIELD) & ((1 << FIELD) - 1);
        match (0..self.threads.len()).find(|&of| of != thread && count(found, of) < count(made, of)) {
            Some(of) => Err(format!("thread {thread} does not see the change that thread {of} made before")),
            None => Ok(()),
        }
    }

    fn run(&self, cpu: usize, thread: usize, seen: &mut Seen, steps: &mut Vec<Step<Self>>) {
        let at = self.threads[thread].at;
        let action = (cpu, Action::Run(thread, at));
        let mut next = *self;
        let to = match next.step(cpu, thread, seen) {
            Err(what) => return steps.push((action, Err(what))),
            Ok(to) => to,
        };
        for to in to {
            let mut next = next;
            next.threads[thread].at = to;
            // A thread without further work leaves the CPU.
            if to == At::Over {
                next.empty(cpu);
                next.cpus[cpu].running = None;
            }
            steps.push((action, next.checked()));
        }
        // The barrier may abort the sequence of the thread that it interrupts.
        if at == At::BarrierInterrupts
            && self.dropped != Some(Dropped::BarrierAborts)
            && let Some(interrupted) = self.cpus[HOME].running
            && interrupted != thread
            && self.threads[interrupted].at.sequence().is_some()
        {
            steps.pop();
            next.threads[thread].at = next.after_barrier();
            steps.extend(next.aborted(interrupted, seen).into_iter().map(|next| (action, Ok(next))));
        }
    }

    fn after_barrier(&self) -> At {
        match self.dropped {
            Some(Dropped::RevokedAfterBarrier) => At::ChangeElsewhere,
            _ => At::Revoke,
        }
    }

    /// Executes the next instruction of a thread; returns the possible successors.
    fn step(&mut self, cpu: usize, thread: usize, seen: &mut Seen) -> Result<Vec<At>, String> {
        let dropped = self.dropped;
        let without = |condition| dropped == Some(condition);
        let biased = self.bias_state == BiasState::default();
        let to = match self.threads[thread].at {
            At::Flag => {
                self.empty(cpu);
                self.flag = true;
                self.next_change(thread)
            }
            At::Begin
                if self.flags == Some(thread) && !self.flag && !without(Dropped::FlaggedBeforeChange) =>
            {
                At::Flag
            }
            At::Begin => {
                let by_instruction = match dropped {
                    Some(Dropped::TestWithinSequence | Dropped::LooksAfterChange) => {
                        At::Early(By::Instruction)
                    }
                    Some(Dropped::CpuLoadedWithinSequence | Dropped::FlagsWithinSequence) => {
                        At::Early(By::Instruction)
                    }
                    _ => At::Announce(By::Instruction),
                };
                return Ok(vec![At::Expect, by_instruction]);
            }
            At::Expect => {
                self.threads[thread].expected = self.load(cpu);
                match without(Dropped::CpuLoadedWithinSequence) {
                    true => At::Early(By::Store),
                    false => At::Announce(By::Store),
                }
            }
            At::Early(by) => {
                let word = self.load(cpu);
                match dropped {
                    Some(Dropped::TestWithinSequence) => self.threads[thread].expected = word,
                    Some(Dropped::LooksAfterChange) => self.threads[thread].made = word,
                    Some(Dropped::FlagsWithinSequence) => self.threads[thread].flag = self.flag,
                    _ => self.threads[thread].cpu = cpu,
                }
                At::Announce(by)
            }
            At::Announce(by) if without(Dropped::CpuLoadedWithinSequence) => At::CompareBias(by),
            At::Announce(by) => At::LoadCpu(by),
            At::LoadCpu(by) => {
                self.threads[thread].cpu = cpu;
                At::CompareBias(by)
            }
            At::CompareBias(by) => {
                let is_home = self.threads[thread].cpu == HOME || without(Dropped::CpuWithinSequence);
                let is_biased = biased || without(Dropped::BiasWithinSequence);
                let flag = match without(Dropped::FlagsWithinSequence) {
                    true => self.threads[thread].flag,
                    false => self.flag,
                };
                match by {
                    _ if !is_home || !is_biased => At::ExpectLocked,
                    By::Instruction if flag => At::ExpectLocked,
                    By::Store => At::StoreWord,
                    By::Instruction if without(Dropped::TestWithinSequence) => At::Change,
                    By::Instruction => At::Test,
                }
            }
            At::StoreWord if self.load(cpu) == self.threads[thread].expected => At::Store,
            At::StoreWord if without(Dropped::WordWithinSequence) => At::Store,
            At::StoreWord => At::ExpectLocked,
            At::Store => {
                seen.stored = true;
                let word = self.change(thread, self.threads[thread].expected)?;
                self.cpus[cpu].buffer.push(word);
                self.next_change(thread)
            }
            At::Test => {
                self.threads[thread].expected = self.load(cpu);
                At::Change
            }
            At::Change => {
                seen.changed = true;
                let Thread { expected, made, .. } = self.threads[thread];
                if self.has_faulted {
                    return Err(format!("thread {thread} does not see a flag set before an earlier change"));
                }
                if expected != self.truth {
                    return Err(format!("thread {thread} has tested {expected:#b}, which is out of date"));
                }
                let word = self.change(thread, self.load(cpu))?;
                self.cpus[cpu].buffer.push(word);
                if without(Dropped::LooksAfterChange) {
                    self.sees(thread, made, word)?;
                    self.next_change(thread)
                } else {
                    self.threads[thread].made = word;
                    At::Check
                }
            }
            At::Check => {
                self.sees(thread, self.load(cpu), self.threads[thread].made)?;
                self.next_change(thread)
            }
            At::ExpectLocked => {
                self.threads[thread].expected = self.load(cpu);
                At::LockedCpu
            }
            At::LockedCpu if cpu == HOME || without(Dropped::CpuBeforeLocked) => At::Locked,
            At::LockedCpu => At::Enter,
            At::Locked => {
                let locked = !without(Dropped::LockedAtHome);
                if locked {
                    self.empty(cpu);
                }
                if self.load(cpu) != self.threads[thread].expected {
                    At::ExpectLocked
                } else {
                    let word = self.change(thread, self.threads[thread].expected)?;
                    if locked {
                        self.word = word;
                    } else {
                        self.cpus[cpu].buffer.push(word);
                    }
                    let next = self.next_change(thread);
                    return Ok(vec![At::MayBias, next]);
                }
            }
            At::MayBias => {
                self.empty(cpu);
                if self.bias_state.revoked
                    && (self.bias_state.counted == 0 || self.dropped == Some(Dropped::NobodyCounted))
                {
                    seen.biased_again = true;
                    self.bias_state = BiasState::default();
                }
                self.next_change(thread)
            }
            At::Enter => {
                self.empty(cpu);
                let late = match self.bias_state.revoked {
                    true => Dropped::Counted,
                    false => Dropped::CountedBeforeBarrier,
                };
                self.bias_state.counted += u8::from(!without(late));
                match self.bias_state.revoked {
                    true => At::ChangeElsewhere,
                    false if self.dropped == Some(Dropped::Barrier) => At::Revoke,
                    false if self.dropped == Some(Dropped::RevokedAfterBarrier) => At::Revoke,
                    false => At::BarrierLooks,
                }
            }
            At::BarrierLooks => {
                seen.barrier = true;
                self.empty(cpu);
                match self.cpus[HOME].running {
                    Some(_) => At::BarrierInterrupts,
                    None => self.after_barrier(),
                }
            }
            At::BarrierInterrupts => {
                if !without(Dropped::BarrierEmpties) {
                    self.empty(HOME);
                }
                self.after_barrier()
            }
            At::Revoke => {
                self.empty(cpu);
                self.bias_state.counted += u8::from(self.dropped == Some(Dropped::CountedBeforeBarrier));
                self.bias_state.revoked = true;
                match self.dropped {
                    Some(Dropped::RevokedAfterBarrier) => At::BarrierLooks,
                    _ => At::ChangeElsewhere,
                }
            }
            At::ChangeElsewhere if without(Dropped::LeavesAfterChange) && self.bias_state.counted > 0 => {
                // It leaves first; only this records that it has.
                self.bias_state.counted -= 1;
                self.threads[thread].expected = u8::MAX;
                At::Leave
            }
            At::ChangeElsewhere => {
                seen.locked_elsewhere = true;
                self.empty(cpu);
                self.word = self.change(thread, self.word)?;
                At::Leave
            }
            At::Leave if without(Dropped::LeavesAfterChange) => {
                self.empty(cpu);
                self.word = self.change(thread, self.word)?;
                self.next_change(thread)
            }
            At::Leave => {
                self.empty(cpu);
                self.bias_state.counted = self.bias_state.counted.saturating_sub(1);
                self.next_change(thread)
            }
            At::Over => unreachable!("it is on no CPU"),
        };
        Ok(vec![to])
    }
}
