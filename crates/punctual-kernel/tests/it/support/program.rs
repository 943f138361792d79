//! Random programs.

use super::Random;

pub(crate) const MUTEXES: usize = 3;
pub(crate) const SEMAPHORES: usize = 2;
/// The maximum number of units of a semaphore.
pub(crate) const MAXIMUM: u32 = 3;

/// A call of the kernel by a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Lock(usize),
    TryLock(usize),
    Unlock(usize),
    P(usize),
    /// With the maximum waiting time.
    PUntil(usize, u64),
    TryP(usize),
    V(usize),
    VBy(usize, u32),
    Yield,
    /// With the duration.
    Sleep(u64),
    Join(usize),
    Spawn(usize),
    /// Masks interrupts, and does nothing.
    Nothing,
    /// Returns from the thread's function.
    End,
}

#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The priority and the operations of each thread, `End` last.
    pub(crate) threads: Vec<(u8, Vec<Op>)>,
    /// The number of initial threads.
    pub(crate) initial: usize,
    pub(crate) units: [u32; SEMAPHORES],
}

impl Program {
    pub(crate) fn random(random: &mut Random) -> Self {
        let count = 2 + random.below(4);
        let initial = 1 + random.below(count);
        // In one of three programs, threads do little more than lock, so that they form chains of
        // waiters.
        let kinds = if random.below(3) == 0 { 8 } else { 20 };
        let threads = (0..count)
            .map(|thread| {
                let mut ops = Vec::new();
                let mut held = Vec::new();
                for _ in 0..2 + random.below(7) {
                    ops.push(operation(random, kinds, count, &mut held));
                }
                // Every thread but the first few is spawned by another, and most release what they
                // hold.
                if thread + 1 >= initial && thread + 1 < count {
                    let at = random.below(ops.len() + 1);
                    ops.insert(at, Op::Spawn(thread + 1));
                }
                if random.below(4) > 0 {
                    ops.extend(held.into_iter().rev().map(Op::Unlock));
                }
                ops.push(Op::End);
                (1 + random.below(4) as u8 * 3, ops)
            })
            .collect();
        Self { threads, initial, units: [random.below(2) as u32, random.below(3) as u32] }
    }
}

fn operation(random: &mut Random, kinds: usize, threads: usize, held: &mut Vec<usize>) -> Op {
    let (mutex, semaphore) = (random.below(MUTEXES), random.below(SEMAPHORES));
    match random.below(kinds) {
        0..5 => {
            held.push(mutex);
            Op::Lock(mutex)
        }
        5..8 => match held.pop() {
            Some(mutex) => Op::Unlock(mutex),
            None => Op::V(semaphore),
        },
        8 => Op::Unlock(mutex),
        9 => Op::TryLock(mutex),
        10..12 => Op::P(semaphore),
        12 => Op::PUntil(semaphore, random.below(4) as u64),
        13 => Op::TryP(semaphore),
        14 => Op::V(semaphore),
        15 => Op::VBy(semaphore, random.below(4) as u32),
        16 => Op::Yield,
        17 => Op::Sleep(random.below(4) as u64),
        18 => Op::Join(random.below(threads)),
        _ => Op::Yield,
    }
}
